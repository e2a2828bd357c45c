"""Many rows, quickly: orjson, and the schema compiled by jsonschema-rs.

Both are lenient where strict JSON is not (repeated keys, integers beyond 64 bits, nesting). Rows in which that could
matter are not accepted here but left to the slow and exact way of :mod:`rag_eval.files.contract`.
"""

from __future__ import annotations

import jsonschema_rs

from rag_eval.quick_json import orjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Row = dict[str, Any]
    Schema = dict[str, Any]

SAFE = 1e18
"""Any number within ±1e18 is either a float or an integer of 64 bits."""
_TO_ZEROS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_DIGITS = b"0" * 19
_FREE_LEVELS = 6  # nesting of fields that the schema does not know, before a row is left to the slow way
_OWN_LEVELS = 3  # around such a field: the row, a list of objects in it, one of them


class Bulk:
    """One schema, compiled to accept good rows; ``depth`` is the nesting that strict reading allows."""

    def __init__(self, schema: Schema, depth: int) -> None:
        guarded = _guarded(schema)
        self._plain = jsonschema_rs.Draft202012Validator(schema, offline=True).is_valid
        self._quick = jsonschema_rs.Draft202012Validator(guarded, offline=True).is_valid
        self._all_quick = jsonschema_rs.Draft202012Validator(_every(guarded), offline=True).is_valid
        self._numbers = _numeric_paths(schema)
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
        text = b"\n".join(lines)
        if not self._all_quick(rows) or loses_keys(text, rows):
            return None
        # Only a long run of digits can be an integer beyond 64 bits; mostly there is none in many rows.
        return None if _long_number(text) and any(map(self._huge, rows)) else rows

    def accept(self, line: bytes) -> Row | None:
        """The row of a good line, or None where only a closer look can tell."""
        if self._shallow:
            return None
        try:
            row: Row = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        return row if self._quick(row) and not self._huge(row) and not loses_keys(line, row) else None

    def refuses(self, line: bytes) -> bool:
        """Whether a line is wrong beyond doubt, without saying why: for rows that are only counted."""
        try:
            return not self._plain(orjson.loads(line))
        except orjson.JSONDecodeError:
            return True

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


def _long_number(text: bytes) -> bool:
    """Whether as many digits stand in a row as an integer beyond 64 bits has at least."""
    return _DIGITS in text.translate(_TO_ZEROS)


def _is_huge(values: Iterable[Any]) -> bool:
    return any([type(value) is float and not -SAFE < value < SAFE for value in values])


def loses_keys(text: bytes, value: Any) -> bool:
    """Whether a key may stand twice: it then loses its own two quotes, at least, on the way through the decoder.

    An escaped quote is the only other thing that changes the number of quotes, and is taken for a loss too.
    """
    return text.count(b'"') != orjson.dumps(value).count(b'"') or (b"\\" in text and b"u0022" in text)


def _every(schema: Schema) -> Schema:
    """The schema of a list of what ``schema`` describes."""
    row = {name: value for name, value in schema.items() if not name.startswith("$")}
    return {"type": "array", "items": row, "$defs": schema["$defs"]}


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
    low, high = (schema or {}).get("minimum", -SAFE), (schema or {}).get("maximum", SAFE)
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
