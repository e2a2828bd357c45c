"""Plain Python predicates for JSON Schemas, built quickly from the schema.

An unknown keyword is a ValueError, so that none is ignored. A pattern is compiled at its first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from decimal import Decimal
from typing import Any

Schema = dict[str, Any]
Check = Callable[[Any], bool]

_NOTES = {"$schema", "$id", "$comment", "$defs", "title", "description", "examples", "then"}
_NUMBERS = (int, float, Decimal)


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
        checks = [made for keyword in schema if (made := self._keyword(keyword, schema))]
        if len(checks) == 1:
            return checks[0]
        return lambda value: all([check(value) for check in checks])

    def _keyword(self, keyword: str, schema: Schema) -> Check | None:
        if keyword in _NOTES or keyword.startswith("x-"):
            return None
        if keyword in _SIMPLE:
            return _SIMPLE[keyword](schema[keyword])
        if keyword in ("properties", "patternProperties", "additionalProperties"):
            first = next(name for name in schema if name in _OBJECT)
            return self._object(schema) if keyword == first else None
        composed = _COMPOSED.get(keyword)
        if composed is None:
            raise ValueError(f"the keyword '{keyword}' is unknown here")
        return composed(self, schema)

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

    def items(self, schema: Schema) -> Check:
        check = self.check(schema["items"])
        return lambda value: type(value) is not list or all([check(item) for item in value])

    def first_items(self, schema: Schema) -> Check:
        checks = [self.check(item) for item in schema["prefixItems"]]

        def keeps(value: list[Any]) -> bool:
            return all([check(item) for check, item in zip(checks, value, strict=False)])

        return lambda value: type(value) is not list or keeps(value)

    def property_names(self, schema: Schema) -> Check:
        check = self.check(schema["propertyNames"])
        return lambda value: type(value) is not dict or all([check(name) for name in value])

    def any_of(self, schema: Schema) -> Check:
        checks = [self.check(branch) for branch in schema["anyOf"]]
        return lambda value: any([check(value) for check in checks])

    def all_of(self, schema: Schema) -> Check:
        checks = [self.check(branch) for branch in schema["allOf"]]
        return lambda value: all([check(value) for check in checks])

    def negation(self, schema: Schema) -> Check:
        check = self.check(schema["not"])
        return lambda value: not check(value)

    def condition(self, schema: Schema) -> Check:
        when, then = self.check(schema["if"]), self.check(schema["then"])
        return lambda value: not when(value) or then(value)

    def reference(self, schema: Schema) -> Check:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name not in self._named:
            self._named[name] = self.check(self._root["$defs"][name])
        return self._named[name]


_OBJECT = ("properties", "patternProperties", "additionalProperties")
_COMPOSED: dict[str, Callable[[_PredicateBuilder, Schema], Check]] = {
    "items": _PredicateBuilder.items,
    "prefixItems": _PredicateBuilder.first_items,
    "propertyNames": _PredicateBuilder.property_names,
    "anyOf": _PredicateBuilder.any_of,
    "allOf": _PredicateBuilder.all_of,
    "not": _PredicateBuilder.negation,
    "if": _PredicateBuilder.condition,
    "$ref": _PredicateBuilder.reference,
}


def _type(kinds: str | list[str]) -> Check:
    checks = [_TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if len(checks) == 1:
        return checks[0]
    return lambda value: any([check(value) for check in checks])


def is_number(value: Any) -> bool:
    """Return whether a value is a number of JSON; a Decimal is one."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number of JSON, such as 5.0."""
    return is_number(value) and (type(value) is int or value == int(value))


_TYPES: dict[str, Check] = {
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
    "null": lambda value: value is None,
    "number": is_number,
    "integer": is_integer,
}


def _equal(value: Any, other: Any) -> bool:
    # In JSON true is not 1; in Python it is.
    return value == other and (type(value) is type(other) or (is_number(value) and is_number(other)))


def exact_pattern(pattern: str) -> str:
    """Return a pattern whose ``$`` is only the end of the text; in Python it also matches before a final line break."""
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


def _search(pattern: str) -> Callable[[str], bool]:
    exact = exact_pattern(pattern)
    return lambda text: re.search(exact, text) is not None


def _pattern(text: str) -> Check:
    matches = _search(text)
    return lambda value: type(value) is not str or matches(value)


def _at_least(kind: type[Sized], least: int) -> Check:
    return lambda value: type(value) is not kind or len(value) >= least


def _at_most(kind: type[Sized], limit: int) -> Check:
    return lambda value: type(value) is not kind or len(value) <= limit


def _has(names: list[str]) -> Check:
    return lambda value: type(value) is not dict or all([name in value for name in names])


_SIMPLE: dict[str, Callable[[Any], Check]] = {
    "type": _type,
    "required": _has,
    "const": lambda wanted: lambda value: _equal(value, wanted),
    "enum": lambda allowed: lambda value: any([_equal(value, item) for item in allowed]),
    "pattern": _pattern,
    "minimum": lambda least: lambda value: not is_number(value) or value >= least,
    "maximum": lambda limit: lambda value: not is_number(value) or value <= limit,
    "minLength": lambda least: _at_least(str, least),
    "maxLength": lambda limit: _at_most(str, limit),
    "minItems": lambda least: _at_least(list, least),
    "maxItems": lambda limit: _at_most(list, limit),
    "minProperties": lambda least: _at_least(dict, least),
}
