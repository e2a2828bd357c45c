"""The attributes of spans by the conventions for language models, as the fields of traces.

Sources: the semantic conventions of Arize-ai/openinference and of open-telemetry/semantic-conventions-genai. Older
spellings of both, and the names of OpenLLMetry, TruLens, Haystack, Vercel's AI SDK and Google's ADK, are read if the
newer ones are absent. The same holds for Spring AI, Semantic Kernel and Pydantic AI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rag_eval.common.escaping import quantity
from rag_eval.importers import FIELDS, Row, retrieved, spans, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion
from rag_eval.importers.spans import GENERATION, KINDS, OTHER, RERANKER, RETRIEVER, ROOT, TraceSpan, read_contents
from rag_eval.importers.unwrap import as_dict, as_id, as_list, decoded

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
_QUERIES = FIELDS["attributes"]["queries"]
_DOCUMENTS = FIELDS["attributes"]["documents"]
_RESULTS = FIELDS["attributes"]["results"]
"""The outputs of retrievers without documents of a convention, such as tools; ``tool_response`` is of Pydantic AI."""
_AI = FIELDS["attributes"]["ai"]
_MODELS = FIELDS["attributes"]["models"]
_COUNT = re.compile(r"llm\.token_count\.|gen_ai\.usage\.|ai\.usage\.|ai\.observability\.cost\.num_")
_READ = re.compile("".join(FIELDS["attributes"]["read"]))
_LANGFUSE = "langfuse.observation."
_OF_LANGFUSE = FIELDS["attributes"]["of_langfuse"]
_LANGFUSE_METADATA = re.compile(r"langfuse\.(?:trace|observation)\.metadata\.(.+)")


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
