"""What is to be said below the gates: why some have no outcome, and what the cases could not have shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rag_eval.gates.regression import aim
from rag_eval.metrics import column_of, of_column
from rag_eval.rendering import phrases
from rag_eval.rendering.number_format import SMALL, at_least, number, worsening
from rag_eval.rendering.phrases import PLAIN, TextFormatter

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Comparison, GateResult

_MOST, _NAMED = 12, 3


def asides(report: Report, formatter: TextFormatter = PLAIN) -> list[str]:
    """A line a gate that needs one, gates of which the same is to be said in one line; what is left is counted."""
    gates = phrases.telling(report.gates)
    quiet = [gate for gate in phrases.hushed(report.gates) if gate.unclear]
    said: dict[str, list[str]] = {}
    for gate in [*gates, *quiet]:
        if text := "; ".join(_reasons(report, gate, formatter)):
            said.setdefault(text, []).append(formatter.gate(gate))
    lines = [f"{_listed(list(dict.fromkeys(names)), _NAMED)}: {text}." for text, names in said.items()]
    cut = len(lines) - _MOST
    lines[_MOST:] = [f"… and {cut} more; report.json has all."] if cut > 0 else []
    more = (
        _seen(gates, formatter),
        phrases.beyond(report.gates),
        phrases.counted_aside(report.gates),
        _tries(report, formatter),
        _small(report),
    )
    return [line for line in [*lines, *more] if line]


def _reasons(report: Report, gate: GateResult, formatter: TextFormatter) -> Iterator[str]:
    if gate.outcome == "no_data" and gate.why:
        yield f"no data, {formatter.said(gate.why)}"
    if gate.unclear:
        yield f"inconclusive, {phrases.unclear(report, gate)}"
    if gate.outcome == "failed" and (p := phrases.chance(report, gate)):
        yield f"significant, {p}"
    if gate.comparison is not None and _blind(gate):
        yield _sight(report, gate, gate.comparison)
    if _untested(gate):
        yield "by the margin alone: no cases to compare"


def _blind(gate: GateResult) -> bool:
    """Whether a test was made that could not have shown a worsening of a size that matters, as far as that is known."""
    found = gate.comparison
    if found is None or found.adjusted is None or not _has_formula(gate, found):
        return False
    return found.mde is None or found.needed is not None


def _has_formula(gate: GateResult, found: Comparison) -> bool:
    """Whether no size means that none can be seen: of a percentile or an area it is not known, as of what never moved.

    Scores of at most 1 have one even where none moved.
    """
    if found.mde is not None or found.needed is not None:
        return True
    column = column_of(gate.name)
    metric = of_column(column)
    return metric is None or (metric.bounded and metric.folds.get(gate.name.removeprefix(column), "mean") == "mean")


def _untested(gate: GateResult) -> bool:
    """Whether a test was asked for and could not be made, because nothing but two values are at hand."""
    found = gate.comparison
    if found is None or found.worsening is None or gate.few:
        return False
    return found.p is None if found.test == "regression" else found.test != "none" and found.high is None


def _sight(report: Report, gate: GateResult, found: Comparison) -> str:
    """``30 cases reliably show drops from 0.12 on, 180 would show one of 0.05``."""
    what, cases = worsening(gate), f"{found.n} {phrases.unit_of(report, found.n)}"
    if found.mde is None:
        own = f"{cases} could not show any {what}" + ("" if _within_reach(report) else " among so many tests")
    else:
        own = f"{cases} reliably show {what}s from {at_least(found.mde)} on"
    wanted = f", {found.needed} would show one of {_aim(gate)}" if found.needed else ""
    return own + wanted


def _within_reach(report: Report) -> bool:
    """Whether a test of that many can come below alpha at all."""
    from rag_eval.stats.paired import within_reach

    tests = sum(gate.comparison is not None and gate.comparison.adjusted is not None for gate in report.gates)
    return report.statistics.correction != "holm" or within_reach(float(report.statistics.alpha) / max(1, tests))


def _aim(gate: GateResult) -> str:
    metric = of_column(column_of(gate.name))
    wanted = aim(Decimal(gate.threshold), bounded=metric is None or metric.bounded)
    return f"{wanted:.2f}" if metric is None or metric.bounded else number(wanted, gate.name)


def _seen(gates: Iterable[GateResult], formatter: TextFormatter) -> str:
    """The smallest worsenings that would have been seen, where they are small enough."""
    sharp = (gate for gate in gates if gate.comparison is not None and not _blind(gate))
    sizes = [
        f"{formatter.gate(gate)} {at_least(gate.comparison.mde)}"
        for gate in sharp
        if gate.comparison is not None and gate.comparison.mde is not None
    ]
    return f"Minimum detectable effect: {_listed(sizes)}." if sizes else ""


def _listed(texts: Sequence[str], most: int = _MOST) -> str:
    cut = len(texts) - most
    return ", ".join([*texts[:most], *([f"and {cut} more"] if cut > 0 else [])])


def _tries(report: Report, formatter: TextFormatter) -> str:
    """What intervals and tests count, and what a single run leaves open."""
    several, cluster = phrases.several(report), report.statistics.cluster
    if cluster:
        field = formatter.code(cluster)
        return f"Clusters: intervals and paired tests count the values of {field}, all questions of one together."
    if several:
        return "Several runs: intervals, paired tests and sizes of slices go by questions, all tries at one together."
    measured = any(result.low is not None for result in report.metrics.values())
    return (
        "One run: intervals and tests are of these answers; the system may answer differently next time."
        if measured
        else ""
    )


def _small(report: Report) -> str:
    values = (report.metrics, *(part.metrics for part in report.slices))
    marked = any(result.small for each in values for result in each.values()) or any(
        gate.small for gate in report.gates
    )
    return f"{SMALL} small sample: too few cases for the confidence that is stated." if marked else ""
