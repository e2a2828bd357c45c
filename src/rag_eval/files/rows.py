"""Gold and trace files into items and rows that keep their contract; all that is wrong goes into the ledger."""

from __future__ import annotations

import os
from itertools import chain

from rag_eval.files.json_lines import batches, json_lines, told_lines
from rag_eval.files.kinds import OWN_QID
from rag_eval.files.ledger import Ledger
from rag_eval.model import Gold, item_hash
from rag_eval.safe import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from rag_eval.files.json_lines import Template
    from rag_eval.files.source import Digest, Reader, Source
    from rag_eval.files.template import Enough
    from rag_eval.told import Batch

    Row = dict[str, Any]
    Schema = dict[str, Any]
    Found = tuple[Iterator[tuple[int, Row]], Callable[[Row, int], Gold]]

    T = TypeVar("T")

LARGE = 1 << 20
"""Bytes of a gold set from which it pays to keep its items by the column."""


def read_gold(
    reader: Reader, path: str, digest: Digest | None = None, kept: dict[str, Row] | None = None
) -> dict[str, Gold]:
    """The gold items of ``path`` by qid, in file order; JSON Lines, one JSON array, or a folder of label files.

    ``kept`` takes the rows by qid, for what looks at fields that no metric reads.
    """
    before = reader.ledger.count
    golds = (_of_folder if is_folder(reader, path) else _of_file)(reader, path, digest, kept)
    if not golds and reader.ledger.count == before:
        hint = "A gate without questions would pass anything: write at least one item."
        reader.ledger.problem(path, 0, "", "holds no gold item", hint)
    return golds


def read_shelf(reader: Reader, path: str) -> Mapping[str, Gold]:
    """As :func:`read_gold`; a large set that says no more than it has to by the column, for what asks little of it."""
    return _shelf(reader, path) or read_gold(reader, path)


def _shelf(reader: Reader, path: str) -> Mapping[str, Gold] | None:
    """None where there is something to say of the set, or its items say more: then they are read one by one."""
    from rag_eval.files.source import large

    if is_folder(reader, path) or not large(path, LARGE):
        return None
    from rag_eval.files.template import Stocks
    from rag_eval.shelf import Shelf

    quiet = reader._replace(ledger=Ledger())
    source = quiet.open(path)
    if source is None:
        return None
    with source:
        found = None if source.is_array else Shelf.of(batches(quiet, source, "gold", Stocks))
    return None if quiet.ledger.count or quiet.ledger.notes else found


def is_folder(reader: Reader, path: str) -> bool:
    """Whether a gold path stands for a folder of label files."""
    return path not in reader.held and os.path.isdir(path)  # noqa: PTH112 - start-up time


def read_entries(reader: Reader, path: str) -> list[tuple[Gold, Row]]:
    """The gold items of ``path`` with their rows, in file order."""
    rows: dict[str, Row] = {}
    return [(gold, rows[qid]) for qid, gold in read_gold(reader, path, kept=rows).items()]


def read_traces(reader: Reader, path: str, digest: Digest | None = None) -> Iterator[tuple[int, Row]]:
    """Line number and row of each valid trace of ``path``, as a stream."""
    yield from _traces(reader, path, digest, lambda source: json_lines(reader, source, "trace"))


def read_told(reader: Reader, path: str, enough: Enough, digest: Digest | None = None) -> Iterator[Batch]:
    """The valid traces of ``path`` as a stream of batches: see :func:`rag_eval.files.json_lines.told_lines`."""
    yield from _traces(reader, path, digest, lambda source: told_lines(reader, source, enough))


def _traces(reader: Reader, path: str, digest: Digest | None, read: Callable[[Source], Iterator[T]]) -> Iterator[T]:
    source = reader.open(path, digest)
    if source is None:
        return
    with source:
        if source.is_array:
            hint = "Write one trace a line; jq -c '.[]' does it."
            reader.ledger.problem(path, 1, "", "is a JSON array; traces are JSON Lines", hint)
            return
        yield from read(source)


def _of_folder(reader: Reader, path: str, digest: Digest | None, kept: dict[str, Row] | None) -> dict[str, Gold]:
    from rag_eval.files.inputs import foreign_gold

    return unique(_kept(foreign_gold(reader, path, "labels", digest), kept), Gold.from_row, reader.ledger, path)


def _of_file(reader: Reader, path: str, digest: Digest | None, kept: dict[str, Row] | None) -> dict[str, Gold]:
    source = reader.open(path, digest)
    if source is None:
        return {}
    with source:
        if kept is None and not source.is_array:
            items = chain.from_iterable(batches(reader, source, "gold", _golds))
            return unique(items, _item, reader.ledger, path)
        rows, make = _gold_rows(reader, source)
        return unique(_kept(rows, kept), make, reader.ledger, path)


def _golds(schema: Schema) -> Template:
    from rag_eval.files.template import Golds  # not for small files: start-up time

    return Golds(schema)


def _item(found: Gold | Row, line: int) -> Gold:
    return found if isinstance(found, Gold) else Gold.from_row(found, line)


def _gold_rows(reader: Reader, source: Source) -> Found:
    if not source.is_array:
        return json_lines(reader, source, "gold"), Gold.from_row
    from rag_eval.files.array import array_rows, is_golden

    if not is_golden(source.head):
        return array_rows(reader, source), Gold.from_array_item
    from rag_eval.files.inputs import foreign_gold

    return foreign_gold(reader, source.path, "rag-server-golden", opened=source), Gold.from_row


def _kept(rows: Iterator[tuple[int, Row]], kept: dict[str, Row] | None) -> Iterator[tuple[int, Row]]:
    return rows if kept is None else _keeping(rows, kept)


def _keeping(rows: Iterator[tuple[int, Row]], kept: dict[str, Row]) -> Iterator[tuple[int, Row]]:
    for line, row in rows:
        kept[row["qid"]] = row
        yield line, row


def unique(rows: Iterator[tuple[int, T]], make: Callable[[T, int], Gold], ledger: Ledger, path: str) -> dict[str, Gold]:
    """The items of rows by qid; one that names a qid again, or groups what is not there, is a problem."""
    golds: dict[str, Gold] = {}
    for line, row in rows:
        gold = make(row, line)
        first = golds.setdefault(gold.qid, gold)
        if first is not gold:
            ledger.problem(path, line, "/qid", f"{quoted(gold.qid)} is already used on line {first.line}", OWN_QID)
        elif gold.support_groups and not _groups_fit(gold):
            hint = "Count the entries of supports from 0, in whole numbers."
            ledger.problem(path, line, "/required_support_groups", "names a place that supports does not have", hint)
            golds[gold.qid] = gold._replace(support_groups=None)  # scoring goes on until all problems are found
    return golds


def _groups_fit(gold: Gold) -> bool:
    # JSON Schema takes 0.0 for an integer; Python takes it for no index.
    places = [place for group in gold.support_groups or () for place in group]
    return all(type(place) is int and place < len(gold.supports or ()) for place in places)


def item_hashes(reader: Reader, path: str, golds: dict[str, Gold]) -> dict[str, str]:
    """The hash of each gold item's exact bytes, by qid, as sign-off has it.

    Items of a folder stand on no line of their own: theirs is the line that `rag-eval import labels` writes.
    """
    quiet = reader._replace(ledger=Ledger())
    if is_folder(reader, path):
        from rag_eval.files.inputs import foreign_gold
        from rag_eval.importers import written

        return {row["qid"]: item_hash(written(row).encode()) for _, row in foreign_gold(quiet, path, "labels")}
    source = quiet.open(path)
    if source is None:
        return {}
    with source:
        return dict(zip(golds, map(item_hash, _items(source)), strict=False))


def _items(source: Source) -> Iterator[bytes]:
    """The exact bytes of each item: of JSON Lines one at a time, for gold may be large."""
    if not source.is_array:
        for batch in source.batches():
            yield from [line.removesuffix(b"\r") for line in batch.each() if line and not line.isspace()]
        return
    from rag_eval.files.items import sources

    yield from (item for _, item in sources(source.whole() or b""))
