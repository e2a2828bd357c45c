"""Any CSV or JSON by a map of its fields, as trace rows (``table``) and as gold rows (``table-gold``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.importers import Account, ImportInputs, Numbered, unwrap
from rag_eval.importers.conversion import Conversion, ConversionOptions, Draft
from rag_eval.importers.documents import as_list, csv_rows, is_csv, objects
from rag_eval.importers.unwrap import question_id

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
"""The fields of a map for traces, and the names by which ``--suggest-map`` finds each."""
GOLD_FIELDS = {
    "qid": FIELDS["qid"],
    "question": FIELDS["question"],
    "answerable": ("answerable", "is_answerable"),
    "expected_answer": (
        *("expected_answer", "expected", "reference", "reference_answer", "ground_truth", "gold_answer", "truth"),
        *("expected_output", "ideal_answer", "answer"),
    ),
    "gold_claim_substr": ("gold_claim_substr", "must_contain", "keywords", "key_facts"),
    "gold_citations": (
        *("gold_citations", "citations", "gold_ids", "relevant_ids", "sources", "source", "reference_context_ids"),
        *("chunk_ids", "doc_ids", "passage_id"),
    ),
    "contexts": ("contexts", "reference_contexts", "context", "passage"),
    "difficulty": ("difficulty",),
    "category": ("category",),
    "tags": ("tags",),
}
"""The same for a map of gold."""
FORMS = {"table": FIELDS, "table-gold": GOLD_FIELDS}
_GROUPED = ("chunks", "chunk_ids")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SEPARATORS = re.compile(r"[,;\s]+")


def rows(
    inputs: ImportInputs, account: Account, options: ConversionOptions, fields: dict[str, str] | None = None
) -> Numbered:
    """Yield line and trace row of each record, or of each group of records with one qid and run (a chunk in each)."""
    conversion = Conversion(inputs, options, account)
    yield from conversion.rows("table", list(_drafts(conversion, fields or {})))


def gold_rows(
    inputs: ImportInputs, account: Account, options: ConversionOptions, fields: dict[str, str] | None = None
) -> Numbered:
    """Yield line and gold row of each question; a record that repeats one adds its citations and substrings."""
    conversion = Conversion(inputs, options, account)
    items: dict[str, tuple[int, Row]] = {}
    for path, line, values in _records(conversion, "table-gold", fields or {}):
        question = conversion.question(values.get("question"), values)
        if question is None:
            inputs.problem(path, line, "", "has no question", "Write the question, or remove the record.")
            continue
        texts = _listed(conversion, path, line, "contexts", values)
        tags = _listed(conversion, path, line, "tags", values, _SEPARATORS)
        stated = str(values.get("answerable", True)).casefold()
        if stated not in _TRUTH:
            inputs.problem(path, line, "/answerable", f"is {quoted(stated, 40)}", "Write true or false.")
            continue
        gold = conversion.gold_row(
            unwrap.as_id(values.get("qid")) or question_id("table", question),
            question,
            unwrap.as_id(values.get("expected_answer")),
            _listed(conversion, path, line, "gold_citations", values, _SEPARATORS) or conversion.reference_ids(texts),
            answerable=_TRUTH[stated],
            substrings=_listed(conversion, path, line, "gold_claim_substr", values),
            **({"tags": tags} if tags else {}),
            **{name: str(values[name]) for name in ("difficulty", "category") if values.get(name) is not None},
        )
        first = items.setdefault(gold["qid"], (line, gold))[1]
        joined = ("gold_citations", "gold_claim_substr")
        for name in joined:
            first[name] += [text for text in gold[name] if text not in first[name]]
        differs = [
            name for name in ("question", *values) if name in gold.keys() - {*joined} and gold[name] != first.get(name)
        ]
        if differs:
            message = f"repeats {quoted(gold['qid'])} with another {differs[0]}"
            inputs.problem(path, line, "", message, "Give each question its own qid, or repeat the same values.")
    yield from items.values()
    conversion.finish()


def suggested(names: list[str], fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return a first map from the names of a header or of a record's keys: only recognised fields."""
    by_lower = {name.casefold().replace(" ", "_"): name for name in names}
    return {
        field: by_lower[known[0]]
        for field, names_of in fields.items()
        if (known := [name for name in names_of if name in by_lower])
    }


def header(inputs: ImportInputs, path: str) -> list[str]:
    """Return the names of the columns of a CSV, or of the fields of the first record."""
    records = csv_rows(inputs, path) if is_csv(inputs, path) else objects(inputs, path, "a record")
    return list(next(records, (0, {}))[1])


def _records(conversion: Conversion, form: str, fields: dict[str, str]) -> Iterator[tuple[str, int, Row]]:
    """Yield path, line and mapped values of each record; a mapped column that no record has is a problem."""
    inputs = conversion.inputs
    read = {pointer.lstrip("/").partition("/")[0] for pointer in fields.values()}
    for path in inputs.paths:
        used = dict.fromkeys(fields, 0)
        for line, row in objects(inputs, path, "a record"):
            values = {field: value for field, pointer in fields.items() if (value := _value(row, pointer)) is not None}
            for field in values:
                used[field] += 1
            for name in row:
                if name not in read:
                    conversion.account.dropped(name, "the map does not contain it")
            yield path, line, values
        for field, hits in used.items():
            if any(used.values()) and not hits and fields[field] not in header(inputs, path):  # a blank column is fine
                message = f"{field} is mapped to {fields[field]}, which no record has"
                inputs.problem(path, 0, "", message, f"Correct the map: rag-eval import {form} {path} --suggest-map")


def _drafts(conversion: Conversion, fields: dict[str, str]) -> Iterator[Draft]:
    drafts: dict[tuple[str | None, ...], Draft] = {}
    for path, line, values in _records(conversion, "table", fields):
        key = tuple(unwrap.as_id(values.get(name)) for name in ("qid", "question", "run"))
        documents = _documents(conversion, path, line, values)
        if key in drafts and documents is not None and not values.get("answer"):
            known = drafts[key]  # a record for each chunk: the first one has the answer
            known.chunks = [*(known.chunks or []), *conversion.chunks(documents, path, line)]
            continue
        draft = _draft(conversion, path, line, values)
        draft.chunks = None if documents is None else conversion.chunks(documents, path, line)
        if key in drafts:
            yield draft
        else:
            drafts[key] = draft
    yield from drafts.values()


def _value(row: Row, pointer: str) -> Any:
    value = unwrap.at(row, pointer) if pointer.startswith("/") else row.get(pointer)
    return None if value == "" else value


def _draft(conversion: Conversion, path: str, line: int, values: Row) -> Draft:
    draft = Draft(path, line, "", conversion.question(values.get("question")), conversion.answer(values.get("answer")))
    draft.qid, draft.run = unwrap.as_id(values.get("qid")), unwrap.as_id(values.get("run"))
    if values.get("error") and draft.answer is None:
        draft.error, draft.ok = str(values["error"]), False
    if values.get("citations") is not None:
        draft.citations = _listed(conversion, path, line, "citations", values, _SEPARATORS)
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
    return [{"id": unwrap.as_id(item), **_text(texts[index] if texts else None)} for index, item in enumerate(ids)]


def _text(value: Any) -> Row:
    return value if isinstance(value, dict) else {"text": value} if isinstance(value, str) else {}


def _items(value: Any) -> list[Any]:
    value = unwrap.decoded(value)
    return value if isinstance(value, list) else [value]


def _listed(
    conversion: Conversion, path: str, line: int, name: str, values: Row, separators: re.Pattern[str] | None = None
) -> list[str]:
    """Return the texts of a list, or split a text without brackets at ``separators``."""
    value = values.get(name)
    if value is None:
        return []
    if isinstance(value, str) and value.lstrip()[:1] != "[":
        return [part for part in separators.split(value) if part] if separators else [value]
    return [str(item) for item in as_list(conversion.inputs, path, line, name, value) or ()]
