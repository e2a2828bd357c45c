"""The plots of a report: gates with their thresholds, values since the baseline, slices from the worst on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.gates.policy import MARGINS
from rag_eval.rendering import metrics_tables
from rag_eval.rendering.gates_table import ORIGINS, by_outcome, gates_with_row, has_two_sides, kind
from rag_eval.rendering.html.element import (
    FORMATTER,
    Markup,
    caption,
    folded,
    inline,
    join,
    plain_text,
    scrolled,
    tag,
    visible,
)
from rag_eval.rendering.html.svg import PlotRow, figure, is_share
from rag_eval.rendering.number_format import (
    bound,
    is_completeness,
    metric,
    metric_interval,
    value,
    value_with_interval,
)

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult

_MOST = 40
_SHAPES = "A disc passes, a cross fails, an open diamond is inconclusive, a triangle only warns"
_PASSING_SIDE = "the shaded side of the tick passes the gate."
_INTERVAL = "the line is the 95\u00a0% interval, or the interval at the gate's confidence"
_STEPS = (0.05, 0.15, 0.3)
_HEAT = (
    "Red is worse than the value over all cases, green is better. The three shades begin at a difference of 0.05, 0.15 "
    "and 0.3; for amounts, of that share of the value over all cases."
)
_SLICES = (
    f"The dashed tick is the value over all cases; {_INTERVAL}. The shape of a slice with a gate shows its outcome; an "
    "open disc without a gate has too few cases to judge."
)


def gates(report: Report) -> Iterator[Markup]:
    """Yield bounds with their thresholds: shares on one scale, amounts each on its own."""
    rows = []
    for gate in by_outcome(gates_with_row(report.gates)):
        if gate.direction not in MARGINS and gate.value is not None and not is_completeness(gate):
            text, limit = f"{value_with_interval(gate)}  {bound(gate)}", float(gate.threshold)
            ends = gate.low, gate.high, limit, gate.direction
            rows.append(PlotRow(_label(report, gate), kind(gate), text, gate.value, *ends))
    yield from _figures("gates", "Gates and their thresholds", "Gates on amounts", f"{_SHAPES}; {_INTERVAL}; ", rows)


def since(report: Report) -> Iterator[Markup]:
    """Yield margins: the value before, the value now, and the limit."""
    rows = []
    for gate in by_outcome(gates_with_row(report.gates)):
        comparison = gate.comparison
        if comparison is None or comparison.baseline is None or comparison.value is None:
            continue
        drop, before = gate.direction == "max_drop", comparison.baseline
        limit = before + (-1 if drop else 1) * float(gate.threshold)
        limit = min(max(limit, 0.0), 1.0) if 0 <= before <= 1 else limit
        side, label = "min" if drop else "max", _label(report, gate)
        row = PlotRow(label, kind(gate), value(gate), comparison.value, limit=limit, side=side, before=before)
        rows.append(row)
    legend = f"The line goes from the baseline (the ring) to the value now. {_SHAPES}; "
    yield from _figures("since", "Since the baseline", "Amounts since the baseline", legend, rows)


def _label(report: Report, gate: GateResult) -> str:
    """Return the gate, and its origin if that matters."""
    return visible(f"{gate.label} ({ORIGINS[gate.origin]})" if has_two_sides(report) else gate.label)


def _figures(key: str, shares: str, amounts: str, legend: str, rows: Sequence[PlotRow]) -> Iterator[Markup]:
    """Yield a plot of the shares and one of the amounts, each with the first of many rows, failing ones before others.

    The first plot explains the marks of both.
    """
    legend = f"{legend}{_PASSING_SIDE}"
    for name, title, own_scale in (
        (f"{key}-plot", shares, False),
        (f"{key}-amounts-plot", f"{amounts}, each on a scale of its own", True),
    ):
        of_kind = [row for row in rows if is_share(row) is not own_scale]
        chosen = sorted(of_kind, key=lambda row: row.kind != "failed")[:_MOST] if len(of_kind) > _MOST else of_kind
        yield figure(name, title, legend, chosen, own_scale=own_scale)
        if len(of_kind) > _MOST:
            yield tag("p", f"{_MOST} of {len(of_kind):,} are drawn; the table has all.")
        legend = "" if of_kind else legend


def slices(report: Report) -> Iterator[Markup]:
    """Yield a plot of each gated metric: its slices from the worst on, with a tick at the value of all cases."""
    bounds = metrics_tables.bounds_of(report)
    for index, name in enumerate(metrics_tables.gated(report)):
        measured = [(part, part.metrics[name]) for part in report.slices if name in part.metrics]
        parts = sorted((pair for pair in measured if pair[1].value is not None), key=metrics_tables.by_value)
        rows = []
        for part, result in parts[:_MOST]:
            gate = bounds.get((name, part.slice, result.value))
            shape = kind(gate) if gate is not None else "few" if part.n < report.min_n else "plain"
            text = metrics_tables.in_slice(bounds, part, name) + metric_interval(result, name)
            ends = result.low, result.high, report.metrics[name].value
            rows.append(PlotRow(visible(part.slice), shape, text, result.value or 0.0, *ends))
        title = f"{visible(name)} by slice, worst first"
        cut = f"The worst {_MOST} of {len(parts):,} are drawn; the table has all." if len(parts) > _MOST else ""
        drawn = figure(f"slice-plot-{index}", title, _SLICES, rows)
        yield folded(title, drawn, tag("p", cut) if cut else Markup(""), unfolded=not index)


def heat(report: Report) -> Iterator[Markup]:
    """Yield a table for each field, of every metric by slice, coloured by the distance from the value of all cases."""
    bounds = metrics_tables.bounds_of(report)
    for field, parts in metrics_tables.by_field(report).items():
        title, parts = f"Every metric by {visible(field)}", parts[:_MOST]
        heads = [metrics_tables.slice_with_size(report, part, FORMATTER) for part in parts]
        head = tag("tr", *(tag("th", inline(text), scope="col") for text in ("Metric", "All cases", *heads)))
        rows = []
        for name in metrics_tables.valued(report, parts):
            whole = report.metrics[name]
            cells = [tag("th", inline(FORMATTER.named(name, "")), scope="row")]
            cells.append(tag("td", metric(whole, name), data_label="All cases"))
            for part, text in zip(parts, heads, strict=True):
                result = part.metrics.get(name)
                shown = metrics_tables.in_slice(bounds, part, name) if result and result.n else "–"
                colour = _colour(result, whole) if result else None
                cells.append(tag("td", shown, class_=colour, data_label=plain_text(text)))
            rows.append(tag("tr", *cells))
        table = tag("table", caption(title), tag("thead", head), tag("tbody", join(rows)), class_="heat")
        yield folded(title, tag("p", _HEAT), scrolled(title, table))


def _colour(result: MetricResult, whole: MetricResult) -> str | None:
    """Return the class of a value by its distance from that of all cases; amounts are compared by their ratio."""
    if result.value is None or whole.value is None:
        return None
    scale = 1.0 if max(abs(result.value), abs(whole.value)) <= 1 else abs(whole.value) or 1.0
    change = (result.value - whole.value) / scale * (1 if result.better == "higher" else -1)
    steps = sum(abs(change) >= step for step in _STEPS)
    return f"{'better' if change > 0 else 'worse'}{steps}" if steps else None
