"""The plots of a report: gates against their thresholds, values since the baseline, slices from the worst on."""

from __future__ import annotations

from rag_eval.gates import MARGINS
from rag_eval.renderers import beside, words
from rag_eval.renderers.figures import bound, enclosed, is_count, metric_interval, value
from rag_eval.renderers.html.element import Markup, joined, shown, tag
from rag_eval.renderers.html.layout import folded
from rag_eval.renderers.html.svg import Mark, figure, is_share
from rag_eval.renderers.judged import kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_eval.gates import Judged
    from rag_eval.report import Report, SliceResult
    from rag_eval.results import MetricResult

_MOST = 40
_SHAPES = "A disc passes, a cross fails, an open diamond is inconclusive, a triangle only warns"
_KEPT = "the shaded side of the tick keeps the gate."
_ENCLOSED = "the line is the 95\u00a0% interval or that of the gate's own confidence"


def gates(report: Report) -> Iterator[Markup]:
    """Bounds against their thresholds: shares on one scale, amounts each on its own."""
    marks = [_bound(gate) for gate in words.telling(report.gates) if _bounded(gate) and not is_count(gate)]
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


def _bound(gate: Judged) -> Mark:
    said = f"{enclosed(gate)}  {bound(gate)}"
    ends = gate.low, gate.high, float(gate.threshold)
    return Mark(shown(gate.label), kind(gate), said, gate.value or 0.0, *ends, gate.direction)


def since(report: Report) -> Iterator[Markup]:
    """Margins: where a value came from, where it is, and how far it may go."""
    moved = [gate for gate in words.telling(report.gates) if gate.comparison is not None]
    marks = [mark for gate in moved if (mark := _margin(gate)) is not None]
    legend = f"From the ring, which is the baseline, to the value now. {_SHAPES}; {_KEPT}"
    shares, amounts = ([mark for mark in marks if is_share(mark) is which] for which in (True, False))
    yield _capped("since-plot", "Since the baseline", legend, shares)
    yield _capped(
        "since-amounts-plot", "Amounts since the baseline, each on a scale of its own", legend, amounts, own=True
    )


def _margin(gate: Judged) -> Mark | None:
    found = gate.comparison
    if found is None or found.baseline is None or found.value is None:
        return None
    drop = gate.direction == "max_drop"
    limit = found.baseline + (-1 if drop else 1) * float(gate.threshold)
    limit = min(max(limit, 0.0), 1.0) if 0 <= found.baseline <= 1 else limit
    side = "min" if drop else "max"
    return Mark(shown(gate.label), kind(gate), value(gate), found.value, limit=limit, side=side, before=found.baseline)


def slices(report: Report) -> Iterator[Markup]:
    """A plot of each gated metric: its slices from the worst on, and a tick where all cases stand."""
    for place, name in enumerate(beside.gated(report)):
        marks = [_slice(report, name, *each) for each in _worst_first(report, name)]
        title = f"{shown(name)} by slice, the worst first"
        drawn = _capped_slices(f"slice-plot-{place}", title, marks)
        yield folded(title, drawn, unfolded=not place)


def _capped_slices(key: str, title: str, marks: Sequence[Mark]) -> Markup:
    legend = f"The dashed tick is the value over all cases; {_ENCLOSED}; an open disc has too few cases to judge by."
    drawn = figure(key, title, legend, marks[:_MOST])
    cut = (
        tag("p", f"The worst {_MOST} of {len(marks):,} are drawn; the table has all.")
        if len(marks) > _MOST
        else Markup("")
    )
    return joined([drawn, cut])


def _worst_first(report: Report, name: str) -> list[tuple[SliceResult, MetricResult]]:
    own = [(part, part.metrics[name]) for part in report.slices if name in part.metrics]
    valued = [(part, result) for part, result in own if result.value is not None]
    return sorted(valued, key=beside.by_value)


def _slice(report: Report, name: str, part: SliceResult, result: MetricResult) -> Mark:
    gate = next((one for one in report.gates if (one.name, one.slice) == (name, part.slice) and _bounded(one)), None)
    shape = kind(gate) if gate is not None else "few" if part.n < report.min_n else "plain"
    said = beside.in_slice(report, part, name) + metric_interval(result, name)
    whole = report.metrics[name].value if name in report.metrics else None
    return Mark(shown(part.slice), shape, said, result.value or 0.0, result.low, result.high, whole)


def _bounded(gate: Judged) -> bool:
    return gate.direction not in MARGINS and gate.value is not None
