"""The plots of a report: gates with their thresholds, values since the baseline, slices from the worst on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.gates.policy import MARGINS
from rag_eval.rendering import changes, phrases
from rag_eval.rendering.gates_table import by_outcome, kind
from rag_eval.rendering.html.element import (
    FORMATTER,
    Markup,
    caption,
    clean,
    folded,
    inline,
    joined,
    scrolled,
    shown,
    tag,
)
from rag_eval.rendering.html.svg import PlotRow, figure, is_share
from rag_eval.rendering.number_format import bound, enclosed, is_count, metric, metric_interval, value

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report, SliceResult
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult

_MOST = 40
_SHAPES = "A disc passes, a cross fails, an open diamond is inconclusive, a triangle only warns"
_KEPT = "the shaded side of the tick passes the gate."
_ENCLOSED = "the line is the 95\u00a0% interval, or the interval at the gate's confidence"
_STEPS = (0.05, 0.15, 0.3)
_HEAT = (
    "Red is worse than the value over all cases, green is better. The three shades begin at a difference of 0.05, 0.15 "
    "and 0.3; for amounts, of that share of the value over all cases."
)
_SLICED = (
    f"The dashed tick is the value over all cases; {_ENCLOSED}. The shape of a slice with a gate shows its outcome; an "
    "open disc without a gate has too few cases to judge."
)


def gates(report: Report) -> Iterator[Markup]:
    """Yield bounds with their thresholds: shares on one scale, amounts each on its own."""
    mixed = phrases.two_sided(report)
    shown = by_outcome(phrases.telling(report.gates))
    drawable = [
        gate for gate in shown if gate.direction not in MARGINS and gate.value is not None and not is_count(gate)
    ]
    rows = []
    for gate in drawable:
        text, ends = f"{enclosed(gate)}  {bound(gate)}", (gate.low, gate.high, float(gate.threshold))
        rows.append(PlotRow(_label(gate, mixed=mixed), kind(gate), text, gate.value or 0.0, *ends, gate.direction))
    legend = f"{_SHAPES}; {_ENCLOSED}; {_KEPT}"
    shares, amounts = ([mark for mark in rows if is_share(mark) is which] for which in (True, False))
    yield _capped("gates-plot", "Gates and their thresholds", legend, shares)
    legend = "" if shares else legend  # it is used up
    yield _capped("amounts-plot", "Gates on amounts, each on a scale of its own", legend, amounts, own_scale=True)


def _capped(key: str, title: str, legend: str, rows: Sequence[PlotRow], *, own_scale: bool = False) -> Markup:
    """Return the first of many marks, failing ones before others; the table has all."""
    if len(rows) <= _MOST:
        return figure(key, title, legend, rows, own_scale=own_scale)
    chosen = sorted(rows, key=lambda mark: mark.kind != "failed")[:_MOST]
    drawn = figure(key, title, legend, chosen, own_scale=own_scale)
    return joined([drawn, tag("p", f"{_MOST} of {len(rows):,} are drawn; the table has all.")])


def _label(gate: GateResult, *, mixed: bool) -> str:
    """Return the gate, and its origin if that matters."""
    return shown(f"{gate.label} ({phrases.WHOSE[gate.origin]})" if mixed else gate.label)


def since(report: Report) -> Iterator[Markup]:
    """Yield margins: the value before, the value now, and the limit."""
    margins = [gate for gate in by_outcome(phrases.telling(report.gates)) if gate.comparison is not None]
    mixed = phrases.two_sided(report)
    rows = [mark for gate in margins if (mark := _margin(gate, mixed=mixed)) is not None]
    legend = f"The line goes from the baseline (the ring) to the value now. {_SHAPES}; {_KEPT}"
    shares, amounts = ([mark for mark in rows if is_share(mark) is which] for which in (True, False))
    yield _capped("since-plot", "Since the baseline", legend, shares)
    yield _capped(
        "since-amounts-plot", "Amounts since the baseline, each on a scale of its own", legend, amounts, own_scale=True
    )


def _margin(gate: GateResult, *, mixed: bool) -> PlotRow | None:
    comparison = gate.comparison
    if comparison is None or comparison.baseline is None or comparison.value is None:
        return None
    drop = gate.direction == "max_drop"
    limit = comparison.baseline + (-1 if drop else 1) * float(gate.threshold)
    limit = min(max(limit, 0.0), 1.0) if 0 <= comparison.baseline <= 1 else limit
    side, label = "min" if drop else "max", _label(gate, mixed=mixed)
    return PlotRow(label, kind(gate), value(gate), comparison.value, limit=limit, side=side, before=comparison.baseline)


def slices(report: Report) -> Iterator[Markup]:
    """Yield a plot of each gated metric: its slices from the worst on, with a tick at the value of all cases."""
    bounds = changes.bounds_of(report)
    for index, name in enumerate(changes.gated(report)):
        measured = [(part, part.metrics[name]) for part in report.slices if name in part.metrics]
        parts = sorted((pair for pair in measured if pair[1].value is not None), key=changes.by_value)
        rows = [_slice(report, name, *part, bounds) for part in parts[:_MOST]]
        title = f"{shown(name)} by slice, worst first"
        cut = f"The worst {_MOST} of {len(parts):,} are drawn; the table has all." if len(parts) > _MOST else ""
        drawn = figure(f"slice-plot-{index}", title, _SLICED, rows)
        yield folded(title, drawn, tag("p", cut) if cut else Markup(""), unfolded=not index)


def heat(report: Report) -> Iterator[Markup]:
    """Yield a table for each field, of every metric by slice, coloured by the distance from the value of all cases."""
    bounds = changes.bounds_of(report)
    for field, parts in changes.by_field(report).items():
        title, parts = f"Every metric by {shown(field)}", parts[:_MOST]
        heads = ["Metric", "All cases", *(changes.of_slice(report, part, FORMATTER) for part in parts)]
        head = tag("tr", *(tag("th", inline(text), scope="col") for text in heads))
        rows = [_heated(report, name, parts, bounds) for name in changes.valued(report, parts)]
        table = tag("table", caption(title), tag("thead", head), tag("tbody", joined(rows)), class_="heat")
        yield folded(title, tag("p", _HEAT), scrolled(title, table))


def _heated(report: Report, name: str, parts: Sequence[SliceResult], bounds: changes.Bounds) -> Markup:
    whole = report.metrics[name]
    cells = [tag("th", inline(FORMATTER.named(name, "")), scope="row")]
    cells.append(tag("td", metric(whole, name), data_label="All cases"))
    for part in parts:
        result = part.metrics.get(name)
        text = changes.in_slice(bounds, part, name) if result and result.n else "–"
        label = clean(changes.of_slice(report, part, FORMATTER))
        cells.append(tag("td", text, class_=_colour(result, whole) if result else None, data_label=label))
    return tag("tr", *cells)


def _colour(result: MetricResult, whole: MetricResult) -> str | None:
    """Return the class of a value by its distance from that of all cases; amounts are compared by their ratio."""
    if result.value is None or whole.value is None:
        return None
    scale = 1.0 if max(abs(result.value), abs(whole.value)) <= 1 else abs(whole.value) or 1.0
    move = (result.value - whole.value) / scale * (1 if result.better == "higher" else -1)
    steps = sum(abs(move) >= step for step in _STEPS)
    return f"{'better' if move > 0 else 'worse'}{steps}" if steps else None


def _slice(report: Report, name: str, part: SliceResult, result: MetricResult, bounds: changes.Bounds) -> PlotRow:
    gate = bounds.get((name, part.slice, result.value))
    shape = kind(gate) if gate is not None else "few" if part.n < report.min_n else "plain"
    text = changes.in_slice(bounds, part, name) + metric_interval(result, name)
    whole = report.metrics[name].value if name in report.metrics else None
    return PlotRow(shown(part.slice), shape, text, result.value or 0.0, result.low, result.high, whole)
