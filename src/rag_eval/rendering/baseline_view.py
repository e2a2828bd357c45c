"""Comparison of a run with its baseline, and of slices with all cases, in sentences and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.labels import GOOD
from rag_eval.common.escaping import quantity, some
from rag_eval.rendering.number_format import metric, metric_interval, moved, value
from rag_eval.rendering.phrases import PLAIN, TextFormatter, counted

if TYPE_CHECKING:
    from rag_eval.analysis.baseline import Compared, Effect, Flip
    from rag_eval.analysis.report import Report, SliceResult
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult, Question

    Bounds = Mapping[tuple[str, str, float | None], GateResult]

_NAMED, _COMMIT = 5, 12


def against(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Describe the baseline: its file, where it was read, its commit, and how many cases are comparable."""
    baseline = report.baseline
    if baseline is None:
        return ""
    commit = [f"system commit {formatter.code(baseline.commit[:_COMMIT])}"] if baseline.commit else []
    where = f" of {formatter.code(baseline.ref)}" if baseline.ref else ""
    details = [*commit, *_age(baseline), *(["traces scored again"] if baseline.rescored else [])]
    what = f"{formatter.code(baseline.path)}{where}" + (f" ({', '.join(details)})" if details else "")
    return f"Compared with {what}: {_shares(baseline)}.{_alone(baseline, formatter)}{_others(baseline, formatter)}"


def _age(baseline: Compared) -> list[str]:
    """Return how many commits and days the base has moved since the baseline was written, if known."""
    if baseline.commits_ago is None or baseline.days_ago is None:
        return []
    ages = ((baseline.commits_ago, "commit"), (baseline.days_ago, "day"))
    return [f"{' and '.join(quantity(n, word) for n, word in ages)} old"]


def _shares(baseline: Compared) -> str:
    both = f"{quantity(baseline.cases, 'question')} in both with the same gold item"
    rest = [
        (baseline.unpaired, "of them without a run of the same name"),
        (baseline.changed, "with a changed gold item"),
        (baseline.gone, "removed"),
        (baseline.new, "new"),
    ]
    return ", ".join([both, *(f"{count} {what}" for count, what in rest if count)])


def _alone(baseline: Compared, formatter: TextFormatter) -> str:
    """Name the runs that are not compared."""
    if not baseline.new_runs:
        return ""
    names = [name or "(no name)" for name in baseline.new_runs]
    return f" Runs that the baseline lacks, which are not compared: {some(names, _NAMED, formatter.code)}."


def _others(baseline: Compared, formatter: TextFormatter) -> str:
    """Name the metrics that cannot be compared; if all of them, in one sentence."""
    if not baseline.incomparable:
        return ""
    names = some(baseline.incomparable, _NAMED, formatter.code)
    return f" Not comparable (not measured there, or defined differently): {names}."


def broken(report: Report) -> list[Flip]:
    """Return the cases that passed in the baseline and fail now."""
    return [flip for flip in report.flips if flip.after not in GOOD]


def fixed(report: Report) -> list[Flip]:
    """Return the cases that failed in the baseline and pass now."""
    return [flip for flip in report.flips if flip.after in GOOD]


def flipped(report: Report) -> str:
    """Return ``Newly broken (3), newly fixed (1)``; empty without a baseline."""
    if report.baseline is None:
        return ""
    if report.baseline.cases == report.baseline.unpaired:
        return "No case to compare"
    if not report.flips:
        where = " in the runs that both have" if report.baseline.new_runs else ""
        return f"Nothing newly broken, nothing newly fixed{where}"
    return f"Newly broken ({len(broken(report))}), newly fixed ({len(fixed(report))})"


def question_of(report: Report) -> Mapping[tuple[str, str | None], Question]:
    """Return the questions by case, for the flips."""
    return {(question.qid, question.run): question for question in report.questions}


def effects(report: Report) -> list[Effect]:
    """Return the changes of gated metrics in their two parts, if the gold contributed."""
    baseline = report.baseline
    if baseline is None:
        return []
    touched = baseline.changed or baseline.gone or baseline.new or any(effect.gold for effect in report.effects)
    return [effect for effect in report.effects if effect.system or effect.gold] if touched else []


def parts(effect: Effect) -> list[str]:
    """Return a metric's change by the system and by the gold; ``unknown`` if the baseline's traces are missing."""
    return ["unknown" if number is None else moved(number, effect.name) for number in (effect.system, effect.gold)]


class Worst(NamedTuple):
    """The worst slice of a metric. ``few``: no slice has enough cases to be judged."""

    metric: str
    slice: str
    value: str
    cases: str
    whole: str
    few: bool


def worst(report: Report) -> list[Worst]:
    """Return the worst slice of each gated metric that is worse than the whole; small ones if there is no other."""
    bounds = bounds_of(report)
    lines = (_worst(report, name, report.metrics[name], bounds) for name in gated(report))
    return [line for line in lines if line is not None]


def _worst(report: Report, name: str, whole: MetricResult, bounds: Bounds) -> Worst | None:
    measured = [
        (slice_result, slice_result.metrics[name]) for slice_result in report.slices if name in slice_result.metrics
    ]
    regressions = [(item, result) for item, result in measured if _worse(result, whole)]
    enough = [
        (item, result) for item, result in regressions if min(item.n, result.n) >= report.min_n
    ]  # questions and cases
    if not regressions:
        return None
    part, result = min(enough or regressions, key=by_value)
    shown = in_slice(bounds, part, name) + metric_interval(result, name)
    return Worst(name, part.slice, shown, counted(result, result.n), _as_gated(bounds, name, "", whole), not enough)


def _worse(part: MetricResult, other: MetricResult) -> bool:
    if part.value is None or other.value is None:
        return False
    return part.value < other.value if other.better == "higher" else part.value > other.value


def by_value(pair: tuple[SliceResult, MetricResult]) -> tuple[float, int]:
    """Sort the worst first, of equal ones the larger."""
    value = pair[1].value or 0.0
    return (value if pair[1].better == "higher" else -value), -pair[1].n


def bounds_of(report: Report) -> Bounds:
    """Return the gates on values, by metric, slice and value: a search in thousands of slices would be slow."""
    bounds = (gate for gate in reversed(report.gates) if gate.comparison is None)
    return {(gate.name, gate.slice, gate.value): gate for gate in bounds}


def in_slice(bounds: Bounds, part: SliceResult, name: str) -> str:
    """Return a metric's value in a slice, as its gate shows it if it has one."""
    return _as_gated(bounds, name, part.slice, part.metrics[name])


def _as_gated(bounds: Bounds, name: str, part: str, result: MetricResult) -> str:
    gate = bounds.get((name, part, result.value))
    return value(gate) if gate is not None else metric(result, name)


def gated(report: Report) -> list[str]:
    """Return the gated metrics that have a value in some slice."""
    names = {gate.name for gate in report.gates}
    return [name for name in valued(report, report.slices) if name in names]


def valued(report: Report, parts: Sequence[SliceResult]) -> list[str]:
    """Return the metrics that have a value in some slice, in the order of the report."""
    names = {name for part in parts for name, result in part.metrics.items() if result.n}
    return [name for name in report.metrics if name in names]


def by_field(report: Report) -> dict[str, list[SliceResult]]:
    """Return the slices of each field, the largest first."""
    fields: dict[str, list[SliceResult]] = {}
    for part in report.slices:
        fields.setdefault(part.slice.partition("=")[0], []).append(part)
    return fields
