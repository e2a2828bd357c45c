"""Where the words of a claim stand in the chunks: one pass over all words, for all sentences at once.

A chunk is cut into blocks of sixteen words. For each block a whole number holds a bit for each content word of the
claim that stands in it; a window of neighbouring blocks is the *or* of their numbers.
"""

from __future__ import annotations

from operator import or_
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_eval.grounding.claims import Part

BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS
FURTHEST = 1 << 40  # more words than a chunk has


class Windows(NamedTuple):
    """Runs of neighbouring blocks: the bits of the words found in each, and where each starts.

    A start is ``chunk * FURTHEST + word``: whole numbers cost the collector of garbage nothing.
    """

    masks: list[int]
    starts: list[int]


class Index:
    """The words of a claim in the chunks; ``found`` and ``pairs`` hold a bit for each content word of the claim.

    ``pairs`` are those found close to the content word behind them in their sentence.
    """

    def __init__(self, parts: Sequence[Part], sources: Sequence[list[str]]) -> None:
        self.sources = sources
        bits = _bits(parts)
        self._blocks = [_blocks(source, bits) for source in sources]
        self._windows: dict[int, Windows] = {}
        self.found = pairs = 0
        for mask in self.windows(2).masks:
            self.found |= mask
            pairs |= mask & mask >> 1
        self.pairs = pairs

    def windows(self, span: int) -> Windows:
        """The windows of ``span`` blocks whose first block holds a word of the claim."""
        if span not in self._windows:
            self._windows[span] = self._widened(span)
        return self._windows[span]

    def _widened(self, span: int) -> Windows:
        found = Windows([], [])
        for chunk, blocks in enumerate(self._blocks):
            masks = _together(blocks, span)
            starts = [block for block, mask in enumerate(blocks) if mask]
            found.starts.extend([chunk * FURTHEST + (block << BLOCK_BITS) for block in starts])
            found.masks.extend([masks[block] for block in starts])
        return found


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


def _blocks(source: list[str], bits: dict[str, int]) -> list[int]:
    """For each block of ``source`` the bits of the words found in it."""
    masks = [*map(bits.get, source)]
    return [_or(filter(None, masks[start : start + BLOCK])) for start in range(0, len(masks), BLOCK)]


def _or(masks: Iterable[int]) -> int:
    together = 0
    for mask in masks:
        together |= mask
    return together
