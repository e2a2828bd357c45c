"""Gold as one JSON array: its elements with their lines, and the exact bytes of the items of any gold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.readers import strict_json
from rag_eval.readers.jsonl import DUPLICATE_QID_HINT, kind_of_row, report_wrong_kind
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.schema_validation import Contract, RowError
from rag_eval.readers.source import BOM, DEEPEST, Reader, SourceFile

Row = dict[str, Any]
_ARRAY_FIELDS = ("q", "gold_ids", "answerable", "gold_citations", "gold_claim_substr")
_LINE_FIELDS = {"question", "gold_claim_substr", "gold_citations"}  # fields of JSON Lines with another name in an array


def is_golden(head: bytes) -> bool:
    """Return whether an array begins like a RAG server's golden set: with a question, and without the project's labels.

    If the first element is longer than ``head``, the text of ``head`` decides.
    """
    text = head.decode("utf-8", "ignore").lstrip()
    try:
        first, _ = json.JSONDecoder().raw_decode(text[1:].lstrip())
    except (ValueError, RecursionError):
        return '"question"' in text and not any([f'"{name}"' in text for name in _ARRAY_FIELDS])
    return isinstance(first, dict) and "question" in first and first.keys().isdisjoint(_ARRAY_FIELDS)


def array_rows(reader: Reader, source: SourceFile, schema: str = "gold-array") -> Iterator[tuple[int, Row]]:
    """Yield line and row of each valid element; problems go into the ledger."""
    data = source.whole()
    if data is None:
        return
    contract, ledger, lines = Contract(schema, reader.limits.depth), reader.ledger, dict[str, tuple[int, int]]()
    is_gold = schema == "gold-array"
    try:
        for index, (line, _, value) in enumerate(strict_json.elements(data, reader.limits.depth)):
            faults = contract.faults(value)
            if ledger.full and faults:
                ledger.count_problem()
                continue
            if is_gold and faults and _report_other_form(ledger, source.path, line, value):
                return
            if is_gold and not faults and (first := lines.setdefault(value["qid"], (line, index))) != (line, index):
                # Checked here, because all elements may be on one line.
                message = f"{quoted(value['qid'])} is already used on line {first[0]}, at /{first[1]}/qid"
                faults = [RowError("/qid", message, DUPLICATE_QID_HINT)]
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


def is_array(blob: bytes) -> bool:
    """Return whether a gold blob is a JSON array: its first non-blank byte is ``[``."""
    return blob.removeprefix(BOM).lstrip()[:1] == b"["


def sources(blob: bytes) -> list[tuple[int, bytes]]:
    """Return the exact bytes of each item of a gold blob, with its line number; blank lines are no items.

    In an element on several lines, the line endings are git's, not those of a checkout. An invalid array is returned in
    one piece: parsing it reports the problem.
    """
    body = blob.removeprefix(BOM)
    if not is_array(blob):
        lines = enumerate(body.split(b"\n"), 1)
        return [(number, line.removesuffix(b"\r")) for number, line in lines if line.strip()]
    try:
        items = [(line, text.replace("\r\n", "\n").encode()) for line, text, _ in strict_json.elements(body, DEEPEST)]
    except strict_json.JsonError:
        items = []
    return items or [(1, body.strip())]
