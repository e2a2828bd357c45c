"""The system around the answers: requirements on outcome, flags and time, failures, cost, gaps in its index.

Requirements are for questions, not for attacks. An empty list, a budget without stages and a minimum of 0 require
nothing, so the metric does not apply: a certain success would only raise the value. A missing trace fails every
requirement. Rates of failures are of questions that have a trace: completeness counts missing ones, and a blocked
attack is no failure. Time and money are spent on attacks too. Figures of the index are those of run.json, once per run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rag_eval.cases import Case
from rag_eval.contract import Settings, Usage
from rag_eval.metrics._metric import Metric, metric
from rag_eval.stats.tally import Ratio

pipeline_metric = partial(metric, group="pipeline", source="enterprise framework", settings="")
operation_metric = partial(metric, source="core metrics", better="lower", settings="")
index_metric = partial(
    metric, group="index", source="core metrics", better="lower", scale="share", needs="run.index", level="run"
)


@pipeline_metric("questions with an expected outcome", needs="gold.expected_outcome")
def outcome_match(case: Case) -> bool | None:
    """Share of questions with the expected outcome. The outcome is the first of these that applies. blocked: the flag guardrail_blocked. no_results: the flag no_context, or nothing retrieved without an error. uncertain: the flag uncertain, or a confidence below 0.5. success: a citation. failed: anything else, also a missing trace or an error without an answer."""  # noqa: E501
    expected = case.gold.expected_outcome
    return outcome(case) == expected if expected is not None and case.counts else None


@pipeline_metric("questions with required flags", needs="gold.required_flags")
def required_flags(case: Case) -> bool | None:
    """Share of questions with all required flags."""
    wanted = case.gold.required_flags
    return set(wanted).issubset(case.trace.flags or ()) if wanted and case.counts else None


@pipeline_metric("questions with forbidden flags", needs="gold.forbidden_flags")
def forbidden_flags(case: Case) -> bool | None:
    """Share of questions without a forbidden flag. A missing trace scores 0."""
    unwanted = case.gold.forbidden_flags
    if not unwanted or not case.counts:
        return None
    return not case.missing and set(unwanted).isdisjoint(case.trace.flags or ())


@pipeline_metric("questions with a minimum of citations", needs="gold.min_citations")
def citations_ok(case: Case) -> bool | None:
    """Share of questions answered with at least the required number of citations. Repeated ones count once."""
    least = case.gold.min_citations
    return len(case.cites) >= least if least and case.counts else None


@pipeline_metric("questions with a latency budget", needs="gold.latency_budget_ms")
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


@pipeline_metric("questions to which one of the five above applies", depends_on="labels")
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
    if "uncertain" in flags or (trace.confidence is not None and trace.confidence < 0.5):
        return "uncertain"
    return "success" if case.cites else "failed"


_MILLION = 1_000_000
_SPREAD = {".p50": "p50", ".p95": "p95", ".max": "max", ".mean": "mean"}


@operation_metric("questions with a trace", depends_on="features", version=2)
def error_rate(case: Case) -> bool | None:
    """Share of questions with a failure: the trace has an error, its ok is false, it timed out, or its answer is empty."""  # noqa: E501
    if not _ran(case):
        return None
    trace = case.trace
    return trace.error is not None or trace.ok is False or trace.timed_out is True or not case.claim


@operation_metric("questions whose trace has timed_out", needs="trace.timed_out")
def timeout_rate(case: Case) -> bool | None:
    """Share of questions that ran into their time limit. Write timed_out for every question: without it the question is left out."""  # noqa: E501
    return case.trace.timed_out if _ran(case) else None


@operation_metric("questions with a trace", depends_on="features", version=2)
def empty_rate(case: Case) -> bool | None:
    """Share of questions with an empty answer. White space and an abstention without words are empty, too."""
    return not case.claim if _ran(case) else None


def _latency(stage: str, what: str) -> Metric:
    folds = {**_SPREAD, ".total": "total"} if stage == "total" else _SPREAD

    def latency(case: Case) -> float | None:
        spent = case.trace.latency
        return float(spent[stage]) if spent and stage in spent else None

    whole = f"Milliseconds from {what}. The sum over all cases is the time of the suite."
    latency.__doc__ = whole if stage == "total" else f"Milliseconds spent in {what}."
    options: dict[str, Any] = {"name": f"latency_{stage}_ms", "folds": folds, "needs": "trace.latency_ms"}
    return operation_metric("traces that time it, of attacks too", scale="amount", unit="ms", **options)(latency)


latency_total_ms = _latency("total", "question to answer")
latency_retrieve_ms = _latency("retrieve", "retrieval")
latency_generate_ms = _latency("generate", "generation")
latency_guardrail_input_ms = _latency("guardrail_input", "the input guardrail")
latency_guardrail_output_ms = _latency("guardrail_output", "the output guardrail")
latency_folder_select_ms = _latency("folder_select", "the choice of folders")
latency_judge_ms = _latency("judge", "the judge")


@metric(
    "traces with a cost, or with a model and tokens; attacks too",
    source="RAG-server framework (cost_per_query)",
    better="lower",
    scale="amount",
    needs="trace.usage",
    folds={"": "mean", ".total": "total"},
    settings="prices",
    unit="USD",
)
def cost_usd(case: Case) -> float | None:
    """US dollars for a question. It is usage.cost_usd, or the input and output tokens at the model's prices in eval-gates.yml."""  # noqa: E501
    usage = case.trace.usage
    if usage is None:
        return None
    if usage.cost_usd is not None:
        return usage.cost_usd
    price = case.settings.prices.get(usage.model or "")
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return float(usage.input_tokens * price["input"] + usage.output_tokens * price["output"]) / _MILLION


def unpriced(usage: Usage, settings: Settings) -> str:
    """Return the model whose tokens are counted and have no price; empty if there is none."""
    is_counted = usage.cost_usd is None and usage.input_tokens is not None and usage.output_tokens is not None
    model = usage.model or ""
    return model if is_counted and model not in settings.prices else ""


def _ran(case: Case) -> bool:
    return case.counts and not case.missing


About = Mapping[str, Any]


@index_metric("runs whose run.json counts documents")
def index_empty_docs(about: About) -> Ratio | None:
    """Share of documents without a chunk."""
    index = about.get("index") or {}
    return _share(index.get("documents_without_chunks"), index.get("documents"))


@index_metric("runs whose run.json counts chunks")
def index_skipped_chunks(about: About) -> Ratio | None:
    """Share of chunks that were not embedded, for any reason. It is the larger of attempted minus embedded chunks, and the sum of skipped chunks."""  # noqa: E501
    index = about.get("index") or {}
    attempted, embedded = index.get("chunks_attempted"), index.get("chunks_embedded")
    skipped = sum(index["chunks_skipped"].values()) if "chunks_skipped" in index else None
    if attempted is None and embedded is not None and skipped is not None:
        attempted = embedded + skipped
    counts = [skipped, attempted - embedded if attempted is not None and embedded is not None else None]
    known = [number for number in counts if number is not None]
    return _share(max(known), attempted) if known and min(known) >= 0 else None


def contradictions(about: About) -> Iterator[str]:
    """Yield the contradictions between figures of run.json's index."""
    index = about.get("index") or {}
    documents, without = index.get("documents"), index.get("documents_without_chunks")
    if documents is not None and without is not None and without > documents:
        yield f"{without} documents without chunks are more than all {documents}"
    attempted, embedded = index.get("chunks_attempted"), index.get("chunks_embedded")
    if attempted is None or embedded is None:
        return
    lost, skipped = attempted - embedded, index.get("chunks_skipped")
    if lost < 0:
        yield f"{embedded} chunks embedded are more than the {attempted} attempted"
    elif skipped is not None and (total := sum(skipped.values())) != lost:
        yield f"{attempted} chunks attempted and {embedded} embedded leave {lost}, and {total} are recorded as skipped"


def _share(part: int | None, whole: int | None) -> Ratio | None:
    return (part, whole) if part is not None and whole and part <= whole else None
