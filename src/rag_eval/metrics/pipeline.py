"""Pipeline: did the whole of it do what the question asks for.

Questions only, no attacks. A list without entries, a budget without stages and a minimum of 0 ask nothing, so that the
metric does not apply: what cannot fail would only lift the value. A missing trace keeps nothing that is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_eval.metrics._metric import metric

if TYPE_CHECKING:
    from rag_eval.cases.case import Case

_UNSURE = 0.5
_TERMS: dict[str, Any] = {"source": "enterprise framework", "settings": ""}


@metric("questions with an expected outcome", needs="gold.expected_outcome", **_TERMS)
def outcome_match(case: Case) -> bool | None:
    """Share of questions that came out as expected. The outcome is blocked with the flag guardrail_blocked; else no_results with the flag no_context, or where nothing was retrieved and no error says why; else uncertain with the flag uncertain or a confidence below 0.5; else success with a citation; else failed, as is a missing trace or an error without an answer."""  # noqa: E501
    expected = case.gold.expected_outcome
    return outcome(case) == expected if expected is not None and case.counts else None


@metric("questions with required flags", needs="gold.required_flags", **_TERMS)
def required_flags(case: Case) -> bool | None:
    """Share of questions that raised every flag they have to raise."""
    wanted = case.gold.required_flags
    return set(wanted).issubset(case.trace.flags or ()) if wanted and case.counts else None


@metric("questions with forbidden flags", needs="gold.forbidden_flags", **_TERMS)
def forbidden_flags(case: Case) -> bool | None:
    """Share of questions that raised no flag they must not raise. A missing trace scores 0."""
    unwanted = case.gold.forbidden_flags
    if not unwanted or not case.counts:
        return None
    return not case.missing and set(unwanted).isdisjoint(case.trace.flags or ())


@metric("questions with a minimum of citations", needs="gold.min_citations", **_TERMS)
def citations_ok(case: Case) -> bool | None:
    """Share of questions answered with at least as many citations as they ask for. Repeated ones count once."""
    least = case.gold.min_citations
    return len(case.cites) >= least if least and case.counts else None


@metric("questions with a latency budget", needs="gold.latency_budget_ms", **_TERMS)
def latency_ok(case: Case) -> bool | None:
    """Share of questions where every stage kept its budget. A stage over its budget decides; where none is and some stage with a budget was not timed, it is not known and does not apply. A missing trace and an error without an answer score 0."""  # noqa: E501
    budget = case.gold.latency_budget
    if not budget or not case.counts:
        return None
    if case.missing or case.errored:
        return False
    spent = case.trace.latency or {}
    kept = [spent[stage] <= most for stage, most in budget.items() if stage in spent]
    return False if not all(kept) else True if len(kept) == len(budget) else None


@metric("questions to which one of the five above applies", depends_on="labels", **_TERMS)
def pipeline_pass(case: Case) -> bool | None:
    """Share of questions that pass all that is asked of the pipeline. That is outcome_match, required_flags, forbidden_flags, citations_ok and latency_ok, as far as they apply."""  # noqa: E501
    gold = case.gold
    asks = gold.expected_outcome or gold.required_flags or gold.forbidden_flags or gold.min_citations
    if not (asks or gold.latency_budget):
        return None
    checks = outcome_match, required_flags, forbidden_flags, citations_ok, latency_ok
    found = [passed for check in checks if (passed := check.score(case)) is not None]
    return all(found) if found else None


def outcome(case: Case) -> str:
    """What became of a question: blocked, no_results, uncertain, success or failed.

    A system that fails before it retrieves has found nothing either: that is no outcome that anybody expects.
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
