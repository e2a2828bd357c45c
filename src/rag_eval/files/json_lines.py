"""JSON Lines into rows that keep their contract; everything that is wrong goes into the ledger."""

from __future__ import annotations

from itertools import chain

from rag_eval.files.contract import Contract
from rag_eval.files.kinds import foreign, looks_like, unknown_fields
from rag_eval.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from rag_eval.files.ledger import Ledger
    from rag_eval.files.lines import Lines
    from rag_eval.files.source import Reader, Source
    from rag_eval.files.template import Enough
    from rag_eval.told import Batch

    Row = dict[str, Any]
    Schema = dict[str, Any]

SHAPES = 1000
"""Of so many sets of fields, a row each is looked at for fields that no contract knows."""

_FEW = 1_000
"""Rows that take the way of few even in a large file: they may be all that are not written alike."""

_TRIES, _RARE = 20, 10
"""How often a way of writing is learned of a file, which takes milliseconds, and of how many lines one has to be."""

MANY_SHAPES = f"has rows of more than {SHAPES:,} sets of fields: fields of further ones may be unknown unnoticed"


def json_lines(reader: Reader, source: Source, kind: str) -> Iterator[tuple[int, Row]]:
    """Line and row of each line that keeps the schema ``kind``."""
    # Not one by one through a generator: that would take as long as pairing a row.
    return chain.from_iterable(batches(reader, source, kind))


def told_lines(reader: Reader, source: Source, enough: Enough) -> Iterator[Batch]:
    """The valid traces by the batch: what they tell, or their rows.

    ``enough`` says of rows of some fields what they are to tell besides; None where that would not be all.
    """

    def traces(schema: Schema) -> Template:
        from rag_eval.files.template import Traces  # not for small files: start-up time

        return Traces(schema, enough)

    return batches(reader, source, "trace", traces)


def batches(
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
