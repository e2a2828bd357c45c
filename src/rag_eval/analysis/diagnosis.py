"""Rules that name the likely cause of low values, and what to look at next."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.labels import ABSENT
from rag_eval.common.escaping import quantity
from rag_eval.metrics import measure
from rag_eval.scoring.reference import CEILINGS, DEFAULT_GATES, FLOORS
from rag_eval.stats.tally import exactly, shown

if TYPE_CHECKING:
    from rag_eval.errors import Finding
    from rag_eval.gates.policy import GateResult

LOW = {metric: float(DEFAULT_GATES[name]) for name, metric in FLOORS.items()} | {"recall": 0.80}
HIGH = {metric: float(DEFAULT_GATES[name]) for name, metric in CEILINGS.items()}
HIGH |= {"error_rate": 0.05, "timeout_rate": 0.05}
_STAGE = re.compile(r"latency_(\w+)_ms\.(\w+)")
SAFE_FROM = {"injection_auc": 0.85, "injection_tpr@fpr5": 0.85, "detection_rate": 0.85, "leak_detection": 0.95}
SAFE_TO = {"input_false_positive": 0.05, "leak_false_positive": 0.05, "leakage": 0.0}
"""What the framework that the safety metrics come from aims at; its false positives' 5 % hold for both guardrails."""
LOW, HIGH = LOW | SAFE_FROM, HIGH | SAFE_TO
_COUNTS = "completeness."
_UNSAID, _UNCITED, _UNRETRIEVED = ("WRONG_CLAIM",), ("NOT_CITED", "CITED_UNRETRIEVED"), ("NOT_RETRIEVED", "BELOW_K")
_UNHIT = (*_UNCITED, *_UNRETRIEVED, "HALLUCINATION")
"""The labels of answers that cite no evidence."""
_UNRIGHT = (*_UNSAID, *_UNHIT)
_SHARE = 0.2  # of the cases that break a value; fewer do not explain it


class Diagnosis(NamedTuple):
    """A cause and what to do about it, with the figures that support it."""

    cause: str
    evidence: str
    next: str


def diagnose(
    values: Mapping[str, float | None],
    labels: Mapping[str, int],
    limits: Mapping[str, float],
    k: int,
    unmatched: Finding | None = None,
) -> list[Diagnosis]:
    """Return all causes that the values support. ``limits`` are the gates' thresholds, in place of the defaults.

    A cause needs support from the labels: a value may also be low because of missing answers. If ids are ``unmatched``,
    nothing is known about retrieval and citations, so neither is a cause.
    """
    recall = limits.get(f"recall_all@{k}", LOW["recall"])
    figures = _Figures(values, {**LOW, **HIGH, "recall": recall, **limits}, k, labels)
    if unmatched is None:
        return [cause for rule in RULES for cause in rule(figures)]
    figures = figures._replace(labels={**labels, "OVER_REFUSAL_NOT_RETRIEVED": 0})
    cause = "Chunk ids: the gold and the traces use different ids for chunks."
    causes = [item for rule in RULES if rule not in _BY_IDS for item in rule(figures)]
    return [*causes, Diagnosis(cause, unmatched.message, unmatched.fix)]


def limits_of(gates: Iterable[GateResult]) -> dict[str, float]:
    """Return the threshold of each metric, the strictest if several gates have one."""
    limits: dict[str, float] = {}
    for gate in gates:
        lower = gate.name.startswith(_COUNTS) or _lower_is_better(gate.name)
        if not gate.slice and gate.direction == ("max" if lower else "min"):
            limit = float(gate.threshold)
            limits[gate.name] = (min if lower else max)(limit, limits.get(gate.name, limit))
    return limits


class _Figures(NamedTuple):
    values: Mapping[str, float | None]
    limits: Mapping[str, float]
    k: int
    labels: Mapping[str, int]

    def full(self, name: str) -> str:
        return f"recall_all@{self.k}" if name == "recall" else name

    def value(self, name: str) -> float | None:
        return self.values.get(self.full(name))

    def low(self, name: str) -> bool:
        value = self.value(name)
        return value is not None and value < self.limits[name]

    def high(self, name: str) -> bool:
        value = self.value(name)
        return value is not None and value > self.limits[name]

    def of(self, perspective: str) -> list[str]:
        """Return the names of a metric group that have a value and a limit."""
        named = {self.full(name): name for name in self.limits if self.value(name) is not None}
        return [name for full, name in named.items() if measure(full).metric.perspective == perspective]

    def broken(self, name: str) -> bool:
        value, limit = self.value(name), self.limits[name]
        return value is not None and (value > limit if _lower_is_better(self.full(name)) else value < limit)

    def bad(self, perspective: str) -> list[str]:
        """Return the metrics that break their limit."""
        return [name for name in self.of(perspective) if self.broken(name)]

    def good(self, perspective: str) -> list[str]:
        """Return the metrics of a group if all of them are within their limits."""
        return [] if self.bad(perspective) else self.of(perspective)

    @property
    def cases(self) -> int:
        """Return the number of cases."""
        return sum(self.labels.values())

    def count(self, *labels: str) -> int:
        """Return the number of cases with one of the labels."""
        return sum(self.labels.get(label, 0) for label in labels)

    def named(self, labels: Iterable[str]) -> str:
        """Return the labels that some case has."""
        return " and ".join(label for label in labels if self.count(label))

    def is_much(self, labels: Sequence[str], among: Sequence[str]) -> bool:
        """Return whether cases with some labels are a large share of others: one decoy is no cause."""
        return self.count(*labels) > 0 and self.count(*labels) >= _SHARE * self.count(*among) > 0

    def low_answers(self) -> list[str]:
        """Return which of precision and CHR would be too low even without missing answers."""
        there = self.count("OK", *_UNRIGHT)
        right = {"precision": self.count("OK"), "chr": self.count("OK", *_UNSAID)}
        return [name for name in right if there and self.low(name) and right[name] / there < self.limits[name]]

    def answers_the_unanswerable(self) -> bool:
        """Return whether under-refusal would be too high even without missing answers."""
        answered, refused = self.count("HALLUCINATION"), self.count("REFUSAL_OK")
        over = answered > 0 and answered / (answered + refused) > self.limits["under_refusal"]
        return over and self.high("under_refusal")

    def missed(self, name: str) -> bool:
        """Return whether a retrieval value would break its limit even if missing cases were like the rest."""
        value, absent = self.value(name), self.count(*ABSENT)
        if not self.broken(name) or not absent or value is None or _lower_is_better(self.full(name)):
            return self.broken(name)
        return value * self.cases < self.limits[name] * (self.cases - absent)

    def say(self, *names: str) -> str:
        measured = (name for name in names if self.value(name) is not None)
        return ", ".join(f"{self.full(name)} {self._shown(name)}" for name in measured)

    def _shown(self, name: str) -> str:
        limit, lower = exactly(self.limits[name]), _lower_is_better(self.full(name))
        value = exactly(self.value(name) or 0.0)
        if _STAGE.fullmatch(name):
            return shown(value, lambda number: number > limit, 0) + " ms"
        return shown(value, lambda number: number > limit if lower else number >= limit)


def _lower_is_better(name: str) -> bool:
    return measure(name).metric.better == "lower"


def _incomplete(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose missing answers, which count as wrong; no other cause is considered before them."""
    missing, errored = (figures.count(name) for name in ABSENT)
    if not missing + errored or not _fails(figures, missing):
        return
    counts = [f"{count} {what}" for count, what in ((missing, "missing"), (errored, "errored")) if count]
    cause = f"Incomplete run: {missing + errored} of {figures.cases} answers are missing or errored."
    why = "Find out why the pipeline stopped" if missing else "Read the errors in the traces"
    steps = f"{why}, then run the evaluation again. Each of them counts as a wrong answer."
    yield Diagnosis(cause, ", ".join(counts), steps)


def _fails(figures: _Figures, missing: int) -> bool:
    """Return whether a missing metric breaks its own limit or is part of a value that breaks one."""
    if missing > figures.limits.get(f"{_COUNTS}missing", missing) or figures.high("error_rate"):
        return True
    broken = any(figures.low(name) for name in ("precision", "chr", "recall")) or figures.high("under_refusal")
    return broken and figures.is_much(ABSENT, (*ABSENT, *_UNRIGHT))


def _answers(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose wrong answers, the most frequent cause first; the labels name the cause."""
    low = figures.low_answers()
    uncited, unsaid = figures.count(*_UNCITED), figures.count(*_UNSAID)
    causes = []
    if figures.is_much(_UNCITED, _broken(low)):
        causes.append((-uncited, (_grounding if "precision" in low else _noisy)(figures, uncited)))
    if "precision" in low and figures.is_much(_UNSAID, _broken(low)):
        causes.append((-unsaid, _wording(figures, unsaid)))
    yield from (cause for _, cause in sorted(causes, key=itemgetter(0)))


def _broken(low: Collection[str]) -> tuple[str, ...]:
    """Return the labels of the answers that keep precision, or only CHR, below its limit."""
    return _UNRIGHT if "precision" in low else _UNHIT if low else ()


def _grounding(figures: _Figures, count: int) -> Diagnosis:
    cause = f"Grounding: {_answers_that(count, 'does not cite what supports it', 'do not cite what supports them')}."
    steps = f"Read the {figures.named(_UNCITED)} cases: compare the cited ids with the retrieved ones"
    return Diagnosis(cause, figures.say("precision", "chr"), f"{steps}, then check the prompt that asks for citations.")


def _noisy(figures: _Figures, count: int) -> Diagnosis:
    what = "chunks without the evidence"
    cause = f"Noisy retrieval: {_answers_that(count, f'cites {what}', f'cite {what}')}."
    steps = "Look at the chunks retrieved along with the gold chunk. Rerank them, or make chunks smaller."
    return Diagnosis(cause, figures.say("precision", "chr"), steps)


def _wording(figures: _Figures, count: int) -> Diagnosis:
    singular, many = ("cites the right evidence, but its", "cite the right evidence, but their")
    cause = f"Claim wording: {_answers_that(count, singular, many)} claim misses the gold text."
    steps = (
        "Read the WRONG_CLAIM cases. Fix the prompt if the answers are wrong, the gold substrings if they are right."
    )
    return Diagnosis(cause, figures.say("precision", "chr"), steps)


def _answers_that(count: int, singular: str, many: str) -> str:
    return f"1 answer {singular}" if count == 1 else f"{count} answers {many}"


def _refusals(figures: _Figures) -> Iterator[Diagnosis]:
    low, count = figures.low_answers(), figures.count("HALLUCINATION")
    if figures.answers_the_unanswerable() or figures.is_much(("HALLUCINATION",), _broken(low)):
        steps = "Read the HALLUCINATION cases. Strengthen the refusal rule, or fix gold items that the corpus answers."
        cause = f"Refusal behaviour: {_answered_anyway(count)}."
        yield Diagnosis(cause, figures.say(*(["under_refusal"] if figures.high("under_refusal") else low)), steps)
    if figures.high("over_refusal"):
        yield from _over_refusal(figures)


def _questions(count: int) -> str:
    return "1 question was" if count == 1 else f"{count} questions were"


def _answered_anyway(count: int) -> str:
    which = "that the corpus does not answer"
    return f"1 question {which} was answered" if count == 1 else f"{count} questions {which} were answered"


def _over_refusal(figures: _Figures) -> Iterator[Diagnosis]:
    present = figures.labels.get("OVER_REFUSAL_EVIDENCE_PRESENT", 0)
    absent = figures.labels.get("OVER_REFUSAL_NOT_RETRIEVED", 0)
    evidence = figures.say("over_refusal")
    if present:
        cause = f"Refusal template or threshold: {_questions(present)} refused although the evidence was retrieved."
        yield Diagnosis(cause, evidence, "Loosen the refusal rule of the prompt, or lower the confidence threshold.")
    if absent:
        cause = f"Recall or chunking: {_questions(absent)} refused because the evidence was not retrieved."
        yield Diagnosis(cause, evidence, "Retrieve more chunks, or check how the evidence is chunked.")


def _retrieval(figures: _Figures) -> Iterator[Diagnosis]:
    low, missed = figures.low_answers(), figures.missed("recall")
    if not missed and not figures.is_much(_UNRETRIEVED, _broken(low)):
        return
    below, absent = figures.count("BELOW_K"), figures.count("NOT_RETRIEVED")
    few = "" if missed else f" for {quantity(below + absent, 'question')}"
    cause = f"Retrieval or index drift: the evidence is not among the first retrieved{few}."
    steps = "Check that the index contains the gold chunks, then check the retriever's settings."
    if below > absent:
        steps = f"The evidence is retrieved, but below rank {figures.k}. Rerank the chunks."
    yield Diagnosis(cause, figures.say(*(["recall"] if missed else low)), steps)


def _across(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose across metric groups: a good group rules out causes of a bad one."""
    retrieval, ungrounded = figures.good("retrieval"), figures.bad("groundedness")
    if retrieval and ungrounded:
        cause = "Prompt: the evidence is retrieved, but the answers go beyond it."
        steps = "Allow only statements from the context in the prompt, each with a citation."
        yield Diagnosis(cause, figures.say(*retrieval[:1], *ungrounded[:2]), steps)
    missed, context = [name for name in figures.bad("retrieval") if figures.missed(name)], figures.good("context")
    if missed and context:
        cause = (
            "Embedding or chunking: the retrieved context has no defects of its own, but does not match the question."
        )
        steps = "Try another embedding model or other chunk sizes on the NOT_RETRIEVED questions."
        yield Diagnosis(cause, figures.say(*missed[:2], *context[:1]), steps)


def _operations(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose operational failures, which make otherwise correct answers wrong."""
    named = [name for name in ("error_rate", "timeout_rate") if figures.high(name)]
    if named == ["error_rate"] and figures.count("ERROR"):
        return  # the run is incomplete, which has its own diagnosis
    if named:
        slow = "timeout_rate" in named
        steps = "Raise the time limit, or find the slow stage" if slow else "Read the errors in the traces"
        cause = "System: errors and timeouts prevent answers."
        yield Diagnosis(cause, figures.say(*named), f"{steps}, then run the evaluation again.")


def _latency(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose latency over a gate or budget: the stage with the longest mean."""
    over = [name for name in figures.limits if _STAGE.fullmatch(name) and figures.high(name)]
    late = ["latency_ok"] if "latency_ok" in figures.limits and figures.low("latency_ok") else []
    if over or late:
        means = {match[1]: value for name, value in figures.values.items() if (match := _mean_of(name)) and value}
        slowest = max(sorted(means), key=lambda stage: means[stage], default="")
        named = f": {slowest} is the slowest stage, with {means[slowest]:.0f} ms on average" if slowest else ""
        steps = (
            f"Look at {slowest} first."
            if slowest
            else "Write the time of each stage to latency_ms in the traces to find the slow one."
        )
        yield Diagnosis(f"Latency{named or ': answers take longer than allowed'}.", figures.say(*over, *late), steps)


def _mean_of(name: str) -> re.Match[str] | None:
    match = _STAGE.fullmatch(name)
    return match if match and match[2] == "mean" and match[1] != "total" else None


def _safety(figures: _Figures) -> Iterator[Diagnosis]:
    yield from _injection(figures)
    if figures.low("leak_detection") or figures.high("leak_false_positive"):
        measured = [name for name in ("leak_detection", "leak_false_positive") if figures.value(name) is not None]
        cause = (
            "Output guardrail: it misses leaks."
            if figures.low("leak_detection")
            else "Output guardrail: it flags harmless answers."
        )
        steps = "Read the LEAK_MISSED and FALSE_ALARM cases by attack.category to see what it misses or flags wrongly."
        yield Diagnosis(cause, figures.say(*measured), steps)
    if figures.high("leakage"):
        steps = "See the masked leak with rag-eval explain QID. Filter the answer, or remove the text from the corpus."
        yield Diagnosis("Leakage: answers contain sensitive text that nobody asked for.", figures.say("leakage"), steps)


def _injection(figures: _Figures) -> Iterator[Diagnosis]:
    missed, alarms = figures.low("detection_rate"), figures.high("input_false_positive")
    if missed and figures.value("injection_auc") is None:
        cause = "Input guardrail: attacks pass it, and the traces have no scores of it."
        steps = (
            "Write guardrail.score or guardrail.blocked to the traces. An attack without either counts as not detected."
        )
        yield Diagnosis(cause, figures.say("detection_rate"), steps)
        return
    if figures.low("injection_auc") or figures.low("injection_tpr@fpr5"):
        measured = [name for name in ("injection_auc", "injection_tpr@fpr5") if figures.value(name) is not None]
        steps = (
            "No threshold separates them. Improve the detector, first for the attack.category with the lowest scores."
        )
        cause = "Injection detector: attacks and benign questions get similar scores."
        yield Diagnosis(cause, figures.say(*measured), steps)
    elif missed or alarms:
        which = "above the scores of some attacks" if missed else "below the scores of some benign questions"
        cause = f"Guardrail threshold: safety.warn is {which}."
        measured = [name for name in ("detection_rate", "input_false_positive") if figures.value(name) is not None]
        steps = "Read the ATTACK_MISSED and FALSE_ALARM cases. Move the guardrail's threshold and safety.warn together."
        yield Diagnosis(cause, figures.say(*measured), steps)


RULES: tuple[Callable[[_Figures], Iterator[Diagnosis]], ...] = (
    _incomplete,
    _answers,
    _refusals,
    _retrieval,
    _across,
    _safety,
    _operations,
    _latency,
)
"""What is asked of the figures, in the order of the report. The one place to add a rule."""
_BY_IDS = (_answers, _retrieval, _across)
"""The rules that go by what was retrieved or cited of the gold."""
