"""Traces of LangSmith, MLflow, Opik, Braintrust, HoneyHive and W&B Weave as trace rows; their datasets as gold rows.

``data/formats.toml`` names the places of the fields of the last four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from rag_eval.importers import FIELDS, SPANS, Row, spans, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft, Place
from rag_eval.importers.documents import nested
from rag_eval.importers.otlp import hex_id, nanos
from rag_eval.importers.unwrap import as_dict, as_id, as_list, decoded

_RUNS = "Export all runs of each trace, one a line: file.write(run.model_dump_json() + '\\n')"
_OF_RUNS = FIELDS["tracers"]["of_runs"]
_USAGES = FIELDS["tracers"]["usages"]
"""Where LangChain and the SDKs record tokens in outputs, in the order in which they count."""
_JUDGED = ("feedback_stats", "feedback")
_OF_TRACES = FIELDS["tracers"]["of_traces"]
_REPEATED = FIELDS["tracers"]["repeated"]
_MODELS = ("mlflow.llm.model", "model")
_ATTRIBUTES = set(FIELDS["tracers"]["attributes"])
_DATASET = ("inputs", "expectations", "tags", "dataset_record_id", "id", "metadata")
_EXPORT = "Write each trace with trace.to_json(): an object of 'info' and 'data'."
_ITEM = "Evaluation.predict_and_score"  # Weave's call for one question of an evaluation
_OPIK = "Export the project: opik export WORKSPACE project NAME"
_ALL_SPANS = "Export all spans of each trace, not only its root: in the export of logs choose spans."
_ALL_CALLS = "Export all calls of each trace, not only its root: in the table of traces choose all calls."


def langsmith_drafts(conversion: Conversion) -> Iterator[Draft]:
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
    all_spans = [_span_of_run(conversion, *record) for record in whole]
    lone = {span.trace for span in all_spans} - {span.trace for span in all_spans if span.parent}
    account.lacking("traces with only their root run; export the child runs too (is_root off)", len(lone))
    yield from spans.drafts(conversion, all_spans, "session_name")


def langsmith_golds(conversion: Conversion) -> Iterator[Row]:
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
        conversion.problem("", f"is not a run: its keys are {unwrap.first_keys(value)}", _RUNS)


def _span_of_run(conversion: Conversion, place: Place, run: Row) -> spans.TraceSpan:
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
    conversion.drop_unread(run, _OF_RUNS, "", _JUDGED)
    conversion.drop_unread(extra, ("metadata", "invocation_params"), " of extra")
    conversion.drop_unread(metadata, (*unwrap.QID_KEYS, *unwrap.THREAD_KEYS, "ls_model_name"), " of metadata")
    return span


def mlflow_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace."""
    traces = conversion.records("a trace", "traces")
    parts = (_spans_of_mlflow(conversion, _whole_trace(value)) for value in traces)
    yield from spans.drafts(conversion, chain.from_iterable(parts))


def mlflow_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each record of an evaluation dataset; its expectations are labels."""
    for record in conversion.records("a record", "records"):
        labels = dict(as_dict(decoded(record.get("expectations"))))
        contexts = [as_dict(document) for document in labels.pop("expected_retrieved_context", None) or ()]
        labels["answer"] = labels.pop("expected_response", None)
        labels["contexts"] = [document for document in contexts if document.get("content")]
        item = {**record, "id": record.get("dataset_record_id"), "metadata": decoded(record.get("tags"))}
        docs = [document["doc_uri"] for document in contexts if isinstance(document.get("doc_uri"), str)]
        facts = [fact for fact in as_list(labels.pop("expected_facts", None)) if isinstance(fact, str)]
        if facts:
            conversion.account.renamed("expected_facts", "expected_claims")
        asked, more = decoded(record.get("inputs")), {"relevant_docs": docs, "expected_claims": facts}
        yield from conversion.dataset_item(item, asked, labels, _DATASET, "/inputs/question", "mlflow", **more)


def _whole_trace(value: Row) -> Row:
    """Return a trace as ``info`` and ``data``, also from a row of ``search_traces``, which has them as columns too."""
    trace = as_dict(decoded(value.get("trace")))
    if "info" in trace or "info" in value or not isinstance(value.get("spans"), list):
        return trace or value
    info = {**value, "trace_metadata": value.get("trace_metadata", value.get("request_metadata"))}
    return {"info": {name: info.get(name) for name in _OF_TRACES}, "data": {**as_dict(trace.get("data")), **value}}


def _spans_of_mlflow(conversion: Conversion, value: Row) -> Iterator[spans.TraceSpan]:
    info, data = value.get("info"), value.get("data")
    if not isinstance(info, dict) or not isinstance(data, dict) or not isinstance(data.get("spans"), list):
        return conversion.problem("", "is not an MLflow trace", _EXPORT)
    if not all(isinstance(raw, dict) for raw in data["spans"]):
        return conversion.problem("/data/spans", "has a span that is not an object", _EXPORT)
    trace = str(info.get("trace_id") or info.get("request_id") or "")
    for raw in data["spans"]:
        identity = raw.get("span_id") or as_dict(raw.get("context")).get("span_id")
        identity, parent = (hex_id(item) for item in (identity, raw.get("parent_span_id") or raw.get("parent_id")))
        span = spans.TraceSpan(conversion.place, trace, identity, parent, str(raw.get("name") or ""))
        span.start, span.end = (
            nanos(next((raw[name] for name in (f"{item}_unix_nano", f"{item}_ns", item) if name in raw), None))
            for item in ("start_time", "end_time")
        )
        status = as_dict(raw.get("status"))
        code = status.get("code") or status.get("status_code") or raw.get("status_code")
        span.failed = str(code or "").endswith("ERROR")
        span.error = unwrap.first_id(("message", "description", "status_message"), status, raw)
        attributes = {name: decoded(text) for name, text in as_dict(raw.get("attributes")).items() if text != "null"}
        span.kind = spans.KINDS.get(str(attributes.get("mlflow.spanType") or "").upper(), spans.OTHER)
        asked, output = (
            attributes.get(f"mlflow.span{side}", None if parent else decoded(data.get(name)))
            for side, name in (("Inputs", "request"), ("Outputs", "response"))
        )
        spans.read_contents(conversion, span, asked, output)
        if not parent:
            span.conversation = as_id(as_dict(info.get("trace_metadata")).get("mlflow.trace.session"))
            of_trace = info.get("tags"), info.get("trace_metadata")
            span.qid = conversion.qid(*of_trace, attributes, attributes.get("metadata"), value)
        span.usage = unwrap.usage(attributes.get("mlflow.chat.tokenUsage"))
        span.model = unwrap.first_id(_MODELS, attributes)
        conversion.drop_unread(as_dict(attributes.get("metadata")), unwrap.QID_KEYS, " of metadata")
        for name in attributes.keys() - _ATTRIBUTES:
            conversion.account.dropped(f"attribute {name}", NOT_READ)
        yield span
    conversion.drop_unread(value, ("info", "data", "trace", *_REPEATED), "", ("assessments",))
    conversion.drop_unread(info, _OF_TRACES, " of info", ("assessments",))
    for section in ("tags", "trace_metadata"):
        conversion.drop_unread(as_dict(info.get(section)), (*unwrap.QID_KEYS, "mlflow.trace.session"), f" of {section}")


def opik_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the records of all files: the trace is the root, and its spans are below it."""
    records: dict[tuple[str, str], tuple[Place, Row]] = {}
    for value in conversion.records("a trace or a span", "content"):
        rows = [value]
        if "spans" in value:
            conversion.drop_unread(value, ("trace", "spans"))
            below = value["spans"] or []  # null, if none were recorded
            if not isinstance(below, list) or not all(isinstance(row, dict) for row in below):
                conversion.problem("/spans", "is not a list of spans", _OPIK)
                continue
            rows = [unwrap.as_dict(value.get("trace")), *below]
        for row in rows:
            if "id" in row and row.keys() & {"trace_id", "start_time"}:
                root = {} if "trace_id" in row else {"trace_id": row["id"], "type": "trace"}
                row = {**row, **root}
                records[str(row["trace_id"]), str(row["id"])] = conversion.place, row
            else:
                conversion.problem("", "is neither a trace nor a span", _OPIK)
    recorded = []
    for (trace, _), (conversion.place, row) in records.items():
        span = spans.read_record(conversion, row, SPANS["opik"])
        if span.id != trace and (trace, trace) in records:
            span.parent = span.parent or trace
        recorded.append(span)
    yield from spans.drafts(conversion, recorded)


def opik_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item."""
    for item in conversion.records("a dataset item", "items", "content"):
        fields = unwrap.as_dict(item.get("data")) or item  # of the API
        expected = next((fields[name] for name in ("expected_output", "expected_answer") if name in fields), None)
        asked = {name: fields[name] for name in unwrap.QUESTION_KEYS if name in fields}
        read = (*asked, "expected_output", "expected_answer", "id", "metadata")
        fields = {**fields, "id": item.get("id")}
        yield from conversion.dataset_item(fields, asked, expected, read, "/user_question", "opik")


def braintrust_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the spans of all files."""
    recorded = []
    for value in conversion.records("a span", "data", "events"):
        if "span_id" in value and "root_span_id" in value:
            origin = as_dict(value.get("origin"))
            item = as_id(origin.get("id")) if origin.get("object_type") == "dataset" else None
            span = spans.read_record(
                conversion, value if item is None else {**value, "origin": None}, SPANS["braintrust"]
            )
            span.qid = span.qid or item or as_id(value.get("dataset_record_id"))
            recorded.append(span)
        else:
            conversion.problem("", "is not a span: span_id or root_span_id is missing", _ALL_SPANS)
    yield from spans.drafts(conversion, recorded)


def braintrust_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item."""
    for item in conversion.records("a dataset item", "data", "events"):
        asked, expected, pointer = item.get("input"), item.get("expected"), "/input/user_question"
        read = ("id", "input", "expected", "metadata")
        yield from conversion.dataset_item(item, asked, expected, read, pointer, "braintrust")


def honeyhive_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each session in the events of all files."""
    recorded = []
    for value in conversion.records("an event", "events"):
        event = {{"inputs": "input", "outputs": "output"}.get(name, name): item for name, item in value.items()}
        recorded.append(spans.read_record(conversion, event, SPANS["honeyhive"]))
    yield from spans.drafts(conversion, recorded)


def weave_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the calls of all files; an evaluation has one for each question."""
    calls: dict[str, tuple[Place, Row]] = {}
    for value in conversion.records("a call", "calls"):
        call = nested(value)
        if "trace_id" in call and "id" in call:
            calls[str(call["id"])] = conversion.place, _of_weave(call)
        else:
            conversion.problem("", "is not a call: id or trace_id is missing", _ALL_CALLS)
    recorded, parents = [], {call.get("parent_id") for _, call in calls.values()}
    for conversion.place, call in calls.values():
        path = [call]  # with the calls above it, if the file has them
        while (above := calls.get(str(path[-1].get("parent_id")))) and above[1] not in path:
            path.append(above[1])
        names = [str(item["name"]) for item in path]
        if _ITEM not in names and any(name.startswith("Evaluation.") for name in names):
            conversion.account.dropped("calls of an evaluation as a whole", NOT_READ)
        else:
            if names[1:2] == [_ITEM] and not call["input"].keys().isdisjoint(("output", "model_output")):
                call["kind"] = "scorer"  # a function that judges an output
            elif call["usage"] and call.get("parent_id") and call["id"] not in parents:  # those above repeat its counts
                call["kind"] = call["kind"] or "llm"
            if _ITEM in names:
                call = {**call, "trace_id": path[names.index(_ITEM)]["id"]}
                if names[0] == _ITEM:  # it ends after the scorers
                    call |= {"parent_id": None, "ended_at": None}
            result = unwrap.as_dict(call.get("output"))
            returned = result["output"] if call["name"] == _ITEM and "output" in result else call.get("output")
            span = spans.read_record(conversion, {**call, "output": returned}, SPANS["weave"])
            span.latency_ms = (unwrap.number(unwrap.at(call, "/output/model_latency")) or 0) * 1000 or None
            recorded.append(span)
    yield from spans.drafts(conversion, recorded)


def _of_weave(call: Row) -> Row:
    """Return a call with the fields of other tools, without references to objects of Weave, which are no texts."""
    inputs, attributes, summary = (unwrap.as_dict(call.get(name)) for name in ("inputs", "attributes", "summary"))
    usages = unwrap.as_dict(summary.get("usage"))  # by model
    counts = Counter[str]()
    for usage in map(unwrap.usage, usages.values()):
        counts.update(usage)
    name = str(call.get("op_name") or "").rpartition("/op/")[2].partition(":")[0]
    asked = inputs | unwrap.as_dict(inputs.get("example"))
    return {
        **{name: value for name, value in call.items() if name not in ("inputs", "attributes", "summary", "op_name")},
        "name": name,
        "kind": "scorer" if name.endswith(".score") else unwrap.as_dict(attributes.get("weave")).get("kind"),
        "input": {name: value for name, value in asked.items() if not str(value).startswith("weave:///")},
        "metadata": {name: value for name, value in attributes.items() if name.partition(".")[0] != "weave"},
        "model": list(usages) if len(usages) > 1 else next(iter(usages), None),
        "usage": {} if name == _ITEM else counts,  # the scorers have models too
    }
