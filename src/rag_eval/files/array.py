"""A file that is one JSON array, as some gold sets are: each element with the line it begins on."""

from __future__ import annotations

import json
import re

from rag_eval.files import strict_json
from rag_eval.files.contract import Contract
from rag_eval.files.kinds import foreign, kind_of_row, unknown_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rag_eval.files.source import Reader, Source

    Row = dict[str, Any]

_OWN = ("q", "gold_ids", "answerable", "gold_citations")
_SPACE = re.compile(r"[ \t\r\n]*")


def is_golden(head: bytes) -> bool:
    """Whether an array begins as a RAG server's golden set does: its first element has a question and no label of ours.

    Of an element that goes beyond the ``head``, the text of the head tells.
    """
    text = head.decode("utf-8", "ignore").lstrip()
    try:
        first, _ = json.JSONDecoder().raw_decode(text, _skip(text, 1))
    except (ValueError, RecursionError):
        return '"question"' in text and not any([f'"{name}"' in text for name in _OWN])
    return isinstance(first, dict) and "question" in first and first.keys().isdisjoint(_OWN)


def array_rows(reader: Reader, source: Source, schema: str = "gold-array") -> Iterator[tuple[int, Row]]:
    """Line and row of each valid element; what is wrong goes into the ledger."""
    data = source.whole()
    if data is None:
        return
    contract, ledger = Contract(schema, reader.limits.depth), reader.ledger
    try:
        for line, value in elements(data, reader.limits.depth):
            findings = list(contract.findings(value))
            if findings and schema == "gold-array" and kind_of_row(value) == "trace":
                foreign(ledger, source.path, line, "trace", "gold")
                return
            for finding in findings:
                ledger.problem(source.path, line, finding.where, finding.message, finding.hint)
            if not findings:
                ledger.fields(source.path, line, tuple(value), unknown_fields(contract, value))
                yield line, value
    except strict_json.JsonError as error:
        ledger.problem(source.path, error.line, error.where, error.message, error.hint)


def elements(data: bytes, depth: int) -> Iterator[tuple[int, Any]]:
    """Line and value of each element of the array in ``data``; :class:`~strict_json.JsonError` ends it."""
    text = strict_json.decode(data)
    strict_json.check_depth(text, depth + 1)
    position, line, counted = _after(text, _skip(text, 0), "["), 1, 0
    if text[position : position + 1] == "]":
        return _end(text, position + 1)
    while True:
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = strict_json.DECODER.raw_decode(text, position)
            strict_json.check_surrogates(value)
        except json.JSONDecodeError as error:
            raise strict_json.explain(error) from None
        except strict_json.JsonError as error:
            error.line = line
            raise
        yield line, value
        position = _skip(text, position)
        if text[position : position + 1] == "]":
            return _end(text, position + 1)
        position = _after(text, position, ",")


def _end(text: str, position: int) -> None:
    rest = _skip(text, position)
    if rest < len(text):
        raise _expected(text, rest, "nothing after the array")


def _after(text: str, position: int, wanted: str) -> int:
    if text[position : position + 1] != wanted:
        raise _expected(text, position, f"'{wanted}'" if wanted == "[" else "',' or ']'")
    return _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _expected(text: str, position: int, wanted: str) -> strict_json.JsonError:
    return strict_json.explain(json.JSONDecodeError(f"expecting {wanted}", text, position))
