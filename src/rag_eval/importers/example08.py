"""Example 08's question set, one JSON array, as gold rows, and its traces with free-text answers and without ids."""

from __future__ import annotations

from rag_eval.contract import Gold, Trace, inline_citations
from rag_eval.importers import Account, ImportInputs, Numbered, Row
from rag_eval.importers.conversion import Conversion
from rag_eval.scoring import QuestionIndex

_IDS = ("qid", "q_id", "case_id")
_NO_QID = "Ask the questions of the gold set, to the letter."
_NAMES = {"q": "question", "gold_ids": "gold_citations", "gold_claim": "expected_answer"}


def rows(inputs: ImportInputs, account: Account) -> Numbered:
    """Yield line and gold row of each question."""
    for line, element in inputs.elements(inputs.paths[0], "gold-array"):
        for field in element:
            if field in _NAMES:
                account.renamed(field, _NAMES[field])
        yield line, converted(element)


def converted(element: Row) -> Row:
    """Return the gold row of a valid element. It accepts any claim, because the form has no substrings."""
    row = {
        "qid": element["qid"],
        "question": element["q"],
        "answerable": element["answerable"],
        "gold_claim_substr": [],
        "gold_citations": list(element["gold_ids"]),
    }
    # There, an answerable question without substrings scores 0 in containment.
    claim = element.get("gold_claim", "" if element["answerable"] else None)
    return row if claim is None else row | {"expected_answer": claim}


def trace_rows(conversion: Conversion) -> Numbered:
    """Yield line and trace row of each trace of the second file, by the questions of the first."""
    inputs, account = conversion.inputs, conversion.account
    path = inputs.paths[1]
    golds = {row["qid"]: Gold.from_row(row, line) for line, row in rows(inputs, Account())}
    sound = not inputs.problems  # against half a gold set no question counts as missing
    questions = QuestionIndex(golds)
    for line, row in inputs.rows(path, "trace"):
        trace = Trace.from_row(row, row.get("qid", ""), line)
        qid, wrong = questions.pair(trace, lambda _line, message: account.dropped("an id", message))
        if qid is not None:
            yield line, converted_trace(row, qid, account)
        elif sound:
            inputs.problem(path, line, "", wrong, _NO_QID)


def converted_trace(row: Row, qid: str, account: Account) -> Row:
    """Return the trace row under a qid; the answer and the citations in its text become an ``answer_json``."""
    rest = {name: value for name, value in row.items() if name not in _IDS}
    if not any(row.get(name) for name in _IDS):
        account.renamed("q", "qid, by the question")
    if "answer_json" in row or "answer" not in row:
        return {"qid": qid, **rest}
    account.renamed("answer", "answer_json.claim")
    answer, cited, written = rest.pop("answer"), rest.pop("citations", None), "citations"
    if cited is None:
        cited, written = inline_citations(answer), "citations in the answer"
    if cited is not None:
        account.renamed(written, "answer_json.citations")
    return {"qid": qid, **rest, "answer_json": {"claim": answer, **({} if cited is None else {"citations": cited})}}
