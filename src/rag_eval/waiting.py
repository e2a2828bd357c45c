"""Traces that wait until it is known which of them count: the last one of a question does, and no other is scored.

A file may answer each question many times, as a log does that is added to. Every row of it is held against its contract
and counted; what it comes to is worked out for those alone that are left.
"""

from __future__ import annotations

from rag_eval.told import Told
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rag_eval.told import Entry

_MOST, _LARGEST = 1 << 15, 32 << 20  # questions, and characters that are held of their traces
_AT_ONCE = 200  # of those that are left: what one comes to is known for those after these


class Left(NamedTuple):
    """Some traces that are left, with the places of their items: what they tell, as entries and as columns.

    Their lines stand in the entries.
    """

    slots: Sequence[int]
    entries: Sequence[Entry]
    told: Told


class Waiting:
    """Of each question the last trace that came; ``items`` is how many questions there are."""

    def __init__(self, items: int) -> None:
        self._pays = items <= _MOST  # else few would be replaced while they wait
        self._last: dict[int, Entry] = {}
        self._between = ""
        self._size = 0  # bytes that came since it was looked how many characters are left
        self.count = 0
        """How many came."""
        self.full = False
        """Whether it is time to let them leave: long texts must not fill the memory."""

    def takes(self, slots: Sequence[int], told: Told, barred: Callable[[Told], bool] | None = None) -> bool:
        """Let the traces of the items at ``slots`` wait if they may, and say whether they do.

        All of them have to tell what all rows do, and nothing else; ``barred`` may say that these may not.
        """
        suits = self._pays and not (told.rows or told.more) and self._between in ("", told.between)
        if not suits or (barred and barred(told)):
            return False
        self._last.update(zip(slots, told.entries(), strict=True))
        self._between = told.between
        self.count += len(slots)
        self._size += told.size
        if self._size > _LARGEST:
            self._size = sum([len(claim) + len(ranked) for _, _, _, claim, _, ranked in self._last.values()])
            self.full = self._size > _LARGEST // 2
        return True

    def leave(self) -> Iterator[Left]:
        """Those that are left, some at a time; none waits any longer."""
        last, between = self._last, self._between
        self._last, self._between = {}, ""
        self.count = self._size = 0
        self.full = False
        slots, entries = list(last), list(last.values())
        for begin in range(0, len(slots), _AT_ONCE):
            some = entries[begin : begin + _AT_ONCE]
            _, qids, _, claims, cited, ranked = zip(*some, strict=True)
            told = Told(1, qids, (), claims, cited, ranked, between, {})
            yield Left(slots[begin : begin + _AT_ONCE], some, told)
