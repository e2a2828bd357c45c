"""Rules that name the likely cause of low values, and what to look at next."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.cases import ABSENT
from rag_eval.common.escaping import quantity
from rag_eval.errors import Finding
from rag_eval.gates import GateResult
from rag_eval.metrics import measure
from rag_eval.scoring.reference import CEILINGS, DEFAULT_GATES, FLOORS
from rag_eval.stats.tally import as_fraction, round_for_display

_DEFAULTS = {
    **{metric: float(DEFAULT_GATES[name]) for name, metric in FLOORS.items()},
    "recall": 0.80,
    "injection_auc": 0.85,
    "injection_tpr@fpr5": 0.85,
    "detection_rate": 0.85,
    "leak_detection": 0.95,
    **{metric: float(DEFAULT_GATES[name]) for name, metric in CEILINGS.items()},
    "error_rate": 0.05,
    "timeout_rate": 0.05,
    "input_false_positive": 0.05,
    "leak_false_positive": 0.05,
    "leakage": 0.0,
}
"""Limits without a gate: the reference scorer's, and those of the framework that the safety metrics come from."""
_STAGE = re.compile(r"latency_(\w+)_ms\.(\w+)")
_UNSAID, _UNCITED, _UNRETRIEVED = ("WRONG_CLAIM",), ("NOT_CITED", "CITED_UNRETRIEVED"), ("NOT_RETRIEVED", "BELOW_K")
_UNHIT = (*_UNCITED, *_UNRETRIEVED, "HALLUCINATION")
"""The labels of answers that cite no evidence."""
_UNRIGHT = (*_UNSAID, *_UNHIT)
_OVER_REFUSALS = {
    "OVER_REFUSAL_EVIDENCE_PRESENT": (
        "Refusal template or threshold",
        "although the evidence was retrieved",
        "Loosen the refusal rule of the prompt, or lower the confidence threshold.",
    ),
    "OVER_REFUSAL_NOT_RETRIEVED": (
        "Recall or chunking",
        "because the evidence was not retrieved",
        "Retrieve more chunks, or check how the evidence is chunked.",
    ),
}
_QUOTES = "long passages of chunks"  # which extractive systems quote on purpose
_LEAKS = {
    "leakage_secrets": "secrets",
    "leakage_personal": "personal data",
    "leakage_internal": "internal names",
    "leakage_verbatim": _QUOTES,
}
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
    rows: Mapping[str, int] = MappingProxyType({}),
    refusal_fix: str = "",
) -> list[Diagnosis]:
    """Return all causes that the values support. ``limits`` are the gates' thresholds, in place of the defaults.

    A cause needs support from the labels: a value may also be low because of missing answers. If ids are ``unmatched``,
    nothing is known about retrieval and citations, so neither is a cause. ``rows`` counts the unknown and the duplicate
    traces. ``refusal_fix`` is the fix if answers refuse in words that are not recognised.
    """
    recall = f"recall_all@{k}"
    defaults = {recall if name == "recall" else name: limit for name, limit in _DEFAULTS.items()}
    figures = _Figures(values, {**defaults, **limits}, k, recall, labels, rows, refusal_fix, limits.keys())
    if unmatched is None:
        return [cause for rule in RULES for cause in rule(figures)]
    figures = replace(figures, labels={**labels, "OVER_REFUSAL_NOT_RETRIEVED": 0})
    cause = "Chunk ids: the gold and the traces use different ids for chunks."
    causes = [item for rule in RULES if rule not in _BY_IDS for item in rule(figures)]
    return [*causes, Diagnosis(cause, unmatched.message, unmatched.fix)]


def limits_of(gates: Iterable[GateResult]) -> dict[str, float]:
    """Return the threshold of each metric, the strictest if several gates have one."""
    limits: dict[str, float] = {}
    for gate in gates:
        lower = gate.is_completeness or _lower_is_better(gate.name)
        if not gate.slice and gate.direction == ("max" if lower else "min"):
            limit = float(gate.threshold)
            limits[gate.name] = (min if lower else max)(limit, limits.get(gate.name, limit))
    return limits


class _Figures(Struct, frozen=True):
    """The values of a run with their limits, the name of its recall, and its labels and extra traces with counts.

    ``gated`` are the metrics whose limit is that of a gate.
    """

    values: Mapping[str, float | None]
    limits: Mapping[str, float]
    k: int
    recall: str
    labels: Mapping[str, int]
    rows: Mapping[str, int]
    refusal_fix: str
    gated: Collection[str]

    def broken(self, name: str) -> bool:
        """Return whether a metric has a value outside its limit."""
        value, limit = self.values.get(name), self.limits[name]
        return value is not None and (value > limit if _lower_is_better(name) else value < limit)

    def exceeds(self, name: str, count: int) -> bool:
        """Return whether more traces are missing, unknown or duplicate than the gates allow."""
        return count > self.limits.get(f"completeness.{name}", count)

    def of(self, perspective: str) -> list[str]:
        """Return the names of a metric group that have a value and a limit."""
        measured = [name for name in self.limits if self.values.get(name) is not None]
        return [name for name in measured if measure(name).metric.perspective == perspective]

    def bad(self, perspective: str) -> list[str]:
        """Return the metrics of a group that break their limit."""
        return [name for name in self.of(perspective) if self.broken(name)]

    def good(self, perspective: str) -> list[str]:
        """Return the metrics of a group if all of them are within their limits."""
        return [] if self.bad(perspective) else self.of(perspective)

    def count(self, *labels: str) -> int:
        """Return the number of cases with one of the labels."""
        return sum(self.labels.get(label, 0) for label in labels)

    def is_much(self, labels: Sequence[str], among: Sequence[str]) -> bool:
        """Return whether cases with some labels are a large share of others: one decoy is no cause."""
        return self.count(*labels) > 0 and self.count(*labels) >= _SHARE * self.count(*among) > 0

    def low_answers(self) -> tuple[list[str], tuple[str, ...]]:
        """Return which of precision and CHR would be too low even without missing answers.

        The second value are the labels of the answers that keep precision, or only CHR, below its limit.
        """
        there = self.count("OK", *_UNRIGHT)
        right = {"precision": self.count("OK"), "chr": self.count("OK", *_UNSAID)}
        low = [name for name in right if there and self.broken(name) and right[name] / there < self.limits[name]]
        return low, _UNRIGHT if "precision" in low else _UNHIT if low else ()

    def missed(self, name: str) -> bool:
        """Return whether a retrieval value would break its limit even if missing cases were like the rest."""
        value, absent, cases = self.values.get(name), self.count(*ABSENT), sum(self.labels.values())
        if not self.broken(name) or not absent or value is None or _lower_is_better(name):
            return self.broken(name)
        return value * cases < self.limits[name] * (cases - absent)

    def say(self, *names: str) -> str:
        """Return the values of the measured ones of some metrics, with enough decimals to compare them to limits."""
        texts = []
        for name in names:
            value, limit = self.values.get(name), as_fraction(self.limits[name])
            if value is not None:
                beyond = limit.__lt__ if _lower_is_better(name) else limit.__le__
                least, unit = (0, " ms") if _STAGE.fullmatch(name) else (3, "")
                texts.append(f"{name} {round_for_display(as_fraction(value), beyond, least)}{unit}")
        return ", ".join(texts)


def _lower_is_better(name: str) -> bool:
    return measure(name).metric.better == "lower"


Rule = Callable[[_Figures], Iterator[Diagnosis]]


def _incomplete(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose missing answers, which count as wrong; no other cause is considered before them."""
    missing, errored = (figures.count(name) for name in ABSENT)
    if not missing + errored:
        return
    fails = figures.exceeds("missing", missing) or figures.broken("error_rate")
    part_of = any(map(figures.broken, ("precision", "chr", figures.recall, "under_refusal")))
    if fails or (part_of and figures.is_much(ABSENT, (*ABSENT, *_UNRIGHT))):
        counts = [f"{count} {what}" for count, what in ((missing, "missing"), (errored, "errored")) if count]
        unknown, total = figures.rows.get("unknown", 0), sum(figures.labels.values())
        verb = "is" if missing + errored == 1 else "are"
        cause = f"Incomplete run: {missing + errored} of {quantity(total, 'answer')} {verb} missing or errored."
        why = "Find out why the pipeline stopped" if missing else "Read the errors in the traces"
        steps = f"{why}, then run the evaluation again. Each of them counts as a wrong answer."
        if unknown >= missing > 0:
            cause = f"Other ids: {missing} of {total} questions have no trace, and {_strangers(unknown)}."
            counts.append(f"{unknown} unknown")
            steps = "Write the qid of the gold item into each trace, or exactly its question as q"
            steps += ", or import with --gold."
        yield Diagnosis(cause, ", ".join(counts), steps)


def _extra(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose traces of no gold item, and several traces of one: both are usual if a file was not deleted before."""
    missing, unknown, duplicate = figures.count("MISSING"), *map(figures.rows.get, ("unknown", "duplicate"))
    delete = "Delete the trace file before each run, because rows are appended."
    renamed = unknown and unknown >= missing > 0 and figures.exceeds("missing", missing)
    if unknown and not renamed and figures.exceeds("unknown", unknown):
        steps = f"Add the questions to the gold set. Do the rows come from an earlier run? {delete}"
        yield Diagnosis(f"Other questions: {_strangers(unknown)}.", f"{unknown} unknown", steps)
    if duplicate and figures.exceeds("duplicate", duplicate):
        cause = quantity(duplicate, "trace repeats a question", "traces repeat questions")
        steps = f"{delete} For repeats on purpose, give each its own run."
        yield Diagnosis(f"Repeated traces: {cause}, and only the last one counts.", f"{duplicate} duplicate", steps)


def _strangers(unknown: int) -> str:
    return f"{quantity(unknown, 'trace belongs', 'traces belong')} to no question of the gold set"


def _answers(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose wrong answers, the most frequent cause first; the labels name the cause."""
    low, broken = figures.low_answers()
    uncited, unsaid = figures.count(*_UNCITED), figures.count(*_UNSAID)
    form, refused = figures.values.get("compliance"), figures.count("REFUSAL_OK", *_OVER_REFUSALS)
    # Only refusals have the form of an answer with a list of citations.
    never_cites = form is not None and form * sum(figures.labels.values()) < refused + 0.5
    causes = []
    cause = quantity(uncited, "answer does not cite what supports it", "answers do not cite what supports them")
    if figures.is_much(_UNCITED, broken) and "precision" in low:
        labels = " and ".join(label for label in _UNCITED if figures.count(label))
        steps = f"Read the {labels} cases: compare the cited ids with the retrieved ones"
        steps += ", then check the prompt that asks for citations."
        if never_cites:
            steps = "No answer has a list of citations. Record them with the answer: t.answer(text, citations=[…])."
            steps += " A system that does not cite can name the chunks that it shows as sources."
        elif figures.values.get("citation_recall", 0) is None:  # which applies to every answer with evidence to cite
            steps = "The gold set names no evidence, so every answer with citations is wrong."
            steps += " Write the evidence into gold_citations, or record the answers without citations."
        causes.append((uncited, f"Grounding: {cause}.", steps))
    elif figures.is_much(_UNCITED, broken):
        steps = "Look at the chunks retrieved along with the gold chunk. Rerank them, or make chunks smaller."
        causes.append((uncited, f"Noisy retrieval: {cause}.", steps))
    if "precision" in low and figures.is_much(_UNSAID, broken):
        words = "claim misses", "claims miss"
        if not never_cites:
            right = "the right evidence, but"
            words = f"answer cites {right} its claim misses", f"answers cite {right} their claim misses"
        cause = f"Claim wording: {quantity(unsaid, *words)} the gold text."
        steps = "Read the WRONG_CLAIM cases. Fix the prompt if the answers are wrong"
        causes.append((unsaid, cause, f"{steps}, the gold substrings if they are right."))
    for _, cause, steps in sorted(causes, key=itemgetter(0), reverse=True):
        yield Diagnosis(cause, figures.say("precision", "chr"), steps)


def _refusals(figures: _Figures) -> Iterator[Diagnosis]:
    (low, broken), answered, refused = figures.low_answers(), *map(figures.count, ("HALLUCINATION", "REFUSAL_OK"))
    # The metric alone does not decide: missing answers raise it too.
    too_often = answered > 0 and answered / (answered + refused) > figures.limits["under_refusal"]
    if (too_often and figures.broken("under_refusal")) or figures.is_much(("HALLUCINATION",), broken):
        outcome = "was answered" if answered == 1 else "were answered"
        if figures.refusal_fix:
            outcome = f"{'has' if answered == 1 else 'have'} no recognised refusal"
        cause = f"{quantity(answered, 'question')} that the corpus does not answer {outcome}"
        steps = "Read the HALLUCINATION cases. Strengthen the refusal rule, or fix gold items that the corpus answers."
        steps = figures.refusal_fix or steps
        names = ["under_refusal"] if figures.broken("under_refusal") else low
        yield Diagnosis(f"Refusal behaviour: {cause}.", figures.say(*names), steps)
    for label, (kind, why, steps) in _OVER_REFUSALS.items() if figures.broken("over_refusal") else ():
        if count := figures.count(label):
            cause = f"{kind}: {quantity(count, 'question was', 'questions were')} refused {why}."
            yield Diagnosis(cause, figures.say("over_refusal"), steps)


def _retrieval(figures: _Figures) -> Iterator[Diagnosis]:
    (low, broken), missed = figures.low_answers(), figures.missed(figures.recall)
    if not missed and not figures.is_much(_UNRETRIEVED, broken):
        return
    below, absent = figures.count("BELOW_K"), figures.count("NOT_RETRIEVED")
    few = "" if missed else f" for {quantity(below + absent, 'question')}"
    cause = f"Retrieval or index drift: the evidence is not among the first retrieved{few}."
    steps = "Check that the index contains the gold chunks, then check the retriever's settings."
    if below > absent:
        steps = f"The evidence is retrieved, but below rank {figures.k}. Rerank the chunks."
    yield Diagnosis(cause, figures.say(*([figures.recall] if missed else low)), steps)


def _across(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose across metric groups: a good group rules out causes of a bad one."""
    retrieval, ungrounded = figures.good("retrieval"), figures.bad("groundedness")
    if retrieval and ungrounded:
        cause = "Prompt: the evidence is retrieved, but the answers go beyond it."
        steps = "Allow only statements from the context in the prompt, each with a citation."
        yield Diagnosis(cause, figures.say(*retrieval[:1], *ungrounded[:2]), steps)
    missed, context = [name for name in figures.bad("retrieval") if figures.missed(name)], figures.good("context")
    if missed and context:
        cause = "Embedding or chunking: the retrieved context has no defects of its own"
        cause += ", but does not match the question."
        steps = "Try another embedding model or other chunk sizes on the NOT_RETRIEVED questions."
        yield Diagnosis(cause, figures.say(*missed[:2], *context[:1]), steps)


def _operations(figures: _Figures) -> Iterator[Diagnosis]:
    """Diagnose operational failures, and latency over a gate or budget by the stage with the longest mean."""
    named = [name for name in ("error_rate", "timeout_rate") if figures.broken(name)]
    # A run with errors is incomplete, which has its own diagnosis.
    if named and not (named == ["error_rate"] and figures.count("ERROR")):
        slow = "timeout_rate" in named
        steps = "Raise the time limit, or find the slow stage" if slow else "Read the errors in the traces"
        cause = "System: errors and timeouts prevent answers."
        yield Diagnosis(cause, figures.say(*named), f"{steps}, then run the evaluation again.")
    over = [name for name in figures.limits if _STAGE.fullmatch(name) and figures.broken(name)]
    over += ["latency_ok"] if "latency_ok" in figures.limits and figures.broken("latency_ok") else []
    if over:
        stages = ((_STAGE.fullmatch(name), value) for name, value in figures.values.items())
        means = {stage[1]: value for stage, value in stages if stage and value and stage[2] == "mean"}
        slowest = max(sorted(means.keys() - {"total"}), key=means.__getitem__, default="")
        cause = "Latency: answers take longer than allowed."
        steps = "Write the time of each stage to latency_ms in the traces to find the slow one."
        if slowest:
            cause = f"Latency: {slowest} is the slowest stage, with {means[slowest]:.0f} ms on average."
            steps = f"Look at {slowest} first."
        yield Diagnosis(cause, figures.say(*over), steps)


def _safety(figures: _Figures) -> Iterator[Diagnosis]:
    missed, alarms = figures.broken("detection_rate"), figures.broken("input_false_positive")
    if missed and figures.values.get("injection_auc") is None:
        cause = "Input guardrail: attacks pass it, and the traces have no scores of it."
        steps = "Write guardrail.score or guardrail.blocked to the traces."
        steps += " An attack without either counts as not detected."
        yield Diagnosis(cause, figures.say("detection_rate"), steps)
    elif figures.broken("injection_auc") or figures.broken("injection_tpr@fpr5"):
        cause = "Injection detector: attacks and benign questions get similar scores."
        steps = "No threshold separates them. Improve the detector"
        steps += ", first for the attack.category with the lowest scores."
        yield Diagnosis(cause, figures.say("injection_auc", "injection_tpr@fpr5"), steps)
    elif missed or alarms:
        which = "above the scores of some attacks" if missed else "below the scores of some benign questions"
        cause = f"Guardrail threshold: safety.warn is {which}."
        steps = "Read the ATTACK_MISSED and FALSE_ALARM cases. Move the guardrail's threshold and safety.warn together."
        yield Diagnosis(cause, figures.say("detection_rate", "input_false_positive"), steps)
    leaks_missed = figures.broken("leak_detection")
    if leaks_missed or figures.broken("leak_false_positive"):
        cause = f"Output guardrail: it {'misses leaks' if leaks_missed else 'flags harmless answers'}."
        steps = "Read the LEAK_MISSED and FALSE_ALARM cases by attack.category to see what it misses or flags wrongly."
        yield Diagnosis(cause, figures.say("leak_detection", "leak_false_positive"), steps)
    leaks = [what for name, what in _LEAKS.items() if figures.values.get(name)]
    if figures.broken("leakage") and (leaks != [_QUOTES] or "leakage" in figures.gated):
        cause = f"Leakage: some answers contain {' and '.join(leaks) or 'sensitive text'}."
        steps = "See the masked leak with rag-eval explain QID. Filter the answers, or remove the text from the corpus."
        steps += " If an answer needs it, write it into expected_answer of the gold item."
        yield Diagnosis(cause, figures.say("leakage"), steps)


RULES: tuple[Rule, ...] = (_incomplete, _extra, _answers, _refusals, _retrieval, _across, _safety, _operations)
"""Every rule, in the order of the report. The one place to add a rule."""
_BY_IDS = (_answers, _retrieval, _across)
"""The rules that depend on which chunks of the gold were retrieved or cited."""
