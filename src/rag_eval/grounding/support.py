"""How far the chunks bear out one sentence: a number from 0 to 1, and the place that does it best.

    support = ((1 - TOGETHER) * G + TOGETHER * P) / all

``G`` is the weight of the words found in the chunks, ``P`` the weight of those that stand together in one place, less
what the place says otherwise, ``all`` the weight of the words looked for. Both ``G`` and ``P`` only grow with what is
found, and the best place counts: another chunk never lowers the support of a sentence.
"""

from __future__ import annotations

from itertools import compress, pairwise
from math import prod

from rag_eval.grounding.mismatches import Mismatch, Sentence, mismatches
from rag_eval.grounding.numbers import fabricated
from rag_eval.grounding.places import BLOCK, span
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.grounding.claims import Part
    from rag_eval.grounding.places import Index, Place

TOGETHER = 0.35  # the share of support that hangs on one place
LOOSE, HALF = 0.7, 0.85  # what a word counts that is found far from its neighbours
BETWEEN = 0.7  # what a missing word counts between two that are found: likely said in other words
FUNCTION_WEIGHT, ALONE = 0.3, 0.5  # what a function word counts, and which part of that where its neighbours differ
DISORDER = 0.3  # what a place loses when its words stand in no common order with those of the sentence
CLOSE = 0.8  # the share of a sentence's content words that makes a place worth a closer look
MOST_PLACES = 8  # places looked at closely, so that a chunk full of repetitions costs no more
_TURNING = frozenset(
    "not never neither nor hardly rarely without nicht nie niemals ohne jamais sans nunca jamás sin non senza niet "
    "nooit zonder não sem не никогда без لا لم لن ليس ولا ولم ولن وليس".split()
)  # not "no": it may be an answer
_SPANISH = frozenset("se es hay está están son fue puede pueden tiene tienen debe deben ha han".split())
"""What "no" denies in Spanish, where it begins a sentence that is otherwise a copy."""
_MARGIN = 3  # words before and behind a window that are read with it
_FURTHER = 3  # words that may stand between two words in the source beyond those in the sentence


class Support(NamedTuple):
    """The support of a sentence: ``number`` from 0 to 1, ``weight`` in a mean over sentences.

    ``found`` holds a bit for each content word, ``place`` is where the place starts that does best, ``mismatches`` are
    what it says otherwise if it holds nearly all words, ``fabricated`` the places among the content words of numbers
    without a basis.
    """

    number: float
    weight: float
    found: int
    place: Place | None
    mismatches: tuple[Mismatch, ...]
    fabricated: tuple[int, ...] = ()


def support_of(part: Part, index: Index) -> Support:
    """The support of one sentence by all chunks."""
    count, shift = len(part.content), part.shift
    own = (1 << count) - 1 << shift
    found = (index.found & own) >> shift
    lacking = fabricated(part, found, index.sources) if part.numbers else []
    for bit in lacking:
        found &= ~(1 << bit)
    held, total = _held(part.weights, found, (index.pairs & own) >> shift)
    function = (len(part.keys) - count) * FUNCTION_WEIGHT
    total += function
    if not found:
        return Support(0.0, total, 0, None, (), tuple(lacking))
    hits = [(mask & own).bit_count() for mask in index.windows(span(len(part.keys)))]
    most, least = max(hits), CLOSE * count
    far = most if most < least else max([number for number in hits if number < least], default=0)
    each = sum(part.weights) / count
    number, window, wrong = _number(held, min(held, far * each), function * ALONE, total), hits.index(most), _NONE
    if far != most:
        near, window, wrong = _nearest(Wanted(part, held, each, function, total), hits, index)
        number = max(number, near)
    return Support(number, total, found, index.place(window), wrong, tuple(lacking))


def _nearest(wanted: Wanted, hits: list[int], index: Index) -> tuple[float, int, tuple[Mismatch, ...]]:
    """The support by the best of the places that hold nearly all words of a sentence, its window, and what it denies.

    What it denies holds even where words that are strewn about would give more support.
    """
    best: tuple[float, int, tuple[Mismatch, ...]] = (-1.0, 0, _NONE)
    for place in sorted(_close(hits, len(wanted.content)), key=hits.__getitem__, reverse=True):
        together = min(wanted.held, hits[place] * wanted.each)
        if _number(wanted.held, together, wanted.function, wanted.total) <= best[0]:
            break  # neither this place nor one with fewer words can do better
        quality, fitting, unlike = _closer(wanted, index, index.place(place), hits[place])
        number = _number(wanted.held, together * quality, wanted.function * fitting, wanted.total)
        if number > best[0]:
            best = number, place, unlike
    return best


def _close(hits: list[int], count: int) -> list[int]:
    """The windows that hold enough of ``count`` content words, the first :data:`MOST_PLACES` of them.

    Of windows that overlap, one with fewer words than another is left out, and the first of two that are alike.
    """
    least, last = CLOSE * count, len(hits) - 1
    close = [place for place, number in enumerate(hits) if number >= least]
    return [
        place
        for place in close
        if hits[place] == count or (hits[place] >= hits[place - 1] and hits[place] > hits[min(place + 1, last)])
    ][:MOST_PLACES]


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


class Wanted:
    """What a closer look at places asks for: the words of a sentence, its pairs of neighbours, and its weights."""

    def __init__(self, part: Part, held: float, each: float, function: float, total: float) -> None:
        self.keys, self.content = part.keys, part.content
        self.held, self.each, self.function, self.total = held, each, function, total
        self.neighbours = frozenset(pairwise(part.keys))
        self.sentence = Sentence.of(part)
        self.width = span(len(part.keys)) * BLOCK


def _closer(wanted: Wanted, index: Index, start: Place, hits: int) -> tuple[float, float, tuple[Mismatch, ...]]:
    """How well a place says what the sentence says, 0 to 1; its share of neighbours; what it says otherwise."""
    first = start.word
    words = index.sources[start.chunk][max(0, first - _MARGIN) : first + wanted.width + _MARGIN]
    before = _before_copies(wanted.keys, words) if hits == len(wanted.content) else []
    if len(wanted.keys) == 1 or not _TURNING.issuperset(before):
        return 1.0, 1.0, _NONE
    same = len(wanted.neighbours.intersection(pairwise(words))) / len(wanted.neighbours)
    wrong = tuple(mismatches(wanted.sentence, words))
    if before and not any(one.reason == "negation" for one in wrong):
        wrong = (*wrong, Mismatch("negation", wanted.keys[wanted.content[0]], 0.9))
    quality = prod([1 - one.weight for one in wrong]) * (1 - DISORDER * (1 - _ordered(wanted, words)))
    return quality, ALONE + (1 - ALONE) * same, wrong


def _before_copies(keys: list[str], words: list[str]) -> list[str]:
    """The word right before each place where ``words`` hold ``keys`` in one piece: it may deny it, "Do not …"."""
    place, first, count = -1, keys[0], len(keys)
    found = []
    for _ in range(words.count(first)):
        place = words.index(first, place + 1)
        if words[place : place + count] == keys:
            before = words[place - 1] if place else ""
            found.append("not" if before == "no" and first in _SPANISH else before)
    return found


def _ordered(wanted: Wanted, words: list[str]) -> float:
    """The share of neighbouring content words that stand in ``words`` as in the sentence; turned round count half."""
    places = {
        words[place]: place for place in compress(range(len(words)), map(wanted.sentence.content.__contains__, words))
    }
    size, before, last = len(words), -1, 0
    kept = pairs = 0.0
    for place in wanted.content:
        key = wanted.keys[place]
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
