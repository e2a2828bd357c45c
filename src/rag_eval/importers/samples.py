"""What the importers of flat samples share: rows of JSON or CSV with questions, answers and contexts."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers.documents import csv_rows, is_csv, objects

if TYPE_CHECKING:
    from rag_eval.importers import Inputs

Row = dict[str, Any]
_MOST = 1 << 20  # characters of a list in a CSV cell


def samples(inputs: Inputs, path: str, what: str) -> Iterator[tuple[int, Row]]:
    """Line and fields of each sample; the empty cells of CSV are absent."""
    if is_csv(inputs, path):
        for line, cells in csv_rows(inputs, path):
            yield line, {name: cell for name, cell in cells.items() if cell != ""}
        return
    for line, row in objects(inputs, path, what):
        if row and all(isinstance(value, dict) and "0" in value for value in row.values()):
            hint = 'Write records: df.to_json("samples.jsonl", orient="records", lines=True)'
            inputs.problem(path, line, "", "holds a column of objects for each field", hint)
        else:
            yield line, {name: value for name, value in row.items() if value is not None}


def question_id(tool: str, question: str) -> str:
    """A qid of the question's text, the same for gold and traces: ``TOOL-`` and 12 hex digits of its sha256."""
    return f"{tool}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def as_list(inputs: Inputs, path: str, line: int, name: str, value: Any) -> list[Any] | None:
    """A list of texts or numbers; in CSV it is the text of a Python list. None with a problem if it is no list."""
    if isinstance(value, str):
        try:
            found = ast.literal_eval(value) if value.lstrip()[:1] in "[(" and len(value) < _MOST else None
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            found = None
        value = list(found) if isinstance(found, (list, tuple)) else None
    if isinstance(value, list) and all(isinstance(one, (str, int)) for one in value):
        return value
    inputs.problem(
        path, line, f"/{name}", "is no list of texts", "Export the samples as JSON Lines, which keeps lists."
    )
    return None
