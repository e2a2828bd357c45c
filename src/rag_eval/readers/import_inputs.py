"""What importers read their files through: strict reading, with all that is wrong in the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from rag_eval.importers import rows_of
from rag_eval.importers._account import Account
from rag_eval.readers.report_file import read_json
from rag_eval.readers.row_kinds import foreign, looks_like
from rag_eval.readers.schema_validation import Contract
from rag_eval.readers.source import refuse_outside
from rag_eval.readers.unreadable import Unreadable

if TYPE_CHECKING:
    from rag_eval.importers import Numbered
    from rag_eval.readers.source import Digest, Reader, Source

    Row = dict[str, Any]


class Files:
    """:class:`rag_eval.importers.Inputs` over a reader; ``opened`` is the source of the first path, if it is open."""

    def __init__(self, reader: Reader, paths: Sequence[str], opened: Source | None = None) -> None:
        self.paths = paths
        self.place = paths[0], 0
        self._reader, self._opened = reader, opened
        self._digests: dict[str, Any] = {}

    @property
    def problems(self) -> int:
        """How many problems there are so far."""
        return self._reader.ledger.count

    def lines(self, path: str) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of each line that is not blank, however long it is."""
        limits = self._reader.limits
        reader = self._reader._replace(limits=limits._replace(line_mib=limits.whole_mib))
        source = reader.open(path, self._begun(path))
        if source is not None:
            with source:
                yield from source.lines()

    def data(self, path: str) -> bytes | None:
        """The bytes of a file, decompressed; None with a problem if it cannot be read."""
        source = self._reader.open(path, self._begun(path))
        if source is None:
            return None
        with source:
            return source.whole()

    def rows(self, path: str, schema: str) -> Numbered:
        """The rows of a JSON Lines file."""
        source = self._reader.open(path, self._begun(path))
        if source is not None:
            with source:
                yield from read_rows(self._reader, source, Contract(schema, self._reader.limits.depth))

    def elements(self, path: str, schema: str) -> Numbered:
        """The elements of a file that is one JSON array."""
        from rag_eval.readers.json_array import array_rows

        source = self._opened or self._reader.open(path, self._begun(path))
        if source is not None:
            with source:
                yield from array_rows(self._reader, source, schema)

    def value(self, path: str, schema: str) -> Row | None:
        """The value of a file that is one JSON object."""
        return read_json(self._reader, path, schema, self._begun(path))

    def names(self, folder: str) -> list[str]:
        """What stands in a folder, sorted; hidden files aside."""
        try:
            if self._reader.root:  # a folder that is named itself may be anywhere
                refuse_outside(folder, self._reader.root)
            return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208 - start-up time
        except Unreadable as error:
            self.problem(folder, 0, "", error.message, error.hint)
        except OSError as error:
            message = f"cannot be listed: {(error.strerror or 'unknown reason').lower()}"
            self.problem(folder, 0, "", message, "Name a folder of label files.")
        return []

    def digest(self, path: str) -> str:
        """sha256, in hex, of a file that was read."""
        found: str = self._digests[path].hexdigest()
        return found

    def listing(self) -> bytes:
        """A line a file that was read, by name: its sha256 and its name, as ``sha256sum`` prints them."""
        by_name = sorted((os.path.basename(path), path) for path in self._digests)  # noqa: PTH119 - start-up time
        return "".join(f"{self.digest(path)}  {name}\n" for name, path in by_name).encode()

    def problem(self, path: str, line: int, where: str, message: str, hint: str) -> None:
        """Take down what is wrong with the files together."""
        self._reader.ledger.problem(path, line, where, message, hint)

    def _begun(self, path: str) -> Digest:
        self._digests[path] = sha256()
        digest: Digest = self._digests[path]
        return digest


def foreign_gold(
    reader: Reader, path: str, form: str, digest: Digest | None = None, opened: Source | None = None
) -> Iterator[tuple[int, Row]]:
    """Line and gold row of each item of a form that is not ours; what is left out of it is noted.

    The digest of a folder is that of its :meth:`Files.listing`.
    """
    files, account = Files(reader, [path], opened), Account()
    yield from rows_of(form, files, account)
    for line in account.left_out:
        reader.ledger.note(path, 0, line)
    if digest is not None and opened is None:
        digest.update(files.listing())


def label_rows(reader: Reader, path: str, schema: str) -> int:
    """The number of rows of one label file; whether the files of a folder fit together is not looked at."""
    return sum(1 for _ in Files(reader, [path]).rows(path, schema))


def read_rows(reader: Reader, source: Source, contract: Contract) -> Iterator[tuple[int, Row]]:
    """Line and row of each line that keeps a schema; what is wrong goes into the ledger."""
    ledger = reader.ledger
    for number, line in source.lines():
        row, faults = contract.examine(line)
        if row is not None:
            contract.note_unknown_fields(row, ledger, source.path, number)
            yield number, row
        elif (other := looks_like(line)) not in ("", contract.name):
            foreign(ledger, source.path, number, other, contract.name)
            return
        else:
            for fault in faults:
                ledger.problem(source.path, number, fault.where, fault.message, fault.hint)
