"""A RAG server's golden set, one JSON array of questions with passages, as gold rows."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.importers import Account, ImportInputs, Numbered

Row = dict[str, Any]
SCHEMA = "rag-server-golden"
_NAMES = {
    "id": "qid",
    "answer": "expected_answer",
    "expected_answer": "expected_answer",
    "gold_doc_ids": "relevant_docs",
    "domain": "category",
    "document": "meta.document",
    "is_unanswerable": "answerable",
    "metadata": "meta",
}
_DROPPED = {
    "context_hint": "it is a hint for people",
    "source_file": "the document is named already",
    "evidence": "places in source files are not compared",
    "context_passages": "the context of the model is read from traces",
}
_HUNDREDTHS = 100
_BESIDE = "is also given and differs"


def rows(inputs: ImportInputs, account: Account) -> Numbered:
    """Yield line and gold row of each question."""
    path, seen = inputs.paths[0], dict[str, int]()
    for line, question in inputs.elements(path, SCHEMA):
        row = converted(question, account)
        if row["qid"] in seen:
            field = "id" if question.get("id") else "question"
            message = f"{quoted(question[field])} is already used on line {seen[row['qid']]}"
            inputs.problem(path, line, f"/{field}", message, "Give each question a unique id, or remove one.")
        else:
            seen[row["qid"]] = line
            yield line, row


def converted(question: Row, account: Account) -> Row:
    """Return the gold row of a valid question.

    A question without an id is identified by its text, which does not depend on the order.
    """
    for field in question:
        if field in _NAMES:
            account.renamed(field, _NAMES[field])
        elif field in _DROPPED:
            account.dropped(field, _DROPPED[field])
    asks, passages = question["question"], question.get("gold_passages", [])
    unanswerable = question.get("is_unanswerable") or question.get("query_type", "").lower() == "unanswerable"
    row: Row = {
        "qid": question.get("id") or f"golden-{sha256(asks.encode()).hexdigest()[:12]}",
        "question": asks,
        "answerable": not unanswerable,
        "gold_claim_substr": [],
        "gold_citations": _citations(passages, unanswerable, account),
    }
    row |= _answer(question, account)
    row |= {field: question[field] for field in ("query_type", "difficulty") if field in question}
    row |= {"category": question["domain"]} if "domain" in question else {}
    relevance = _relevance(question, passages, account)
    if not (unanswerable or row["gold_citations"] or relevance):
        account.lacking("answerable items without a passage or document: precision counts any answer to them as right")
    return row | relevance | _meta(question, account)


def _answer(question: Row, account: Account) -> Row:
    first, second = question.get("answer"), question.get("expected_answer")
    if first and second and first != second:
        account.dropped("expected_answer", f"answer {_BESIDE}")
    return {"expected_answer": first or second} if first or second else {}


def _citations(passages: list[Any], unanswerable: bool, account: Account) -> list[str]:
    citations = []
    for passage in passages:
        if isinstance(passage, str) or "chunk_id" not in passage:
            account.dropped("a gold passage without chunk_id", "it has no chunk id")
        elif unanswerable:
            account.dropped("a gold passage of an unanswerable question", "such a question has no right citation")
        else:
            account.renamed("gold_passages.chunk_id", "gold_citations")
            citations.append(passage["chunk_id"])
    return citations


def _relevance(question: Row, passages: list[Any], account: Account) -> Row:
    """Return documents, and grades of chunks if some score is not 1. Gain is linear: hundredths order as scores do."""
    objects = [passage for passage in passages if isinstance(passage, dict)]
    docs = [passage["doc_id"] for passage in objects if "doc_id" in passage] + question.get("gold_doc_ids", [])
    grades = _grades(objects, account)
    for field, to in (("doc_id", "relevant_docs"), ("relevance_score", "relevance_grades, in hundredths")):
        if any(field in passage for passage in objects):
            account.renamed(f"gold_passages.{field}", to)
    if any("text" in passage for passage in objects):
        account.dropped("gold_passages.text", "chunks are identified by their ids")
    graded = any(grade != _HUNDREDTHS for grade in grades.values())
    return ({"relevant_docs": list(dict.fromkeys(docs))} if docs else {}) | (
        {"relevance_grades": grades} if graded else {}
    )


def _grades(passages: list[Row], account: Account) -> dict[str, int]:
    """Return the grade of each chunk: the highest of its passages."""
    grades: dict[str, int] = {}
    for passage in passages:
        if "chunk_id" in passage:
            chunk, grade = passage["chunk_id"], round(passage.get("relevance_score", 1) * _HUNDREDTHS)
            if grades.setdefault(chunk, grade) != grade:
                account.dropped("another relevance_score of the same chunk", "the highest one counts")
            grades[chunk] = max(grade, grades[chunk])
    return grades


def _meta(question: Row, account: Account) -> Row:
    meta = {"document": question["document"]} if "document" in question else {}
    for name, value in question.get("metadata", {}).items():
        if isinstance(value, (str, int, float)):
            if meta.setdefault(name, value) != value:
                account.dropped("metadata.document", f"document {_BESIDE}")
        else:
            account.dropped("metadata other than texts, numbers and truth values", "slices use only these")
    return {"meta": meta} if meta else {}
