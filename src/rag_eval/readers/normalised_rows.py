"""Tables below titles, and logs with a message in each row, as the tables and records that importers read."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from rag_eval.common.escaping import one_line
from rag_eval.importers import Row, unwrap
from rag_eval.importers.columns import FORMS, suggested
from rag_eval.importers.documents import BLANK, END_OF_ROW, csv_lines, objects
from rag_eval.importers.table import instant
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.source import Reader

_DELIMITERS, _FIRST_ROWS = ",;\t", 20
_SEPARATOR = re.compile(r'\s*"?sep=([,;\t])')  # Excel writes it before the names of the columns
_ROLES, _BODIES = ("role", "sender", "from", "speaker", "author"), ("content", "message", "text", "value", "body")
_ASKS = ("user", "human")  # roles


def without_titles(reader: Reader, path: str, _sheet: str = "") -> bytes | None:
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


def turns_of_messages(reader: Reader, path: str, _sheet: str = "") -> bytes | None:
    """Return a record for each turn, on the line of its question, of a file with a message in each record.

    A record has the ``messages`` of its turn, and the other fields of its question and of its last message. They are in
    the order of their times if all messages of a conversation have one, otherwise in that of the file.
    """
    with reader.silent().open(path) as source:
        begin = reader.silent()._replace(contents={path: source.head})
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
                records.append(
                    (lines[id(question)], {**_other_fields(turn[-1]), **_other_fields(question), "messages": turn})
                )
    return b"".join(_on_their_lines(sorted(records, key=lambda record: record[0]))) if records else None


def _other_fields(message: Row) -> Row:
    return {name: item for name, item in message.items() if name not in ("role", "content") and item is not None}


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
