"""An OpenTelemetry span exporter that writes spans to a file which ``rag-eval import otlp`` reads.

    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("runs/spans.jsonl")))

Needs the extra: ``pip install "rag-eval-action[opentelemetry]"``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_eval.trace import append_line

try:
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Link
except ImportError as error:
    raise ImportError('opentelemetry-sdk is not installed: pip install "rag-eval-action[opentelemetry]"') from error


class FileSpanExporter(SpanExporter):  # type: ignore[misc]
    """Appends each span as one line of JSON."""

    def __init__(self, path: str | os.PathLike[str] = "runs/spans.jsonl") -> None:
        self._path = Path(path)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write the spans; failure if the file cannot be written."""
        try:
            for span in spans:
                append_line(self._path, _plain_span(span).to_json(indent=None))
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def _plain_span(span: ReadableSpan) -> ReadableSpan:
    """Return a span whose attributes are values of JSON: no bytes, no NaN, no half of a surrogate pair."""
    return ReadableSpan(
        span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_plain(span.attributes),
        events=[Event(event.name, _plain(event.attributes), event.timestamp) for event in span.events],
        links=[Link(link.context, _plain(link.attributes)) for link in span.links],
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (int, float)):
        return value
    return str(value).encode("utf-8", "replace").decode()
