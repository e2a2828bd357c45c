"""Groundedness: do the chunks bear out what the answer says, sentence by sentence, without a judge.

The answer is cut into sentences; one that starts by saying that it speaks in general is not checked, nor are headings
and what leads in to a list. How sentences are compared with chunks is said in docs/groundedness.md.
"""

from __future__ import annotations

from rag_eval.metrics._metric import metric
from rag_eval.tally import DECIMALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.case import Case
    from rag_eval.tally import Ratio

_CHECKED = "shipped answers with chunk texts and a sentence to check"


@metric(
    _CHECKED,
    source="enterprise framework",
    version=3,
    scale="share",
    needs="trace.chunks.text",
    settings="refusal groundedness",
)
def claim_support(case: Case) -> Ratio | None:
    """Share of the checked sentences of an answer that the chunks support. A sentence is supported when its support reaches groundedness.assertion, or groundedness.inference if it says may, might, likely or the like; when no number in it is made up; and when the chunks do not deny it."""  # noqa: E501
    verdicts = _verdicts(case)
    return (sum(verdicts), len(verdicts)) if verdicts else None


@metric(
    _CHECKED,
    source="enterprise framework",
    version=3,
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
    version=3,
    better="lower",
    scale="count",
    needs="trace.chunks.text",
    folds={"": "mean", ".total": "total"},
    unit="numbers",
)
def numeric_fabrication(case: Case) -> int | None:
    """How many numbers an answer makes up: distinct ones that are in no chunk. 1,000 is 1000, 15% is 15 percent, three is 3; dates and ordinals are their digits. A number of one or two digits has to stand within ten words of a content word of its sentence."""  # noqa: E501
    if case.grounded is None:
        return None
    found = [[part.keys[part.content[bit]] for bit in support.fabricated] for part, support, _ in case.grounded]
    return len({number for numbers in found for number in numbers})


@metric(
    "shipped answers to items with expected claims",
    source="enterprise framework",
    version=3,
    scale="share",
    needs="gold.expected_claims",
)
def expected_claims_found(case: Case) -> Ratio | None:
    """Share of the expected claims that an answer makes. It makes a claim when its sentences hold nearly all words of it, all numbers, and do not deny it."""  # noqa: E501
    claims = case.gold.expected_claims
    if not claims or not case.shipped or not case.counts:
        return None
    return sum(_makes(case, claim) for claim in claims), len(claims)


@metric(
    "shipped answers to items with forbidden claims",
    source="enterprise framework",
    version=3,
    better="lower",
    needs="gold.forbidden_claims",
)
def forbidden_claims_made(case: Case) -> bool | None:
    """Share of answers that make a forbidden claim. It is made when nearly all words of it, all numbers, stand in the answer, which does not deny it."""  # noqa: E501
    claims = case.gold.forbidden_claims
    if not claims or not case.shipped or not case.counts:
        return None
    return any(_makes(case, claim) for claim in claims)


@metric(
    _CHECKED,
    source="rag-eval",
    version=3,
    scale="real",
    needs="trace.chunks.text",
    settings="refusal",
)
def groundedness(case: Case) -> float | None:
    """How far the chunks bear out an answer. It is the mean support of its checked sentences, by the weight of their words, and the share of their words that the chunks hold as often. A graded signal, judged by how well it agrees with people."""  # noqa: E501
    from rag_eval.grounding import groundedness

    found = groundedness(case.grounded or ())
    return None if found is None else round(found, DECIMALS)


def _verdicts(case: Case) -> list[bool]:
    """Whether each of the checked sentences is supported."""
    from rag_eval.grounding import supported

    found = [supported(one, *case.settings.groundedness) for one in case.grounded or ()]
    return [verdict for verdict in found if verdict is not None]


def _makes(case: Case, claim: str) -> bool:
    from rag_eval.grounding import makes

    return makes(case.prose, claim)
