"""Validation of decoded values by JSON Schema, and descriptions of errors.

A schema becomes functions that return the errors of a value. An unknown keyword is a ValueError, so that none is
ignored. ``$`` in a pattern is the end of the text, as in JSON Schema; Python also matches it before a final line break.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import shipped
from rag_eval.readers import strict_json
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


Check = Callable[[Any], Sequence[SchemaError]]

EXTRA = "additionalProperties"
"""The keyword of a schema that refuses unknown keys."""
_NOTES = {"$schema", "$id", "$comment", "$defs", "title", "description", "examples", "then"}
_MOST = 1000
"""Errors of one list or object that are collected: a hundred are shown."""


@cache
def load_schema(name: str, parse_float: Callable[[str], Any] = float) -> Schema:
    """Return the schema ``schemas/NAME.schema.json``."""
    text = Path(shipped("schemas", f"{name}.schema.json")).read_bytes()
    schema: Schema = json.loads(text, parse_float=parse_float)
    return schema


def compile_schema(schema: Schema) -> Check:
    """Return a function that returns the errors of a value, none if it is valid."""
    return _Compiler(schema).check(schema)


class _Compiler:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._named: dict[str, Check] = {}

    def check(self, schema: Schema) -> Check:
        """Return the errors of all keywords."""
        checks = [
            self._keyword(keyword, expected, schema)
            for keyword, expected in schema.items()
            if keyword not in _NOTES and not keyword.startswith("x-")
        ]
        if len(checks) == 1:
            return checks[0]
        return lambda value: [error for check in checks for error in check(value)]

    def _keyword(self, keyword: str, expected: Any, schema: Schema) -> Check:
        if keyword in _TESTS:
            kind, make_test = _TESTS[keyword]
            test = make_test(expected)
            return lambda value: (
                () if not isinstance(value, kind) or test(value) else [SchemaError(keyword, expected, value, schema)]
            )
        if keyword not in _COMPOSED:
            raise ValueError(f"the keyword '{keyword}' is unknown here")
        kind, compose = _COMPOSED[keyword]
        check = compose(self, expected, schema)
        return lambda value: check(value) if isinstance(value, kind) else ()

    def required(self, names: list[str], schema: Schema) -> Check:
        return lambda value: [SchemaError("required", name, value, schema) for name in names if name not in value]

    def properties(self, fields: dict[str, Schema], _: Schema) -> Check:
        checks = {name: self.check(field) for name, field in fields.items()}
        return lambda value: _inside([(name, checks[name], item) for name, item in value.items() if name in checks])

    def pattern_properties(self, fields: dict[str, Schema], _: Schema) -> Check:
        checks = [(_matcher(pattern), self.check(field)) for pattern, field in fields.items()]
        return lambda value: _inside(
            [(name, check, item) for name, item in value.items() for matches, check in checks if matches(name)]
        )

    def additional_properties(self, others: Schema | bool, schema: Schema) -> Check:
        if others is True:
            return lambda _: ()
        known = schema.get("properties", {})
        patterns = [_matcher(pattern) for pattern in schema.get("patternProperties", {})]
        check = self.check(others) if others else None

        def errors(value: dict[str, Any]) -> Sequence[SchemaError]:
            extra = [name for name in value if name not in known and not any([matches(name) for matches in patterns])]
            if check:
                return _inside([(name, check, value[name]) for name in extra])
            return [SchemaError(EXTRA, extra, value, schema)] if extra else ()

        return errors

    def property_names(self, names: Schema, _: Schema) -> Check:
        check = self.check(names)
        return lambda value: list(islice((error for name in value for error in check(name)), _MOST))

    def items(self, entries: Schema, _: Schema) -> Check:
        check = self.check(entries)
        return lambda value: _inside([(index, check, item) for index, item in enumerate(value)])

    def first_items(self, entries: list[Schema], _: Schema) -> Check:
        checks = [self.check(entry) for entry in entries]
        return lambda value: _inside(zip(count(), checks, value))

    def any_of(self, branches: list[Schema], schema: Schema) -> Check:
        checks = [self.check(branch) for branch in branches]
        return lambda value: (
            [SchemaError("anyOf", branches, value, schema)] if all([check(value) for check in checks]) else ()
        )

    def all_of(self, branches: list[Schema], _: Schema) -> Check:
        checks = [self.check(branch) for branch in branches]
        return lambda value: [error for check in checks for error in check(value)]

    def negation(self, refused: Schema, schema: Schema) -> Check:
        check = self.check(refused)
        return lambda value: () if check(value) else [SchemaError("not", refused, value, schema)]

    def condition(self, condition: Schema, schema: Schema) -> Check:
        when, then = self.check(condition), self.check(schema["then"])
        return lambda value: () if when(value) else then(value)

    def reference(self, reference: str, _: Schema) -> Check:
        name = reference.removeprefix("#/$defs/")
        if name not in self._named:
            self._named[name] = self.check(self._root["$defs"][name])
        return self._named[name]


_COMPOSED: dict[str, tuple[type, Callable[[_Compiler, Any, Schema], Check]]] = {
    "required": (dict, _Compiler.required),
    "properties": (dict, _Compiler.properties),
    "patternProperties": (dict, _Compiler.pattern_properties),
    EXTRA: (dict, _Compiler.additional_properties),
    "propertyNames": (dict, _Compiler.property_names),
    "items": (list, _Compiler.items),
    "prefixItems": (list, _Compiler.first_items),
    "anyOf": (object, _Compiler.any_of),
    "allOf": (object, _Compiler.all_of),
    "not": (object, _Compiler.negation),
    "if": (object, _Compiler.condition),
    "$ref": (object, _Compiler.reference),
}
"""Keywords that contain schemas or describe objects, with the type of the values to which they apply."""


def _inside(parts: Iterable[tuple[str | int, Check, Any]]) -> Sequence[SchemaError]:
    """Return the errors of values inside of another one, by their names or indexes."""
    errors: list[SchemaError] = []
    for key, check, item in parts:
        errors += [error._replace(path=(key, *error.path)) for error in check(item)]
        if len(errors) >= _MOST:
            break
    return errors


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: type(value) is str),
    "boolean": ("true or false", lambda value: type(value) is bool),
    "array": ("a list", lambda value: type(value) is list),
    "object": ("an object", lambda value: type(value) is dict),
    "null": ("null", lambda value: value is None),
    "number": ("a number", _is_number),
    "integer": ("a whole number", lambda value: _is_number(value) and (type(value) is int or value == int(value))),
}
"""The types of JSON: their names in messages, and a test for each."""


def _as_list(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _type(kinds: str | list[str]) -> Callable[[Any], bool]:
    tests = [_TYPES[kind][1] for kind in _as_list(kinds)]
    return tests[0] if len(tests) == 1 else lambda value: any([test(value) for test in tests])


def _equal(value: Any, other: Any) -> bool:
    # In JSON true is not 1; in Python it is.
    return value == other and (type(value) is type(other) or (_is_number(value) and _is_number(other)))


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return a search for a pattern, which is compiled at its first use."""
    exact = f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
    return lambda text: re.search(exact, text) is not None


_TESTS: dict[str, tuple[type, Callable[[Any], Callable[[Any], bool]]]] = {
    "type": (object, _type),
    "const": (object, lambda wanted: lambda value: _equal(value, wanted)),
    "enum": (object, lambda allowed: lambda value: any([_equal(value, item) for item in allowed])),
    "pattern": (str, _matcher),
    "minimum": (object, lambda least: lambda value: not _is_number(value) or value >= least),
    "maximum": (object, lambda limit: lambda value: not _is_number(value) or value <= limit),
    "minLength": (str, lambda least: lambda value: len(value) >= least),
    "maxLength": (str, lambda limit: lambda value: len(value) <= limit),
    "minItems": (list, lambda least: lambda value: len(value) >= least),
    "maxItems": (list, lambda limit: lambda value: len(value) <= limit),
    "minProperties": (dict, lambda least: lambda value: len(value) >= least),
}
"""Other keywords, with the type of the values to which they apply, and a test for each."""


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
    expected = " or ".join(_TYPES[kind][0] for kind in _as_list(error.expected))
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
    return f"{quoted(error.value)} does not match the pattern {one_line(error.expected, 200)}", ""


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


@cache
def _check_of(name: str) -> Check:
    return compile_schema(load_schema(name))


class Contract:
    """The schema of a name, and its errors."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.name, self.depth = name, depth
        self.schema = load_schema(name)
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
        return not _check_of(self.name)(value)

    def faults(self, value: Any) -> list[RowError]:
        """Return the errors of a decoded value."""
        errors = _check_of(self.name)(value)
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
