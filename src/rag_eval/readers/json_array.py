"""A file that is one JSON array, as some gold sets are: each element with its place and the line it begins on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from rag_eval.common.escaping import quoted
from rag_eval.readers import strict_json
from rag_eval.readers.row_kinds import OWN_QID, foreign, kind_of_row
from rag_eval.readers.schema_validation import Contract

if TYPE_CHECKING:
    from rag_eval.readers.error_messages import RowError
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.source import Reader, Source

    Row = dict[str, Any]

_OWN = ("q", "gold_ids", "answerable", "gold_citations", "gold_claim_substr")
_OF_LINES = {"question", "gold_claim_substr", "gold_citations"}  # what JSON Lines call what an array calls otherwise
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
    contract, ledger, taken = Contract(schema, reader.limits.depth), reader.ledger, dict[str, str]()
    try:
        for place, (line, value) in enumerate(elements(data, reader.limits.depth)):
            if ledger.full and not contract.accepts(value):
                ledger.another(line)  # it is only counted, so that it needs no explanation
                continue
            faults = contract.faults(value)
            own = schema == "gold-array"
            if own and faults and _of_another_form(ledger, source.path, line, value):
                return
            if own and not faults:
                faults += _taken(taken, value["qid"], f"line {line}, at /{place}/qid")
            for fault in faults:
                ledger.problem(source.path, line, f"/{place}{fault.where}", fault.message, fault.hint)
            if not faults:
                contract.note_unknown_fields(value, ledger, source.path, line)
                yield line, value
    except strict_json.JsonError as error:
        ledger.problem(source.path, error.line, error.where, error.message, error.hint)


def _of_another_form(ledger: Ledger, path: str, line: int, value: Any) -> bool:
    """Whether an element that is wrong is a trace, or an item as JSON Lines have them: that is said once for all."""
    if kind_of_row(value) == "trace":
        foreign(ledger, path, line, "trace", "gold")
        return True
    if isinstance(value, dict) and _OF_LINES & value.keys() and "q" not in value:
        hint = "Write one item a line; jq -c '.[]' does it."
        ledger.problem(path, line, "", "is a JSON array of items with the fields that JSON Lines have", hint)
        return True
    return False


def _taken(taken: dict[str, str], qid: str, place: str) -> Iterator[RowError]:
    """An element that names a qid again; looked for here, for all of them may stand on one line."""
    if (first := taken.setdefault(qid, place)) is not place:
        from rag_eval.readers.error_messages import RowError

        yield RowError("/qid", f"{quoted(qid)} is already used on {first}", OWN_QID)


def elements(data: bytes, depth: int) -> Iterator[tuple[int, Any]]:
    """Line and value of each element of the array in ``data``; :class:`~strict_json.JsonError` ends it."""
    text = strict_json.decode(data)
    strict_json.check_depth(text, depth + 1)
    position, line, counted = _after(text, _skip(text, 0), "["), 1, 0
    if text[position : position + 1] == "]":
        return _end(text, position + 1)
    for place in count():
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = strict_json.DECODER.raw_decode(text, position)
            strict_json.check_surrogates(value)
        except json.JSONDecodeError as error:
            raise strict_json.explain(error) from None
        except strict_json.JsonError as error:
            error.line, error.element = line, f"/{place}"
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
