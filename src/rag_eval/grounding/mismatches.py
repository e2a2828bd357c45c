"""Where a sentence and the place that holds its words say different things of them.

Each check looks at the words around a word that both sides hold: is it denied here and not there, all here and some
there, certain here and possible there. Numbers have to stand there too, with the same unit.
"""

from __future__ import annotations

from itertools import compress, pairwise, takewhile

from rag_eval.grounding.lexicon import CURRENCIES, DOUBT, FUNCTION, HEDGES, IMPLIED, NEGATIONS, QUANTIFIERS, SAID, UNITS
from rag_eval.grounding.words import key as folded
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_eval.grounding.claims import Part

REACH = 5  # words after a mark in which the word that it is about stands
BESIDE = 4  # words on each side of a copy of a word that tell whether a sentence is about that copy
_QUANTITIES = frozenset(QUANTIFIERS)
_DENIALS = NEGATIONS | frozenset(map(folded, IMPLIED.split()))
_MARKS = _DENIALS | _QUANTITIES | HEDGES
_UNITS = {folded(unit): folded(unit) for unit in UNITS.split()} | {"m": folded("meter")}
_BETWEEN = frozenset({SAID, folded("degrees")})  # what may stand between a number and its unit
_CURRENCIES = frozenset(map(folded, CURRENCIES.values()))
DENYING = frozenset({"negation", "number", "unit"})
"""Reasons that make a sentence unsupported, whatever its support."""
_TURNS = frozenset("but although though while however because".split())


class Mismatch(NamedTuple):
    """``reason`` in a word, the ``key`` that it is about, and how much it takes away: 0 to 1."""

    reason: str
    key: str
    weight: float


class Sentence(NamedTuple):
    """A sentence of a claim: ``content`` are the keys that are no function words, ``marks`` the places of marks."""

    keys: list[str]
    content: frozenset[str]
    marks: list[int]
    numbers: list[str]

    @classmethod
    def of(cls, part: Part) -> Sentence:
        """The sentence that ``part`` is."""
        keys, content = part.keys, part.content
        numbers = [keys[content[bit]] for bit in part.numbers]
        return cls(keys, frozenset([keys[place] for place in content]), _marks_of(keys), numbers)


def _marks_of(words: list[str]) -> list[int]:
    return [*compress(range(len(words)), map(_MARKS.__contains__, words))]


def mismatches(sentence: Sentence, window: list[str]) -> list[Mismatch]:
    """Why ``window``, the keys of a place that holds nearly all content words of a sentence, does not say the same."""
    found = [*_numbers(sentence, window)] if sentence.numbers else []
    marks = _marks_of(window)
    return [*found, *_marked(sentence, window, marks)] if marks or sentence.marks else found


def _numbers(sentence: Sentence, window: list[str]) -> Iterable[Mismatch]:
    """Numbers that are not there, though they are elsewhere; and those that count something else there."""
    there, counted_here, counted_there = frozenset(window), _counted(sentence.keys), _counted(window)
    for number in dict.fromkeys(sentence.numbers):
        if number not in there:
            yield Mismatch("number", number, 0.5)
        elif number in counted_there:
            for unit in sorted(counted_here.get(number, set()) - counted_there[number]):
                yield Mismatch("unit", unit, 0.5)


def _counted(words: list[str]) -> dict[str, set[str]]:
    """What numbers count, by number; a magnitude is part of its number, and a currency may stand before it."""
    found: dict[str, set[str]] = {}
    for before, word in pairwise(words if _BETWEEN.isdisjoint(words) else [x for x in words if x not in _BETWEEN]):
        if before in _CURRENCIES and word[0].isdigit():
            found.setdefault(word, set()).add(before)
        if word in _UNITS:
            found.setdefault(before, set()).add(_UNITS[word])
    return found


def _marked(sentence: Sentence, window: list[str], marks: list[int]) -> list[Mismatch]:
    own, other = _Marked(sentence.keys, sentence.marks), _Marked(window, marks)
    held = sentence.content.intersection(window)
    here_said, there_said = own.said(), other.said()
    found: list[Mismatch] = []
    if not (NEGATIONS.isdisjoint(here_said) and NEGATIONS.isdisjoint(there_said)):
        found.extend(_denials(own, other, held))
    if not _QUANTITIES.isdisjoint(here_said):
        found.extend(_quantities(own, other, held))
    if not DOUBT.isdisjoint(there_said):
        found.extend(_doubts(own, other, held))
    return found


class _Marked(NamedTuple):
    """Words, and where marks stand among them."""

    words: list[str]
    places: list[int]

    def said(self) -> list[str]:
        """The marks themselves."""
        return [self.words[place] for place in self.places]

    def about(self, marks: frozenset[str], of: frozenset[str]) -> list[list[str]]:
        """The words ``of`` some within reach behind each mark. The first word of all answers: "No, …"."""
        behind = [self._behind(place) for place in self.places if self.words[place] in marks]
        return [[word for word in near if word in of] for near in behind]

    def right_before(self, marks: frozenset[str], of: frozenset[str]) -> set[str]:
        """The next word behind each mark that is no function word, if it is ``of`` some and they are about it there."""
        found = [(place, self._content(place, marks)) for place in self.places if self.words[place] in marks]
        return {word for place, words in found for word in words if word in of and self._nearest(place, word, of)}

    def _nearest(self, mark: int, word: str, of: frozenset[str]) -> bool:
        """Whether more words ``of`` some stand around ``word`` behind a mark than around any other copy of it."""
        if self.words.count(word) == 1:
            return True
        first = self.words.index(word, mark)
        counts = {place: self._beside(place, of) for place, other in enumerate(self.words) if other == word}
        own = counts.pop(first)
        return all(count < own for count in counts.values())

    def _beside(self, place: int, of: frozenset[str]) -> int:
        return len(of.intersection(self.words[max(0, place - BESIDE) : place + 1 + BESIDE]))

    def around(self, marks: frozenset[str]) -> set[str]:
        """The words that stand within reach of a mark."""
        found: set[str] = set()
        for place in self.places:
            if self.words[place] in marks:
                found.update(self.words[max(0, place - 3) : place + 2 + REACH])
        return found

    def kinds(self) -> dict[str, set[str]]:
        """The kinds of quantity that are said of words; "the most" is none."""
        found: dict[str, set[str]] = {}
        for place in self.places:
            kind = QUANTIFIERS.get(self.words[place])
            if kind and place and not (kind == "most" and self.words[place - 1] == "the"):
                for word in self._content(place, _QUANTITIES):
                    found.setdefault(word, set()).add(kind)
        return found

    def _content(self, place: int, marks: frozenset[str]) -> list[str]:
        """The first content word within reach behind a mark."""
        return [word for word in self._behind(place) if word not in FUNCTION and word not in marks][:1]

    def _behind(self, place: int) -> Iterable[str]:
        """The words within reach behind a mark, up to where the sentence takes a turn; none behind the first word."""
        near = self.words[place + 1 : place + 1 + REACH] if place else ()
        return near if _TURNS.isdisjoint(near) else takewhile(lambda word: word not in _TURNS, near)


def _denials(claim: _Marked, window: _Marked, held: frozenset[str]) -> Iterable[Mismatch]:
    """What one side denies and the other does not.

    What the sentence denies may be a word that is not there at all: then the next counts. What the source denies of a
    word that the sentence does not use is another matter.
    """
    there = window.around(_DENIALS)
    found = {words[0] for words in claim.about(NEGATIONS, held) if words and there.isdisjoint(words)}
    for key in sorted(found | (window.right_before(NEGATIONS, held) - claim.around(_DENIALS))):
        yield Mismatch("negation", key, 0.9)


def _quantities(claim: _Marked, window: _Marked, held: frozenset[str]) -> Iterable[Mismatch]:
    there = window.kinds()
    for key, kinds in claim.kinds().items():
        if key in held:
            for kind in sorted(kinds - there.get(key, set())):
                if key in there:
                    yield Mismatch("quantifier", key, 0.7)
                elif kind != "some":
                    yield Mismatch("quantifier", key, 0.4)


def _doubts(claim: _Marked, window: _Marked, held: frozenset[str]) -> Iterable[Mismatch]:
    for key in sorted(window.right_before(DOUBT, held) - claim.around(HEDGES)):
        yield Mismatch("hedge", key, 0.5)
