"""Questions that are asked twice, nearly twice, or not at all."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rag_eval.common.escaping import quoted
from rag_eval.gold.lint._sample import LintNote
from rag_eval.textual.tokens import tokens

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gold.lint._sample import Sample

    Stems = frozenset[str]

SHARED = 4, 5
"""Of all distinct words of two near-duplicates, so many are in both: four in five."""

_STEM = 5
_FILLERS = frozenset(
    (
        "a an the of in on at for to is are was were be been do does did has have had can could will would may i you "
        "we they he she it me us my your our their his her its this that these those there with by as from and please "
    ).split()
)


def blank(sample: Sample) -> Iterator[LintNote]:
    """Questions without a word."""
    for gold in sample.items:
        if not tokens(gold.question):
            yield LintNote("its question has no word", "Ask something, or drop the item.", gold)


def contradiction(sample: Sample) -> Iterator[LintNote]:
    """The same question with other labels."""
    for first, gold in _repeated(sample.items):
        differs = _differences(first, gold)
        if differs:
            message = f"it asks the same as {quoted(first.qid)}, with other {' and '.join(differs)}"
            yield LintNote(message, "Make the labels agree, or the questions differ.", gold)


def duplicate(sample: Sample) -> Iterator[LintNote]:
    """The same question with the same labels."""
    for first, gold in _repeated(sample.items):
        if not _differences(first, gold):
            message = f"it asks the same as {quoted(first.qid)}: the question counts twice"
            yield LintNote(message, "Drop one of them.", gold)


def near_duplicate(sample: Sample) -> Iterator[LintNote]:
    """Questions that say hardly more than another one.

    All telling words of one are in the other, and :data:`SHARED` of all their words are shared. Words are compared by
    their first five letters, those with digits as a whole; all but fillers (a, of, is, …) are telling.
    """
    firsts = {_same(gold): gold for gold in reversed(sample.items)}
    for gold, other in near_duplicates(firsts.values()):
        message = f"it asks nearly the same as {quoted(other.qid)}: {quoted(other.question, 100)}"
        agrees = "" if gold.answerable == other.answerable else " One is answerable and the other is not: check both."
        yield LintNote(message, f"Keep one of them, or make them differ.{agrees}", gold)


def near_duplicates(golds: Iterable[Gold]) -> list[tuple[Gold, Gold]]:
    """Each near-duplicate with the most alike of the items whose qid comes before its own.

    Exact: the items that have all the telling words of another are the intersection of those that have each of them.
    """
    groups: dict[Stems, list[Gold]] = {}
    for gold in sorted(golds, key=lambda gold: gold.qid):
        groups.setdefault(_stems(gold.question), []).append(gold)
    found = [(gold, same[0]) for same in groups.values() for gold in same[1:] if _telling(_stems(gold.question))]
    best: dict[str, tuple[float, str]] = {}
    firsts = {same[0].qid: (same[0], stems) for stems, same in groups.items()}
    for one, other, likeness in _nested({qid: stems for qid, (_, stems) in firsts.items()}):
        early, late = sorted((one, other))
        best[late] = min(best.get(late, (0.0, "")), (-likeness, early))
    return found + [(firsts[late][0], firsts[early][0]) for late, (_, early) in best.items()]


def _nested(asked: Mapping[str, Stems]) -> Iterator[tuple[str, str, float]]:
    """Pairs of which one has all telling words of the other, with the share of words that is in both, if enough."""
    having: dict[str, set[str]] = {}
    for qid, stems in asked.items():
        for stem in _telling(stems):
            having.setdefault(stem, set()).add(qid)
    share, of = SHARED
    for qid, stems in asked.items():
        telling = sorted((having[stem] for stem in _telling(stems)), key=len)
        for other in (telling[0].intersection(*telling[1:]) if telling else set()) - {qid}:
            both = len(stems & asked[other])
            every = len(stems) + len(asked[other]) - both
            if of * both >= share * every:
                yield qid, other, both / every


def _stems(question: str) -> Stems:
    return frozenset(token if any(map(str.isdigit, token)) else token[:_STEM] for token in tokens(question))


def _telling(stems: Stems) -> Stems:
    return stems - _FILLERS


def _repeated(items: Iterable[Gold]) -> Iterator[tuple[Gold, Gold]]:
    """The first item that asks a question, with each further one."""
    firsts: dict[str, Gold] = {}
    for gold in items:
        first = firsts.setdefault(_same(gold), gold)
        if first is not gold and tokens(gold.question):
            yield first, gold


def _same(gold: Gold) -> str:
    """What is equal for the same question: case, white space and the signs at its end aside."""
    return " ".join(unicodedata.normalize("NFKC", gold.question).casefold().split()).rstrip(" ?!.")


def _differences(one: Gold, other: Gold) -> list[str]:
    if one.answerable != other.answerable:
        return ["answerable"]
    pairs = {
        "gold_claim_substr": (set(one.substrings), set(other.substrings)),
        "gold_citations": (set(one.citations), set(other.citations)),
        "supports": (one.supports, other.supports),
        "sections": (one.sections, other.sections),
        "relevant_docs": (set(one.relevant_docs or ()), set(other.relevant_docs or ())),
        "expected_answer": (one.expected_answer, other.expected_answer),
    }
    return [name for name, (mine, its) in pairs.items() if mine != its]
