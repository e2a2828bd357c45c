"""Perturbations: known ways for a trace to get worse, each a function from a sample to the perturbed row.

Decoded rows are perturbed, so that all readers of traces see the perturbation. Nothing here writes a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple

from msgspec import structs

from rag_eval.cases import Case
from rag_eval.cases.ranking import matches
from rag_eval.contract import Gold, Settings, Trace

Row = dict[str, Any]
Perturbation = Callable[["TraceSample"], "Row | None"]
_SAID = "Yes, that is how it is."
_SLOWED, _SLOWER = ("generate", "total"), 10_000  # stages; milliseconds


class TraceSample(NamedTuple):
    """A trace row as it was decoded, with its case. ``donor`` is the answer to another question, empty without one."""

    row: Row
    case: Case
    donor: str = ""

    @classmethod
    def of(cls, row: Row, gold: Gold, line: int, settings: Settings) -> TraceSample:
        """Return the sample of a valid row that answers ``gold``."""
        return cls(row, Case(gold, Trace.from_row(row, gold.qid, line), settings))

    def again(self, row: Row) -> Trace:
        """Return the trace of a perturbed row, in place of this one."""
        return Trace.from_row(row, self.case.gold.qid, self.case.trace.line)


class Kind(NamedTuple):
    """A perturbation: its name, its description, and a function from a sample to a row, None if not applicable."""

    name: str
    text: str
    perturb: Perturbation


def in_order(samples: Iterable[TraceSample]) -> list[TraceSample]:
    """Return the samples by a hash of their qid: the first n are always the same.

    The donor of an answer is the next different one, in a circle; there is none if all are equal.
    """

    def rank(sample: TraceSample) -> tuple[bytes, str]:
        return sha256(sample.case.gold.qid.encode("utf-8", "surrogatepass")).digest(), sample.case.trace.run

    ordered = [sample._replace(donor="") for sample in sorted(samples, key=rank)]
    answers = [
        (index, sample.case.claim)
        for index, sample in enumerate(ordered)
        if _answers(sample) and not sample.case.is_refusal_token and sample.case.claim
    ]
    if len({claim for _, claim in answers}) < 2:
        return ordered
    donor = next(claim for _, claim in answers if claim != answers[-1][1])
    for (index, claim), (_, following) in zip(reversed(answers), reversed([*answers[1:], answers[0]]), strict=True):
        donor = following if following != claim else donor
        ordered[index] = ordered[index]._replace(donor=donor)
    return ordered


def cases_of(percent: Fraction, applicable: int) -> int:
    """Return the number of cases for a perturbation rate in percent, rounded up so that the lowest rate is one case."""
    return min(applicable, ceil(percent * applicable / 100))


def relevant(case: Case) -> frozenset[str]:
    """Return the ids of everything that a label of the gold calls relevant, including chunks."""
    gold, chunks = case.gold, case.trace.chunks or ()
    ids = {*gold.citations, *_positive(gold.relevance_grades)}
    docs = {*(gold.relevant_docs or ()), *_positive(gold.doc_grades)}
    ids.update(chunk.id for chunk in chunks if chunk.doc_id in docs)
    ids.update(chunk.id for chunk in chunks if any(matches(chunk, support) for support in gold.supports or ()))
    return frozenset(ids)


def chunk_dropped(sample: TraceSample) -> Row | None:
    """Remove every relevant chunk from the retrieved ones."""
    case = sample.case
    if not case.is_answerable or case.ranking is None or not case.ranking.first_ranks:
        return None
    lost = relevant(case)
    return _rearranged(sample, lambda ids: [name for name in ids if name not in lost])


def chunk_below_k(sample: TraceSample) -> Row | None:
    """Move relevant chunks behind all others and behind rank k; unknown chunks fill short lists."""
    case, k = sample.case, sample.case.settings.k
    if (
        not case.is_answerable
        or case.ranking is None
        or not case.ranking.first_ranks
        or case.ranking.first_ranks[0] > k
    ):
        return None
    last = relevant(case)
    fill = [f"probe-filler-{number}" for number in range(1, k + 1)]
    docs = {name: chunk.doc_id for name, chunk in case.chunks_by_id.items()}
    by_documents = case.ranking.level == "doc"

    def arrange(ids: Sequence[str]) -> list[str]:
        others = [name for name in ids if name not in last]
        units = {docs.get(name) for name in others} - {None} if by_documents else set(others)
        return [*others, *fill[: max(0, k - len(units))], *(name for name in ids if name in last)]

    return _rearranged(sample, arrange)


def wrong_citation(sample: TraceSample) -> Row | None:
    """Replace every right citation by a wrong chunk that was retrieved."""
    case = sample.case
    right = relevant(case)
    wrong = [name for name in case.trace.retrieved if name not in right and name not in case.cites]
    if not case.is_answerable or not _answers(sample) or right.isdisjoint(case.cites) or not wrong:
        return None
    cites = [wrong[index % len(wrong)] if name in right else name for index, name in enumerate(case.cites)]
    return _answering(sample.row, case.trace.claim, list(dict.fromkeys(cites)))


def refusal_answered(sample: TraceSample) -> Row | None:
    """Replace a right refusal by an answer that cites the first chunk."""
    case = sample.case
    if not case.is_unanswerable or not case.refused or case.blocked:  # a blocked answer is a refusal
        return None
    return _answering(sample.row, _SAID, list(case.trace.retrieved[:1]), refuses=False)


def answer_refused(sample: TraceSample) -> Row | None:
    """Replace the answer to an answerable question by a refusal."""
    if not sample.case.is_answerable or not _answers(sample):
        return None
    return _answering(sample.row, sample.case.settings.token, [], refuses=True)


def answer_blanked(sample: TraceSample) -> Row | None:
    """Empty the answer to an answerable question; its citations stay."""
    case = sample.case
    if not case.is_answerable or not _answers(sample) or not case.claim:
        return None
    return _answering(sample.row, "", case.trace.citations)


def claim_swapped(sample: TraceSample) -> Row | None:
    """Replace the answer to an answerable question by that to another one; its citations stay."""
    case = sample.case
    if not case.is_answerable or not _answers(sample) or not sample.donor:
        return None
    return _answering(sample.row, sample.donor, case.trace.citations)


def latency_added(sample: TraceSample) -> Row | None:
    """Add ten seconds to the time of generation, or to every stage if generation is not timed."""
    spent = sample.row.get("latency_ms")
    if not spent:
        return None
    slowed = [stage for stage in spent if stage in _SLOWED] or list(spent)
    return {**sample.row, "latency_ms": {**spent, **{stage: spent[stage] + _SLOWER for stage in slowed}}}


KINDS = (
    Kind("chunk-dropped", "no relevant chunk is retrieved", chunk_dropped),
    Kind("chunk-below-k", "relevant chunks are retrieved below k", chunk_below_k),
    Kind("wrong-citation", "right citations become citations of other retrieved chunks", wrong_citation),
    Kind("refusal-answered", "right refusals become answers", refusal_answered),
    Kind("answer-refused", "answers become refusals", answer_refused),
    Kind("answer-blanked", "answers become empty", answer_blanked),
    Kind("claim-swapped", "answers become answers to other questions", claim_swapped),
    Kind("latency-added", "generation takes ten seconds longer", latency_added),
)
"""Every perturbation; to add one, add a row."""


def _answers(sample: TraceSample) -> bool:
    return not sample.case.refused and not sample.case.errored


def _positive(grades: Mapping[str, int] | None) -> set[str]:
    return {name for name, grade in (grades or {}).items() if grade > 0}


def _rearranged(sample: TraceSample, arrange: Callable[[Sequence[str]], list[str]]) -> Row:
    """Return the row with its retrieved ids and its chunks in the order that ``arrange`` gives their ids.

    The results of its retrievals become its ids and chunks, as the trace has them.
    """
    row, trace = dict(sample.row), sample.case.trace
    if trace.retrievals is not None:
        if row.get("retrieved_ids") is None:
            row["retrieved_ids"] = list(trace.retrieved)
        if row.get("chunks") is None and trace.chunks is not None:
            chunks = map(structs.asdict, trace.chunks)
            row["chunks"] = [{name: value for name, value in chunk.items() if value is not None} for chunk in chunks]
        row["retrievals"] = [
            {**{name: value for name, value in stated.items() if name != "chunks"}, "ids": list(retrieval.retrieved)}
            for stated, retrieval in zip(row["retrievals"], trace.retrievals, strict=True)
        ]
    if row.get("retrieved_ids") is not None:
        row["retrieved_ids"] = arrange(list(dict.fromkeys(row["retrieved_ids"])))
    if row.get("chunks"):
        by_id: dict[str, list[Any]] = {}
        for chunk in row["chunks"]:
            by_id.setdefault(chunk["id"], []).append(chunk)
        has_documents = any("doc_id" in chunk for chunk in row["chunks"])
        row["chunks"] = []
        for name in arrange(list(by_id)):
            row["chunks"] += by_id.get(name) or [{"id": name, **({"doc_id": name} if has_documents else {})}]
    return row


def _answering(row: Row, claim: str, cites: Sequence[str] | None, *, refuses: bool | None = None) -> Row:
    """Return the row with another answer in the same form; ``refuses`` is set if the row states it."""
    row, cited = dict(row), {} if cites is None else {"citations": list(cites)}
    if row.get("answer_json") is not None:
        row["answer_json"] = {**row["answer_json"], "claim": claim, **cited}
    else:
        row.update(answer=claim, **cited)
    if refuses is not None and row.get("abstained") is not None:
        row["abstained"] = refuses
    return row
