"""What renderings say alike: the verdict in a sentence, numbers that never contradict it, order of questions."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from rag_eval.labels import GOOD
from rag_eval.tally import exactly, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.finding import Finding
    from rag_eval.gates import Judged
    from rag_eval.report import MetricResult, Question, Report

_DECIMALS = 3
_CUT = re.compile("@[0-9]+$")
WHOSE = {"both": "both", "base": "base", "head": "this change"}
OUTCOMES = {"passed": "passed", "failed": "failed", "no_data": "no data"}


def headline(report: Report) -> str:
    """The verdict in one sentence."""
    failed, errors = report.failed_gates, report.errors
    if failed or errors:
        reasons = [*map(reason, failed[:3]), *([f"and {len(failed) - 3} more"] if len(failed) > 3 else [])]
        return f"Failed on {cases(report)}: {'; '.join([*reasons, *_codes(errors)])}."
    warned = [gate for gate in report.gates if gate.broken and not gate.blocks]
    warnings = f", {len(warned)} warning{'s' if len(warned) != 1 else ''}" if warned else ""
    skipped = sum(gate.outcome == "no_data" and not gate.broken for gate in report.gates)
    aside = warnings + (f", {skipped} skipped without data" if skipped else "")
    held = sum(gate.outcome == "passed" for gate in report.gates)
    return f"Passed on {cases(report)}: {held} of {len(report.gates)} gates hold{aside}."


def _codes(errors: Sequence[Finding]) -> list[str]:
    counts = Counter(finding.code for finding in errors)
    return [f"{code} ({times} times)" if times > 1 else code for code, times in counts.items()]


def two_sided(report: Report) -> bool:
    """Whether base and head have different gates, so that it matters whose one is."""
    return report.base is not None and any(gate.origin == "base" for gate in report.gates)


def cases(report: Report) -> str:
    """How many cases there are: ``14 questions``, ``28 cases (14 questions, 2 runs)``."""
    n, runs = len({question.qid for question in report.questions}), runs_of(report)
    questions = f"{n} question{'s' if n != 1 else ''}"
    return questions if len(runs) <= 1 else f"{len(report.questions)} cases ({questions}, {len(runs)} runs)"


def runs_of(report: Report) -> set[str | None]:
    """The runs that the report is about; None for traces without one."""
    return {question.run for question in report.questions}


def telling(gates: Sequence[Judged]) -> list[Judged]:
    """The gates worth a row of their own, those of one name together: completeness that holds is said in a line."""
    names = list(dict.fromkeys(gate.name for gate in gates))
    shown = [gate for gate in gates if gate.broken or not gate.name.startswith("completeness.")]
    return sorted(shown, key=lambda gate: names.index(gate.name))


def reason(gate: Judged) -> str:
    """Why a gate is broken, in a few words."""
    if gate.value is None:
        return f"{gate.name} has no case to apply to"
    if gate.name.startswith("completeness."):
        what = f"{gate.name.split('.')[1]} trace{'s' if gate.value != 1 else ''}"
        return f"{gate.value:g} {what} (allowed: {gate.threshold})"
    return f"{gate.name} {gate_value(gate)} is {'below' if gate.direction == 'min' else 'above'} {gate.threshold}"


def gate_value(gate: Judged) -> str:
    """A gate's value with as many decimals as it takes not to contradict the outcome."""
    if gate.value is None:
        return "–"
    if gate.name.startswith("completeness."):
        return f"{gate.value:g}"
    number = Fraction(gate.exact) if gate.exact is not None else exactly(gate.value)
    return shown(number, gate.gate.keeps)


def threshold(gate: Judged) -> str:
    """The bound as a reader expects it."""
    return f"{'≥' if gate.direction == 'min' else '≤'} {gate.threshold}"


def metric_value(result: MetricResult) -> str:
    """A metric's value, ``–`` where it has none."""
    return "–" if result.value is None else f"{result.value:.{_DECIMALS}f}"


def counted(result: MetricResult | None, n: int) -> str:
    """How many cases speak: ``26 of 30`` for a 0/1 metric, else their number."""
    return f"{result.hits} of {result.n}" if result is not None and result.hits is not None else str(n)


def plain_metrics(report: Report) -> list[list[str]]:
    """Name, value, cases and direction of each metric without a cutoff that applies to some case."""
    return [
        [name, _value(report, name), counted(result, result.n), _arrow(result.better)]
        for name, result in report.metrics.items()
        if result.n and "@" not in name
    ]


def cutoff_metrics(report: Report) -> tuple[list[str], list[list[str]]]:
    """The metrics with a cutoff as a table: its headers, and a row a metric with a value a k."""
    cut = {name.split("@")[0]: result for name, result in report.metrics.items() if "@" in name and result.n}
    ks = sorted({int(name.split("@")[1]) for name in report.metrics if "@" in name})
    rows = [
        [name, *(_value(report, f"{name}@{k}") for k in ks), str(result.n), _arrow(result.better)]
        for name, result in cut.items()
    ]
    return ["metric", *(f"@{k}" for k in ks), "cases", "better"], rows


def without_cases(report: Report) -> str:
    """The metrics that apply to no case."""
    names = dict.fromkeys(_CUT.sub("@k", name) for name, result in report.metrics.items() if not result.n)
    return f"No case for: {', '.join(names)}." if names else ""


def outcome(gate: Judged) -> str:
    """The outcome in words."""
    word = OUTCOMES[gate.outcome]
    if gate.broken and not gate.blocks:
        return f"{word} (warning only)"
    if gate.outcome == "no_data":
        return f"{word} ({'counts as failed' if gate.broken else 'skipped'})"
    return word


def by_urgency(questions: tuple[Question, ...]) -> list[Question]:
    """Failures first, each group in the order of the report."""
    return sorted(questions, key=lambda question: question.label in GOOD)


def completeness(report: Report) -> str:
    """Completeness in one line."""
    found = report.completeness
    counts = ", ".join(f"{getattr(found, name)} {name}" for name in ("missing", "duplicate", "unknown", "errored"))
    return f"{found.scored} of {found.expected} expected answers are there; {counts}."


def _value(report: Report, name: str) -> str:
    """A metric's value, as its gate shows it where it has one: two roundings of one number would look like two."""
    gates = (gate for gate in report.gates if gate.name == name and _same_value(report, gate))
    gate = next(gates, None)
    if gate is not None:
        return gate_value(gate)
    return metric_value(report.metrics[name]) if name in report.metrics else ""


def _same_value(report: Report, gate: Judged) -> bool:
    """Whether a gate is about the value of the table: the base may define the metric otherwise."""
    found = report.metrics.get(gate.name)
    return gate.origin != "base" or (found is not None and (found.value, found.n) == (gate.value, gate.n))


def cases_of(report: Report, gate: Judged) -> str:
    """How many cases speak for a gate."""
    return counted(report.metrics.get(gate.name) if _same_value(report, gate) else None, gate.n)


def _arrow(better: str) -> str:
    return "↑" if better == "higher" else "↓"
