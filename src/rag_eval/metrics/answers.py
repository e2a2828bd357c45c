"""Answers: right answers, their form, and the share of questions that got one."""

from __future__ import annotations

import re
from hashlib import sha256

from rag_eval.cases import GOOD, Case, label
from rag_eval.metrics._metric import metric

_PHRASE = re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}")
_SHORTEST_PHRASE = 5


@metric("answers", source="reference scorer", depends_on="features", version=2)
def precision(case: Case) -> bool | None:
    """Share of answers that are correct and correctly cited. The item is answerable, the claim contains a gold substring (if the item has any), every cited chunk was retrieved, and gold evidence is cited as in chr."""  # noqa: E501
    return case.is_answerable and case.contained and case.citation_hit if not case.refused and case.counts else None


@metric("answers", source="Markdown scorer of the RAG examples (Example 08)", depends_on="features", version=2)
def hit_precision(case: Case) -> bool | None:
    """Share of answers that cite gold evidence of an answerable item. The text of the claim does not count."""
    return case.is_answerable and case.overlap if not case.refused and case.counts else None


@metric("answerable items with an expected answer", source="Example 08", needs="gold.expected_answer")
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
