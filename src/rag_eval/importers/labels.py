"""A folder of label files, one for each metric group, joined by ``case_id`` into gold rows."""

from __future__ import annotations

from rag_eval.common.escaping import quoted
from rag_eval.importers import Account, ImportInputs, Numbered, Row
from rag_eval.trace import STAGES

CASES, CONTEXT, PIPELINE = "cases.jsonl", "context_labels.jsonl", "pipeline_labels.jsonl"
SCHEMAS = {CASES: "labels-cases"}
SCHEMAS |= {f"{kind}_labels.jsonl": f"labels-{kind}" for kind in ("retrieval", "context", "groundedness", "pipeline")}
"""The files of a folder, each with the schema of its rows; only the first has to be there."""

# Grades without a prefix are of documents in this form and of chunks in the contract.
_NAMES = {
    CASES: {"query": "question", "case_id": "qid", "query_type": "query_type"},
    "retrieval_labels.jsonl": {
        "relevant_chunks": "gold_citations", "chunk_relevance_grades": "relevance_grades",
        "relevant_docs": "relevant_docs", "relevance_grades": "doc_grades",
    },
    CONTEXT: {"gold_facts": "gold_facts"},
    "groundedness_labels.jsonl": {
        "expected_claims": "expected_claims", "expected_citations": "expected_documents",
        "forbidden_claims": "forbidden_claims",
    },
    PIPELINE: {name: name for name in ("expected_outcome", "required_flags", "forbidden_flags", "min_citations")},
}  # fmt: skip
_UNANSWERABLE = ("no_results", "blocked")


def rows(inputs: ImportInputs, account: Account) -> Numbered:
    """Yield line in cases.jsonl and gold row of each case, in the order of that file."""
    folder = inputs.paths[0].rstrip("/") or "/"
    before = inputs.problems
    here = inputs.names(folder)
    if inputs.problems > before:
        return None
    for name in here:
        if name not in SCHEMAS:
            account.dropped(name, "it is not a label file")
    if CASES not in here:
        hint = f"A folder of labels has its questions in {CASES}. Or name the gold file in the folder."
        return inputs.problem(folder, 0, "", f"is a folder without {CASES}", hint)
    lines, cases = _by_case(inputs, folder, CASES)
    known = cases if inputs.problems == before else None  # against half of the cases no label counts as missing
    labels = {name: _by_case(inputs, folder, name, known)[1] for name in _NAMES if name in here and name != CASES}
    for case_id, case in cases.items():
        yield lines[case_id], joined(case, {name: rows.get(case_id, {}) for name, rows in labels.items()}, account)


def _by_case(
    inputs: ImportInputs, folder: str, name: str, cases: dict[str, Row] | None = None
) -> tuple[dict[str, int], dict[str, Row]]:
    """Return the lines and the rows of a label file by case; with ``cases``, rows of other cases are problems."""
    path = f"{folder}/{name}"
    lines: dict[str, int] = {}
    by_case: dict[str, Row] = {}
    for line, row in inputs.rows(path, SCHEMAS[name]):
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


def joined(case: Row, labels: dict[str, Row], account: Account) -> Row:
    """Return the gold row of a case and of its labels by file; files without a row for it may be missing or empty."""
    row: Row = {"qid": "", "question": "", "answerable": True, "gold_claim_substr": [], "gold_citations": []}
    for name, names in _NAMES.items():
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
