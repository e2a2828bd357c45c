"""The outcomes of all cases: of each (run, question) that of the last trace, in a few bytes."""

from __future__ import annotations

from array import array
from collections import deque

from rag_eval.scoring.partial import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_eval.model import Gold


_NOTHING = Outcome((), "", "", "", 0)


class Held:
    """The outcomes of one run by the places of the gold items, and the lines of their traces: 0 where none came."""

    def __init__(self, size: int) -> None:
        self.outcomes: list[Outcome] = [_NOTHING] * size
        self.lines = array("Q", bytes(8 * size))
        self._left = size  # places that no trace took

    def put(self, slots: Sequence[int], outcomes: Sequence[Outcome], lines: Sequence[int], begun: int = 0) -> int:
        """Let traces take their places in the order in which they came; how many of these were taken.

        ``lines`` count from the one that is ``begun`` lines on.
        """
        own_lines = self.lines
        free = list(map(own_lines.__getitem__, set(slots))).count(0)
        # Of each place the last one stays. Runs of millions pass here: no step of it is Python's for each of them.
        deque(map(self.outcomes.__setitem__, slots, outcomes), maxlen=0)
        deque(map(own_lines.__setitem__, slots, map(begun.__add__, lines)), maxlen=0)
        self._left -= free
        return len(slots) - free

    def missing(self, golds: Iterable[Gold]) -> Iterator[tuple[int, Gold]]:
        """The places that no trace took, with their gold items."""
        outcomes = self.outcomes if self._left else ()  # mostly none is missing, which need not be seen by looking
        return (place for place, own in zip(enumerate(golds), outcomes, strict=False) if own is _NOTHING)
