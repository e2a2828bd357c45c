"""Groundedness without a judge: how far the retrieved chunks support an answer, sentence by sentence.

The value is the mean of three precisions over the words of the answer: the share of its content words that occur in
the chunks, of its neighbouring words that are neighbours there, and of its neighbouring content words that are near
each other there. A sentence is supported if its own value is high enough, none of its numbers is made up, and the best
place does not deny it or have another number or unit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.textual.refusals import says_nothing
from rag_eval.textual.sentences import CHECKED, Span, kind_of, sentences
from rag_eval.textual.tokens import MAX_PASSAGE, MAX_PASSAGES
from rag_eval.textual.words import (
    CURRENCIES,
    FUNCTION,
    NEGATIONS,
    SAID,
    is_number,
    keys,
    patterns,
    stem,
    variants,
    word_list,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_eval.textual.sentences import Kind

ASSERTION, INFERENCE = 0.31, 0.26
"""The support from which an assertion and an inference count as supported."""
CLAIM_MADE = 0.8
"""The share of the content words of a claim that an answer has to have in order to make the claim."""
NEAR = 10
"""Words within which two content words are near each other, and a small number is near its sentence's words."""
CLOSE = 0.8
"""The share of a sentence's content words in one place from which the place is held against the sentence."""
_LISTENS_BELOW = 0.6  # support below which a sentence may be one that says that the sources lack something
_COMMON = frozenset({"0", "1"})  # *one* is mostly no number
_MAX_COUNT = 20  # things that an announced list has
_COUNTS = frozenset(map(str, range(2, 100)))
_SMALL = 2  # digits of a number that occurs somewhere by chance
_MAX_PLACES = 64  # places of a word that are looked at for the best place
_MARGIN = 3  # words around a place that are read with it
_REACH = 5  # words behind a negation in which the word that it denies occurs
_DENIALS = NEGATIONS | frozenset(map(stem, word_list("implied"))) | word_list("implied")
_DENYING = NEGATIONS - {
    "without",
    "none",
    "nobody",
    "nothing",
    "fails",
    "failed",
    "unable",
    "ohne",
    "sans",
    "sin",
    "senza",
}
_TURNING = _DENYING - {"no"} | {"without", "ohne", "sans", "sin", "senza"}
"""Words that deny a sentence right behind them. *No* may be an answer."""
_CONDITIONS = frozenset("if when unless whether wenn falls si se als если".split())
_NOT_ONLY = frozenset("just only necessarily always nur seulement solo только".split())
_SPANISH = frozenset("se es hay está están son fue puede pueden tiene tienen debe deben ha han".split())
_UNITS = frozenset(map(stem, word_list("units"))) | {"m"}
_CURRENCIES = frozenset(map(stem, CURRENCIES.values()))
_NOON = 12
_AFTERNOON = frozenset({"pm", "p"})
_LISTED = re.compile(r"(?<![^\s*_])\(?([0-9]{1,2})[.)](?=\s|\Z)")
_STATES_NOTHING = patterns("stated_nothing").values()
_SEPARATOR = re.compile(r",|;|\band\b|\bor\b|\n[\s]*[-*•0-9]")


class Sentence(NamedTuple):
    """A sentence of a claim. ``keys`` are its words, ``content`` the places in ``keys`` of those with content."""

    start: int
    end: int
    kind: Kind
    keys: list[str]
    content: list[int]

    @property
    def width(self) -> int:
        """The words of a place that may support it."""
        return len(self.keys) + NEAR


class Mismatch(NamedTuple):
    """What the best place says otherwise of a word of the sentence."""

    reason: Literal["negation", "number", "unit"]
    key: str


class Place(NamedTuple):
    """A part of a chunk, in words."""

    chunk: int
    first: int
    last: int


class Support(NamedTuple):
    """The support of a sentence by the chunks.

    ``words``, ``neighbours`` and ``near`` are counts: how many content words, pairs of words and pairs of content words
    the chunks have, of how many. ``missing`` and ``made_up`` are places among the sentence's words.
    """

    words: tuple[int, int]
    neighbours: tuple[int, int]
    near: tuple[int, int]
    missing: tuple[int, ...]
    made_up: tuple[int, ...] = ()
    place: Place | None = None
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def number(self) -> float:
        """The support from 0 to 1."""
        return blend(*self[:3])


class Checked(NamedTuple):
    """A sentence and its support."""

    sentence: Sentence
    support: Support


def blend(*counts: tuple[int, int]) -> float:
    """Return the mean of shares. A share of nothing is left out."""
    shares = [part / whole for part, whole in counts if whole]
    return sum(shares) / len(shares) if shares else 0.0


def ground(claim: str, chunks: Sequence[str], question: str = "") -> list[Checked]:
    """Return the sentences of ``claim`` with content, each with its support by the texts of ``chunks``."""
    found = [one for span in sentences(claim) if (one := _sentence(claim, span)).content]
    index = Index(chunks, frozenset([pair for one in found for pair in pairwise(one.keys)]))
    asked = frozenset(filter(is_number, keys(question))) if question else frozenset()
    return [_checked(claim, one, index, asked) for one in found]


def groundedness(checked: Sequence[Checked]) -> float | None:
    """Return how far the chunks support an answer, from 0 to 1; None if it has no content."""
    if not checked:
        return None
    counts = [one.support[:3] for one in checked]
    return blend(
        *[(sum(part for part, _ in column), sum(whole for _, whole in column)) for column in zip(*counts, strict=True)]
    )


def supported(one: Checked, assertion: float = ASSERTION, inference: float = INFERENCE) -> bool | None:
    """Return whether a sentence is supported; None if it is not checked."""
    sentence, support = one
    if sentence.kind not in CHECKED:
        return None
    limit = assertion if sentence.kind == "assertion" else inference
    return support.number >= limit and not support.made_up and not support.mismatches


def makes(answer: str, claim: str) -> bool:
    """Return whether ``answer`` has nearly all words of each sentence of ``claim`` and does not deny them."""
    checked = ground(claim, [answer])
    return bool(checked) and all(
        one.support.words[0] >= CLAIM_MADE * one.support.words[1]
        and not one.support.made_up
        and all(wrong.reason != "negation" for wrong in one.support.mismatches)
        for one in checked
    )


def _sentence(claim: str, span: Span) -> Sentence:
    read = keys(claim[span.start : span.end])
    content = [place for place, key in enumerate(read) if key not in FUNCTION]
    kind = kind_of(claim, span, read, len(content)) if content else "transition"
    return Sentence(span.start, span.end, kind, read, content)


class Source(NamedTuple):
    """A chunk as it is read: its words, the places of each, the pairs of neighbours, whether it denies anything."""

    keys: list[str]
    places: dict[str, list[int]]
    pairs: frozenset[tuple[str, str]]
    denies: bool


@lru_cache(maxsize=MAX_PASSAGES)
def _remembered(text: str) -> Source:
    return _read(text)


def _read(text: str) -> Source:
    read, places = keys(text), dict[str, list[int]]()
    for place, key in enumerate(read):
        places.setdefault(key, []).append(place)
    return Source(read, places, frozenset(pairwise(read)), not _DENIALS.isdisjoint(places))


def forget() -> None:
    """Forget the chunks that were read, so that a measurement reads them as new."""
    _remembered.cache_clear()


class Index:
    """Where words occur in the chunks."""

    def __init__(self, chunks: Sequence[str], pairs: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.sources = [_remembered(text) if len(text) <= MAX_PASSAGE else _read(text) for text in chunks]
        self._places = [source.places for source in self.sources]
        self.vocabulary = frozenset[str]().union(*self._places)
        self.pairs = frozenset[tuple[str, str]]().union(*[pairs & source.pairs for source in self.sources])
        """Those of the asked ``pairs`` that are neighbours in a chunk."""
        self._near: dict[tuple[str, str, int], bool] = {}

    def near(self, first: str, second: str, distance: int = NEAR) -> bool:
        """Return whether two words occur within so many words of each other."""
        key = first, second, distance
        known = self._near.get(key)
        if known is not None:
            return known
        found = False
        for places in self._places:
            if first in places and second in places and _are_near(places[first], places[second], distance):
                found = True
                break
        self._near[key] = found
        return found

    def before_copies(self, read: list[str]) -> set[str]:
        """Return the words right before each copy of a sentence."""
        found = set()
        for source in self.sources:
            for place in source.places.get(read[0], ())[:_MAX_PLACES]:
                if source.keys[place : place + len(read)] == read:
                    found.add(source.keys[place - 1] if place else "")
        return found

    def best_place(
        self, wanted: frozenset[str], width: int, least: float = 1, denying: bool = False
    ) -> tuple[Place, int] | None:
        """Return the shortest place of at most ``width`` words with most of the words, and how many it has.

        None if no place has ``least`` of them, or if only places that deny are asked for and no such chunk denies.
        """
        best, found = (0, 0), None
        words = [(chunk, [*filter(places.__contains__, wanted)]) for chunk, places in enumerate(self._places)]
        words = [(chunk, known) for chunk, known in words if len(known) >= least]
        if denying and not any(self.sources[chunk].denies for chunk, _ in words):
            return None
        for chunk, known in words:
            places = self._places[chunk]
            if len(known) < best[0]:
                continue
            hits = sorted([(place, key) for key in known for place in places[key][:_MAX_PLACES]])
            first, counts = 0, dict[str, int]()
            for place, key in hits:
                counts[key] = counts.get(key, 0) + 1
                while place - hits[first][0] >= width or counts[hits[first][1]] > 1:
                    out = hits[first][1]
                    counts[out] -= 1
                    if not counts[out]:
                        del counts[out]
                    first += 1
                if len(counts) >= best[0] and (len(counts), hits[first][0] - place) > best:
                    best = len(counts), hits[first][0] - place
                    found = Place(chunk, hits[first][0], place)
        return None if found is None or best[0] < least else (found, best[0])


def _are_near(ours: list[int], theirs: list[int], distance: int) -> bool:
    """Return whether one of the places in ``ours`` is within so many words of one in ``theirs``."""
    if len(ours) > len(theirs):
        ours, theirs = theirs, ours
    for place in ours:
        at = bisect_left(theirs, place - distance)
        if at < len(theirs) and theirs[at] <= place + distance:
            return True
    return False


def _checked(claim: str, one: Sentence, index: Index, asked: frozenset[str]) -> Checked:
    read, count = one.keys, len(one.content)
    missing = tuple([place for place in one.content if read[place] not in index.vocabulary])
    neighbours = [pair in index.pairs for pair in pairwise(read)]
    near = 0
    for a, b in pairwise(one.content):
        near += (b - a == 1 and neighbours[a]) or index.near(read[a], read[b], max(NEAR, b - a))
    support = Support(
        (count - len(missing), count), (sum(neighbours), len(neighbours)), (near, max(0, count - 1)), missing
    )
    first_places = {read[place]: place for place in reversed(one.content) if is_number(read[place])}
    numbers = sorted(place for number, place in first_places.items() if number not in _COMMON)
    if numbers:
        made_up = [place for place in numbers if read[place] not in asked and not _has_basis(one, place, index)]
        support = support._replace(made_up=_not_excused(claim, one, made_up) if made_up else ())
    if CLOSE * count <= support.words[0]:
        support = _compared(one, support, numbers, index)
    if one.kind in CHECKED and support.number < _LISTENS_BELOW and says_nothing(claim[one.start : one.end]):
        one = one._replace(kind="gap")
    return Checked(one, support)


def _has_basis(one: Sentence, place: int, index: Index) -> bool:
    """Return whether the chunks have a number, a small one near another content word of its sentence."""
    number = one.keys[place]
    if number in index.vocabulary:
        if not number.isdigit() or len(number) > _SMALL or len(one.content) == 1:
            return True
        at = one.content.index(place)
        others = {one.keys[other] for other in one.content[max(0, at - NEAR) : at + NEAR + 1]} - {number}
        if any(index.near(number, other) for other in others):
            return True
    written = [*variants(number), *_clocks(one.keys, place)]
    return any(index.vocabulary.issuperset(way) for way in written)


def _clocks(read: list[str], place: int) -> list[list[str]]:
    """Return the hour of ``5:30 pm`` as 17, and 17 as 5 pm."""
    number, behind = read[place], read[place + 1 : place + 3]
    if not number.isdigit() or len(number) > _SMALL:
        return []
    hour = int(number)
    if 0 < hour < _NOON and not _AFTERNOON.isdisjoint(behind):
        return [[str(hour + _NOON)]]
    return [[str(hour - _NOON), sign] for sign in _AFTERNOON] if _NOON < hour < 2 * _NOON else []


def _not_excused(claim: str, one: Sentence, numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers without those that state nothing: list numbers, versions, decades, cited years, counts."""
    text = claim[one.start : one.end]
    spans = [match.span() for rule in _STATES_NOTHING for match in rule.finditer(text)]
    listed = {match[1] for match in _LISTED.finditer(claim)}
    spans += [match.span() for match in _LISTED.finditer(text) if str(int(match[1]) - 1) in listed]
    announced = text.rstrip("*_ ").endswith((":", "："))
    most = _MAX_COUNT if announced else 1 + len(_SEPARATOR.findall(text))
    kept = [place for place in numbers if not (one.keys[place] in _COUNTS and int(one.keys[place]) <= most)]
    if kept and spans:
        found = words(text)
        kept = [at for at in kept if not any(low <= found[at].start and found[at].end <= high for low, high in spans)]
    return tuple(kept)


def _compared(one: Sentence, support: Support, numbers: Sequence[int], index: Index) -> Support:
    """Return ``support`` with the best place and what it says otherwise, if it has nearly all content words."""
    content = frozenset([one.keys[place] for place in one.content])
    if len(one.content) == 1:
        return support
    copies = index.before_copies(one.keys) if support.neighbours[0] == support.neighbours[1] else set()
    if copies:
        spanish = {"no"} if one.keys[0] in _SPANISH else set()
        denied = (_TURNING | spanish).issuperset(copies)
        wrong = [Mismatch("negation", one.keys[one.content[0]])] if denied else []
    else:
        plain = not numbers and _DENIALS.isdisjoint(one.keys)
        found = index.best_place(content, one.width, CLOSE * len(content), denying=plain)
        if found is None:
            return support
        support = support._replace(place=found[0])
        chunk, first, last = found[0]
        there = index.sources[chunk].keys[max(0, first - _MARGIN) : last + _MARGIN + 1]
        wrong = [*_denials(one.keys, there), *_other_numbers(one, numbers, support.made_up, there)]
    if wrong:  # its words are there, but not together
        nothing = (0, support.neighbours[1]), (0, support.near[1])
        support = support._replace(neighbours=nothing[0], near=nothing[1], mismatches=tuple(dict.fromkeys(wrong)))
    return support


def _denials(here: list[str], there: list[str]) -> Iterable[Mismatch]:
    """Yield a word that one side denies, if the other has the same words around it and denies nothing."""
    if not _CONDITIONS.isdisjoint(here) or _DENIALS.isdisjoint(here) == _DENIALS.isdisjoint(there):
        return
    ours, theirs = _aligned(here, there), _aligned(there, here)
    for read, other, around, around_other in ((here, there, ours, theirs), (there, here, theirs, ours)):
        if _DENIALS.isdisjoint(other):
            for key in _denied(read, 1 + (read is here)):
                if key in around and _same_neighbours(key, around, around_other):
                    yield Mismatch("negation", key)
                    return


def _aligned(read: list[str], other: list[str]) -> list[str]:
    """Return the content words that the other side has too."""
    both = frozenset(other) - FUNCTION - NEGATIONS
    return [key for key in read if key in both]


def _same_neighbours(key: str, ours: list[str], theirs: list[str]) -> bool:
    here, there = ours.index(key), theirs.index(key)
    before = not here or not there or ours[here - 1] == theirs[there - 1]
    return before and (ours[here + 1 : here + 2] or theirs[there + 1 : there + 2]) == (
        theirs[there + 1 : there + 2] or ours[here + 1 : here + 2]
    )


def _denied(read: list[str], most: int) -> list[str]:
    """Return the first content words behind each negation, at most so many of each."""
    found = []
    for place in compress(range(len(read)), map(_DENYING.__contains__, read)):
        before, behind = read[max(0, place - 2) : place], read[place + 1 : place + 1 + _REACH]
        if read[place] == "no" and not (FUNCTION.intersection(before[-1:]) or _SPANISH.intersection(behind[:1])):
            continue  # the answer *No*
        if _CONDITIONS.isdisjoint(before) and _NOT_ONLY.isdisjoint(behind[:1]):
            found += [key for key in behind if key not in FUNCTION and key not in NEGATIONS][:most]
    return found


def _other_numbers(
    one: Sentence, numbers: Sequence[int], made_up: Sequence[int], there: list[str]
) -> Iterable[Mismatch]:
    """Yield numbers that the place has not though it has others, and units that it has not with the same number."""
    if not numbers:
        return
    others = {key for key in there if is_number(key)} - {*one.keys}
    ours, theirs = _units(one.keys), _units(there)
    for place in numbers:
        number = one.keys[place]
        if number in theirs:
            if theirs[number]:
                yield from [Mismatch("unit", unit) for unit in sorted(ours[number] - theirs[number])]
        elif others and place not in made_up and not any({*way} <= theirs.keys() for way in variants(number)):
            yield Mismatch("number", number)


def _units(read: list[str]) -> dict[str, set[str]]:
    """Return the units of each number in a text: behind it, or a currency before it."""
    found: dict[str, set[str]] = {}
    for place, key in enumerate(read):
        if is_number(key):
            behind = [one for one in read[place + 1 : place + 4] if one not in (SAID, "degree")][:1]
            units = {one for one in behind if one in _UNITS}
            units |= {one for one in read[max(0, place - 1) : place] if one in _CURRENCIES}
            found.setdefault(key, set()).update(units)
    return found
