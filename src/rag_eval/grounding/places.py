"""Where the words of a claim stand in the chunks: one pass over all words, for all sentences at once.

A chunk is cut into blocks of sixteen words. For each block a whole number holds a bit for each content word of the
claim that stands in it; a window of neighbouring blocks is the *or* of their numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import reduce
from itertools import compress
from operator import or_

from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.grounding.claims import Part

BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS


class Place(NamedTuple):
    """The place among the chunks of one, and that of a word in it."""

    chunk: int
    word: int


class Index:
    """The words of a claim in the chunks; ``found`` and ``pairs`` hold a bit for each content word of the claim.

    ``pairs`` are those found close to the content word behind them in their sentence.
    """

    def __init__(self, parts: Sequence[Part], sources: Sequence[list[str]]) -> None:
        self.sources = sources
        widest = max([span(len(part.keys)) for part in parts], default=2)
        self._blocks, self._firsts = _blocks(sources, _bits(parts), widest)
        self._windows: dict[int, list[int]] = {}
        self.found = reduce(or_, self._blocks, 0)
        self.pairs = reduce(or_, [mask & mask >> 1 for mask in self.windows(2)], 0)

    def windows(self, span: int) -> list[int]:
        """The bits of the words found in each run of ``span`` blocks; 0 where the first of them holds none.

        Next to each window stand those that overlap with it.
        """
        if span not in self._windows:
            masks = _together(self._blocks, span)
            self._windows[span] = [mask if first else 0 for mask, first in zip(masks, self._blocks, strict=True)]
        return self._windows[span]

    def place(self, window: int) -> Place:
        """Where a window starts, by its place among the windows."""
        chunk = bisect_right(self._firsts, window) - 1
        return Place(chunk, window - self._firsts[chunk] << BLOCK_BITS)


def _together(blocks: list[int], span: int) -> list[int]:
    """For each block the *or* of it and the next ones, ``span`` in all; by doubling, so that wide ones cost little."""
    masks, width = blocks, 1
    while width < span:
        step = min(width, span - width)
        masks = [*map(or_, masks, masks[step:]), *masks[max(0, len(masks) - step) :]]
        width += step
    return masks


def span(words: int) -> int:
    """How many blocks a run of ``words`` words may touch; at least two."""
    return max(2, (words + BLOCK - 2 >> BLOCK_BITS) + 1)


def _bits(parts: Sequence[Part]) -> dict[str, int]:
    bits: dict[str, int] = {}
    for part in parts:
        bit = 1 << part.shift
        for place in part.content:
            key = part.keys[place]
            bits[key] = bits.get(key, 0) | bit
            bit <<= 1
    return bits


def _blocks(sources: Sequence[list[str]], bits: dict[str, int], widest: int) -> tuple[list[int], list[int]]:
    """The blocks of all sources in one list, for each the bits of the words in it; and where each source starts.

    Behind each source are so many empty blocks that no window reaches into the next.
    """
    blocks: list[int] = []
    firsts = []
    for source in sources:
        firsts.append(len(blocks))
        own = [0] * ((len(source) >> BLOCK_BITS) + widest)
        masks = [*map(bits.get, source)]
        for place in compress(range(len(masks)), masks):
            own[place >> BLOCK_BITS] |= masks[place]  # type: ignore[operator]
        blocks += own
    return blocks, firsts
