"""What kind of row this is, and which of its fields no contract knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_eval.readers.problems import Ledger

    Row = dict[str, Any]

OWN_QID = "Give every question a qid of its own."
_MARKS = {"gold": {"answerable", "gold_citations"}, "trace": {"answer_json", "retrieved_ids", "answer", "chunks"}}


def foreign(ledger: Ledger, path: str, number: int, other: str, kind: str) -> None:
    """Say once that a file is of another kind than is wanted."""
    hint = f"Check whether gold and trace files were swapped: a {kind} file is wanted here."
    ledger.problem(path, number, "", f"looks like a row of a {other} file", hint)
    ledger.foreign = path


def looks_like(line: bytes) -> str:
    """The kind of row that the fields of ``line`` speak for, '' where they do not tell."""
    import json

    try:
        return kind_of_row(json.loads(line))
    except (ValueError, RecursionError):
        return ""


def kind_of_row(row: Any) -> str:
    """The kind that the fields of a decoded row speak for, '' where they do not tell."""
    if not isinstance(row, dict):
        return ""
    found = {kind: len(marks & row.keys()) for kind, marks in _MARKS.items()}
    if not all(found.values()) and any(found.values()):
        return max(found, key=lambda kind: found[kind])
    return ""
