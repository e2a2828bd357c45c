"""MLflow traces as JSON (``info`` and ``data.spans``), as trace rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from rag_eval.importers import FIELDS, Row, spans, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft
from rag_eval.importers.otlp import hex_id, nanos
from rag_eval.importers.unwrap import as_dict, as_id, as_list, decoded

_READ = FIELDS["mlflow"]["read"]
_REPEATED = FIELDS["mlflow"]["repeated"]
_MODELS = ("mlflow.llm.model", "model")
_ATTRIBUTES = set(FIELDS["mlflow"]["attributes"])
_DATASET = ("inputs", "expectations", "tags", "dataset_record_id", "id", "metadata")
_EXPORT = "Write each trace with trace.to_json(): an object of 'info' and 'data'."


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace."""
    traces = conversion.records("a trace", "traces")
    parts = (_spans(conversion, _whole(value)) for value in traces)
    yield from spans.drafts(conversion, chain.from_iterable(parts))


def golds(conversion: Conversion) -> Iterator[Row]:
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


def _whole(value: Row) -> Row:
    """Return a trace as ``info`` and ``data``, also from a row of ``search_traces``, which has them as columns too."""
    trace = as_dict(decoded(value.get("trace")))
    if "info" in trace or "info" in value or not isinstance(value.get("spans"), list):
        return trace or value
    info = {**value, "trace_metadata": value.get("trace_metadata", value.get("request_metadata"))}
    return {"info": {name: info.get(name) for name in _READ}, "data": {**as_dict(trace.get("data")), **value}}


def _spans(conversion: Conversion, value: Row) -> Iterator[spans.TraceSpan]:
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
    conversion.drop_unread(info, _READ, " of info", ("assessments",))
    for section in ("tags", "trace_metadata"):
        conversion.drop_unread(as_dict(info.get(section)), (*unwrap.QID_KEYS, "mlflow.trace.session"), f" of {section}")
