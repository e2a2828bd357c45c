"""Spans of Braintrust's logs and experiments as trace rows; its datasets as gold rows."""

from __future__ import annotations

from collections.abc import Iterator

from rag_eval.importers import Row, spans
from rag_eval.importers.conversion import Conversion
from rag_eval.importers.draft import Draft

_NAMES = {
    "trace": "/root_span_id", "id": "/span_id", "parent": "/span_parents/0", "name": "/span_attributes/name",
    "kind": "/span_attributes/type", "start": "/metrics/start", "end": "/metrics/end", "error": "/error",
    "model": "/metadata/model", "usage": "/metrics", "cost": "/metrics/estimated_cost",
    "conversation": "/metadata/session_id",
}  # fmt: skip
_FORMS = "Export all spans of each trace, not only its root: in the export of logs choose spans."


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the spans of all files."""
    recorded = []
    for value in conversion.records("a span", "data", "events"):
        if "span_id" in value and "root_span_id" in value:
            recorded.append(spans.read_record(conversion, value, _NAMES))
        else:
            conversion.problem("", "is not a span: span_id or root_span_id is missing", _FORMS)
    yield from spans.drafts(conversion, recorded)


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item."""
    for item in conversion.records("a dataset item", "data", "events"):
        asked, expected, pointer = item.get("input"), item.get("expected"), "/input/user_question"
        read = ("id", "input", "expected", "metadata")
        yield from conversion.dataset_item(item, asked, expected, read, pointer, "braintrust")
