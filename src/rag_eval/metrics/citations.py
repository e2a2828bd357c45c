"""Citations: references to the evidence, to retrieved chunks and to the right sections."""

from __future__ import annotations

from typing import Any

from rag_eval.cases import Case
from rag_eval.cases.ranking import matches, section_of, sections_of
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import Ratio
from rag_eval.textual.tokens import content_words, passage

_FORM: dict[str, Any] = {"source": "enterprise framework, form check", "scale": "share"}
_SERVER: dict[str, Any] = {"source": "RAG-server framework", "scale": "share"}
_OF_EVIDENCE: dict[str, Any] = {**_SERVER, "depends_on": "features", "version": 2}


@metric("answers", source="reference scorer", depends_on="features", version=2)
def chr(case: Case) -> bool | None:  # noqa: A001 - the field's name for the citation hit rate
    """Citation hit rate: share of answers that cite gold evidence. The item is answerable, every cited chunk was retrieved, and at least one is gold evidence. Evidence is the first of these that the item has: gold citations, chunks with grade 1 or more, supports, sections, documents. If the item has no evidence, the answer must cite nothing."""  # noqa: E501
    return case.is_answerable and case.citation_hit if not case.refused and case.counts else None


@metric("answerable items", source="Example 08", depends_on="features", version=2)
def chr_answerable(case: Case) -> bool | None:
    """Share of answerable items that were answered with a citation of gold evidence. Refusals count as misses."""
    return not case.refused and case.overlap if case.is_answerable else None


@metric("answers with citations", needs="trace.citations", depends_on="features", **_FORM)
def citation_validity(case: Case) -> Ratio | None:
    """Share of an answer's citations that were retrieved."""
    if not _cites(case):
        return None
    return len(set(case.cites).intersection(case.trace.retrieved)), len(case.cites)


@metric(
    "answers with citations and chunk texts",
    source="enterprise framework, content check",
    scale="share",
    needs="trace.citations trace.chunks.text",
)
def citation_support(case: Case) -> Ratio | None:
    """Share of an answer's citations whose chunk contains at least half of the claim's content words. Content words are tokens except stop words. An answer without content words is left out."""  # noqa: E501
    words = content_words(case.claim) if _cites(case) else None
    if not words or not case.chunk_texts:
        return None
    texts = [chunk.text for chunk in case.cited_chunks if chunk.text is not None]
    shared = [len(words & passage(text).distinct) for text in texts]
    return sum([2 * count >= len(words) for count in shared]), len(case.cites)


@metric("answered answerable items with gold evidence, with citations", needs="trace.citations", **_OF_EVIDENCE)
def citation_precision(case: Case) -> Ratio | None:
    """Share of an answer's citations that are gold evidence. Evidence is the first of these that the item has: gold citations, chunks with grade 1 or more, supports, sections, documents."""  # noqa: E501
    if not case.is_answerable or not case.evidence_level or not _cites(case):
        return None
    return len(case.cited_evidence), len(case.cites)


@metric("answered answerable items with gold evidence", **_OF_EVIDENCE)
def citation_recall(case: Case) -> Ratio | None:
    """Share of the gold evidence that the answer cites. Evidence is the first of these that the item has: gold citations, chunks with grade 1 or more, supports, sections, documents. An answer without citations scores 0."""  # noqa: E501
    if not case.is_answerable or case.refused or not case.evidence_level:
        return None
    return case.evidence_cited


@metric("answered answerable items with sections, with citations", needs="gold.sections trace.citations", **_SERVER)
def section_accuracy(case: Case) -> Ratio | None:
    """Share of an answer's citations whose document and section are a gold pair."""
    if not case.is_answerable or not case.gold.sections or not _cites(case):
        return None
    wanted = sections_of(case.gold)
    return sum(section_of(chunk) in wanted for chunk in case.cited_chunks), len(case.cites)


@metric(
    "answerable items with expected documents",
    source="enterprise framework (expected_citations)",
    needs="gold.expected_documents",
)
def document_citation_hit(case: Case) -> bool | None:
    """Share of answerable items that were answered with a citation of an expected document. A citation counts if its chunk's doc_id or the citation itself is the document's id. Refusals count as misses."""  # noqa: E501
    if not case.is_answerable or not case.gold.expected_documents:
        return None
    cited = {*case.cites, *[chunk.doc_id for chunk in case.cited_chunks]}
    return not case.refused and not cited.isdisjoint(case.gold.expected_documents)


@metric(
    "answers with citations, if a retrieved chunk names its document",
    needs="trace.citations trace.chunks.doc_id",
    **_FORM,
)
def document_citation_validity(case: Case) -> Ratio | None:
    """Share of an answer's citations that name a retrieved chunk or its document."""
    documents = {chunk.doc_id for chunk in case.trace.chunks or () if chunk.doc_id is not None}
    if not documents or not _cites(case):
        return None
    return len(documents.union(case.trace.retrieved).intersection(case.cites)), len(case.cites)


@metric("answerable items with supports", source="core metrics", needs="gold.supports")
def attribution_hit(case: Case) -> bool | None:
    """Share of answerable items with a cited chunk that matches a support."""
    if not case.is_answerable or not case.gold.supports:
        return None
    return any(matches(chunk, support) for chunk in case.cited_chunks for support in case.gold.supports)


@metric(
    "items with a recency rule and supports", source="core metrics", needs="gold.recency_conflict_rule gold.supports"
)
def recency_rule(case: Case) -> bool | None:
    """Share of items whose answer follows the rule for contradicting supports. cite_newer requires a citation of the newest (last) support, cite_both and acknowledge_both of every support."""  # noqa: E501
    supports = case.gold.supports
    if case.gold.recency_rule is None or not supports or not case.counts:
        return None
    wanted = supports[-1:] if case.gold.recency_rule == "cite_newer" else supports
    return all(any(matches(chunk, support) for chunk in case.cited_chunks) for support in wanted)


def _cites(case: Case) -> bool:
    return not case.refused and case.counts and bool(case.cites)
