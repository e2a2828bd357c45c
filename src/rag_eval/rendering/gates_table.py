"""The gates: their table, why some have no outcome, and what the tests could not have detected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rag_eval.common.escaping import some
from rag_eval.gates.regression import aim
from rag_eval.metrics import column_of, of_column
from rag_eval.rendering import phrases
from rag_eval.rendering.blocks import Table, bullets, paragraphs
from rag_eval.rendering.number_format import (
    SMALL,
    at_least,
    enclosed,
    move_of,
    moves,
    number,
    regression_text,
    threshold,
)
from rag_eval.rendering.phrases import PLAIN, TextFormatter

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Comparison, GateResult
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.number_format import Moves

_TOKEN = re.compile("[a-z]+[0-9]*")
_ABBREVIATIONS = {
    "auc": "area under the receiver operating characteristic curve",
    "bpref": "binary preference",
    "chr": "citation hit rate",
    "map": "mean average precision",
    "mrr": "mean reciprocal rank",
    "ndcg": "normalised discounted cumulative gain",
    "p50": "50th percentile",
    "p95": "95th percentile",
    "tfidf": "term frequency and inverse document frequency",
    "tpr": "true positive rate",
}
_ORDER = ("failed", "warning", "inconclusive", "no_data", "passed")


def gates(report: Report, formatter: TextFormatter, *, failed_first: bool = False) -> list[Block]:
    """Return the gates that get a row, and a line for each that needs a remark."""
    lines: list[Block] = bullets(asides(report, formatter))
    return [table(report, formatter, failed_first=failed_first), *lines, *paragraphs(phrases.usual(report))]


def by_outcome(gates: Iterable[GateResult]) -> list[GateResult]:
    """Return gates with the failed ones first and the passed ones last."""
    return sorted(gates, key=lambda gate: _ORDER.index(kind(gate)))


def table(report: Report, formatter: TextFormatter, *, failed_first: bool = False) -> Table:
    """Return the table of the gates that get a row, each with its outcome in the last cell."""
    chosen = phrases.telling(report.gates)
    mixed, changes = phrases.two_sided(report), moves(report)
    delta = ["Δ baseline"] if changes else []
    headers = ["Gate", *(["Set by"] if mixed else []), "Value", "Cases", "Threshold", *delta, "Outcome"]
    rows = [
        _row(report, gate, changes, formatter, mixed=mixed) for gate in (by_outcome(chosen) if failed_first else chosen)
    ]
    return Table("The gates with their outcomes", headers, rows)


def _row(report: Report, gate: GateResult, changes: Moves, formatter: TextFormatter, *, mixed: bool) -> list[str]:
    return [
        formatter.gate(gate),
        *([phrases.WHOSE[gate.origin]] if mixed else []),
        formatter.figure(enclosed(gate)),
        formatter.figure(phrases.cases_of(report, gate)),
        formatter.figure(threshold(gate)),
        *([move_of(gate, changes)] if changes else []),
        f"{formatter.sign(kind(gate))}\u00a0{phrases.outcome(gate)}",
    ]


def kind(gate: GateResult) -> str:
    """Return the style of an outcome; every outcome that fails the run has the style of a failure."""
    if gate.blocks:
        return "failed"
    return "warning" if gate.broken and not gate.unclear else gate.outcome


_MOST, _NAMED = 12, 3


def asides(report: Report, formatter: TextFormatter = PLAIN) -> list[str]:
    """Return a line for each gate that needs one; gates with the same remark share a line, and too many are counted."""
    gates = phrases.telling(report.gates)
    unclear = [gate for gate in phrases.hushed(report.gates) if gate.unclear]
    notes: dict[str, list[str]] = {}
    for gate in [*gates, *unclear]:
        if text := "; ".join(_reasons(report, gate, formatter)):
            notes.setdefault(text, []).append(formatter.gate(gate))
    lines = [f"{some(list(dict.fromkeys(names)), _NAMED)}: {text}." for text, names in notes.items()]
    cut = len(lines) - _MOST
    lines[_MOST:] = [f"… and {cut} more; {formatter.whole} has all."] if cut > 0 else []
    more = (
        _seen(gates, formatter),
        phrases.beyond(report.gates),
        phrases.counted_aside(report.gates),
        _tries(report, formatter),
        _one_sided(gates),
        _small(report),
    )
    return [line for line in [_legend(gates), *lines, *more] if line]


def _reasons(report: Report, gate: GateResult, formatter: TextFormatter) -> Iterator[str]:
    if gate.outcome == "no_data" and gate.why:
        yield f"no data ({formatter.words(gate.why)})"
    if gate.unclear:
        yield f"inconclusive, {phrases.unclear(report, gate)}"
    if gate.outcome == "failed" and (p := phrases.chance(report, gate)):
        yield f"significant, {p}"
    if gate.comparison is not None and _blind(gate):
        yield _sight(report, gate, gate.comparison)
    if gate.comparison is not None and _untested(gate):
        reason = "its difference has no interval" if gate.comparison.n else "there are no cases to compare"
        yield f"judged only by the margin, because {reason}"


def _blind(gate: GateResult) -> bool:
    """Return whether a test was known to be too weak to show a regression that matters."""
    comparison = gate.comparison
    if comparison is None or comparison.adjusted is None or not _has_formula(gate, comparison):
        return False
    return comparison.mde is None or comparison.needed is not None


def _has_formula(gate: GateResult, comparison: Comparison) -> bool:
    """Return whether a missing size means that no change is visible: not for percentiles, areas or constant values.

    Scores of at most 1 have a formula even if none changed.
    """
    if comparison.mde is not None or comparison.needed is not None:
        return True
    column = column_of(gate.name)
    metric = of_column(column)
    return metric is None or (metric.bounded and metric.folds.get(gate.name.removeprefix(column), "mean") == "mean")


def _untested(gate: GateResult) -> bool:
    """Return whether a requested test was impossible because only two values are available."""
    comparison = gate.comparison
    if comparison is None or comparison.regression is None or gate.few:
        return False
    return (
        comparison.p is None
        if comparison.test == "regression"
        else comparison.test != "none" and comparison.high is None
    )


def _sight(report: Report, gate: GateResult, comparison: Comparison) -> str:
    """Return ``30 cases reliably detect a drop of 0.12 or more; a drop of 0.05 takes 180 cases``."""
    what, cases = regression_text(gate), f"{comparison.n} {phrases.unit_of(report, comparison.n)}"
    if comparison.mde is None:
        text = f"{cases} cannot detect any {what}" + ("" if _within_reach(report) else " with so many tests")
    else:
        text = f"{cases} reliably detect a {what} of {at_least(comparison.mde)} or more"
    wanted = (
        f"; a {what} of {_aim(gate)} takes {comparison.needed} {phrases.unit_of(report)}" if comparison.needed else ""
    )
    return text + wanted


def _within_reach(report: Report) -> bool:
    """Return whether a test of so many cases can reach a p-value below alpha."""
    from rag_eval.stats.paired import within_reach

    tests = sum(gate.comparison is not None and gate.comparison.adjusted is not None for gate in report.gates)
    return report.statistics.correction != "holm" or within_reach(float(report.statistics.alpha) / max(1, tests))


def _aim(gate: GateResult) -> str:
    metric = of_column(column_of(gate.name))
    wanted = aim(Decimal(gate.threshold), bounded=metric is None or metric.bounded)
    return f"{wanted:.2f}" if metric is None or metric.bounded else number(wanted, gate.name)


def _legend(gates: Sequence[GateResult]) -> str:
    """Explain the brackets and the abbreviations in the rows of ``gates``."""
    levels = {gate.confidence or "0.95" for gate in gates if gate.low is not None or gate.high is not None}
    percent = " or ".join(f"{float(level) * 100:g}" for level in sorted(levels))
    used = dict.fromkeys(word for gate in gates for word in _TOKEN.findall(gate.name) if word in _ABBREVIATIONS)
    parts = [f"In brackets: {percent} % confidence intervals."] if levels else []
    return " ".join([*parts, *(f"{word}: {_ABBREVIATIONS[word]}." for word in used)])


def _seen(gates: Iterable[GateResult], formatter: TextFormatter) -> str:
    """Return the smallest regressions that would have been detected, if they are small enough."""
    sharp = (gate for gate in gates if gate.comparison is not None and not _blind(gate))
    sizes = [
        f"{formatter.gate(gate)} {at_least(gate.comparison.mde)}"
        for gate in sharp
        if gate.comparison is not None and gate.comparison.mde is not None
    ]
    return f"Minimum detectable effect: {some(sizes, _MOST)}." if sizes else ""


def _tries(report: Report, formatter: TextFormatter) -> str:
    """State what intervals and tests count, and what a single run cannot show."""
    several, cluster = phrases.several(report), report.statistics.cluster
    if cluster:
        field = formatter.code(cluster)
        return f"Clusters: intervals and paired tests count the values of {field}, not single questions."
    if several:
        return "Several runs: intervals, paired tests and slices count each question once, not each of its repeats."
    measured = any(result.low is not None for result in report.metrics.values())
    return (
        "One run: intervals and tests describe these answers. The system may answer differently next time."
        if measured
        else ""
    )


def _one_sided(gates: Sequence[GateResult]) -> str:
    """Explain an interval with an unknown end."""
    ends = [(gate.low, gate.high) for gate in gates]
    ends += [(gate.comparison.low, gate.comparison.high) for gate in gates if gate.comparison is not None]
    open_ended = any((low is None) is not (high is None) for low, high in ends)
    return "≥ or ≤ in brackets: only one end of the interval is known." if open_ended else ""


def _small(report: Report) -> str:
    values = (report.metrics, *(part.metrics for part in report.slices))
    marked = any(result.small for results in values for result in results.values()) or any(
        gate.small for gate in report.gates
    )
    return f"{SMALL} small sample: too few cases to reach the stated confidence." if marked else ""
