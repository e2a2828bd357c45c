"""Validation of decoded values by JSON Schema, and descriptions of errors.

Small documents are read at every start, so valid values are accepted by predicates that are built quickly from the
schema. jsonschema is loaded only to describe the errors of a refused one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from json import JSONDecoder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import shipped
from rag_eval.readers import strict_json
from rag_eval.readers.predicates import predicate
from rag_eval.readers.strict_json import pointer

if TYPE_CHECKING:
    from rag_eval.readers.problems import ProblemCollector


def load_schema(name: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the schema ``schemas/NAME.schema.json``."""
    text = Path(shipped("schemas", f"{name}.schema.json")).read_bytes()
    schema: dict[str, Any] = json.loads(text, parse_float=parse_float)
    return schema


ValidationError = Any  # jsonschema declares the value of a keyword as possibly unset; here it is always set

_TYPES = {
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "number": "a number",
    "integer": "a whole number",
    "null": "null",
}


EXTRA = "additionalProperties"
"""The keyword of a schema that refuses unknown keys."""


class RowError(NamedTuple):
    """An error of a row: JSON pointer or column, message, hint, and the schema's keyword that refuses it."""

    where: str
    message: str
    hint: str = ""
    keyword: str = ""


# In Python's patterns ``$`` also matches before a final line break; in the quick validator's it does not.
LINE_BREAK = RowError("", "a text or a key ends with a line break, which its pattern does not allow", "Remove it.")


def describe_error(error: ValidationError) -> RowError:
    """Return an error of ``jsonschema`` in the project's words."""
    keyword = str(error.validator)
    message, hint = _WORDS.get(keyword, _other)(error)
    return RowError(pointer(error.absolute_path), message, _schema_hint(error) or hint, keyword)


def unknown_key(error: ValidationError, key: str, *, hint: bool = True) -> RowError:
    """Return the error of one unknown key; a ``hint`` costs a search for similar names."""
    known = error.schema.get("properties", {})
    text = (_schema_hint(error) or did_you_mean(key, known) or _all(known)) if hint else ""
    return RowError(pointer((*error.absolute_path, key)), f"unknown key {quoted(key, 40)}", text, EXTRA)


def did_you_mean(name: str, existing: Iterable[object]) -> str:
    """Return ``Did you mean 'x'?`` if a known name is similar, otherwise an empty text."""
    from difflib import get_close_matches

    names = [item for item in existing if isinstance(item, str)]
    close = get_close_matches(name[:80], names, n=1, cutoff=0.6)
    return f"Did you mean '{close[0]}'?" if close else ""


def _schema_hint(error: ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, dict) else {}
    return str(schema.get(f"x-hint-{error.validator}", "") or schema.get("x-hint", ""))


def _type(error: ValidationError) -> tuple[str, str]:
    kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    expected = " or ".join(_TYPES.get(str(kind), str(kind)) for kind in kinds)
    hint = "Leave the field out if there is no value." if error.instance is None else ""
    return f"{quoted(error.instance)} is not {expected}", hint


def _required(error: ValidationError) -> tuple[str, str]:
    from difflib import get_close_matches

    # jsonschema raises one error for each missing field and names it only in its message.
    name = next(name for name in error.validator_value if error.message.startswith(repr(name)))
    present = [key for key in error.instance if key not in error.schema.get("properties", {})]
    close = get_close_matches(name, present, n=1, cutoff=0.6)
    return f"'{name}' is missing", f"Rename {quoted(close[0])} to '{name}'." if close else "Add the field."


def _extra(error: ValidationError) -> tuple[str, str]:
    known, extra = error.schema.get("properties", {}), unknown_keys(error)
    hints = [hint for hint in (did_you_mean(key, known) for key in extra[:3]) if hint]
    names = ", ".join(quoted(key, 40) for key in extra[:3]) + (", …" if len(extra) > 3 else "")
    return f"unknown key {names}", " ".join(hints) or _all(known)


def _all(names: Iterable[str]) -> str:
    return f"Known keys: {one_line(', '.join(names), 200)}."


def unknown_keys(error: ValidationError) -> list[str]:
    """Return the keys that an ``additionalProperties`` refuses, in the order of the file."""
    known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    return [
        key for key in error.instance if key not in known and not any(re.search(pattern, key) for pattern in patterns)
    ]


def _enum(error: ValidationError) -> tuple[str, str]:
    allowed = ", ".join(quoted(value) for value in error.validator_value)
    close = did_you_mean(error.instance, error.validator_value) if isinstance(error.instance, str) else ""
    return f"{quoted(error.instance)} is not one of {allowed}", close


def _pattern(error: ValidationError) -> tuple[str, str]:
    is_blank = error.validator_value == r"\S" or error.validator_value.startswith(r"[^\s")
    return ("the text is blank", "") if is_blank else _other(error)


def _any_of(error: ValidationError) -> tuple[str, str]:
    options = [branch.get("required", []) for branch in error.validator_value if isinstance(branch, dict)]
    names = sorted({name for option in options for name in option})
    return (
        (f"one of {', '.join(map(quoted, names))} is required", "")
        if names
        else ("the value does not have an allowed form", "")
    )


def _other(error: ValidationError) -> tuple[str, str]:
    templates = _TEMPLATES.get(str(error.validator), {})
    template = templates.get(
        error.validator_value if isinstance(error.validator_value, int) else None, templates.get(None)
    )
    if template is None:
        return one_line(f"does not satisfy '{error.validator}': {error.message}", 80), ""
    return template.format(quoted(error.instance), error.validator_value), ""


_TEMPLATES: dict[str, dict[int | None, str]] = {
    "minLength": {1: "the text is empty", None: "{0} is shorter than {1} characters"},
    "maxLength": {None: "{0} is longer than {1} characters"},
    "minItems": {None: "the list has fewer than {1} entries"},
    "maxItems": {0: "the list must be empty", None: "the list has more than {1} entries"},
    "minimum": {None: "{0} is less than {1}"},
    "maximum": {None: "{0} is more than {1}"},
    "not": {None: "{0} has a character that is not allowed"},
}
"""Messages by keyword and its value; None is any other value. The places are the instance and the keyword's value."""
_WORDS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "type": _type,
    "required": _required,
    EXTRA: _extra,
    "enum": _enum,
    "const": lambda error: (f"{quoted(error.instance)} is not {quoted(error.validator_value)}", ""),
    "anyOf": _any_of,
    "pattern": _pattern,
}

_MOST = 1000
"""Errors of one value that are looked at: a hundred are shown."""


def explain_line(line: bytes, schema: str, depth: int, decoder: JSONDecoder) -> list[RowError]:
    """Return all errors of a refused line."""
    try:
        value = strict_json.parse(line, depth, decoder)
    except strict_json.JsonError as error:
        return [RowError(error.where, error.message, error.hint)]
    return explain_value(value, schema)


def explain_value(value: Any, schema: str) -> list[RowError]:
    """Return jsonschema's errors of a decoded value."""
    errors = list(islice(_validator(schema).iter_errors(value), _MOST))
    return [
        describe_error(error) for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])
    ]


@cache
def _validator(schema: str) -> Any:
    import jsonschema
    import referencing

    # An empty registry: a $ref to elsewhere fails instead of being fetched.
    return jsonschema.Draft202012Validator(load_schema(schema), registry=referencing.Registry())


class Contract:
    """The schema of a name, and its errors."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.name, self.depth = name, depth
        self.schema = load_schema(name)
        self._accepts = predicate(self.schema)
        self._known = _known_fields(self.schema)

    def accepts(self, value: Any) -> bool:
        """Return whether a decoded value is valid under the schema."""
        return self._accepts(value)

    def validate(self, data: bytes) -> tuple[Any, list[RowError]]:
        """Return the value of a JSON text without errors, or None with all errors."""
        try:
            value = strict_json.parse(data, self.depth)
        except strict_json.JsonError as error:
            return None, [RowError(error.where, error.message, error.hint)]
        faults = self.faults(value)
        return (None, faults) if faults else (value, [])

    def faults(self, value: Any) -> list[RowError]:
        """Return the errors of a decoded value."""
        if self._accepts(value):
            return []

        return explain_value(value, self.name) or [LINE_BREAK]

    def note_unknown_fields(self, row: dict[str, Any], ledger: ProblemCollector, path: str, line: int) -> None:
        """Note the unknown fields of a row, once for each file."""
        for parent, known in self._known.items():
            inner = row.get(parent) if parent else row
            objects = inner if isinstance(inner, list) else [inner]
            for field in sorted({name for item in objects if isinstance(item, dict) for name in item.keys() - known}):
                ledger.unknown_field(path, line, f"{parent}.{field}" if parent else field, field, known)


def _known_fields(schema: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Return the fields in a schema, by the field that contains them ('' for the row itself)."""
    known = {"": frozenset(schema.get("properties", {}))}
    for name, field in schema.get("properties", {}).items():
        inner = field if "properties" in field else field.get("items", {})
        if "properties" in inner:
            known[name] = frozenset(inner["properties"])
    return known
