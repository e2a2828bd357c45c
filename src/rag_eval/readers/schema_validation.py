"""Validation of decoded values by JSON Schema, and descriptions of errors.

Small documents are read at every start, so valid values are accepted by predicates that are built quickly from the
schema. jsonschema is loaded only to find the errors of a refused value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted, quoted_name
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


EXTRA = "additionalProperties"
"""The keyword of a schema that refuses unknown keys."""
_BY_HAND = ("/gold.schema.json", "/gold-array.schema.json", "/eval-gates.schema.json", "/rag-server-golden.schema.json")
"""Schemas of files that people write: an example of a missing field helps them."""
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
    types = base.TYPE_CHECKER.redefine("integer", lambda _, item: _is_integer(item))  # a Decimal may be whole
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
        exact["pattern"] = _exact_pattern(schema["pattern"])
    if isinstance(named := exact.get("patternProperties"), dict):
        exact["patternProperties"] = {_exact_pattern(pattern): item for pattern, item in named.items()}
    return exact


Check = Callable[[Any], bool]
_NOTES = {"$schema", "$id", "$comment", "$defs", "title", "description", "examples", "then"}
_OBJECT = ("properties", "patternProperties", "additionalProperties")


def predicate(schema: Schema) -> Check:
    """Return a function that checks a value by a schema; raise ValueError for an unknown keyword."""
    return _PredicateBuilder(schema).check(schema)


class _PredicateBuilder:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._named: dict[str, Check] = {}

    def check(self, schema: Schema | bool) -> Check:
        """Return the predicate of a schema: all predicates of its keywords."""
        if isinstance(schema, bool):
            return lambda _: schema
        checks = [self._object(schema)] if any(name in schema for name in _OBJECT) else []
        for keyword, expected in schema.items():
            if keyword in _SIMPLE:
                checks.append(_SIMPLE[keyword](expected))
            elif keyword not in _OBJECT and keyword not in _NOTES and not keyword.startswith("x-"):
                checks.append(self._composed(keyword, schema))
        if len(checks) == 1:
            return checks[0]
        return lambda value: all([check(value) for check in checks])

    def _object(self, schema: Schema) -> Check:
        checks = {name: self.check(field) for name, field in schema.get("properties", {}).items()}
        named = schema.get("patternProperties", {})
        patterns = [(_search(pattern), self.check(field)) for pattern, field in named.items()]
        other = self.check(schema.get("additionalProperties", True))

        def keeps(name: str, value: Any) -> bool:
            check = checks.get(name)
            if check is not None:
                return check(value)
            matched = [check for matches, check in patterns if matches(name)]
            return all([check(value) for check in matched]) if matched else other(value)

        return lambda value: type(value) is not dict or all([keeps(name, item) for name, item in value.items()])

    def _composed(self, keyword: str, schema: Schema) -> Check:
        """Return the predicate of a keyword that contains schemas."""
        if keyword == "$ref":
            name = schema["$ref"].removeprefix("#/$defs/")
            if name not in self._named:
                self._named[name] = self.check(self._root["$defs"][name])
            return self._named[name]
        if keyword in ("prefixItems", "anyOf", "allOf"):
            checks = [self.check(part) for part in schema[keyword]]
            if keyword == "prefixItems":
                return lambda value: (
                    type(value) is not list or all([check(item) for check, item in zip(checks, value, strict=False)])
                )
            combine = any if keyword == "anyOf" else all
            return lambda value: combine([check(value) for check in checks])
        if keyword not in ("items", "propertyNames", "not", "if"):
            raise ValueError(f"the keyword '{keyword}' is unknown here")
        check = self.check(schema[keyword])
        if keyword == "not":
            return lambda value: not check(value)
        if keyword == "if":
            then = self.check(schema["then"])
            return lambda value: not check(value) or then(value)
        kind = list if keyword == "items" else dict
        return lambda value: type(value) is not kind or all([check(item) for item in value])


def _type(kinds: str | list[str]) -> Check:
    checks = [_TYPE_CHECKS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if len(checks) == 1:
        return checks[0]
    return lambda value: any([check(value) for check in checks])


def _is_number(value: Any) -> bool:
    """Return whether a value is a number of JSON; a Decimal is one."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """Return whether a value is a whole number of JSON, such as 5.0."""
    return _is_number(value) and (type(value) is int or value == int(value))


_TYPE_CHECKS: dict[str, Check] = {
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_integer,
}


def _equal(value: Any, other: Any) -> bool:
    # In JSON true is not 1; in Python it is.
    return value == other and (type(value) is type(other) or (_is_number(value) and _is_number(other)))


def _exact_pattern(pattern: str) -> str:
    """Return a pattern whose ``$`` is only the end of the text; in Python it also matches before a final line break."""
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


def _search(pattern: str) -> Check:
    exact = _exact_pattern(pattern)  # compiled at its first use
    return lambda value: type(value) is not str or re.search(exact, value) is not None


_SIMPLE: dict[str, Callable[[Any], Check]] = {
    "type": _type,
    "required": lambda names: lambda value: type(value) is not dict or all([name in value for name in names]),
    "const": lambda wanted: lambda value: _equal(value, wanted),
    "enum": lambda allowed: lambda value: any([_equal(value, item) for item in allowed]),
    "pattern": _search,
    "minimum": lambda least: lambda value: not _is_number(value) or value >= least,
    "maximum": lambda limit: lambda value: not _is_number(value) or value <= limit,
    "minLength": lambda least: lambda value: type(value) is not str or len(value) >= least,
    "maxLength": lambda limit: lambda value: type(value) is not str or len(value) <= limit,
    "minItems": lambda least: lambda value: type(value) is not list or len(value) >= least,
    "maxItems": lambda limit: lambda value: type(value) is not list or len(value) <= limit,
    "minProperties": lambda least: lambda value: type(value) is not dict or len(value) >= least,
}


class RowError(NamedTuple):
    """An error of a row: JSON pointer or column, message, hint, and the schema's keyword that refuses it."""

    where: str
    message: str
    hint: str = ""
    keyword: str = ""


def describe_error(error: SchemaError) -> RowError:
    """Return an error in words."""
    keyword, expected, value, hint = error.keyword, error.expected, error.value, ""
    if keyword == "type":
        kinds = expected if isinstance(expected, list) else [expected]
        message = f"{quoted(value)} is not {' or '.join(_TYPES[kind] for kind in kinds)}"
        hint = "Leave the field out if there is no value." if value is None else ""
    elif keyword == "required":
        message, hint = _missing(error)
    elif keyword == EXTRA:
        known = error.schema.get("properties", {})
        names = ", ".join(quoted_name(key, 40) for key in expected[:3]) + (", …" if len(expected) > 3 else "")
        message = f"unknown key {names}"
        hint = " ".join(filter(None, (did_you_mean(key, known) for key in expected[:3]))) or _known_keys(known)
    elif keyword == "enum":
        shown = quoted_name(value) if isinstance(value, str) else quoted(value)
        message = f"{shown} is not one of {', '.join(map(quoted, expected))}"
        hint = did_you_mean(value, expected) if isinstance(value, str) else ""
    elif keyword == "const":
        message = f"{quoted(value)} is not {quoted(expected)}"
    elif keyword == "anyOf":
        required = sorted({name for branch in expected for name in branch.get("required", [])})
        message = "the value does not have an allowed form"
        message = f"one of {', '.join(map(quoted, required))} is required" if required else message
    elif keyword == "pattern":
        message, hint = _no_match(expected, value)
    else:
        templates = _TEMPLATES[keyword]
        template = templates.get(expected if isinstance(expected, int) else None) or templates[None]
        message = template.format(quoted(value), expected)
    return RowError(pointer(error.path), message, _schema_hint(error) or hint, keyword)


def unknown_key(error: SchemaError, key: str, *, hint: bool = True) -> RowError:
    """Return the error of one unknown key; a ``hint`` costs a search for similar names."""
    known = error.schema.get("properties", {})
    text = (_schema_hint(error) or did_you_mean(key, known) or _known_keys(known)) if hint else ""
    return RowError(pointer((*error.path, key)), f"unknown key {quoted_name(key, 40)}", text, EXTRA)


def _schema_hint(error: SchemaError) -> str:
    return str(error.schema.get(f"x-hint-{error.keyword}", "") or error.schema.get("x-hint", ""))


def _known_keys(names: Iterable[str]) -> str:
    return f"Known keys: {one_line(', '.join(names), 200)}."


def _missing(error: SchemaError) -> tuple[str, str]:
    from difflib import get_close_matches

    name, unknown = error.expected, [key for key in error.value if key not in error.schema.get("properties", {})]
    close = get_close_matches(name, unknown, n=1, cutoff=0.6)
    if close:
        return f"'{name}' is missing", f"Rename {quoted(close[0])} to '{name}'."
    written_by_hand = str(error.schema.get("$id", "")).endswith(_BY_HAND)
    examples = error.schema["properties"].get(name, {}).get("examples") if written_by_hand else None
    example = f", such as {json.dumps(name)}: {json.dumps(examples[0], ensure_ascii=False)}" if examples else "."
    return f"'{name}' is missing", f"Add the field{example}"


def _no_match(pattern: str, value: str) -> tuple[str, str]:
    if pattern == r"\S" or pattern.startswith(r"[^\s"):
        return "the text is blank", ""
    if value.endswith("\n"):
        return "a text or a key ends with a line break, which its pattern does not allow", "Remove it."
    shown = f"{pattern[:-2]}$" if pattern.endswith(r"\Z") else pattern
    return f"{quoted(value)} does not match the pattern {one_line(shown, 200)}", ""


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


class Contract:
    """The schema of a name, and its errors."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.name, self.depth = name, depth
        self.schema = load_schema(name)
        self.accepts = predicate(self.schema)
        properties = self.schema.get("properties", {})
        self._known = {"": frozenset(properties)}  # known fields by the field that contains them
        for parent, field in properties.items():
            inner = field if "properties" in field else field.get("items", {})
            if "properties" in inner:
                self._known[parent] = frozenset(inner["properties"])

    def validate(self, data: bytes, decoder: json.JSONDecoder = strict_json.DECODER) -> tuple[Any, list[RowError]]:
        """Return the value of a JSON text without errors, or None with all errors."""
        try:
            value = strict_json.parse(data, self.depth, decoder)
        except strict_json.JsonError as error:
            return None, [RowError(error.where, error.message, error.hint)]
        faults = self.faults(value)
        return (None, faults) if faults else (value, [])

    def faults(self, value: Any) -> list[RowError]:
        """Return the errors of a decoded value."""
        errors = [] if self.accepts(value) else _errors_by_jsonschema(self.schema, value)
        return [describe_error(error) for error in sorted(errors, key=lambda error: [str(key) for key in error.path])]

    def note_unknown_fields(self, row: dict[str, Any], ledger: ProblemCollector, path: str, line: int) -> None:
        """Note the unknown fields of a row, once for each file."""
        for parent, known in self._known.items():
            inner = row.get(parent) if parent else row
            objects = inner if isinstance(inner, list) else [inner]
            for field in sorted({name for item in objects if isinstance(item, dict) for name in item.keys() - known}):
                ledger.unknown_field(path, line, f"{parent}.{field}" if parent else field, field, known)
