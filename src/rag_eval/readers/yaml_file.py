"""YAML read as strictly as JSON: no aliases, tags, repeated keys or odd numbers; every value has its position.

Numbers with a point stay :class:`~decimal.Decimal`, as written: a threshold of 0.80 is 4/5, not the nearest float.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import yaml
from msgspec import Struct

from rag_eval.common.escaping import one_line
from rag_eval.readers.source import Reader
from rag_eval.readers.strict_json import JsonError, decode, escape_key

Event = Any

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)?\.[0-9]+|-?(0|[1-9][0-9]*)\.", re.ASCII)
_DEPTH = 32
_CONSTANTS = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() in ("true", "yes", "on"),
}


class YamlError(JsonError):
    """An error in a YAML text, with its position."""


class YamlDocument(Struct, frozen=True):
    """The value of a YAML text and the position (line, column) of every value in it by its JSON pointer."""

    value: Any
    positions: dict[str, tuple[int, int]]

    def position(self, pointer: str) -> tuple[int, int]:
        """Return the position of a pointer, or of the closest value around it."""
        while pointer not in self.positions and pointer:
            pointer = pointer.rpartition("/")[0]
        return self.positions.get(pointer, (1, 1))


def parse(text: str) -> YamlDocument:
    """Return the one document of ``text``; an empty text is an empty mapping. Raise :class:`YamlError`."""
    return _DocumentBuilder(text).document()


def read_mapping(reader: Reader, path: str) -> dict[str, Any]:
    """Return the mapping in a file, with plain floats; an empty one, with a problem in the ledger, for another file."""
    data = reader.read(path)
    if data is None:
        return {}
    try:
        value = parse(decode(data)).value
    except JsonError as error:
        reader.ledger.problem(path, error.line, error.where, error.message, error.hint)
        return {}
    if not isinstance(value, dict):
        reader.ledger.problem(path, 0, "", "must be a mapping", "Write lines such as name: value")
        return {}
    plain: dict[str, Any] = _plain(value)
    return plain


def _plain(value: Any) -> Any:
    """Return a value with a float for each :class:`~decimal.Decimal`."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


class _DocumentBuilder:
    def __init__(self, text: str) -> None:
        # libyaml would report errors while it reads on, and give the position in bytes.
        if match := yaml.reader.Reader.NON_PRINTABLE.search(text):
            line, column = text.count("\n", 0, match.start()) + 1, match.start() - text.rfind("\n", 0, match.start())
            raise YamlError(f"U+{ord(match[0]):04X} is not allowed in YAML", "Remove it.", column, line)
        self._text, self._loader = text, _LOADER(text)
        self._positions: dict[str, tuple[int, int]] = {}

    def document(self) -> YamlDocument:
        events = self._events()
        next(events)
        first = next(events)
        if isinstance(first, yaml.StreamEndEvent):
            return YamlDocument({}, {})
        value = self._value(next(events), events, "", 0)
        next(events)
        extra = next(events)
        if not isinstance(extra, yaml.StreamEndEvent):
            raise _refusal(extra, "a second document begins here", "Keep one document per file.")
        return YamlDocument({} if value is None else value, self._positions)

    def _events(self) -> Iterator[Event]:
        try:
            while self._loader.check_event():
                yield self._loader.get_event()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            message = f"not valid YAML: {one_line(error.problem or error.context or 'cannot be read', 80)}"
            fix = "Check indentation, quotes and colons on this line."
            if [*self._text.split("\n"), ""][line - 1].startswith("\t", column - 1):
                message, fix = "a tab where YAML requires spaces", "Replace it by spaces."
            raise YamlError(message, fix, column, line) from None

    def _value(self, event: Event, events: Iterator[Event], pointer: str, depth: int) -> Any:
        _refuse_reuse(event)
        if depth > _DEPTH:
            raise _refusal(event, f"nested deeper than {_DEPTH} levels", "Flatten the value.")
        self._positions[pointer] = _position(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, pointer, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            values: list[Any] = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                values.append(self._value(event, events, f"{pointer}/{len(values)}", depth + 1))
            return values
        return self._scalar(event)

    def _mapping(self, events: Iterator[Event], pointer: str, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            _refuse_reuse(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise _refusal(event, "a key that is not text", "Use a plain name as the key.")
            key = str(event.value)
            if key in value:
                raise _refusal(event, f"the key '{one_line(key, 60)}' occurs twice", "Keep one of them.")
            below = f"{pointer}/{escape_key(key)}"
            value[key] = self._value(next(events), events, below, depth + 1)
            self._positions[below] = _position(event)
        return value

    def _scalar(self, event: Event) -> Any:
        text: str = event.value
        if not event.implicit[0]:
            return text
        tag = self._loader.resolve(yaml.ScalarNode, text, (True, False))
        if tag not in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
            return _CONSTANTS.get(tag, str)(text)
        if _INTEGER.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            return Decimal(text)
        hint = "Write it like 5 or 0.80, or in quotes if it is text."
        raise _refusal(event, f"'{one_line(text, 40)}' is not a plain number", hint)


def _refuse_reuse(event: Event) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise _refusal(event, "anchors and aliases are not allowed", "Write the value itself.")
    if getattr(event, "tag", None):
        raise _refusal(event, "tags are not allowed", "Remove the tag that begins with '!'.")


def _position(event: Event) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _refusal(event: Event, message: str, hint: str) -> YamlError:
    line, column = _position(event)
    return YamlError(message, hint, column, line)
