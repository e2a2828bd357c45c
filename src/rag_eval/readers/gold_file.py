"""A gold set as records by qid: JSON Lines, one JSON array, or a folder of label files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from rag_eval.contract import Gold, Limits, content_hash, item_hash
from rag_eval.errors import InputError
from rag_eval.readers import strict_json
from rag_eval.readers.jsonl import JsonLines, array_rows, is_golden, unique
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import BOM, DEEPEST, DEFAULTS, Digest, Reader

Row = dict[str, Any]

G = TypeVar("G")


def read_gold(reader: Reader, path: str, digest: Digest | None = None) -> dict[str, Gold]:
    """Return the gold items of ``path`` by qid, in file order."""
    return read_gold_as(reader, path, digest, lambda gold: gold)


def read_gold_as(reader: Reader, path: str, digest: Digest | None, make: Callable[[Gold], G]) -> dict[str, G]:
    """Return the results of ``make`` for the gold items of ``path`` by qid, in file order."""
    return _read(reader, path, map(itemgetter(0), _entries(reader, path, digest, with_rows=False)), make)


def read_entries(reader: Reader, path: str, digest: Digest | None = None) -> list[tuple[Gold, Row]]:
    """Return the gold items of ``path`` with their rows, for readers of fields that no record has."""
    rows: dict[str, Row] = {}

    def golds() -> Iterator[Gold]:
        for gold, row in _entries(reader, path, digest, with_rows=True):
            rows.setdefault(gold.qid, row)
            yield gold

    return [(gold, rows[qid]) for qid, gold in _read(reader, path, golds(), lambda gold: gold).items()]


def is_folder(reader: Reader, path: str) -> bool:
    """Return whether a gold path is a folder of label files."""
    return path not in reader.contents and os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for a name that is too long


def _read(reader: Reader, path: str, golds: Iterable[Gold], make: Callable[[Gold], G]) -> dict[str, G]:
    ledger, before = reader.ledger, reader.ledger.count
    items = unique(golds, ledger, path, make)
    if ledger.count > before:
        from rag_eval.readers.import_inputs import export_problem

        if not is_folder(reader, path) and (export := export_problem(reader, path, "gold")):
            ledger.replace(path, export, before)
    elif not items:
        hint = "Without questions every run would pass: write at least one item."
        ledger.problem(path, 0, "", "has no gold items", hint)
    return items


def _entries(reader: Reader, path: str, digest: Digest | None, *, with_rows: bool) -> Iterator[tuple[Gold, Row]]:
    """Yield items with their rows; rows of JSON Lines only ``with_rows``, because that takes longer."""
    if is_folder(reader, path):
        from rag_eval.readers.import_inputs import foreign_gold

        yield from foreign_gold(reader, path, "labels", digest)
        return
    with reader.open(path, digest) as source:
        if source.is_array and is_golden(source.head):
            from rag_eval.readers.import_inputs import foreign_gold

            yield from foreign_gold(reader, path, "rag-server-golden", opened=source)
        elif source.is_array:
            from rag_eval.importers.frameworks import example08_gold

            for line, row in array_rows(reader, source):
                yield Gold.from_row(example08_gold(row), line), row
        elif with_rows:
            yield from JsonLines(Gold, reader, path).rows(source)
        else:
            yield from zip(chain.from_iterable(JsonLines(Gold, reader, path).blocks(source)), repeat({}))


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


class GoldSet(Struct, frozen=True):
    """Gold items and their hashes by qid. ``form`` is ``lines``, ``array`` or ``folder``."""

    golds: dict[str, Gold]
    hashes: Mapping[str, str]
    form: str

    def differs(self, qid: str, other: GoldSet) -> bool:
        """Return whether two sets have different items under a qid, or only one of them has an item.

        The hash decides. Between two forms the fields decide: the same item has other bytes, or the same bytes mean
        another item.
        """
        if (qid in self.golds) != (qid in other.golds):
            return True
        if qid not in self.golds:
            return False
        if self.form == other.form:
            return self.hashes.get(qid) != other.hashes.get(qid)
        return content_hash(self.golds[qid]) != content_hash(other.golds[qid])


class StoredGold(Struct, frozen=True):
    """The bytes of a gold set in a commit: one file, or the files of a folder by their names.

    ``path`` is its path from the root of the repository, ``shown`` its name in messages, ``limits`` are those of the
    gates file that names it.
    """

    path: str
    shown: str
    files: Mapping[str, bytes]
    folder: bool = False
    limits: Limits = DEFAULTS


def read_gold_set(reader: Reader, path: str, digest: Digest | None = None, *, hashed: bool = True) -> GoldSet:
    """Read the gold of ``path``, if ``hashed`` with the hashes of its exact bytes, as sign-off has them.

    Items of a folder have no line of their own: theirs is the line that `rag-eval import labels` writes.
    """
    if is_folder(reader, path):
        from rag_eval.importers import written

        entries = read_entries(reader, path, digest)
        valid = () if reader.ledger.problems else entries
        hashes = {gold.qid: item_hash(written(row).encode()) for gold, row in valid}
        return GoldSet({gold.qid: gold for gold, _ in entries}, hashes, "folder")
    golds, form = read_gold(reader, path, digest), "lines"
    if reader.ledger.problems or not hashed:
        return GoldSet(golds, {}, form)
    with reader.silent().open(path) as source:
        items: Iterable[bytes] = (line.removesuffix(b"\r") for _, line in source.lines())
        if source.is_array:
            form, items = "array", (item for _, item in sources(source.whole() or b""))
        return GoldSet(golds, dict(zip(golds, map(item_hash, items), strict=False)), form)


def stored_gold_set(stored: StoredGold) -> GoldSet:
    """Read a gold set of another commit under its own limits; raise InputError if it is unreadable."""
    ledger = ProblemCollector()
    if not stored.folder:
        path, (data,) = stored.shown, stored.files.values()
        gold = read_gold_set(Reader(ledger, stored.limits, contents={path: data}), path)
    else:
        from tempfile import TemporaryDirectory  # start-up time

        with TemporaryDirectory() as path:
            for name, data in stored.files.items():
                Path(path, name).write_bytes(data)
            gold = read_gold_set(Reader(ledger, stored.limits), path)
    if ledger.problems:
        repair = "This is the gold set of the base branch. Fix it in a pull request with gates-ref: head"
        shown = [one._replace(file=one.file.replace(path, stored.shown)) for one in ledger.problems]
        raise InputError([one._replace(hint=f"{one.hint} {repair}") for one in shown], ledger.more)
    return gold
