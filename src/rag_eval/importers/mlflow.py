"""MLflow traces as JSON (``info`` and ``data.spans``), as trace rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers import spans, unwrap
from rag_eval.importers.conversion import Conversion, Options, nanoseconds
from rag_eval.importers.otlp import _hex
from rag_eval.importers.unwrap import as_dict, as_id, decoded, documents_in

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
_KINDS = {
    "RETRIEVER": spans.RETRIEVER, "RERANKER": spans.RERANKER, "LLM": spans.GENERATION, "CHAT_MODEL": spans.GENERATION,
    "CHAIN": spans.ROOT, "AGENT": spans.ROOT, "GUARDRAIL": spans.GUARDRAIL,
}  # fmt: skip
_READ = ("trace_id", "request_id", "tags", "trace_metadata", "state", "status", "request_preview", "response_preview")
_REPEATED = ("trace_id", "spans", "request", "response", "state", "request_time", "trace_metadata", "tags")
_EXPORT = "Write each trace with trace.to_json(): an object of 'info' and 'data'."


def rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and trace row of each trace."""
    conversion = Conversion(inputs, options, account, " mlflow.autolog() records inputs and outputs.")
    found = [
        span
        for path, line, value in conversion.records("a trace", "traces")
        for span in _spans(conversion, path, line, as_dict(decoded(value.get("trace"))) or value)
    ]
    yield from conversion.rows("mlflow", spans.drafts(conversion, found))


def _spans(conversion: Conversion, path: str, line: int, value: Row) -> Iterator[spans.Span]:
    info, data = value.get("info"), value.get("data")
    if not isinstance(info, dict) or not isinstance(data, dict) or not isinstance(data.get("spans"), list):
        return conversion.inputs.problem(path, line, "", "is no MLflow trace", _EXPORT)
    trace = str(info.get("trace_id") or info.get("request_id") or "")
    for raw in data["spans"]:
        context = raw.get("context") or {}
        identity = _hex(raw.get("span_id") or context.get("span_id")).removeprefix("0x")
        parent = _hex(raw.get("parent_span_id") or raw.get("parent_id") or "").removeprefix("0x")
        span = spans.Span(path, line, trace, identity, parent, str(raw.get("name") or ""))
        span.start = _nanos(raw.get("start_time_unix_nano", raw.get("start_time")))
        span.end = _nanos(raw.get("end_time_unix_nano", raw.get("end_time")))
        status = raw.get("status") or {}
        code = status.get("code") if isinstance(status, dict) else raw.get("status_code")
        span.failed = str(code or raw.get("status_code") or "").endswith("ERROR")
        span.error = as_id(status.get("message") if isinstance(status, dict) else None) or as_id(
            raw.get("status_message")
        )
        attributes = {name: decoded(inner) for name, inner in (raw.get("attributes") or {}).items()}
        span.kind = _KINDS.get(str(attributes.get("mlflow.spanType") or "").upper(), spans.OTHER)
        if span.name == conversion.options.retriever:
            span.kind = spans.RETRIEVER
        asked = attributes.get("mlflow.spanInputs", decoded(data.get("request")) if not parent else None)
        said = attributes.get("mlflow.spanOutputs", decoded(data.get("response")) if not parent else None)
        if span.kind in (spans.RETRIEVER, spans.RERANKER):
            documents = documents_in(said)
            span.chunks = None if documents is None else conversion.chunks(documents, path, line)
        else:
            spans.ask(conversion, span, asked)
            span.answer = conversion.answer(said) if span.kind in (spans.GENERATION, spans.ROOT) or not parent else None
        if not parent:
            span.qid = conversion.qid(info.get("tags"), info.get("trace_metadata"), attributes)
        usage = attributes.get("mlflow.chat.tokenUsage")
        if isinstance(usage, dict):
            span.input_tokens, span.output_tokens = usage.get("input_tokens"), usage.get("output_tokens")
        span.model = as_id(attributes.get("mlflow.llm.model")) or as_id(attributes.get("model"))
        for name in attributes:
            if name not in ("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage"):
                conversion.account.dropped(f"attribute {name}", "no metric reads it")
        yield span
    conversion.left_out(value, ("info", "data", "trace", *_REPEATED), "", ("assessments",))
    conversion.left_out(info, _READ, " of info", ("assessments",))
    for place in ("tags", "trace_metadata"):
        conversion.left_out(as_dict(info.get(place)), unwrap.QID_KEYS, f" of {place}")


def _nanos(value: Any) -> int | None:
    """A time as MLflow writes it: nanoseconds as a number, or ISO 8601."""
    return value if isinstance(value, int) and not isinstance(value, bool) else nanoseconds(value)
