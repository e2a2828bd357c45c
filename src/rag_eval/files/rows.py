"""Gold and trace files into rows that keep their contract; everything that is wrong goes into the ledger."""

from __future__ import annotations

import os
from itertools import chain

from rag_eval.files.contract import Contract
from rag_eval.files.kinds import OWN_QID, foreign, looks_like, unknown_fields
from rag_eval.files.ledger import Ledger
from rag_eval.model import Gold, item_hash
from rag_eval.safe import quoted
from rag_eval.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from rag_eval.files.lines import Lines
    from rag_eval.files.source import Digest, Reader, Source
    from rag_eval.files.template import Enough
    from rag_eval.told import Batch

    Row = dict[str, Any]
    Schema = dict[str, Any]
    Found = tuple[Iterator[tuple[int, Row]], Callable[[Row, int], Gold]]

    T = TypeVar("T")

SHAPES = 1000
"""Of so many sets of fields, a row each is looked at for fields that no contract knows."""

LARGE = 1 << 20
"""Bytes of a gold set from which it pays to keep its items by the column."""

_FEW = 1_000
"""Rows that take the way of few even in a large file: they may be all that are not written alike."""

_TRIES, _RARE = 20, 10
"""How often a way of writing is learned of a file, which takes milliseconds, and of how many lines one has to be."""

MANY_SHAPES = f"has rows of more than {SHAPES:,} sets of fields: fields of further ones may be unknown unnoticed"


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
        found = None if source.is_array else Shelf.of(_batches(quiet, source, "gold", Stocks))
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
    """The valid traces of ``path`` as a stream of batches: see :func:`told_lines`."""
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
            items = chain.from_iterable(_batches(reader, source, "gold", _golds))
            return unique(items, _item, reader.ledger, path)
        rows, make = _gold_rows(reader, source)
        return unique(_kept(rows, kept), make, reader.ledger, path)


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


def json_lines(reader: Reader, source: Source, kind: str) -> Iterator[tuple[int, Row]]:
    """Line and row of each line that keeps the schema ``kind``."""
    # Not one by one through a generator: that would take as long as pairing a row.
    return chain.from_iterable(_batches(reader, source, kind))


def told_lines(reader: Reader, source: Source, enough: Enough) -> Iterator[Batch]:
    """The valid traces by the batch: what they tell, or their rows.

    ``enough`` says of rows of some fields what they are to tell besides; None where that would not be all.
    """

    def traces(schema: Schema) -> Template:
        from rag_eval.files.template import Traces  # not for small files: start-up time

        return Traces(schema, enough)

    return _batches(reader, source, "trace", traces)


def _golds(schema: Schema) -> Template:
    from rag_eval.files.template import Golds  # as above

    return Golds(schema)


def _batches(
    reader: Reader, source: Source, kind: str, template: Callable[[Schema], Template] | None = None
) -> Iterator[Any]:
    """The rows of a file by the block; in a large one what ``template`` reads in place of them."""
    contract, ledger = Contract(kind, reader.limits.depth, few=None if source.small else _FEW), reader.ledger
    shapes = _Shapes(contract, ledger, source.path)
    alike = _Alike(contract, shapes, template(contract.schema)) if template and not source.small else None
    for lines in source.batches():
        known = alike.read(lines) if alike else None
        if known is not None:
            yield known
            continue
        first, each = lines.first, lines.each()
        rows = contract.accept_all(each)
        if rows is None:
            yield shapes.looked_at(_one_by_one(contract, ledger, source.path, kind, first, each))
        else:
            numbered = enumerate(rows, first)
            yield numbered if shapes.know(rows) else shapes.looked_at(numbered)
            if alike:
                alike.learn(rows[-1], each[-1])
        if ledger.foreign == source.path:
            return


class Template(Protocol):
    """Reads lines by the ways in which rows of its kind are written; what it finds in them is its own affair."""

    def learn(self, row: Row, line: bytes) -> None:
        """Read further lines as this one is written, which holds ``row``, if that can be."""

    def read(self, lines: Lines) -> Any:
        """What lines hold; None where only a look at each can tell."""

    def others(self, found: Any) -> list[int]:
        """The places of lines that are written otherwise."""

    def filled(self, lines: Lines, found: Any, rows: Mapping[int, Row]) -> Any:
        """What lines hold, with the rows of those written otherwise by their places."""


class _Alike:
    """Reads lines that are written as earlier ones were, which ``template`` knows how to do."""

    def __init__(self, contract: Contract, shapes: _Shapes, template: Template) -> None:
        self._contract, self._shapes, self._template = contract, shapes, template
        self._left, self._worth = _TRIES, True

    def learn(self, row: Row, line: bytes) -> None:
        """Read what follows as ``line`` is written, which holds ``row``."""
        if self._left:
            self._left -= 1
            self._template.learn(row, line)

    def read(self, lines: Lines) -> Any:
        """What the lines hold, with the rows of those written otherwise; None where all have to take another way."""
        found = self._template.read(lines) if self._worth else None
        if found is None:
            return None
        others = self._template.others(found)
        return self._with_others(lines, found, others) if others else self._template.filled(lines, found, {})

    def _with_others(self, lines: Lines, found: Any, others: list[int]) -> Any:
        each = lines.each()
        rows = self._contract.accept_all([each[place] for place in others])
        if rows is None or not self._shapes.know(rows):
            return None
        if len(others) * _RARE > lines.count:
            self._worth = self._left > 0 or len(others) * 2 < lines.count
            self.learn(rows[0], each[others[0]])
        return self._template.filled(lines, found, dict(zip(others, rows, strict=True)))


class _Shapes:
    """The sets of fields seen so far, in the order that rows have them; a row of a new one is looked at."""

    def __init__(self, contract: Contract, ledger: Ledger, path: str) -> None:
        self._contract, self._ledger, self._path = contract, ledger, path
        self._seen: set[tuple[str, ...]] = set()

    def know(self, rows: list[Row]) -> bool:
        """Whether none of the rows needs to be looked at."""
        return len(self._seen) > SHAPES or self._seen.issuperset(map(tuple, rows))

    def looked_at(self, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
        """The rows, having said which fields of each are unknown if its set of fields is new."""
        for number, row in rows:
            self._look(number, row)
            yield number, row

    def _look(self, number: int, row: Row) -> None:
        shape = tuple(row)
        if shape not in self._seen and len(self._seen) <= SHAPES:
            self._seen.add(shape)
            said = unknown_fields(self._contract, row) if len(self._seen) <= SHAPES else [MANY_SHAPES]
            self._ledger.fields(self._path, number, shape, said)


def _one_by_one(
    contract: Contract, ledger: Ledger, path: str, kind: str, first: int, lines: list[bytes]
) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(lines, first):
        if not line or line.isspace():
            continue
        row = contract.accept(line)
        if row is None:
            row = _examined(contract, ledger, path, number, line, kind)
        if row is not None:
            yield number, row
        elif ledger.foreign == path:
            return


def _examined(contract: Contract, ledger: Ledger, path: str, number: int, line: bytes, kind: str) -> Row | None:
    """The row after all, or None with its problems in the ledger."""
    full = ledger.full
    row, faults = (None, []) if full and contract.refuses(line) else contract.examine(line)
    other = looks_like(line) if row is None else ""
    if other not in ("", kind):
        foreign(ledger, path, number, other, kind)
    elif full and row is None:
        ledger.another(number)  # one for each line, so that it can be told without finding out all that is wrong
    else:
        for fault in faults:
            ledger.problem(path, number, fault.where, fault.message, fault.hint)
    return row


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
