"""OpenTelemetry spans as OTLP/JSON, with OpenInference or GenAI attributes, as trace rows.

Source: OTLP specification, "JSON Protobuf Encoding". Read too: ids in base64 and names of enumerations, as protobuf's
standard JSON mapping writes them, and the objects of the SDK's console exporter.
"""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers import spans
from rag_eval.importers.attributes import CAPTURE, read_attributes
from rag_eval.importers.conversion import Conversion, Options, nanoseconds
from rag_eval.importers.documents import Document, decode, documents, members
from rag_eval.importers.unwrap import as_dict, camel, decoded

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
_MESSAGE_EVENTS = {
    "gen_ai.user.message": "gen_ai.input.messages",
    "gen_ai.choice": "gen_ai.output.messages",
}
_DETAILS = "gen_ai.client.inference.operation.details"
_OTHER_SIGNALS = {"resourceMetrics": "metrics", "resourceProfiles": "profiles"}
_EXPORT_SPANS = "Export the spans: files whose objects have 'resourceSpans'."


def rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and trace row of each trace in the spans of all files."""
    conversion = Conversion(inputs, options, account, CAPTURE)
    logs: dict[tuple[str, str], Row] = defaultdict(dict)
    for path in inputs.paths:
        for document in documents(inputs, path):
            if b"resourceLogs" in document.data[:4096] and isinstance(value := decode(inputs, document), dict):
                _read_logs(value, logs)
    if inputs.problems:
        return
    found = [span for path in inputs.paths for span in _spans(conversion, path, logs)]
    if logs and not found:
        message = "holds log records and no spans"
        inputs.problem(
            inputs.paths[0], 1, "/resourceLogs", message, f"Give the file of spans beside it. {_EXPORT_SPANS}"
        )
    if len({span.run for span in found}) < 2:
        for span in found:
            span.run = None
    else:
        account.renamed("service.name", "run")
    yield from conversion.rows("otlp", spans.drafts(conversion, found))


def _spans(conversion: Conversion, path: str, logs: dict[tuple[str, str], Row]) -> Iterator[spans.Span]:
    """Yield the spans of a file; log records were read before."""
    inputs = conversion.inputs
    for document in documents(inputs, path):
        if b"resourceSpans" in document.data[:4096]:  # large: an element at a time
            for part in members(inputs, document, "resourceSpans"):
                resource = decode(inputs, part)
                if resource is not None:
                    yield from _of_resource(conversion, part, resource, logs)
        elif b"resourceLogs" not in document.data[:4096] and (value := decode(inputs, document)) is not None:
            yield from _other(conversion, document, value, logs)


def _other(
    conversion: Conversion, document: Document, value: Any, logs: dict[tuple[str, str], Row]
) -> Iterator[spans.Span]:
    """A value whose first bytes do not say that it holds spans: the console exporter's, or none of ours."""
    row = as_dict(value)
    if "resourceSpans" in row:
        for resource in row["resourceSpans"] or ():
            yield from _of_resource(conversion, document, resource, logs)
    elif str(as_dict(row.get("context")).get("trace_id", "")).startswith("0x"):
        yield _console_span(conversion, document, row)
    else:
        signal = next((name for name in _OTHER_SIGNALS if name in row), None)
        keys = ", ".join(list(row)[:6]) or "none"
        what = f"these are {_OTHER_SIGNALS[signal]}, not spans" if signal else f"is no OTLP/JSON: its keys are {keys}"
        conversion.inputs.problem(document.path, document.line, f"/{signal}" if signal else "", what, _EXPORT_SPANS)


def _of_resource(
    conversion: Conversion, part: Document, resource: Any, logs: dict[tuple[str, str], Row]
) -> Iterator[spans.Span]:
    try:
        service = _attributes(as_dict(resource.get("resource")).get("attributes")).get("service.name")
        for name in _attributes(as_dict(resource.get("resource")).get("attributes")).keys() - {"service.name"}:
            conversion.account.dropped(f"resource attribute {name}", "no metric reads it")
        for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ():
            for raw in scope.get("spans") or ():
                yield read_span(conversion, part.path, part.line, camel(raw), service, logs)
    except (TypeError, ValueError, AttributeError) as error:
        message = f"holds a span that is not OTLP/JSON: {str(error)[:80]}"
        conversion.inputs.problem(part.path, part.line, "/scopeSpans", message, _EXPORT_SPANS)


def read_span(
    conversion: Conversion, path: str, line: int, raw: Row, service: Any, logs: dict[tuple[str, str], Row]
) -> spans.Span:
    """A span of OTLP/JSON; ``service`` is the name of its resource, ``logs`` the contents recorded as log records."""
    status = as_dict(raw.get("status"))
    trace, identity, parent = (_hex(raw.get(name) or "") for name in ("traceId", "spanId", "parentSpanId"))
    span = spans.Span(path, line, trace, identity, parent, str(raw.get("name") or ""))
    if not span.trace or not span.id:
        raise ValueError("it has no traceId or spanId")
    span.start, span.end = _nanos(raw, "startTimeUnixNano"), _nanos(raw, "endTimeUnixNano")
    span.failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    attributes = _attributes(raw.get("attributes"))
    for event in raw.get("events") or ():
        _read_event(span, attributes, str(event.get("name") or ""), _attributes(event.get("attributes")))
    if span.failed:
        span.error = status.get("message") or span.error
    span.run = str(service) if service else None
    for name, value in logs.get((span.trace, span.id), {}).items():
        attributes.setdefault(name, value)
    read_attributes(conversion, span, attributes, int(raw.get("droppedAttributesCount") or 0))
    return span


def _read_event(span: spans.Span, attributes: Row, name: str, fields: Row) -> None:
    if name == "exception":
        span.error = str(fields.get("exception.message") or fields.get("exception.type") or "") or None
    elif name in _MESSAGE_EVENTS:
        role = "user" if name == "gen_ai.user.message" else "assistant"
        content = decoded(fields.get("message", fields.get("content")))
        text = content.get("content") if isinstance(content, dict) else content
        attributes.setdefault(_MESSAGE_EVENTS[name], []).append({"role": role, "content": text})
    elif name == _DETAILS or name.startswith("gen_ai.content."):
        for key, value in fields.items():
            attributes.setdefault(key, value)


def _read_logs(value: Row, logs: dict[tuple[str, str], Row]) -> None:
    """Keep the message contents of log records by the span that they belong to."""
    for resource in value["resourceLogs"] or ():
        for scope in resource.get("scopeLogs") or ():
            for record in scope.get("logRecords") or ():
                fields = _attributes(record.get("attributes"))
                name = record.get("eventName") or fields.get("event.name")
                if name == _DETAILS:
                    body = _any(record.get("body") or {})
                    merged = {**(body if isinstance(body, dict) else {}), **fields}
                    logs[_hex(record.get("traceId") or ""), _hex(record.get("spanId") or "")].update(merged)


def _console_span(conversion: Conversion, document: Document, value: Row) -> spans.Span:
    """A span as ``ReadableSpan.to_json`` writes it."""
    status = as_dict(value.get("status"))
    trace, identity, parent = (
        str(text or "").removeprefix("0x").lower()
        for text in (value["context"]["trace_id"], value["context"].get("span_id"), value.get("parent_id"))
    )
    span = spans.Span(document.path, document.line, trace, identity, parent, str(value.get("name") or ""))
    span.start, span.end = nanoseconds(value.get("start_time")), nanoseconds(value.get("end_time"))
    span.failed = status.get("status_code") == "ERROR"
    attributes = dict(as_dict(value.get("attributes")))
    for event in value.get("events") or ():
        _read_event(span, attributes, str(event.get("name") or ""), event.get("attributes") or {})
    span.error = (status.get("description") or span.error) if span.failed else span.error
    service = as_dict(as_dict(value.get("resource")).get("attributes")).get("service.name")
    span.run = str(service) if service else None
    read_attributes(conversion, span, attributes)
    return span


def _attributes(pairs: Any) -> Row:
    return {
        str(pair["key"]): _any(pair.get("value") or {})
        for pair in pairs or ()
        if isinstance(pair, dict) and "key" in pair
    }


def _any(value: Any) -> Any:
    """An AnyValue of OTLP as a plain value; bytes and what is unknown are None."""
    if not isinstance(value, dict) or not value:
        return None if value == {} else value
    kind, inner = next(iter(value.items()))
    if inner is None:  # Phoenix writes all of them, in snake case
        kind, inner = next((one for one in value.items() if one[1] is not None), (kind, None))
    match kind:
        case "stringValue" | "boolValue" | "string_value" | "bool_value":
            found = inner
        case "intValue" | "int_value":
            found = int(str(inner)[:20])
        case "doubleValue" | "double_value":
            found = inner if isinstance(inner, (int, float)) else None
        case "arrayValue" | "array_value":
            found = [_any(item) for item in as_dict(inner).get("values") or ()]
        case "kvlistValue" | "kvlist_value":
            found = _attributes(as_dict(inner).get("values"))
        case _:
            found = None
    return found


def _hex(value: Any) -> str:
    """An id as lower-case hex, from hex in any case or from base64 (24 or 12 characters with padding)."""
    text = str(value or "")
    if len(text) in (24, 12) and (text.endswith("=") or len(text) == 12):
        try:
            return base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            return text.lower()
    return text.lower()


def _nanos(raw: Row, name: str) -> int | None:
    value = raw.get(name)
    if isinstance(value, str):
        return int(value) if value.isdigit() and len(value) < 20 else nanoseconds(value)
    return value if isinstance(value, int) and value > 0 else None
