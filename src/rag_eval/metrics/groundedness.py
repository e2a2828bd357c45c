"""Groundedness: do the chunks support what the answer says, sentence by sentence, without a judge.

docs/groundedness.md describes how sentences are compared with chunks, and how far the metrics agree with people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import DECIMALS

if TYPE_CHECKING:
    from rag_eval.cases.case import Case
    from rag_eval.stats.tally import Ratio

_CHECKED = "shipped answers with chunk texts and a sentence to check"


@metric(
    _CHECKED,
    source="enterprise framework",
    version=4,
    scale="share",
    needs="trace.chunks.text",
    settings="refusal groundedness",
)
def claim_support(case: Case) -> Ratio | None:
    """Share of the checked sentences of an answer that the chunks support. A sentence is supported if its groundedness reaches `groundedness.assertion`, or `groundedness.inference` if it says may, might, likely or the like, if no number in it is made up, and if the chunks do not deny it. Questions, pleasantries, headings, transitions, code, citations, and sentences that say that the sources lack something are not checked."""  # noqa: E501
    verdicts = _verdicts(case)
    return (sum(verdicts), len(verdicts)) if verdicts else None


@metric(
    _CHECKED,
    source="enterprise framework",
    version=4,
    better="lower",
    scale="count",
    needs="trace.chunks.text",
    folds={"": "mean", ".total": "total"},
    settings="refusal groundedness",
    unit="sentences",
)
def unsupported_claims(case: Case) -> int | None:
    """How many checked sentences of an answer the chunks do not support."""
    verdicts = _verdicts(case)
    return len(verdicts) - sum(verdicts) if verdicts else None


@metric(
    "shipped answers with chunk texts",
    source="enterprise framework",
    version=4,
    better="lower",
    scale="count",
    needs="trace.chunks.text",
    folds={"": "mean", ".total": "total"},
    unit="numbers",
)
def numeric_fabrication(case: Case) -> int | None:
    """How many numbers an answer makes up: distinct ones that are in no chunk. 1,000 is 1000, 15% is 15 percent, three is 3. A number of one or two digits has to occur within ten words of a content word of its sentence. Numbers of the question, numbers of list items, versions, decades, cited years and counts of listed things are not made up."""  # noqa: E501
    if case.grounded is None:
        return None
    return len({one.sentence.keys[place] for one in case.grounded for place in one.support.made_up})


@metric(
    "shipped answers to items with expected claims",
    source="enterprise framework",
    version=4,
    scale="share",
    needs="gold.expected_claims",
)
def expected_claims_found(case: Case) -> Ratio | None:
    """Share of the expected claims that an answer makes. It makes a claim if its sentences have nearly all words of the claim and all its numbers, and do not deny it."""  # noqa: E501
    claims = case.gold.expected_claims
    if not claims or not case.shipped or not case.counts:
        return None
    return sum(_makes(case, claim) for claim in claims), len(claims)


@metric(
    "shipped answers to items with forbidden claims",
    source="enterprise framework",
    version=4,
    better="lower",
    needs="gold.forbidden_claims",
)
def forbidden_claims_made(case: Case) -> bool | None:
    """Share of answers that make a forbidden claim. An answer makes a claim if it has nearly all words of the claim and all its numbers, and does not deny it."""  # noqa: E501
    claims = case.gold.forbidden_claims
    if not claims or not case.shipped or not case.counts:
        return None
    return any(_makes(case, claim) for claim in claims)


@metric(
    "shipped answers with chunk texts and a content word",
    source="rag-eval",
    version=4,
    scale="real",
    needs="trace.chunks.text",
    settings="refusal",
)
def groundedness(case: Case) -> float | None:
    """How far the chunks support an answer: a signal for regression gates, no probability. It is the mean of three shares: content words that are in the chunks, pairs of neighbouring words that are neighbours there, and pairs of neighbouring content words within ten words of each other there. On three known sets of people's labels the area under the ROC curve is .938 to .949. Texts differ: thresholds do not transfer from one system to another."""  # noqa: E501
    from rag_eval.textual.grounding import groundedness

    found = groundedness(case.grounded or ())
    return None if found is None else round(found, DECIMALS)


def _verdicts(case: Case) -> list[bool]:
    """Return the verdict on each checked sentence."""
    from rag_eval.textual.grounding import supported

    found = [supported(one, *case.settings.groundedness) for one in case.grounded or ()]
    return [verdict for verdict in found if verdict is not None]


def _makes(case: Case, claim: str) -> bool:
    from rag_eval.textual.grounding import makes

    return makes(case.prose, claim)
