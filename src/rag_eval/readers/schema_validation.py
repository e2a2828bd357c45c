"""A JSON Schema at work on decoded values: documents, and rows of other forms than gold and traces.

Small documents are read at every start, so a good value is accepted by predicates that are made of the schema in a
moment. jsonschema is loaded to describe what is wrong with a refused one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_eval.readers import strict_json
from rag_eval.readers.predicates import predicate
from rag_eval.readers.schemas import load

if TYPE_CHECKING:
    from rag_eval.readers.error_messages import RowError
    from rag_eval.readers.problems import Ledger


class Contract:
    """The schema of a name, and what it refuses."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.name, self.depth = name, depth
        self.schema = load(name)
        self._accepts = predicate(self.schema)
        self._known = _known_fields(self.schema)

    def accepts(self, value: Any) -> bool:
        """Return whether a decoded value keeps the schema."""
        return self._accepts(value)

    def examine(self, data: bytes) -> tuple[Any, list[RowError]]:
        """Return the value of a JSON text and no faults, or None and everything that is wrong with it."""
        try:
            value = strict_json.parse(data, self.depth)
        except strict_json.JsonError as error:
            from rag_eval.readers.error_messages import RowError

            return None, [RowError(error.where, error.message, error.hint)]
        faults = self.faults(value)
        return (None, faults) if faults else (value, [])

    def faults(self, value: Any) -> list[RowError]:
        """Return what is wrong with a decoded value."""
        if self._accepts(value):
            return []
        from rag_eval.readers.error_messages import LINE_BREAK
        from rag_eval.readers.explain import explain_value

        return explain_value(value, self.name) or [LINE_BREAK]

    def note_unknown_fields(self, row: dict[str, Any], ledger: Ledger, path: str, line: int) -> None:
        """Note the fields of a row that the schema does not know, once a file."""
        for place, known in self._known.items():
            inner = row.get(place) if place else row
            objects = inner if isinstance(inner, list) else [inner]
            for field in sorted({name for one in objects if isinstance(one, dict) for name in one.keys() - known}):
                ledger.unknown_field(path, line, f"{place}.{field}" if place else field, field, known)


def _known_fields(schema: dict[str, Any]) -> dict[str, frozenset[str]]:
    """The fields that a schema names, by the field that they stand in ('' for the row itself)."""
    known = {"": frozenset(schema.get("properties", {}))}
    for name, field in schema.get("properties", {}).items():
        inner = field if "properties" in field else field.get("items", {})
        if "properties" in inner:
            known[name] = frozenset(inner["properties"])
    return known
