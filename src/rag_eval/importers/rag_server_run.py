"""A RAG server's saved run as a report without questions: the values of its metrics, for use as a baseline.

Ranking metrics have the same definition. The others differ, though most have a counterpart: their values are shown
without a metric fingerprint, so that they are never compared.
"""

from __future__ import annotations

import re
from typing import Any

from rag_eval import __version__
from rag_eval.analysis.baseline import MOST
from rag_eval.analysis.notes import Input, InputNote
from rag_eval.analysis.report import Report, contract
from rag_eval.common.escaping import quoted
from rag_eval.gates.policy import Policy
from rag_eval.gates.results import MetricResult, QuestionList
from rag_eval.importers import Account, ImportInputs
from rag_eval.metrics import Measure, find, measure
from rag_eval.scoring.scorecard import Completeness

Row = dict[str, Any]
SCHEMA = "rag-server-run"
_CUT = re.compile(r"(recall|precision|ndcg)_at_([1-9][0-9]{0,5})", re.ASCII)
_NAMES = {
    "mrr": "mrr",
    "citation_precision": "citation_precision",
    "citation_recall": "citation_recall",
    "section_accuracy": "section_accuracy",
    "unanswerable_accuracy": "abstention_accuracy",
    "abstention_false_positive_rate": "over_refusal",
    "abstention_false_negative_rate": "under_refusal",
    "latency_p50": "latency_total_ms.p50",
    "latency_p50_ms": "latency_total_ms.p50",
    "latency_p95": "latency_total_ms.p95",
    "latency_p95_ms": "latency_total_ms.p95",
    "cost_per_query": "cost_usd",
}
_PHRASES = "a refusal is any answer with one of its phrases in it, or an empty one"
_CITED = "an answer without citations counts there, and passages are matched by their words too"
_OTHER = {
    "precision": "it divides by the number returned if that is less than k",
    "citation_precision": _CITED,
    "citation_recall": _CITED,
    "section_accuracy": _CITED,
    "abstention_accuracy": _PHRASES,
    "over_refusal": _PHRASES,
    "under_refusal": _PHRASES,
    "latency_total_ms": "it is measured from the client, and percentiles are taken otherwise",
    "cost_usd": "it uses the framework's prices",
}
_JUDGED = "an LLM judged it, and judged values are not imported"
_UNKNOWN = "rag-eval has no such metric"
_SHOWN = {"id", "name", "created_at", "completed_at", "config", "scorecard", "question_count", "error_count"}
_LEFT = {
    "weighted_score": "rag-eval compare uses its own weights",
    "metadata": "it changes no value",
    "datasets": "a baseline names no data set",
}


def report(inputs: ImportInputs, account: Account) -> Report | None:
    """Return the report of the run; None with the problems if it is unreadable."""
    path = inputs.paths[0]
    run = inputs.value(path, SCHEMA)
    if run is None:
        return None
    before = inputs.problems
    metrics = _metrics(run, path, inputs, account)
    for name in run.keys() - _SHOWN:
        account.dropped(name, _LEFT.get(name, "it is not a field of the format"))
    if inputs.problems > before:
        return None
    comparable = {name: contract(measure(name), Policy()) for name in metrics if not _differs(measure(name))}
    return _report(run, metrics, comparable, Input("baseline", path, inputs.digest(path)))


def _metrics(run: Row, path: str, inputs: ImportInputs, account: Account) -> dict[str, MetricResult]:
    metrics: dict[str, MetricResult] = {}
    for index, entry in enumerate(run["scorecard"]["metrics"]):
        measure, where = _counterpart(entry, account), f"/scorecard/metrics/{index}"
        if measure is None:
            continue
        if measure.name in metrics:
            hint = "Remove one of the two."
            inputs.problem(
                path, 0, f"{where}/name", f"{quoted(entry['name'])} gives {measure.name} a second time", hint
            )
        elif not 0 <= entry["value"] <= (1 if measure.metric.bounded else MOST):
            hint = "Use the file in the folder of the saved run."
            inputs.problem(path, 0, f"{where}/value", f"{measure.name} cannot be {quoted(entry['value'])}", hint)
        else:
            n, value = int(entry.get("sample_size", run["question_count"])), float(entry["value"])
            metrics[measure.name] = MetricResult(
                value, n, None, None, measure.metric.better, measure.metric.perspective
            )
    return metrics


def _counterpart(entry: Row, account: Account) -> Measure | None:
    """Return the metric that corresponds to an entry; None if there is none, with the reason in the account."""
    name, cut = entry["name"], _CUT.fullmatch(entry["name"])
    ours = f"{cut[1]}@{cut[2]}" if cut else _NAMES.get(name, "")
    if entry["value"] is None:
        account.dropped(name, "it has no value in that run")
        return None
    measure = find(ours)
    if measure is None:
        account.dropped(name, _JUDGED if entry.get("group") == "generation" else _UNKNOWN)
        return None
    account.renamed(name, f"{ours}, which is not compared: {why}" if (why := _differs(measure)) else ours)
    return measure


def _differs(measure: Measure) -> str:
    """Return how the framework's definition differs from the metric's; '' if it does not."""
    return _OTHER.get(measure.metric.name.removesuffix("@k"), "")


def _report(run: Row, metrics: dict[str, MetricResult], contracts: dict[str, str], source: Input) -> Report:
    asked, failed = int(run["question_count"]), int(min(run.get("error_count", 0), run["question_count"]))
    notes = [InputNote(source.path, 0, "values of another framework's run, which has no questions to compare", 1)]
    if failed:
        message = f"its values leave out {failed} question(s) that failed; here such a question counts as wrong"
        notes.append(InputNote(source.path, 0, message, 1))
    policy = Policy()
    return Report(
        version=__version__,
        verdict="passed",
        gates_file="",
        k=policy.k,
        refusal={"token": policy.token, "phrases": list(policy.phrases)},
        gates=(),
        metrics=metrics,
        completeness=Completeness(asked, asked - failed, failed, 0, 0, failed),
        allowed={},
        labels={},
        diagnosis=(),
        questions=QuestionList(),
        notes=tuple(notes),
        inputs=(source,),
        contracts=contracts,
        run=_about(run),
    )


def _about(run: Row) -> Row:
    """Return run.json's fields for such a run: its name and its server's settings."""
    named = {field: run[field] for field in ("id", "name", "created_at", "completed_at") if run.get(field)}
    return {**named, **({"config": run["config"]} if "config" in run else {})}
