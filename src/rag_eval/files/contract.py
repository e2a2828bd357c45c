"""A JSON Schema of ``schemas/`` at work: quick to accept a good row, exact and clear about a bad one.

``accept`` decodes a line with orjson and checks it with the schema compiled by jsonschema-rs. Both are lenient where
strict JSON is not (repeated keys, integers beyond 64 bits, nesting); rows in which that could matter are not accepted
but left to ``examine``, the slow and exact way over :mod:`strict_json` and ``jsonschema``.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson

from rag_eval.places import shipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_eval.files.wording import Finding

    Row = dict[str, Any]
    Schema = dict[str, Any]

_SAFE = 1e18  # any number within ±1e18 is either a float or an integer of 64 bits
_FREE_LEVELS = 6  # nesting of fields that the schema does not know, before a row is left to the slow way


def load(name: str) -> Schema:
    """The schema ``schemas/NAME.schema.json``."""
    with open(shipped("schemas", f"{name}.schema.json"), "rb") as file:
        schema: Schema = orjson.loads(file.read())
    return schema


class Contract:
    """One schema, compiled for both ways."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.schema = load(name)
        self.depth = depth
        self.known = known_fields(self.schema)
        self._quick = jsonschema_rs.Draft202012Validator(_guarded(self.schema), offline=True).is_valid
        self._numbers = _numeric_paths(self.schema)

    def accept(self, line: bytes) -> Row | None:
        """The row of a good line, or None where only :meth:`examine` can tell."""
        try:
            row: Row = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        if not self._quick(row) or self._huge(row):
            return None
        # A key that stands twice loses its own two quotes, at least, on the way through the decoder. An escaped quote
        # is the only other thing that changes their number.
        if line.count(b'"') != orjson.dumps(row).count(b'"') or (b"\\" in line and b"u0022" in line):
            return None
        return row

    def refuses(self, line: bytes) -> bool:
        """Whether a line is wrong beyond doubt, without saying why: for rows that are only counted."""
        try:
            return not jsonschema_rs.is_valid(self.schema, orjson.loads(line), offline=True)
        except orjson.JSONDecodeError:
            return True

    def examine(self, line: bytes) -> tuple[Row | None, list[Finding]]:
        """The row, or everything that is wrong with it."""
        from rag_eval.files import strict_json
        from rag_eval.files.wording import Finding

        try:
            value = strict_json.parse(line, self.depth)
        except strict_json.JsonError as error:
            column = f"column {error.column}" if error.column else ""
            return None, [Finding(column, error.message, error.hint)]
        findings = list(self.findings(value))
        return (None, findings) if findings else (value, [])

    def findings(self, value: Any) -> Iterator[Finding]:
        """What ``jsonschema``, the reference, finds wrong with a decoded value."""
        if jsonschema_rs.is_valid(self.schema, value, offline=True):
            return
        import jsonschema

        from rag_eval.files.wording import word

        validator = jsonschema.Draft202012Validator(self.schema, registry=_no_remote())
        errors = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path])
        for error in errors:
            yield word(error)

    def _huge(self, row: Row) -> bool:
        """Whether a number that the schema leaves open may have been an integer beyond 64 bits."""
        own, objects, lists = self._numbers
        values = [row[name] for name in own if name in row]
        for name in objects:
            if name in row:
                values += row[name].values()
        for name, fields in lists:
            for item in row.get(name, ()):
                values += [item[field] for field in fields if field in item]
        return any(type(value) is float and not -_SAFE < value < _SAFE for value in values)


def known_fields(schema: Schema) -> dict[str, frozenset[str]]:
    """The fields that the contract names, by the field they stand in ('' for the row itself)."""
    known = {"": frozenset(schema["properties"])}
    for name, field in schema["properties"].items():
        inner = field if "properties" in field else field.get("items", {})
        if "properties" in inner:
            known[name] = frozenset(inner["properties"])
    return known


def _guarded(schema: Schema) -> Schema:
    """The schema with limits on what it leaves open, so that acceptance implies 64-bit integers and shallow nesting."""
    guarded = _close(schema)
    innermost: Schema = {"not": {"type": ["object", "array"]}, **_bounds()}
    levels = {f"free{_FREE_LEVELS}": innermost}
    for level in range(_FREE_LEVELS):
        inner = {"$ref": f"#/$defs/free{level + 1}"}
        levels[f"free{level}"] = {"items": inner, "additionalProperties": inner, **_bounds()}
    return {**guarded, "$defs": {**schema.get("$defs", {}), **levels}}


def _close(schema: Schema) -> Schema:
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _close(field) for name, field in schema["properties"].items()}
        closed.setdefault("additionalProperties", {"$ref": "#/$defs/free0"})
    if isinstance(schema.get("items"), dict):
        closed["items"] = _close(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        closed["additionalProperties"] = {**schema["additionalProperties"], **_bounds(schema["additionalProperties"])}
    return closed


def _bounds(schema: Schema | None = None) -> Schema:
    low, high = (schema or {}).get("minimum", -_SAFE), (schema or {}).get("maximum", _SAFE)
    return {"minimum": low, "maximum": high}


def _numeric_paths(schema: Schema) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Where numbers may stand that have no upper bound: in the row, in objects of it, in its lists of objects.

    Bounds in the compiled schema would do as well, but cost a microsecond a number there.
    """
    fields = schema["properties"]
    own = tuple(name for name, field in fields.items() if _open_number(field))
    objects = tuple(name for name, field in fields.items() if any(map(_open_number, _inner(field))))
    lists = tuple(
        (name, tuple(key for key, inner in field["items"]["properties"].items() if _open_number(inner)))
        for name, field in fields.items()
        if "properties" in field.get("items", {})
    )
    return own, objects, tuple(entry for entry in lists if entry[1])


def _inner(field: Schema) -> list[Schema]:
    return list(field.get("properties", {}).values())


def _open_number(field: Schema) -> bool:
    return field.get("type") in ("number", "integer") and "maximum" not in field


def _no_remote() -> Any:
    """A registry that knows no address: a ``$ref`` to elsewhere fails instead of being fetched."""
    import referencing

    return referencing.Registry()  # type: ignore[var-annotated]
