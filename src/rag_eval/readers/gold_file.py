"""A gold set as records by qid: JSON Lines, one JSON array, or a folder of label files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, item_hash
from rag_eval.readers.jsonl import JsonLines
from rag_eval.readers.problems import Ledger
from rag_eval.readers.row_kinds import OWN_QID
from rag_eval.readers.source import Digest, Reader, Source

Row = dict[str, Any]


def read_gold(reader: Reader, path: str, digest: Digest | None = None) -> dict[str, Gold]:
    """Return the gold items of ``path`` by qid, in file order."""
    return _read(reader, path, map(itemgetter(0), _entries(reader, path, digest, with_rows=False)))


def read_entries(reader: Reader, path: str) -> list[tuple[Gold, Row]]:
    """Return the gold items of ``path`` with their rows, for what looks at fields that no record has."""
    rows: dict[str, Row] = {}

    def golds() -> Iterator[Gold]:
        for gold, row in _entries(reader, path, None, with_rows=True):
            rows.setdefault(gold.qid, row)
            yield gold

    return [(gold, rows[qid]) for qid, gold in _read(reader, path, golds()).items()]


def is_folder(reader: Reader, path: str) -> bool:
    """Whether a gold path is a folder of label files."""
    return path not in reader.held and os.path.isdir(path)  # noqa: PTH112 - a path may be of bytes that are no UTF-8


def unique(golds: Iterable[Gold], ledger: Ledger, path: str) -> dict[str, Gold]:
    """Return items by qid. One that names a qid again, or groups what is not there, is a problem."""
    found: dict[str, Gold] = {}
    turns: dict[tuple[str, int], Gold] = {}
    for gold in golds:
        first = found.setdefault(gold.qid, gold)
        if gold.conversation is not None and gold.turn is not None:
            other = turns.setdefault((gold.conversation, int(gold.turn)), gold)
            if other is not gold and first is gold:
                message = f"turn {gold.turn} of {quoted(gold.conversation)} is already on line {other.line}"
                ledger.problem(path, gold.line, "/turn", message, "Number the turns of a conversation from 1.")
        if first is not gold:
            ledger.problem(path, gold.line, "/qid", f"{quoted(gold.qid)} is already used on line {first.line}", OWN_QID)
        elif gold.support_groups and not _groups_fit(gold):
            hint = "Count the entries of supports from 0, in whole numbers."
            message = "names a place that supports does not have"
            ledger.problem(path, gold.line, "/required_support_groups", message, hint)
            found[gold.qid] = replace(gold, support_groups=None)  # scoring goes on until all problems are found
    return found


def item_hashes(reader: Reader, path: str, golds: dict[str, Gold]) -> dict[str, str]:
    """Return the hash of each gold item's exact bytes, by qid, as sign-off has it.

    Items of a folder have no line of their own: theirs is the line that `rag-eval import labels` writes.
    """
    quiet = reader._replace(ledger=Ledger())
    if is_folder(reader, path):
        from rag_eval.importers import written
        from rag_eval.readers.import_inputs import foreign_gold

        return {row["qid"]: item_hash(written(row).encode()) for _, row in foreign_gold(quiet, path, "labels")}
    source = quiet.open(path)
    if source is None:
        return {}
    with source:
        return dict(zip(golds, map(item_hash, _items(source)), strict=False))


def _read(reader: Reader, path: str, golds: Iterable[Gold]) -> dict[str, Gold]:
    before = reader.ledger.count
    found = unique(golds, reader.ledger, path)
    if not found and reader.ledger.count == before:
        hint = "A gate without questions would pass anything: write at least one item."
        reader.ledger.problem(path, 0, "", "holds no gold item", hint)
    return found


def _entries(reader: Reader, path: str, digest: Digest | None, *, with_rows: bool) -> Iterator[tuple[Gold, Row]]:
    """Items with their rows; those of JSON Lines ``with_rows`` only, as that takes longer."""
    if is_folder(reader, path):
        from rag_eval.readers.import_inputs import foreign_gold

        yield from _of_rows(foreign_gold(reader, path, "labels", digest))
        return
    source = reader.open(path, digest)
    if source is None:
        return
    with source:
        lines = JsonLines(Gold, reader.ledger, path, reader.limits.depth)
        if not source.is_array and with_rows:
            yield from lines.rows(source)
        elif not source.is_array:
            yield from zip(chain.from_iterable(lines.blocks(source)), repeat({}))
        else:
            yield from _array_entries(reader, path, source)


def _array_entries(reader: Reader, path: str, source: Source) -> Iterator[tuple[Gold, Row]]:
    from rag_eval.readers.import_inputs import foreign_gold
    from rag_eval.readers.json_array import array_rows, is_golden

    if is_golden(source.head):
        yield from _of_rows(foreign_gold(reader, path, "rag-server-golden", opened=source))
    else:
        for line, row in array_rows(reader, source):
            yield Gold.from_array_item(row, line), row


def _of_rows(rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[Gold, Row]]:
    for line, row in rows:
        yield Gold.from_row(row, line), row


def _groups_fit(gold: Gold) -> bool:
    # JSON Schema takes 0.0 for an integer; Python takes it for no index.
    places = [place for group in gold.support_groups or () for place in group]
    return all([type(place) is int and place < len(gold.supports or ()) for place in places])


def _items(source: Source) -> Iterator[bytes]:
    """The exact bytes of each item: of JSON Lines one at a time, for gold may be large."""
    if not source.is_array:
        for _, line in source.lines():
            yield line.removesuffix(b"\r")
        return
    from rag_eval.readers.gold_bytes import sources

    for _, item in sources(source.whole() or b""):
        yield item
