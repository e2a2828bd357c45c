"""Gold items that say no more than they have to, by the column: each is made when it is looked at.

To make an item of every line of a set of millions takes longer than all that is asked of most of them, and more room.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from itertools import count, repeat

from rag_eval.model import REQUIRED, Gold
from rag_eval.typed import NamedTuple, filled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    Row = dict[str, Any]


class Stock(NamedTuple):
    """What lines of gold items hold: a column for each field, an entry for each line, as it stands in JSON.

    Lists have no brackets, their members are in quotes and parted by ``between``; none of them is empty or has an
    escape. Of a line that is written otherwise the qid is empty, and its row stands in ``rows`` by its number.
    """

    first: int
    qids: Sequence[str]
    questions: Sequence[str]
    answerable: Sequence[str]
    texts: Sequence[str]
    citations: Sequence[str]
    between: str
    rows: Mapping[int, Row] = {}

    @classmethod
    def of(cls, first: int, columns: Iterable[Sequence[str]], between: str) -> Stock:
        """A stock of its columns."""
        qids, questions, answerable, texts, citations = columns
        return cls(first, qids, questions, answerable, texts, citations, between)

    @property
    def entries(self) -> Iterator[tuple[str, ...]]:
        """What stands in the columns, by the line."""
        return zip(self.qids, self.questions, self.answerable, self.texts, self.citations, strict=True)

    def beside(self, other: Stock) -> Stock:
        """Together with what the same lines hold that are written in another way."""
        either = [theirs if theirs[0] else own for own, theirs in zip(self.entries, other.entries, strict=True)]
        return Stock.of(self.first, zip(*either, strict=True), self.between)

    def unescaped(self) -> Stock:
        """Without the lines that have escapes in their lists."""
        odd = ["\\" in texts or "\\" in ids for texts, ids in zip(self.texts, self.citations, strict=True)]
        return self._replace(qids=["" if own else qid for own, qid in zip(odd, self.qids, strict=True)])

    def items(self) -> Iterator[tuple[int, Gold | Row]]:
        """The number of each line with its item, or its row."""
        golds = zip(count(self.first), self._golds())
        if all(self.qids):
            return golds
        return ((line, gold if gold.qid else self.rows[line]) for line, gold in golds)

    def _golds(self) -> Iterator[Gold]:
        """An item of each line, by the column: that is quicker than one after another."""
        apart, size = f'"{self.between}"', len(self.qids)
        return filled(
            Gold,
            [
                self.qids,
                map(_asked, self.questions),
                map("true".__eq__, self.answerable),
                [_substrings(texts, apart) for texts in self.texts],
                [_ids(ids, apart) for ids in self.citations],
                range(self.first, self.first + size),
                *(repeat(absent, size) for absent in Gold._field_defaults.values()),
            ],
        )


class Columns(NamedTuple):
    """What items want, by their places. Members of lists that stand as in JSON are parted by ``apart``, with quotes.

    ``citations`` are such a list each, or None where its ids are not to be looked for in lists as they stand in JSON;
    ``texts`` are such a list, or in lower case by themselves.
    """

    answerable: Sequence[int]
    citations: Sequence[str | None]
    texts: Sequence[str | tuple[str, ...] | None]
    apart: str


class Shelf(Mapping[str, Gold]):
    """A gold set by the column. ``slots`` are the places of its items by qid, from 0."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self._answerable = bytearray()
        self._texts: list[str | None] = []
        self._citations: list[str | None] = []
        self._apart = ""
        self._qids: list[str] = []
        self._questions: list[str] = []
        self._lines = array("Q")
        self._others: dict[int, Gold] = {}

    @classmethod
    def of(cls, batches: Iterable[Stock | Iterable[tuple[int, Row]]]) -> Shelf | None:
        """The items of a file; None where one says more than it has to or has the qid of another, or lists differ."""
        found = cls()
        for batch in batches:
            if not (found._stocked(batch) if isinstance(batch, Stock) else found._noted(batch)):
                return None
        found.slots = dict(zip(found._qids, range(len(found)), strict=True))
        return found if len(found.slots) == len(found) else None

    def columns(self) -> Columns:
        """What its items want."""
        return Columns(self._answerable, self._citations, self._texts, self._apart)

    def at(self, slot: int) -> Gold:
        """The item at a place."""
        texts, ids = self._texts[slot], self._citations[slot]
        if texts is None or ids is None:
            return self._others[slot]
        own = self._qids[slot], self._questions[slot], bool(self._answerable[slot])
        return _made(self._lines[slot], self._apart, *own, texts, ids)

    def __getitem__(self, qid: str) -> Gold:
        return self.at(self.slots[qid])

    def __iter__(self) -> Iterator[str]:
        return iter(self._qids)

    def __len__(self) -> int:
        return len(self._qids)

    def _stocked(self, stock: Stock) -> bool:
        apart, begin = f'"{stock.between}"', len(self)
        if (self._apart or apart) != apart:
            return False
        self._apart = apart
        self._qids += stock.qids
        self._questions += stock.questions
        self._answerable.extend(map("true".__eq__, stock.answerable))
        self._texts += stock.texts
        self._citations += stock.citations
        self._lines.extend(range(stock.first, stock.first + len(stock.qids)))
        together = "\n".join(["", *stock.citations])
        if '\n",' in together or f"{apart}," in together:  # an id may be taken for what parts ids
            self._make(slot for slot in range(begin, len(self)) if not _searchable(self.at(slot).citations))
        return all([self._put(begin + line - stock.first, row, line) for line, row in stock.rows.items()])

    def _noted(self, rows: Iterable[tuple[int, Row]]) -> bool:
        for line, row in rows:
            self._qids.append("")
            self._questions.append("")
            self._answerable.append(0)
            self._texts.append(None)
            self._citations.append(None)
            self._lines.append(line)
            if not self._put(len(self) - 1, row, line):
                return False
        return True

    def _make(self, slots: Iterable[int]) -> None:
        """Have some items by themselves, and not by the column."""
        for slot, gold in [(slot, self.at(slot)) for slot in slots]:
            self._others[slot] = gold
            self._texts[slot] = self._citations[slot] = None

    def _put(self, slot: int, row: Row, line: int) -> bool:
        """Have the item of a row stand at a place, if it says no more than it has to."""
        gold = self._others[slot] = Gold.from_row(row, line)
        self._qids[slot], self._answerable[slot] = gold.qid, gold.answerable
        self._texts[slot] = self._citations[slot] = None
        return len(row) == REQUIRED


class Items:
    """A gold set at hand, looked at in the same way."""

    def __init__(self, golds: Mapping[str, Gold]) -> None:
        self._golds = list(golds.values())
        self.slots = {qid: slot for slot, qid in enumerate(golds)}
        self.at = self._golds.__getitem__
        self._columns: Columns | None = None  # made when it is asked for: start-up time

    def columns(self) -> Columns:
        """As :meth:`Shelf.columns`."""
        if self._columns is None:
            lists = [gold.citations for gold in self._golds]
            citations = [_listed(ids) if _searchable(ids) else None for ids in lists]
            texts = [gold.substrings for gold in self._golds]
            self._columns = Columns(bytearray(gold.answerable for gold in self._golds), citations, texts, '","')
        return self._columns


def placed(golds: Mapping[str, Gold]) -> Shelf | Items:
    """The items of a gold set by their places."""
    return golds if isinstance(golds, Shelf) else Items(golds)


def _listed(ids: Sequence[str]) -> str:
    joined = '","'.join(ids)
    return f'"{joined}"' if ids else ""


def _searchable(ids: Sequence[str]) -> bool:
    """Whether each id, in quotes, can be told in a list from what is not an id."""
    text = "".join(ids)
    return not ('"' in text or "\\" in text or "" in ids or ", " in ids or "," in ids)


def _made(line: int, apart: str, qid: str, question: str, answerable: bool, texts: str, ids: str) -> Gold:
    return Gold.plainly(qid, _asked(question), answerable, _substrings(texts, apart), _ids(ids, apart), line)


def _asked(question: str) -> str:
    return json.loads(f'"{question}"') if "\\" in question else question


def _substrings(listed: str, apart: str) -> tuple[str, ...]:
    return tuple(listed[1:-1].lower().split(apart)) if listed else ()


def _ids(listed: str, apart: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(listed[1:-1].split(apart))) if listed else ()
