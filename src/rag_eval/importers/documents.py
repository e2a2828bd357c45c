"""Readers of other tools' files: JSON in any container, CSV, YAML, and plain lines, each value with its line."""

from __future__ import annotations

import ast
import csv
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import msgspec

from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.paths import shell_line
from rag_eval.importers import FIELDS, ImportInputs, Row
from rag_eval.importers.unwrap import as_dict, as_list, decoded

Part = TypeVar("Part")
_RAW = msgspec.json.Decoder(msgspec.Raw)
_SPACE = re.compile(rb"\s*")
_BEGIN = re.compile(rb"\n[\[{]")
_NOT_A_NUMBER = (b"NaN", b"Infinity", b"-Infinity")
_TEXT_OR_NAN = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|-?Infinity|NaN', re.DOTALL)
_WRITE_JSON = "Export the file again as JSON or JSON Lines."
_EMPTY_CELLS = ("", "nan", "NaN")  # pandas prints an absent value as nan
_ARRAY = re.compile(r"array\((\[.*\])(?:, dtype=\w+)?\)", re.DOTALL)  # how numpy prints one
_LONGEST_CELL = 1 << 20  # characters of a printed Python list or object in a cell
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]*[1-9])?")
YAML = re.compile(
    rb"(?:(?:#|---).*\n|\s)*(?:- |[A-Za-z_\x80-\xff][\w\x80-\xff -]*:\s)"
)  # a list, or an object of lists
_SINGULAR = FIELDS["documents"]["singular"]
_DELIMITERS = (b",", b";", b"\t")
END_OF_ROW = "\n\x1e"  # in the CSV of a workbook, so that its rows are counted, and not the lines of its cells
BLANK = b" \t\r\n\x1e"


@dataclass(slots=True)
class Document:
    """One JSON value of a file, not yet decoded, and the line on which it begins."""

    path: str
    line: int
    data: bytes


class Stream:
    """The JSON of a file, read value by value; only the current value is in memory.

    A fault is reported at its position, and reading continues with the next line that begins a value.
    """

    def __init__(self, inputs: ImportInputs, path: str) -> None:
        self._inputs, self._path, self._blocks = inputs, path, inputs.blocks(path)
        self._window, self.line = bytearray(), 1

    def parts(self, read: Callable[[], Iterator[Part]]) -> Iterator[Part]:
        """Yield the results of ``read`` for each value of the file, and for each element of an array."""
        while first := self._peek():
            try:
                if first == b"[":
                    for _ in self._parts(b"[", b"]"):
                        yield from read()
                else:
                    yield from read()
                if self._peek() == b",":
                    self._take(1)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                _report(self._inputs, self._path, self.line, bytes(self._window), error)
                if first == b"[":
                    return
                self._skip()

    def members(self, lists: Sequence[Collection[str]]) -> Iterator[tuple[str, Document | None]]:
        """Yield name and value of each member of the object that begins here.

        For a list named in the first of ``lists``, yield None, then for each element None and its members in the same
        way; for the last of ``lists``, None and the element. An object of such a name is only a wrapper.
        """
        for _ in self._parts(b"{", b"}"):
            name = str(msgspec.json.decode(self.value().data))
            self._expect(b":")
            if lists and name in lists[0] and self._peek() == b"[":
                yield name, None
                for _ in self._parts(b"[", b"]"):
                    yield name, None
                    if lists[1:]:
                        yield from self.members(lists[1:])
                    else:
                        yield name, self.value()
            elif lists and name in lists[0] and self._peek() == b"{":
                yield from self.members(lists)
            else:
                yield name, self.value()

    def value(self) -> Document:
        """Read one value completely; raise DecodeError if it is invalid."""
        self._peek()
        while True:
            fault = None
            try:
                _RAW.decode(self._window)
            except msgspec.DecodeError as error:
                if "trailing characters" in str(error):  # the next value begins, so this one is complete
                    return Document(self._path, self.line, self._take(_offset(error) - 1).rstrip())
                if self._replace_nan(_offset(error)):
                    continue
                rest = bytes(self._window[max(_offset(error) - 1, 0) :])
                is_cut = any(word.startswith(rest[start:]) for word in _NOT_A_NUMBER for start in (0, 1))
                if "truncated" not in str(error) and _offset(error) < len(self._window) and not is_cut:
                    raise
                fault = error
            if not self._more():
                if fault:
                    raise fault
                return Document(self._path, self.line, self._take(len(self._window)).rstrip())

    def _replace_nan(self, offset: int) -> bool:
        """Replace NaN and Infinity by null if one is at the fault: Python and pandas write them for absent numbers."""
        starts = (offset, max(offset - 1, 0))
        if not any(self._window.startswith(word, start) for word in _NOT_A_NUMBER for start in starts):
            return False
        before = bytes(self._window)
        self._window[:] = _TEXT_OR_NAN.sub(lambda match: match[0] if match[0][:1] == b'"' else b"null", before)
        return self._window != before  # it is unchanged if the fault is in a text that does not end

    def _parts(self, begin: bytes, end: bytes) -> Iterator[None]:
        """Read the brackets and commas of an array or object; yield at the beginning of each of its parts."""
        self._expect(begin)
        while self._peek() != end:
            yield
            if self._peek() != end:
                self._expect(b",")
                if self._peek() == end:
                    raise msgspec.DecodeError("JSON is malformed: trailing comma (byte 0)")
        self._expect(end)

    def _peek(self) -> bytes:
        """Return the next byte except white space; b"" at the end."""
        while True:
            self._take(_SPACE.match(self._window).end())  # type: ignore[union-attr]
            if self._window or not self._more():
                return bytes(self._window[:1])

    def _expect(self, byte: bytes) -> None:
        """Read one byte; raise DecodeError if it is another."""
        if (byte_read := self._peek()) != byte:
            why = f"JSON is malformed: expected '{byte.decode()}' (byte 0)" if byte_read else "Input data was truncated"
            raise msgspec.DecodeError(why)
        self._take(1)

    def _skip(self) -> None:
        """Continue with the next line that begins a value."""
        self._take(1)
        while not (match := _BEGIN.search(self._window)):
            self._take(max(len(self._window) - 1, 0))
            if not self._more():
                self._take(1)
                return
        position = match.start() + 1
        del match  # a match would keep the window, which could not be cut
        self._take(position)

    def _take(self, size: int) -> bytes:
        data = bytes(self._window[:size])
        self.line += data.count(b"\n")
        del self._window[:size]
        return data

    def _more(self) -> bool:
        """Read as much again as the window holds; return False at the end."""
        before = len(self._window)
        while len(self._window) <= 2 * before and (block := next(self._blocks, b"")):
            self._window += block
        return len(self._window) > before


def documents(inputs: ImportInputs, path: str) -> Iterator[Document]:
    """Yield the JSON values of a file in order, one per line or not, and the elements of an array."""
    stream = Stream(inputs, path)
    yield from stream.parts(lambda: iter((stream.value(),)))


def decode(inputs: ImportInputs, document: Document) -> Any:
    """Return the value of a document; None with a problem if it is not valid JSON."""
    inputs.place = document.path, document.line
    try:
        return msgspec.json.decode(document.data)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        _report(inputs, document.path, document.line, document.data, error)
        return None


def objects(inputs: ImportInputs, path: str, what: str) -> Iterator[tuple[int, Row]]:
    """Yield line and value of each JSON object of a file, or of each row of CSV without its empty cells.

    Other values are problems.
    """
    before = inputs.problems
    if is_csv(inputs, path):
        for line, cells in csv_rows(inputs, path):
            yield line, {name: cell_value(cell) for name, cell in cells.items() if cell not in _EMPTY_CELLS}
        return
    if inputs.problems > before:
        return  # the file is unreadable, which is reported
    if YAML.match(beginning(inputs, path)):
        values = ((1, value) for value in _yaml_records(inputs, path))
    else:
        values = ((document.line, decode(inputs, document)) for document in documents(inputs, path))
    for line, value in values:
        if isinstance(value, dict):
            yield from ((line, row) for row in frame_rows(value))
        elif value is not None:
            hint = "Check the format of the file: rag-eval import auto FILE"
            inputs.problem(path, line, "", f"is not an object, but {what} is one", hint)


def frame_rows(value: Row) -> Iterator[Row]:
    """Yield the rows of a data frame or a dataset that was written as one object; otherwise the object.

    The forms are pandas' ``columns``, ``split``, ``index`` and ``table``, and lists by column. Rows have numbers or ids
    as keys, which have digits; an id is kept as ``id``.
    """
    columns, data, rows, parts = value.get("columns"), value.get("data"), value.get("rows"), list(value.values())
    are_objects = bool(parts) and all(isinstance(part, dict) and part for part in parts)
    if len(parts) > 1 and are_objects and all(map(_are_ids, parts)) and set(parts[0]).intersection(*parts):
        for key in dict.fromkeys(chain.from_iterable(parts)):
            yield _with_id(key, {name: column.get(key) for name, column in value.items()})
    elif isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        yield from (dict(zip(map(str, columns), row, strict=False)) for row in data)
    elif isinstance(rows, list) and rows and all(isinstance(as_dict(row).get("row"), dict) for row in rows):
        yield from (row["row"] for row in rows)  # of Hugging Face
    elif "schema" in value and isinstance(data, list) and all(isinstance(row, dict) for row in data):
        yield from data
    elif are_objects and _are_ids(value):
        yield from (_with_id(key, row) for key, row in value.items())
    elif len(parts) > 1 and _are_columns(parts):
        is_plural = not value.keys().isdisjoint(("questions", "queries"))  # of Haystack
        names = [_SINGULAR.get(name, name) if is_plural else name for name in value]
        yield from (dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True))
    else:
        yield value


def nested(row: Row) -> Row:
    """Return a record whose columns are named by paths, such as ``inputs.question``, as an object of objects."""
    result: Row = {}
    for name, value in row.items():
        section, dot, key = name.partition(".")
        if dot and isinstance(fields := result.setdefault(section, {}), dict):
            fields[key] = value
        else:
            result[name] = value
    return result


def _are_ids(keys: Row) -> bool:
    return all(any(letter.isdigit() for letter in key) for key in keys)


def _with_id(key: str, row: Row) -> Row:
    return row if key.isdigit() else {"id": key, **row}


def _are_columns(parts: list[Any]) -> bool:
    """Return whether values are lists of equal length, one of them of texts."""
    are_lists = all(isinstance(part, list) and part and len(part) == len(parts[0]) for part in parts)
    return are_lists and any(all(isinstance(item, str) for item in part) for part in parts)


def yaml_value(inputs: ImportInputs, path: str) -> Any:
    """Return the value of a YAML file; None with a problem if it is not valid YAML.

    Numbers that would be printed in another way stay texts: 012, 1_000 and 1.10 may be ids or answers.
    """
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def construct_mapping(self: Any, node: Any, deep: bool = False) -> Any:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        if twice := next((key for key, _ in node.value if keys.get(key.value, 0) > 1), None):
            raise yaml.constructor.ConstructorError(
                None, None, f"repeats the key {quoted(twice.value, 40)}", twice.start_mark
            )
        return safe.construct_mapping(self, node, deep)

    loader: Any = type("Loader", (safe,), {"construct_mapping": construct_mapping})
    for tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
        loader.add_constructor(tag, lambda _, node: _number_or_text(node.value))
    try:
        return yaml.load(inputs.data(path) or b"", loader)  # noqa: S506 - a safe one, in C where there is one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        inputs.problem(path, line, "", f"is not valid YAML: {getattr(error, 'problem', None) or error}", _WRITE_JSON)
        return None


def _number_or_text(text: str) -> Any:
    return msgspec.json.decode(text) if _PLAIN_NUMBER.fullmatch(text) else text


def _yaml_records(inputs: ImportInputs, path: str) -> list[Any]:
    """Return the entries of a list in YAML, or its object, with texts for times and keys; aliases are refused."""
    import yaml

    value = yaml_value(inputs, path)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = yaml.parse(inputs.data(path) or b"", loader) if value is not None else ()
    alias: Any = next((event for event in events if isinstance(event, yaml.AliasEvent)), None)
    if alias:
        line = alias.start_mark.line + 1
        inputs.problem(path, line, "", f"has the alias {quoted('*' + alias.anchor, 40)}", "Write the value itself.")
        return []
    try:
        return as_list(_plain(value))
    except RecursionError:
        inputs.problem(path, 1, "", "is nested too deeply", _WRITE_JSON)
        return []


def _plain(value: Any) -> Any:
    """Return a value of YAML with the types of JSON."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def cell_value(text: str) -> Any:
    """Return the list or object in a CSV cell, as JSON or as Python prints it; any other text is unchanged."""
    if text.lstrip()[:2] in ('"[', '"{') and isinstance(inner := decoded(text), str):
        text = inner  # a list that was written as JSON twice
    if len(text) <= _LONGEST_CELL and (array := _ARRAY.fullmatch(text.strip())):
        text = array[1]
    if text.lstrip()[:1] not in ("[", "{") or len(text) > _LONGEST_CELL:
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        value = ast.literal_eval(_PlainObjects().visit(ast.parse(text.strip(), mode="eval")))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            return value
        # numpy prints no commas between texts, and Python joins texts without a comma between them
        tokens = tokenize.generate_tokens(io.StringIO(text.strip()).readline)
        return [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, tokenize.TokenError):
        return text


class _PlainObjects(ast.NodeTransformer):
    """Turns printed Python objects, such as ``Document(page_content='…')``, into objects of their fields."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a dictionary of the named arguments; a call with others is no such object."""
        if node.args or not all(keyword.arg for keyword in node.keywords):
            return node
        names: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in node.keywords]
        return ast.Dict(keys=names, values=[self.visit(keyword.value) for keyword in node.keywords])


def csv_rows(inputs: ImportInputs, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells by column of each row of a CSV file with a header, except blank rows.

    Columns of one name must have equal cells; pandas writes an index twice if a column has its name.
    """
    table = csv_table(inputs, path)
    header = next(table, (0, []))[1]
    for line, cells in table:
        row = dict(zip(header, cells, strict=True))
        if len(row) < len(header):
            differing = [name for name, cell in zip(header, cells, strict=True) if row[name] != cell]
            if differing:
                message = f"has two columns named '{differing[0]}'"
                hint = "Give each column its own name in the first line, and remove lines above the names."
                return inputs.problem(path, 1, "", message, hint)
        if any(cells):
            yield line, row


def csv_table(inputs: ImportInputs, path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of the header and of each row of a CSV file (RFC 4180); all have equally many cells."""
    data = inputs.data(path)
    if data is None:
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return inputs.problem(path, line, "", "is not UTF-8", _to_utf8(path, "csv"))
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    delimiter = _delimiter(data.lstrip(BLANK).partition(b"\n")[0]) or ","
    table = csv.reader(csv_lines(text), strict=True, delimiter=delimiter)
    line, is_empty = 1, True
    try:
        header = next(filter(None, table), [])
        if not header:
            return inputs.problem(path, 1, "", "has no header", "Give each column its own name in the first line.")
        yield table.line_num, header
        line = table.line_num + 1
        for cells in table:
            if len(cells) == len(header):
                yield line, cells
            elif cells:
                message = f"has {quantity(len(cells), 'cell')}, and the header has {len(header)}"
                inputs.problem(path, line, "", message, "Quote cells that contain commas or line breaks.")
            line = table.line_num + 1
            is_empty = is_empty and not any(cells)
        if is_empty:
            inputs.problem(path, line, "", "has names of columns and no rows", "Export it again with its rows.")
    except csv.Error as error:
        inputs.problem(path, line, "", f"is not valid CSV: {error}", _WRITE_JSON)


def csv_lines(text: str) -> Iterable[str]:
    """Return the lines of CSV, or the rows of a workbook."""
    return text.split(END_OF_ROW) if END_OF_ROW in text else io.StringIO(text, newline="")


def text_lines(inputs: ImportInputs, path: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is neither blank nor a comment (``#``)."""
    for number, line in inputs.lines(path):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            inputs.problem(path, number, "", "is not UTF-8", _to_utf8(path, "txt"))
            continue
        if text.strip() and not text.startswith("#"):
            yield number, text.rstrip("\r\n")


def beginning(inputs: ImportInputs, path: str) -> bytes:
    """Return the first block of a file, without a byte order mark and white space before its text."""
    return next(inputs.blocks(path, shown=False), b"").removeprefix(b"\xef\xbb\xbf").lstrip(BLANK)


def is_csv(inputs: ImportInputs, path: str) -> bool:
    """Return whether a file looks like CSV: its first line is not JSON and has a comma, a semicolon or a tab."""
    first = beginning(inputs, path).partition(b"\n")[0]
    return not first.startswith((b"{", b"[", b"- ", b"#")) and _delimiter(first) != ""


def csv_header(head: bytes) -> list[str]:
    """Return the columns in the first bytes of a CSV file; an empty list if it is not CSV."""
    text, delimiter = head.decode("utf-8", "replace"), _delimiter(head.partition(b"\n")[0])
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []) if delimiter else []
    except csv.Error:
        return []


def _delimiter(first: bytes) -> str:
    """Return the delimiter of a CSV file by its first line, '' for none."""
    best = max(_DELIMITERS, key=first.count)
    return best.decode() if best in first else ""


def _offset(error: Exception) -> int:
    position = str(error).rpartition("(byte ")[2].rstrip(")")
    return int(position) if position.isdigit() else 0


def _report(inputs: ImportInputs, path: str, line: int, data: bytes, error: Exception) -> None:
    """Report invalid JSON, on the line of the fault."""
    text, offset = str(error), _offset(error)
    number = line + data.count(b"\n", 0, offset)
    if isinstance(error, UnicodeDecodeError):
        number = line + data.count(b"\n", 0, data.find(error.object) + error.start)
        inputs.problem(path, number, "", "is not UTF-8", _to_utf8(path, "json"))
    elif isinstance(error, RecursionError):
        inputs.problem(path, line, "", "is nested too deeply", _WRITE_JSON)
    elif "truncated" in text:
        hint = "The file looks cut off; export it again."
        inputs.problem(path, number, "", "ends in the middle of a JSON value", hint)
    else:
        reason = text.removeprefix("JSON is malformed: ").partition(" (byte ")[0]
        inputs.problem(path, number, "", f"is not valid JSON: {reason}", _WRITE_JSON)


def _to_utf8(path: str, ending: str) -> str:
    """Return how to convert a file from the encoding that is the most frequent after UTF-8."""
    command = shell_line("iconv", "-f", "WINDOWS-1252", "-t", "UTF-8", path)
    return f"Save the file as UTF-8, or convert it: {command} > utf8.{ending}"
