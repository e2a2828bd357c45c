"""Results of Azure's RAG chat evaluator and of ``azure.ai.evaluation.evaluate``, as gold rows and as trace rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from rag_eval.importers import Row, retrieved, table, unwrap
from rag_eval.importers.columns import operations
from rag_eval.importers.conversion import JUDGED, Conversion, Draft

_RETRIEVED, _LABELS = "retrieved_documents", "retrieval_ground_truth"  # of the evaluator of document retrieval
_NAMES = {"query": "question", "response": "answer", "ground_truth": "truth", "contexts": "context"}
_JUDGED = ("answer_length", "has_citation", "citation_match")
_READ = {
    *("question", "answer", "truth", "context", "latency", "qid", "id", "question_id", "line_number"),
    *(_RETRIEVED, _LABELS, *retrieved.CONTEXT_KEYS, *retrieved.SOURCE_KEYS),
}
_PIECE = re.compile(r"(?m)^([^\s:]{1,200}\.[A-Za-z0-9]{2,5}(?:#[^\s:]{1,60})?): ?")
_TRAILING = re.compile(r"(?:\s*\[([^\[\]\n]{1,200})\])+\s*$")
_FORMS = "Give eval_results.jsonl, or the JSON that evaluate(output_path=…) writes."


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each result."""
    for row in _results(conversion):
        answer = conversion.answer(row.get("answer"), row)
        draft = Draft(conversion.place, "", row["question"], answer, qid=row["qid"])
        latency = unwrap.number(row.get("latency")) or 0
        if latency < 0:
            draft.answer, draft.error, draft.ok = None, answer or "failed", False
            conversion.account.renamed("latency -1", "error")
        elif latency > 0:
            draft.latency_ms = {"total": round(latency * 1000, 3)}
        fields = {field: row[name] for field, name in operations(*row).items() if name != "latency"}
        output = unwrap.output_of(row.get("answer"))
        draft.usage, draft.citations = unwrap.usage_of(output), retrieved.stated_citations(output)
        table.drop_rest(conversion, output, draft.usage)
        table.read_operations(conversion, draft, fields)
        if isinstance(row.get(_RETRIEVED), list):  # ids without texts
            draft.chunks = conversion.chunks(row[_RETRIEVED])
        elif (context := row.get("context", retrieved.contexts_in(row, output))) is not None:
            draft.chunks = conversion.chunks(_pieces(conversion, context))
        table.read_positions(conversion, draft, output)
        yield draft


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each question."""
    for row in _results(conversion):
        truth = unwrap.as_text(row.get("truth"))
        labels = unwrap.decoded(row.get(_LABELS)) or ()
        grades = {str(item["document_id"]): item.get("query_relevance_label") for item in labels}
        grades = {name: grade for name, grade in grades.items() if isinstance(grade, int)}
        cited = [name for name, grade in grades.items() if grade >= 1]
        if truth is not None and (match := _TRAILING.search(truth)):
            cited += re.findall(r"\[([^\[\]\n]+)\]", match[0])
            truth = truth[: match.start()].rstrip()
            conversion.account.renamed("[id] at the end of the truth", "gold_citations")
        yield conversion.gold_row(row["qid"], row["question"], truth, cited, relevance_grades=grades)


def _fields(conversion: Conversion, raw: Row) -> Row:
    """Return the fields of a record under the names of the chat evaluator, without verdicts."""
    has_response = not {"response", "outputs.response", "inputs.response"}.isdisjoint(raw)
    row = {}
    for name, item in raw.items():
        plain = name.removeprefix("inputs.").removeprefix("outputs.")  # outputs.NAME are those of the target
        is_nested = name.startswith("outputs.") and "." in plain
        if name.startswith("gpt_") or is_nested or plain in _JUDGED:
            conversion.account.dropped(f"outputs.{plain.partition('.')[0]}.*" if is_nested else name, JUDGED)
        elif item is not None and plain == "answer" and has_response:
            conversion.account.dropped(name, "the response is the answer")
        elif item is not None:
            row[_NAMES.get(plain, plain)] = item
            conversion.account.renamed(plain, _NAMES.get(plain, plain))
    return row


def _results(conversion: Conversion) -> Iterator[Row]:
    for record in conversion.records("a result", "rows"):
        item = record.get("item") if "sample" in record else None  # the latter is what the model wrote
        raw = unwrap.as_dict(record.get("datasource_item")) or unwrap.as_dict(item) or record
        if raw is not record:  # of Azure AI Foundry and OpenAI
            conversion.drop_unread(record, ("datasource_item", "item", "sample"), "", ("results", "grades"))
            sample = unwrap.as_dict(record.get("sample"))
            made = {"response": sample if unwrap.answer_text(sample) else None, "error": sample.get("error")}
            raw = {name: value for name, value in made.items() if value} | raw
        row = _fields(conversion, raw)
        if messages := unwrap.as_dict(row.pop("conversation", None)).get("messages"):
            row |= {"question": messages, "answer": messages}
            contexts = [item["context"] for item in messages if isinstance(item, dict) and item.get("context")]
            if contexts:  # of the last message that has one: a text, or a list of citations
                row["context"] = contexts[-1]
        question = conversion.question(row.get("question"), row)
        if question is None:
            conversion.problem("", "has neither question nor query", _FORMS)
            continue
        if _RETRIEVED in row and "context" in row:
            conversion.account.dropped("context", "retrieved_documents has the ids")
        conversion.drop_unread(row, (*_READ, *operations(*row).values()))
        yield {**row, "question": question, "qid": conversion.sample_id("azure", question, row)}


def _pieces(conversion: Conversion, context: Any) -> list[Any]:
    """Return a context as documents: a list unchanged; a text split at lines that begin with a file name.

    A list may be the citations of a message, also as JSON.
    """
    context = unwrap.as_dict(unwrap.decoded(context)).get("citations", context)
    if not isinstance(context, str):
        return retrieved.documents_in(context) or []
    starts = list(_PIECE.finditer(context))
    if not starts or context[: starts[0].start()].strip():
        return [context] if context.strip() else []
    ends = [match.start() for match in starts[1:]] + [len(context)]
    pieces: list[Any] = []
    pages: Counter[str] = Counter()
    for match, end in zip(starts, ends, strict=True):
        page = match[1]
        pages[page] += 1
        if pages[page] > 1:
            conversion.account.lacking("pages with several chunks: their ids are PAGE, PAGE~2 and so on")
        identity = page if pages[page] == 1 else f"{page}~{pages[page]}"
        pieces.append({"id": identity, "text": context[match.end() : end].strip(), "doc_id": page.partition("#")[0]})
    return pieces
