"""Strict JSON, which every reader reads alike, or a clear error.

``parse`` is exact and explains errors. :mod:`rag_eval.readers.schema_validation` first tries a quick decoder, which
accepts only valid rows and leaves the others to ``parse``; a property test compares the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from rag_eval.common.escaping import one_line

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_INTEGER = 20  # digits of 2**64 - 1, and of -2**63 with its sign
_INT_RANGE = range(-(2**63), 2**64)


class JsonError(Exception):
    """Invalid JSON. ``line`` and ``column`` count from 1, 0 means unknown.

    ``element`` is the pointer of the value, or of the array element that contains it; empty if unknown.
    """

    element = ""

    def __init__(self, message: str, hint: str = "", column: int = 0, line: int = 0) -> None:
        super().__init__(message)
        self.message, self.hint, self.column, self.line = message, hint, column, line

    @property
    def where(self) -> str:
        """Return the column in words, otherwise the element; empty if neither is known."""
        return f"column {self.column}" if self.column else self.element


class NumberError(JsonError):
    """A number that not every reader reads alike."""


def parse(data: bytes, depth: int = 64, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of one JSON document; raise :class:`JsonError` with position and reason if it is invalid."""
    text = decode(data)
    check_depth(text, depth)
    try:
        value = (decoder or DECODER).decode(text)
    except json.JSONDecodeError as error:
        raise explain(error) from None
    except NumberError as error:
        error.element = number_pointer(text, len(text) - len(text.lstrip()))
        raise
    if _SURROGATE_ESCAPE.search(text):
        check_surrogates(value)
    return value


def decode(data: bytes) -> str:
    """Return UTF-8 text; raise a :class:`JsonError` that names the first invalid byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        column, line = len(before) - before.rfind("\n"), before.count("\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not valid UTF-8"
        raise JsonError(message, "Save the file as UTF-8.", column, line) from None


def check_depth(text: str, limit: int) -> None:
    """Refuse nesting deeper than ``limit`` before the parser recurses into it."""
    if text.count("[") + text.count("{") <= limit:
        return
    level = 0
    for bracket in _BRACKET.findall(_STRING.sub('""', text)):
        level += 1 if bracket in "[{" else -1
        if level > limit:
            raise JsonError(f"nested deeper than {limit} levels", "Flatten the value or raise limits.depth.")


def nesting(value: Any) -> int:
    """Return how many levels of arrays and objects a decoded value has."""
    levels, inside = 0, [value]
    while inside := [item for item in inside if isinstance(item, (dict, list))]:
        levels += 1
        inside = [item for entry in inside for item in (entry.values() if isinstance(entry, dict) else entry)]
    return levels


def check_surrogates(value: Any) -> None:
    """Refuse half a surrogate pair anywhere in ``value``: no encoder could write it back."""
    for text in _strings(value):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            hint = "Write the character itself, or both halves of the pair."
            raise JsonError(f"\\u{code:04x} is half of a surrogate pair", hint) from None


def explain(error: json.JSONDecodeError) -> JsonError:
    """Return an error of the parser with a hint at its usual cause."""
    text = _excerpt(error.doc[error.pos : error.pos + 20])
    where = f", found {text}" if text else ", but the text ends here"
    message = error.msg[0].lower() + error.msg[1:]
    if error.msg == "Extra data":
        message, where = "a second JSON value begins here", f": {text}"
    hint = _hint(error.msg if text else "Unterminated")
    return JsonError(f"not valid JSON: {message}{where}", hint, error.colno, error.lineno)


def _excerpt(rest: str) -> str:
    # A byte order mark in the middle of a file, for example, would be invisible in quotes.
    unseen = rest and rest[0] not in " \t\r\n" and not one_line(rest[0])
    return f"U+{ord(rest[0]):04X}" if unseen else rest and f"'{one_line(rest, 20)}'"


def _hint(message: str) -> str:
    if message == "Extra data":
        return "Put one JSON object on each line."
    if "Unterminated" in message:
        return "The line looks cut off; write the file again."
    if "control character" in message:
        return "Escape line breaks and tabs in strings as \\n and \\t."
    return "Write each row with a JSON library (json.dumps), not by hand."


def _strings(value: Any) -> list[str]:
    texts, rest = [], [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            rest += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            rest += item
    return texts


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonError(f"the key '{one_line(twice, 60)}' occurs twice in one object", "Keep one of them.")
    return value


def _integer(digits: str) -> int:
    if len(digits) <= _LONGEST_INTEGER and (number := int(digits)) in _INT_RANGE:
        return number
    raise NumberError(f"{one_line(digits, 24)} is an integer of more than 64 bits", "Write it as a string.")


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise NumberError(f"{one_line(digits, 24)} is too large for a number", "Write a finite number.")
    return number


def _constant(name: str) -> NoReturn:
    raise NumberError(f"{name} is not JSON", "Leave the field out if there is no number.")


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
TRACE_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant)
"""For traces, in which the last of several equal keys counts."""


def _or_refused(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    def converted(text: str) -> Any:
        try:
            return convert(text)
        except NumberError:
            return _REFUSED

    return converted


_REFUSED = object()
_MARKING = json.JSONDecoder(
    parse_int=_or_refused(_integer), parse_float=_or_refused(_float), parse_constant=_or_refused(_constant)
)


def number_pointer(text: str, start: int) -> str:
    """Return the pointer of the first refused number of the value that begins at ``start``; empty if unknown."""
    try:
        rest: list[tuple[tuple[str | int, ...], Any]] = [((), _MARKING.raw_decode(text, start)[0])]
    except ValueError:  # the text is invalid after the number
        return ""
    while rest:
        path, value = rest.pop()
        if value is _REFUSED:
            return pointer(path)
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        rest += [((*path, key), item) for key, item in inner][::-1]
    return ""


def has_large_integer(value: Any) -> bool:
    """Return whether a decoded value contains an integer of more than 64 bits."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, int) and item not in _INT_RANGE:
            return True
        rest += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return False


def pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of ``path``; the document itself is the empty string."""
    parts = (one_line(str(part), 60).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)


def repeated_key(data: bytes) -> str | None:
    """Return a key that occurs twice in one object of a valid JSON document, None if there is none."""
    try:
        _KEY_CHECKER.decode(data.decode("utf-8"))
    except _RepeatedKey as error:
        return str(error)
    return None


class _RepeatedKey(Exception):
    """A key that occurs twice in one object."""


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    if len(dict.fromkeys(key for key, _ in pairs)) < len(pairs):
        seen: set[str] = set()
        raise _RepeatedKey(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]


_KEY_CHECKER = json.JSONDecoder(object_pairs_hook=_check_keys, parse_int=float)
