"""Any CSV or JSON with one record a question, by a map of its fields: ``import table --map map.yml``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers import unwrap
from rag_eval.importers.conversion import Conversion, Draft, Options
from rag_eval.importers.documents import csv_rows, is_csv, objects
from rag_eval.importers.samples import as_list

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
FIELDS = {
    "qid": ("qid", "question_id", "query_id", "case_id", "example_id", "id"),
    "question": ("question", "query", "user_input", "q", "input", "inputs", "prompt"),
    "answer": ("answer", "response", "generated_answer", "actual_output", "output", "outputs", "prediction"),
    "citations": ("citations", "cited", "cited_ids"),
    "chunks": (
        "chunks",
        "documents",
        "retrieved_contexts",
        "retrieved_context",
        "contexts",
        "context",
        "retrieval_context",
        "passage",
    ),
    "chunk_ids": ("retrieved_ids", "retrieved_context_ids", "chunk_ids", "doc_ids", "passage_id"),
    "run": ("run", "query_run", "model", "provider", "experiment"),
    "error": ("error",),
    "latency_ms": ("latency_ms", "duration_ms"),
    "latency_s": ("latency", "latency_s", "duration"),
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "cost_usd": ("cost_usd", "cost", "total_cost"),
}
"""The fields of a map, each with the names by which ``--suggest-map`` finds it. Values are names or JSON Pointers."""
_GROUPED = ("chunks", "chunk_ids")


def rows(inputs: Inputs, account: Account, options: Options, fields: dict[str, str] | None = None) -> Numbered:
    """Line and trace row of each record, or of each group of records that repeat qid and run (a chunk a record)."""
    conversion = Conversion(inputs, options, account)
    yield from conversion.rows("table", list(_drafts(conversion, fields or {})))


def suggested(names: list[str]) -> dict[str, str]:
    """A first map from the names of a header or of a record's keys: only fields that are recognised."""
    by_lower = {name.casefold().replace(" ", "_"): name for name in names}
    return {
        field: by_lower[known[0]]
        for field, names_of in FIELDS.items()
        if (known := [one for one in names_of if one in by_lower])
    }


def header(inputs: Inputs, path: str) -> list[str]:
    """The names of the columns of a CSV, or of the fields of the first record."""
    records = csv_rows(inputs, path) if is_csv(inputs, path) else objects(inputs, path, "a record")
    return list(next(records, (0, {}))[1])


def _drafts(conversion: Conversion, fields: dict[str, str]) -> Iterator[Draft]:
    inputs, account = conversion.inputs, conversion.account
    drafts: dict[tuple[str | None, str | None, str | None], Draft] = {}
    for path in inputs.paths:
        read = {pointer.lstrip("/").partition("/")[0] for pointer in fields.values()}
        used = dict.fromkeys(fields, 0)
        for line, row in objects(inputs, path, "a record"):
            values = {field: _value(row, pointer) for field, pointer in fields.items()}
            for field, value in values.items():
                used[field] += value is not None
            for name in row:
                if name not in read:
                    account.dropped(name, "the map does not contain it")
            question = unwrap.as_id(values.get("question"))
            key = unwrap.as_id(values.get("qid")), question, unwrap.as_id(values.get("run"))
            documents = _documents(conversion, path, line, values)
            if key in drafts and documents is not None and not values.get("answer"):
                known = drafts[key]  # one record a chunk: the answer stands on the first
                known.chunks = [*(known.chunks or []), *conversion.chunks(documents, path, line)]
                continue
            draft = _draft(conversion, path, line, values)
            draft.chunks = None if documents is None else conversion.chunks(documents, path, line)
            if key in drafts:
                yield draft
            else:
                drafts[key] = draft
        for field, hits in used.items():
            if any(used.values()) and not hits:
                message = f"{field} is mapped to {fields[field]}, which no record has"
                inputs.problem(path, 0, "", message, f"Correct the map: rag-eval import table {path} --suggest-map")
    yield from drafts.values()


def _value(row: Row, pointer: str) -> Any:
    value = unwrap.at(row, pointer) if pointer.startswith("/") else row.get(pointer)
    return None if value == "" else value


def _draft(conversion: Conversion, path: str, line: int, values: Row) -> Draft:
    draft = Draft(path, line, "", unwrap.as_id(values.get("question")), conversion.answer(values.get("answer")))
    draft.qid, draft.run = unwrap.as_id(values.get("qid")), unwrap.as_id(values.get("run"))
    if values.get("error") and draft.answer is None:
        draft.error, draft.ok = str(values["error"]), False
    if (cited := values.get("citations")) is not None:
        found = (
            as_list(conversion.inputs, path, line, "citations", cited)
            if not isinstance(cited, str) or cited.lstrip()[:1] == "["
            else cited.replace(",", " ").split()
        )
        draft.citations = [str(one) for one in found or ()]
    for field, scale in (("latency_ms", 1), ("latency_s", 1000)):
        if (number := unwrap.number(values.get(field))) is not None and number > 0:
            draft.latency_ms["total"] = round(number * scale, 3)
    for field in ("input_tokens", "output_tokens", "cost_usd"):
        if (number := unwrap.number(values.get(field))) is not None:
            draft.usage[field] = number if field == "cost_usd" else int(number)
    return draft


def _documents(conversion: Conversion, path: str, line: int, values: Row) -> list[Any] | None:
    texts, ids = ([] if values.get(field) is None else _items(values[field]) for field in _GROUPED)
    if values.get("chunks") is None and values.get("chunk_ids") is None:
        return None
    if texts and ids and len(texts) != len(ids):
        message = f"has {len(texts)} chunks and {len(ids)} chunk_ids"
        conversion.inputs.problem(path, line, "", message, "Give one id for each chunk.")
        return None
    if not ids:
        return texts
    return [{"id": unwrap.as_id(one), **_text(texts[place] if texts else None)} for place, one in enumerate(ids)]


def _text(value: Any) -> Row:
    return value if isinstance(value, dict) else {"text": value} if isinstance(value, str) else {}


def _items(value: Any) -> list[Any]:
    value = unwrap.decoded(value)
    return value if isinstance(value, list) else [value]
