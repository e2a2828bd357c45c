"""Helpers for importers of flat samples: rows of JSON or CSV with questions, answers and contexts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from rag_eval.importers import ImportInputs
from rag_eval.importers.documents import cell_value, objects

Row = dict[str, Any]


def samples(inputs: ImportInputs, path: str, what: str) -> Iterator[tuple[int, Row]]:
    """Yield line and fields of each sample."""
    for line, row in objects(inputs, path, what):
        yield line, {name: value for name, value in row.items() if value is not None}


def question_id(tool: str, question: str) -> str:
    """Return a qid made of the question's text, the same for gold and traces.

    It is ``TOOL-`` and 12 hex digits of the text's sha256.
    """
    return f"{tool}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def as_list(inputs: ImportInputs, path: str, line: int, name: str, value: Any) -> list[Any] | None:
    """Return a list of texts or numbers, or parse one from a text; None with a problem if it is no list."""
    value = cell_value(value) if isinstance(value, str) else value
    if isinstance(value, list) and all(isinstance(item, (str, int)) for item in value):
        return value
    inputs.problem(
        path, line, f"/{name}", "is not a list of texts", "Export the samples as JSON Lines, which keeps lists."
    )
    return None
