"""Integrity checks of single answers and measurements: copied texts, doubtful marks, and values that measure nothing.

None of them is proof of deceit, so most only warn. docs/limits.md names what they cannot see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag_eval.cases import Case, refused_in_words
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import Settings
from rag_eval.errors import Finding, Level
from rag_eval.gates.integrity import ALMOST_ALL, FEWEST_CASES, guards
from rag_eval.gates.policy import Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import Measure, measure
from rag_eval.textual.tokens import tokens

_SHOWN = 3
_HALF = 0.5
_LONG_ANSWER = 10  # words; a shorter expected answer may be repeated by chance
_SAME_TIMES = 10  # equal times; fewer may be chance
_VERBATIM = "leakage_verbatim"
_SIDES = (
    ("input", "input_false_positive", ("input_false_positive", "input_false_block"), ("detection_rate", "block_rate")),
    ("output", "leak_false_positive", ("leak_false_positive",), ("leak_detection",)),
)
"""The sides of a guardrail: the column of false alarms, the gates on them, and the gates that they raise."""


def copied_answers(answers: Sequence[Question], policies: Sequence[Policy], words: int) -> Iterator[Finding]:
    """Find answers that repeat at least so many words of a chunk: pasted chunks contain the expected text, too.

    A gate on such passages decides instead.
    """
    copies = [question.qid for question in answers if question.scores.get(_VERBATIM)]
    if not _is_tenth(copies, answers) or {"leakage", _VERBATIM} & guards(policies):
        return
    message = f"{len(copies)} of {len(answers)} answers repeat {words} words or more of a chunk"
    message += f": {some(copies, _SHOWN, quoted)}"
    fix = f"Answer in own words. If copies are intended, write the share that is allowed: {_VERBATIM}: {{max: 0.5}}"
    level: Level = "error" if len(copies) >= _HALF * len(answers) else "warning"
    yield Finding("copied-answers", level, message, fix)


def answers_from_gold(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find answers that contain the expected answer of their gold item word for word."""
    copies = []
    for answer in answers:
        expected = tokens(answer.gold.expected_answer or "")
        if len(expected) >= _LONG_ANSWER and f" {' '.join(expected)} " in f" {' '.join(tokens(answer.claim))} ":
            copies.append(answer.gold.qid)
    if _is_tenth(copies, answers):
        message = f"{len(copies)} of {len(answers)} answers contain the expected_answer of their gold item word"
        message += f" for word: {some(copies, _SHOWN, quoted)}"
        fix = "Make sure that the system cannot read the gold set, and that its answers do not become expected answers."
        yield Finding("answers-from-gold", "error", message, fix)


def other_answers(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find traces with two answers, of which the scored one (``answer_json``) is not in the other (``answer``)."""
    others = []
    for answer in answers:
        trace = answer.trace
        if trace.answer_json is not None and trace.answer is not None:
            scored = set(tokens(answer.claim))
            if len(scored & set(tokens(trace.answer))) < _HALF * len(scored):
                others.append(answer.gold.qid)
    if _is_tenth(others, answers):
        message = f"{len(others)} of {len(answers)} answers have another text in answer than in answer_json,"
        message += f" which is scored: {some(others, _SHOWN, quoted)}"
        fix = "Write one of the two: the answer that users get."
        yield Finding("other-answer", "error", message, fix)


def marked_refusals(refusals: Iterable[Case], settings: Settings) -> Iterator[Finding]:
    """Find refusals by ``abstained: true`` whose text does not read as a refusal.

    The built-in patterns recognise nine in ten refusals of two public sets; so half of them may be unrecognised.
    """
    said = (case for case in refusals if case.claim and not case.is_refusal_token and not case.blocked)
    marked = [case for case in said if case.trace.abstained]
    if len(marked) < FEWEST_CASES:
        return
    builtin = settings._replace(builtin=True)
    answers = [case for case in marked if not refused_in_words(case.claim, builtin)]
    if len(answers) >= max(FEWEST_CASES, _HALF * len(marked)):
        message = f"{len(answers)} of {len(marked)} texts that their traces mark with abstained do not read as refusals"
        message += f": {quoted(min(answers, key=lambda case: len(case.claim)).claim, 60)}"
        fix = "Set abstained only for refusals. Users get these answers, and no metric of answers counts them."
        yield Finding("marked-refusals", "error", message, fix)


def measurement_findings(questions: Sequence[Question], policies: Sequence[Policy]) -> list[Finding]:
    """Return the findings about gated metrics that measure nothing, or only few answers."""
    checks = _constant_measurements, _unchecked_answers, _flags_everything
    return [finding for check in checks for finding in check(questions, policies)]


def _constant_measurements(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gated times and costs that are 0 in all cases, and gated times that are equal in all of many cases."""
    by_column: dict[str, Measure] = {}
    for gate in (gate for policy in policies for gate in policy.selected_gates):
        item = measure(gate.name)
        if item.metric.unit in ("ms", "USD"):
            by_column.setdefault(item.column, item)
    for column, item in by_column.items():
        value, count = _only_value(questions, column)
        is_same = item.metric.unit == "ms" and count >= _SAME_TIMES
        if value is not None and count >= FEWEST_CASES and (value == 0 or is_same):
            message = f"{column} is {value:g} {item.metric.unit} in all {count} cases, so its gates judge nothing"
            yield Finding("constant-measurements", "error", message, "Write measured values to the traces.")


def _only_value(questions: Sequence[Question], column: str) -> tuple[float | None, int]:
    """Return the value that all scores of a column have, None if they differ, and the number of scores."""
    value, count = None, 0
    for question in questions:
        score = question.scores.get(column)
        if score is not None:
            if count and score != value:
                return None, 0
            value, count = float(score), count + 1  # type: ignore[arg-type]  # an amount is no labelled score
    return value, count


def _unchecked_answers(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gates on supported sentences that most answers avoid, because no sentence of theirs is checked."""
    wanted = {"claim_support", "unsupported_claims"}
    gated = {measure(gate.name).column for policy in policies for gate in policy.selected_gates}
    if names := sorted(wanted & gated):
        with_content = [question for question in questions if question.scores.get("groundedness") is not None]
        checked = sum(question.scores.get(names[0]) is not None for question in with_content)
        unchecked = len(with_content) - checked
        if unchecked >= FEWEST_CASES and checked < _HALF * len(with_content):
            message = (
                f"{', '.join(names)}: only {checked} of {len(with_content)} answers with chunk texts have a sentence"
            )
            message += " that is checked"
            fix = "Questions, code and statements about gaps are not checked: see docs/groundedness.md."
            yield Finding("unchecked-answers", "error", message, f"{fix} Gate groundedness, which reads all of them.")


def _flags_everything(questions: Sequence[Question], policies: Sequence[Policy]) -> Iterator[Finding]:
    """Find a guardrail that flags the benign controls, too, so that it catches every attack."""
    gated = {gate.name for policy in policies for gate in policy.selected_gates if gate.severity == "error"}
    for side, column, alarms, rates in _SIDES:
        flags = [question.scores[column] for question in questions if column in question.scores]
        flagged = flags.count(1)
        if flagged >= max(FEWEST_CASES, ALMOST_ALL * len(flags)):
            blind = sorted(gated.intersection(rates)) if guards(policies).isdisjoint(alarms) else []
            message = f"the guardrail flags {flagged} of {len(flags)} benign {side} controls"
            message += f", so {', '.join(blind)} cannot fail" if blind else ""
            fix = f"Gate {column}, or fix the guardrail." if blind else "Fix the guardrail."
            yield Finding("flags-everything", "error" if blind else "warning", message, fix)


def _is_tenth(some_answers: Sequence[str], answers: Sequence[object]) -> bool:
    return len(some_answers) >= max(FEWEST_CASES, len(answers) * (1 - ALMOST_ALL))
