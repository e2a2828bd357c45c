"""Whether a JSON Schema accepts a value: the library jsonschema takes longer to load than a small run takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from typing import Any

Schema = dict[str, Any]
Row = dict[str, Any]


def is_valid(schema: Schema | bool, value: Any, root: Schema) -> bool:
    """Return whether a part of the schema ``root`` accepts a value; raise ValueError for an unknown keyword."""
    if isinstance(schema, bool):
        return schema
    for keyword, expected in schema.items():
        if keyword in _NOTES or keyword[:2] == "x-":
            continue
        if accepts := _ASSERTIONS.get(keyword):
            valid = accepts(value, expected)
        elif keyword in _APPLIED:
            kind, parts = _APPLIED[keyword]
            pairs = parts(expected, value, schema) if isinstance(value, kind) else ()
            valid = all([is_valid(part, inner, root) for part, inner in pairs])
        else:
            valid = _is_valid_by(keyword, schema, value, root)
        if not valid:
            return False
    return True


def _is_valid_by(keyword: str, schema: Schema, value: Any, root: Schema) -> bool:
    """Return whether a keyword that refers to a schema or combines several accepts a value."""
    expected, accepts = schema[keyword], partial(is_valid, value=value, root=root)
    if keyword == "$ref":
        return accepts(root["$defs"][expected.removeprefix("#/$defs/")])
    if keyword == "anyOf":
        return any(map(accepts, expected))
    if keyword == "not":
        return not accepts(expected)
    if keyword == "if":
        return not accepts(expected) or accepts(schema["then"])
    raise ValueError(f"the keyword '{keyword}' is unknown here")


def extra_keys(schema: Schema, row: Row) -> list[str]:
    """Return the keys that neither properties nor patternProperties name."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [key for key in row if key not in known and not any([re.search(one, key) for one in patterns])]


def is_number(value: Any) -> bool:
    """Return whether a value is a number of JSON; a Decimal is one."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number of JSON, such as 5.0."""
    return is_number(value) and (type(value) is int or value == int(value))


def _equal(value: Any, other: Any) -> bool:
    # In JSON true is not 1; in Python it is.
    return value == other and (type(value) is type(other) or (is_number(value) and is_number(other)))


_NOTES = frozenset(("$schema", "$id", "$comment", "$defs", "title", "description", "examples", "then"))
"""Keywords that refuse nothing; ``then`` belongs to ``if``."""
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
    "number": is_number,
    "integer": is_integer,
    "null": lambda value: value is None,
}
_ASSERTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "type": lambda value, kinds: (
        _TYPES[kinds](value) if isinstance(kinds, str) else any([_TYPES[kind](value) for kind in kinds])
    ),
    "required": lambda value, names: type(value) is not dict or all([name in value for name in names]),
    "const": _equal,
    "enum": lambda value, allowed: any([_equal(value, item) for item in allowed]),
    "pattern": lambda value, pattern: type(value) is not str or re.search(pattern, value) is not None,
    "minimum": lambda value, least: not is_number(value) or value >= least,
    "maximum": lambda value, limit: not is_number(value) or value <= limit,
    "minLength": lambda value, least: type(value) is not str or len(value) >= least,
    "maxLength": lambda value, limit: type(value) is not str or len(value) <= limit,
    "minItems": lambda value, least: type(value) is not list or len(value) >= least,
    "maxItems": lambda value, limit: type(value) is not list or len(value) <= limit,
    "minProperties": lambda value, least: type(value) is not dict or len(value) >= least,
}
"""Keywords without schemas, each with a predicate of the value and of its own value."""
_APPLIED: dict[str, tuple[type, Callable[[Any, Any, Schema], Iterable[tuple[Schema | bool, Any]]]]] = {
    "allOf": (object, lambda parts, value, _: [(part, value) for part in parts]),
    "properties": (dict, lambda fields, row, _: [(fields[name], row[name]) for name in row if name in fields]),
    "patternProperties": (
        dict,
        lambda fields, row, _: [(fields[one], row[name]) for one in fields for name in row if re.search(one, name)],
    ),
    "additionalProperties": (dict, lambda part, row, schema: [(part, row[name]) for name in extra_keys(schema, row)]),
    "propertyNames": (dict, lambda part, row, _: [(part, name) for name in row]),
    "items": (list, lambda part, items, _: [(part, item) for item in items]),
    "prefixItems": (list, lambda parts, items, _: zip(parts, items, strict=False)),
}
"""Keywords with schemas, each with the type of value that it is about, and the schemas with what they apply to."""
