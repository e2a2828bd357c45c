"""The evidence of a gold item, and the ranks at which a trace retrieved it."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.contract import Chunk, Gold, Relevance, Support
from rag_eval.textual.tokens import heading_parts

_RANKS = range(1, sys.maxsize)


class Ranking(Struct, frozen=True):
    """The ranks of relevant units among those retrieved; ranks count from 1.

    ``relevant`` is the number of relevant units (chunks, supports or documents, by ``level``), ``first_ranks`` are the
    ranks at which each is first retrieved, ascending, ``matching`` the ranks of all retrieved units that are relevant.
    ``complete_at`` is the rank at which all required units have been retrieved: 0 if none is required, None if never.
    ``gains`` are (rank, gain) of the retrieved graded units, ``ideal`` all positive gains, largest first. For items
    with grades, ``rejected`` are the ranks of units judged irrelevant, ``irrelevant`` is their number, and ``depth``
    the number of retrieved units. ``counts`` is true if an item without relevant units counts as 0.
    """

    level: str
    relevant: int
    first_ranks: tuple[int, ...]
    matching: tuple[int, ...]
    complete_at: int | None
    gains: tuple[tuple[int, int], ...]
    ideal: tuple[int, ...]
    rejected: tuple[int, ...] = ()
    irrelevant: int | None = None
    depth: int = 0
    counts: bool = True


def matches(chunk: Chunk, support: Support) -> bool:
    """Return whether a chunk is at the position of a support, and contains one of its snippets if it has any."""
    if chunk.rel_path != support.rel_path:
        return False
    wanted = heading_parts(support.heading_path)
    if heading_parts(chunk.heading_path or "")[: len(wanted)] != wanted:
        return False
    if not support.snippets:
        return True
    text = _folded(chunk.text or "")
    return any([part and part in text for part in map(_folded, support.snippets)])


@lru_cache(maxsize=1024)
def _folded(text: str) -> str:
    """Return ``text`` with white space collapsed: chunkers break lines where documents do not."""
    return " ".join(text.split())


def evidence_level(gold: Gold) -> str:
    """Return the form of an item's evidence: ``chunk``, ``support``, ``section`` or ``doc``; empty without any.

    The most specific form counts: chunk ids, anchors, sections, documents.
    """
    if evidence_ids(gold):
        return "chunk"
    if gold.supports:
        return "support"
    if gold.sections:
        return "section"
    return "doc" if expected_documents_of(gold) else ""


def evidence_ids(gold: Gold) -> frozenset[str]:
    """Return the chunk ids of the evidence: the citations, otherwise the ids with a positive grade."""
    return frozenset(gold.citations) or positive(gold.relevance_grades)


def expected_documents_of(gold: Gold) -> frozenset[str]:
    """Return the documents that are right citations: for items with chunk ids only the expected documents."""
    if gold.expected_documents or evidence_ids(gold):
        return frozenset(gold.expected_documents or ())
    return positive(gold.doc_grades) or frozenset(gold.relevant_docs or ())


def document_of(chunk: Chunk) -> str:
    """Return the document of a chunk; a citation or retrieved id may be a document itself."""
    return chunk.id if chunk.doc_id is None else chunk.doc_id


def section_of(chunk: Chunk) -> tuple[str | None, str | None]:
    """Return the document and the section of a chunk."""
    return chunk.doc_id, chunk.section


def sections_of(gold: Gold) -> frozenset[tuple[str | None, str | None]]:
    """Return the documents and sections that are right citations."""
    return frozenset([(section.doc_id, section.section) for section in gold.sections or ()])


def ranks_of(units: Container[str], retrieved: Iterable[str]) -> Iterator[int]:
    """Return the ranks, from 1, at which some of ``units`` were retrieved."""
    return compress(_RANKS, map(units.__contains__, retrieved))


def rank_ids(
    level: str, labels: Sequence[str], grades: Mapping[str, int] | None, retrieved: Sequence[str], terms: Relevance
) -> Ranking:
    """Return the ranks of the relevant ids: by grades if there are any, otherwise the ``labels``.

    With grades, labels decide only if every positive grade is relevant. If all grades are 0, each label has the gain 1:
    otherwise no order could have a gain.
    """
    relevant, gain_of = frozenset(labels), {**(grades or {})}
    if not any(gain_of.values()):
        gain_of |= dict.fromkeys(labels, 1)
    if grades and (terms.relevant_from != 1 or not relevant):
        relevant = frozenset(unit for unit, grade in grades.items() if grade >= terms.relevant_from)
    ranks = tuple(ranks_of(relevant, retrieved))
    gains = tuple([(rank, gain_of[retrieved[rank - 1]]) for rank in ranks_of(gain_of, retrieved)])
    complete, ideal = max(ranks, default=0) if len(ranks) == len(relevant) else None, _ideal(gain_of.values())
    ranking = Ranking(level, len(relevant), ranks, ranks, complete, gains, ideal, counts=bool(relevant))
    if not grades:
        return ranking
    rejected = frozenset(unit for unit, grade in grades.items() if grade < terms.relevant_from) - relevant
    return replace(
        ranking,
        rejected=tuple(ranks_of(rejected, retrieved)),
        irrelevant=len(rejected),
        depth=len(retrieved),
        counts=bool(relevant) or terms.no_relevant == "zero",
    )


def rank_supports(gold: Gold, chunks: Sequence[Chunk]) -> Ranking:
    """Return the ranks of the chunks that match the supports."""
    supports = gold.supports or ()
    hits = [[matches(chunk, support) for chunk in chunks] for support in supports]
    first = [row.index(True) + 1 if True in row else None for row in hits]
    ranks = tuple(sorted(rank for rank in first if rank))
    matching = tuple(rank for rank in range(1, len(chunks) + 1) if any(row[rank - 1] for row in hits))
    # A chunk that matches several supports takes as many ranks: no order can be better than the ideal.
    gains = tuple((max(rank, index), 1) for index, rank in enumerate(ranks, 1))
    groups = gold.support_groups or [(index,) for index in range(len(supports))]
    all_ranks = [min((rank for index in group if (rank := first[index])), default=None) for group in groups]
    complete = None if None in all_ranks else max((rank for rank in all_ranks if rank), default=0)
    return Ranking("support", len(supports), ranks, matching, complete, gains, _ideal([1] * len(supports)))


def positive(grades: Mapping[str, int] | None) -> frozenset[str]:
    """Return the ids with a positive grade."""
    return frozenset(unit for unit, gain in (grades or {}).items() if gain >= 1)


def _ideal(gains: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted((gain for gain in gains if gain > 0), reverse=True))
