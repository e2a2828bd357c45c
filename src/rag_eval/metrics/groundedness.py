"""Groundedness: support of the answer by the chunks (faithfulness), sentence by sentence, without a judge.

docs/groundedness.md describes how sentences are compared with chunks, and how far the metrics agree with people.
"""

from __future__ import annotations

from typing import Any

from rag_eval.cases import Case
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import DECIMALS, Ratio

_CHECKED = "answers with chunk texts and a sentence to check"
_TERMS: dict[str, Any] = {"source": "enterprise framework", "version": 9}
_OF_GIVEN: dict[str, Any] = {"source": "enterprise framework", "version": 10}
_COUNT: dict[str, Any] = {
    "better": "lower",
    "scale": "count",
    "needs": "trace.chunks.text",
    "folds": {"": "mean", ".total": "total"},
}


@metric(_CHECKED, scale="share", needs="trace.chunks.text", settings="refusal groundedness", **_OF_GIVEN)
def claim_support(case: Case) -> Ratio | None:
    """Share of the checked sentences of an answer that the chunks support. A sentence is supported if its groundedness reaches `groundedness.assertion` (`groundedness.inference` for sentences with may, might or likely), no number or name in it is made up, and the chunks do not deny it. Questions, pleasantries, headings, transitions, code, citations and statements about gaps in the sources are not checked."""  # noqa: E501
    verdicts = case.verdicts
    return (sum(verdicts), len(verdicts)) if verdicts else None


@metric(_CHECKED, settings="refusal groundedness", unit="sentences", **_COUNT, **_OF_GIVEN)
def unsupported_claims(case: Case) -> int | None:
    """Number of checked sentences of an answer that the chunks do not support."""
    verdicts = case.verdicts
    return len(verdicts) - sum(verdicts) if verdicts else None


@metric("answers with chunk texts", unit="numbers", **_COUNT, **_OF_GIVEN)
def numeric_fabrication(case: Case) -> int | None:
    """Number of made-up numbers in an answer: distinct numbers that are in no chunk. 1,000 is 1000, 15% is 15 percent, three is 3. A number of one or two digits must occur within ten words of a content word of its sentence. Numbers of the question, numbers of list items, versions, decades, cited years and counts of listed things are not made up."""  # noqa: E501
    if case.grounded is None or not case.claim:
        return None
    return len({item.sentence.keys[position] for item in case.grounded for position in item.made_up})


@metric("answered items with expected claims", scale="share", needs="gold.expected_claims", **_TERMS)
def expected_claims_found(case: Case) -> Ratio | None:
    """Share of the expected claims that an answer makes. It makes a claim if its sentences have nearly all words of the claim and all its numbers, and do not deny it."""  # noqa: E501
    claims = case.gold.expected_claims
    if not claims or case.refused or not case.counts:
        return None
    return sum(_makes(case, claim) for claim in claims), len(claims)


@metric("answered items with forbidden claims", better="lower", needs="gold.forbidden_claims", **_OF_GIVEN)
def forbidden_claims_made(case: Case) -> bool | None:
    """Share of answers that make a forbidden claim. An answer makes a claim if it has nearly all words of the claim and all its numbers, and does not deny it."""  # noqa: E501
    claims = case.gold.forbidden_claims
    if not claims or case.refused or not case.counts or not case.claim:
        return None
    return any(_makes(case, claim) for claim in claims)


@metric(
    "answers with chunk texts and a content word",
    source="rag-eval",
    version=9,
    scale="real",
    needs="trace.chunks.text",
    settings="refusal",
)
def groundedness(case: Case) -> float | None:
    """Faithfulness: support of an answer by the chunks, as a signal for regression gates and not as a probability. It is the mean of three shares: content words that are in the chunks, pairs of neighbouring words that are neighbours there, and pairs of neighbouring content words within ten words of each other there. On three public sets with human labels the area under the ROC curve is .938 to .951. Thresholds do not transfer from one system to another."""  # noqa: E501
    from rag_eval.textual.grounding import groundedness

    values = groundedness(case.grounded or ())
    return None if values is None else round(values, DECIMALS)


def _makes(case: Case, claim: str) -> bool:
    from rag_eval.textual.grounding import makes

    return makes(case.prose, claim)
