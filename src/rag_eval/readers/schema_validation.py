"""Validation of decoded values by JSON Schema, and descriptions of errors.

Small documents are read at every start, so valid values are accepted by predicates that are built quickly from the
schema. jsonschema is loaded only to find the errors of a refused value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import shipped
from rag_eval.readers import strict_json
from rag_eval.readers.predicates import exact_pattern, is_integer, predicate
from rag_eval.readers.problems import ProblemCollector, did_you_mean
from rag_eval.readers.strict_json import pointer

Schema = dict[str, Any]


class SchemaError(NamedTuple):
    """A value that a keyword of its schema refuses.

    ``expected`` is the value of the keyword; for ``required`` the name of one missing field, for
    ``additionalProperties`` the unknown keys.
    """

    keyword: str
    expected: Any
    value: Any
    schema: Schema
    path: tuple[str | int, ...] = ()


EXTRA = "additionalProperties"
"""The keyword of a schema that refuses unknown keys."""
_MOST = 1000
"""Errors of one value that are looked at: a hundred are shown."""
_TYPES = {
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "number": "a number",
    "integer": "a whole number",
    "null": "null",
}


@cache
def load_schema(name: str, parse_float: Callable[[str], Any] = float) -> Schema:
    """Return the schema ``schemas/NAME.schema.json``."""
    with open(shipped("schemas", f"{name}.schema.json"), "rb") as file:  # noqa: PTH123 - start-up time
        schema: Schema = json.load(file, parse_float=parse_float)
    return schema


def schema_errors(schema: Schema, value: Any) -> list[SchemaError]:
    """Return the errors of a value, none if it is valid; at most a thousand."""
    return [] if predicate(schema)(value) else _errors_by_jsonschema(schema, value)


def _errors_by_jsonschema(schema: Schema, value: Any) -> list[SchemaError]:
    import jsonschema
    import referencing

    base = jsonschema.Draft202012Validator
    types = base.TYPE_CHECKER.redefine("integer", lambda _, item: is_integer(item))  # a Decimal may be whole
    kind: Any = jsonschema.validators.extend(base, type_checker=types)  # type: ignore[no-untyped-call]
    # An empty registry: a $ref to elsewhere fails instead of being fetched.
    validator = kind(_with_exact_patterns(schema), registry=referencing.Registry())
    errors = []
    for error in islice(validator.iter_errors(value), _MOST):
        keyword, expected, path = str(error.validator), error.validator_value, tuple(error.absolute_path)
        if keyword == "required":
            # jsonschema raises one error for each missing field and names it only in its message.
            expected = next(name for name in expected if error.message.startswith(repr(name)))
        elif keyword == EXTRA:
            known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
            expected = [
                key
                for key in error.instance
                if key not in known and not any([re.search(pattern, key) for pattern in patterns])
            ]
        errors.append(SchemaError(keyword, expected, error.instance, error.schema, path))
    return errors


def _with_exact_patterns(schema: Any) -> Any:
    """Return a schema whose patterns mean the same in Python as in JSON Schema."""
    if isinstance(schema, list):
        return [_with_exact_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    exact = {name: _with_exact_patterns(item) for name, item in schema.items()}
    if isinstance(schema.get("pattern"), str):
        exact["pattern"] = exact_pattern(schema["pattern"])
    if isinstance(named := exact.get("patternProperties"), dict):
        exact["patternProperties"] = {exact_pattern(pattern): item for pattern, item in named.items()}
    return exact


class RowError(NamedTuple):
    """An error of a row: JSON pointer or column, message, hint, and the schema's keyword that refuses it."""

    where: str
    message: str
    hint: str = ""
    keyword: str = ""


def describe_error(error: SchemaError) -> RowError:
    """Return an error in words."""
    message, hint = _WORDS.get(error.keyword, _by_template)(error)
    return RowError(pointer(error.path), message, _schema_hint(error) or hint, error.keyword)


def unknown_key(error: SchemaError, key: str, *, hint: bool = True) -> RowError:
    """Return the error of one unknown key; a ``hint`` costs a search for similar names."""
    known = error.schema.get("properties", {})
    text = (_schema_hint(error) or did_you_mean(key, known) or _known_keys(known)) if hint else ""
    return RowError(pointer((*error.path, key)), f"unknown key {quoted(key, 40)}", text, EXTRA)


def _schema_hint(error: SchemaError) -> str:
    return str(error.schema.get(f"x-hint-{error.keyword}", "") or error.schema.get("x-hint", ""))


def _known_keys(names: Iterable[str]) -> str:
    return f"Known keys: {one_line(', '.join(names), 200)}."


def _wrong_type(error: SchemaError) -> tuple[str, str]:
    kinds = error.expected if isinstance(error.expected, list) else [error.expected]
    expected = " or ".join(_TYPES[kind] for kind in kinds)
    hint = "Leave the field out if there is no value." if error.value is None else ""
    return f"{quoted(error.value)} is not {expected}", hint


def _missing(error: SchemaError) -> tuple[str, str]:
    from difflib import get_close_matches

    name, unknown = error.expected, [key for key in error.value if key not in error.schema.get("properties", {})]
    close = get_close_matches(name, unknown, n=1, cutoff=0.6)
    return f"'{name}' is missing", f"Rename {quoted(close[0])} to '{name}'." if close else "Add the field."


def _extra(error: SchemaError) -> tuple[str, str]:
    known, extra = error.schema.get("properties", {}), error.expected
    hints = [hint for hint in (did_you_mean(key, known) for key in extra[:3]) if hint]
    names = ", ".join(quoted(key, 40) for key in extra[:3]) + (", …" if len(extra) > 3 else "")
    return f"unknown key {names}", " ".join(hints) or _known_keys(known)


def _not_allowed(error: SchemaError) -> tuple[str, str]:
    allowed = ", ".join(quoted(value) for value in error.expected)
    close = did_you_mean(error.value, error.expected) if isinstance(error.value, str) else ""
    return f"{quoted(error.value)} is not one of {allowed}", close


def _no_match(error: SchemaError) -> tuple[str, str]:
    if error.expected == r"\S" or error.expected.startswith(r"[^\s"):
        return "the text is blank", ""
    if error.value.endswith("\n"):
        return "a text or a key ends with a line break, which its pattern does not allow", "Remove it."
    pattern = f"{error.expected[:-2]}$" if error.expected.endswith(r"\Z") else error.expected
    return f"{quoted(error.value)} does not match the pattern {one_line(pattern, 200)}", ""


def _no_branch(error: SchemaError) -> tuple[str, str]:
    names = sorted({name for branch in error.expected for name in branch.get("required", [])})
    required = f"one of {', '.join(map(quoted, names))} is required"
    return (required if names else "the value does not have an allowed form"), ""


def _by_template(error: SchemaError) -> tuple[str, str]:
    templates = _TEMPLATES[error.keyword]
    template = templates.get(error.expected if isinstance(error.expected, int) else None) or templates[None]
    return template.format(quoted(error.value), error.expected), ""


_TEMPLATES: dict[str, dict[int | None, str]] = {
    "minLength": {1: "the text is empty", None: "{0} is shorter than {1} characters"},
    "maxLength": {None: "{0} is longer than {1} characters"},
    "minItems": {None: "the list has fewer than {1} entries"},
    "maxItems": {0: "the list must be empty", None: "the list has more than {1} entries"},
    "minProperties": {1: "the object is empty", None: "the object has fewer than {1} keys"},
    "minimum": {None: "{0} is less than {1}"},
    "maximum": {None: "{0} is more than {1}"},
    "not": {None: "{0} has a character that is not allowed"},
}
"""Messages by keyword and its value; None is any other value. The places are the refused value and the keyword's."""
_WORDS: dict[str, Callable[[SchemaError], tuple[str, str]]] = {
    "type": _wrong_type,
    "required": _missing,
    EXTRA: _extra,
    "enum": _not_allowed,
    "const": lambda error: (f"{quoted(error.value)} is not {quoted(error.expected)}", ""),
    "anyOf": _no_branch,
    "pattern": _no_match,
}


class Contract:
    """The schema of a name, and its errors."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.name, self.depth = name, depth
        self.schema = load_schema(name)
        self._accepts = predicate(self.schema)
        self._known = _known_fields(self.schema)

    def validate(self, data: bytes, decoder: json.JSONDecoder = strict_json.DECODER) -> tuple[Any, list[RowError]]:
        """Return the value of a JSON text without errors, or None with all errors."""
        try:
            value = strict_json.parse(data, self.depth, decoder)
        except strict_json.JsonError as error:
            return None, [RowError(error.where, error.message, error.hint)]
        faults = self.faults(value)
        return (None, faults) if faults else (value, [])

    def accepts(self, value: Any) -> bool:
        """Return whether a decoded value is valid."""
        return self._accepts(value)

    def faults(self, value: Any) -> list[RowError]:
        """Return the errors of a decoded value."""
        errors = [] if self._accepts(value) else _errors_by_jsonschema(self.schema, value)
        return [describe_error(error) for error in sorted(errors, key=lambda error: [str(key) for key in error.path])]

    def note_unknown_fields(self, row: dict[str, Any], ledger: ProblemCollector, path: str, line: int) -> None:
        """Note the unknown fields of a row, once for each file."""
        for parent, known in self._known.items():
            inner = row.get(parent) if parent else row
            objects = inner if isinstance(inner, list) else [inner]
            for field in sorted({name for item in objects if isinstance(item, dict) for name in item.keys() - known}):
                ledger.unknown_field(path, line, f"{parent}.{field}" if parent else field, field, known)


def _known_fields(schema: Schema) -> dict[str, frozenset[str]]:
    """Return the fields in a schema, by the field that contains them ('' for the row itself)."""
    known = {"": frozenset(schema.get("properties", {}))}
    for name, field in schema.get("properties", {}).items():
        inner = field if "properties" in field else field.get("items", {})
        if "properties" in inner:
            known[name] = frozenset(inner["properties"])
    return known
