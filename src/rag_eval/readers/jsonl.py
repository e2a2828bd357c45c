"""JSON Lines, arrays and objects: gold items and traces as typed records, other values checked by a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from rag_eval.common.escaping import quoted
from rag_eval.common.files import Digests
from rag_eval.common.json_schema import is_valid
from rag_eval.common.paths import sidecar_of
from rag_eval.contract import Gold, Trace
from rag_eval.contract.records import known_fields, without_unknown
from rag_eval.readers import strict_json
from rag_eval.readers.problems import Contract, ProblemCollector, RowError, whole
from rag_eval.readers.source import Digest, Reader, SourceFile
from rag_eval.readers.strict_json import JsonError
from rag_eval.scoring import QuestionIndex

Row = dict[str, Any]
DUPLICATE_QID_HINT = "Give every question its own qid."
NO_QID = "Give the trace the qid of the gold item that it answers."
_ARRAY_FIELDS = ("q", "gold_ids", "answerable", "gold_citations", "gold_claim_substr")
_LINE_FIELDS = {"question", "gold_claim_substr", "gold_citations"}  # fields of JSON Lines with another name in an array
_LEAST_COMMIT = 7  # characters of a commit id in run.json
_COUNTS = ("documents", "documents_without_chunks", "chunks_attempted", "chunks_embedded", "chunks_skipped")
_DASH_OR_BLANK = re.compile(r"[\s-]")
_TYPICAL_FIELDS = {
    "gold": {"answerable", "gold_citations"},
    "trace": {"answer_json", "retrieved_ids", "answer", "chunks"},
}


def report_wrong_kind(ledger: ProblemCollector, path: str, number: int, other: str, kind: str) -> None:
    """Report once that a file is of another kind than expected."""
    hint = f"Check if gold and trace files were swapped: a {kind} file is expected here."
    ledger.problem(path, number, "", f"looks like a row of a {other} file", hint)


def looks_like(line: bytes) -> str:
    """Return the kind of row that the fields of ``line`` indicate; empty if they fit no kind."""
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
G = TypeVar("G")
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, JsonError)
_KINDS: dict[type, str] = {Gold: "gold", Trace: "trace"}


class JsonLines(Generic[R]):
    """A decoder of the lines of a file; problems and notes go into the ledger.

    In a gold set no key may be repeated, because a person signs it; in a trace the last one counts.
    """

    def __init__(self, record: type[R], reader: Reader, path: str) -> None:
        self._record: type[R] = record
        self._ledger, self._path, self._depth = reader.ledger, path, reader.limits.depth
        self._is_gold = record is Gold
        self._typed: msgspec.json.Decoder[R] = msgspec.json.Decoder(record)
        self._untyped = msgspec.json.Decoder()
        self._is_other_kind = False  # further rows would only repeat that

    def blocks(self, source: SourceFile) -> Iterator[list[R]]:
        """Yield the valid rows of a file, many at a time."""
        for first, lines in source.line_blocks():
            records = self._block(lines)
            if records is None:
                for record, _ in self._lines(first, lines):
                    yield [record]  # one by one, so that the caller's problems come before later ones
            else:
                for number, record in enumerate(records, first):
                    record.line = number
                yield records
            if self._is_other_kind:
                return

    def rows(self, source: SourceFile) -> Iterator[tuple[R, Row]]:
        """Yield the valid rows of a file, each as a record and as it was decoded."""
        for first, lines in source.line_blocks():
            yield from self._lines(first, lines)
            if self._is_other_kind:
                return

    def _block(self, lines: list[bytes]) -> list[R] | None:
        """Return the records of lines that are all valid; None if each line must be checked by itself."""
        try:
            records = list(map(self._typed.decode, lines))
        except _REFUSED:
            return None
        if not self._is_gold:
            return records
        # A key may be repeated if the lines have more quotes than their records encoded again, or an escape of a quote.
        block = b"".join(lines)
        if b"u0022" in block or block.count(b'"') != msgspec.json.encode(records).count(b'"'):
            return None
        # In these fields msgspec accepts integers of more than 64 bits.
        golds: list[Any] = records
        named = [values for gold in golds for values in (gold.meta, gold.latency_budget) if values]
        numbers = [number for values in named for number in values.values() if type(number) is not str]
        return None if any([abs(number) >= 2**63 for number in numbers]) else records

    def _lines(self, first: int, lines: list[bytes]) -> Iterator[tuple[R, Row]]:
        for number, ended in enumerate(lines, first):
            line = ended.removesuffix(b"\n")
            if not line or line.isspace():
                continue
            try:
                row = self._untyped.decode(line)
                if self._is_gold:
                    strict_json.parse(line, self._depth)
                known, unknown = without_unknown(self._record, row)
                for name in {parent.partition(".")[0] or field for parent, field in unknown}:
                    if type(row[name]) in (dict, list):
                        strict_json.check_depth(msgspec.json.encode(row[name]).decode(), self._depth, level=1)
                record = msgspec.convert(known, self._record)
            except _REFUSED as error:
                self._refuse(number, line, str(error))
                if self._is_other_kind:
                    return
                continue
            for parent, field in unknown:
                fields = known_fields(self._record, parent)
                self._ledger.unknown_field(self._path, number, parent, field, fields)
            record.line = number
            yield record, row

    def _refuse(self, number: int, line: bytes, refusal: str) -> None:
        kind = _KINDS[self._record]
        other = looks_like(line)
        if other not in ("", kind):
            report_wrong_kind(self._ledger, self._path, number, other, kind)
            self._is_other_kind = True
        elif self._ledger.full:
            self._ledger.more += 1  # one for each line, so it needs no explanation
        else:
            decoder = strict_json.DECODER if self._is_gold else strict_json.TRACE_DECODER
            _, faults = Contract(kind, self._depth).validate(line, decoder)
            for fault in faults or [RowError("", refusal)]:
                self._ledger.problem(self._path, number, fault.where, fault.message, fault.hint)


def unique(golds: Iterable[Gold], ledger: ProblemCollector, path: str, make: Callable[[Gold], G]) -> dict[str, G]:
    """Return items by qid. A repeated qid or turn, and a reference to a missing group of supports, is a problem."""
    items: dict[str, G] = {}
    turns: dict[tuple[str, int], int] = {}
    for gold in golds:
        if gold.qid in items:
            first: Any = items[gold.qid]
            message = f"{quoted(gold.qid)} is already used on line {first.line}"
            ledger.problem(path, gold.line, "/qid", message, DUPLICATE_QID_HINT)
            continue
        if gold.conversation is not None and gold.turn is not None:
            line = turns.setdefault((gold.conversation, int(gold.turn)), gold.line)
            if line != gold.line:
                message = f"turn {gold.turn} of {quoted(gold.conversation)} is already on line {line}"
                ledger.problem(path, gold.line, "/turn", message, "Number the turns of a conversation from 1.")
        # JSON Schema accepts 0.0 as an integer; Python does not accept it as an index.
        if gold.support_groups and not all(
            [type(index) is int and index < len(gold.supports or ()) for index in chain(*gold.support_groups)]
        ):
            hint = "Count the entries of supports from 0, in whole numbers."
            message = "names an entry that supports does not have"
            ledger.problem(path, gold.line, "/required_support_groups", message, hint)
            gold = replace(gold, support_groups=None)  # scoring continues until all problems are found
        items[gold.qid] = make(gold)
    return items


def read_traces(reader: Reader, path: str, digest: Digest | None = None) -> Iterator[list[Trace]]:
    """Yield the valid traces of a file, many at a time."""
    with reader.open(path, digest) as source:
        if not _is_array(reader, source):
            yield from JsonLines(Trace, reader, path).blocks(source)


def read_trace_rows(reader: Reader, path: str) -> Iterator[tuple[Trace, dict[str, Any]]]:
    """Yield the valid traces of a file, each with its row as it was decoded."""
    with reader.open(path) as source:
        if not _is_array(reader, source):
            yield from JsonLines(Trace, reader, path).rows(source)


def _is_array(reader: Reader, source: SourceFile) -> bool:
    """Return whether a trace file is an array, which is a problem."""
    if source.is_array:
        hint = "Write one trace per line; jq -c '.[]' does it."
        reader.ledger.problem(source.path, 1, "", "is a JSON array; traces are JSON Lines", hint)
    return source.is_array


def pair_finder(
    questions: QuestionIndex, ledger: ProblemCollector, path: str, *, is_complete: bool
) -> Callable[[Trace], str | None]:
    """Return a function that finds the qid of a trace of ``path``. A trace without one is a problem.

    If the gold set could not be read completely, it is no problem: the question may be missing.
    """

    def find(trace: Trace) -> str | None:
        qid, wrong = questions.pair(trace, lambda line, message: ledger.note(path, line, message))
        if qid is None and is_complete:
            ledger.problem(path, trace.line, "", wrong, NO_QID)
        return qid

    return find


def paired_traces(reader: Reader, golds: dict[str, Gold], path: str) -> Iterator[Trace]:
    """Yield the traces of a file that answer a gold item, each under its qid."""
    is_complete = not reader.ledger.problems
    find = pair_finder(QuestionIndex(golds), reader.ledger, path, is_complete=is_complete)
    for trace in chain.from_iterable(read_traces(reader, path)):
        qid = find(trace)
        if qid is not None:
            trace.qid = qid
            yield trace


def read_rows(reader: Reader, source: SourceFile, schema: str) -> Iterator[tuple[int, Row]]:
    """Yield line and row of each line that is valid under a schema; problems go into the ledger."""
    contract, ledger = Contract(schema, reader.limits.depth), reader.ledger
    for number, line in source.lines():
        row, faults = contract.validate(line)
        if row is not None:
            contract.note_unknown_fields(row, ledger, source.path, number)
            yield number, row
        elif (other := looks_like(line)) not in ("", schema):
            report_wrong_kind(ledger, source.path, number, other, schema)
            return
        else:
            for fault in faults:
                ledger.problem(source.path, number, fault.where, fault.message, fault.hint)


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
            if ledger.full and not is_valid(contract.schema, value, contract.schema):
                ledger.more += 1  # one for each element, so it needs no explanation
                continue
            faults = contract.faults(value)
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


def read_run_json(reader: Reader, trace: str, digests: Digests | None = None) -> dict[str, Any] | None:
    """Return the run.json next to the file of traces ``trace``; None if there is none."""
    path = sidecar_of(trace)
    if trace in reader.contents or not reader.has(path):
        return None
    return read_sidecar(reader, path, digests.of("run", path) if digests else None)


def read_sidecar(reader: Reader, path: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the content of a run.json, or None with the problems in the ledger."""
    about = read_json(reader, path, "run", digest)
    commit = about.get("system_commit") if about else None
    if commit and commit.strip() and max(map(len, _DASH_OR_BLANK.split(commit))) < _LEAST_COMMIT:
        message = f"{quoted(commit)} is shorter than {_LEAST_COMMIT} characters, which is ambiguous"
        reader.ledger.problem(path, 0, "/system_commit", message, "Write what this prints: git rev-parse HEAD")
        return None
    if about and (index := about.get("index")):
        about["index"] = {name: whole(value) if name in _COUNTS else value for name, value in index.items()}
    return about


def read_json(reader: Reader, path: str, schema: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the value of a file that is one JSON object of a schema, or None with the problems in the ledger."""
    data = reader.read(path, digest)
    return None if data is None else decode_exactly(reader, path, data, Contract(schema, reader.limits.depth))


def decode_exactly(reader: Reader, path: str, data: bytes, contract: Contract) -> dict[str, Any] | None:
    """Return the JSON object of ``data``, or None with the problems in the ledger."""
    try:
        value: dict[str, Any] = strict_json.parse(data, contract.depth)
    except strict_json.JsonError as error:
        reader.ledger.problem(path, error.line, error.where, error.message, error.hint)
        return None
    faults = contract.faults(value)
    for fault in faults:
        reader.ledger.problem(path, 0, fault.where, fault.message, fault.hint)
    return None if faults else value
