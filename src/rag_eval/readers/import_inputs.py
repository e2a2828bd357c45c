"""Files of importers, read strictly, and the rows that importers make of them, with all problems in the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from rag_eval.common.progress import Watch
from rag_eval.contract import Gold
from rag_eval.errors import Problem
from rag_eval.importers import IMPORTERS, Account, Numbered, Recognised, detect, rows_of, written
from rag_eval.readers.jsonl import array_rows, read_json, read_rows, unique
from rag_eval.readers.problems import Contract, Unreadable
from rag_eval.readers.source import Digest, Reader, SourceFile, refuse_outside, too_many_lines

Row = dict[str, Any]


class Files:
    """The files of an importer; ``opened`` is the source of the first path, if it is open.

    ``watch`` receives the size of each block that is read.
    """

    def __init__(
        self, reader: Reader, paths: Sequence[str], opened: SourceFile | None = None, watch: Watch | None = None
    ) -> None:
        self.paths, self._watch = paths, watch
        self.place = paths[0], 0
        self._reader, self._opened = reader, opened
        self.problem = reader.ledger.problem
        self._digests: dict[str, Any] = {}

    @property
    def problems(self) -> int:
        """Return the number of problems so far."""
        return self._reader.ledger.count

    def lines(self, path: str) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of each line that is not blank, however long it is."""
        limits = self._reader.limits
        reader = replace(self._reader, limits=replace(limits, line_mib=limits.whole_mib))
        with reader.open(path, self._new_digest(path)) as source:
            yield from source.lines()

    def blocks(self, path: str, *, shown: bool = True) -> Iterator[bytes]:
        """Yield the bytes of a file, decompressed, as they are read; ``shown`` if they count as progress."""
        lines = 0
        with self._reader.open(path, self._new_digest(path)) as source:
            for block in source.blocks():
                yield block
                if shown and self._watch:
                    self._watch.advance(len(block))
                lines += block.count(b"\n")
                if lines > self._reader.limits.lines:
                    return self._reader.ledger.problem(path, *too_many_lines(self._reader.limits))

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file, decompressed; None with a problem if it is unreadable."""
        return self._reader.read(path, self._new_digest(path))

    def rows(self, path: str, schema: str) -> Numbered:
        """Yield the rows of a JSON Lines file."""
        with self._reader.open(path, self._new_digest(path)) as source:
            yield from read_rows(self._reader, source, schema)

    def elements(self, path: str, schema: str) -> Numbered:
        """Yield the elements of a file that is one JSON array."""
        with self._opened or self._reader.open(path, self._new_digest(path)) as source:
            yield from array_rows(self._reader, source, schema)

    def value(self, path: str, schema: str) -> Row | None:
        """Return the value of a file that is one JSON object."""
        return read_json(self._reader, path, schema, self._new_digest(path))

    def names(self, folder: str) -> list[str]:
        """Return the names of the visible files of a folder, sorted."""
        try:
            if self._reader.root:  # a named folder may be anywhere
                refuse_outside(folder, self._reader.root)
            return sorted(path.name for path in Path(folder).iterdir() if not path.name.startswith("."))
        except Unreadable as error:
            self.problem(folder, 0, "", error.message, error.hint)
        except OSError as error:
            message = f"cannot be listed: {(error.strerror or 'unknown reason').lower()}"
            self.problem(folder, 0, "", message, "Name a folder of label files.")
        return []

    def digest(self, path: str) -> str:
        """Return sha256, in hex, of a file that was read."""
        return str(self._digests[path].hexdigest())

    def listing(self) -> bytes:
        """Return a line for each file that was read, as ``sha256sum`` prints it, sorted by name."""
        by_name = sorted((os.path.basename(path), path) for path in self._digests)  # noqa: PTH119 - Path drops a slash at the end
        return "".join(f"{self.digest(path)}  {name}\n" for name, path in by_name).encode()

    def _new_digest(self, path: str) -> Digest:
        digest = self._digests[path] = sha256()
        return digest


def foreign_gold(
    reader: Reader, path: str, form: str, digest: Digest | None = None, opened: SourceFile | None = None
) -> Iterator[tuple[Gold, Row]]:
    """Yield each item of a foreign format with its gold row; fields that are dropped are notes.

    The digest of a folder is that of its :meth:`Files.listing`.
    """
    files, account = Files(reader, [path], opened), Account()
    for line, row in rows_of(form, files, account):
        yield Gold.from_row(row, line), row
    for dropped in account.dropped_lines:
        reader.ledger.note(path, 0, dropped)
    if digest is not None:
        digest.update(files.listing())


def recognised(reader: Reader, path: str) -> Recognised | None:
    """Recognise the format of a file; return None for an unknown one, with a problem if it is empty or unreadable."""
    with reader.open(path) as source:
        if source.head.strip() not in (b"", b"[]"):
            return detect(source.head)
    if source.is_open:
        reader.ledger.problem(path, 0, "", "is empty", "Export it again.")
    return None


_OWN_FIELDS = {"gold": b'"gold_claim_substr"', "trace": b'"answer_json"'}


def export_problem(reader: Reader, path: str, kind: Literal["gold", "trace"]) -> Problem | None:
    """Return one problem with the command that converts a file; None if it is no known export of another tool."""
    with reader.silent().open(path) as source:
        # Rows with this field are the project's own, even if they also have a key of another tool.
        form = None if _OWN_FIELDS[kind] in source.head else detect(source.head)
    name = getattr(form, kind) if form else ""
    if not form or not name or IMPORTERS[name].direct:  # other formats are read directly
        return None
    out = "eval/gold.jsonl" if kind == "gold" else "runs/trace.jsonl"
    hint = f"Convert it: rag-eval import {name} {path} --out {out}"
    if path.startswith("<"):  # rows in memory
        hint = f"Write the rows to a file, such as rows.jsonl, then: rag-eval import {name} rows.jsonl --out {out}"
    return Problem(path, 0, "", f"is an export of another tool ({name}: it has {form.why})", hint)


def imported(
    reader: Reader,
    name: str,
    paths: Sequence[str],
    account: Account,
    options: Sequence[Any] = (),
    watch: Watch | None = None,
) -> Iterator[tuple[Row, bytes]]:
    """Yield each row of the files, and its line; raise InputError at the end if anything is wrong."""
    gives, ledger, count = IMPORTERS[name].gives, reader.ledger, 0
    files = Files(reader, paths, watch=watch)
    rows: Iterable[tuple[int, Row]] = _valid_rows(reader, files, gives, rows_of(name, files, account, *options))
    if gives == "gold":
        rows = list(rows)
        unique((Gold.from_row(row, line) for line, row in rows), ledger, paths[-1], lambda gold: gold)
    for line, row in rows:
        count += 1
        try:
            source = f"{written(row)}\n".encode()
        except UnicodeEncodeError:
            hint = "Write the character itself, or both halves of the pair."
            ledger.problem(paths[-1], line, "", "has half of a surrogate pair", hint)
        else:
            yield row, source
    if not count and not ledger.count:
        if gives == "gold":
            ledger.problem(paths[-1], 0, "", "has no gold items", "A gold set needs at least one question.")
        else:
            hint = "Check that the file is complete and has this format: rag-eval import auto FILE"
            why = "".join(f"; {line}" for line in account.dropped_lines if "traces" in line)
            ledger.problem(paths[-1], 0, "", f"has no trace with an answer{why}", hint)
    ledger.stop_on_problems()


def _valid_rows(reader: Reader, files: Files, schema: str, rows: Numbered) -> Numbered:
    """Yield the rows that are valid under their contract; problems of the others go into the ledger.

    A value of an unexpected type, wherever it occurs, is a problem too, and ends the rows.
    """
    contract = Contract(schema, reader.limits.depth)
    try:
        for line, row in rows:
            faults = contract.faults(row)
            for fault in faults:
                where = f"as {schema}: {fault.where}"
                reader.ledger.problem(files.paths[-1], line, where, fault.message, fault.hint)
            if not faults:
                yield line, row
    except (TypeError, AttributeError, KeyError, ValueError, ArithmeticError, RecursionError) as error:
        message = f"has a value of an unexpected type here or before: {type(error).__name__}: {str(error)[:80]}"
        files.problem(*files.place, "", message, "Check that the file is a complete export of that tool.")
