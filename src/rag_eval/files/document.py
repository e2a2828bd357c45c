"""One large JSON document, quickly: as :mod:`rag_eval.files.bulk` reads rows.

What is accepted here is what the slow and exact way would accept, with the same value. Where that is not beyond doubt,
nothing is: the slow way then says what is wrong, if anything is.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson

from rag_eval.files.bulk import SAFE, loses_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.files.contract import Schema


def accept(schema: Schema, data: bytes, depth: int) -> Any:
    """The value of a document that keeps its schema; None where only a closer look can tell."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    keeps = jsonschema_rs.Draft202012Validator(schema, offline=True).is_valid(value)
    return value if keeps and not loses_keys(data, value) and _fits(value, depth) else None


def _fits(value: Any, depth: int) -> bool:
    """Whether it is nested no deeper than ``depth``, and no number may have been an integer beyond 64 bits."""
    level, inside = [value], 0
    while level:
        below: list[Any] = []
        deeper = False
        for item in level:
            if type(item) is dict:
                below += item.values()
                deeper = True
            elif type(item) is list:
                below += item
                deeper = True
            elif type(item) is float and not -SAFE < item < SAFE:
                return False
        inside += deeper
        if inside > depth:
            return False
        level = below
    return True
