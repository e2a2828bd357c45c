"""A JSON Schema of ``schemas/`` at work: quick to accept a good row, exact and clear about a bad one.

``jsonschema`` is the reference and words the problems. Good rows do not wait for it: a few are checked by
:mod:`rag_eval.files.acceptor`, which costs nothing to load, many by :mod:`rag_eval.files.bulk`, which costs nothing a
row. Property tests hold all three to the same verdict.
"""

from __future__ import annotations

import json

from rag_eval.files import strict_json
from rag_eval.files.acceptor import acceptor
from rag_eval.places import shipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rag_eval.files.bulk import Bulk
    from rag_eval.files.wording import Fault

    Row = dict[str, Any]
    Schema = dict[str, Any]


def load(name: str, parse_float: Callable[[str], Any] | None = None) -> Schema:
    """Return the schema ``schemas/NAME.schema.json``; ``parse_float`` makes the numbers with a point in it."""
    with open(shipped("schemas", f"{name}.schema.json"), "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
        schema: Schema = json.loads(file.read(), parse_float=parse_float)
    return schema


class Contract:
    """One schema. After ``few`` rows, if that is said, the way of many is loaded, which takes fifty milliseconds."""

    def __init__(self, name: str, depth: int = 64, *, few: int | None = None) -> None:
        self.schema = load(name)
        self.depth = depth
        self.known = known_fields(self.schema)
        self._keeps = acceptor(self.schema)
        self._bulk: Bulk | None = None
        self._left = few

    def accept_all(self, lines: list[bytes]) -> list[Row] | None:
        """The rows of good lines, or None where only a look at each can tell."""
        if bulk := self._of_many(len(lines)):
            return bulk.accept_all(lines)
        rows = []
        for line in lines:
            row = self.accept(line)
            if row is None:
                return None
            rows.append(row)
        return rows

    def accept(self, line: bytes) -> Row | None:
        """The row of a good line, or None where only :meth:`examine` can tell."""
        if bulk := self._of_many(1):
            return bulk.accept(line)
        try:
            value: Row = strict_json.parse(line, self.depth)
        except strict_json.JsonError:
            return None
        return value if self._keeps(value) else None

    def _of_many(self, more: int) -> Bulk | None:
        if self._left is not None:
            self._left -= more
            if self._left < 0:
                self._bulk, self._left = _bulk(self.schema, self.depth), None
        return self._bulk

    def refuses(self, line: bytes) -> bool:
        """Whether a line is wrong beyond doubt, without saying why: for rows that are only counted."""
        return self._bulk.refuses(line) if self._bulk else self.examine(line)[0] is None

    def examine(self, line: bytes) -> tuple[Row | None, list[Fault]]:
        """The row, or everything that is wrong with it."""
        from rag_eval.files.wording import Fault

        try:
            value = strict_json.parse(line, self.depth)
        except strict_json.JsonError as error:
            return None, [Fault(error.where, error.message, error.hint)]
        faults = list(self.faults(value))
        return (None, faults) if faults else (value, [])

    def faults(self, value: Any) -> Iterator[Fault]:
        """What ``jsonschema``, the reference, finds wrong with a decoded value."""
        if self._keeps(value):
            return
        import jsonschema

        from rag_eval.files.wording import LINE_BREAK, word

        validator = jsonschema.Draft202012Validator(self.schema, registry=_no_remote())
        errors = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path])
        for error in errors:
            yield word(error)
        if not errors:
            yield LINE_BREAK


def known_fields(schema: Schema) -> dict[str, frozenset[str]]:
    """The fields that the contract names, by the field they stand in ('' for the row itself)."""
    known = {"": frozenset(schema["properties"])}
    for name, field in schema["properties"].items():
        inner = field if "properties" in field else field.get("items", {})
        if "properties" in inner:
            known[name] = frozenset(inner["properties"])
    return known


def _bulk(schema: Schema, depth: int) -> Bulk:
    from rag_eval.files.bulk import Bulk

    return Bulk(schema, depth)


def _no_remote() -> Any:
    """A registry that knows no address: a ``$ref`` to elsewhere fails instead of being fetched."""
    import referencing

    return referencing.Registry()
