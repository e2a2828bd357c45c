"""Samples of Ragas, and test sets of Giskard's RAGET, as gold rows; the answers in samples as trace rows.

The reports of RAGET, which have an agent's answers too, are tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_eval.importers import FIELDS, Row, table, unwrap
from rag_eval.importers.columns import PREDICTED, operations
from rag_eval.importers.conversion import JUDGED, NOT_READ, Conversion, Draft
from rag_eval.importers.unwrap import answer_text, as_dict, as_text, number

_HOP = re.compile(r"<\d+-hop>\n\n")  # before the texts of questions that need several
_OLD = {"question": "user_input", "answer": "response", "contexts": "retrieved_contexts", "ground_truth": "reference"}
_META = FIELDS["ragas"]["meta"]
_READ = set(FIELDS["ragas"]["read"])
_OF_GISKARD = ("id", "question", "reference_answer", "reference_context", "conversation_history", "metadata")
_DOCUMENT = re.compile(r"(?:^|\n\n)Document [^\s:]{1,100}: ")


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each question."""
    account = conversion.account
    for qid, row in _samples(conversion):
        contexts = conversion.list_of(row, "reference_contexts")
        ids = conversion.list_of(row, "reference_context_ids")
        reference = row.get("reference")
        name = "ground_truths" if "ground_truths" in row else "answers"
        truths = row.get(name)
        if isinstance(truths, list) and truths and as_text(truths[0]) is not None:
            reference = as_text(truths[0]) if reference is None else reference
            account.dropped(f"other texts of {name}", "the first is the expected answer", len(truths) - 1)
        elif truths:
            account.dropped(name, "it is no list of texts")
        if contexts and not ids:
            meaning = "gold citations are ids of the reference texts, as in traces without chunk ids"
            account.lacking(f"{meaning}; import traces that have chunk ids with --by-text")
        if contexts == []:
            account.lacking("questions with empty reference_contexts; mark unanswerable ones with --unanswerable")
        texts = [_HOP.sub("", str(text), count=1) for text in contexts or ()]
        cited = list(map(str, ids)) if ids else conversion.reference_ids(texts)
        meta = {name: row[name] for name in _META if isinstance(row.get(name), (str, int, float, bool))}
        yield conversion.gold_row(qid, row["user_input"], as_text(reference), cited, meta=meta)


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each answer."""
    for qid, row in _samples(conversion):
        names = ("retrieved_contexts", "retrieved_context_ids")
        documents = conversion.documents(*(conversion.list_of(row, name) for name in names))
        chunks = None if documents is None else conversion.chunks(documents)
        answers = row.get("multi_responses") if row.get("response") is None else None
        for index, answer in enumerate([row.get("response")] if answers is None else answers, 1):
            run = None if answers is None else f"try-{index}"
            draft = Draft(conversion.place, "", row["user_input"], as_text(answer), chunks, qid=qid, run=run)
            recorded = {field: row[name] for field, name in operations(*row).items()}
            table.read_operations(conversion, draft, recorded)
            yield draft


def _samples(conversion: Conversion) -> Iterator[tuple[str, Row]]:
    """Yield qid and fields of each single-turn sample, under current names."""
    account = conversion.account
    headers: dict[str, set[str]] = {}
    for value in conversion.records("a sample"):
        row = {name: item for name, item in value.items() if item is not None}
        if any(isinstance(item, list) and item and "metric_input" in as_dict(item[0]) for item in row.values()):
            hint = "Export the evaluation dataset itself: dataset.to_jsonl(PATH)."
            return conversion.problem("", "contains annotations that train a judge, not samples", hint)
        # the contexts of a test set were reference contexts
        of_test_set = {"contexts": "reference_contexts"} if "evolution_type" in row and "answer" not in row else {}
        path = conversion.place[0]
        if "answer" in row and path not in headers:  # a row of CSV lacks its empty cells
            headers[path] = set(table.header(conversion.inputs, path))
        predicted = next((name for name in PREDICTED if name in headers.get(path, ())), None)
        of_reports = {predicted: "response", "answer": "reference"} if predicted else {}
        for old, new in {**_OLD, **of_test_set, **of_reports}.items():
            if old in row and new not in row:
                row[new] = row.pop(old)
                account.renamed(old, new)
        is_conversation = isinstance(row.get("user_input"), list)
        if is_conversation and not conversion.takes_last_turn("/user_input"):
            continue
        last_answer = answer_text(row["user_input"]) if is_conversation else None
        row["response"] = last_answer or row.get("response")
        question = conversion.question(row.get("user_input"), row)
        if question is None:
            hint = "Ragas calls it user_input (before 0.2: question). Or name it with --question POINTER."
            conversion.problem("", "has no question", hint)
            continue
        row["user_input"] = question
        read = _READ.union(operations(*row).values())
        for name, item in row.items():
            if name not in read:
                account.dropped(name, JUDGED if name and number(item) is not None else NOT_READ)
        yield conversion.sample_id("ragas", question, row), row


def giskard_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each question; one out of scope is not answerable, its context is only similar to it."""
    for sample in conversion.records("a question"):
        metadata = unwrap.as_dict(unwrap.decoded(sample.get("metadata")))
        in_scope = metadata.get("question_type") != "out of scope"
        texts = [text for text in _DOCUMENT.split(str(sample.get("reference_context") or "")) if text.strip()]
        expected = {"answer": sample.get("reference_answer"), "answerable": in_scope}
        if in_scope:
            expected["contexts"] = texts
        more = {"history": unwrap.decoded(sample.get("conversation_history")) or []}
        item, asked = {**sample, "metadata": metadata}, sample.get("question")
        yield from conversion.dataset_item(item, asked, expected, _OF_GISKARD, "/question", "giskard", **more)
