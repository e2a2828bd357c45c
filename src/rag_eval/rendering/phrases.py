"""Phrases that all renderings share: the verdict in a sentence, which gates to show, order of questions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.labels import ABSENT, GOOD, MEANING
from rag_eval.common.escaping import one_line, quantity
from rag_eval.gates import dependent_cases
from rag_eval.gates.policy import FULL
from rag_eval.rendering.number_format import (
    enclosed,
    is_count,
    metric,
    probability,
    regression_interval,
    regression_text,
    size,
    unit,
    value,
)

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.errors import Finding
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult, Question

_RUN, _LABEL = map(attrgetter, ("run", "label"))
_REASONS = 3
_ALIKE = 6
_MOST_GATES = 200
WHOSE = {"both": "both", "base": "base branch", "head": "this change"}
_HUSHED = ("passed", "inconclusive")
OUTCOMES = {"passed": "passed", "failed": "failed", "inconclusive": "inconclusive", "no_data": "no data"}


def _as_it_is(text: str) -> str:
    return text


def _level(kind: str) -> str:
    return kind if kind in ("error", "warning") else ""


class TextFormatter(NamedTuple):
    """Formatting of names and untrusted input, so that a rendering never interprets them.

    ``words`` formats words with names in them, ``code`` a name, ``text`` a text; all three accept a maximum number of
    characters. ``trusted`` formats a sentence of this program in a report that may come from elsewhere, ``figure``
    numbers that must not be split, ``sign`` the symbol of an outcome, a finding or a change of the policy.
    ``whole`` is where everything is that the text leaves out.
    """

    named: Callable[[str, str], str]  # metric, slice
    words: Callable[..., str]
    code: Callable[..., str]
    text: Callable[..., str] = one_line
    trusted: Callable[[str], str] = _as_it_is
    strong: Callable[[str], str] = _as_it_is
    figure: Callable[[str], str] = _as_it_is
    sign: Callable[[str], str] = _level
    whole: str = "report.json"

    def gate(self, gate: GateResult) -> str:
        """Return the name of a gate."""
        return self.named(gate.name, gate.slice)


def _plain(name: str, part: str) -> str:
    return f"{name} where {one_line(part)}" if part else name


PLAIN = TextFormatter(_plain, one_line, one_line, whole="--format json")


def title(report: Report) -> str:
    """Return a report's title; it names a partial run."""
    return f"RAG evaluation {report.verdict}{' in part' if in_part(report) else ''}"


def in_part(report: Report) -> bool:
    """Return whether a partial run passed."""
    return report.scope is not None and report.passed


def headline(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Return the verdict in one sentence."""
    failed, errors, warned_only = gravest(report.failed_gates), report.errors, not_passed(report)
    absent, whole = sum(report.labels.get(name, 0) for name in ABSENT), len(report.questions)
    unanswered = ", none of them answered" if absent == whole else f", {absent} of them without an answer"
    on = cases(report) + (unanswered if absent else "")
    if failed or errors:
        why = "; ".join([*_reasons(report, failed, errors, formatter), *warned_only])
        return " ".join(filter(None, [f"Evaluated {on}. Failed: {why}.", left_out(report)]))
    passed = "Passed in part" if report.scope else "Passed"
    text = f"Evaluated {on}. {passed}: {'; '.join([_passing(report.gates), *warned_only])}."
    return " ".join(filter(None, [text, left_out(report)]))


def warned(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Summarize failed gates and findings that only warn, in a few words."""
    broken = gravest(gate for gate in report.gates if gate.broken)
    return "; ".join(_reasons(report, broken, report.findings, formatter))


def _reasons(
    report: Report, gates: Sequence[GateResult], finding_list: Sequence[Finding], formatter: TextFormatter
) -> list[str]:
    reasons = [reason(report, gate, formatter) for gate in gates[:_REASONS]]
    more = [f"and {len(gates) - _REASONS} more"] if len(gates) > _REASONS else []
    counts = Counter(finding.code for finding in finding_list)
    codes = [formatter.words(code) + (f" ({times} times)" if times > 1 else "") for code, times in counts.items()]
    return [*reasons, *more, *codes]


def gravest(gates: Iterable[GateResult]) -> list[GateResult]:
    """Return the gates that fail the run first, among these completeness: missing answers explain the others."""
    return sorted(gates, key=lambda gate: (not gate.blocks, not is_count(gate)))


def counted_gates(report: Report) -> list[GateResult]:
    """Return the gates that are counted: all except those on completeness, which is counted by itself."""
    return [gate for gate in report.gates if not is_count(gate)]


def _passing(gates: Sequence[GateResult]) -> str:
    """Return ``8 of 8 gates and completeness``, ``7 of 8 gates``."""
    metric_gates, counts = ([gate for gate in gates if is_count(gate) is whole] for whole in (False, True))
    passing, n = sum(gate.outcome == "passed" for gate in metric_gates), len(metric_gates)
    names = [f"{passing} of {quantity(n, 'gate')}"] if metric_gates else []
    return enumerated([*names, *(["completeness"] if counts else [])]) or "no gates"


def left_out(report: Report) -> str:
    """Name the questions and metric groups that a partial run left out."""
    scope = report.scope
    if scope is None:
        return ""
    asked = f"Smoke suite: {scope.questions:,} of {scope.of:,} questions."
    gates = len(scope.left_out_gates)
    unjudged = f"{quantity(gates, 'gate')} of other metric groups {'were' if gates != 1 else 'was'} not judged"
    rest = unjudged if gates else "no gate belongs to another metric group"
    only = f"Only {enumerated(scope.perspectives)}: {rest}."
    return " ".join([*([asked] if scope.suite != FULL else []), *([only] if scope.perspectives else [])])


def enumerated(names: Sequence[str]) -> str:
    """Return ``retrieval``, ``retrieval and safety``, ``answers, retrieval and safety``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def not_passed(report: Report) -> list[str]:
    """Count the gates that neither pass nor fail the run, and the warnings."""
    rest = [gate for gate in report.gates if not gate.blocks]
    unclear = sum(gate.unclear for gate in rest)
    warned = sum(gate.broken and not gate.unclear for gate in rest) + len(report.warnings)
    skipped = sum(gate.outcome == "no_data" and not gate.broken for gate in rest)
    parts = [f"{unclear} inconclusive"] if unclear else []
    parts += [quantity(warned, "warning")] if warned else []
    return [*parts, f"{skipped} skipped (no data)"] if skipped else parts


def two_sided(report: Report) -> bool:
    """Return whether base and head have different gates, so that a gate's origin matters."""
    return report.base is not None and any(gate.origin == "base" for gate in report.gates)


def cases(report: Report) -> str:
    """Return the number of cases: ``14 questions``, ``28 cases (14 questions, 2 runs)``."""
    n, runs = dependent_cases.count_questions(report.questions), set(map(_RUN, report.questions))
    questions = quantity(n, "question")
    return questions if len(runs) <= 1 else f"{len(report.questions)} cases ({questions}, {len(runs)} runs)"


def several(report: Report) -> bool:
    """Return whether questions were asked in several runs, so that cases are not independent."""
    return dependent_cases.has_several_runs(report.questions)


def telling(gates: Sequence[GateResult]) -> list[GateResult]:
    """Return the gates that get a row, grouped by name, failed completeness first; at most two hundred.

    A line counts passed completeness gates, and gates on slices if many have the same harmless outcome. If there are
    too many gates, those that fail the run stay, then those that warn; :func:`beyond` counts the rest.
    """
    shown = _rows(gates)
    if len(shown) <= _MOST_GATES:
        return shown
    chosen = {id(gate) for gate in sorted(shown, key=lambda gate: (not gate.blocks, not gate.broken))[:_MOST_GATES]}
    return [gate for gate in shown if id(gate) in chosen]


def beyond(gates: Sequence[GateResult]) -> str:
    """Return a line that counts the gates that :func:`telling` left out."""
    rows, shown = _rows(gates), {id(gate) for gate in telling(gates)}
    cut = [gate for gate in rows if id(gate) not in shown]
    failed = sum(gate.blocks for gate in cut)
    return f"… and {len(cut):,} more gates, {failed:,} of them failed; report.json has all." if cut else ""


def _rows(gates: Sequence[GateResult]) -> list[GateResult]:
    order = {name: index for index, name in enumerate(dict.fromkeys(gate.name for gate in gates))}
    hidden = {id(gate) for gate in hushed(gates)}
    shown = [gate for gate in gates if id(gate) not in hidden and (gate.broken or not is_count(gate))]
    return sorted(shown, key=lambda gate: (not is_count(gate), order[gate.name]))


def hushed(gates: Sequence[GateResult]) -> list[GateResult]:
    """Return the gates on slices that passed, and inconclusive ones that fail nothing, if they are many."""
    slices = [gate for gate in gates if gate.slice and not gate.blocks]
    same_outcome = ([gate for gate in slices if gate.outcome == outcome] for outcome in ("passed", "inconclusive"))
    return [gate for group in same_outcome if len(group) > _ALIKE for gate in group]


def counted_aside(gates: Sequence[GateResult]) -> str:
    """State how many gates on slices have no row."""
    counts = Counter[str](gate.outcome for gate in hushed(gates))
    parts = [f"{counts[outcome]} {outcome}" for outcome in _HUSHED if counts[outcome]]
    return f"Gates on slices that are not shown: {', '.join(parts)}." if parts else ""


def reason(report: Report, gate: GateResult, formatter: TextFormatter = PLAIN) -> str:
    """Return why a gate did not pass, in a few words, and whether the change under test lacks this gate."""
    ours = gate.origin != "base" or report.base is None
    if is_count(gate) and gate.value is not None:
        what = f"{gate.name.split('.')[1]} trace{'s' if gate.value != 1 else ''}"
        return f"{gate.value:g} {what} ({'allowed' if ours else 'the base branch allows'}: {gate.threshold})"
    return _reason(report, gate, formatter) + ("" if ours else " (a gate of the base branch)")


def _reason(report: Report, gate: GateResult, formatter: TextFormatter) -> str:
    name = formatter.gate(gate)
    if gate.unclear:
        return f"{name} is inconclusive: {unclear(report, gate)}"
    if gate.value is None:
        return f"{name} has no data: {formatter.words(gate.why)}" if gate.why else f"{name} applies to no case"
    if gate.comparison is not None:
        what, ends, limit = regression_text(gate), regression_interval(gate), f"{gate.threshold}{unit(gate.name)}"
        terms = "; ".join([value(gate), *([f"{confidence(report)} interval {ends}"] if ends else [])])
        if gate.comparison.test == "non_inferiority":
            return f"{name} does not rule out a {what} of more than {limit} ({terms})"
        return f"{name} {'fell' if what == 'drop' else 'rose'} by {size(gate)} ({terms}; allowed: {limit})"
    number = enclosed(gate) if gate.confidence else value(gate)
    return f"{name} {number} is {'below' if gate.direction == 'min' else 'above'} {gate.threshold}{unit(gate.name)}"


def unclear(report: Report, gate: GateResult) -> str:
    """Return why a gate is inconclusive."""
    comparison, alpha = gate.comparison, report.statistics.alpha
    likely = comparison is not None and comparison.adjusted is not None and comparison.adjusted > float(alpha)
    if comparison is not None and not _kept(gate) and (likely or not gate.slice):
        return f"not significant ({chance(report, gate)})"
    if comparison is None and gate.confidence and not _one_sided(gate):
        return f"its interval includes {gate.threshold}"
    return f"the slice has fewer than {report.min_n} cases" if report.min_n else "the slice has too few cases"


def confidence(report: Report) -> str:
    """Return the confidence of the intervals of differences: ``95 %``."""
    return f"{float(100 * (1 - Decimal(report.statistics.alpha))):g} %"


def unit_of(report: Report, n: int = 2) -> str:
    """Return the unit of tests and intervals: cases, questions of several runs, or clusters."""
    word = "cluster" if report.statistics.cluster else "question" if several(report) else "case"
    return word if n == 1 else f"{word}s"


def chance(report: Report, gate: GateResult) -> str:
    """Return ``p = 0.12 after correction``; empty if no test was made."""
    if gate.comparison is None or gate.comparison.adjusted is None:
        return ""
    corrected = " after correction" if report.statistics.correction != "none" else ""
    text = probability(gate.comparison.adjusted, report.statistics.alpha)
    return f"p {'' if text.startswith('<') else '= '}{text.replace('<', '< ')}{corrected}"


def _kept(gate: GateResult) -> bool:
    comparison = gate.comparison
    return comparison is not None and comparison.regression is not None and gate.gate.keeps(comparison.regression)


def _one_sided(gate: GateResult) -> bool:
    return (
        None not in (gate.low, gate.high) and len({gate.gate.keeps(end or 0.0) for end in (gate.low, gate.high)}) == 1
    )


def counted(result: MetricResult | None, n: int) -> str:
    """Return the number of cases: ``26 of 30`` for a 0/1 metric, otherwise their count."""
    return f"{result.hits} of {result.n}" if result is not None and result.hits is not None else str(n)


def outcome(gate: GateResult) -> str:
    """Return the outcome in words."""
    word = OUTCOMES[gate.outcome]
    if gate.unclear:
        return f"{word} (counts as failed)" if gate.blocks else word
    if gate.broken and not gate.blocks:
        return f"{word} (warning only)"
    if gate.outcome == "no_data":
        return f"{word} ({'counts as failed' if gate.broken else 'skipped'})"
    return word


def usual(report: Report) -> str:
    """Note a missing gates file."""
    return "" if report.gates_file else "There is no gates file, so the default gates apply."


def label(text: str, formatter: TextFormatter) -> str:
    """Return a label; an unknown label is untrusted input."""
    return text if text in MEANING else formatter.code(text)


def signed_label(text: str, formatter: TextFormatter) -> str:
    """Return a label with a sign for good or bad."""
    return f"{formatter.sign('passed' if text in GOOD else 'failed')} {label(text, formatter)}"


def failing(report: Report) -> list[Question]:
    """Return the cases that fail."""
    return _labelled(report.questions, {*map(_LABEL, report.questions)} - GOOD)


def by_urgency(questions: Sequence[Question], limit: int = sys.maxsize) -> list[Question]:
    """Return the first cases, failures first, each group in the order of the report."""
    labels = {*map(_LABEL, questions)}
    failing = _labelled(questions, labels - GOOD)
    return [*failing, *(_labelled(questions, labels & GOOD) if len(failing) < limit else ())][:limit]


def _labelled(questions: Sequence[Question], labels: Collection[str]) -> list[Question]:
    """Return the cases with some labels, without a function call for each, because there may be millions."""
    return list(compress(questions, map(labels.__contains__, map(_LABEL, questions))))


def completeness(report: Report) -> str:
    """Return completeness in one line."""
    completeness_counts = report.completeness
    counts = ", ".join(
        f"{getattr(completeness_counts, name)} {name}" for name in ("missing", "duplicate", "unknown", "errored")
    )
    return f"{completeness_counts.scored} of {completeness_counts.expected} expected answers are there; {counts}."


def value_of(report: Report, name: str) -> str:
    """Return a metric's value, as its gate shows it if it has one: two roundings would look like two values."""
    gate = next((gate for gate in report.gates if gate.name == name and _about(report, gate)), None)
    if gate is not None:
        return value(gate)
    return metric(report.metrics[name], name) if name in report.metrics else ""


def _about(report: Report, gate: GateResult) -> bool:
    """Return whether a gate uses the value in the table: the base may define the metric differently."""
    if gate.slice or gate.comparison is not None:
        return False
    result = report.metrics.get(gate.name)
    return gate.origin != "base" or (result is not None and (result.value, result.n) == (gate.value, gate.n))


def cases_of(report: Report, gate: GateResult) -> str:
    """Return the number of cases behind a gate."""
    if gate.comparison is not None:
        return quantity(gate.n, "pair")
    result = report.metrics.get(gate.name)
    if gate.slice and gate.exact is not None and result is not None and result.hits is not None:
        return f"{round(Fraction(gate.exact) * gate.n)} of {gate.n}"
    return counted(result if _about(report, gate) else None, gate.n)
