"""Test cases and results of the Core Evaluation Metrics: evidence by anchor, references, folder scope."""

from __future__ import annotations

from typing import Any

from rag_eval.importers import Account, Numbered, Row
from rag_eval.importers.conversion import NOT_READ, Conversion

_IDS = dict.fromkeys(("qid", "id", "test_id", "case_id"), "qid")
_GOLD = {
    **_IDS,
    **dict.fromkeys(("question", "query"), "question"),
    **dict.fromkeys(("expected_answer", "gold_answer", "reference_answer"), "expected_answer"),
    **dict.fromkeys(("gold_supports", "supports"), "supports"),
} | {name: name for name in """
    answerable category difficulty tags query_type multi_hop required_support_groups recency_conflict_rule
    gold_claim_substr gold_citations constraints
""".split()}  # fmt: skip
_TRACE = {
    **_IDS,
    **dict.fromkeys(("q", "question", "query"), "q"),
    **dict.fromkeys(("chunks", "retrieved_chunks", "retrieved", "context"), "chunks"),
    **dict.fromkeys(("citations", "references"), "citations"),
    **dict.fromkeys(("folders", "selected_folders"), "folders"),
    **dict.fromkeys(("latency_ms", "latency"), "latency_ms"),
} | {name: name for name in "answer abstained error timed_out confidence folder_mode run usage".split()}
"""Field of a test case or a result, and ours; of several the first that is there counts."""
_BEHAVIOURS = {
    **dict.fromkeys(("answer", "answered", "cite_newer", "acknowledge_both", "cite_both"), True),
    **dict.fromkeys(("abstain", "abstained", "refuse", "refusal", "no_answer", "decline"), False),
}
_RULES = ("cite_newer", "acknowledge_both", "cite_both")
_CHUNK = {"chunk_id": "id", "content": "text", "token_count": "tokens"}
_STAGES = {"folder_selection": "folder_select", "retrieval": "retrieve", "generation": "generate"}
_LISTS = ("tests", "test_cases", "cases", "results")
_FIX = "Take one of: " + ", ".join(_BEHAVIOURS) + "."


def cases(conversion: Conversion) -> Numbered:
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


def rows(conversion: Conversion) -> Numbered:
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
