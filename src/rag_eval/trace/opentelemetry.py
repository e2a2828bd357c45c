"""An OpenTelemetry span exporter that writes spans to a file which ``rag-eval import otlp`` reads.

    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter("runs/spans.jsonl")))

Needs the extra: ``pip install "rag-eval-action[opentelemetry]"``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rag_eval.trace import append_line

try:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
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
                append_line(self._path, span.to_json(indent=None))
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS
