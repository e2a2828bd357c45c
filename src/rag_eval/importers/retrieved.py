"""Search of retrieved documents and citations in records of other tools: ids, texts and scores of chunks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from rag_eval.importers import FIELDS
from rag_eval.importers.columns import english
from rag_eval.importers.unwrap import (
    ROLES,
    Value,
    as_dict,
    as_id,
    as_list,
    at,
    camel,
    decoded,
    first_id,
    message_text,
    number,
    role_of,
)
from rag_eval.trace import text_id

TEXT_KEYS = FIELDS["retrieved"]["text_keys"]
_TEXTS_OR_IDS = ("passage", "chunk")
_WRAPPED_TEXTS = ("text_resource", "content", "data")
_WRAPPERS = FIELDS["retrieved"]["wrappers"]
"""Fields of a document with its text: of LlamaIndex, Elasticsearch, Qdrant, Weaviate and Vertex AI Search."""
DOCUMENT_KEYS = FIELDS["retrieved"]["document_keys"]
SCORE_KEYS = FIELDS["retrieved"]["score_keys"]
CONTEXT_KEYS = [*FIELDS["retrieved"]["context_keys"]]
CONTEXT_KEYS += camel(dict.fromkeys(name for name in CONTEXT_KEYS if "_" in name))
_LISTS = ("documents", "nodes", *CONTEXT_KEYS, *FIELDS["retrieved"]["lists"])
SOURCE_KEYS = ("source_docs", "docs", "sources", "references")  # of documents, or only of their names
CHUNK_KEYS = FIELDS["retrieved"]["chunk_keys"]
_MARKS = ("id_", "segment_id", "rank", "type", "class_name")  # the last two are always the same
READ_OF_CHUNKS = {*TEXT_KEYS, *_TEXTS_OR_IDS, *_WRAPPED_TEXTS, *DOCUMENT_KEYS, *SCORE_KEYS, *CHUNK_KEYS, *_MARKS}
_OF_RESPONSES = FIELDS["retrieved"]["of_responses"]
"""Where responses of OpenAI, Gemini, Bedrock, Dify, RAGFlow, Azure and Vertex AI have documents, through any lists."""
_OF_INDEXES = ("hits/hits", "hits", "matches", "reference")
"""The same of Elasticsearch, Pinecone and RAGFlow, if they have texts: other tools give these names other meanings."""
_BLOCKS = ("document", "search_result")  # parts of messages of Anthropic
_REPR = re.compile(r"<generator|<[\w.]+( object|\()|[A-Z]\w*\([a-z_]+=")  # how Python prints an object
_NAME = re.compile(r"[!-~]{1,200}")
_BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\](?!\()")
_NUMBERS = re.compile(
    r"\[(?:\^|doc)?(\d{1,3}(?:\s*,\s*\d{1,3})*)\](?!\()|【(\d{1,3})[^】]{0,40}】|(?:\[ID:\s?|##)(\d{1,3})(?:\]|\$\$)"
)


def documents_in(value: Value) -> list[Value] | None:
    """Return the list of documents in a retriever's record; None if there is none, such as in a list of messages."""
    if isinstance(value, list):
        pairs = [_of_pair(item) for item in value]
        items = pairs[0] if len(pairs) == 1 and isinstance(pairs[0], list) else pairs
        items = list(chain.from_iterable(_of_columns(as_dict(item)) or [item] for item in items))
        if any(not isinstance(item, (str, dict)) or is_repr(item) for item in items):
            return None
        is_chat = items and all(isinstance(item, dict) and item.get("role") in ROLES for item in items)
        return None if is_chat else items
    if isinstance(value, dict):
        if columns := _of_columns(value):
            return columns
        for key in _LISTS:
            if isinstance(value.get(key), list):
                return documents_in(value[key])
        inner = next((value[key] for key in ("output", "hits") if isinstance(value.get(key), dict)), None)
        return documents_in(inner)
    return None


def _of_pair(item: Value) -> Value:
    """Return a pair of a document and its score, as LangChain returns it, as one document."""
    is_pair = isinstance(item, list) and len(item) == 2 and isinstance(item[0], (str, dict))
    if not is_pair or number(item[1]) is None:
        return item
    return {**document_parts(item[0])[0], **as_dict(item[0]), "score": number(item[1])}


def _of_columns(value: dict[str, Value]) -> list[Value]:
    """Return the documents of parallel lists, as Chroma and Open WebUI return them; an empty list for other objects."""
    lists = {name.rstrip("s"): item for name, item in value.items() if isinstance(item, list) and item}
    lists = {name: item[0] if isinstance(item[0], list) else item for name, item in lists.items()}
    texts = lists.get("document", [])
    ids, metadatas, distances = (lists.get(name) or [None] * len(texts) for name in ("id", "metadata", "distance"))
    if lists.keys().isdisjoint(("id", "metadata")) or len({*map(len, (ids, texts, metadatas, distances))}) > 1:
        return []
    names = ("id", "text", "metadata", "distances")  # similarities in Open WebUI
    return [dict(zip(names, row, strict=True)) for row in zip(ids, texts, metadatas, distances, strict=True)]


def by_rank(documents: Sequence[Value]) -> list[Value]:
    """Return documents in the order of the ranks that they state, if those are 1 to N or 0 to N-1."""
    # Dify numbers the segments that it found; other positions are those in a document
    names = (("position" if "segment_id" in as_dict(document) else "rank",) for document in documents)
    stated = [first_id(name, document) for name, document in zip(names, documents, strict=True)]
    for first in (0, 1):
        expected = [str(rank) for rank in range(first, first + len(stated))]
        if set(stated) == set(expected) and len(stated) > 1:
            return [documents[stated.index(rank)] for rank in expected]
    return list(documents)


def contexts_in(*mappings: Value) -> Value:
    """Return the retrieved documents, or their text, in a field of the first mapping that has them; otherwise None."""
    for mapping in map(as_dict, mappings):
        for name in CONTEXT_KEYS:
            if mapping.get(name):
                return mapping[name]
    lists = (decoded(as_dict(mapping).get(name)) for mapping in mappings for name in SOURCE_KEYS)
    named = next((named_documents(item) for item in lists if isinstance(item, list) and item), None)
    return named or next(filter(None, map(documents_of_response, mappings)), None)


def documents_of_response(response: Value) -> list[Value]:
    """Return the retrieved documents in the response of a model's API; an empty list if it has none."""
    for path in (*_OF_RESPONSES, *_OF_INDEXES):
        values = [response]
        for name in path.split("/"):
            fields = [as_dict(value).get(name) for value in values]
            values = list(chain.from_iterable(map(as_list, fields)))
        documents = [value for value in values if isinstance(value, dict)]
        if documents and (path in _OF_RESPONSES or text_of(document_parts(documents[0])[0]) is not None):
            return documents
    return []


def tool_results(messages: Value) -> list[Value]:
    """Return the results of tools in messages, and the documents that a request to Anthropic has."""
    results = []
    for message in map(as_dict, as_list(messages)):
        results += [message] if role_of(message) in ("tool", "function") else []
        parts = chain.from_iterable(as_list(message.get(name)) for name in ("parts", "content"))
        for part in map(as_dict, parts):
            if str(part.get("type")).startswith(("tool_result", "tool-", *_BLOCKS)):
                results += tool_results([part]) or [part]
    return results


def documents_of_result(result: dict[str, Value]) -> list[Value]:
    """Return the documents in a result of a tool, or a document of a request; an empty list for other results.

    Of other tools they are objects with a text, and an id, a score or the name of a document.
    """
    if result.get("type") in _BLOCKS:
        source = as_dict(result.get("source"))
        text = source.get("data") if source.get("type") == "text" else message_text({**result, **source})
        return [{"text": text, **{name: result.get(name) for name in ("title", "source")}}] if text else []
    content = result.get("content")  # of CSV, already decoded
    is_decoded = isinstance(content, list) and all("type" not in as_dict(part) for part in content)
    documents = documents_in(content if is_decoded else decoded(message_text(result))) or []
    parts = [document_parts(item) for item in documents if isinstance(item, dict)]
    are_named = [id_in(*part) or document_id_in(*part) or score_in(*part) is not None for part in parts]
    has_texts = len(parts) == len(documents) and all(text_of(plain) is not None for plain, _ in parts)
    return documents if has_texts and all(are_named) else []


def named_documents(values: list[Value]) -> list[Value]:
    """Return documents; texts are ids, such as file names, if one of them has no white space."""
    are_names = any(isinstance(item, str) and _NAME.fullmatch(item) for item in values)
    return [{"id": item} if are_names and isinstance(item, str) else item for item in values]


def is_repr(value: Value) -> bool:
    """Return whether a text is a printed Python object, which a tool records if it cannot write JSON."""
    return isinstance(value, str) and _REPR.match(value) is not None


def document_parts(document: Value) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return a retrieved document and its metadata as two plain mappings, from any wrapper."""
    if isinstance(document, str):
        return {"text": document}, {}
    if document.get("lc") and isinstance(document.get("kwargs"), dict):
        document = document["kwargs"]
    for wrapper in _WRAPPERS:
        if isinstance(document.get(wrapper), dict):
            document = {**document[wrapper], **{name: value for name, value in document.items() if name != wrapper}}
    plain = {_field(name): value for name, value in document.items()}
    metadata = as_dict(decoded(plain.pop("metadata", None) or plain.pop("meta", None) or {}))
    if text_of(plain) is None and (text := text_of(metadata)) is not None:  # of Pinecone
        plain, metadata = {**plain, "text": text}, {n: v for n, v in metadata.items() if n not in TEXT_KEYS}
    return plain, metadata


@lru_cache(maxsize=1 << 12)
def _field(name: str) -> str:
    """Return the name of a field of a document in English, if it is in another language."""
    plain = name.removeprefix("document.")
    translated = english(plain)
    return translated if translated in (*TEXT_KEYS, *DOCUMENT_KEYS, *SCORE_KEYS) else plain


def text_of(document: dict[str, Value]) -> str | None:
    """Return the text of a document; None if it has none."""
    texts = [document.get(key) for key in TEXT_KEYS]
    texts += [as_dict(document.get(key)).get("text") for key in _WRAPPED_TEXTS]
    texts += [message_text({"content": document["content"]})] if isinstance(document.get("content"), list) else []
    texts += [text for key in _TEXTS_OR_IDS if isinstance(text := document.get(key), str) and " " in text.strip()]
    return next((text for text in texts if isinstance(text, str)), None)


def id_in(document: dict[str, Value], metadata: dict[str, Value]) -> str | None:
    """Return the id that a document states, in its own fields first, then in its metadata."""
    part, file = as_id(document.get("chunk_id")) or "", as_id(document.get("filepath"))
    if file and part.isdigit() and not document.get("id"):
        return f"{file}#{part}"  # of Azure, which numbers the chunks of each file
    names = ("id", "id_", "node_id", "chunk_id", "chunkId", "segment_id", "_id", "uuid")
    stated = first_id(names, document) or first_id(CHUNK_KEYS, metadata)
    base, page = as_id(metadata.get("doc_id")), first_id(("chunk_index", "page"), metadata)
    if text_of(document) is None:
        stated = stated or document_id_in(document, metadata)
    return stated or (f"{base}#{page}" if base and page else None)


def document_id_in(document: dict[str, Value], metadata: dict[str, Value]) -> str | None:
    """Return the id of a chunk's document; None if nothing names one."""
    return first_id(DOCUMENT_KEYS, metadata, document)


def score_in(document: dict[str, Value], metadata: dict[str, Value]) -> Value:
    """Return the score that a document or its metadata states; None if neither does."""
    scores = (fields.get(name) for fields in (document, metadata) for name in SCORE_KEYS)
    return next((score for score in scores if score is not None), None)


def chunk(identity: str | None, text: str | None, doc_id: str | None, score: Value) -> dict[str, Value]:
    """Return a chunk of a trace row; without an id its text identifies it. A score that is no number is left out."""
    fields: dict[str, Value] = {"id": identity or text_id(text or "")}
    if text is not None:
        fields["text"] = text
    if doc_id:
        fields["doc_id"] = doc_id
    amount = number(score) if isinstance(score, str) else score
    if isinstance(amount, (int, float)) and not isinstance(amount, bool):
        fields["score"] = amount
    return fields


def stated_citations(output: Value) -> list[str] | None:
    """Return the ids in the field ``citations`` of a structured answer; None if it does not state them.

    A response of OpenAI states them in the annotations of its text.
    """
    cited = as_dict(output).get("citations", at(output, "/message/citations"))
    if not isinstance(cited, list):
        return _annotated(output)
    names = ("document_ids", "sources", "retrievedReferences")  # of Cohere and Bedrock
    several = (next((as_dict(item)[name] for name in names if name in as_dict(item)), item) for item in cited)
    items = chain.from_iterable(map(as_list, several))
    ids = [_cited_id(*document_parts(item)) if isinstance(item, dict) else as_id(item) for item in items]
    return None if None in ids else list(dict.fromkeys(map(str, ids)))


def _annotated(output: Value) -> list[str] | None:
    """Return the files and pages that a response of OpenAI cites; None without any, except after a file search.

    Every text has a list of annotations, which is empty for systems that cite in the text.
    """
    steps = list(map(as_dict, output if isinstance(output, list) else as_list(as_dict(output).get("output"))))
    parts = map(as_dict, chain.from_iterable(as_list(step.get("content")) for step in steps))
    notes = chain.from_iterable(as_list(part.get("annotations")) for part in parts)
    names = (first_id(("filename", "file_id", "url"), as_dict(note)) for note in notes)
    cited = list(dict.fromkeys(filter(None, names)))
    return cited if cited or any(step.get("type") == "file_search_call" for step in steps) else None


def cited_positions(output: Value) -> list[int]:
    """Return the positions of the documents that an answer of Anthropic cites, in the order of the request."""
    parts = map(as_dict, as_list(as_dict(output).get("content")))
    cited = map(as_dict, chain.from_iterable(as_list(part.get("citations")) for part in parts))
    positions = (first_id(("document_index", "search_result_index"), citation) for citation in cited)
    return [int(position) for position in dict.fromkeys(positions) if position and position.isdecimal()]


def _cited_id(document: dict[str, Value], metadata: dict[str, Value]) -> str | None:
    """Return the id of a cited document, or one of its text, if that is no part of the answer; otherwise None."""
    text = None if "start" in document else text_of(document)
    return id_in(document, metadata) or (text_id(text) if text is not None else None)


def cited_in(answer: str, form: str, ids: Sequence[str]) -> list[str]:
    """Return the ids that an answer cites, in order and without repeats.

    ``form`` is ``brackets`` (``[id]``, ``[id1, id2]``) or ``numbers`` (``[1]``, ``[2, 3]``, ``【1†source】``: positions
    in the list of retrieved ``ids``; a number past its end becomes ``#N``; RAGFlow's ``[ID:0]`` is the first).
    """
    cited: list[str] = []
    if form == "numbers":
        for match in _NUMBERS.finditer(answer):
            ranks = [int(match[3]) + 1] if match[3] else map(int, (match[1] or match[2]).split(","))
            cited += [ids[rank - 1] if 0 < rank <= len(ids) else f"#{rank}" for rank in ranks]
    else:
        for match in _BRACKETS.finditer(answer):
            parts = [match[1]] if match[1] in ids else map(str.strip, re.split(r"[,;]", match[1]))
            cited += [part for part in parts if part]
    return list(dict.fromkeys(cited))
