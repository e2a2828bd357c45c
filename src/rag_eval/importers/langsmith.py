"""LangSmith runs as its SDKs and exports write them, as trace rows; and its dataset examples as gold."""

from __future__ import annotations

from collections.abc import Iterator

from rag_eval.importers import FIELDS, Row, spans, unwrap
from rag_eval.importers.conversion import Conversion, Draft, Place
from rag_eval.importers.documents import nested

_FORMS = "Export all runs of each trace, one a line: file.write(run.model_dump_json() + '\\n')"
_READ = FIELDS["langsmith"]["read"]
_USAGES = FIELDS["langsmith"]["usages"]
"""Where LangChain and the SDKs record tokens in outputs, in the order in which they count."""
_JUDGED = ("feedback_stats", "feedback")


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the runs of all files."""
    account = conversion.account
    runs: dict[str, tuple[Place, Row]] = {}
    for value in conversion.records("a run", "runs", "items"):
        for run in _runs(conversion, value):
            place, known = runs.get(str(run["id"]), (conversion.place, {}))
            runs[str(run["id"])] = place, unwrap.merged(known, run)
    ends = ("end_time", "outputs", "error")
    pending = {
        name
        for name, (_, run) in runs.items()
        if str(run.get("status")).lower() == "pending" or not any(run.get(end) for end in ends)
    }
    ended = [record for name, record in runs.items() if name not in pending]
    whole = [record for record in ended if str(record[1].get("trace_id")) not in pending]
    account.dropped("a pending run", "it has not ended", len(pending))
    account.dropped("runs of a pending trace", "its root has not ended", len(ended) - len(whole))
    all_spans = [_span(conversion, *record) for record in whole]
    lone = {span.trace for span in all_spans} - {span.trace for span in all_spans if span.parent}
    account.lacking("traces with only their root run; export the child runs too (is_root off)", len(lone))
    yield from spans.drafts(conversion, all_spans, "session_name")


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each example; the columns of a CSV have their path as name."""
    read = ("id", "inputs", "outputs", "metadata")
    for example in map(nested, conversion.records("an example", "examples", "items")):
        asked, expected = example.get("inputs"), unwrap.as_dict(example.get("outputs"))
        yield from conversion.dataset_item(example, asked, expected, read, "/inputs/question", "langsmith")


def _runs(conversion: Conversion, value: Row) -> Iterator[Row]:
    """Yield the runs of a value: one run with its children, or a batch of ``post`` and ``patch`` halves."""
    if "post" in value or "patch" in value:
        conversion.drop_unread(value, ("post", "patch"))
        for half in ("post", "patch"):
            for run in value.get(half) or ():
                yield from _runs(conversion, run)
    elif "id" in value and ("run_type" in value or "trace_id" in value or "outputs" in value):
        yield value
        for child in value.get("child_runs") or ():
            child = {"trace_id": value.get("trace_id") or value["id"], "parent_run_id": value["id"], **child}
            yield from _runs(conversion, child)
    else:
        conversion.problem("", f"is not a run: its keys are {unwrap.first_keys(value)}", _FORMS)


def _span(conversion: Conversion, place: Place, run: Row) -> spans.TraceSpan:
    conversion.place = place
    trace = unwrap.as_id(run.get("trace_id")) or str(run["id"])
    ancestors = run.get("parent_run_ids") or ()  # the root first; runs.query() gives them instead of parent_run_id
    parent = unwrap.as_id(run.get("parent_run_id")) or (str(ancestors[-1]) if ancestors else "")
    span = spans.TraceSpan(conversion.place, trace, str(run["id"]), parent, str(run.get("name") or ""))
    span.order = str(run.get("dotted_order") or "")
    span.kind = spans.KINDS.get(str(run.get("run_type")).upper(), spans.OTHER)
    span.start, span.end = unwrap.nanoseconds(run.get("start_time")), unwrap.nanoseconds(run.get("end_time"))
    asked, outputs, extra = (unwrap.decoded(run.get(name)) for name in ("inputs", "outputs", "extra"))  # a bulk export
    extra = unwrap.as_dict(extra)  # has them as JSON
    metadata = unwrap.as_dict(extra.get("metadata")) | unwrap.as_dict(unwrap.decoded(run.get("metadata")))
    spans.read_contents(conversion, span, asked, outputs, run)
    span.qid = conversion.qid(run, metadata)
    span.run = unwrap.first_id(("session_name", "session_id", "project_id"), run)
    span.conversation = unwrap.as_id(run.get("thread_id")) or unwrap.first_id(unwrap.THREAD_KEYS, metadata)
    span.failed, span.error = bool(run.get("error")), unwrap.as_id(run.get("error"))
    if span.kind == spans.GENERATION or not span.parent:  # the root has the totals
        counts = (unwrap.at(outputs, pointer) for pointer in _USAGES)
        span.usage = unwrap.usage(run, *counts, cost=run.get("total_cost"))
        model = unwrap.as_dict(extra.get("invocation_params")).get("model")
        span.model = unwrap.as_id(metadata.get("ls_model_name")) or unwrap.as_id(model)
        if run.get("total_cost") is not None and "cost_usd" not in span.usage:
            conversion.account.dropped("total_cost", "it is not a number")
    conversion.drop_unread(run, _READ, "", _JUDGED)
    conversion.drop_unread(extra, ("metadata", "invocation_params"), " of extra")
    conversion.drop_unread(metadata, (*unwrap.QID_KEYS, *unwrap.THREAD_KEYS, "ls_model_name"), " of metadata")
    return span
