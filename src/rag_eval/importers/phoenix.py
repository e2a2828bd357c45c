"""Spans as Phoenix's REST API, UI and data frames write them, and plain spans of other tools, as trace rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_eval.importers import FIELDS, Row, otlp, spans
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft
from rag_eval.importers.documents import nested
from rag_eval.importers.otlp import read_attributes
from rag_eval.importers.unwrap import as_dict, as_id, as_list, at, first_id, nanoseconds

_FRAME = 'Export the spans whole: client.spans.get_spans_dataframe().to_json(orient="records", date_format="iso")'
_COLUMN, _FIELD = "attributes.", re.compile(r"^(input|output|metadata)_")
_OF_DATADOG = FIELDS["phoenix"]["of_datadog"]
_PARENTS, _FAILED = ("parent_id", "parent_span_id"), ("ERROR", "StatusCode.ERROR", "STATUS_CODE_ERROR", "error")
_MESSAGES = ("status_message", "otel_status_message")
_READ = FIELDS["phoenix"]["read"]


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the spans of all files."""
    all_spans: list[spans.TraceSpan] = []
    for value in conversion.records("a span", "data"):
        if "resourceSpans" in value:
            yield from otlp.drafts(conversion)
            return
        all_spans += _spans(conversion, value)
    yield from spans.drafts(conversion, all_spans)


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each example of a dataset; the columns of its CSV are named as ``input_question``."""
    read = ("id", "node_id", "example_id", "input", "output", "metadata", "updated_at", "source")
    for record in conversion.records("an example", "examples"):
        fields = {_FIELD.sub(r"\1.", name): value for name, value in record.items()}
        item = nested(record if "input" in record else fields)
        yield from conversion.dataset_item(item, item.get("input"), item.get("output"), read, "/input/question")


def _spans(conversion: Conversion, value: Row) -> Iterator[spans.TraceSpan]:
    """Yield the spans of a page, of a record of a data frame, or of an object of lists; a single span unchanged."""
    value = _of_datadog(conversion, value)
    context = as_dict(value.get("context"))
    trace, identity = (
        as_id(context.get(name, value.get(f"context.{name}", value.get(name)))) for name in ("trace_id", "span_id")
    )
    if "document_position" in value:
        conversion.problem("", "has one row per document, without answers", _FRAME)
    elif "start_time_unix_nano" in value or "startTimeUnixNano" in value:  # GET …/spans/otlpv1
        yield otlp.read_span(conversion, value, None, {})
    elif trace is not None and identity is not None:
        name, parent = str(value.get("name") or value.get("span_name") or ""), first_id(_PARENTS, value) or ""
        span = spans.TraceSpan(conversion.place, trace, identity, parent, name)
        _read(conversion, span, value)
        yield span
    else:
        lists = (part for part in (*value.values(), at(value, "/data/attributes/spans")) if isinstance(part, list))
        inner = [item for part in lists for item in part if isinstance(item, dict)]
        if not inner or "attributes" in value:
            message = "is not a span: context.trace_id and context.span_id are missing"
            conversion.problem("/context", message, _FRAME)
            return
        for item in inner:
            yield from _spans(conversion, item)


def _of_datadog(conversion: Conversion, value: Row) -> Row:
    """Return a span of Datadog, from its export or as it is sent, as one of Phoenix; any other value unchanged."""
    record = as_dict(value.get("attributes")) if "start_ns" not in value else value
    if "start_ns" not in record:
        return value
    meta = as_dict(record.get("meta")) or record
    conversion.drop_unread(record, _OF_DATADOG)
    start = nanoseconds(record["start_ns"])  # its API states milliseconds, but durations in nanoseconds
    asked, output = as_dict(meta.get("input")), as_dict(meta.get("output"))
    attributes = {f"gen_ai.usage.{name}": count for name, count in as_dict(record.get("metrics")).items()}
    labels = (str(tag).partition(":") for tag in as_list(record.get("tags")))
    metadata = {name: item for name, _, item in labels if item} | as_dict(meta.get("metadata"))
    attributes |= {"llm.model_name": meta.get("model_name"), "metadata": metadata}
    attributes |= {"input.value": asked.get("value"), "gen_ai.input.messages": asked.get("messages")}
    attributes |= {"output.value": output.get("value"), "gen_ai.output.messages": output.get("messages")}
    attributes |= {"gen_ai.retrieval.documents": output.get("documents")}
    return {
        **{name: record.get(name) for name in ("trace_id", "span_id", "name", "status")},
        "parent_id": "" if record.get("parent_id") == "undefined" else record.get("parent_id"),
        "span_kind": meta.get("kind") or meta.get("span_kind"),
        "start_time": start,
        "end_time": None if start is None else start + record["duration"],
        "attributes": {name: item for name, item in attributes.items() if item not in (None, {})},
    }


def _read(conversion: Conversion, span: spans.TraceSpan, value: Row) -> None:
    """Fill a span from its record; the columns of a data frame have their path as name."""
    for name in ("start", "end"):
        column = f"{name}_time" if value.get(f"{name}_time") is not None else f"{name}_timestamp"
        if value.get(column) is not None:
            setattr(span, name, nanoseconds(value[column]))
            if getattr(span, name) is None:
                message = f"is not a time: '{str(value[column])[:40]}'"
                conversion.problem(f"/{column}", message, "Write ISO 8601: 2026-01-31T12:00:00+00:00")
    span.failed = first_id(("status_code", "otel_status_code", "status"), value) in _FAILED
    if span.failed:
        of_events = (as_dict(event).get("attributes") for event in as_list(value.get("events")))
        span.error = first_id(_MESSAGES, value) or first_id(("exception.message",), *of_events)
    columns = {name: item for name, item in value.items() if name.startswith(_COLUMN) and item is not None}
    attributes = as_dict(value.get("attributes")) | {name[len(_COLUMN) :]: item for name, item in columns.items()}
    if isinstance(attributes.get("retrieval.documents"), str):
        conversion.problem("/attributes.retrieval.documents", "is the text of a Python list", _FRAME)
        return
    kind = str(value.get("span_kind") or "")
    if kind.upper() not in ("", "UNKNOWN") and not kind.startswith("SPAN_KIND"):
        attributes.setdefault("openinference.span.kind", kind)
    for name in value:
        if name not in _READ and not name.startswith((_COLUMN, "context.")):
            conversion.account.dropped(name, NOT_READ)
    read_attributes(conversion, span, attributes)
