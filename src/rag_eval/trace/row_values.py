"""Check the values of a trace row by ``schemas/trace.schema.json``, with the standard library only."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any

from rag_eval.common.json_schema import Schema, is_valid
from rag_eval.common.paths import shipped

_REPR_AS_TEXT: Any = object.__str__  # of a type without a text form


_RULES = ("type", "required", "enum", "minimum", "maximum", "minLength", "maxLength")
"""Keywords of the schema, for an error."""


@cache
def _fields() -> dict[str, Schema]:
    schema: Schema = json.loads(Path(shipped("schemas", "trace.schema.json")).read_text("utf-8"))
    fields: dict[str, Schema] = schema["properties"]
    return fields


def checked(name: str, value: Any) -> Any:
    """Return the value of a field as plain JSON. The fields of other tools may have any value.

    Raises TypeError or ValueError, with the fix, for a value that ``rag-eval validate`` would refuse.
    """
    try:
        plain = json.loads(json.dumps(value, default=plain_value, allow_nan=False))
        json.dumps(plain, ensure_ascii=False).encode()
    except ValueError as error:  # a number such as NaN, or half of a surrogate pair
        raise ValueError(f"'{name}' cannot be written: {error}. Leave out or replace that part.") from None
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
    """Raise TypeError or ValueError for the innermost part of a value that its schema refuses."""
    if is_valid(schema, value, schema):
        return
    if isinstance(value, list):
        for position, item in enumerate(value):
            _check(f"{where}[{position}]", item, schema.get("items", {}))
    elif isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            _check(f"{where}.{name}", item, fields.get(name, others))
    rules = ", ".join(f"{rule} {schema[rule]}" for rule in _RULES if rule in schema)
    kind = ValueError if is_valid({"type": schema["type"]}, value, {}) else TypeError
    fix = f"Write for example: {schema['examples'][0]!r}" if "examples" in schema else "Leave the field out."
    raise kind(f"'{where}' is {repr(value)[:80]}, but must have {rules}. {fix}")
