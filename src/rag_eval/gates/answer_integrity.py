"""Integrity checks of single answers and measurements: copied texts, doubtful marks, and values that measure nothing.

None of them is proof of deceit, so most only warn. docs/limits.md names what they cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rag_eval.cases import Case, refused_in_words
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import Settings
from rag_eval.errors import Finding, Level
from rag_eval.gates.integrity import ALMOST_ALL, FEWEST_CASES, guards, is_tenth
from rag_eval.gates.policy import Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import measure
from rag_eval.textual.tokens import holds_any, tokens

_SHOWN = 3
_HALF = 0.5
_LONG_ANSWER = 10  # words; a shorter expected answer may be repeated by chance
_SAME_TIMES = 10  # equal times; fewer may be chance
_FLAGGED = frozenset(["FALSE_ALARM", "LEAK"])  # labels of controls that a guardrail flags
_TOTAL = "latency_total_ms"
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")  # as JSON writes letters
_FACT = re.compile(r"\d+|(?<=[a-z,] )[A-Z][a-z]+")
_SIDES = {
    "input": {"detection_rate": "input_false_positive", "block_rate": "input_false_block"},
    "output": {"leak_detection": "leak_false_positive"},
}
"""The sides of a guardrail: the rates of caught attacks, and the columns of false alarms that raise them."""


def copied_answers(answers: Sequence[Case], policies: Sequence[Policy], words: int) -> Iterator[Finding]:
    """Find answers that repeat at least so many words of a chunk.

    It is an error if most of them repeat a chunk without their expected text; extractive systems quote the other ones.
    A gate on such passages decides instead.
    """
    if {"leakage", "leakage_verbatim"} & guards(policies):
        return
    with_texts = [answer for answer in answers if answer.chunk_texts]
    copies = [answer for answer in with_texts if any(leak.category == "verbatim" for leak in answer.leaks)]
    if is_tenth(len(copies), len(answers)):
        padded = sum(_repeats_other_chunk(answer, words) for answer in copies)
        message = f"{len(copies)} of {len(answers)} answers repeat {words} words or more of a chunk"
        message += f": {some([answer.gold.qid for answer in copies], _SHOWN, quoted)}"
        fix = 'Answer in own words. If answers quote on purpose: integrity: {copied-answers: "off"}'
        level: Level = "error" if padded >= max(FEWEST_CASES, _HALF * len(answers)) else "warning"
        yield Finding("copied-answers", level, message, fix)


def _repeats_other_chunk(answer: Case, words: int) -> bool:
    """Return whether an answer repeats a passage that only chunks without its expected text have."""
    from rag_eval.textual.leaks import first_run  # loads detectors

    expected = answer.gold.substrings
    quotable = [text for text in answer.chunk_texts if holds_any(expected, " ".join(text.lower().split()))]
    others = [tokens(text) for text in answer.chunk_texts if expected and text not in quotable]
    return first_run(answer.claim, others, words, quotable) is not None


def answers_from_gold(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find answers that contain the expected answer of their gold item word for word, unless it is from a chunk."""
    copies = []
    for answer in answers:
        expected = tokens(answer.gold.expected_answer or "")
        is_copy = len(expected) >= _LONG_ANSWER and _has_words(answer.claim, expected)
        if is_copy and not any(_has_words(text, expected) for text in answer.chunk_texts):
            copies.append(answer.gold.qid)
    if is_tenth(len(copies), len(answers)):
        message = f"{len(copies)} of {len(answers)} answers contain the expected_answer of their gold item word"
        message += f" for word: {some(copies, _SHOWN, quoted)}"
        fix = "Make sure that the system cannot read the gold set, and that its answers do not become expected answers."
        fix += " If the expected answers are texts of the documents, write chunks[].text to the traces."
        yield Finding("answers-from-gold", "error", message, fix)


def _has_words(text: str, words: Sequence[str]) -> bool:
    return f" {' '.join(words)} " in f" {' '.join(tokens(text))} "


def other_answers(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find traces with two answers, of which neither the scored one (``answer_json``) nor the other has the other."""
    others = []
    for answer in answers:
        trace = answer.trace
        if trace.answer_json is not None and trace.answer is not None:
            scored, other = set(tokens(answer.claim)), set(tokens(_ESCAPED.sub(_unescaped, trace.answer)))
            if len(scored & other) < _HALF * min(len(scored), len(other)):
                others.append(answer.gold.qid)
    if is_tenth(len(others), len(answers)):
        message = f"{len(others)} of {len(answers)} answers have another text in answer than in answer_json,"
        message += f" which is scored: {some(others, _SHOWN, quoted)}"
        fix = "Write one of the two: the answer that users get."
        yield Finding("other-answer", "error", message, fix)


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def marked_refusals(refusals: Iterable[Case], settings: Settings) -> Iterator[Finding]:
    """Find refusals by ``abstained: true`` whose text does not read as a refusal, but states a number or a name.

    So refusals in other languages, questions and fixed texts do not count. The built-in patterns recognise nine in ten
    refusals of two public sets; so half of them may be unrecognised.
    """
    worded = (case for case in refusals if case.claim and not case.is_refusal_token and not case.blocked)
    marked = [case for case in worded if case.trace.abstained]
    if len(marked) < FEWEST_CASES:
        return
    builtin = settings._replace(builtin=True)
    answers = [case for case in marked if _states_fact(case) and not refused_in_words(case.claim, builtin)]
    if len(answers) >= max(FEWEST_CASES, _HALF * len(marked)):
        message = f"{len(answers)} of {len(marked)} texts that their traces mark with abstained do not read as refusals"
        message += f": {quoted(min(answers, key=lambda case: len(case.claim)).claim, 60)}"
        fix = "Set abstained only for refusals. Users get these answers, and no metric of answers counts them."
        yield Finding("marked-refusals", "error", message, fix)


def _states_fact(case: Case) -> bool:
    """Return whether an answer has a number, or a name within a sentence, that its question does not have."""
    return any(fact not in case.gold.question for fact in _FACT.findall(case.claim))


def measurement_findings(questions: Sequence[Question], policies: Sequence[Policy]) -> list[Finding]:
    """Return the findings about gated metrics that measure nothing, or only few answers."""
    checks = _constant_measurements, _unchecked_answers, _flags_everything
    return [finding for check in checks for finding in check(questions, policies)]


def _gated_columns(policies: Iterable[Policy]) -> set[str]:
    return {measure(gate.name).column for policy in policies for gate in policy.selected_gates}


def _constant_measurements(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gated total times that are 0 in all cases, or equal in all of many cases without being whole seconds.

    Costs of local models and times of single stages may be 0.
    """
    if _TOTAL not in _gated_columns(policies):
        return
    times = [time for question in questions if (time := question.scores.get(_TOTAL)) is not None]
    if len(times) >= FEWEST_CASES and len(set(times)) == 1:
        value = float(times[0])  # type: ignore[arg-type]  # a time is no labelled score
        if value == 0 or (len(times) >= _SAME_TIMES and value % 1000):
            message = f"{_TOTAL} is {value:g} ms in all {len(times)} cases, so its gates judge nothing"
            yield Finding("constant-measurements", "error", message, "Write measured values to the traces.")


def _unchecked_answers(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gates on supported sentences that most answers avoid, because no sentence of theirs is checked."""
    if names := sorted({"claim_support", "unsupported_claims"} & _gated_columns(policies)):
        with_content = [question for question in questions if question.scores.get("groundedness") is not None]
        checked = sum(question.scores.get(names[0]) is not None for question in with_content)
        unchecked = len(with_content) - checked
        if unchecked >= FEWEST_CASES and checked < _HALF * len(with_content):
            message = f"{', '.join(names)}: only {checked} of {len(with_content)} answers with chunk texts"
            message += " have a sentence that is checked"
            fix = "Questions, code and statements about gaps are not checked: see docs/groundedness.md."
            yield Finding("unchecked-answers", "error", message, f"{fix} Gate groundedness, which reads all of them.")


def _flags_everything(questions: Sequence[Question], policies: Sequence[Policy]) -> Iterator[Finding]:
    """Find a guardrail that flags the benign controls, too, so that it catches every attack."""
    if _FLAGGED.isdisjoint(question.label for question in questions):
        return
    gated = {gate.name for policy in policies for gate in policy.selected_gates if gate.severity == "error"}
    for side, alarms in _SIDES.items():
        flags = {name: [case.scores[name] for case in questions if name in case.scores] for name in alarms.values()}
        raised = [name for name in flags if flags[name].count(1) >= max(FEWEST_CASES, ALMOST_ALL * len(flags[name]))]
        if raised:
            is_guarded = not guards(policies).isdisjoint(alarms.values())
            blind = [] if is_guarded else [rate for rate in alarms if rate in gated and alarms[rate] in raised]
            scores = flags[raised[0]]
            message = f"the guardrail flags {scores.count(1)} of {len(scores)} benign {side} controls"
            message += f", so {', '.join(blind)} cannot fail" if blind else ""
            fix = f"Gate {raised[0]}, or fix the guardrail." if blind else "Fix the guardrail."
            yield Finding("flags-everything", "error" if blind else "warning", message, fix)
