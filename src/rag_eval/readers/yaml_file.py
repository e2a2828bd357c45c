"""YAML read as strictly as JSON: no aliases, tags, repeated keys or odd numbers; every value has its position.

Numbers with a point stay :class:`~decimal.Decimal`, as written: a threshold of 0.80 is 4/5, not the nearest float.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from rag_eval.common.escaping import one_line

if TYPE_CHECKING:
    from rag_eval.readers.source import Reader

Event = Any

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)?\.[0-9]+|-?(0|[1-9][0-9]*)\.", re.ASCII)
_DEPTH = 32
_CONSTANTS = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() in ("true", "yes", "on"),
}


class YamlError(Exception):
    """An error in a YAML text, with its position (line and column from 1)."""

    def __init__(self, message: str, hint: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.hint, self.line, self.column = message, hint, line, column


class YamlDocument(NamedTuple):
    """The value of a YAML text and the position (line, column) of every value in it by its JSON pointer."""

    value: Any
    places: dict[str, tuple[int, int]]


def parse(text: str) -> YamlDocument:
    """Return the one document of ``text``; an empty text is an empty mapping. Raise :class:`YamlError`."""
    try:
        return _DocumentBuilder(text, _LOADER).document()
    except YamlError as error:
        if "nesting depth" not in error.message:
            raise
        # libyaml 0.2.6 reads ahead to its own limit of 1,000 levels; the Python scanner stops at the 33rd.
        return _DocumentBuilder(text, yaml.SafeLoader).document()


def read_mapping(reader: Reader, path: str) -> dict[str, Any]:
    """Return the mapping in a file, with plain floats; an empty one, with a problem in the ledger, for another file."""
    from rag_eval.readers import strict_json

    source = reader.open(path)
    if source is None:
        return {}
    with source:
        data = source.whole()
    if data is None:
        return {}
    try:
        value = parse(strict_json.decode(data)).value
    except (YamlError, strict_json.JsonError) as error:
        reader.ledger.problem(path, error.line, f"column {error.column}", error.message, error.hint)
        return {}
    if not isinstance(value, dict):
        reader.ledger.problem(path, 0, "", "must be a mapping", "Write lines such as name: value")
        return {}
    return {name: _plain(inner) for name, inner in value.items()}


def _plain(value: Any) -> Any:
    """Return a value with a float for each :class:`~decimal.Decimal`."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


class _DocumentBuilder:
    def __init__(self, text: str, loader: Any) -> None:
        # libyaml would report errors while it reads on, and give the position in bytes.
        if match := yaml.reader.Reader.NON_PRINTABLE.search(text):
            line, column = text.count("\n", 0, match.start()) + 1, match.start() - text.rfind("\n", 0, match.start())
            raise YamlError(f"U+{ord(match[0]):04X} is not allowed in YAML", "Remove it.", line, column)
        self._loader = loader(text)
        self._places: dict[str, tuple[int, int]] = {}

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
        return YamlDocument({} if value is None else value, self._places)

    def _events(self) -> Iterator[Event]:
        try:
            while self._loader.check_event():
                yield self._loader.get_event()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            message = f"not valid YAML: {one_line(error.problem or error.context or 'cannot be read', 80)}"
            raise YamlError(message, "Check indentation, quotes and colons on this line.", line, column) from None

    def _value(self, event: Event, events: Iterator[Event], pointer: str, depth: int) -> Any:
        _refuse_reuse(event)
        if depth > _DEPTH:
            raise _refusal(event, f"nested deeper than {_DEPTH} levels", "Flatten the value.")
        self._places[pointer] = _place(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, pointer, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, pointer, depth)
        return self._scalar(event)

    def _mapping(self, events: Iterator[Event], pointer: str, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in value:
                raise _refusal(event, f"the key '{one_line(key, 60)}' occurs twice", "Keep one of them.")
            below = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            value[key] = self._value(next(events), events, below, depth + 1)
            self._places[below] = _place(event)
        return value

    def _sequence(self, events: Iterator[Event], pointer: str, depth: int) -> list[Any]:
        value: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            value.append(self._value(event, events, f"{pointer}/{len(value)}", depth + 1))
        return value

    def _key(self, event: Event) -> str:
        _refuse_reuse(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _refusal(event, "a key that is not text", "Use a plain name as the key.")
        return str(event.value)

    def _scalar(self, event: Event) -> Any:
        if not event.implicit[0]:
            return event.value
        tag = self._loader.resolve(yaml.ScalarNode, event.value, (True, False))
        if tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
            return _number(event)
        return _CONSTANTS.get(tag, str)(event.value)


def _number(event: Event) -> int | Decimal:
    text = event.value
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    raise _refusal(
        event, f"'{one_line(text, 40)}' is not a plain number", "Write it like 5 or 0.80, or in quotes if it is text."
    )


def _refuse_reuse(event: Event) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
        raise _refusal(event, "anchors and aliases are not allowed", "Write the value itself.")
    if getattr(event, "tag", None):
        raise _refusal(event, "tags are not allowed", "Remove the tag that begins with '!'.")


def _place(event: Event) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _refusal(event: Event, message: str, hint: str) -> YamlError:
    return YamlError(message, hint, *_place(event))
