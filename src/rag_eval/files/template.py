"""Rows that are written alike, read by one regular expression, which is made of one of them and of the schema.

Programs write the rows of a file alike: the same fields in the same order, with the same spacing. Of such rows it takes
one look to know that they keep their contract, and nothing has to be made of what nobody asks for. A line that is
written otherwise, or that holds what the expression is not sure of, is left to the exact way.

What it matches is strict JSON without repeated keys and keeps the schema. An expression is made only where every
keyword of the schema is known here.
"""

from __future__ import annotations

import re
from itertools import repeat
from typing import Any

import orjson

from rag_eval.model import Told, inline_citations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    Row = dict[str, Any]
    Schema = Mapping[str, Any]

_LAYOUTS = ((", ", ": "), (",", ":"))
"""What stands between members, and after a key: as Python writes JSON, and as most others do."""

_CONTROLS = tuple([bytes([code]) for code in range(0x20) if code != 0x0A])
_ESCAPE = re.compile(
    r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_NAME = re.compile(r"[A-Za-z0-9_ -]+").fullmatch

# A quote after a backslash ends no string: of lines in which two backslashes stand before one, none is looked at.
_TEXT = r'[^"]*+(?:(?<=\\)"[^"]*+)*+'
_ID = r'"[^"]++"'  # what is taken as an id holds no backslash: see _plain
_DIGITS = "(?:0|[1-9][0-9]{0,14}+)"
_SURE = 10**15  # more than any number of so many digits, whatever follows its point
_FRACTION = r"(?:\.[0-9]{1,15}+)?+"
_SHARE = rf"(?:0{_FRACTION}|1(?:\.0{{1,15}}+)?+)"

_NOTES = {"$schema", "$id", "type", "title", "description", "examples"}
_CLAIM, _CITED, _RANKED = "answer_json.claim", "answer_json.citations", "retrieved_ids"
_ANSWER, _LISTED, _CHUNKS = "answer", "citations", "chunks"


class Template:
    """How rows are written. ``names`` are the fields that a line gives, in their order; see :func:`template`."""

    def __init__(self, pattern: str, names: Sequence[str], between: str) -> None:
        self._find = re.compile(f"(?m)^(?:{pattern}|(.*+))$").findall
        self._names, self._between = (*names, ""), between

    def told(self, first: int, lines: Sequence[bytes]) -> Told | None:
        """What lines tell, the number of the first of which is ``first``; those written otherwise have no qid.

        None where only a look at each line can tell.
        """
        text = _sure(b"\n".join(lines)) or ""
        found = self._find(text)
        if len(found) != len(lines):  # else two lines might have been taken for one, with its break in a string
            return None
        columns = dict(zip(self._names, zip(*found, strict=True), strict=True))
        told = self._told(first, columns)
        return _plain(told) if "\\" in text or _ANSWER in columns else told

    def _told(self, first: int, columns: Mapping[str, Sequence[str]]) -> Told:
        nothing: Iterable[None] = repeat(None)
        claims = columns.get(_CLAIM) or columns[_ANSWER]
        cited: Iterable[str | None] = columns.get(_CITED) or columns.get(_LISTED) or nothing
        if cited is nothing and _ANSWER in columns:
            cited = list(map(self._inline, claims))
        ranked = columns.get(_RANKED) or repeat("")
        chunks = [orjson.loads(f"[{one}]") for one in columns.get(_CHUNKS, ())]
        return Told(first, columns["qid"], columns.get("run", ()), claims, cited, ranked, self._between, {}, chunks)

    def _inline(self, claim: str) -> str | None:
        """The list of citations in the text of an answer as JSON has it."""
        found = inline_citations(orjson.loads(f'"{claim}"') if "\\" in claim else claim)
        return None if found is None else self._between.join([orjson.dumps(one).decode() for one in found])


def template(schema: Schema, row: Row, line: bytes, more: Iterable[str] = ()) -> Template | None:
    """How ``line`` is written, which holds a valid trace ``row``; None where no expression would be sure of it.

    ``more`` may ask for the chunks.
    """
    wanted = _wanted(row)
    if wanted is None:
        return None
    wanted = wanted.union(more)
    for layout in _LAYOUTS:
        writer = _Writer(*layout, wanted)
        try:
            made = Template(writer.value(schema, row, ""), writer.names, layout[0])
        except _Unsure:
            return None
        told = made.told(0, [line])
        if told and told.qids[0]:
            return made
    return None


def _wanted(row: Row) -> frozenset[str] | None:
    """The fields that say what a trace comes to, as far as the ids and the answer decide."""
    if not row.get("qid") or {"q_id", "case_id"} & row.keys() or ("chunks" in row and _RANKED not in row):
        return None
    if "answer_json" in row:
        return frozenset(("qid", "run", _RANKED, _CLAIM, _CITED))
    return frozenset(("qid", "run", _RANKED, _ANSWER, _LISTED)) if _ANSWER in row else None


def _sure(data: bytes) -> str | None:
    """The text of lines; None where it may hold what JSON has no place for, or a quote of which it is open what it is.

    Most of it holds no backslash, and none of a control character.
    """
    if any([code in data for code in _CONTROLS]):
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\\" in text and ('\\\\"' in text or "\\" in _ESCAPE.sub("", text)) else text


def _plain(told: Told) -> Told:
    """The same with escapes read. Where one stands for what no list of ids can hold, the line tells nothing so far."""
    cited = [one and _read(one, told.between) for one, _ in zip(told.cited, told.qids)]  # noqa: B905 - may be endless
    ranked = [_read(one, told.between) for one, _ in zip(told.retrieved, told.qids)]  # noqa: B905
    read = told._replace(cited=cited, retrieved=ranked)
    ids = [f"{qid}{run}{cites}{retrieved}" for _, qid, run, _, cites, retrieved in read.entries()]
    return read._replace(
        qids=["" if "\\" in one else qid for one, qid in zip(ids, told.qids, strict=True)],
        claims=[orjson.loads(f'"{claim}"') if "\\" in claim else claim for claim in told.claims],
    )


def _read(listed: str, between: str) -> str:
    """A list of ids with their escapes read, but for those of quotes and backslashes."""
    if "\\" not in listed:
        return listed
    ids: list[str] = orjson.loads(f"[{listed}]")
    return listed if any('"' in one or "\\" in one for one in ids) else between.join([f'"{one}"' for one in ids])


class _Unsure(Exception):
    """That no expression can be made: it would not be sure of something in the schema or in the row."""


class _Writer:
    """Writes an expression of rows like one that is at hand. ``names`` are the paths of its groups, as it goes."""

    def __init__(self, between: str, after: str, wanted: Collection[str]) -> None:
        self._between, self._after, self._wanted = between, after, wanted
        self.names: list[str] = []

    def value(self, schema: Schema, value: Any, path: str) -> str:
        """What matches a value of the kind of ``value`` that keeps ``schema``."""
        if isinstance(value, dict):
            return self._object(schema, value, path)
        if isinstance(value, list):
            return self._array(schema, value, path)
        if isinstance(value, str) and ("type" in schema or path in self._wanted):
            return self._text(schema, path)
        return _scalar(schema)

    def _object(self, schema: Schema, value: Row, path: str) -> str:
        """Its members in this order, and no others; what the schema asks for is among them."""
        _know(schema, "properties", "required", "anyOf")
        for branch in schema.get("anyOf", ()):
            _know(branch, "required")
        if not all(map(_NAME, value)):
            raise _Unsure
        fields, members = schema.get("properties", {}), []
        for key, member in value.items():
            found = self.value(fields.get(key, {}), member, f"{path}.{key}".removeprefix("."))
            members.append(f'"{key}"{self._after}{found}')
        return r"\{" + self._between.join(members) + r"\}"

    def _array(self, schema: Schema, value: list[Any], path: str) -> str:
        """Any number of members like the first one."""
        _know(schema, "items")
        items, between = schema.get("items", {}), self._between
        group = ""
        if path in self._wanted:
            self.names.append(path)
            group = "("
        if group and path != _CHUNKS:
            _know(items)
            one = _ID
        else:
            one = self.value(items or {"type": "string"}, value[0] if value else "", path)
        return rf"\[{group or '(?:'}(?:{one}(?:{between}{one})*+)?+)\]"

    def _text(self, schema: Schema, path: str) -> str:
        if path not in self._wanted:
            return f'"{_inner(schema)}"'
        self.names.append(path)
        if path == "qid":
            schema = {**schema, "minLength": max(schema.get("minLength", 0), 1)}
        return f'"({_inner(schema)})"'


def _inner(schema: Schema) -> str:
    """What matches the inside of a string that keeps a schema."""
    _know(schema, "minLength", "maxLength", "enum")
    if "enum" in schema:
        if not all(map(_NAME, schema["enum"])):
            raise _Unsure
        return f"(?:{'|'.join(schema['enum'])})"
    least, most = schema.get("minLength", 0), schema.get("maxLength", "")
    # Without a backslash, it has as many characters as stand there.
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
        raise _Unsure
    if high == 1:
        return _SHARE if kind == "number" else "[01]"
    return ("" if low == 0 else "-?") + _DIGITS + (_FRACTION if kind == "number" else "")


def _know(schema: Schema, *keywords: str) -> None:
    """Refuse a schema with a keyword that says more than the kind of a value and what ``keywords`` say."""
    for one in schema:
        if one not in _NOTES and one not in keywords and not one.startswith("x-"):
            raise _Unsure
