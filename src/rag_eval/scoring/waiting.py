"""Traces that wait until it is known which of them count: the last one of a question does, and no other is scored.

A file may answer each question many times, as a log does that is added to. Every row of it is held against its contract
and counted; what it comes to is worked out for those alone that are left.
"""

from __future__ import annotations

from itertools import compress
from operator import itemgetter

from rag_eval.told import NO_FIELDS, Told
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

_MOST, _LARGEST = 1 << 15, 32 << 20  # questions, and characters that are held of their traces
_LONG = 4 << 10  # bytes of a row: what is longer would fill the memory before much of it is replaced
_AT_ONCE = 200  # of those that are left: what one comes to is known for those after these


class Due(NamedTuple):
    """Traces to be scored, with the places of their items."""

    slots: Sequence[int]
    told: Told


class Waiting:
    """Of each question the last trace that came; ``replaced`` counts those that it took the place of.

    ``items`` is how many questions there are, ``behind`` the places of those that a trace further behind in the file
    answers. Of traces that are ``barred`` every one is due.
    """

    def __init__(self, items: int, behind: AbstractSet[int], barred: Callable[[Told], bool]) -> None:
        self._pays = items <= _MOST  # else few would be replaced while they wait
        self._behind, self._barred = behind, barred
        self._last: dict[int, tuple[Any, ...]] = {}
        self._between, self._fields = "", NO_FIELDS
        self._count = self._size = 0  # traces that wait or did, and bytes that came since it was looked what is left
        self.replaced = 0

    def due(self, slots: Sequence[int], told: Told) -> Iterator[Due]:
        """What is to be scored now that traces of the items at ``slots`` came; others of them wait."""
        if not self._pays or told.rows or self._barred(told):
            yield from self.leave()
            yield Due(slots, told)
            return
        long, size = told.size > len(slots) * _LONG, told.size
        slots, told = self._not_behind(slots, told)
        if long or not self._goes_with(told):
            yield from self.leave()
        if long and slots:
            yield Due(slots, told)
        elif slots:
            self._let_wait(slots, told)
            if self._is_full(size):
                yield from self.leave()

    def leave(self) -> Iterator[Due]:
        """Those that are left, some at a time; none waits any longer."""
        left, fields, between = self._last, self._fields, self._between
        self.replaced += self._count - len(left)
        self._last, self._count, self._size = {}, 0, 0
        # Traces are found by their lines among those that tell more.
        items = sorted(left.items(), key=_line) if fields else list(left.items())
        for begin in range(0, len(items), _AT_ONCE):
            slots, entries = zip(*items[begin : begin + _AT_ONCE], strict=True)
            lines, qids, claims, cited, ranked, *texts = zip(*entries, strict=True)
            more = fields.holding(dict(zip(fields, texts, strict=True)))
            yield Due(slots, Told(lines, qids, (), claims, cited, ranked, between, {}, more))

    def _not_behind(self, slots: Sequence[int], told: Told) -> Due:
        if self._behind.isdisjoint(slots):
            return Due(slots, told)
        kept = [slot not in self._behind for slot in slots]
        left = list(compress(slots, kept))
        self.replaced += len(slots) - len(left)
        return Due(left, told.only(kept) if left else told)

    def _goes_with(self, told: Told) -> bool:
        """Whether traces are written so that they can wait together with those that do."""
        return not self._last or (self._between == told.between and self._fields.keys() == told.more.keys())

    def _let_wait(self, slots: Sequence[int], told: Told) -> None:
        if not self._last:
            self._between, self._fields = told.between, told.more.holding(dict.fromkeys(told.more, ()))
        texts = map(told.more.texts.__getitem__, self._fields)
        # Some columns may be endless.
        entries = zip(told.lines, told.qids, told.claims, told.cited, told.retrieved, *texts)  # noqa: B905
        self._last.update(zip(slots, entries, strict=True))
        self._count += len(slots)

    def _is_full(self, size: int) -> bool:
        """Whether it is time to let them leave, now that so many bytes more came: they must not fill the memory."""
        self._size += size
        if self._size <= _LARGEST:
            return False
        self._size = sum([len(claim) + len(ranked) for _, _, claim, _, ranked, *_ in self._last.values()])
        self._size += sum([len(text or "") for _, _, _, _, _, *texts in self._last.values() for text in texts])
        return self._size > _LARGEST // 2


_line = itemgetter(1)
