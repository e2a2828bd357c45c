"""Operations: failures, latency and cost.

Rates are of questions that have a trace: a missing one is counted by completeness, and a blocked attack is no failure.
Time and money are spent on attacks too.
"""

from __future__ import annotations

from typing import Any

from rag_eval.cases import Case
from rag_eval.contract import Settings, Usage
from rag_eval.metrics._metric import Metric, metric

_TERMS: dict[str, Any] = {"source": "core metrics", "better": "lower", "settings": ""}
_MILLION = 1_000_000
_SPREAD = {".p50": "p50", ".p95": "p95", ".max": "max", ".mean": "mean"}


@metric("questions with a trace", depends_on="features", **_TERMS)
def error_rate(case: Case) -> bool | None:
    """Share of questions with a failure: the trace has an error, its ok is false, it timed out, or its answer is empty."""  # noqa: E501
    if not _ran(case):
        return None
    trace = case.trace
    return trace.error is not None or trace.ok is False or trace.timed_out is True or not case.claim


@metric("questions whose trace has timed_out", needs="trace.timed_out", **_TERMS)
def timeout_rate(case: Case) -> bool | None:
    """Share of questions that ran into their time limit. Write timed_out for every question: without it the question is left out."""  # noqa: E501
    return case.trace.timed_out if _ran(case) else None


@metric("questions with a trace", depends_on="features", **_TERMS)
def empty_rate(case: Case) -> bool | None:
    """Share of questions with an empty answer. White space and an abstention without words are empty, too."""
    return not case.claim if _ran(case) else None


def _latency(stage: str, what: str) -> Metric:
    """Return the metric of a stage's milliseconds."""
    folds = {**_SPREAD, ".total": "total"} if stage == "total" else _SPREAD

    def latency(case: Case) -> float | None:
        spent = case.trace.latency
        return float(spent[stage]) if spent and stage in spent else None

    whole = f"Milliseconds from {what}. The sum over all cases is the time of the suite."
    latency.__doc__ = whole if stage == "total" else f"Milliseconds spent in {what}."
    options: dict[str, Any] = {"name": f"latency_{stage}_ms", "folds": folds, "needs": "trace.latency_ms"}
    return metric("traces that time it, of attacks too", scale="amount", unit="ms", **options, **_TERMS)(latency)


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
