"""Check the values of a trace row by ``schemas/trace.schema.json``, with the standard library only."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any

from rag_eval.common.paths import shipped

Schema = dict[str, Any]
_REPR_AS_TEXT: Any = object.__str__  # of a type without a text form


def _is_whole(value: Any) -> bool:
    """Return whether a value counts as an integer; the check of numbers refuses NaN and infinity."""
    if isinstance(value, float):
        return value.is_integer() or not math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a text", lambda value: isinstance(value, str)),
    "boolean": ("True or False", lambda value: isinstance(value, bool)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("a mapping", lambda value: isinstance(value, dict)),
    "number": ("a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)),
    "integer": ("a whole number", _is_whole),
}


@cache
def _fields() -> dict[str, Schema]:
    schema: Schema = json.loads(Path(shipped("schemas", "trace.schema.json")).read_text("utf-8"))
    fields: dict[str, Schema] = schema["properties"]
    return fields


def checked(name: str, value: Any) -> Any:
    """Return the value of a field as plain JSON. The fields of other tools may have any value.

    Raises TypeError or ValueError, with the fix, for a value that ``rag-eval validate`` would refuse.
    """
    plain = json.loads(json.dumps(value, default=plain_value))
    _check(name, plain, _fields().get(name, {}))
    return plain


def plain_value(value: Any) -> Any:
    """Return a value that JSON does not know as a number if it is one, such as those of NumPy, otherwise as text."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, (Real, Decimal)) else str(value)


def as_text(value: Any, what: str, fix: str) -> str:
    """Return the text of a text, a number, or an object that defines one, such as a UUID; raise TypeError for others.

    The text of a mapping, a list or a document is its ``repr``, which nobody wants in a row.
    """
    has_text = type(value).__str__ is not _REPR_AS_TEXT and not isinstance(value, (bytes, Iterable))
    is_missing = isinstance(value, float) and not math.isfinite(value)
    if (isinstance(value, (str, Number)) or has_text) and not is_missing:
        return str(value)
    wrong = f"{what} is {value}" if value is None or is_missing else f"{what} is {described(value)}"
    raise TypeError(f"{wrong}. {fix}")


def described(value: Any) -> str:
    """Return the type of a value with its beginning, for an error."""
    if isinstance(value, str):
        return f"a text: {value[:80]!r}"
    return f"of type {type(value).__name__}, not a text: {repr(value)[:80]}"


def _check(where: str, value: Any, schema: Schema) -> None:
    """Raise TypeError or ValueError for the first value that the schema refuses."""
    kind, is_of_type = _TYPES.get(schema.get("type", ""), ("", lambda _: True))
    if not is_of_type(value):
        raise TypeError(f"'{where}' must be {kind}, not {_shown(value)}. {_fix(value, schema)}")
    if isinstance(value, str):
        _check_text(where, value, schema)
    elif isinstance(value, (int, float)):
        _check_number(where, value, schema)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _check(f"{where}[{position}]", item, schema.get("items", {}))
    elif isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                raise ValueError(f"'{where}' lacks '{name}'. {_fix(value, schema)}")
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            _check(f"{where}.{name}", item, fields.get(name, others))


def _check_text(where: str, value: str, schema: Schema) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"half of a surrogate pair (\\u{ord(value[error.start]):04x}), which no file can hold"
        raise ValueError(f"'{where}' has {half}. Replace it: text.encode('utf-8', 'replace').decode()") from None
    longest, allowed = schema.get("maxLength", len(value)), schema.get("enum", [value])
    if len(value) > longest:
        raise ValueError(f"'{where}' has {len(value)} characters. Shorten it to {longest} or fewer.")
    if len(value) < schema.get("minLength", 0):
        raise ValueError(f"'{where}' is empty. Leave the field out, or write a text.")
    if value not in allowed:
        raise ValueError(f"'{where}' is {_shown(value)}. Use one of: {', '.join(allowed)}")


def _check_number(where: str, value: float, schema: Schema) -> None:
    if not math.isfinite(value):
        raise ValueError(f"'{where}' is {value}, which JSON cannot write. Leave the field out if there is no value.")
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    if not low <= value <= high:
        bounds = f"at least {low}" if value < low else f"at most {high}"
        raise ValueError(f"'{where}' must be {bounds}, but is {value}. Leave the field out if there is no value.")


def _fix(value: Any, schema: Schema) -> str:
    """Return how to write a value of the type that the schema asks for."""
    if schema.get("type") == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"Write: {str(value)!r}"
    if schema.get("examples"):
        return f"Write for example: {schema['examples'][0]!r}"
    return "Leave the field out if there is no value."


def _shown(value: Any) -> str:
    return repr(value)[:80]
