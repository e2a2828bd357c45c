"""JSON Lines into typed records: decoded and checked by the block; a refused line, and only that, is explained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, Trace
from rag_eval.contract.unknown_fields import known_fields, without_unknown
from rag_eval.readers.problems import Ledger
from rag_eval.readers.row_kinds import foreign, looks_like
from rag_eval.readers.source import Source
from rag_eval.readers.strict_json import DECODER, TRACE_DECODER, nesting, repeated_key

R = TypeVar("R", Gold, Trace)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_KINDS: dict[type, str] = {Gold: "gold", Trace: "trace"}


class JsonLines(Generic[R]):
    """Decodes the lines of a file; problems and notes go into the ledger.

    In a gold set no key may be repeated, as a person signs what is there; in a trace the last one counts.
    """

    def __init__(self, record: type[R], ledger: Ledger, path: str, depth: int) -> None:
        self._record: type[R] = record
        self._ledger, self._path, self._depth = ledger, path, depth
        self._unique_keys = record is Gold
        self._typed: msgspec.json.Decoder[R] = msgspec.json.Decoder(record)
        self._untyped = msgspec.json.Decoder()
        self._has_unknown_fields = False

    def blocks(self, source: Source) -> Iterator[list[R]]:
        """Yield the good rows of a file, many at a time."""
        for first, lines in source.line_blocks():
            records = self._block(first, lines)
            if records is None:
                for record, _ in self._lines(first, lines):
                    yield [record]  # singly, so that what its reader finds wrong stands before problems further down
            else:
                for number, record in enumerate(records, first):
                    record.line = number
                yield records
            if self._ledger.foreign == self._path:
                return

    def rows(self, source: Source) -> Iterator[tuple[R, dict[str, Any]]]:
        """Yield the good rows of a file, each as a record and as it was decoded."""
        for first, lines in source.line_blocks():
            for record, line in self._lines(first, lines):
                yield record, self._untyped.decode(line)
            if self._ledger.foreign == self._path:
                return

    def _block(self, first: int, lines: list[bytes]) -> list[R] | None:
        """The records of lines that are all good rows; None if only a look at each can tell."""
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
        found = [without_unknown(self._record, row) for row in rows]
        for row, (_, unknown) in zip(rows, found, strict=True):
            self._check_depth(row, unknown)
        records = msgspec.convert([known for known, _ in found], list[self._record])  # type: ignore[name-defined]
        for number, (_, unknown) in enumerate(found, first):
            self._note_unknown(number, unknown)
        return records

    def _lines(self, first: int, lines: list[bytes]) -> Iterator[tuple[R, bytes]]:
        """Each good line of a block by itself."""
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
            self._check_depth(row, unknown)
            record = self._checked(msgspec.convert(known, self._record), line)
        except _REFUSED as error:
            refusal = refusal if "unknown field" not in refusal else str(error)
        else:
            self._has_unknown_fields = True
            self._note_unknown(number, unknown)
            return record
        self._refuse(number, line, refusal)
        return None

    def _check_depth(self, row: dict[str, Any], unknown: list[tuple[str, str]]) -> None:
        """Refuse a row that nests deeper than allowed: only what no record has can."""
        for name in {place or field for place, field in unknown}:
            if type(row[name]) in (dict, list) and nesting(row[name]) >= self._depth:
                raise msgspec.ValidationError(f"nested deeper than {self._depth} levels")

    def _checked(self, record: R, line: bytes) -> R:
        if self._unique_keys and (key := repeated_key(line)):
            raise msgspec.ValidationError(f"the key {quoted(key)} is repeated")
        return record

    def _refuse(self, number: int, line: bytes, refusal: str) -> None:
        kind = _KINDS[self._record]
        other = looks_like(line)
        if other not in ("", kind):
            foreign(self._ledger, self._path, number, other, kind)
        elif self._ledger.full:
            self._ledger.another(number)  # one for each line, so that it needs no explanation
        else:
            from rag_eval.readers.error_messages import RowError
            from rag_eval.readers.explain import explain_line

            decoder = DECODER if self._unique_keys else TRACE_DECODER
            for fault in explain_line(line, kind, self._depth, decoder) or [RowError("", refusal)]:
                self._ledger.problem(self._path, number, fault.where, fault.message, fault.hint)

    def _note_unknown(self, number: int, fields: list[tuple[str, str]]) -> None:
        for place, field in fields:
            name = f"{place}.{field}" if place else field
            self._ledger.unknown_field(self._path, number, name, field, known_fields(self._record, place))


def _may_repeat_keys(lines: list[bytes], decoded: list[Any]) -> bool:
    """Whether a key may be repeated: written again, without defaults, the lines then have fewer quotes."""
    block = b"".join(lines)
    if b"u0022" in block:  # an escape that is written as another one
        return True
    return block.count(b'"') != msgspec.json.encode(decoded).count(b'"')
