"""Where a sentence and the place that holds its words say different things of them.

Each check looks at the words around a word that both sides hold: is it denied here and not there, all here and some
there, certain here and possible there.
"""

from __future__ import annotations

from typing import NamedTuple

from rag_eval.grounding.lexicon import DOUBT, FUNCTION, HEDGES, NEGATIONS, QUANTIFIERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

REACH = 5  # words after a mark in which the word that it is about stands
_QUANTITIES = frozenset(QUANTIFIERS)
_MARKS = NEGATIONS | _QUANTITIES | DOUBT
_TURNS = frozenset("but although though while however because".split())


class Mismatch(NamedTuple):
    """``reason`` in a word, the ``key`` that it is about, and how much it takes away: 0 to 1."""

    reason: str
    key: str
    weight: float


def mismatches(claim: list[str], content: frozenset[str], window: list[str]) -> list[Mismatch]:
    """Why ``window``, the keys of a place in a chunk, does not say what the keys of ``claim`` say.

    ``content`` are the keys of ``claim`` that are no function words.
    """
    here, there = _MARKS.intersection(claim), _MARKS.intersection(window)
    if not (here or there):
        return []
    found: list[Mismatch] = []
    held = content.intersection(window)
    if not (NEGATIONS.isdisjoint(here) and NEGATIONS.isdisjoint(there)):
        found.extend(_denials(claim, window, held))
    if not _QUANTITIES.isdisjoint(here):
        found.extend(_quantities(claim, window, held))
    if not DOUBT.isdisjoint(there):
        found.extend(_doubts(claim, window, held))
    return found


def _denials(claim: list[str], window: list[str], held: frozenset[str]) -> Iterable[Mismatch]:
    for key in sorted(held.intersection(_marked(claim, NEGATIONS)) - _around(window, NEGATIONS)):
        yield Mismatch("negation", key, 0.9)
    for key in sorted(held.intersection(_marked(window, NEGATIONS)) - _around(claim, NEGATIONS)):
        if window.count(key) == 1:
            yield Mismatch("negation", key, 0.9)


def _quantities(claim: list[str], window: list[str], held: frozenset[str]) -> Iterable[Mismatch]:
    there = _kinds(window)
    for key, kinds in _kinds(claim).items():
        if key in held:
            for kind in sorted(kinds - there.get(key, set())):
                if key in there:
                    yield Mismatch("quantifier", key, 0.7)
                elif kind != "some":
                    yield Mismatch("quantifier", key, 0.4)


def _doubts(claim: list[str], window: list[str], held: frozenset[str]) -> Iterable[Mismatch]:
    for key in sorted(held.intersection(_marked(window, DOUBT)) - _around(claim, HEDGES)):
        if window.count(key) == 1:
            yield Mismatch("hedge", key, 0.5)


def _marked(words: list[str], marks: frozenset[str]) -> set[str]:
    """The words that marks are about: of each the next that is no function word. One at the start answers: "No, …"."""
    found = set()
    for place, word in enumerate(words):
        if word in marks and place:
            for other in words[place + 1 : place + 1 + REACH]:
                if other in _TURNS:
                    break
                if other not in FUNCTION and other not in marks:
                    found.add(other)
                    break
    return found


def _around(words: list[str], marks: frozenset[str]) -> set[str]:
    """The words that stand within reach of a mark."""
    found: set[str] = set()
    for place, word in enumerate(words):
        if word in marks:
            found.update(words[max(0, place - 3) : place + 2 + REACH])
    return found


def _kinds(words: list[str]) -> dict[str, set[str]]:
    """The kinds of quantity that are said of words."""
    found: dict[str, set[str]] = {}
    for place, word in enumerate(words):
        if word in _QUANTITIES and place and not (words[place - 1] == "the" and QUANTIFIERS[word] == "most"):
            for other in words[place + 1 : place + 1 + REACH]:
                if other not in FUNCTION and other not in QUANTIFIERS:
                    found.setdefault(other, set()).add(QUANTIFIERS[word])
                    break
    return found
