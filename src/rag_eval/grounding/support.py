"""How far the chunks bear out one sentence: a number from 0 to 1, and the place that does it best.

    support = ((1 - TOGETHER) * G + TOGETHER * P) / all

``G`` is the weight of the words found in the chunks, ``P`` the weight of those that stand together in one place, less
what the place says otherwise, ``all`` the weight of the words looked for. Both ``G`` and ``P`` only grow with what is
found, and the best place counts: another chunk never lowers the support of a sentence.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple

from rag_eval.grounding.mismatches import mismatches
from rag_eval.grounding.numbers import fabricated
from rag_eval.grounding.places import BLOCK, FURTHEST, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.grounding.claims import Part
    from rag_eval.grounding.mismatches import Mismatch
    from rag_eval.grounding.places import Index

TOGETHER = 0.35  # the share of support that hangs on one place
LOOSE, HALF = 0.7, 0.85  # what a word counts that is found far from its neighbours
BETWEEN = 0.7  # what a missing word counts between two that are found: likely said in other words
FUNCTION_WEIGHT, ALONE = 0.3, 0.5  # what a function word counts, and which part of that where its neighbours differ
DISORDER = 0.3  # what a place loses when its words stand in no common order with those of the sentence
CLOSE = 0.5  # the share of a sentence's content words that makes a place worth a closer look
MOST_PLACES = 8  # places looked at closely, so that a chunk full of repetitions costs no more
_MARGIN = 3  # words before and behind a window that are read with it
_FURTHER = 3  # words that may stand between two words in the source beyond those in the sentence


class Support(NamedTuple):
    """The support of a sentence: ``number`` from 0 to 1, ``weight`` in a mean over sentences.

    ``found`` holds a bit for each content word, ``place`` is where the place starts that does best, chunk * FURTHEST +
    word, ``fabricated`` the places among the content words of numbers without a basis.
    """

    number: float
    weight: float
    found: int
    place: int | None
    mismatches: tuple[Mismatch, ...]
    fabricated: tuple[int, ...] = ()


def support_of(part: Part, index: Index) -> Support:
    """The support of one sentence by all chunks."""
    count, shift = len(part.content), part.shift
    full = (1 << count) - 1
    found = index.found >> shift & full
    lacking = fabricated(part, found, index.sources) if part.numbers else ()
    for bit in lacking:
        found &= ~(1 << bit)
    held, total = _held(part.weights, found, index.pairs >> shift & full)
    function = (len(part.keys) - count) * FUNCTION_WEIGHT
    total += function
    if not found:
        return Support(0.0, total, 0, None, (), tuple(lacking))
    windows = index.windows(span(len(part.keys)))
    hits = [(mask >> shift & full).bit_count() for mask in windows.masks]
    each, least = sum(part.weights) / count, CLOSE * count
    far = max([number for number in hits if number < least], default=0)
    best = _number(held, min(held, far * each), function * ALONE, total)
    start, wrong = windows.starts[hits.index(far)] if far else None, _NONE
    close = [place for place, number in enumerate(hits) if number >= least][:MOST_PLACES]
    for place in sorted(close, key=hits.__getitem__, reverse=True):
        together = min(held, hits[place] * each)
        if _number(held, together, function, total) <= best:
            break  # neither this place nor one with fewer words can do better
        quality, fitting, unlike = _closer(part, index, windows.starts[place])
        number = _number(held, together * quality, function * fitting, total)
        if number > best:
            best, start, wrong = number, windows.starts[place], unlike
    return Support(best, total, found, start, wrong, tuple(lacking))


def _number(held: float, together: float, function: float, total: float) -> float:
    return (held + TOGETHER * (together - held) + function) / total


def _held(weights: list[float], found: int, pairs: int) -> tuple[float, float]:
    """The weight of the words found, and that of all words."""
    last = 1 << len(weights) - 1
    behind, before = pairs | last, pairs << 1 | 1  # nothing is missed at the ends of a sentence
    between = ~found & found << 1 & found >> 1
    held = total = 0.0
    bit = 1
    for weight in weights:
        if found & bit:
            total += weight
            held += weight * (1 if behind & before & bit else HALF if (behind | before) & bit else LOOSE)
        else:
            total += weight * BETWEEN if between & bit else weight
        bit <<= 1
    return held, total


def _closer(part: Part, index: Index, start: int) -> tuple[float, float, tuple[Mismatch, ...]]:
    """How well a place says what the sentence says, 0 to 1; its share of neighbours; what it says otherwise."""
    chunk, first = divmod(start, FURTHEST)
    words = index.sources[chunk][max(0, first - _MARGIN) : first + span(len(part.keys)) * BLOCK + _MARGIN]
    if _copied(part.keys, words):
        return 1.0, 1.0, _NONE
    neighbours = set(pairwise(part.keys))
    same = len(neighbours.intersection(pairwise(words))) / len(neighbours)
    content = frozenset([part.keys[place] for place in part.content])
    wrong = mismatches(part.keys, content, words)
    quality = prod([1 - one.weight for one in wrong]) * (1 - DISORDER * (1 - _ordered(part, words)))
    return quality, ALONE + (1 - ALONE) * same, tuple(wrong)


def _copied(keys: list[str], words: list[str]) -> bool:
    place, first, count = -1, keys[0], len(keys)
    for _ in range(words.count(first)):
        place = words.index(first, place + 1)
        if words[place : place + count] == keys:
            return True
    return count == 1


def _ordered(part: Part, words: list[str]) -> float:
    """The share of neighbouring content words that stand in ``words`` as in the sentence; turned round count half."""
    places = dict(zip(words, range(len(words)), strict=True))
    size, before, last = len(words), -1, 0
    kept = pairs = 0.0
    for place in part.content:
        key = part.keys[place]
        found = places.get(key, -1)
        if found < 0:
            continue
        if before >= 0:
            steps = place - last
            expected = before + steps
            if expected < size and words[expected] == key:
                found = expected
            gap = found - before
            pairs += 1
            kept += 1 if 0 < gap <= steps + _FURTHER else 0.5 if 0 > gap >= -steps - _FURTHER else 0
        before, last = found, place
    return kept / pairs if pairs else 1.0


_NONE: tuple[Mismatch, ...] = ()
