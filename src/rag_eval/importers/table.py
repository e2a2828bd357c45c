"""Any CSV or JSON by a map of its fields, as trace rows (``table``) and as gold rows (``table-gold``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.importers import ImportInputs, Row, unwrap
from rag_eval.importers.conversion import Conversion, Draft, Place
from rag_eval.importers.documents import csv_rows, is_csv, objects
from rag_eval.importers.unwrap import question_id

_NAMES = """
qid: qid question_id query_id case_id example_id test_id item_id id
question: question query user_input user_query user_question q input inputs prompt
answer: answer response generated_answer actual_output output outputs prediction predicted_answer model_answer model_response generation completion reply
citations: citations cited cited_ids citation_ids
chunks: chunks documents retrieved_contexts retrieved_context retrieved_chunks retrieved_documents retrieved_docs source_documents contexts context retrieval_context passages passage
chunk_ids: retrieved_ids retrieved_context_ids retrieved_chunk_ids retrieved_doc_ids chunk_ids document_ids doc_ids passage_id
run: run query_run model provider experiment
error: error
latency_ms: latency_ms duration_ms response_time_ms elapsed_ms
latency_s: latency latency_s latency_seconds duration response_time elapsed
input_tokens: input_tokens prompt_tokens
output_tokens: output_tokens completion_tokens
cost_usd: cost_usd cost total_cost
"""  # noqa: E501
_GOLD_NAMES = """
qid: qid question_id query_id case_id example_id test_id item_id id
question: question query user_input user_query user_question q input inputs prompt
answerable: answerable is_answerable
expected_answer: expected_answer expected reference reference_answer ground_truth gold_answer golden_answer correct_answer truth expected_output ideal_answer answer
gold_claim_substr: gold_claim_substr must_contain keywords key_facts
gold_citations: gold_citations citations gold_ids gold_doc_ids relevant_ids relevant_doc_ids relevant_docs sources source reference_context_ids chunk_ids doc_ids passage_id
contexts: contexts reference_contexts context passages passage
difficulty: difficulty
category: category
tags: tags
"""  # noqa: E501


def _fields(table: str) -> dict[str, list[str]]:
    pairs = (line.split(":") for line in table.strip().splitlines())
    return {field: names.split() for field, names in pairs}


FORMS = {"table": _fields(_NAMES), "table-gold": _fields(_GOLD_NAMES)}
"""The fields of a map for each format, and the names by which ``--suggest-map`` finds each."""
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ADDED = ("gold_citations", "gold_claim_substr")  # by each record of a question
_SEPARATORS = re.compile(r"[,;\s]+")


def golds(conversion: Conversion, fields: dict[str, str]) -> Iterator[Row]:
    """Yield the gold row of each question; a record that repeats one adds its citations and substrings."""
    items: dict[str, tuple[Place, Row]] = {}
    for values in _records(conversion, "table-gold", fields):
        question = conversion.question(values.get("question"), values)
        if question is None:
            conversion.problem("", "has no question", "Write the question, or remove the record.")
            continue
        citations, tags = (_list_of(conversion, name, values) for name in ("gold_citations", "tags"))
        texts = _list_of(conversion, "contexts", values)
        stated = str(values.get("answerable", True)).casefold()
        if stated not in _TRUTH:
            conversion.problem("/answerable", f"is {quoted(stated, 40)}", "Write true or false.")
            continue
        gold = conversion.gold_row(
            unwrap.as_id(values.get("qid")) or question_id("table", question),
            question,
            unwrap.as_id(values.get("expected_answer")),
            citations or conversion.reference_ids(texts),
            answerable=_TRUTH[stated],
            substrings=_list_of(conversion, "gold_claim_substr", values),
            tags=tags,
            **{name: str(values[name]) for name in ("difficulty", "category") if values.get(name) is not None},
        )
        first = items.setdefault(gold["qid"], (conversion.place, gold))[1]
        for name in _ADDED:
            first[name] += [text for text in gold[name] if text not in first[name]]
        compared = [name for name in ("question", *values) if name in gold and name not in _ADDED]
        differs = [name for name in compared if gold[name] != first.get(name)]
        if differs:
            message = f"repeats {quoted(gold['qid'])} with another {differs[0]}"
            conversion.problem("", message, "Give each question its own qid, or repeat the same values.")
    for conversion.place, row in items.values():
        yield row


def suggested(names: list[str], fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return a first map from the names of a header or of a record's keys: only recognised fields."""
    by_lower = {name.casefold().replace(" ", "_"): name for name in names}
    known = {field: [name for name in names_of if name in by_lower] for field, names_of in fields.items()}
    return {field: by_lower[names_of[0]] for field, names_of in known.items() if names_of}


def header(inputs: ImportInputs, path: str) -> list[str]:
    """Return the names of the columns of a CSV, or of the fields of the first record."""
    records = csv_rows(inputs, path) if is_csv(inputs, path) else objects(inputs, path, "a record")
    return list(next(records, (0, {}))[1])


def _records(conversion: Conversion, form: str, fields: dict[str, str]) -> Iterator[Row]:
    """Yield the mapped values of each record; a mapped column that no record has is a problem."""
    inputs = conversion.inputs
    read = {pointer.lstrip("/").partition("/")[0] for pointer in fields.values()}
    for path in inputs.paths:
        used = dict.fromkeys(fields, 0)
        for line, row in objects(inputs, path, "a record"):
            conversion.place = path, line
            pointed = {
                field: unwrap.at(row, pointer) if pointer.startswith("/") else row.get(pointer)
                for field, pointer in fields.items()
            }
            values = {field: value for field, value in pointed.items() if value not in (None, "")}
            for field in values:
                used[field] += 1
            for name in row:
                if name not in read:
                    conversion.account.dropped(name, "the map does not contain it")
            yield values
        for field, hits in used.items():
            if any(used.values()) and not hits and fields[field] not in header(inputs, path):  # a blank column is fine
                message = f"{field} is mapped to {fields[field]}, which no record has"
                inputs.problem(path, 0, "", message, f"Correct the map: rag-eval import {form} {path} --suggest-map")


def drafts(conversion: Conversion, fields: dict[str, str]) -> Iterator[Draft]:
    """Yield each record, or each group of records with one qid, question and run (a chunk in each)."""
    groups: dict[tuple[str | None, ...], Draft] = {}
    for values in _records(conversion, "table", fields):
        key = tuple(unwrap.as_id(values.get(name)) for name in ("qid", "question", "run"))
        texts, ids = (_items(values.get(name)) for name in ("chunks", "chunk_ids"))
        documents = conversion.documents(texts, ids)
        if key in groups and documents is not None and not values.get("answer"):
            known = groups[key]  # a record for each chunk: the first one has the answer
            known.chunks = [*(known.chunks or []), *conversion.chunks(documents)]
            continue
        draft = _draft(conversion, values)
        draft.chunks = None if documents is None else conversion.chunks(documents)
        if key in groups:
            yield draft
        else:
            groups[key] = draft
    yield from groups.values()


def _draft(conversion: Conversion, values: Row) -> Draft:
    draft = Draft(
        conversion.place, "", conversion.question(values.get("question")), conversion.answer(values.get("answer"))
    )
    draft.qid, draft.run = unwrap.as_id(values.get("qid")), unwrap.as_id(values.get("run"))
    if values.get("error") and draft.answer is None:
        draft.error, draft.ok = str(values["error"]), False
    if values.get("citations") is not None:
        draft.citations = _list_of(conversion, "citations", values)
    for field, scale in (("latency_ms", 1), ("latency_s", 1000)):
        if (number := unwrap.number(values.get(field))) is not None and number > 0:
            draft.latency_ms["total"] = round(float(number * scale), 3)
    for field in ("input_tokens", "output_tokens", "cost_usd"):
        if (number := unwrap.number(values.get(field))) is not None:
            draft.usage[field] = number if field == "cost_usd" else int(number)
    return draft


def _items(value: Any) -> list[Any] | None:
    value = unwrap.decoded(value)
    return value if value is None or isinstance(value, list) else [value]


def _list_of(conversion: Conversion, name: str, values: Row) -> list[str]:
    """Return the texts of a list. A text without brackets is one text, or a list of ids or tags."""
    value = values.get(name)
    if isinstance(value, str) and value.lstrip()[:1] != "[":
        texts = [value] if name in ("contexts", "gold_claim_substr") else _SEPARATORS.split(value)
        return [text for text in texts if text]
    return [str(item) for item in conversion.list_of(values, name) or ()]
