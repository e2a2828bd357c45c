"""Answers, refusals and citations: what the text of an answer says, when it is missing, and what it refers to."""

from __future__ import annotations

import re
from functools import partial
from hashlib import sha256
from typing import Any

from rag_eval.cases import GOOD, Case, label
from rag_eval.cases.ranking import matches, section_of, sections_of
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import Ratio
from rag_eval.textual.tokens import content_words, tokens

refusal_metric = partial(metric, group="refusals")
citation_metric = partial(metric, group="citations")
_SQUAD: dict[str, Any] = {"source": "SQuAD 2.0 (abstention as a classifier)", "depends_on": "features"}
_PHRASE = re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}")
_SHORTEST_PHRASE = 5


@metric("answers", source="reference scorer", depends_on="features", version=3)
def precision(case: Case) -> bool | None:
    """Share of answers that are correct and correctly cited. The item is answerable, the claim contains a gold substring (if the item has any), every cited chunk was retrieved, and gold evidence is cited as in chr."""  # noqa: E501
    return case.is_answerable and case.contained and case.citation_hit if not case.refused and case.counts else None


@metric("answers", source="Markdown scorer of the RAG examples (Example 08)", depends_on="features", version=2)
def hit_precision(case: Case) -> bool | None:
    """Share of answers that cite gold evidence of an answerable item. The text of the claim does not count."""
    return case.is_answerable and case.overlap if not case.refused and case.counts else None


@metric("answerable items with an expected answer", source="Example 08", needs="gold.expected_answer", version=2)
def containment(case: Case) -> bool | None:
    """Share of answerable items whose answer contains a phrase of the expected answer. Phrases are sequences of at least five letters, digits, hyphens and spaces in the lower-cased expected answer. A refusal scores 0."""  # noqa: E501
    if not case.is_answerable or case.gold.expected_answer is None:
        return None
    if case.refused:
        return False
    answer = case.claim.lower()
    return any(phrase in answer for phrase in phrases(case.gold.expected_answer))


@metric("all items", source="Example 08", depends_on="features")
def compliance(case: Case) -> bool | None:
    """Share of answers in the required form: the claim is the refusal token, or the answer has a list of citations."""
    return case.is_refusal_token or case.trace.citations is not None if case.counts else None


@metric("all items", source="rag-eval", depends_on="features", version=2)
def answered_rate(case: Case) -> bool | None:
    """Share of questions that got an answer: no refusal, no empty text, no missing trace. Compare it with precision."""
    return not case.refused and bool(case.claim) if case.counts else None


@metric(
    "items of a conversation",
    source="rag-eval",
    scale="labelled",
    needs="gold.conversation",
    folds={"": "all", ".turns": "turns"},
)
def conversation_pass(case: Case) -> tuple[float, bool] | None:
    """Share of conversations in which every turn has the label OK or REFUSAL_OK. A score identifies the conversation and marks a right turn. All runs count."""  # noqa: E501
    name = case.gold.conversation
    if name is None or not case.counts:
        return None
    number = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:5], "big")
    return round(number / 2**40, 12), label(case) in GOOD


def phrases(expected: str) -> list[str]:
    """Return the phrases of an expected answer, of which an answer must contain one for containment."""
    texts = (phrase.strip() for phrase in _PHRASE.findall(expected.lower()))
    return [phrase for phrase in texts if len(phrase) >= _SHORTEST_PHRASE]


@refusal_metric("unanswerable items", source="reference scorer", better="lower", depends_on="features")
def under_refusal(case: Case) -> bool | None:
    """Share of unanswerable questions that were answered. Other names are hallucination rate on unanswerable questions, and abstention false negative rate."""  # noqa: E501
    return not case.refused if case.is_unanswerable else None


@refusal_metric("answerable items", source="reference scorer", better="lower", depends_on="features")
def over_refusal(case: Case) -> bool | None:
    """Share of answerable questions that were refused. Another name is abstention false positive rate."""
    return case.refused if case.is_answerable else None


@refusal_metric("all items", source="RAG-server framework (unanswerable_accuracy)", depends_on="features")
def abstention_accuracy(case: Case) -> bool | None:
    """Share of questions for which refusing or answering was right. The content of the answer does not count."""
    return case.refused != case.gold.answerable if case.counts else None


@refusal_metric("refusals", **_SQUAD)
def abstention_precision(case: Case) -> bool | None:
    """Share of refusals that were right: the question is unanswerable."""
    return case.is_unanswerable if case.refused and case.counts else None


@refusal_metric("unanswerable items", **_SQUAD)
def abstention_recall(case: Case) -> bool | None:
    """Share of unanswerable questions that were refused. It is one minus under_refusal."""
    return case.refused if case.is_unanswerable else None


@refusal_metric("refusals, and unanswerable items", folds={"": "f1"}, **_SQUAD)
def abstention_f1(case: Case) -> bool | None:
    """F1 of refusing as a classifier of unanswerable questions: the harmonic mean of abstention_precision and abstention_recall. A right refusal scores 1; a refusal of an answerable question and an answer to an unanswerable one score 0."""  # noqa: E501
    return case.is_unanswerable and case.refused if case.counts and (case.refused or case.is_unanswerable) else None


@refusal_metric("refusals", source="reference scorer's contract", depends_on="features")
def exact_refusal(case: Case) -> bool | None:
    """Share of refusals that are exactly the refusal token and cite nothing."""
    if not case.refused or not case.counts:
        return None
    return case.trace.claim == case.settings.token and not case.cites


_FORM: dict[str, Any] = {"source": "enterprise framework, form check", "scale": "share"}
_SERVER: dict[str, Any] = {"source": "RAG-server framework", "scale": "share"}
_OF_EVIDENCE: dict[str, Any] = {**_SERVER, "depends_on": "features", "version": 2}


@citation_metric("answers", source="reference scorer", depends_on="features", version=2)
def chr(case: Case) -> bool | None:  # noqa: A001 - the field's name for the citation hit rate
    """Citation hit rate: share of answers that cite gold evidence. The item is answerable, every cited chunk was retrieved, and at least one is gold evidence. Evidence is the first of these that the item has: gold citations, chunks with grade 1 or more, supports, sections, documents. If the item has no evidence, the answer must cite nothing."""  # noqa: E501
    return case.is_answerable and case.citation_hit if not case.refused and case.counts else None


@citation_metric("answerable items", source="Example 08", depends_on="features", version=2)
def chr_answerable(case: Case) -> bool | None:
    """Share of answerable items that were answered with a citation of gold evidence. Refusals count as misses."""
    return not case.refused and case.overlap if case.is_answerable else None


@citation_metric("answers with citations", needs="trace.citations", depends_on="features", **_FORM)
def citation_validity(case: Case) -> Ratio | None:
    """Share of an answer's citations that were retrieved."""
    if not _cites(case):
        return None
    return len(set(case.cites).intersection(case.trace.retrieved)), len(case.cites)


@citation_metric(
    "answers with citations and chunk texts",
    source="enterprise framework, content check",
    scale="share",
    needs="trace.citations trace.chunks.text",
)
def citation_support(case: Case) -> Ratio | None:
    """Share of an answer's citations whose chunk contains at least half of the claim's content words. Content words are tokens except stop words. An answer without content words is left out."""  # noqa: E501
    texts = case.texts_by_id if _cites(case) else None
    words = content_words(case.claim) if texts else None
    if not texts or not words:
        return None
    shared = [len(words.intersection(tokens(texts[cite]))) for cite in case.cites if cite in texts]
    return sum([2 * count >= len(words) for count in shared]), len(case.cites)


@citation_metric(
    "answered answerable items with gold evidence, with citations", needs="trace.citations", **_OF_EVIDENCE
)
def citation_precision(case: Case) -> Ratio | None:
    """Share of an answer's citations that are gold evidence. Evidence is the first of these that the item has: gold citations, chunks with grade 1 or more, supports, sections, documents."""  # noqa: E501
    if not case.is_answerable or not case.evidence_level or not _cites(case):
        return None
    return len(case.cited_evidence), len(case.cites)


@citation_metric("answered answerable items with gold evidence", **_OF_EVIDENCE)
def citation_recall(case: Case) -> Ratio | None:
    """Share of the gold evidence that the answer cites. Evidence is the first of these that the item has: gold citations, chunks with grade 1 or more, supports, sections, documents. An answer without citations scores 0."""  # noqa: E501
    if not case.is_answerable or case.refused or not case.evidence_level:
        return None
    return case.evidence_cited


@citation_metric(
    "answered answerable items with sections, with citations", needs="gold.sections trace.citations", **_SERVER
)
def section_accuracy(case: Case) -> Ratio | None:
    """Share of an answer's citations whose document and section are a gold pair."""
    if not case.is_answerable or not case.gold.sections or not _cites(case):
        return None
    wanted = sections_of(case.gold)
    return sum(section_of(chunk) in wanted for chunk in case.cited_chunks), len(case.cites)


@citation_metric(
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


@citation_metric(
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


@citation_metric("answerable items with supports", source="core metrics", needs="gold.supports")
def attribution_hit(case: Case) -> bool | None:
    """Share of answerable items with a cited chunk that matches a support."""
    if not case.is_answerable or not case.gold.supports:
        return None
    return any(matches(chunk, support) for chunk in case.cited_chunks for support in case.gold.supports)


@citation_metric(
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
