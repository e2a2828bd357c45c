"""Traces with their spans as Opik exports them or its API returns them, as trace rows; its datasets as gold rows."""

from __future__ import annotations

from collections.abc import Iterator

from rag_eval.importers import Row, spans, unwrap
from rag_eval.importers.conversion import Conversion
from rag_eval.importers.draft import Draft, Place

CAPTURE = " Do not set OPIK_TRACK_DISABLE, and export the spans too."
_NAMES = {
    "trace": "/trace_id", "id": "/id", "parent": "/parent_span_id", "name": "/name", "kind": "/type",
    "start": "/start_time", "end": "/end_time", "error": "/error_info", "model": "/model", "usage": "/usage",
    "cost": "/total_estimated_cost", "conversation": "/thread_id",
}  # fmt: skip
_FORMS = "Export the project: opik export WORKSPACE project NAME"


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the records of all files: the trace is the root, and its spans are below it."""
    records: dict[tuple[str, str], tuple[Place, Row]] = {}
    for value in conversion.records("a trace or a span", "content"):
        rows = [value]
        if "spans" in value:
            conversion.drop_unread(value, ("trace", "spans"))
            below = value["spans"] or []  # null, if none were recorded
            if not isinstance(below, list) or not all(isinstance(row, dict) for row in below):
                conversion.problem("/spans", "is not a list of spans", _FORMS)
                continue
            rows = [unwrap.as_dict(value.get("trace")), *below]
        for row in rows:
            if "id" in row and row.keys() & {"trace_id", "start_time"}:
                root = {} if "trace_id" in row else {"trace_id": row["id"], "type": "trace"}
                row = {**row, **root}
                records[str(row["trace_id"]), str(row["id"])] = conversion.place, row
            else:
                conversion.problem("", "is neither a trace nor a span", _FORMS)
    recorded = []
    for (trace, _), (conversion.place, row) in records.items():
        span = spans.read_record(conversion, row, _NAMES)
        if span.id != trace and (trace, trace) in records:
            span.parent = span.parent or trace
        recorded.append(span)
    yield from spans.drafts(conversion, recorded)


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item."""
    for item in conversion.records("a dataset item", "items", "content"):
        fields = unwrap.as_dict(item.get("data")) or item  # of the API
        expected = next((fields[name] for name in ("expected_output", "expected_answer") if name in fields), None)
        asked = {name: fields[name] for name in unwrap.QUESTION_KEYS if name in fields}
        read = (*asked, "expected_output", "expected_answer", "id", "metadata")
        fields = {**fields, "id": item.get("id")}
        yield from conversion.dataset_item(fields, asked, expected, read, "/user_question", "opik")
