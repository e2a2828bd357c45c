"""Gold as one JSON array: its elements with their lines, and the exact bytes of the items of any gold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.readers import strict_json
from rag_eval.readers.jsonl import DUPLICATE_QID_HINT, kind_of_row, report_wrong_kind
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.schema_validation import Contract, RowError
from rag_eval.readers.source import Reader, SourceFile

Row = dict[str, Any]
_ARRAY_FIELDS = ("q", "gold_ids", "answerable", "gold_citations", "gold_claim_substr")
_LINE_FIELDS = {"question", "gold_claim_substr", "gold_citations"}  # fields of JSON Lines with another name in an array
_SPACE = re.compile(r"[ \t\r\n]*")


def is_golden(head: bytes) -> bool:
    """Return whether an array begins like a RAG server's golden set: with a question, and without the project's labels.

    If the first element is longer than ``head``, the text of ``head`` decides.
    """
    text = head.decode("utf-8", "ignore").lstrip()
    try:
        first, _ = json.JSONDecoder().raw_decode(text, _skip(text, 1))
    except (ValueError, RecursionError):
        return '"question"' in text and not any([f'"{name}"' in text for name in _ARRAY_FIELDS])
    return isinstance(first, dict) and "question" in first and first.keys().isdisjoint(_ARRAY_FIELDS)


def array_rows(reader: Reader, source: SourceFile, schema: str = "gold-array") -> Iterator[tuple[int, Row]]:
    """Yield line and row of each valid element; problems go into the ledger."""
    data = source.whole()
    if data is None:
        return
    contract, ledger, taken = Contract(schema, reader.limits.depth), reader.ledger, dict[str, str]()
    try:
        for index, (line, value) in enumerate(elements(data, reader.limits.depth)):
            faults = contract.faults(value)
            if ledger.full and faults:
                ledger.count_problem(line)
                continue
            is_gold = schema == "gold-array"
            if is_gold and faults and _report_other_form(ledger, source.path, line, value):
                return
            if is_gold and not faults:
                faults += _duplicate_qid(taken, value["qid"], f"line {line}, at /{index}/qid")
            for fault in faults:
                ledger.problem(source.path, line, f"/{index}{fault.where}", fault.message, fault.hint)
            if not faults:
                contract.note_unknown_fields(value, ledger, source.path, line)
                yield line, value
    except strict_json.JsonError as error:
        ledger.problem(source.path, error.line, error.where, error.message, error.hint)


def _report_other_form(ledger: ProblemCollector, path: str, line: int, value: Any) -> bool:
    """Report once that an invalid element is a trace or an item of JSON Lines; return whether it is."""
    if kind_of_row(value) == "trace":
        report_wrong_kind(ledger, path, line, "trace", "gold")
        return True
    if isinstance(value, dict) and _LINE_FIELDS & value.keys() and "q" not in value:
        hint = "Write one item per line; jq -c '.[]' does it."
        ledger.problem(path, line, "", "is a JSON array, but its items have the fields of JSON Lines", hint)
        return True
    return False


def _duplicate_qid(taken: dict[str, str], qid: str, position: str) -> Iterator[RowError]:
    """Yield a fault if a qid is used twice; checked here because all elements may be on one line."""
    if (first := taken.setdefault(qid, position)) is not position:
        from rag_eval.readers.schema_validation import RowError

        yield RowError("/qid", f"{quoted(qid)} is already used on {first}", DUPLICATE_QID_HINT)


def elements(data: bytes, depth: int) -> Iterator[tuple[int, Any]]:
    """Yield line and value of each element of the array in ``data``; :class:`~strict_json.JsonError` ends it."""
    text = strict_json.decode(data)
    strict_json.check_depth(text, depth + 1)
    position, line, counted = _after(text, _skip(text, 0), "["), 1, 0
    if text[position : position + 1] == "]":
        return _end(text, position + 1)
    for index in count():
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = strict_json.DECODER.raw_decode(text, position)
            strict_json.check_surrogates(value)
        except json.JSONDecodeError as error:
            raise strict_json.explain(error) from None
        except strict_json.JsonError as error:
            inner = strict_json.number_pointer(text, position) if isinstance(error, strict_json.NumberError) else ""
            error.line, error.element = line, f"/{index}{inner}"
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
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _expected(text: str, position: int, wanted: str) -> strict_json.JsonError:
    return strict_json.explain(json.JSONDecodeError(f"expecting {wanted}", text, position))


_BOM = b"\xef\xbb\xbf"


def is_array(blob: bytes) -> bool:
    """Return whether a gold blob is a JSON array: its first non-blank byte is ``[``."""
    return blob.removeprefix(_BOM).lstrip()[:1] == b"["


def sources(blob: bytes) -> list[tuple[int, bytes]]:
    """Return the exact bytes of each item of a gold blob, with its line number; blank lines are no items.

    In an element on several lines, the line endings are git's, not those of a checkout. An invalid array is returned in
    one piece: parsing it reports the problem.
    """
    body = blob.removeprefix(_BOM)
    if is_array(blob):
        return _elements(body) or [(1, body.strip())]
    lines = enumerate(body.split(b"\n"), 1)
    return [(number, line.removesuffix(b"\r")) for number, line in lines if line.strip()]


def _elements(body: bytes) -> list[tuple[int, bytes]] | None:
    """Return the elements of a JSON array as written; None if it is not a valid array."""
    scan, blank = json.JSONDecoder().raw_decode, re.compile(r"[ \t\n\r]*")
    try:
        text = body.decode("utf-8")
        items, line, seen, at = [], 1, 0, text.index("[") + 1
        while True:
            start = blank.match(text, at).end()  # type: ignore[union-attr]
            end = scan(text, start)[1]
            line, seen = line + text.count("\n", seen, start), start
            items.append((line, text[start:end].replace("\r\n", "\n").encode("utf-8")))
            at = blank.match(text, end).end()  # type: ignore[union-attr]
            if text[at] != ",":
                break
            at += 1
    except (ValueError, IndexError, RecursionError):
        return None
    return items if text[at] == "]" and not text[at + 1 :].strip() else None
