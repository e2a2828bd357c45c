"""Turn a question into a request and a reply into a trace row: presets and ``--request map.yml``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from rag_eval.contract import Trace, without_reasoning
from rag_eval.errors import UsageError
from rag_eval.importers import retrieved, unwrap
from rag_eval.trace import STAGES

Row = dict[str, Any]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACE = re.compile(r"\{([a-z]+)\}")
_SECRET = re.compile(r"(?i)^(authorization|proxy-authorization|cookie|.*(api-?key|token|secret).*)$")
_STAGES = (*STAGES, "total")
_IN_TEXT = ("citations", "brackets"), ("citations", "numbers")


class RequestMap(Struct, frozen=True):
    """A request, with ``{question}`` and ``{qid}`` in its texts, and JSON Pointers into the reply.

    ``citations`` may also be the form of those in the answer: ``brackets`` or ``numbers``.
    """

    method: str = "POST"
    path: str = ""
    headers: Mapping[str, str] = {}
    body: Any = field(default_factory=lambda: {"question": "{question}"})
    answer: str = "/answer"
    citations: str = "/citations"
    chunks: str = "/chunks"
    chunk: Mapping[str, str] = {}  # id, text, doc_id, score: pointers from the chunk
    latency_ms: Mapping[str, str] = {}
    usage: Mapping[str, str] = {}
    health: str = ""
    config: str = ""


PLAIN = RequestMap(
    latency_ms={stage: f"/latency_ms/{stage}" for stage in _STAGES},
    usage={name: f"/usage/{name}" for name in ("model", "input_tokens", "output_tokens", "cost_usd")},
)
_OPENAI_USAGE = {"model": "/model", "input_tokens": "/usage/prompt_tokens", "output_tokens": "/usage/completion_tokens"}
PRESETS: dict[str, RequestMap] = {
    "plain": PLAIN,
    "openai": RequestMap(
        path="/chat/completions",
        body={"model": "${RAG_MODEL}", "messages": [{"role": "user", "content": "{question}"}], "temperature": 0},
        answer="/choices/0/message/content",
        citations="",
        chunks="/choices/0/message/context/citations",
        usage=_OPENAI_USAGE,
    ),
    "langserve": RequestMap(
        path="/invoke",
        body={"input": "{question}"},
        answer="/output",
        citations="/output/citations",
        chunks="/output/context",
    ),
    "llama-index": RequestMap(
        path="/api/chat/request",
        body={"messages": [{"role": "user", "content": "{question}"}]},
        answer="/result/content",
        citations="",
        chunks="/nodes",
    ),
    "haystack": RequestMap(
        path="/query", body={"query": "{question}"}, answer="/answers/0/answer", citations="", chunks="/documents"
    ),
    "rag-server": RequestMap(
        path="/query",
        body={"query": "{question}"},
        chunks="/sources",
        chunk={"id": "/chunk_id", "text": "/text", "doc_id": "/doc_id", "score": "/score"},
        latency_ms={"retrieve": "/timings/retrieve_ms"},
        health="/health",
        config="/config",
    ),
}
"""Shapes of common servers. Every part can be overridden by a map."""


def request_map(preset: str, stated: Mapping[str, Any]) -> RequestMap:
    """Return a preset with the parts of a map laid over it; raise UsageError for an invalid map."""
    if unknown := sorted(stated.keys() - set(RequestMap.__struct_fields__)):
        keys = ", ".join(RequestMap.__struct_fields__)
        raise UsageError(f"the request map has no '{unknown[0]}'. Its keys are: {keys}")
    for name, value in stated.items():
        usual = getattr(PLAIN, name)
        if not isinstance(value, (dict, list, str) if name == "body" else type(usual)):
            raise UsageError(f"'{name}' of the request map has the wrong type: {str(value)[:60]!r}")
    mapped = replace(PRESETS[preset], **stated)
    for name in ("answer", "citations", "chunks"):
        pointer = getattr(mapped, name)
        if pointer and not pointer.startswith("/") and (name, pointer) not in _IN_TEXT:
            raise UsageError(f"'{name}' of the request map is not a JSON Pointer. Write: /{pointer}")
    for stage in mapped.latency_ms:
        if stage not in _STAGES:
            stages = ", ".join(_STAGES)
            raise UsageError(f"'latency_ms' of the request map has no stage '{stage}'. Stages are: {stages}")
    return replace(mapped, headers=header_texts(mapped.headers, "the request map"))


def header_texts(headers: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return headers as texts; raise UsageError for a secret that is not an environment variable."""
    texts = scalar_texts(headers, f"headers of {where}")
    for name, text in texts.items():
        if _SECRET.match(name) and not _VARIABLE.search(text):
            variable = re.sub(r"\W", "_", name).upper()
            fix = f'Write {name}: "${{{variable}}}" and set the variable'
            raise UsageError(f"the header {name} of {where} contains a secret. {fix}")
    return texts


def scalar_texts(values: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return a mapping of scalars as texts, numbers and booleans as JSON writes them; raise UsageError for others."""
    for name, value in values.items():
        if not isinstance(value, (str, int, float)):
            raise UsageError(f"'{name}' in {where} must be a text or a number, not {str(value)[:60]!r}")
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}


def filled(value: Any, texts: Mapping[str, str], environment: Mapping[str, str]) -> Any:
    """Return a template with ``{question}`` and ``{qid}`` replaced, and ``${NAME}`` by the environment.

    Raises UsageError for a variable that is not set.
    """
    if isinstance(value, Mapping):
        return {name: filled(inner, texts, environment) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, texts, environment) for inner in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise UsageError(f"the environment variable {match[1]} is not set, but the request needs it")
        return environment[match[1]]

    # In one pass: a question may contain a placeholder itself.
    return _PLACE.sub(lambda match: texts.get(match[1], match[0]), _VARIABLE.sub(variable, value))


def row_of(reply: Any, mapped: RequestMap) -> Row:
    """Return the fields of a trace row in a reply.

    Raises ValueError with its content if it has no answer, and TypeError or ValueError if they are no valid trace.
    """
    row: Row = json.loads(json.dumps(_fields_of(reply, mapped), allow_nan=False))
    try:
        Trace.from_row(row, "", 0)
    except msgspec.ValidationError as error:
        raise ValueError(f"the reply is not a valid trace: {error}") from None
    return row


def _fields_of(reply: Any, mapped: RequestMap) -> Row:
    if isinstance(reply, dict) and ("answer_json" in reply or ("qid" in reply and "answer" in reply)):
        return {name: value for name, value in reply.items() if name not in ("qid", "q")}  # a trace row already
    answer = unwrap.answer_text(unwrap.at(reply, mapped.answer))
    if answer is None and isinstance(reply, dict) and isinstance(reply.get("error"), str) and reply["error"]:
        return {name: reply[name] for name in ("error", "timed_out") if name in reply} | {"ok": False}
    if answer is None:
        fields = list(reply.items())[:8] if isinstance(reply, dict) else []
        keys = ", ".join(name for name, _ in fields) or ("nothing" if reply == {} else type(reply).__name__)
        place = next((f"/{name}" for name, value in fields if isinstance(value, str)), "POINTER")
        fix = f"Return it as answer, or map it with --url and --request: answer: {place}"
        raise ValueError(f"no text at {mapped.answer}: the reply has {keys}. {fix}")
    row: Row = {"answer_json": {"claim": answer}}
    cited = unwrap.at(reply, mapped.citations) if mapped.citations.startswith("/") else None
    if isinstance(cited, list):
        ids = [unwrap.as_id(item.get("id", item.get("chunk_id")) if isinstance(item, dict) else item) for item in cited]
        row["answer_json"]["citations"] = [item for item in ids if item]
    documents = retrieved.documents_in(unwrap.at(reply, mapped.chunks)) if mapped.chunks else None
    if documents is not None:
        row["chunks"] = [_chunk(document, mapped.chunk) for document in documents]
        row["retrieved_ids"] = [chunk["id"] for chunk in row["chunks"]]
    elif isinstance(reply, dict) and isinstance(reply.get("retrieved_ids"), list):
        row["retrieved_ids"] = reply["retrieved_ids"]
    if ("citations", mapped.citations) in _IN_TEXT:
        row["answer_json"]["citations"] = retrieved.cited_in(
            without_reasoning(answer), mapped.citations, row.get("retrieved_ids", ())
        )
    times = {stage: unwrap.at(reply, pointer) for stage, pointer in mapped.latency_ms.items()}
    if numbers := {stage: value for stage, value in times.items() if type(value) in (int, float) and value >= 0}:
        row["latency_ms"] = numbers
    usage = {name: unwrap.at(reply, pointer) for name, pointer in mapped.usage.items()}
    if usage := {name: value for name, value in usage.items() if value is not None}:
        row["usage"] = usage
    return row


def _chunk(document: Any, pointers: Mapping[str, str]) -> Row:
    plain, metadata = retrieved.document_parts(document)
    whole = document if isinstance(document, dict) else plain
    fields = {name: unwrap.at(whole, pointer) for name, pointer in pointers.items()}
    text = fields.get("text") or retrieved.text_of(plain)
    identity = unwrap.as_id(fields.get("id")) or retrieved.id_in(plain, metadata)
    doc_id = unwrap.as_id(fields.get("doc_id")) or retrieved.document_id_in(plain, metadata)
    return retrieved.chunk(identity, text, doc_id, fields.get("score", plain.get("score")))
