"""Workbooks, Parquet, UTF-16 text, titled tables and logs, converted to the text that importers read."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, time
from functools import lru_cache
from io import BytesIO
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any
from warnings import catch_warnings
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import msgspec
from msgspec.structs import replace

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import shell_line
from rag_eval.errors import MissingExtra
from rag_eval.importers import Row, unwrap
from rag_eval.importers.columns import FORMS, suggested
from rag_eval.importers.documents import BLANK, END_OF_ROW, csv_lines, objects
from rag_eval.importers.table import instant
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import MIB, Reader, open_regular

_DECIMALS = {"0": 0, "0.0": 1, "0.00": 2}  # by number format
_CELLS = 5_000_000  # of one sheet, with the empty ones before others: a small file can have any number of those
_DELIMITERS, _FIRST_ROWS = ",;\t", 20
_SEPARATOR = re.compile(r'\s*"?sep=([,;\t])')  # Excel writes it before the names of the columns
_ROLES = ("role", "sender", "from", "speaker", "author")
_BODIES = ("content", "message", "text", "value", "body", "utterance")
_ASKS = ("user", "human")  # roles


def converted(reader: Reader, paths: Sequence[str], sheet: str = "") -> Reader:
    """Return a reader that reads a workbook as CSV, Parquet as JSON Lines, UTF-16 as UTF-8, and others unchanged.

    Titles above a table are blank, and messages in rows are grouped by turn.

    Of several sheets with data, ``sheet`` names the one to read. Raise InputError if a file cannot be converted.
    """
    for path in paths:
        for convert in (_unpacked, _without_titles, _turns_of_messages):
            if (data := convert(reader, path, sheet)) is not None:
                reader = replace(reader, contents={**reader.contents, path: data})
    reader.ledger.stop_on_problems()
    return reader


def _unpacked(reader: Reader, path: str, sheet: str) -> bytes | None:
    """Return the text of a packed file; None for text. A file that cannot be converted is a problem, and empty."""
    try:
        with open_regular(path, reader.root) as file:
            head = file.read(4)
    except (Unreadable, OSError):
        return None  # it is reported when it is read
    convert = next((form for begin, form in _FORMS.items() if head.startswith(begin)), None)
    if convert is None:
        return None
    largest, size, parts = reader.limits.whole_mib * MIB, Path(path).stat().st_size, list[bytes]()
    try:
        for text in convert(reader, path, sheet) if size <= largest else ():
            parts.append(text.encode())
            size += len(parts[-1])
            if size > largest:
                break
    except Unreadable as error:
        reader.ledger.problem(path, 0, "", error.message, error.hint)
    if size > largest:
        message = f"has more than {reader.limits.whole_mib} MiB of text"
        reader.ledger.problem(path, 0, "", message, "Export fewer rows at once.")
    reader.ledger.stop_on_problems()
    return b"".join(parts)


def parquet_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a Parquet file; raise Unreadable if it is invalid, MissingExtra without pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Reading Parquet files", "parquet") from None
    try:
        with parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        message = f"cannot be read as Parquet: {one_line(str(error), 160).rstrip('.')}"
        raise Unreadable(message, "Check the path, or fetch the file again.") from None


def _lines_of_parquet(_reader: Reader, path: str, _sheet: str) -> Iterator[str]:
    for record in parquet_records(path):
        yield f"{msgspec.json.encode(record, enc_hook=str).decode()}\n"


def _utf_8(_reader: Reader, path: str, _sheet: str) -> Iterator[str]:
    try:
        yield Path(path).read_text("utf-16")
    except UnicodeDecodeError:
        raise Unreadable("is not valid UTF-16", "Save the file as UTF-8.") from None


def _csv_of_workbook(reader: Reader, path: str, sheet: str) -> Iterator[str]:
    """Yield the values of one sheet as CSV; a row that is not blank has as many cells as the longest one."""
    data = Path(path).read_bytes()
    try:
        _check_archive(data, reader.limits.whole_mib)
        with catch_warnings(action="ignore"):  # about parts of a workbook that are not read
            rows = list(_cells_of_workbook(reader, path, data, sheet))
    except ImportError:
        raise MissingExtra("Reading .xlsx files", "excel") from None
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a part that is no workbook can make openpyxl raise anything
        message = f"cannot be read as a workbook: {one_line(str(error), 120).rstrip('.')}"
        raise Unreadable(message, "Open it in Excel and save it again, or save it as CSV UTF-8.") from None
    width = max(map(len, rows), default=0)
    if width * len(rows) > _CELLS:
        raise _too_many_cells()
    for row in rows:
        cells = [*row, *[""] * (width - len(row))] if row else []
        yield ",".join('"' + text.replace('"', '""') + '"' for text in cells) + END_OF_ROW


def _check_archive(data: bytes, whole_mib: int) -> None:
    """Raise Unreadable for an archive that is no workbook, or no plain one."""
    with ZipFile(BytesIO(data)) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            raise Unreadable("is a ZIP archive, but no .xlsx file", "Unpack it, or save the table as CSV UTF-8.")
        parts = archive.infolist()
        if any(part.flag_bits & 1 or part.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for part in parts):
            raise Unreadable("has a password, or an unusual compression", "Save it in Excel without a password.")
        if sum(part.file_size for part in parts) > whole_mib * MIB:
            raise Unreadable(f"has more than {whole_mib} MiB when unpacked", "Save it as CSV UTF-8.")


def _cells_of_workbook(reader: Reader, path: str, data: bytes, sheet: str) -> Iterator[list[str]]:
    """Yield the texts of the cells of each row, without empty ones at its end."""
    from openpyxl import load_workbook

    formulas, values = (load_workbook(BytesIO(data), read_only=True, data_only=computed) for computed in (False, True))
    for part in (*formulas.worksheets, *values.worksheets):
        part.reset_dimensions()  # some programs write a wrong size
    name = _sheet_to_read(reader, path, formulas, sheet)
    if not name:
        return
    for number, row in enumerate(zip_longest(*(_rows(book[name]) for book in (formulas, values)), fillvalue=()), 1):
        texts = []
        for formula, cell in zip(*row, strict=False):
            is_computed = formula.data_type != "f" or cell.value is not None or cell.data_type == "str"  # empty text
            if not is_computed or cell.data_type == "e":
                message = f"has the error {cell.value}" if is_computed else "has a formula without a value"
                fix = "Correct it in Excel and save the file, which computes its formulas."
                reader.ledger.problem(path, number, f"cell {formula.coordinate}", message, fix)
            texts.append(_text(cell.value, cell.number_format))
            if not _is_as_shown(cell.value, cell.number_format, texts[-1]):
                message = f"numbers like {one_line(cell.number_format)} are read without that format"
                reader.ledger.note(path, number, message)
        while texts and not texts[-1]:
            texts.pop()
        yield texts


def _rows(sheet: Any, *, values_only: bool = False) -> Iterator[tuple[Any, ...]]:
    count = 0
    for row in sheet.iter_rows(values_only=values_only):
        count += len(row) or 4  # the million empty rows of Excel are few enough
        if count > _CELLS:
            raise _too_many_cells()
        yield row


def _too_many_cells() -> Unreadable:
    message = f"has more than {_CELLS:,} cells in a sheet, with the empty ones"
    return Unreadable(message, "Delete the rows and columns after the table, or save it as CSV UTF-8.")


def _sheet_to_read(reader: Reader, path: str, workbook: Any, sheet: str) -> str:
    """Return the name of the only visible sheet with data, or ``sheet``; '' if all are empty."""
    filled = [part for part in workbook.worksheets if any(map(any, _rows(part, values_only=True)))]
    names = [part.title for part in filled if part.sheet_state == "visible"]
    if sheet and sheet not in workbook.sheetnames:
        raise Unreadable(f"has no sheet {quoted(sheet)}", f"Its sheets are {', '.join(workbook.sheetnames)}.")
    if len(names) > 1 and not sheet:
        hint = f"Name the one to read: {shell_line('rag-eval', 'import', 'auto', path, '--sheet', names[0])}"
        raise Unreadable(f"has data in {len(names)} sheets: {', '.join(names)}", hint)
    name = sheet or next(iter(names), "")
    if others := [part.title for part in filled if part.title != name]:
        reader.ledger.note(path, 0, f"left out: other sheets: {', '.join(others)}")
    return name


def _text(value: Any, number_format: str) -> str:
    """Return the value of a cell as text: a date as ISO 8601, a percentage as it is shown."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) and "%" in number_format:
        positive, _, _ = number_format.partition(";")
        return f"{value:.{positive.partition('.')[2].count('0')}%}"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.15g}"  # Excel has 15 digits
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat()
    return "" if value is None else str(value).replace("_x000D_", "")  # a carriage return


def _is_as_shown(value: Any, number_format: str, text: str) -> bool:
    """Return whether a cell shows the text that is read; only numbers have formats that are not read."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or "%" in number_format:
        return True
    decimals = _DECIMALS.get(number_format)
    return number_format in ("General", "@") or (decimals is not None and text == f"{value:.{decimals}f}")


def _old_workbook(_reader: Reader, _path: str, _sheet: str) -> Iterator[str]:
    raise Unreadable("is a workbook of Excel 97 (.xls), or has a password", "Save it as .xlsx without a password.")


_FORMS: dict[bytes, Callable[[Reader, str, str], Iterator[str]]] = {
    b"PK\x03\x04": _csv_of_workbook,
    b"PAR1": _lines_of_parquet,
    b"\xd0\xcf\x11\xe0": _old_workbook,
    b"\xff\xfe": _utf_8,
    b"\xfe\xff": _utf_8,
}
"""The conversions by the first bytes of a file."""


def _without_titles(reader: Reader, path: str, _sheet: str = "") -> bytes | None:
    """Return a CSV file with blank rows in place of the titles above the names of its columns; None for other files."""
    with reader.silent().open(path) as source:
        head = source.head.decode("utf-8", "replace")
    above, titles = (0, "") if source.head.lstrip(BLANK).startswith((b"{", b"[", b"<", b"- ")) else _titles(head)
    data = reader.read(path) if above else None
    if data is None:
        return None
    if titles:
        reader.ledger.note(path, 0, f"left out: the lines above the names of the columns: {titles}")
    end = END_OF_ROW.encode() if END_OF_ROW in head else b"\n"
    return end * above + data.split(end, above)[above]


def _titles(text: str) -> tuple[int, str]:
    """Return the number of rows above the names of the columns of CSV, and their texts.

    They are rows of fewer cells than the first row with two known names of columns.
    """
    stated = _SEPARATOR.match(text)
    for delimiter in stated[1] if stated else _DELIMITERS:
        titles: list[str] = []
        table, widest, above = csv.reader(csv_lines(text), delimiter=delimiter), 0, 0
        try:
            for cells in islice(table, _FIRST_ROWS):
                width = sum(map(bool, cells))
                known = {column for form in FORMS for column in suggested(cells, form).values()}
                if width > widest and len(known) > 1:
                    return above, ", ".join(title for title in titles if title and not title.startswith("sep="))
                titles.append(one_line(" ".join(cells), 60))
                widest, above = max(width, widest), table.line_num
        except csv.Error:
            continue
    return 0, ""


def _turns_of_messages(reader: Reader, path: str, _sheet: str = "") -> bytes | None:
    """Return a record for each turn, on the line of its question, of a file with a message in each record.

    A record has the ``messages`` of its turn, and the other fields of its question and of its last message. They are in
    the order of their times if all messages of a conversation have one, otherwise in that of the file.
    """
    with reader.silent().open(path) as source:
        begin = replace(reader.silent(), contents={path: source.head})
    first = next(objects(Files(begin, [path]), path, "a record"), None)
    if first is None or _message(first[1]) is None:
        return None
    conversations: dict[str, list[tuple[int | None, int, Row]]] = {}
    for line, row in objects(Files(reader, [path]), path, "a record"):
        if (message := _message(row)) is None:
            fix = "Write user, assistant, system or tool."
            reader.ledger.problem(path, line, "", "has no known role of a message", fix)
        else:
            time = instant(row.get(_columns(tuple(row)).get("time", "")))
            conversations.setdefault(str(message.get("conversation_id")), []).append((time, line, message))
    records: list[tuple[int, Row]] = []
    for messages in conversations.values():
        times = [time for time, *_ in messages if time is not None]
        if len(times) == len(messages):
            messages = sorted(messages[::-1] if times[0] > times[-1] else messages, key=lambda item: item[0] or 0)
        elif messages[0][2]["role"] not in (*_ASKS, "system") and messages[-1][2]["role"] in _ASKS:
            hint = "Sort the messages by time, the oldest first."
            reader.ledger.problem(path, messages[0][1], "", "begins a conversation that ends with a question", hint)
        lines = {id(message): line for _, line, message in messages}
        for turn in unwrap.turns_of([message for *_, message in messages]):
            question = next((message for message in turn if message["role"] in _ASKS), None)
            if question is None:
                reader.ledger.note(path, lines[id(turn[0])], "left out: a conversation without a question")
            else:
                others = {**_other_fields(turn[-1]), **_other_fields(question)}
                records.append((lines[id(question)], {**others, "messages": turn}))
    return b"".join(_on_their_lines(sorted(records, key=lambda record: record[0]))) if records else None


def _other_fields(message: Row) -> Row:
    filled = ((name, item) for name, item in message.items() if item not in (None, "", [], {}))
    return {name: item for name, item in filled if name not in ("role", "content")}


def _on_their_lines(records: list[tuple[int, Row]]) -> Iterator[bytes]:
    written = 1
    for line, record in records:
        yield b"\n" * (line - written) + msgspec.json.encode(record) + b"\n"
        written = max(line, written) + 1


@lru_cache(maxsize=64)
def _columns(names: tuple[str, ...]) -> Mapping[str, str]:
    return suggested(list(names), "table")


def _message(row: Mapping[str, Any]) -> Row | None:
    """Return a record of one message with ``role``, ``content`` and ``conversation_id``; None for other records."""
    names = {name.casefold(): name for name in reversed(list(row))}
    sender, body = (next((names[name] for name in some if name in names), "") for some in (_ROLES, _BODIES))
    known = _columns(tuple(row))
    conversation = known.get("conversation", names.get("conversation", ""))
    message = {"role": row[sender], "content": row.get(body)} if sender else row.get(body)
    role = unwrap.role_of(message)
    is_body = body in row and known.get("question") in (None, body)  # of a gold item, the author may be a role
    if role not in unwrap.ROLES or "answer" in known or not is_body:
        return None
    others = {name: item for name, item in row.items() if name not in (sender, body, conversation, "id")}
    others |= {"message_id": row["id"]} if "id" in row else {}
    others |= {"conversation_id": row[conversation]} if conversation in row else {}
    return {**others, **unwrap.as_dict(message), "role": role}
