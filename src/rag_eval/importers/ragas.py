"""Ragas samples (``EvaluationDataset`` and the older columns) as gold rows and as trace rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_eval.importers import Account, ImportInputs, Numbered
from rag_eval.importers.conversion import JUDGED, NOT_READ, Conversion, ConversionOptions, Draft
from rag_eval.importers.documents import as_list, samples
from rag_eval.importers.unwrap import as_id, message_text, number, question_id, role_of

Row = dict[str, Any]
_OLD = {"question": "user_input", "answer": "response", "contexts": "retrieved_contexts", "ground_truth": "reference"}
_META = ("persona_name", "query_style", "query_length", "synthesizer_name", "evolution_type", "episode_done")
_FIELDS = {
    "user_input",
    "response",
    "multi_responses",
    "retrieved_contexts",
    "retrieved_context_ids",
    "reference",
    "reference_contexts",
    "reference_context_ids",
    "ground_truths",
    "qid",
    "id",
    "question_id",
    *_META,
}


def rows(inputs: ImportInputs, account: Account, options: ConversionOptions) -> Numbered:
    """Yield line and trace row of each answer."""
    conversion = Conversion(inputs, options, account)
    yield from conversion.rows("ragas", list(_drafts(conversion)))


def gold_rows(inputs: ImportInputs, account: Account, options: ConversionOptions) -> Numbered:
    """Yield line and gold row of each question; repeated samples are left out if they are equal."""
    conversion = Conversion(inputs, options, account)
    seen: dict[str, Row] = {}
    empty = texts = 0
    for path, line, qid, row in _samples(conversion):
        contexts = _list(conversion, path, line, row, "reference_contexts")
        ids = _list(conversion, path, line, row, "reference_context_ids")
        reference = row.get("reference")
        if isinstance(several := row.get("ground_truths"), list) and several:
            reference = several[0] if reference is None else reference
            account.dropped("other texts of ground_truths", "the first is the expected answer", len(several) - 1)
        texts += bool(contexts and not ids)
        empty += contexts == []
        cited = (
            [str(item) for item in ids] if ids else conversion.reference_ids(str(context) for context in contexts or ())
        )
        meta = {name: row[name] for name in _META if isinstance(row.get(name), (str, int, float, bool))}
        gold = conversion.gold_row(qid, row["user_input"], as_id(reference), cited, meta=meta)
        if seen.setdefault(qid, gold) is not gold:
            if seen[qid] != gold:
                inputs.problem(
                    path,
                    line,
                    "",
                    f"asks the question of {qid} again, with another reference",
                    "Keep one sample a question.",
                )
            account.dropped("a sample of a question that came before", "it has the same meaning")
            continue
        yield line, gold
    if texts:
        account.lacking(
            "chunk ids are derived from texts: import the traces with ragas-trace, or use the same texts", texts
        )
    if empty:
        account.lacking("questions with empty reference_contexts; mark unanswerable ones with --unanswerable", empty)
    conversion.finish()


def _drafts(conversion: Conversion) -> Iterator[Draft]:
    for path, line, qid, row in _samples(conversion):
        contexts = _list(conversion, path, line, row, "retrieved_contexts")
        ids = _list(conversion, path, line, row, "retrieved_context_ids")
        if contexts and ids and len(contexts) != len(ids):
            message = f"has {len(contexts)} retrieved_contexts and {len(ids)} retrieved_context_ids"
            conversion.inputs.problem(path, line, "/retrieved_context_ids", message, "Give one id for each context.")
            continue
        documents = [
            {**({"id": as_id(ids[number])} if ids else {}), **({"text": contexts[number]} if contexts else {})}
            for number in range(len(contexts or ids or ()))
        ]
        chunks = None if contexts is None and ids is None else conversion.chunks(documents, path, line)
        answers = row.get("multi_responses") if row.get("response") is None else None
        if answers is None:
            yield Draft(path, line, "", row["user_input"], as_id(row.get("response")), chunks, qid=qid)
        for index, answer in enumerate(answers or (), 1):
            yield Draft(path, line, "", row["user_input"], as_id(answer), chunks, qid=qid, run=f"try-{index}")


def _samples(conversion: Conversion) -> Iterator[tuple[str, int, str, Row]]:
    """Yield path, line, qid and fields of each single-turn sample, under current names."""
    inputs, account = conversion.inputs, conversion.account
    for path in inputs.paths:
        for line, row in samples(inputs, path, "a sample"):
            if any(
                isinstance(value, list) and value and isinstance(value[0], dict) and "metric_input" in value[0]
                for value in row.values()
            ):
                hint = "Export the evaluation dataset itself: dataset.to_jsonl(PATH)."
                inputs.problem(path, line, "", "contains annotations that train a judge, not samples", hint)
                return
            _rename(account, row)
            if isinstance(row.get("user_input"), list) and not _last_turn(conversion, path, line, row):
                continue
            question = conversion.question(row.get("user_input"), row)
            if question is None:
                hint = "Ragas calls it user_input (before 0.2: question). Or name it with --question POINTER."
                inputs.problem(path, line, "", "has no question", hint)
                continue
            row["user_input"] = question
            for name, value in row.items():
                if name not in _FIELDS:
                    account.dropped(name, JUDGED if number(value) is not None else NOT_READ)
            qid = conversion.qid(row) or as_id(row.get("id"))
            yield path, line, qid or question_id("ragas", question), row


def _rename(account: Account, row: Row) -> None:
    """Rename the columns of versions before 0.2; the contexts of a test set were reference contexts."""
    of_test_set = "evolution_type" in row and "answer" not in row
    for old, new in (_OLD | ({"contexts": "reference_contexts"} if of_test_set else {})).items():
        if old in row and new not in row:
            row[new] = row.pop(old)
            account.renamed(old, new)


def _last_turn(conversion: Conversion, path: str, line: int, row: Row) -> bool:
    """Reduce a conversation to its last human message and the answer to it, if ``--turns last`` allows that."""
    if conversion.options.turns != "last":
        hint = "Only single turns are scored. Take the last turn of each conversation with --turns last."
        conversion.inputs.problem(path, line, "/user_input", "is a conversation", hint)
        return False
    messages = row["user_input"]
    last = max((index for index, message in enumerate(messages) if role_of(message) in ("human", "user")), default=-1)
    answers = [message_text(message) for message in messages[last + 1 :] if role_of(message) in ("ai", "assistant")]
    row["user_input"] = message_text(messages[last]) if last >= 0 else None
    row["response"] = answers[-1] if answers else row.get("response")
    return True


def _list(conversion: Conversion, path: str, line: int, row: Row, name: str) -> list[Any] | None:
    return None if row.get(name) is None else as_list(conversion.inputs, path, line, name, row[name])
