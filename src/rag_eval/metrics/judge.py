"""Judge: recorded verdicts of a language model on the answers. Scoring replays them and calls no model.

docs/judge.md describes how verdicts are recorded, and what a gate on one needs.
"""

from __future__ import annotations

from typing import Any

from rag_eval.cases import Case
from rag_eval.contract.settings import MOST
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import Ratio

_POINTS: dict[str, Any] = {"settings": "refusal judge", "scale": "count", "unit": "points", "maximum": MOST}


@metric("answers with chunk texts and a verdict", source="core metrics (groundedness, 0-5)", **_POINTS)
def judge_groundedness(case: Case) -> int | None:
    """Mean score of groundedness from 0 to 5. The judge rates the support of the answer's claims by the chunk texts; 5 also requires a citation for every major claim."""  # noqa: E501
    return case.verdict.groundedness if case.verdict and case.chunk_texts else None


@metric("answered answerable items with a verdict", source="core metrics (correctness, 0-5)", **_POINTS)
def judge_correctness(case: Case) -> int | None:
    """Mean score of correctness from 0 to 5. The judge rates correctness and completeness, given the question, the chunk texts and the expected answer if there is one."""  # noqa: E501
    return case.verdict.correctness if case.verdict and case.is_answerable else None


@metric(
    "answers with a verdict", source="RAG-server framework (answer_relevancy)", scale="share", settings="refusal judge"
)
def judge_relevancy(case: Case) -> Ratio | None:
    """Mean relevancy of the answer to the question. The judge gives 0 to 5 points, which count as shares of 5."""
    return (case.verdict.relevancy, 5) if case.verdict else None


@metric(
    "answers with chunk texts and a verdict",
    source="core metrics (unsupported_claims)",
    settings="refusal judge",
    better="lower",
    scale="count",
    folds={"": "mean", ".total": "total"},
    unit="claims",
)
def judge_unsupported_claims(case: Case) -> int | None:
    """Number of claims of an answer that the chunk texts do not support, as the judge lists them."""
    return len(case.verdict.unsupported_claims) if case.verdict and case.chunk_texts else None
