"""Refusals: refusing if the corpus lacks the answer, and only then."""

from __future__ import annotations

from rag_eval.cases import Case
from rag_eval.metrics._metric import metric


@metric("unanswerable items", source="reference scorer", better="lower", depends_on="features")
def under_refusal(case: Case) -> bool | None:
    """Share of unanswerable questions that were answered. Other names are hallucination rate on unanswerable questions, and abstention false negative rate."""  # noqa: E501
    return not case.refused if case.is_unanswerable else None


@metric("answerable items", source="reference scorer", better="lower", depends_on="features")
def over_refusal(case: Case) -> bool | None:
    """Share of answerable questions that were refused. Another name is abstention false positive rate."""
    return case.refused if case.is_answerable else None


@metric("all items", source="RAG-server framework (unanswerable_accuracy)", depends_on="features")
def abstention_accuracy(case: Case) -> bool | None:
    """Share of questions for which refusing or answering was right. The content of the answer does not count."""
    return case.refused != case.gold.answerable if case.counts else None


@metric("refusals", source="SQuAD 2.0 (abstention as a classifier)", depends_on="features")
def abstention_precision(case: Case) -> bool | None:
    """Share of refusals that were right: the question is unanswerable."""
    return case.is_unanswerable if case.refused and case.counts else None


@metric("unanswerable items", source="SQuAD 2.0 (abstention as a classifier)", depends_on="features")
def abstention_recall(case: Case) -> bool | None:
    """Share of unanswerable questions that were refused. It is one minus under_refusal."""
    return case.refused if case.is_unanswerable else None


@metric(
    "refusals, and unanswerable items",
    source="SQuAD 2.0 (abstention as a classifier)",
    depends_on="features",
    folds={"": "f1"},
)
def abstention_f1(case: Case) -> bool | None:
    """F1 of refusing as a classifier of unanswerable questions: the harmonic mean of abstention_precision and abstention_recall. A right refusal scores 1; a refusal of an answerable question and an answer to an unanswerable one score 0."""  # noqa: E501
    return case.is_unanswerable and case.refused if case.counts and (case.refused or case.is_unanswerable) else None


@metric("refusals", source="reference scorer's contract", depends_on="features")
def exact_refusal(case: Case) -> bool | None:
    """Share of refusals that are exactly the refusal token and cite nothing."""
    if not case.refused or not case.counts:
        return None
    return case.trace.claim == case.settings.token and not case.cites
