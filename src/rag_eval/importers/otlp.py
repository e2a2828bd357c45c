"""OpenTelemetry spans as OTLP/JSON, and their attributes by the conventions for language models, as trace rows.

Source of the format: OTLP specification, "JSON Protobuf Encoding". Ids in base64 and names of enumerations (protobuf's
standard JSON mapping), objects of the SDK's console exporter and traces of Jaeger's UI are read too.

Sources of the attributes: the semantic conventions of Arize-ai/openinference and of
open-telemetry/semantic-conventions-genai. Older spellings of both, and the names of OpenLLMetry, TruLens, Haystack,
Vercel's AI SDK, Google's ADK, Spring AI, Semantic Kernel and Pydantic AI, are read if the newer ones are absent.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from rag_eval.common.escaping import quantity
from rag_eval.importers import FIELDS, Row, retrieved, spans, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft
from rag_eval.importers.documents import Stream, cell_value, decode, documents
from rag_eval.importers.spans import GENERATION, KINDS, OTHER, RERANKER, RETRIEVER, ROOT, TraceSpan, read_contents
from rag_eval.importers.unwrap import as_dict, as_id, as_list, camel, decoded

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
_NESTED = re.compile(r"^(retrieval\.documents|reranker\.(in|out)put_documents|llm\.(in|out)put_messages)$")
_METADATA = re.compile(r"(metadata|(?:retrieval\.|reranker\.output_)documents\.\d+\.document\.metadata)\.(.+)")
_INDEX = re.compile(r"\.\d+(?=\.|$)")
_OPERATIONS = {
    **dict.fromkeys(("retrieval", "vector_db_retrieve"), RETRIEVER),
    **dict.fromkeys("chat text text_completion generate_content completion generate".split(), GENERATION),
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), ROOT),
}
_OF_MODELS = ("llm.", "gen_ai.prompt", "gen_ai.completion", "gen_ai.output")
_RETRIEVING = re.compile(
    r"(Retriever)(?:\.task|\.workflow)?$|(Re[Rr]ank(?:er)?|Ranker|DocumentJoiner)(?:\.task|\.workflow)?$"
)
_PROPERTIES = ("traceloop.association.properties.", "ai.telemetry.metadata.")
_TRULENS = "ai.observability"
_SIDES = (f"{_TRULENS}.record_root", "traceloop.entity", "haystack.component")
_SPRING = "db.vector.query"
_QUERIES = FIELDS["otlp"]["queries"]
_DOCUMENTS = FIELDS["otlp"]["documents"]
_RESULTS = FIELDS["otlp"]["results"]
"""The outputs of retrievers without documents of a convention, such as tools; ``tool_response`` is of Pydantic AI."""
_AI = FIELDS["otlp"]["ai"]
_MODELS = FIELDS["otlp"]["models"]
_COUNT = re.compile(r"llm\.token_count\.|gen_ai\.usage\.|ai\.usage\.|ai\.observability\.cost\.num_")
_READ = re.compile("".join(FIELDS["otlp"]["read"]))
_LANGFUSE = "langfuse.observation."
_OF_LANGFUSE = FIELDS["otlp"]["of_langfuse"]
_LANGFUSE_METADATA = re.compile(r"langfuse\.(?:trace|observation)\.metadata\.(.+)")


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


# attributes


def rename(attributes: Row, names: Mapping[str, str]) -> None:
    """Rename attributes to those of OpenInference; their values are JSON."""
    for name, ours in names.items():
        if (recorded := attributes.pop(name, None)) is not None:
            attributes.setdefault(ours, recorded if ours.endswith(".value") else decoded(recorded))
            attributes.setdefault(ours.replace(".value", ".mime_type"), "application/json")


def flatten(value: Mapping[str, Any]) -> Row:
    """Return attributes with dotted keys, at any depth of nesting; values that are JSON text stay text."""
    flat: Row = {}
    stack = [(str(key), inner) for key, inner in reversed(list(value.items()))]
    while stack:
        key, inner = stack.pop()
        is_whole = key.endswith("metadata") or key.startswith("gen_ai.retrieval")
        if isinstance(inner, dict) and inner and not is_whole:
            stack += [(f"{key}.{name}", part) for name, part in reversed(list(inner.items()))]
        elif isinstance(inner, list) and _NESTED.match(key):
            stack += [(f"{key}.{position}", part) for position, part in reversed(list(enumerate(inner)))]
        elif match := _METADATA.fullmatch(key):  # Phoenix writes metadata flat too
            flat.setdefault(match[1], {})
            if isinstance(flat[match[1]], dict):
                flat[match[1]][match[2]] = inner
        else:
            flat[key] = inner
    return flat


def indexed(flat: Row, prefix: str) -> dict[int, Row]:
    """Return the attributes ``prefix.N.*`` by N, in numeric order."""
    entries: dict[int, Row] = {}
    start = len(prefix) + 1
    for key, value in flat.items():
        if key.startswith(prefix + "."):
            number, _, rest = key[start:].partition(".")
            if number.isdigit():
                entries.setdefault(int(number[:9]), {})[rest] = value
    return dict(sorted(entries.items()))


def read_attributes(conversion: Conversion, span: TraceSpan, raw: Mapping[str, Any], cut: int = 0) -> None:
    """Fill ``span`` from its attributes; ``cut`` is the number of attributes that the SDK dropped."""
    flat = flatten(raw)
    if any(key.startswith("langfuse.") for key in flat):
        _read_langfuse(span, flat)
    is_named = bool(span.name) and span.name == conversion.options.retriever
    span.kind = RETRIEVER if is_named else kind_of(span, flat)
    entity = decoded(flat.get("traceloop.entity.output"))
    if flat.get("traceloop.span.kind") == "task":
        span.kind = spans.retrieval_kind(span.name, entity) or span.kind
    asked = _first_content(span, flat, "input", ("llm.input_messages", "gen_ai.prompt"))
    if span.kind in (RETRIEVER, RERANKER):
        queries = (flat.get(name) for name in _QUERIES)
        asked = next((query for query in queries if query is not None), asked)
        output = documents_of(conversion, span, flat, cut)
    else:
        output = _first_content(span, flat, "output", ("llm.output_messages", "gen_ai.completion"))
        is_choices = "gen_ai.output.messages" in flat or any(key.startswith("gen_ai.completion.1") for key in flat)
        if isinstance(output, list) and len(output) > 1 and is_choices and all(map(unwrap.message_text, output)):
            conversion.account.dropped("further choices", "the first is the answer", len(output) - 1)
            output = output[:1]
        span.blocked = any("finish_reason" in key and "content_filter" in str(value) for key, value in flat.items())
    read_contents(conversion, span, asked, output, flat)
    metadata = decoded(flat.get("metadata"))
    prefixes = [(key, prefix) for key in flat for prefix in _PROPERTIES if key.startswith(prefix)]
    properties = {key.removeprefix(prefix): flat[key] for key, prefix in prefixes}
    span.qid = conversion.qid(flat, metadata, properties) if span.kind != RETRIEVER else None
    span.model = unwrap.first_id(_MODELS, flat) or as_id(unwrap.at(output, "/meta/0/model"))
    counts = {_COUNT.sub("", key): value for key, value in flat.items() if _COUNT.match(key)}
    is_dollars = flat.get(f"{_TRULENS}.cost.cost_currency", "USD") == "USD"
    cost = flat.get("llm.cost.total", flat.get(f"{_TRULENS}.cost.cost") if is_dollars else None)
    span.usage = unwrap.usage(counts, unwrap.at(output, "/meta/0/usage"), cost=cost)  # the latter of Haystack
    span.conversation = unwrap.first_id(("session.id", "gen_ai.conversation.id"), flat)
    span.conversation = span.conversation or unwrap.first_id(unwrap.THREAD_KEYS, properties)
    if span.failed and span.error is None:
        span.error = unwrap.first_id((f"{_TRULENS}.record_root.error", "error.type"), flat)
    for key in flat:
        if not _READ.match(key) and not (key in _RESULTS and span.kind == RETRIEVER):
            conversion.account.dropped(_INDEX.sub(".N", key), NOT_READ)


def _read_langfuse(span: TraceSpan, flat: Row) -> None:
    """Rename the attributes of Langfuse's SDK to those of OpenInference; their values are JSON or plain text."""
    names = _OF_LANGFUSE.items()
    rename(flat, {name: ours for name, ours in names if not (span.parent and name.startswith("langfuse.trace."))})
    metadata = {match[1]: flat.pop(key) for key in list(flat) if (match := _LANGFUSE_METADATA.fullmatch(key))}
    if metadata:
        flat.setdefault("metadata", metadata)
    for field, count in unwrap.usage(decoded(flat.pop(f"{_LANGFUSE}usage_details", None))).items():
        flat.setdefault(f"gen_ai.usage.{field}", count)
    costs = as_dict(decoded(flat.pop(f"{_LANGFUSE}cost_details", None)))
    amounts = [amount for name, amount in costs.items() if name != "total" and unwrap.number(amount) is not None]
    if costs:
        flat.setdefault("llm.cost.total", costs.get("total", round(sum(amounts), 12)))
    if flat.pop(f"{_LANGFUSE}level", "") == "ERROR":
        span.failed, span.error = True, span.error or as_id(flat.pop(f"{_LANGFUSE}status_message", None))


def kind_of(span: TraceSpan, flat: Row) -> str:
    """Return the kind that the attributes state, otherwise the kind that they are typical of."""
    stated = (unwrap.first_id(("openinference.span.kind", f"{_TRULENS}.span_type"), flat) or "").upper()
    operation = str(flat.get("gen_ai.operation.name") or "").partition(".")[0]  # Semantic Kernel: chat.completions
    prefixes = {".".join(key.split(".")[:2]) for key in flat}
    component = str(flat.get("haystack.component.type") or "")
    retrieving = _RETRIEVING.search(component or str(flat.get("traceloop.entity.name") or ""))
    for matches, kind in (
        (stated in KINDS, KINDS.get(stated, "")),
        (operation in _OPERATIONS, _OPERATIONS.get(operation, "")),
        (bool({"retrieval.documents", "gen_ai.retrieval"} & prefixes) or f"{_SPRING}.content" in flat, RETRIEVER),
        (flat.get("spring.ai.kind") == "chat_client", ROOT),
        ("reranker.output_documents" in prefixes, RERANKER),
        ("vector_db_retrieve" in (span.name, flat.get("traceloop.entity.name")), RETRIEVER),
        (retrieving is not None, RETRIEVER if retrieving and retrieving[1] else RERANKER),
        (component.endswith("Generator") or ".do" in str(flat.get("ai.operationId")), GENERATION),
        ("ai.operationId" in flat, ROOT),
        (bool(stated or operation), OTHER),
        (any(key.startswith(_OF_MODELS) for key in prefixes) or "gcp.vertex.agent.llm_response" in flat, GENERATION),
        (flat.get("traceloop.span.kind") in ("workflow", "agent"), ROOT),
    ):
        if matches:
            return kind
    return span.kind


def documents_of(conversion: Conversion, span: TraceSpan, flat: Row, cut: int = 0) -> Any:
    """Return the documents of a retriever or reranker, otherwise its output.

    ``cut`` is the number of attributes that the SDK dropped.
    """
    prefix = "reranker.output_documents" if span.kind == RERANKER else "retrieval.documents"
    by_index = indexed(flat, prefix)
    missing = (max(by_index) + 1 - len(by_index)) if by_index else 0
    if missing or cut:
        what = f"{quantity(missing, 'document')} at the front" if missing else quantity(cut, "attribute")
        hint = "Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (to 10000) where the traces are recorded, and record them again."
        conversion.problem(f"span '{span.name}'", f"the recorder cut {what}", hint)
        return None
    if by_index:
        return list(by_index.values())
    columns = {part: as_list(decoded(flat.get(f"{prefix}.{part}s"))) for part in ("id", "content", "score", "metadata")}
    if length := max(map(len, columns.values())):  # of Arize AX
        rows = zip(*(part or [None] * length for part in columns.values()), strict=True)
        return [{name: item for name, item in zip(columns, row, strict=True) if item is not None} for row in rows]
    for name in _DOCUMENTS:
        if (documents := retrieved.documents_in(decoded(flat.get(name)))) is not None:
            return documents
    name = next((name for name in _RESULTS if name in flat), "")
    output = decoded(flat.get(name))
    documents = retrieved.documents_in(output)
    if documents is None:
        return output
    if documents:
        conversion.account.renamed(f"{name} of a retriever", "chunks")
        nodes = [decoded(document) for document in documents]  # OpenLLMetry records LlamaIndex's nodes as JSON
        documents = nodes if all("node" in as_dict(node) for node in nodes) else documents
    return documents


def _first_content(span: TraceSpan, flat: Row, side: str, flattened: tuple[str, str]) -> Any:
    """Return the input or output, by the first convention that records it; for a generation its messages first."""
    value, form = flat.get(f"{side}.value"), flat.get(f"{side}.mime_type")
    names = unwrap.QUESTION_FIELDS if side == "input" else unwrap.ANSWER_FIELDS
    if str(form or "").endswith("json") or (not form and not as_dict(decoded(value)).keys().isdisjoint(names)):
        value = decoded(value)
    values = [decoded(flat.get(f"gen_ai.{side}.messages")), *(_messages(flat, prefix) for prefix in flattened)]
    values.insert(len(values) if span.kind == GENERATION else 0, value)
    values += [decoded(flat.get(f"{name}.{side}")) for name in _SIDES]
    values += [decoded(flat.get(name)) for name in (f"haystack.pipeline.{side}_data", *_AI[side])]
    return next((value for value in values if value not in (None, "", [])), None)


def _messages(flat: Row, prefix: str) -> list[Any] | None:
    """Return flattened messages as a list of role and content."""
    messages = []
    for message in indexed(flat, prefix).values():
        message = {key.removeprefix("message."): value for key, value in message.items()}
        content = message.get("content") or list(indexed(message, "contents").values())
        if content == "null" and any(key.startswith("tool_calls.") for key in message):
            continue  # LangChain4j writes so that a tool call has no text
        role = message.get("role") or ("assistant" if "output" in prefix or "completion" in prefix else "user")
        if content:
            messages.append({"role": role, "content": content})
    return messages or None
