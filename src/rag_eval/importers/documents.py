"""Read the files of other tools: JSON in any container, CSV, and plain lines, each value with the line it begins on."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rag_eval.importers import Inputs

Row = dict[str, Any]
_SPACE = re.compile(rb"[\s,]*")
_NOT_A_NUMBER = (b"NaN", b"Infinity", b"-Infinity")
_WRITE_NULL = 'JSON has no such number. Write null: df.to_json(orient="records", lines=True)'
_WRITE_JSON = "Export the file again as JSON or JSON Lines."


@dataclass(slots=True)
class Document:
    """One JSON value of a file, not yet decoded, and the line that it begins on."""

    path: str
    line: int
    data: bytes


def documents(inputs: Inputs, path: str) -> Iterator[Document]:
    """Yield the JSON values of a file: its lines, the elements of one array, or values one after the other.

    The container is recognised by its content: ``[`` first is an array; a first line that is a whole value makes the
    file JSON Lines; everything else is read as values that may run over several lines.
    """
    lines = inputs.lines(path)
    first = next(lines, None)
    if first is None:
        return
    number, line = first
    second = next(lines, None)
    if second is None and line.lstrip()[:1] == b"[":
        yield from _elements(inputs, path, number, line)
        return
    if second is None or _is_whole(line) or (line.lstrip()[:2] == b'{"' and second[1].lstrip()[:1] == b"{"):
        yield Document(path, number, line)
        if second is not None:
            yield Document(path, *second)
            for number, line in lines:
                yield Document(path, number, line)
        return
    data = inputs.data(path)
    if data is None:
        return
    if data.lstrip()[:1] == b"[":
        yield from _elements(inputs, path, 1, data)
    else:
        yield from _values(path, data)


def decode(inputs: Inputs, document: Document) -> Any:
    """Return the value of a document; None with a problem where it is not valid JSON."""
    inputs.place = document.path, document.line
    try:
        return msgspec.json.decode(document.data)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        _report(inputs, document.path, document.line, document.data, error)
        return None


def objects(inputs: Inputs, path: str, what: str) -> Iterator[tuple[int, Row]]:
    """Yield line and value of each JSON object of a file; values of another kind are problems."""
    for document in documents(inputs, path):
        value = decode(inputs, document)
        if isinstance(value, dict):
            yield document.line, value
        elif value is not None:
            hint = "Check that the file is what the format is made for: rag-eval import auto FILE"
            inputs.problem(path, document.line, "", f"is no object, but {what} is one", hint)


def members(inputs: Inputs, document: Document, key: str) -> Iterator[Document]:
    """Yield the elements of the list under ``key`` of a large object, without decoding all of them at once."""
    try:
        raw = msgspec.json.decode(document.data, type=dict[str, msgspec.Raw]).get(key)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        return _report(inputs, document.path, document.line, document.data, error)
    if raw is not None:
        yield from _elements(inputs, document.path, document.line, document.data, raw)


def csv_rows(inputs: Inputs, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and cells by column of each row of a CSV file with a header (RFC 4180)."""
    data = inputs.data(path)
    if data is None:
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return inputs.problem(path, line, "", "is not UTF-8", "Save the file as CSV UTF-8.")
    csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    table = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        header = next(table, [])
        repeated = sorted({name for name in header if header.count(name) > 1})
        if not header or repeated:
            message = f"has two columns of the name '{repeated[0]}'" if repeated else "has no header"
            return inputs.problem(path, 1, "", message, "Name each column once, in the first line.")
        line = table.line_num + 1
        for cells in table:
            if len(cells) == len(header):
                yield line, dict(zip(header, cells, strict=True))
            elif cells:
                message = f"has {len(cells)} cells, and the header has {len(header)}"
                inputs.problem(path, line, "", message, "Quote cells that hold commas or line breaks.")
            line = table.line_num + 1
    except csv.Error as error:
        inputs.problem(path, line, "", f"is not valid CSV: {error}", _WRITE_JSON)


def text_lines(inputs: Inputs, path: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is neither blank nor a comment (``#``)."""
    for number, line in inputs.lines(path):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            inputs.problem(path, number, "", "is not UTF-8", "Save the file as UTF-8.")
            continue
        if text.strip() and not text.startswith("#"):
            yield number, text.rstrip("\r\n")


def is_csv(inputs: Inputs, path: str) -> bool:
    """Whether a file looks like CSV: its first line is no JSON and has a comma."""
    first = next(inputs.lines(path), (0, b""))[1].lstrip()
    return first[:1] not in (b"{", b"[") and b"," in first


def _is_whole(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _elements(
    inputs: Inputs, path: str, line: int, data: bytes, array: msgspec.Raw | None = None
) -> Iterator[Document]:
    """Yield the elements of an array; ``array`` is a part of ``data``, which begins on ``line``."""
    try:
        found = msgspec.json.decode(data if array is None else array, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        return _report(inputs, path, line, data if array is None else bytes(array), error)
    place = 0
    for raw in found:
        element = bytes(raw)
        start = data.index(element, place)
        line += data.count(b"\n", place, start)
        yield Document(path, line, element)
        place = start + len(element)
        line += element.count(b"\n")


def _values(path: str, data: bytes) -> Iterator[Document]:
    """Yield values that follow one another, as the console exporter of the OpenTelemetry SDK writes them."""
    line, place = 1, 0
    while (begin := _SPACE.match(data, place).end()) < len(data):  # type: ignore[union-attr]
        end = _end_of_value(data, begin)
        line += data.count(b"\n", place, begin)
        yield Document(path, line, data[begin:end])
        line += data.count(b"\n", begin, end)
        place = end


def _end_of_value(data: bytes, begin: int) -> int:
    """Where the value that begins at ``begin`` ends: behind the ``}`` that stands first in a line, else at the end."""
    if data[begin : begin + 1] != b"{":
        end = data.find(b"\n", begin)
        return len(data) if end < 0 else end
    place = begin
    while (place := data.find(b"\n}", place)) >= 0:
        after = data[place + 2 : place + 3]
        if after in (b"", b"\n", b"\r", b"{", b","):
            return place + 2
        place += 2
    return len(data)


def _report(inputs: Inputs, path: str, line: int, data: bytes, error: Exception) -> None:
    """Report JSON that cannot be decoded, on the line where it breaks."""
    text = str(error)
    place = text.rpartition("(byte ")[2].rstrip(")")
    offset = int(place) if place.isdigit() else 0
    number = line + data.count(b"\n", 0, offset)
    if isinstance(error, RecursionError):
        inputs.problem(path, line, "", "is nested too deeply", _WRITE_JSON)
    elif any(data.startswith(word, offset) or data.startswith(word, max(offset - 1, 0)) for word in _NOT_A_NUMBER):
        inputs.problem(path, number, "", "holds NaN or Infinity", _WRITE_NULL)
    elif "truncated" in text:
        inputs.problem(
            path, number, "", "ends in the middle of a JSON value", "The file looks cut off; export it again."
        )
    else:
        reason = text.removeprefix("JSON is malformed: ")
        inputs.problem(path, number, "", f"is not valid JSON: {reason}", _WRITE_JSON)
