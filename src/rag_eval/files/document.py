"""One large JSON document, quickly: as :mod:`rag_eval.files.bulk` reads rows.

What is accepted here is what the slow and exact way would accept, with the same value. Where that is not beyond doubt,
nothing is: the slow way then says what is wrong, if anything is.
"""

from __future__ import annotations

from itertools import chain

import jsonschema_rs

from rag_eval.files.bulk import SAFE, loses_keys
from rag_eval.listed import Halves
from rag_eval.quick_json import orjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from rag_eval.files.contract import Schema
    from rag_eval.listed import Listed

    Row = dict[str, Any]

_OPENS, _PARTS, _CLOSES = b"[\n    {\n", b"\n    },\n    {\n", b"\n    }\n  ]"
"""How a list of objects is written, two spaces a level. No string holds a line break: none can be taken for these."""
_INNER_CLOSES = b"\n      }"
_WINDOW, _REMEMBERED, _MOST_CUTS = 1 << 20, 20_000, 4
_FREE = {"type", "description", "examples", "additionalProperties"}
"""Keywords under which each part of an object keeps the schema where the whole does."""


class _Unsure(Exception):
    """That only a closer look can tell."""


def accept(schema: Schema, data: bytes, depth: int) -> Any:
    """The value of a document that keeps its schema; None where only a closer look can tell."""
    try:
        return _sure(_validator(schema), data, orjson.loads(data), depth)
    except (_Unsure, orjson.JSONDecodeError):
        return None


def accept_apart(schema: Schema, data: bytes, depth: int, listed: Listed) -> Any:
    """As :func:`accept`, of an object with a list that may be of many objects: with what is made of each.

    Where they are written as we write them they are read a few at a time, and never held all at once.
    """
    span = _span(data, listed.name)
    try:
        if span is not None:
            return _apart(schema, data, depth, listed, span)
    except (_Unsure, orjson.JSONDecodeError):
        pass  # it is written otherwise, or wrong
    value = accept(schema, data, depth)
    return value and {**value, listed.name: list(listed.made(value[listed.name]))}


def _apart(schema: Schema, data: bytes, depth: int, listed: Listed, span: tuple[int, int]) -> Row:
    name, head, tail = listed.name, data[: span[0]], data[span[1] :]
    rest = head + b"[]" + tail
    value: Row = _sure(_validator(schema), rest, orjson.loads(rest), depth)
    if orjson.loads(head + b"[1]" + tail)[name] != [1]:
        raise _Unsure  # what was cut out is not the object's own member, but that of another one inside it
    entries = _Entries(schema["properties"][name]["items"], depth, listed)
    return {**value, name: [one for some in _texts(data, span) for one in listed.made(entries.read(some))]}


def _span(data: bytes, name: str) -> tuple[int, int] | None:
    """From where to where a list of objects reaches in a document that is written two spaces a level."""
    key = b'\n  "%s": ' % name.encode()
    begin = data.find(key + _OPENS)
    end = data.find(_CLOSES, begin)
    return None if begin < 0 or end < 0 else (begin + len(key), end + len(_CLOSES))


def _texts(data: bytes, span: tuple[int, int]) -> Iterator[list[bytes]]:
    """The texts of the objects of a list, some at a time."""
    begin, last = span[0] + len(_OPENS), span[1] - len(_CLOSES)
    while begin <= last:
        end = last if begin + _WINDOW >= last else data.rfind(_PARTS, begin, begin + _WINDOW)
        if end < 0:  # one that is longer
            end = data.find(_PARTS, begin, last)
            end = last if end < 0 else end
        yield data[begin:end].split(_PARTS)
        begin = end + len(_PARTS)


class _Entries:
    """Reads the entries of a list, the inner object of each by itself: much of it stands in others as well."""

    def __init__(self, schema: Schema, depth: int, listed: Listed) -> None:
        inner = schema["properties"][listed.inner]
        if not inner.keys() <= _FREE:
            raise ValueError(f"the members of '{listed.inner}' are not free of one another")
        self._rows, self._objects = _validator(_many(schema)), _validator(_many(inner))
        self._depth, self._listed = depth, listed
        self._opens = b'\n      "%s": {\n' % listed.inner.encode()
        self._cuts: list[bytes] = []
        self._known: dict[bytes, Row] = {}

    def read(self, texts: list[bytes]) -> list[Row]:
        """The entries of texts; _Unsure where it is open of one whether it keeps its contract."""
        rests, inners = zip(*map(self._parts, texts), strict=True)
        entries = self._read(self._rows, rests)
        for place, halves in self._halves([one for one in enumerate(inners) if one[1] is not None]):
            entries[place][self._listed.inner] = halves
        return entries

    def _parts(self, text: bytes) -> tuple[bytes, bytes | None]:
        """An entry without the members of its inner object, and those."""
        begin = text.find(self._opens)
        end = text.rfind(_INNER_CLOSES, begin)  # were it that of a further object, the two would be no JSON as one
        if begin < 0 or end < 0:
            return text, None
        begin += len(self._opens)
        return text[:begin] + text[end:], text[begin:end]

    def _halves(self, inners: list[tuple[int, bytes]]) -> Iterator[tuple[int, Halves]]:
        """The inner objects of entries at some places."""
        cut = [self._cut(text) for _, text in inners]
        owns = self._read(self._objects, [own for _, own in cut])
        for (place, _), (shared, _), own in zip(inners, cut, owns, strict=True):
            found = Halves(self._shared(shared), own)
            if not found.shared.keys().isdisjoint(own):
                raise _Unsure
            yield place, found

    def _cut(self, text: bytes) -> tuple[bytes, bytes]:
        """Where the first member stands that may differ in every entry."""
        for cut in self._cuts:
            place = text.find(cut)
            if place >= 0:
                return text[:place], text[place + 2 :]
        names = list(self._shared(text))
        first = next((place for place, name in enumerate(names) if not self._listed.alike(name)), 0)
        return self._cut_before(names[first], text) if first else (text, b"")

    def _cut_before(self, name: str, text: bytes) -> tuple[bytes, bytes]:
        cut = b',\n        "%s": ' % name.encode()
        place = text.find(cut)
        if place < 0:
            raise _Unsure  # the member is there, but written otherwise than by us
        self._cuts = [*self._cuts, cut][-_MOST_CUTS:]
        return text[:place], text[place + 2 :]

    def _shared(self, text: bytes) -> Row:
        found = self._known.get(text)
        if found is None:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            (found,) = self._read(self._objects, [text])
            self._known[text] = found
        return found

    def _read(self, validator: Any, texts: Sequence[bytes]) -> list[Row]:
        """The objects whose members stand in texts, one in each."""
        written = b"[{%s}]" % b"},{".join(texts) if texts else b"[]"
        found: list[Row] = _sure(validator, written, orjson.loads(written), self._depth)
        if len(found) != len(texts):
            raise _Unsure
        return found


def _many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _validator(schema: Schema) -> Any:
    return jsonschema_rs.Draft202012Validator(schema, offline=True)


def _sure(validator: Any, data: bytes, value: Any, depth: int) -> Any:
    if validator.is_valid(value) and not loses_keys(data, value) and _fits(value, depth):
        return value
    raise _Unsure


def _fits(value: Any, depth: int) -> bool:
    """Whether it is nested no deeper than ``depth``, and no number may have been an integer beyond 64 bits."""
    level, inside = [value], 0
    while level:  # by the level: most of a large document is numbers side by side
        kinds = set(map(type, level))
        if float in kinds:
            floats = [item for item in level if type(item) is float] if len(kinds) > 1 else level
            if min(floats) <= -SAFE or max(floats) >= SAFE:
                return False
        inside += dict in kinds or list in kinds
        if inside > depth:
            return False
        objects = [item.values() for item in level if type(item) is dict] if dict in kinds else []
        lists = [item for item in level if type(item) is list] if list in kinds else []
        level = list(chain.from_iterable(chain(objects, lists)))
    return True
