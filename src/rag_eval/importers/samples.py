"""Shared by the importers of flat samples: rows of JSON or CSV with questions, answers and contexts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers.documents import cell_value, objects

if TYPE_CHECKING:
    from rag_eval.importers import Inputs

Row = dict[str, Any]


def samples(inputs: Inputs, path: str, what: str) -> Iterator[tuple[int, Row]]:
    """Line and fields of each sample."""
    for line, row in objects(inputs, path, what):
        yield line, {name: value for name, value in row.items() if value is not None}


def question_id(tool: str, question: str) -> str:
    """A qid of the question's text, the same for gold and traces: ``TOOL-`` and 12 hex digits of its sha256."""
    return f"{tool}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def as_list(inputs: Inputs, path: str, line: int, name: str, value: Any) -> list[Any] | None:
    """A list of texts or numbers, or the text of one. None with a problem if it is no list."""
    value = cell_value(value) if isinstance(value, str) else value
    if isinstance(value, list) and all(isinstance(one, (str, int)) for one in value):
        return value
    inputs.problem(
        path, line, f"/{name}", "is not a list of texts", "Export the samples as JSON Lines, which keeps lists."
    )
    return None
