"""OpenTelemetry spans as OTLP/JSON, as trace rows.

Source of the format: OTLP specification, "JSON Protobuf Encoding". Ids in base64 and names of enumerations (protobuf's
standard JSON mapping), objects of the SDK's console exporter and traces of Jaeger's UI are read too.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from rag_eval.importers import Row, spans, unwrap
from rag_eval.importers.attributes import read_attributes, rename
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft
from rag_eval.importers.documents import Stream, cell_value, decode, documents
from rag_eval.importers.spans import TraceSpan
from rag_eval.importers.unwrap import as_dict, as_id, camel, decoded

Logs = dict[tuple[str, str], Row]  # contents of log records by trace and span
_OF_MLFLOW = {
    "mlflow.spanType": "openinference.span.kind", "mlflow.spanInputs": "input.value",
    "mlflow.spanOutputs": "output.value",
}  # fmt: skip
_MESSAGE_EVENTS = {"gen_ai.user.message": "gen_ai.input.messages", "gen_ai.choice": "gen_ai.output.messages"}
_DETAILS = "gen_ai.client.inference.operation.details"
_LISTS = (
    ("resourceSpans", "resource_spans", "batches", "trace", "result"),  # the last three of the APIs of Tempo and Jaeger
    ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    ("spans",),
)
_OTHER_SIGNALS = {"resourceMetrics": "metrics", "resourceProfiles": "profiles"}
_EXPORT_SPANS = "Export the spans: files whose objects have 'resourceSpans'."


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the spans of all files."""
    inputs = conversion.inputs
    logs: Logs = defaultdict(dict)
    for path in inputs.paths:
        for document in documents(inputs, path) if _has_logs(inputs.blocks(path, shown=False)) else ():
            if b"resourceLogs" in document.data and isinstance(value := decode(inputs, document), dict):
                _read_logs(value, logs)
    if inputs.problems:
        return
    all_spans: list[TraceSpan] = []
    for path in inputs.paths:
        stream = Stream(inputs, path)
        all_spans += stream.parts(partial(_of_value, conversion, path, stream, logs))
    if logs and not all_spans:
        message = "has log records but no spans"
        hint = f"Pass the file with the spans too. {_EXPORT_SPANS}"
        inputs.problem(inputs.paths[0], 1, "/resourceLogs", message, hint)
    yield from spans.drafts(conversion, all_spans, "service.name")


def _of_value(conversion: Conversion, path: str, stream: Stream, logs: Logs) -> Iterator[TraceSpan]:
    """Yield the spans of one object: a batch of OTLP, or one span of the SDK's console exporter."""
    begin, row, service = (path, stream.line), dict[str, Any](), None
    batch: list[TraceSpan] | None = None  # spans of the current resource
    for name, part in stream.members(_LISTS):
        if part is None:
            service, batch = (None, []) if name in _LISTS[0] else (service, batch)
        elif batch is None:
            row[name] = None if name == "resourceLogs" else decode(conversion.inputs, part)
        elif name == "resource":
            service = _service(conversion, decode(conversion.inputs, part))
            for span in batch:
                span.run = service
        elif name == "spans" and (raw := decode(conversion.inputs, part)) is not None:
            conversion.place = path, part.line
            try:
                batch.append(read_span(conversion, raw, service, logs, _OF_MLFLOW))
            except (TypeError, ValueError, AttributeError, KeyError) as error:
                message = f"has a span that is not OTLP/JSON: {str(error)[:80]}"
                conversion.problem("/scopeSpans", message, _EXPORT_SPANS)
            else:
                yield batch[-1]
    if batch is None and not row.keys() & {"resourceSpans", "resource_spans", "resourceLogs"}:
        conversion.place = begin
        yield from _other(conversion, row)


def _service(conversion: Conversion, resource: Any) -> str | None:
    attributes = plain_attributes(as_dict(resource).get("attributes"))
    service = as_id(attributes.pop("service.name", None))
    for attribute in attributes:
        conversion.account.dropped(f"resource attribute {attribute}", NOT_READ)
    return service


def _other(conversion: Conversion, row: Row) -> Iterator[TraceSpan]:
    """Yield the span of an object of the console exporter; an object of another kind is a problem."""
    if str(as_dict(row.get("context")).get("trace_id", "")).startswith("0x"):
        service = as_dict(as_dict(row.get("resource")).get("attributes")).get("service.name")
        yield read_span(conversion, _console_span(row), service, {})
        return
    if all("traceID" in as_dict(trace) for trace in row.get("data") or [{}]):
        for trace in row["data"]:
            for span in trace.get("spans") or ():
                process = as_dict(as_dict(trace.get("processes")).get(span.get("processID")))
                yield read_span(conversion, _jaeger_span(span), process.get("serviceName"), {}, _OF_MLFLOW)
        return
    signal = next((name for name in _OTHER_SIGNALS if name in row), None)
    keys = unwrap.first_keys(row)
    what = f"these are {_OTHER_SIGNALS[signal]}, not spans" if signal else f"is not OTLP/JSON: its keys are {keys}"
    conversion.problem(f"/{signal}" if signal else "", what, _EXPORT_SPANS)


def _has_logs(blocks: Iterable[bytes]) -> bool:
    tail = b""
    for block in blocks:
        if b"resourceLogs" in tail + block:
            return True
        tail = block[-12:]
    return False


def read_span(conversion: Conversion, raw: Any, service: Any, logs: Logs, names: Row | None = None) -> TraceSpan:
    """Return a span of OTLP/JSON.

    ``service`` is the name of its resource, ``logs`` the contents of log records, ``names`` attributes to rename.
    """
    if not isinstance(raw, dict):
        raise TypeError("it is not an object")
    raw = camel(raw)
    status = as_dict(raw.get("status"))
    trace, identity, parent = (hex_id(raw.get(name) or "") for name in ("traceId", "spanId", "parentSpanId"))
    span = TraceSpan(conversion.place, trace, identity, parent, str(raw.get("name") or ""))
    if not span.trace or not span.id:
        raise ValueError("it has no traceId or spanId")
    span.start, span.end = nanos(raw.get("startTimeUnixNano")), nanos(raw.get("endTimeUnixNano"))
    span.failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    attributes = plain_attributes(raw.get("attributes"))
    rename(attributes, names or {})
    results: list[Row] = []  # of a vector database
    for event in raw.get("events") or ():
        name, fields = str(event.get("name") or ""), plain_attributes(event.get("attributes"))
        if name == "exception":
            span.error = str(fields.get("exception.message") or fields.get("exception.type") or "") or None
        elif name in ("db.query.result", "db.search.result"):
            results.append(_search_result(fields))
        _read_message(attributes, name, fields)
    if results:
        attributes.setdefault("gen_ai.retrieval.documents", results)
    if span.failed:
        span.error = status.get("message") or span.error
    span.run = str(service) if service else None
    for name, value in logs.get((span.trace, span.id), {}).items():
        attributes.setdefault(name, value)
    read_attributes(conversion, span, attributes, int(raw.get("droppedAttributesCount") or 0))
    return span


def _search_result(fields: Row) -> Row:
    """Return the document of an event that OpenLLMetry records for each result of a vector database."""
    stated = {name.rpartition(".result.")[2]: value for name, value in fields.items()}
    entity, metadata = (cell_value(str(stated.get(name) or "")) for name in ("entity", "metadata"))
    document = {"id": stated.get("id"), "text": stated.get("document"), "metadata": metadata}
    document["score"] = stated.get("score", stated.get("distance"))
    return as_dict(entity) | {name: value for name, value in document.items() if value not in (None, "")}


def _read_message(attributes: Row, name: str, fields: Row) -> None:
    """Add the contents of an event, of a span or of a log record, to the attributes of its span."""
    if name in _MESSAGE_EVENTS:
        role = "user" if name == "gen_ai.user.message" else "assistant"
        content = decoded(fields.get("message", fields.get("content")))
        text = content.get("content") if isinstance(content, dict) else content
        attributes.setdefault(_MESSAGE_EVENTS[name], []).append({"role": role, "content": text})
    elif name == _DETAILS or name.startswith("gen_ai.content."):
        for key, value in fields.items():
            attributes.setdefault(key, value)


def _read_logs(value: Row, logs: Logs) -> None:
    """Record the message contents of log records by their span."""
    for resource in value.get("resourceLogs") or ():
        for scope in resource.get("scopeLogs") or ():
            for record in scope.get("logRecords") or ():
                fields = plain_attributes(record.get("attributes"))
                name = str(record.get("eventName") or fields.get("event.name") or "")
                span = hex_id(record.get("traceId") or ""), hex_id(record.get("spanId") or "")
                _read_message(logs[span], name, as_dict(any_value(record.get("body") or {})) | fields)


def _console_span(value: Row) -> Row:
    """Return a span of ``ReadableSpan.to_json`` with the names of OTLP/JSON."""
    context, status = as_dict(value.get("context")), as_dict(value.get("status"))
    return {
        **value,
        "traceId": context.get("trace_id"),
        "spanId": context.get("span_id"),
        "parentSpanId": value.get("parent_id"),
        "startTimeUnixNano": value.get("start_time"),
        "endTimeUnixNano": value.get("end_time"),
        "status": {"code": f"STATUS_CODE_{status.get('status_code')}", "message": status.get("description")},
    }


def _jaeger_span(value: Row) -> Row:
    """Return a span of Jaeger's UI with the names of OTLP/JSON; its times are microseconds."""
    tags = {tag["key"]: tag.get("value") for tag in value.get("tags") or ()}
    parents = [part.get("spanID") for part in value.get("references") or () if part.get("refType") == "CHILD_OF"]
    begin = int(value["startTime"])
    logs = ({field["key"]: field.get("value") for field in log.get("fields") or ()} for log in value.get("logs") or ())
    is_error = tags.pop("error", False) in (True, "true")
    return {
        "traceId": value.get("traceID"),
        "spanId": value.get("spanID"),
        "parentSpanId": next(iter(parents), None),
        "name": value.get("operationName"),
        "startTimeUnixNano": begin * 1000,
        "endTimeUnixNano": (begin + int(value["duration"])) * 1000,
        "status": {"code": 2 if is_error else 0, "message": tags.pop("otel.status_description", None)},
        "attributes": tags,
        "events": [{"name": log.get("event"), "attributes": log} for log in logs],
    }


def hex_id(value: Any) -> str:
    """Return an id as lower-case hex, from hex in any case or from base64 (24 or 12 characters with padding)."""
    text = str(value or "").removeprefix("0x")
    if len(text) in (24, 12) and (text.endswith("=") or len(text) == 12):
        try:
            return base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            return text.lower()
    return text.lower()


def nanos(value: Any) -> int | None:
    """Return a time as nanoseconds since 1970, from nanoseconds as a number or text, or from ISO 8601."""
    if isinstance(value, str):
        return int(value) if value.isdigit() and len(value) < 20 else unwrap.nanoseconds(value)
    return value if isinstance(value, int) and value > 0 else None


def plain_attributes(pairs: Any) -> Row:
    """Return the attributes of OTLP/JSON, a list of key and AnyValue, as a plain mapping."""
    if isinstance(pairs, dict):  # from the console exporter
        return dict(pairs)
    return {
        str(pair["key"]): any_value(pair.get("value") or {})
        for pair in pairs or ()
        if isinstance(pair, dict) and "key" in pair
    }


def any_value(value: Any) -> Any:
    """Return an AnyValue of OTLP as a plain value; bytes and unknown types are None."""
    if not isinstance(value, dict) or not value:
        return None if value == {} else value
    kind, inner = next((item for item in value.items() if item[1] is not None), ("", None))  # Phoenix writes all types
    match kind.replace("_v", "V"):
        case "stringValue" | "boolValue" | "doubleValue":
            return inner
        case "intValue":
            return int(str(inner)[:20])
        case "arrayValue":
            return [any_value(item) for item in as_dict(inner).get("values") or ()]
        case "kvlistValue":
            return plain_attributes(as_dict(inner).get("values"))
    return None
