"""JSON Lines into typed records, decoded and checked in blocks; only a refused line is explained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, Trace
from rag_eval.contract.fields import known_fields, without_unknown
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import SourceFile
from rag_eval.readers.strict_json import DECODER, TRACE_DECODER, has_large_integer, nesting, repeated_key

Row = dict[str, Any]
DUPLICATE_QID_HINT = "Give every question its own qid."
_TYPICAL_FIELDS = {
    "gold": {"answerable", "gold_citations"},
    "trace": {"answer_json", "retrieved_ids", "answer", "chunks"},
}


def report_wrong_kind(ledger: ProblemCollector, path: str, number: int, other: str, kind: str) -> None:
    """Report once that a file is of another kind than expected."""
    hint = f"Check if gold and trace files were swapped: a {kind} file is expected here."
    ledger.problem(path, number, "", f"looks like a row of a {other} file", hint)
    ledger.foreign = path


def looks_like(line: bytes) -> str:
    """Return the kind of row that the fields of ``line`` indicate; empty if they fit no kind."""
    import json

    try:
        return kind_of_row(json.loads(line))
    except (ValueError, RecursionError):
        return ""


def kind_of_row(row: Any) -> str:
    """Return the kind that the fields of a decoded row indicate; empty if they fit no kind."""
    if not isinstance(row, dict):
        return ""
    counts = {kind: len(fields & row.keys()) for kind, fields in _TYPICAL_FIELDS.items()}
    if not all(counts.values()) and any(counts.values()):
        return max(counts, key=lambda kind: counts[kind])
    return ""


R = TypeVar("R", Gold, Trace)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_KINDS: dict[type, str] = {Gold: "gold", Trace: "trace"}


class JsonLines(Generic[R]):
    """A decoder of the lines of a file; problems and notes go into the ledger.

    In a gold set no key may be repeated, because a person signs it; in a trace the last one counts.
    """

    def __init__(self, record: type[R], ledger: ProblemCollector, path: str, depth: int) -> None:
        self._record: type[R] = record
        self._ledger, self._path, self._depth = ledger, path, depth
        self._unique_keys = record is Gold
        self._typed: msgspec.json.Decoder[R] = msgspec.json.Decoder(record)
        self._untyped = msgspec.json.Decoder()
        self._has_unknown_fields = False

    def blocks(self, source: SourceFile) -> Iterator[list[R]]:
        """Yield the valid rows of a file, many at a time."""
        for first, lines in source.line_blocks():
            records = self._block(first, lines)
            if records is None:
                for record, _ in self._lines(first, lines):
                    yield [record]  # one by one, so that the caller's problems come before later ones
            else:
                for number, record in enumerate(records, first):
                    record.line = number
                yield records
            if self._ledger.foreign == self._path:
                return

    def rows(self, source: SourceFile) -> Iterator[tuple[R, dict[str, Any]]]:
        """Yield the valid rows of a file, each as a record and as it was decoded."""
        for first, lines in source.line_blocks():
            for record, line in self._lines(first, lines):
                yield record, self._untyped.decode(line)
            if self._ledger.foreign == self._path:
                return

    def _block(self, first: int, lines: list[bytes]) -> list[R] | None:
        """Return the records of lines that are all valid; None if each line must be checked by itself."""
        try:
            if self._has_unknown_fields:
                decoded = list(map(self._untyped.decode, lines))
                records = self._with_unknown_fields(first, decoded)
            else:
                decoded = records = list(map(self._typed.decode, lines))
        except _REFUSED:
            return None
        return None if self._unique_keys and _may_repeat_keys(lines, decoded) else records

    def _with_unknown_fields(self, first: int, rows: list[Any]) -> list[R]:
        cleaned = [without_unknown(self._record, row) for row in rows]
        for row, (_, unknown) in zip(rows, cleaned, strict=True):
            self._check_unknown(row, unknown)
        records = msgspec.convert([known for known, _ in cleaned], list[self._record])  # type: ignore[name-defined]
        for number, (_, unknown) in enumerate(cleaned, first):
            self._note_unknown(number, unknown)
        return records

    def _lines(self, first: int, lines: list[bytes]) -> Iterator[tuple[R, bytes]]:
        """Yield each valid line of a block by itself."""
        for number, ended in enumerate(lines, first):
            line = ended.removesuffix(b"\n")
            if not line or line.isspace():
                continue
            record = self._line(number, line)
            if record is not None:
                record.line = number
                yield record, line
            elif self._ledger.foreign == self._path:
                return

    def _line(self, number: int, line: bytes) -> R | None:
        try:
            return self._checked(self._typed.decode(line), line)
        except _REFUSED as error:
            refusal = str(error)
        try:
            row = self._untyped.decode(line)
            known, unknown = without_unknown(self._record, row)
            self._check_unknown(row, unknown)
            record = self._checked(msgspec.convert(known, self._record), line)
        except _REFUSED as error:
            refusal = refusal if "unknown field" not in refusal else str(error)
        else:
            self._has_unknown_fields = True
            self._note_unknown(number, unknown)
            return record
        self._refuse(number, line, refusal)
        return None

    def _check_unknown(self, row: dict[str, Any], unknown: list[tuple[str, str]]) -> None:
        """Refuse unknown fields that nest deeper than allowed, and in gold those with integers beyond 64 bits."""
        for name in {parent.partition(".")[0] or field for parent, field in unknown}:
            if type(row[name]) in (dict, list) and nesting(row[name]) >= self._depth:
                raise msgspec.ValidationError(f"nested deeper than {self._depth} levels")
            if self._unique_keys and has_large_integer(row[name]):
                raise msgspec.ValidationError("an integer of more than 64 bits")

    def _checked(self, record: R, line: bytes) -> R:
        if self._unique_keys and (key := repeated_key(line)):
            raise msgspec.ValidationError(f"the key {quoted(key)} is repeated")
        return record

    def _refuse(self, number: int, line: bytes, refusal: str) -> None:
        kind = _KINDS[self._record]
        other = looks_like(line)
        if other not in ("", kind):
            report_wrong_kind(self._ledger, self._path, number, other, kind)
        elif self._ledger.full:
            self._ledger.count_problem(number)  # one for each line, so it needs no explanation
        else:
            from rag_eval.readers.schema_validation import Contract, RowError

            decoder = DECODER if self._unique_keys else TRACE_DECODER
            _, faults = Contract(kind, self._depth).validate(line, decoder)
            for fault in faults or [RowError("", refusal)]:
                self._ledger.problem(self._path, number, fault.where, fault.message, fault.hint)

    def _note_unknown(self, number: int, fields: list[tuple[str, str]]) -> None:
        for parent, field in fields:
            name = f"{parent}.{field}" if parent else field
            self._ledger.unknown_field(self._path, number, name, field, known_fields(self._record, parent))


def _may_repeat_keys(lines: list[bytes], decoded: list[Any]) -> bool:
    """Return whether a key may be repeated: then the lines have more quotes than their records encoded again."""
    block = b"".join(lines)
    if b"u0022" in block:  # an escape that is written as another one
        return True
    return block.count(b'"') != msgspec.json.encode(decoded).count(b'"')
