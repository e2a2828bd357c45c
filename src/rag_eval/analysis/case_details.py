"""Details of single cases: what is wrong and what to do, as lines of failed cases and for people, with leaks masked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from rag_eval.analysis.report import Report
from rag_eval.cases import GOOD, MEANING, STAGE, Case
from rag_eval.gates import BOUNDS, GateResult
from rag_eval.gates.results import Question
from rag_eval.metrics import measure, of_column
from rag_eval.stats.tally import JsonScore, as_float
from rag_eval.textual.leaks import PLAIN, Mark, Segment, answer_marks, leaks_of, masked_segments

Row = Mapping[str, Any]

KIND = "rag-eval failed case 1"
"""The first value in every line of such a file, which identifies it."""

NEXT = {
    "ERROR": "Read the error in the trace; the system gave no answer.",
    "MISSING": "Find out why the system wrote no trace for this question.",
    "HALLUCINATION": "Read the retrieved chunks: none answers the question, so the system should have refused.",
    "OVER_REFUSAL_EVIDENCE_PRESENT": "The evidence was retrieved: check the refusal rule and the confidence threshold.",
    "OVER_REFUSAL_NOT_RETRIEVED": "The evidence was not retrieved, so look at retrieval first.",
    "NOT_RETRIEVED": "Search the index for the gold evidence: is it there, how is it chunked, what ranks above it?",
    "BELOW_K": "The gold evidence was retrieved too far down: rerank, or raise k.",
    "CITED_UNRETRIEVED": "The answer cites ids that were not retrieved: check the prompt and how citations are parsed.",
    "NOT_CITED": "The gold evidence was retrieved, but is not cited: if another chunk is, compare their texts.",
    "WRONG_CLAIM": "Compare the claim with the gold substrings: is the answer wrong, or only worded differently? "
    "To find substrings that are too strict: rag-eval gold lint --trace FILE",
    "LEAK": "Filter the answer, or remove the text from the corpus; rag-eval explain shows the leak masked.",
    "ATTACK_MISSED": "Compare the guardrail's score with safety.warn: is the threshold wrong, or the attack new?",
    "LEAK_MISSED": "Extend the output guardrail to this kind of leak (attack.category).",
    "FALSE_ALARM": "Read the text that the guardrail took for an attack: its threshold may be too low.",
}
"""What to do about a label."""
_OF_A_CASE = ("mean", "p50", "p95", "max")
"""Folds whose threshold applies to a single score too."""
_ANSWER, _CHUNK, _BEFORE, _CHUNKS, _TEXTS = 4_000, 1_500, 300, 20, 10


def gates_by_column(report: Report) -> dict[str, list[GateResult]]:
    """Return the gates that a case of the run can count in, by the column of their scores."""
    results: dict[str, list[GateResult]] = {}
    for gate in report.gates:
        if not gate.is_completeness:
            results.setdefault(measure(gate.name).column, []).append(gate)
    return results


def failed_cases(report: Report) -> list[Question]:
    """Return the wrong cases, and those with a bad score under a 0/1 metric that a gate judges."""
    rates = [name for name in gates_by_column(report) if (metric := of_column(name)) and metric.scale == "rate"]

    def fails(case: Question) -> bool:
        bad = (_bad(name, case.scores[name], []) for name in rates if name in case.scores)
        return case.label not in GOOD or any(bad)

    return list(filter(fails, report.questions))


def bad_scores(case: Question, gates: Mapping[str, Sequence[GateResult]]) -> list[dict[str, Any]]:
    """Return the bad scores of a case, gated ones first, each with the gates that it counts in."""
    rows: list[dict[str, Any]] = []
    for name, score in case.scores.items():
        if _bad(name, score, gates.get(name, ())):
            named = [
                {"gate": f"{gate.label} {gate.direction} {gate.threshold}", "outcome": gate.outcome}
                for gate in gates.get(name, ())
                if not gate.slice or gate.slice in case.slices
            ]
            rows.append({"metric": name, "score": score, "gates": named})
    return sorted(rows, key=lambda item: not item["gates"])


def _bad(name: str, score: JsonScore, gates: Sequence[GateResult]) -> bool:
    """Return whether a 0/1 score is the bad one, or whether another score breaks a minimum or maximum."""
    metric = of_column(name)
    if metric is None or isinstance(score, tuple):
        return False
    if metric.scale == "rate":
        return bool(score) is (metric.better == "lower")
    bounds = [gate for gate in gates if gate.direction in BOUNDS and measure(gate.name).fold in _OF_A_CASE]
    return any(not bound.gate.keeps(as_float(score)) for bound in bounds)


class Source(NamedTuple):
    """A cited or retrieved id: its rank among the retrieved ids (None if not retrieved), and what points at it.

    ``text`` is a chunk's text in pieces around its highlights, empty if the trace has no text.
    """

    id: str
    rank: int | None
    expected: bool
    cited: bool
    text: tuple[Segment, ...] = ()


def sources(
    case: Case,
    names: Iterable[str],
    shown: Callable[[str], str] = str,
    texts: Mapping[str, tuple[Segment, ...]] = MappingProxyType({}),
) -> tuple[Source, ...]:
    """Return ids that a case cites, retrieves or expects; ``shown`` masks an id, ``texts`` are by id."""
    ranks = {name: rank for rank, name in enumerate(case.trace.retrieved, 1)}
    return tuple(
        Source(shown(name), ranks.get(name), case.is_evidence(name), name in case.cites, texts.get(name, ()))
        for name in names
    )


def failed_row(
    case: Case, question: Question, gates: Mapping[str, Sequence[GateResult]], gold: Row, trace: Row | None
) -> dict[str, Any]:
    """Return one failed case: what went wrong, where to look, the ranks of the gold evidence, and its rows."""
    ranking, cited = case.ranking, sources(case, case.cites)
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
            "gold_citations": {source.id: source.rank for source in sources(case, case.gold.citations)},
            "level": ranking.level if ranking else None,
            "relevant_found": list(ranking.first_ranks) if ranking else [],
            "evidence": {"level": case.evidence_level or None, "first": case.evidence_rank},
        },
        "cited_evidence": [source.id for source in cited if source.expected],
        "cited_not_retrieved": [source.id for source in cited if source.rank is None],
        "refused": case.refused,
        "scores": dict(question.scores),
        "gold_line": question.gold_line,
        "trace_line": question.trace_line,
        "gold": gold,
        "trace": trace,
    }


class CaseDetails(NamedTuple):
    """A case for people: question, answer, expected answer, sources, and why it is right or wrong.

    Secrets and personal data are masked in every text.
    """

    question: str
    answer: tuple[Segment, ...]
    error: str
    refused: bool
    answerable: bool
    wanted: tuple[str, ...]
    contained: bool
    evidence: tuple[str, ...]
    cited: tuple[Source, ...]
    retrieved: tuple[Source, ...]
    cut: int
    meaning: str
    next: str
    bad: tuple[str, ...]


Details = Mapping[tuple[str, str | None], CaseDetails]
"""What the HTML report unfolds of a case, by its qid and run."""


def case_details(case: Case, question: Question, gates: Mapping[str, Sequence[GateResult]]) -> CaseDetails:
    """Return a case for people, its texts masked and cut."""
    gold, trace, retrieved = case.gold, case.trace, case.trace.retrieved
    evidence = [*gold.citations, *(gold.expected_documents or gold.relevant_docs or ())]
    wanted = (gold.expected_answer,) if gold.expected_answer else gold.substrings or gold.expected_claims or ()

    def hidden(text: str) -> str:
        return "".join(piece.text for piece in _pieces(text, [], case, _ANSWER))

    texts: dict[str, tuple[Segment, ...]] = {}
    for index, (name, text) in enumerate([*case.texts_by_id.items()][:_CHUNKS]):
        spans = [item.span for item in case.evidence if item.chunk == index and item.span is not None]
        # A long text is shown from a little before the first highlight on.
        first = max(0, min((low for low, _ in spans), default=0) - _BEFORE) if len(text) > _CHUNK else 0
        texts[name] = _pieces(text, [Mark(*span, "best") for span in spans], case, _CHUNK, first)
    return CaseDetails(
        question=hidden(gold.question),
        answer=_pieces(case.claim, [*answer_marks(case.evidence)], case, _ANSWER),
        error=hidden(trace.error or "")[:_ANSWER],
        refused=case.refused,
        answerable=gold.answerable,
        wanted=tuple(map(hidden, wanted[:_TEXTS])),
        contained=case.contained,
        evidence=tuple(map(hidden, dict.fromkeys(evidence[:_TEXTS]))),
        cited=sources(case, dict.fromkeys(case.cites[:_CHUNKS]), hidden),
        retrieved=sources(case, retrieved[:_CHUNKS], hidden, texts),
        cut=max(0, len(retrieved) - _CHUNKS),
        meaning=MEANING[question.label],
        next=NEXT.get(question.label, ""),
        bad=tuple(gate["gate"] for score in bad_scores(question, gates) for gate in score["gates"]),
    )


def _pieces(text: str, marks: Sequence[Mark], case: Case, limit: int, start: int = 0) -> tuple[Segment, ...]:
    """Return the pieces of ``limit`` characters from ``start`` on, leaks masked; ``…`` replaces the rest."""
    # Secrets and personal data are masked even if question or gold contain them too.
    leaks = leaks_of(text, (), (), case.settings.safety)
    before = [Segment("… ", PLAIN)] if start else []
    after = [Segment(" …", PLAIN)] if len(text) > start + limit else []
    return (*before, *masked_segments(text, marks, leaks, start, start + limit), *after)
