"""Strict JSON: a value that every reader reads alike, or a clear error with its position."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, NoReturn

from rag_eval.common.escaping import one_line

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_INTEGER = 20  # digits of 2**64 - 1, and of -2**63 with its sign
_INT_RANGE = range(-(2**63), 2**64)


class JsonError(Exception):
    """Invalid JSON. ``line`` and ``column`` count from 1, 0 means unknown.

    ``element`` is the pointer of the array element that contains the error, if nothing else is known.
    """

    element = ""

    def __init__(self, message: str, hint: str = "", column: int = 0, line: int = 0) -> None:
        super().__init__(message)
        self.message, self.hint, self.column, self.line = message, hint, column, line

    @property
    def where(self) -> str:
        """Return the column in words, otherwise the element; empty if neither is known."""
        return f"column {self.column}" if self.column else self.element


class _NumberError(JsonError):
    """A number that not every reader reads alike."""

    def __init__(self, digits: str, message: str, hint: str) -> None:
        super().__init__(f"{one_line(digits, 24)} {message}", hint)
        self.digits = digits

    def locate(self, text: str, start: int = 0) -> None:
        """Set the position: the first such number after ``start`` that is not in a string."""
        numbers = _STRING.sub(lambda match: " " * len(match[0]), text[start:])
        match = re.search(rf"(?<![\w.+-]){re.escape(self.digits)}(?![\w.])", numbers)
        index = start + (match.start() if match else 0)
        self.line, self.column = text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def parse(data: bytes, depth: int = 64, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of one JSON document; raise :class:`JsonError` with position and reason if it is invalid."""
    text = decode(data)
    check_depth(text, depth)
    try:
        value = (decoder or DECODER).decode(text)
    except json.JSONDecodeError as error:
        raise _explained(error) from None
    except _NumberError as error:
        error.locate(text)
        raise
    _check_surrogates(text, value)
    return value


def elements(data: bytes, depth: int = 64) -> Iterator[tuple[int, str, Any]]:
    """Yield line, text and value of each element of the JSON array in ``data``; :class:`JsonError` ends it."""
    text = decode(data)
    check_depth(text, depth, level=-1)
    position, line, counted = _after(text, _skip(text, 0), "["), 1, 0
    is_end = text[position : position + 1] == "]"
    for index in count():
        if is_end:
            rest = _skip(text, position + 1)
            if rest < len(text):
                raise _expected(text, rest, "nothing after the array")
            return
        line, counted, start = line + text.count("\n", counted, position), position, position
        try:
            value, position = DECODER.raw_decode(text, start)
            _check_surrogates(text[start:position], value)
        except json.JSONDecodeError as error:
            raise _explained(error) from None
        except _NumberError as error:
            error.locate(text, start)
            raise
        except JsonError as error:
            error.line, error.element = line, f"/{index}"
            raise
        yield line, text[start:position], value
        position = _skip(text, position)
        is_end = text[position : position + 1] == "]"
        if not is_end:
            position = _after(text, position, ",")


def _after(text: str, position: int, wanted: str) -> int:
    if text[position : position + 1] != wanted:
        raise _expected(text, position, f"'{wanted}'" if wanted == "[" else "',' or ']'")
    return _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    return _SPACE.match(text, position).end()  # type: ignore[union-attr]


def _expected(text: str, position: int, wanted: str) -> JsonError:
    return _explained(json.JSONDecodeError(f"expecting {wanted}", text, position))


def decode(data: bytes) -> str:
    """Return UTF-8 text; raise a :class:`JsonError` that names the first invalid byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        column, line = len(before) - before.rfind("\n"), before.count("\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not valid UTF-8"
        raise JsonError(message, "Save the file as UTF-8.", column, line) from None


def check_depth(text: str, limit: int, level: int = 0) -> None:
    """Refuse nesting deeper than ``limit`` before the parser recurses into it; the text begins at ``level``."""
    if level + text.count("[") + text.count("{") <= limit:
        return
    for bracket in _BRACKET.findall(_STRING.sub('""', text)):
        level += 1 if bracket in "[{" else -1
        if level > limit:
            raise JsonError(f"nested deeper than {limit} levels", "Flatten the value or raise limits.depth.")


def _check_surrogates(text: str, value: Any) -> None:
    """Refuse half a surrogate pair anywhere in the value of a text: no encoder could write it back."""
    rest = [value] if _SURROGATE_ESCAPE.search(text) else []
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            rest += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            rest += item
        elif isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError as error:
                hint = "Write the character itself, or both halves of the pair."
                raise JsonError(f"\\u{ord(item[error.start]):04x} is half of a surrogate pair", hint) from None


def _explained(error: json.JSONDecodeError) -> JsonError:
    """Return an error of the parser with a hint at its usual cause."""
    rest = error.doc[error.pos : error.pos + 20]
    # A byte order mark in the middle of a file, for example, would be invisible in quotes.
    is_invisible = rest and rest[0] not in " \t\r\n" and not one_line(rest[0])
    shown = f"U+{ord(rest[0]):04X}" if is_invisible else f"'{one_line(rest, 20)}'"
    message = error.msg[0].lower() + error.msg[1:] + (f", found {shown}" if rest else ", but the text ends here")
    hint = "Write each row with a JSON library (json.dumps), not by hand."
    if not rest or "Unterminated" in error.msg:
        hint = "The line looks cut off; write the file again."
        message = f"the string {shown} does not end" if rest else message
    elif error.msg == "Extra data":
        message, hint = f"a second JSON value begins here: {shown}", "Put one JSON object on each line."
        if error.lineno > 1:  # in a file that is read as one value
            hint = "The file must be one JSON value. Check if it is JSON Lines, such as a gold set or traces."
    elif "control character" in error.msg:
        hint = "Escape line breaks and tabs in strings as \\n and \\t."
    return JsonError(f"not valid JSON: {message}", hint, error.colno, error.lineno)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name, times in names.items() if times > 1)
        raise JsonError(f"the key '{one_line(twice, 60)}' occurs twice in one object", "Keep one of them.")
    return value


def _integer(digits: str) -> int:
    if len(digits) <= _LONGEST_INTEGER and (number := int(digits)) in _INT_RANGE:
        return number
    raise _NumberError(digits, "is an integer of more than 64 bits", "Write it as a string.")


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _NumberError(digits, "is too large for a number", "Write a finite number.")
    return number


def _constant(name: str) -> NoReturn:
    raise _NumberError(name, "is not JSON", "Leave the field out if there is no number.")


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
TRACE_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant)
"""For traces, in which the last of several equal keys counts."""


def pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of ``path``; the document itself is the empty string."""
    return "".join(f"/{escape_key(one_line(str(part), 60))}" for part in path)


def escape_key(name: str) -> str:
    """Return a key as a JSON pointer contains it."""
    return name.replace("~", "~0").replace("/", "~1")
