"""Span attributes by the OpenInference and the OpenTelemetry GenAI conventions, read into a :class:`TraceSpan`.

Sources: the semantic conventions of Arize-ai/openinference and of open-telemetry/semantic-conventions-genai. Older
spellings of both, OpenLLMetry's ``traceloop.*``, TruLens' ``ai.observability.*`` and Haystack's ``haystack.*`` are read
where the newer ones are absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag_eval.importers import unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion
from rag_eval.importers.spans import GENERATION, KINDS, OTHER, RERANKER, RETRIEVER, ROOT, TraceSpan, read_contents

Attributes = dict[str, Any]
CAPTURE = " For gen_ai.* spans set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true."
_NESTED = re.compile(r"^(retrieval\.documents|reranker\.(in|out)put_documents|llm\.(in|out)put_messages)$")
_METADATA = re.compile(r"(metadata|(?:retrieval\.|reranker\.output_)documents\.\d+\.document\.metadata)\.(.+)")
_INDEX = re.compile(r"\.\d+(?=\.|$)")
_OPERATIONS = {
    "retrieval": RETRIEVER, "vector_db_retrieve": RETRIEVER, "chat": GENERATION, "text_completion": GENERATION,
    "generate_content": GENERATION, "completion": GENERATION, "generate": GENERATION, "invoke_agent": ROOT,
    "invoke_workflow": ROOT,
}  # fmt: skip
_OF_MODELS = ("llm.", "gen_ai.prompt", "gen_ai.completion", "gen_ai.output")
_RETRIEVING = re.compile(r"(Retriever)(?:\.task|\.workflow)?$|(Re[Rr]ank(?:er)?|Ranker)(?:\.task|\.workflow)?$")
_PROPERTIES = "traceloop.association.properties."
_THREADS = ("session_id", "conversation_id", "thread_id")
_TRULENS = "ai.observability"
_SIDES = (f"{_TRULENS}.record_root", "traceloop.entity", "haystack.component")
_QUERIES = ("gen_ai.retrieval.query.text", f"{_TRULENS}.retrieval.query_text", f"{_TRULENS}.reranking.query_text")
_DOCUMENTS = (
    "gen_ai.retrieval.documents", f"{_TRULENS}.reranking.output_context_texts",
    f"{_TRULENS}.retrieval.retrieved_contexts",
)  # fmt: skip
_MODELS = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model", f"{_TRULENS}.cost.model")
_COUNT = re.compile(r"llm\.token_count\.|gen_ai\.usage\.|ai\.observability\.cost\.num_")
_READ = re.compile(
    r"openinference\.span\.kind|(input|output)\.(value|mime_type)|retrieval\.documents\.|reranker\.(output_documents|model_name)"
    r"|llm\.(model_name|token_count\.(prompt|completion)$|cost\.total|output_messages\.|input_messages\.)|metadata$"
    r"|gen_ai\.(operation\.name|retrieval\.(documents|query\.text)|(input|output)\.messages|usage\.(input|output|prompt|completion)_tokens"
    r"|(request|response)\.model|conversation\.id|prompt\.|completion\.)|error\.type|session\.id|traceloop\.(span\.kind|entity\.(in|out)put)"
    r"|ai\.observability\.(span_type|record_root\.(input|output|error)|cost\.(cost|cost_currency|model|num_(prompt|completion)_tokens)$"
    r"|retrieval\.(query_text|retrieved_contexts)|reranking\.(query_text|output_context_texts))"
    r"|haystack\.(component\.(type|(in|out)put)$|pipeline\.(in|out)put_data)"
    r"|traceloop\.association\.properties\.(session_id|conversation_id|thread_id)$"
    r"|(traceloop\.association\.properties\.)?(rag_eval\.)?(qid|question_id|case_id|example_id|reference_example_id|dataset_item_id)$"
)


def plain_attributes(pairs: Any) -> Attributes:
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
            return [any_value(item) for item in unwrap.as_dict(inner).get("values") or ()]
        case "kvlistValue":
            return plain_attributes(unwrap.as_dict(inner).get("values"))
    return None


def flatten(value: Mapping[str, Any]) -> Attributes:
    """Return attributes with dotted keys, at any depth of nesting; values that are JSON text stay text."""
    flat: Attributes = {}
    stack = [(str(key), inner) for key, inner in reversed(list(value.items()))]
    while stack:
        key, inner = stack.pop()
        if (
            isinstance(inner, dict)
            and inner
            and not key.endswith("metadata")
            and not key.startswith("gen_ai.retrieval")
        ):
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


def indexed(flat: Attributes, prefix: str) -> dict[int, Attributes]:
    """Return the attributes ``prefix.N.*`` by N, in numeric order."""
    entries: dict[int, Attributes] = {}
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
    is_named = bool(span.name) and span.name == conversion.options.retriever
    span.kind = RETRIEVER if is_named else kind_of(span, flat)
    asked = _first_content(span, flat, "input", ("llm.input_messages", "gen_ai.prompt"))
    if span.kind in (RETRIEVER, RERANKER):
        queries = (flat.get(name) for name in _QUERIES)
        asked = next((query for query in queries if query is not None), asked)
        output = documents_of(conversion, span, flat, cut)
    else:
        output = _first_content(span, flat, "output", ("llm.output_messages", "gen_ai.completion"))
        if isinstance(output, list) and len(output) > 1 and "gen_ai.output.messages" in flat:
            conversion.account.dropped("further choices", "the first is the answer", len(output) - 1)
            output = output[:1]
        span.blocked = any("finish_reason" in key and "content_filter" in str(value) for key, value in flat.items())
    read_contents(conversion, span, asked, output, flat)
    metadata = unwrap.decoded(flat.get("metadata"))
    properties = {key.removeprefix(_PROPERTIES): value for key, value in flat.items() if key.startswith(_PROPERTIES)}
    span.qid = conversion.qid(flat, metadata, properties) if span.kind != RETRIEVER else None
    span.model = unwrap.first_id(_MODELS, flat) or unwrap.as_id(unwrap.at(output, "/meta/0/model"))
    counts = {_COUNT.sub("", key): value for key, value in flat.items() if _COUNT.match(key)}
    span.usage = unwrap.tokens(counts, unwrap.at(output, "/meta/0/usage"))  # the latter of Haystack
    is_dollars = flat.get(f"{_TRULENS}.cost.cost_currency", "USD") == "USD"
    cost = unwrap.number(flat.get("llm.cost.total", flat.get(f"{_TRULENS}.cost.cost") if is_dollars else None))
    if cost is not None:
        span.usage["cost_usd"] = cost
    span.conversation = unwrap.first_id(("session.id", "gen_ai.conversation.id"), flat)
    span.conversation = span.conversation or unwrap.first_id(_THREADS, properties)
    if span.failed and span.error is None:
        span.error = unwrap.first_id((f"{_TRULENS}.record_root.error", "error.type"), flat)
    for key in flat:
        if not _READ.match(key):
            conversion.account.dropped(_INDEX.sub(".N", key), NOT_READ)


def kind_of(span: TraceSpan, flat: Attributes) -> str:
    """Return the kind that the attributes state, otherwise the kind that they are typical of."""
    stated = (unwrap.first_id(("openinference.span.kind", f"{_TRULENS}.span_type"), flat) or "").upper()
    operation = str(flat.get("gen_ai.operation.name") or "")
    prefixes = {".".join(key.split(".")[:2]) for key in flat}
    component = str(flat.get("haystack.component.type") or "")
    retrieving = _RETRIEVING.search(component or str(flat.get("traceloop.entity.name") or ""))
    for matches, kind in (
        (stated in KINDS, KINDS.get(stated, "")),
        (operation in _OPERATIONS, _OPERATIONS.get(operation, "")),
        (bool({"retrieval.documents", "gen_ai.retrieval"} & prefixes), RETRIEVER),
        ("reranker.output_documents" in prefixes, RERANKER),
        ("vector_db_retrieve" in (span.name, flat.get("traceloop.entity.name")), RETRIEVER),
        (retrieving is not None, RETRIEVER if retrieving and retrieving[1] else RERANKER),
        (component.endswith("Generator"), GENERATION),
        (bool(stated or operation), OTHER),
        (any(key.startswith(_OF_MODELS) for key in prefixes), GENERATION),
        (flat.get("traceloop.span.kind") in ("workflow", "agent"), ROOT),
    ):
        if matches:
            return kind
    return span.kind


def documents_of(conversion: Conversion, span: TraceSpan, flat: Attributes, cut: int = 0) -> list[Any] | None:
    """Return the documents of a retriever or reranker; ``cut`` is the number of attributes that the SDK dropped."""
    prefix = "reranker.output_documents" if span.kind == RERANKER else "retrieval.documents"
    by_index = indexed(flat, prefix)
    missing = (max(by_index) + 1 - len(by_index)) if by_index else 0
    if missing or cut:
        what = f"{missing or 'some'} documents at the front were cut" if missing else f"{cut} attributes were cut"
        hint = "Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (to 10000) where the traces are recorded, and record them again."
        conversion.problem(f"span '{span.name}'", what, hint)
        return None
    if by_index:
        return list(by_index.values())
    for name in _DOCUMENTS:
        if (documents := unwrap.documents_in(unwrap.decoded(flat.get(name)))) is not None:
            return documents
    names = ("output.value", "traceloop.entity.output", "haystack.component.output")
    output = next((flat[name] for name in names if name in flat), None)
    documents = unwrap.documents_in(unwrap.decoded(output))
    if documents:
        conversion.account.renamed("output.value of a retriever", "chunks")
        nodes = [unwrap.decoded(document) for document in documents]  # OpenLLMetry records LlamaIndex's nodes as JSON
        documents = nodes if all("node" in unwrap.as_dict(node) for node in nodes) else documents
    return documents


def _first_content(span: TraceSpan, flat: Attributes, side: str, flattened: tuple[str, str]) -> Any:
    """Return the input or output, by the first convention that records it; for a generation its messages first."""
    value = flat.get(f"{side}.value")
    if str(flat.get(f"{side}.mime_type") or "").endswith("json"):
        value = unwrap.decoded(value)
    values = [unwrap.decoded(flat.get(f"gen_ai.{side}.messages")), *(_messages(flat, prefix) for prefix in flattened)]
    values.insert(len(values) if span.kind == GENERATION else 0, value)
    values += [unwrap.decoded(flat.get(f"{name}.{side}")) for name in _SIDES]
    values.append(unwrap.decoded(flat.get(f"haystack.pipeline.{side}_data")))
    return next((value for value in values if value not in (None, "", [])), None)


def _messages(flat: Attributes, prefix: str) -> list[Any] | None:
    """Return flattened messages as a list of role and content."""
    messages = []
    for message in indexed(flat, prefix).values():
        message = {key.removeprefix("message."): value for key, value in message.items()}
        parts = [part.get("message_content.text") for part in indexed(message, "contents").values()]
        content = message.get("content") or [part for part in parts if isinstance(part, str)]
        role = message.get("role") or ("assistant" if "output" in prefix or "completion" in prefix else "user")
        if content:
            messages.append({"role": role, "content": content})
    return messages or None
