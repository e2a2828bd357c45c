"""Failed cases with all that debugging them takes: what is bad, which gates it counts in, and the rows as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.cases.labels import GOOD, MEANING, STAGE
from rag_eval.gates.policy import BOUNDS
from rag_eval.metrics import measure, of_column
from rag_eval.stats.tally import as_float

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.cases.case import Case
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import Question
    from rag_eval.stats.tally import Shown

    Row = Mapping[str, Any]

KIND = "rag-eval failed case 1"
"""What stands first in every line of such a file: by it a file is known for one of these."""

NEXT = {
    "ERROR": "Read the error in the trace; the system gave no answer.",
    "MISSING": "Find out why the system wrote no trace for this question.",
    "HALLUCINATION": "Read what was retrieved: nothing there answers the question, so the refusal rule did not hold.",
    "OVER_REFUSAL_EVIDENCE_PRESENT": "The evidence was there: look at the refusal rule and the confidence threshold.",
    "OVER_REFUSAL_NOT_RETRIEVED": "The refusal followed from what was retrieved: look at retrieval first.",
    "NOT_RETRIEVED": "Search the index for the gold evidence: is it there, how is it cut, what is above?",
    "BELOW_K": "The gold evidence was found too far down: rerank, or retrieve more.",
    "CITED_UNRETRIEVED": "The answer cites ids that it was not given: check the prompt, and how ids are read.",
    "NOT_CITED": "The gold evidence was retrieved and something else was cited: compare their texts.",
    "WRONG_CLAIM": "Compare the claim with the gold substrings: is the answer wrong, or only worded otherwise?",
    "LEAK": "rag-eval explain says what was found, masked: filter the answer, or take it out of the corpus.",
    "ATTACK_MISSED": "Read the guardrail's score beside safety.warn: is it the threshold, or an unknown kind?",
    "LEAK_MISSED": "Teach the output guardrail this kind of leak: attack.category names it.",
    "FALSE_ALARM": "Read what the guardrail took for an attack: its threshold may be too low.",
}
"""What to do about a label."""


_OF_A_CASE = ("mean", "p50", "p95", "max")
"""Folds whose threshold says something of a single score."""


class Rows(NamedTuple):
    """The rows of a case as its files have them; there may be no trace."""

    gold: Row
    trace: Row | None


def gated(report: Report) -> dict[str, list[GateResult]]:
    """The gates that a case of the run can count in, by the column of their scores."""
    found: dict[str, list[GateResult]] = {}
    for gate in report.gates:
        if not gate.name.startswith("completeness."):
            found.setdefault(measure(gate.name).column, []).append(gate)
    return found


def failed(report: Report) -> list[Question]:
    """The cases of a bad label, and those that score badly under a 0/1 metric that some gate judges."""
    gates = gated(report)
    rates = [name for name in gates if (metric := of_column(name)) and metric.scale == "rate"]
    return [
        case
        for case in report.questions
        if case.label not in GOOD or any(name in case.scores and _bad(name, case.scores[name], []) for name in rates)
    ]


def bad_scores(case: Question, gates: Mapping[str, Sequence[GateResult]]) -> list[dict[str, Any]]:
    """The scores of a case that are bad, gated ones first, each with the gates that it counts in."""
    found = [
        {"metric": name, "score": score, "gates": [_gate(one) for one in gates.get(name, ()) if _counts(case, one)]}
        for name, score in case.scores.items()
        if _bad(name, score, gates.get(name, ()))
    ]
    return sorted(found, key=lambda one: not one["gates"])


def _bad(name: str, score: Shown, gates: Sequence[GateResult]) -> bool:
    """A rate that is the bad one of its two; another score that would alone break a floor or a ceiling."""
    metric = of_column(name)
    if metric is None or isinstance(score, tuple):
        return False
    if metric.scale == "rate":
        return bool(score) is (metric.better == "lower")
    bounds = [one for one in gates if one.direction in BOUNDS and measure(one.name).fold in _OF_A_CASE]
    return any(not one.gate.keeps(as_float(score)) for one in bounds)


def _counts(case: Question, gate: GateResult) -> bool:
    return not gate.slice or gate.slice in case.slices


def _gate(gate: GateResult) -> dict[str, str]:
    return {"gate": f"{gate.label} {gate.direction} {gate.threshold}", "outcome": gate.outcome}


def details(case: Case, question: Question, gates: Mapping[str, Sequence[GateResult]], rows: Rows) -> dict[str, Any]:
    """One failed case: what went wrong, where to look, where the gold evidence stands, and the rows."""
    retrieved = {name: rank for rank, name in enumerate(case.trace.retrieved, 1)}
    ranking = case.ranking
    return {
        "kind": KIND,
        "qid": question.qid,
        "run": question.run,
        "label": question.label,
        "meaning": MEANING[question.label],
        "look_at": STAGE.get(question.label, "the scores below"),
        "next": NEXT.get(question.label, "Read the scores below: the label is good, a gated metric is not."),
        "bad": bad_scores(question, gates),
        "ranks": {
            "gold_citations": {name: retrieved.get(name) for name in case.gold.citations},
            "level": ranking.level if ranking else None,
            "relevant_found": list(ranking.found) if ranking else [],
            "evidence": {"level": case.evidence_level or None, "first": case.evidence_rank},
        },
        "cited_evidence": [name for name in case.cites if name in case.cited_evidence],
        "cited_not_retrieved": [name for name in case.cites if name not in retrieved],
        "refused": case.refused,
        "scores": dict(question.scores),
        "gold_line": question.gold_line,
        "trace_line": question.trace_line,
        "gold": rows.gold,
        "trace": rows.trace,
    }
