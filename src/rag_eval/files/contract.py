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
    from collections.abc import Iterable, Iterator

    from rag_eval.files.wording import Finding

    Row = dict[str, Any]
    Schema = dict[str, Any]

_SAFE = 1e18  # any number within ±1e18 is either a float or an integer of 64 bits
_FREE_LEVELS = 6  # nesting of fields that the schema does not know, before a row is left to the slow way
_OWN_LEVELS = 3  # around such a field: the row, a list of objects in it, one of them


def load(name: str) -> Schema:
    """The schema ``schemas/NAME.schema.json``."""
    with open(shipped("schemas", f"{name}.schema.json"), "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
        schema: Schema = orjson.loads(file.read())
    return schema


class Contract:
    """One schema, compiled for both ways."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.schema = load(name)
        self.depth = depth
        self.known = known_fields(self.schema)
        guarded = _guarded(self.schema)
        self._plain = jsonschema_rs.Draft202012Validator(self.schema, offline=True).is_valid
        self._quick = jsonschema_rs.Draft202012Validator(guarded, offline=True).is_valid
        self._all_quick = jsonschema_rs.Draft202012Validator(_every(guarded), offline=True).is_valid
        self._numbers = _numeric_paths(self.schema)
        self._numeric = frozenset().union(*self._numbers)
        self._shallow = depth < _FREE_LEVELS + _OWN_LEVELS

    def accept_all(self, lines: list[bytes]) -> list[Row] | None:
        """The rows of good lines, or None where only a look at each can tell. Checking many at once saves calls."""
        if self._shallow:
            return None
        try:
            rows: list[Row] = list(map(orjson.loads, lines))
        except orjson.JSONDecodeError:
            return None
        if not self._all_quick(rows) or any(map(self._huge, rows)) or _loses_keys(b"\n".join(lines), rows):
            return None
        return rows

    def accept(self, line: bytes) -> Row | None:
        """The row of a good line, or None where only :meth:`examine` can tell."""
        if self._shallow:
            return None
        try:
            row: Row = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        return row if self._quick(row) and not self._huge(row) and not _loses_keys(line, row) else None

    def refuses(self, line: bytes) -> bool:
        """Whether a line is wrong beyond doubt, without saying why: for rows that are only counted."""
        try:
            return not self._plain(orjson.loads(line))
        except orjson.JSONDecodeError:
            return True

    def examine(self, line: bytes) -> tuple[Row | None, list[Finding]]:
        """The row, or everything that is wrong with it."""
        from rag_eval.files import strict_json
        from rag_eval.files.wording import Finding

        try:
            value = strict_json.parse(line, self.depth)
        except strict_json.JsonError as error:
            return None, [Finding(error.where, error.message, error.hint)]
        findings = list(self.findings(value))
        return (None, findings) if findings else (value, [])

    def findings(self, value: Any) -> Iterator[Finding]:
        """What ``jsonschema``, the reference, finds wrong with a decoded value."""
        if self._plain(value):
            return
        import jsonschema

        from rag_eval.files.wording import LINE_BREAK, word

        validator = jsonschema.Draft202012Validator(self.schema, registry=_no_remote())
        errors = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path])
        for error in errors:
            yield word(error)
        if not errors:
            yield LINE_BREAK

    def _huge(self, row: Row) -> bool:
        """Whether a number that the schema leaves open may have been an integer beyond 64 bits."""
        own, objects, lists = self._numbers
        for name in self._numeric.intersection(row):
            if name in own:
                huge = _is_huge((row[name],))
            elif name in objects:
                huge = _is_huge(row[name].values())
            else:
                huge = any(_is_huge([item.get(field) for field in lists[name]]) for item in row[name])
            if huge:
                return True
        return False


def _is_huge(values: Iterable[Any]) -> bool:
    return any([type(value) is float and not -_SAFE < value < _SAFE for value in values])


def _loses_keys(text: bytes, value: Any) -> bool:
    """Whether a key may stand twice: it then loses its own two quotes, at least, on the way through the decoder.

    An escaped quote is the only other thing that changes the number of quotes, and is taken for a loss too.
    """
    return text.count(b'"') != orjson.dumps(value).count(b'"') or (b"\\" in text and b"u0022" in text)


def _every(schema: Schema) -> Schema:
    """The schema of a list of what ``schema`` describes."""
    row = {name: value for name, value in schema.items() if not name.startswith("$")}
    return {"type": "array", "items": row, "$defs": schema["$defs"]}


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
        items = _close(schema["items"])
        closed["items"] = {**items, **_bounds(items)} if _open_number(items) else items
    if isinstance(schema.get("additionalProperties"), dict):
        closed["additionalProperties"] = {**schema["additionalProperties"], **_bounds(schema["additionalProperties"])}
    return closed


def _bounds(schema: Schema | None = None) -> Schema:
    low, high = (schema or {}).get("minimum", -_SAFE), (schema or {}).get("maximum", _SAFE)
    return {"minimum": low, "maximum": high}


def _numeric_paths(schema: Schema) -> tuple[frozenset[str], frozenset[str], dict[str, tuple[str, ...]]]:
    """Where numbers may stand that have no upper bound: in the row, in objects of it, in its lists of objects.

    Bounds in the compiled schema would do as well, but cost a microsecond a number there.
    """
    fields = schema["properties"]
    own = frozenset(name for name, field in fields.items() if _open_number(field))
    objects = frozenset(name for name, field in fields.items() if any(map(_open_number, _inner(field))))
    lists = {
        name: tuple(key for key, inner in _inner_of_items(field).items() if _open_number(inner))
        for name, field in fields.items()
    }
    return own, objects, {name: keys for name, keys in lists.items() if keys}


def _inner_of_items(field: Schema) -> Schema:
    inner: Schema = field.get("items", {}).get("properties", {})
    return inner


def _inner(field: Schema) -> list[Schema]:
    return list(field.get("properties", {}).values())


def _open_number(field: Schema) -> bool:
    return field.get("type") in ("number", "integer") and "maximum" not in field


def _no_remote() -> Any:
    """A registry that knows no address: a ``$ref`` to elsewhere fails instead of being fetched."""
    import referencing

    return referencing.Registry()
