"""Forms of the frameworks in docs/sources.md: the Core Evaluation Metrics, Example 08, and folders of label files."""

from __future__ import annotations

from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.contract import LABEL_FILES, Gold, Trace, inline_citations, without_reasoning
from rag_eval.importers import FIELDS, Account, ImportInputs, Numbered, Row
from rag_eval.importers.conversion import NOT_READ, Conversion
from rag_eval.scoring import QuestionIndex
from rag_eval.trace import STAGES

_GOLD = {name: ours for ours, names in FIELDS["frameworks"]["gold"].items() for name in names}
_TRACE = {name: ours for ours, names in FIELDS["frameworks"]["trace"].items() for name in names}
"""Field of a test case or a result, and ours; of several the first that is there counts."""
_BEHAVIOURS = {
    **dict.fromkeys(("answer", "answered", "cite_newer", "acknowledge_both", "cite_both"), True),
    **dict.fromkeys(("abstain", "abstained", "refuse", "refusal", "no_answer", "decline"), False),
}
_RULES = ("cite_newer", "acknowledge_both", "cite_both")
_CHUNK = FIELDS["frameworks"]["chunk"]
_STAGES = FIELDS["frameworks"]["stages"]
_LISTS = ("tests", "test_cases", "cases", "results")
_FIX = "Take one of: " + ", ".join(_BEHAVIOURS) + "."


def core_cases(conversion: Conversion) -> Numbered:
    """Yield line and gold row of each test case. Scalars without a matching field become ``meta``, for slices."""
    account = conversion.account
    for case in conversion.records("a test case", *_LISTS):
        row, rest = _renamed(case, _GOLD, account)
        behaviour = rest.pop("expected_behavior", None)
        if behaviour is not None:
            if str(behaviour) not in _BEHAVIOURS:
                conversion.problem("/expected_behavior", f"is '{str(behaviour)[:60]}', which is not known", _FIX)
                continue
            account.renamed("expected_behavior", "recency_conflict_rule" if behaviour in _RULES else "answerable")
            row.setdefault("answerable", _BEHAVIOURS[str(behaviour)])
            if behaviour in _RULES:
                row.setdefault("recency_conflict_rule", behaviour)
        row = {"answerable": True, "gold_claim_substr": [], "gold_citations": [], **row}
        if "supports" in row:
            row["supports"] = [
                {"rel_path": item["rel_path"], "heading_path": _path(item.get("heading_path"))}
                | ({"snippets": item["snippets"]} if item.get("snippets") else {})
                for item in row["supports"]
            ]
        meta = dict(rest.pop("meta", None) or {})
        for name, value in rest.items():
            if isinstance(value, (str, int, float)):
                account.renamed(name, f"meta.{name}")
                meta[name] = value
            else:
                account.dropped(name, NOT_READ)
        yield conversion.place[1], {**row, "meta": meta} if meta else row


def core_rows(conversion: Conversion) -> Numbered:
    """Yield line and trace row of each result. References are cited by the id of the chunk at their position."""
    account = conversion.account
    for result in conversion.records("a result", *_LISTS):
        row, rest = _renamed(result, _TRACE, account)
        ranked = sorted(enumerate(row.get("chunks") or ()), key=lambda item: item[1].get("rank", item[0] + 1))
        chunks = [_chunk(chunk) for _, chunk in ranked]
        if "chunks" in row:
            row |= {"chunks": chunks, "retrieved_ids": [chunk["id"] for chunk in chunks]}
        if "citations" in row:
            cited = (item if isinstance(item, str) else _cited(_chunk(item), chunks) for item in row["citations"] or ())
            row["citations"] = list(dict.fromkeys(cited))
        mode, folders = row.pop("folder_mode", None), row.pop("folders", None)
        if mode is not None:
            account.renamed("folder_mode", "scope.mode")
            row["scope"] = {"mode": mode, "folders": folders or []}
        if "latency_ms" in row:
            times = row["latency_ms"] if isinstance(row["latency_ms"], dict) else {"total": row["latency_ms"]}
            row["latency_ms"] = {_STAGES.get(name, name): value for name, value in times.items()}
        if row.get("abstained") and "answer" not in row:
            row["answer"] = ""
        for name in rest:
            account.dropped(name, NOT_READ)
        yield conversion.place[1], row


def _renamed(record: Row, names: dict[str, str], account: Account) -> tuple[Row, Row]:
    """Return the record with contract names, without nulls, and the fields without a contract name."""
    row: Row = {}
    for name, ours in names.items():
        if ours not in row and record.get(name) is not None:
            row[ours] = str(record[name]) if ours == "qid" else record[name]
            account.renamed(name, ours)
    return row, {name: value for name, value in record.items() if name not in names and value is not None}


def _path(value: Any) -> str:
    return " > ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _chunk(chunk: Row) -> Row:
    """Return the chunk with contract names; a chunk without an id is named by its position."""
    fields = {_CHUNK.get(name, name): value for name, value in chunk.items() if value is not None and name != "rank"}
    if "heading_path" in fields:
        fields["heading_path"] = _path(fields["heading_path"])
    if "id" not in fields:
        fields["id"] = f"{fields.get('rel_path', '')} > {fields.get('heading_path', '')}"
    return {**fields, "id": str(fields["id"])}


def _cited(reference: Row, chunks: list[Row]) -> str:
    """Return the id of the first chunk at a reference's position, otherwise the reference's id."""
    position = reference.get("rel_path"), reference.get("heading_path")
    same = (chunk["id"] for chunk in chunks if (chunk.get("rel_path"), chunk.get("heading_path")) == position)
    known = {chunk["id"] for chunk in chunks}
    reference_id: str = reference["id"]
    return reference_id if reference_id in known else next(same, reference_id)


# Example 08: one JSON array of questions, and traces with free-text answers and without ids

_QIDS = ("qid", "q_id", "case_id")
_NO_QID = "Ask the questions of the gold set, to the letter."
_OF_EXAMPLE08 = {"q": "question", "gold_ids": "gold_citations", "gold_claim": "expected_answer"}


def example08_rows(inputs: ImportInputs, account: Account) -> Numbered:
    """Yield line and gold row of each question."""
    for line, element in inputs.elements(inputs.paths[0], "gold-array"):
        for field in element:
            if field in _OF_EXAMPLE08:
                account.renamed(field, _OF_EXAMPLE08[field])
        yield line, example08_gold(element)


def example08_gold(element: Row) -> Row:
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


def example08_traces(conversion: Conversion) -> Numbered:
    """Yield line and trace row of each trace of the second file, by the questions of the first."""
    inputs, account = conversion.inputs, conversion.account
    path = inputs.paths[1]
    golds = {row["qid"]: Gold.from_row(row, line) for line, row in example08_rows(inputs, Account())}
    sound = not inputs.problems  # against half a gold set no question counts as missing
    questions = QuestionIndex(golds)
    for line, row in inputs.rows(path, "trace"):
        trace = Trace.from_row(row, row.get("qid", ""), line)
        qid, wrong = questions.pair(trace, lambda _line, message: account.dropped("an id", message))
        if qid is not None:
            yield line, example08_trace(row, qid, account)
        elif sound:
            inputs.problem(path, line, "", wrong, _NO_QID)


def example08_trace(row: Row, qid: str, account: Account) -> Row:
    """Return the trace row under a qid; the answer and the citations in its text become an ``answer_json``."""
    rest = {name: value for name, value in row.items() if name not in _QIDS}
    if not any(row.get(name) for name in _QIDS):
        account.renamed("q", "qid, by the question")
    if "answer_json" in row or "answer" not in row:
        return {"qid": qid, **rest}
    account.renamed("answer", "answer_json.claim")
    answer, cited, written = rest.pop("answer"), rest.pop("citations", None), "citations"
    if cited is None:
        cited, written = inline_citations(without_reasoning(answer)), "citations in the answer"
    if cited is not None:
        account.renamed(written, "answer_json.citations")
    return {"qid": qid, **rest, "answer_json": {"claim": answer, **({} if cited is None else {"citations": cited})}}


# a folder of label files, one for each metric group, joined_labels by case_id

CASES, CONTEXT, PIPELINE = "cases.jsonl", "context_labels.jsonl", "pipeline_labels.jsonl"

# Grades without a prefix are of documents in this form and of chunks in the contract.
_OF_LABELS = FIELDS["frameworks"]["of_labels"]
_UNANSWERABLE = ("no_results", "blocked")


def label_rows(inputs: ImportInputs, account: Account) -> Numbered:
    """Yield line in cases.jsonl and gold row of each case, in the order of that file."""
    folder = inputs.paths[0].rstrip("/") or "/"
    before = inputs.problems
    here = inputs.names(folder)
    if inputs.problems > before:
        return None
    for name in here:
        if name not in LABEL_FILES:
            account.dropped(name, "it is not a label file")
    if CASES not in here:
        hint = f"A folder of labels has its questions in {CASES}. Or name the gold file in the folder."
        return inputs.problem(folder, 0, "", f"is a folder without {CASES}", hint)
    lines, cases = _by_case(inputs, folder, CASES)
    known = cases if inputs.problems == before else None  # against half of the cases no label counts as missing
    labels = {name: _by_case(inputs, folder, name, known)[1] for name in _OF_LABELS if name in here and name != CASES}
    for case_id, case in cases.items():
        of_case = {name: by_case.get(case_id, {}) for name, by_case in labels.items()}
        yield lines[case_id], joined_labels(case, of_case, account)


def _by_case(
    inputs: ImportInputs, folder: str, name: str, cases: dict[str, Row] | None = None
) -> tuple[dict[str, int], dict[str, Row]]:
    """Return the lines and the rows of a label file by case; with ``cases``, rows of other cases are problems."""
    path = f"{folder}/{name}"
    lines: dict[str, int] = {}
    by_case: dict[str, Row] = {}
    for line, row in inputs.rows(path, LABEL_FILES[name]):
        case_id = row["case_id"]
        if case_id in lines:
            message = f"{quoted(case_id)} is already used on line {lines[case_id]}"
            inputs.problem(path, line, "/case_id", message, "Keep one row per case in each file.")
        elif cases is not None and case_id not in cases:
            hint = f"Add the case to {CASES}, or correct the case_id."
            inputs.problem(path, line, "/case_id", f"{CASES} has no case {quoted(case_id)}", hint)
        else:
            lines[case_id], by_case[case_id] = line, row
    return lines, by_case


def joined_labels(case: Row, labels: dict[str, Row], account: Account) -> Row:
    """Return the gold row of a case and of its labels by file; files without a row for it may be missing or empty."""
    row: Row = {"qid": "", "question": "", "answerable": True, "gold_claim_substr": [], "gold_citations": []}
    for name, names in _OF_LABELS.items():
        fields = case if name == CASES else labels.get(name, {})
        for field, to in names.items():
            if field in fields:
                row[to] = fields[field]
                account.renamed(field if field == to else f"{field} of {name}", to)
        if "user_roles" in fields:
            account.dropped(f"user_roles of {name}", "no metric uses the role of the user")
    if chunks := labels.get(CONTEXT, {}).get("expected_chunks"):
        if row["gold_citations"]:
            account.dropped(f"expected_chunks of {CONTEXT}", "the case has relevant_chunks")
        else:
            account.renamed(f"expected_chunks of {CONTEXT}", "gold_citations")
            row["gold_citations"] = chunks
    _add_budget(row, labels.get(PIPELINE, {}).get("latency_budget_ms"), account)
    if row.get("expected_outcome") in _UNANSWERABLE:
        row["answerable"] = False
        if row["gold_citations"]:
            why = "such a question has no right citation"
            account.dropped("relevant chunks of a case that ends in no_results or blocked", why)
            row["gold_citations"] = []
    return row


def _add_budget(row: Row, budget: Row | None, account: Account) -> None:
    """Add the latency budget under contract names of stages; single answers have one percentile."""
    if budget is None:
        return
    limits = {name: limit for name, limit in budget.items() if name in (*STAGES, "total")}
    for name in budget.keys() - limits.keys():
        field = f"latency_budget_ms.{name} of {PIPELINE}"
        if name == "p95" and "total" not in budget:
            limits["total"] = budget[name]
            account.renamed(field, "latency_budget_ms.total")
        else:
            account.dropped(field, "an answer has only one limit")
    row["latency_budget_ms"] = limits
