"""The expression of lines that are written alike, made of one of them and of its schema.

What it matches is strict JSON without repeated keys and keeps the schema. It is made only where every keyword of the
schema is known here; a line that is written otherwise, or that holds what it is not sure of, does not match.
"""

from __future__ import annotations

import re
from itertools import accumulate

from rag_eval.files.lines import Lines
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    Row = dict[str, Any]
    Schema = Mapping[str, Any]

_MOST = 3
LAYOUTS = ((", ", ": "), (",", ":"))
"""What stands between members, and after a key: as Python writes JSON, and as most others do."""

_ESCAPE = re.compile(
    r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_NAME = re.compile(r"[A-Za-z0-9_ -]+").fullmatch

# A quote after a backslash ends no string: of lines in which two backslashes stand before one, none is looked at.
_TEXT = r'[^"]*+(?:(?<=\\)"[^"]*+)*+'
_NOT_EMPTY = r'[^"\\]++'
_DIGITS = "(?:0|[1-9][0-9]{0,14}+)"
_SURE = 10**15  # more than any number of so many digits, whatever follows its point
_FRACTION = r"(?:\.[0-9]{1,15}+)?+"
_SHARE = rf"(?:0{_FRACTION}|1(?:\.0{{1,15}}+)?+)"
_NOTES = {"$schema", "$id", "type", "title", "description", "examples"}


class Unsure(Exception):
    """That no expression can be made: it would not be sure of something in the schema or in the row."""


class Way(NamedTuple):
    """A way to write a row: its expression, the paths of the groups in it, and what parts the members of a list."""

    expression: str
    names: tuple[str, ...]
    between: str


class Found(NamedTuple):
    """What stands in lines: the columns of each way by the names of its groups, empty where another way matches.

    ``between`` parts the members of lists; ``escaped`` says that there are escapes in them.
    """

    columns: Sequence[Mapping[str, Sequence[str]]]
    between: str
    escaped: bool


class Ways:
    """The ways in which the lines of a file are written, as far as they are known."""

    def __init__(self) -> None:
        self._ways: list[Way] = []

    def add(self, made: Way) -> None:
        """Know one more: in place of the oldest where they are many, and of those that part lists otherwise."""
        if made in self._ways:
            return
        same = [one for one in self._ways if one.between == made.between]
        self._ways = [*same, made][-_MOST:]
        self._find = re.compile(f"(?m)^(?:{'|'.join([one.expression for one in self._ways])}|(.*+))$").findall
        ends = list(accumulate(len(one.names) for one in self._ways))
        self._spans = [(one.names, end - len(one.names), end) for one, end in zip(self._ways, ends, strict=True)]

    def read(self, lines: Lines) -> Found | None:
        """What lines hold; None where no way is known, or where only a look at each line can tell."""
        text = sure(lines) if self._ways else None
        found = self._find(text) if text else []
        if not text or len(found) != lines.count:  # two lines could be taken for one, with its break in a string
            return None
        columns = list(zip(*found, strict=True))
        own = [dict(zip(names, columns[begin:end], strict=True)) for names, begin, end in self._spans]
        return Found(own, self._ways[0].between, "\\" in text)


def way(schema: Schema, row: Row, line: bytes, wanted: Collection[str]) -> Way | None:
    """How ``line`` is written, which holds the valid ``row``; None where no expression would be sure of it.

    ``wanted`` are the paths of fields to have as groups: strings, lists of strings without an empty one, lists of
    objects, truth values. They are as they stand in the line, but for the quotes of strings and the brackets of lists.
    """
    text = sure(Lines(1, line)) or ""
    for between, after in LAYOUTS:
        writer = _Writer(between, after, wanted)
        try:
            made = Way(writer.value(schema, row, ""), tuple(writer.names), between)
        except Unsure:
            return None
        if re.fullmatch(made.expression, text):
            return made
    return None


def sure(lines: Lines) -> str | None:
    """The text of lines; None where it may hold what JSON has no place for, or a quote of which it is open what it is.

    Most of it holds no backslash, and none of a control character.
    """
    if not lines.clean:
        return None
    try:
        text = lines.text.decode()
    except UnicodeDecodeError:
        return None
    return None if "\\" in text and ('\\\\"' in text or "\\" in _ESCAPE.sub("", text)) else text


class _Writer:
    """Writes an expression of rows like one that is at hand. ``names`` are the paths of its groups, as it goes."""

    def __init__(self, between: str, after: str, wanted: Collection[str]) -> None:
        self._between, self._after, self._wanted = between, after, wanted
        self._pinned: set[str] = set()
        self._empty: set[str] = set()
        self.names: list[str] = []

    def value(self, schema: Schema, value: Any, path: str) -> str:
        """What matches a value of the kind of ``value`` that keeps ``schema``."""
        if isinstance(value, list):
            return self._array(schema, value, path)
        if isinstance(value, str) and ("type" in schema or path in self._wanted):
            return self._text(schema, path)
        if path in self._pinned:
            return self._literal(value, path)
        whole = path in self._wanted
        if whole:
            self.names.append(path)
        made = self._object(schema, value, path) if isinstance(value, dict) else _scalar(schema)
        return f"({made})" if whole else made

    def _literal(self, value: Any, path: str) -> str:
        literal = "true" if value else "false"
        if path not in self._wanted:
            return literal
        self.names.append(path)
        return f"({literal})"

    def _object(self, schema: Schema, value: Row, path: str) -> str:
        """Its members in this order, and no others; what the schema asks for is among them."""
        _know(schema, "properties", "required", "anyOf", "allOf")
        for branch in schema.get("anyOf", ()):
            _know(branch, "required")
        for rule in schema.get("allOf", ()):
            if path:
                raise Unsure
            self._pin(rule, value)
        if not all(map(_NAME, value)):
            raise Unsure
        fields, members = schema.get("properties", {}), []
        for key, member in value.items():
            found = self.value(fields.get(key, {}), member, f"{path}.{key}".removeprefix("."))
            members.append(f'"{key}"{self._after}{found}')
        return r"\{" + self._between.join(members) + r"\}"

    def _pin(self, rule: Schema, row: Row) -> None:
        """Hold the truth values that a condition looks at to what they are, and what it empties to no member."""
        _know(rule, "if", "then")
        condition, consequence = rule["if"], rule["then"]
        _know(condition, "properties", "required")
        _know(consequence, "properties")
        applies = row.keys() >= set(condition.get("required", ()))
        for name, asked in condition["properties"].items():
            _know(asked, "const")
            if not isinstance(asked["const"], bool) or not isinstance(row.get(name, True), bool):
                raise Unsure
            self._pinned.add(name)
            applies = applies and row.get(name, asked["const"]) is asked["const"]
        for name, asked in consequence["properties"].items() if applies else ():
            _know(asked, "maxItems")
            if asked["maxItems"] != 0:
                raise Unsure
            self._empty.add(name)

    def _array(self, schema: Schema, value: list[Any], path: str) -> str:
        """Any number of members like the first one."""
        _know(schema, "items")
        items, wanted = schema.get("items", {"type": "string"}), path in self._wanted
        if wanted:
            self.names.append(path)
        if path in self._empty:
            return r"\[()\]" if wanted else r"\[\]"
        if wanted and items.get("type") == "string":
            one = f'"{_member(items)}"'
        else:
            one = self.value(items, value[0] if value else "", f"{path}[]")  # a path of its own: none is wanted
        return rf"\[{'(' if wanted else '(?:'}(?:{one}(?:{self._between}{one})*+)?+)\]"

    def _text(self, schema: Schema, path: str) -> str:
        if path not in self._wanted:
            return f'"{_inner(schema)}"'
        self.names.append(path)
        if path == "qid":
            schema = {**schema, "minLength": max(schema.get("minLength", 0), 1)}
        return f'"({_inner(schema)})"'


def _member(schema: Schema) -> str:
    """What matches the inside of a string that is wanted as one of a list: it may have escapes, and is not empty."""
    inner = _inner({**schema, "minLength": max(schema.get("minLength", 0), 1)})
    return '[^"]++' if inner == _NOT_EMPTY else inner


def _inner(schema: Schema) -> str:
    """What matches the inside of a string that keeps a schema."""
    _know(schema, "minLength", "maxLength", "enum", "pattern")
    if "pattern" in schema:
        besides = re.fullmatch(r"\[\^([^]]+)\]", schema["pattern"])
        if not besides:
            raise Unsure
        plain = {name: value for name, value in schema.items() if name != "pattern"}
        return rf'(?![{besides[1]}]*+"){_inner(plain)}'
    if "enum" in schema:
        if not all(map(_NAME, schema["enum"])):
            raise Unsure
        return f"(?:{'|'.join(schema['enum'])})"
    least, most = schema.get("minLength", 0), schema.get("maxLength", "")
    # Without a backslash, it has as many characters as stand there.
    if (least, most) == (1, ""):
        return _NOT_EMPTY
    return rf'[^"\\]{{{least},{most}}}+' if least or most else _TEXT


def _scalar(schema: Schema) -> str:
    """What matches a number or a truth value that keeps a schema, and any scalar where it asks for none."""
    _know(schema, "minimum", "maximum")
    kind, low, high = schema.get("type"), schema.get("minimum"), schema.get("maximum", _SURE)
    if kind is None and len(schema) == 0:
        return rf'(?:"{_TEXT}"|-?{_DIGITS}{_FRACTION}|true|false|null)'
    if kind == "boolean":
        return "(?:true|false)"
    if kind not in ("number", "integer") or low not in (None, 0) or (high < _SURE and (high, low) != (1, 0)):
        raise Unsure
    if high == 1:
        return _SHARE if kind == "number" else "[01]"
    return ("" if low == 0 else "-?") + _DIGITS + (_FRACTION if kind == "number" else "")


def _know(schema: Schema, *keywords: str) -> None:
    """Refuse a schema with a keyword that says more than the kind of a value and what ``keywords`` say."""
    for one in schema:
        if one not in _NOTES and one not in keywords and not one.startswith("x-"):
            raise Unsure
