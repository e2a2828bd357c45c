"""Plots as SVG, as wide as the screen allows: gates as rows on a scale, readings over time; slices as a heat map.

A row has its text beside its drawing, so that a narrow screen can put the text above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from rag_eval.analysis import Report
from rag_eval.analysis.history import Series
from rag_eval.analysis.runs import Front
from rag_eval.gates import MARGINS, SPENDING
from rag_eval.rendering import results
from rag_eval.rendering.document import COMMIT, format_number, more, unit
from rag_eval.rendering.gates_table import (
    ORIGINS,
    OUTCOMES,
    format_bound,
    format_estimate,
    gates_with_row,
    has_two_sides,
    outcome_style,
)
from rag_eval.rendering.history import reading_cells
from rag_eval.rendering.html.element import (
    FORMATTER,
    NOTHING,
    Markup,
    folded,
    join,
    plain_text,
    table,
    tag,
    visible,
    write_blocks,
)

Ends = tuple[float, float]

_LEFT, _RIGHT, _WIDTH = 8.0, 392.0, 400.0
_ROW, _TICKS = 26.0, 4
_SHARES = 0.0, 1.0
_KINDS = {**OUTCOMES, "warning": "warning only"}

_CHART_LEFT, _CHART_TOP, _CHART_BOTTOM, _CHART_HEIGHT = 44.0, 26.0, 168.0, 204.0
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_GLYPH, _SHORT = 5.0, 22
MOST = 40
"""Rows of a plot, and columns of a heat map."""
_SHAPES = "A disc passes, a cross fails, an open diamond is inconclusive, a triangle only warns"
_INTERVAL = "the line is the 95\u00a0% interval, or the interval at the gate's confidence"
_FRONT = "Better is up and to the left. A disc is on the front; a ring is dominated by another run."
_HEAT = (
    "Red is worse than the value over all cases, green is better. The three shades begin at a difference of 0.05, 0.15 "
    "and 0.3; for amounts, of that share of the value over all cases."
)


class PlotRow(NamedTuple):
    """A row: ``kind`` is the style of an outcome, ``caption`` the text at its end.

    ``limit`` is the threshold, ``side`` the side that passes: ``min`` to the right, ``max`` to the left. All numbers
    are shares.
    """

    label: str
    kind: str
    caption: str
    value: float
    low: float | None
    high: float | None
    limit: float
    side: str
    before: float | None = None


def figure(key: str, title: str, legend: str, rows: Sequence[PlotRow]) -> Markup:
    """Return a plot of rows on one scale; ``legend`` explains it. Empty without rows."""
    if not rows:
        return NOTHING
    grid = [(_across(number), number) for number in ticks(*_SHARES)]
    anchors = {_RIGHT: "last", _LEFT: "first"}
    axis = [tag("text", f"{number:.3g}", x=x, y=14.0, class_=anchors.get(x, "tick")) for x, number in grid]
    drawn = [_svg(axis, 20.0, "axis")]
    sentences = []
    for row in rows:
        lines = [tag("line", x1=x, x2=x, y1=0.0, y2=_ROW, class_="grid") for x, _ in grid]
        shapes = tag("g", *lines, *_shapes(row), class_=row.kind)
        label, text = tag("span", row.label, class_="label"), tag("span", row.caption, class_="value-text")
        drawn.append(tag("div", label, _svg([shapes], _ROW), text, class_="row"))
        sentences.append(", ".join(filter(None, [f"{row.label}: {row.caption}", _KINDS.get(row.kind)])))
    plot = tag("div", join(drawn), class_="rows", role="img", aria_labelledby=f"{key}-name {key}-about")
    about = tag("p", "; ".join(sentences), id=f"{key}-about", class_="visually-hidden")
    return tag("figure", _caption(key, title, legend), about, plot)


def _caption(key: str, title: str, legend: str) -> Markup:
    return tag("figcaption", tag("strong", title, id=f"{key}-name"), f" {legend}" if legend else "")


def _svg(parts: Iterable[Markup], height: float, kind: str | None = None) -> Markup:
    """Return a drawing; the figure around it describes it in words."""
    return tag("svg", join(parts), viewBox=f"0 0 {_WIDTH:.0f} {height:.0f}", class_=kind, aria_hidden="true")


def _place(number: float, scale: Ends, start: float, end: float) -> float:
    """Return the position of a number between two ends of a drawing; the middle if the scale cannot show it."""
    (low, high), share = scale, 0.5
    if isfinite(high - low) and high > low:
        share = min(max((number - low) / (high - low), 0.0), 1.0)
    return start + (end - start) * share


def _across(share: float) -> float:
    """Return the position of a share from left to right."""
    return _place(share, _SHARES, _LEFT, _RIGHT)


def _shapes(row: PlotRow) -> Iterator[Markup]:
    """Yield the track, the limit with its passing side, the interval, the change from before, and the point."""
    middle, value, limit = _ROW / 2, _across(row.value), _across(row.limit)
    start, end = (limit, _RIGHT) if row.side == "min" else (_LEFT, limit)
    yield tag("line", x1=_LEFT, x2=_RIGHT, y1=middle, y2=middle, class_="track")
    yield tag("rect", x=start, y=4.0, width=end - start, height=_ROW - 8, class_="passing")
    yield tag("line", x1=limit, x2=limit, y1=2.0, y2=_ROW - 2, class_="limit")
    if row.low is not None or row.high is not None:  # an unknown end is the end of the scale, without a cap
        low, high = (_across(outer if end is None else end) for end, outer in ((row.low, 0.0), (row.high, 1.0)))
        yield tag("line", x1=low, x2=high, y1=middle, y2=middle, class_="interval")
        for x in [x for x, end in ((low, row.low), (high, row.high)) if end is not None]:
            yield tag("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5, class_="interval")
    if row.before is not None:
        old = _across(row.before)
        yield tag("line", x1=old, x2=value, y1=middle, y2=middle, class_="change")
        yield tag("circle", cx=old, cy=middle, r=4, class_="before")
    yield _point(row.kind, value, middle)


def _point(kind: str, x: float, y: float, size: float = _GLYPH) -> Markup:
    """Return a point; each kind has a shape: a cross fails, a disc passes, a diamond is open, a triangle warns."""
    wide = 2 * size
    paths = {
        "failed": f"M{x - size:.1f} {y - size:.1f}l{wide:g} {wide:g}m0 -{wide:g}l-{wide:g} {wide:g}",
        "inconclusive": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "warning": f"M{x:.1f} {y - 6:.1f}l6.5 11h-13z",
    }
    if kind in paths:
        return tag("path", d=paths[kind], class_="point")
    return tag("circle", cx=x, cy=y, r=size, class_="point")


class Dot(NamedTuple):
    """A point: ``kind`` is its class, ``caption`` its description.

    ``low`` and ``high`` enclose ``y``. ``rule`` draws a vertical line here, because something changed.
    """

    x: float
    y: float
    kind: str
    caption: str
    low: float | None = None
    high: float | None = None
    rule: bool = False


class _Limit(NamedTuple):
    """A threshold from one ``x`` to another; its passing ``side`` is shaded."""

    start: float
    end: float
    y: float
    side: str


class _Frame(NamedTuple):
    """The ranges of numbers that a chart shows, and their positions on it."""

    across: Ends
    up: Ends

    def x(self, number: float) -> float:
        """Return the position from left to right."""
        return _place(number, self.across, _CHART_LEFT, _RIGHT)

    def y(self, number: float) -> float:
        """Return the position from the bottom to the top."""
        return _place(number, self.up, _CHART_BOTTOM, _CHART_TOP)


def _span(numbers: Sequence[float]) -> Ends:
    """Return the range of the numbers plus a tenth on either side; shares stay between 0 and 1."""
    low, high = min(numbers), max(numbers)
    room = (high - low) / 10 or abs(high) / 10 or 1.0
    bounded = low >= 0 and high <= 1
    return (max(low - room, 0.0), min(high + room, 1.0)) if bounded else (low - room, high + room)


def chart(
    key: str, title: str, legend: str, dots: Sequence[Dot], ends: tuple[str, str], limits: Sequence[_Limit] = ()
) -> Markup:
    """Return a plot of ``dots`` over a horizontal axis with texts at its ``ends``. Empty without dots.

    Lines join the points; rules interrupt them, and points of the kind ``few`` are not on them.
    """
    if not dots:
        return NOTHING
    heights = [end for dot in dots for end in (dot.y, dot.low, dot.high) if end is not None]
    frame = _Frame(_span([dot.x for dot in dots]), _span([*heights, *(limit.y for limit in limits)]))
    shades, thresholds = [], []
    for limit in limits:
        start, end, y = frame.x(limit.start), frame.x(limit.end), frame.y(limit.y)
        top, bottom = (_CHART_TOP, y) if limit.side == "min" else (y, _CHART_BOTTOM)
        shades.append(tag("rect", x=start, y=top, width=end - start, height=bottom - top, class_="passing"))
        thresholds.append(tag("line", x1=start, x2=end, y1=y, y2=y, class_="limit"))
    rules = [frame.x(dot.x) for dot in dots if dot.rule]
    lines: list[list[str]] = [[]]
    for dot in dots:
        lines += [[]] if dot.rule else []
        lines[-1] += [f"{frame.x(dot.x):.1f} {frame.y(dot.y):.1f}"] if dot.kind != "few" else []
    drawn = [
        *shades,
        *_grid(frame, ends),
        *thresholds,
        *(tag("line", x1=x, x2=x, y1=_CHART_TOP, y2=_CHART_BOTTOM, class_="reference") for x in rules),
        *(tag("path", d=f"M{'L'.join(line)}", class_="path") for line in lines if len(line) > 1),
    ]
    for dot in dots:
        x, y, parts = frame.x(dot.x), frame.y(dot.y), [tag("title", dot.caption)]
        if dot.low is not None and dot.high is not None:
            parts.append(tag("line", x1=x, x2=x, y1=frame.y(dot.low), y2=frame.y(dot.high), class_="interval"))
        drawn.append(tag("g", *parts, _point(dot.kind, x, y, 4.0), class_=dot.kind))
    return _chart(key, title, legend, drawn, [dot.caption for dot in dots])


def _chart(key: str, title: str, legend: str, drawn: Iterable[Markup], captions: Iterable[str]) -> Markup:
    about = tag("p", "; ".join(captions), id=f"{key}-about", class_="visually-hidden")
    box = f"0 0 {_WIDTH:.0f} {_CHART_HEIGHT:.0f}"
    plot = tag("svg", join(drawn), viewBox=box, role="img", aria_labelledby=f"{key}-name {key}-about")
    return tag("figure", _caption(key, title, legend), about, plot, class_="chart")


def _grid(frame: _Frame, ends: tuple[str, str]) -> Iterator[Markup]:
    for tick in ticks(*frame.up):
        y = frame.y(tick)
        yield tag("line", x1=_CHART_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", f"{tick:.4g}", x=_CHART_LEFT - 6, y=y + 4, class_="last")
    for text, x, kind in ((ends[0], _CHART_LEFT, "first"), (ends[1], _RIGHT, "last")):
        if text:
            yield tag("text", _short(text), x=x, y=_CHART_BOTTOM + 20, class_=kind)


def ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers from ``low`` to ``high``; none if no round number is between them."""
    least = (high - low) / _TICKS
    if not isfinite(least) or least <= 0 or (power := 10.0 ** floor(log10(least))) == 0:
        return []
    step = next(factor * power for factor in _ROUND if factor * power >= least or factor == _ROUND[-1])
    if not isfinite(step) or abs(low / step) > 1e9 or abs(high / step) > 1e9:
        return []
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"…{text[1 - _SHORT :]}"


def pareto_front(front: Front, runs: Sequence[str]) -> Iterator[Markup]:
    """Yield a plot of the quality of ``runs`` over each of the other dimensions, with the name of each run."""
    for axis, name in enumerate(front.dimensions[1:], 1):
        across, up = [point[axis] for point in front.points], [point[0] for point in front.points]
        frame, drawn, captions = _Frame(_span(across), _span(up)), [], []
        for run, beaten, amount, quality in zip(runs, front.beaten_by, across, up, strict=True):
            x, y, kind = frame.x(amount), frame.y(quality), "plain" if beaten is None else "few"
            caption = (
                f"{visible(run)}: quality {format_number(quality)}, {name} {format_number(amount, SPENDING[name])}"
            )
            side, anchor = (8, "first") if x < _WIDTH / 2 else (-8, "last")
            label = tag("text", _short(visible(run)), x=x + side, y=y - 5, class_=anchor)
            drawn.append(tag("g", tag("title", caption), _point(kind, x, y, 4.0), label, class_=kind))
            captions.append(caption)
        numbers = [
            tag("text", f"{tick:.4g}", x=frame.x(tick), y=_CHART_BOTTOM + 16, class_="tick")
            for tick in ticks(*frame.across)
        ]
        axes = [*_grid(frame, ("", "")), *numbers]
        title = f"Quality by {name}, in{unit(SPENDING[name])}."
        yield _chart(f"front-{axis}", title, _FRONT, [*axes, *drawn], captions)


def gates(report: Report) -> Iterator[Markup]:
    """Yield a plot of the gates on shares with their thresholds, and of margins the baseline: the first of many."""
    drawn = []
    for gate in gates_with_row(report.gates):
        if gate.value is None or gate.is_completeness or unit(gate.name):
            continue
        label = visible(f"{gate.label} ({ORIGINS[gate.origin]})" if has_two_sides(report) else gate.label)
        text = f"{format_estimate(gate)}, gate {format_bound(gate)}"
        limit, side, before = float(gate.threshold), gate.direction, None
        if gate.direction in MARGINS:
            before = gate.comparison and gate.comparison.baseline
            if before is None:
                continue
            limit, side = (before - limit, "min") if gate.direction == "max_drop" else (before + limit, "max")
            limit = min(max(limit, 0.0), 1.0) if 0 <= before <= 1 else limit
        numbers = gate.value, gate.low, gate.high, limit
        if all(number is None or 0 <= number <= 1 for number in (*numbers, before)):
            drawn.append(PlotRow(label, outcome_style(gate), text, *numbers, side, before))
    ring = "a ring is the baseline's value; " if any(row.before is not None for row in drawn) else ""
    legend = f"{_SHAPES}; {_INTERVAL}; {ring}the shaded side of the tick passes the gate."
    yield figure("gates-plot", "Gates and their thresholds", legend, drawn[:MOST])
    if len(drawn) > MOST:
        yield tag("p", f"{MOST} of {len(drawn):,} are drawn; the table has all.")


def heat(report: Report) -> Iterator[Markup]:
    """Yield a table for each field, of every metric by slice, coloured by the distance from the value of all cases."""
    for field, parts in results.by_field(report).items():
        title, cut, parts = f"Every metric by {visible(field)}", len(parts) - MOST, parts[:MOST]
        block = results.table_of_slices(report, title, parts, FORMATTER)
        colours = (
            [None, *(results.shade(name, part.metrics.get(name), report.metrics[name]) for part in parts)]
            for name in results.valued(report, parts)
        )
        few = any(part.n < report.min_n for part in parts)
        legend = write_blocks([*more(cut, "report.json"), *results.legend_of_few(report, few=few)])
        yield folded(title, tag("p", _HEAT, class_="hint"), table(block, colours, "heat"), legend)


def trend(index: int, series: Series) -> Markup:
    """Return a chart of the readings with a value, whose line is interrupted at changes of the definition."""
    dots, labels = [], []
    for at, reading in enumerate(series.readings):
        if reading.value is None:
            continue
        outcome = reading.bound.outcome if reading.bound else ""
        kind = "few" if not reading.comparable else outcome if outcome in ("passed", "failed") else "plain"
        label, *cells = map(plain_text, reading_cells(series.metric, reading, FORMATTER))
        if reading.bound:
            cells.append(f"{reading.bound.side} {reading.bound.threshold:g}: {reading.bound.outcome.replace('_', ' ')}")
        cells += [f"commit {visible(reading.commit[:COMMIT])}"] if reading.commit else []
        text = f"{label}: {', '.join(cell for cell in cells if cell)}"
        dots.append(Dot(float(at), reading.value, kind, text, reading.low, reading.high, reading.broken))
        labels.append(visible(reading.commit[:COMMIT] or reading.label))
    ends = (labels[0], labels[-1]) if len(labels) > 1 else ("", "")
    newest = format_number(series.values[-1], series.metric) if series.values else ""
    limits = []
    for limit, group in groupby(enumerate(series.readings), key=lambda entry: entry[1].bound and entry[1].bound[:2]):
        indexes = [index for index, _ in group]
        if limit:
            limits.append(_Limit(indexes[0] - 0.5, indexes[-1] + 0.5, limit[1], limit[0]))
    return chart(f"plot-{index}", visible(series.metric), newest, dots, ends, limits)
