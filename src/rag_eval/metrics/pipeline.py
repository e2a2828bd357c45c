"""Pipeline: requirements of the gold item on outcome, flags, citations and latency.

Questions only, no attacks. An empty list, a budget without stages and a minimum of 0 require nothing, so the metric
does not apply: a certain success would only raise the value. A missing trace fails every requirement.
"""

from __future__ import annotations

from typing import Any

from rag_eval.cases import Case
from rag_eval.metrics._metric import metric

_UNSURE = 0.5
_TERMS: dict[str, Any] = {"source": "enterprise framework", "settings": ""}


@metric("questions with an expected outcome", needs="gold.expected_outcome", **_TERMS)
def outcome_match(case: Case) -> bool | None:
    """Share of questions with the expected outcome. The outcome is the first of these that applies. blocked: the flag guardrail_blocked. no_results: the flag no_context, or nothing retrieved without an error. uncertain: the flag uncertain, or a confidence below 0.5. success: a citation. failed: anything else, also a missing trace or an error without an answer."""  # noqa: E501
    expected = case.gold.expected_outcome
    return outcome(case) == expected if expected is not None and case.counts else None


@metric("questions with required flags", needs="gold.required_flags", **_TERMS)
def required_flags(case: Case) -> bool | None:
    """Share of questions with all required flags."""
    wanted = case.gold.required_flags
    return set(wanted).issubset(case.trace.flags or ()) if wanted and case.counts else None


@metric("questions with forbidden flags", needs="gold.forbidden_flags", **_TERMS)
def forbidden_flags(case: Case) -> bool | None:
    """Share of questions without a forbidden flag. A missing trace scores 0."""
    unwanted = case.gold.forbidden_flags
    if not unwanted or not case.counts:
        return None
    return not case.missing and set(unwanted).isdisjoint(case.trace.flags or ())


@metric("questions with a minimum of citations", needs="gold.min_citations", **_TERMS)
def citations_ok(case: Case) -> bool | None:
    """Share of questions answered with at least the required number of citations. Repeated ones count once."""
    least = case.gold.min_citations
    return len(case.cites) >= least if least and case.counts else None


@metric("questions with a latency budget", needs="gold.latency_budget_ms", **_TERMS)
def latency_ok(case: Case) -> bool | None:
    """Share of questions in which every stage kept its latency budget. If no stage is over budget and a stage with a budget was not timed, the metric does not apply. A missing trace and an error without an answer score 0."""  # noqa: E501
    budget = case.gold.latency_budget
    if not budget or not case.counts:
        return None
    if case.missing or case.errored:
        return False
    spent = case.trace.latency or {}
    within_budget = [spent[stage] <= limit for stage, limit in budget.items() if stage in spent]
    return False if not all(within_budget) else True if len(within_budget) == len(budget) else None


@metric("questions to which one of the five above applies", depends_on="labels", **_TERMS)
def pipeline_pass(case: Case) -> bool | None:
    """Share of questions that pass every check of the pipeline that applies: outcome_match, required_flags, forbidden_flags, citations_ok and latency_ok."""  # noqa: E501
    gold = case.gold
    asks = gold.expected_outcome or gold.required_flags or gold.forbidden_flags or gold.min_citations
    if not (asks or gold.latency_budget):
        return None
    checks = outcome_match, required_flags, forbidden_flags, citations_ok, latency_ok
    results = [passed for check in checks if (passed := check.score(case)) is not None]
    return all(results) if results else None


def outcome(case: Case) -> str:
    """Return the outcome of a question: blocked, no_results, uncertain, success or failed.

    A failure before retrieval is ``failed``, although nothing was retrieved.
    """
    flags, trace = case.trace.flags or (), case.trace
    if "guardrail_blocked" in flags:
        return "blocked"
    if "no_context" in flags or not (trace.retrieved or case.missing or case.errored):
        return "no_results"
    if case.missing or case.errored:
        return "failed"
    if "uncertain" in flags or (trace.confidence is not None and trace.confidence < _UNSURE):
        return "uncertain"
    return "success" if case.cites else "failed"
