"""The plots of a report: gates against their thresholds, values since the baseline, slices from the worst on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.gates.policy import MARGINS
from rag_eval.rendering import baseline_view, changes, phrases
from rag_eval.rendering.gates_table import kind
from rag_eval.rendering.html.element import FORMATTER, Markup, inline, joined, shown, tag
from rag_eval.rendering.html.layout import caption, folded, scrolled
from rag_eval.rendering.html.svg import Mark, figure, is_share
from rag_eval.rendering.number_format import bound, enclosed, is_count, metric, metric_interval, value

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report, SliceResult
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult

_MOST = 40
_SHAPES = "A disc passes, a cross fails, an open diamond is inconclusive, a triangle only warns"
_KEPT = "the shaded side of the tick keeps the gate."
_ENCLOSED = "the line is the 95\u00a0% interval or that of the gate's own confidence"
_STEPS = (0.05, 0.15, 0.3)
_HEAT = (
    "Red is worse than all cases and green better, in three shades: from 0.05, 0.15 and 0.3 on; for amounts, that "
    "share of the value over all cases."
)
_SLICED = (
    f"The dashed tick is the value over all cases; {_ENCLOSED}. A slice with a gate has the shape of its outcome; of "
    "the others an open disc has too few cases to judge by."
)


def gates(report: Report) -> Iterator[Markup]:
    """Bounds against their thresholds: shares on one scale, amounts each on its own."""
    mixed = phrases.two_sided(report)
    marks = [_bound(gate, mixed=mixed) for gate in phrases.telling(report.gates) if _drawable(gate)]
    legend = f"{_SHAPES}; {_ENCLOSED}; {_KEPT}"
    shares, amounts = ([mark for mark in marks if is_share(mark) is which] for which in (True, False))
    yield _capped("gates-plot", "Gates and their thresholds", legend, shares)
    legend = "" if shares else legend  # it has been read
    yield _capped("amounts-plot", "Gates on amounts, each on a scale of its own", legend, amounts, own=True)


def _capped(key: str, title: str, legend: str, marks: Sequence[Mark], *, own: bool = False) -> Markup:
    """The first of many marks, failing ones before others; the table has all."""
    if len(marks) <= _MOST:
        return figure(key, title, legend, marks, own=own)
    chosen = sorted(marks, key=lambda mark: mark.kind != "failed")[:_MOST]
    drawn = figure(key, title, legend, chosen, own=own)
    return joined([drawn, tag("p", f"{_MOST} of {len(marks):,} are drawn; the table has all.")])


def _drawable(gate: GateResult) -> bool:
    return gate.direction not in MARGINS and gate.value is not None and not is_count(gate)


def _label(gate: GateResult, *, mixed: bool) -> str:
    """The gate, and whose it is where that matters."""
    return shown(f"{gate.label} ({phrases.WHOSE[gate.origin]})" if mixed else gate.label)


def _bound(gate: GateResult, *, mixed: bool) -> Mark:
    said = f"{enclosed(gate)}  {bound(gate)}"
    ends = gate.low, gate.high, float(gate.threshold)
    return Mark(_label(gate, mixed=mixed), kind(gate), said, gate.value or 0.0, *ends, gate.direction)


def since(report: Report) -> Iterator[Markup]:
    """Margins: where a value came from, where it is, and how far it may go."""
    changes = [gate for gate in phrases.telling(report.gates) if gate.comparison is not None]
    mixed = phrases.two_sided(report)
    marks = [mark for gate in changes if (mark := _margin(gate, mixed=mixed)) is not None]
    legend = f"From the ring, which is the baseline, to the value now. {_SHAPES}; {_KEPT}"
    shares, amounts = ([mark for mark in marks if is_share(mark) is which] for which in (True, False))
    yield _capped("since-plot", "Since the baseline", legend, shares)
    yield _capped(
        "since-amounts-plot", "Amounts since the baseline, each on a scale of its own", legend, amounts, own=True
    )


def _margin(gate: GateResult, *, mixed: bool) -> Mark | None:
    found = gate.comparison
    if found is None or found.baseline is None or found.value is None:
        return None
    drop = gate.direction == "max_drop"
    limit = found.baseline + (-1 if drop else 1) * float(gate.threshold)
    limit = min(max(limit, 0.0), 1.0) if 0 <= found.baseline <= 1 else limit
    side, label = "min" if drop else "max", _label(gate, mixed=mixed)
    return Mark(label, kind(gate), value(gate), found.value, limit=limit, side=side, before=found.baseline)


def slices(report: Report) -> Iterator[Markup]:
    """A plot of each gated metric: its slices from the worst on, and a tick where all cases stand."""
    bounds = baseline_view.bounds_of(report)
    for place, name in enumerate(baseline_view.gated(report)):
        found = _worst_first(report, name)
        marks = [_slice(report, name, *each, bounds) for each in found[:_MOST]]
        title = f"{shown(name)} by slice, the worst first"
        cut = f"The worst {_MOST} of {len(found):,} are drawn; the table has all." if len(found) > _MOST else ""
        drawn = figure(f"slice-plot-{place}", title, _SLICED, marks)
        yield folded(title, drawn, tag("p", cut) if cut else Markup(""), unfolded=not place)


def heat(report: Report) -> Iterator[Markup]:
    """Yield a table a field, of every metric by slice: the colour says how far a value is from that of all cases."""
    bounds = baseline_view.bounds_of(report)
    for field, parts in baseline_view.by_field(report).items():
        title, parts = f"Every metric by {shown(field)}", parts[:_MOST]
        heads = ["Metric", "All cases", *(changes.of_slice(report, part, FORMATTER) for part in parts)]
        head = tag("tr", *(tag("th", inline(text), scope="col") for text in heads))
        rows = [_heated(report, name, parts, bounds) for name in baseline_view.valued(report, parts)]
        table = tag("table", caption(title), tag("thead", head), tag("tbody", joined(rows)), class_="heat")
        yield folded(title, tag("p", _HEAT), scrolled(title, table))


def _heated(report: Report, name: str, parts: Sequence[SliceResult], bounds: baseline_view.Bounds) -> Markup:
    whole = report.metrics[name]
    cells = [tag("th", inline(FORMATTER.named(name, "")), scope="row"), tag("td", metric(whole, name))]
    for part in parts:
        own = part.metrics.get(name)
        text = baseline_view.in_slice(bounds, part, name) if own and own.n else "–"
        cells.append(tag("td", text, class_=_colour(own, whole) if own else None))
    return tag("tr", *cells)


def _colour(own: MetricResult, whole: MetricResult) -> str | None:
    """Return the class of a value by its distance from that of all cases; amounts are compared by their ratio."""
    if own.value is None or whole.value is None:
        return None
    scale = 1.0 if max(abs(own.value), abs(whole.value)) <= 1 else abs(whole.value) or 1.0
    move = (own.value - whole.value) / scale * (1 if own.better == "higher" else -1)
    steps = sum(abs(move) >= step for step in _STEPS)
    return f"{'better' if move > 0 else 'worse'}{steps}" if steps else None


def _worst_first(report: Report, name: str) -> list[tuple[SliceResult, MetricResult]]:
    own = [(part, part.metrics[name]) for part in report.slices if name in part.metrics]
    valued = [(part, result) for part, result in own if result.value is not None]
    return sorted(valued, key=baseline_view.by_value)


def _slice(report: Report, name: str, part: SliceResult, result: MetricResult, bounds: baseline_view.Bounds) -> Mark:
    gate = bounds.get((name, part.slice, result.value))
    shape = kind(gate) if gate is not None else "few" if part.n < report.min_n else "plain"
    said = baseline_view.in_slice(bounds, part, name) + metric_interval(result, name)
    whole = report.metrics[name].value if name in report.metrics else None
    return Mark(shown(part.slice), shape, said, result.value or 0.0, result.low, result.high, whole)
