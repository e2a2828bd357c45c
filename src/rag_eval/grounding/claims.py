"""A claim cut into its sentences, each with the words that have to be found."""

from __future__ import annotations

import re
from itertools import compress

from rag_eval.grounding.lexicon import FUNCTION, GENERAL, SELF, TENTATIVE
from rag_eval.grounding.sentences import sentences
from rag_eval.grounding.words import LONGEST, MEMORY, keys
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    Kind = Literal["general", "heading", "inference", "assertion"]

NUMBER_WEIGHT, SELF_WEIGHT, REPEATED = 2.5, 1.3, 0.2
LENGTH_WEIGHTS = (0.5, 0.5, 0.63, 0.73, 0.82, 0.89, 0.95, 1.0, 1.05, 1.09, 1.13, 1.17, 1.2)
"""Weight of a word by the length of its key: the logarithm of the length + 2 in units of log 9."""
UNCHECKED = frozenset({"general", "heading"})
"""Kinds of sentences that claim nothing of their own."""
COMMON = frozenset({"0", "1"})  # "one" is mostly no number
MOST, LONGEST_CLAIM = 200, 40_000  # sentences, and characters of all; what has more is no answer
_AT_ONCE = 4  # words
_LONGEST = len(LENGTH_WEIGHTS) - 1
_ITEM = re.compile(
    r"""[\s*_\#>•·–-]*
    (?: \(?[0-9]{1,3}(?:\.[0-9]{1,2})*[.)][*_]*\s+  # 2.  (2)  1.2.  **2.**
      | [0-9]\ufe0f?\u20e3                          # a digit on a key
      | (?i:step)\s[0-9]{1,2}\s?[:.)–-][*_]*\s       # Step 2:
      | (?i:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)(?:ly)?,\s
    )?[\s*_]*""",
    re.VERBOSE,
)


_TABLE_RULE = re.compile(r"\s*\|\s*:?--")


class Part(NamedTuple):
    """A sentence of a claim, from ``start`` to ``end`` in characters, without the number or bullet of a list's item.

    ``keys`` are all its words, ``content`` the places in ``keys`` of those that are no function words, ``weights`` how
    much each of these counts: a word that the claim has used before is its topic and weighs little. ``shift`` is the
    bit of the first of them among the bits of the whole claim, ``numbers`` the places in ``content`` of numbers,
    without those too common to tell anything.
    """

    start: int
    end: int
    kind: Kind
    keys: list[str]
    content: list[int]
    weights: list[float]
    shift: int
    numbers: list[int]


def parts(claim: str) -> list[Part]:
    """The sentences of ``claim`` that have content, the first :data:`MOST` of them in its first characters."""
    claim = claim[:LONGEST_CLAIM]
    found: list[Part] = []
    seen: set[str] = set()
    shift = 0
    spans = [*_without_items(claim)]
    for (first, start, end), read in zip(spans, keys([claim[start:end] for _, start, end in spans]), strict=True):
        if len(found) == MOST:
            break
        weights = [*map(_WEIGHTS.__getitem__, read)]
        content = [*compress(range(len(read)), weights)]
        if content:
            counted = [w * REPEATED if key in seen else w for key, w in zip(read, weights, strict=True) if w]
            numbers = _numbers(read, content) if NUMBER_WEIGHT in weights else []
            sort = "heading" if _announces(claim, first, start, end) else kind(read)
            found.append(Part(start, end, sort, read, content, counted, shift, numbers))
            seen.update(read)
            shift += len(content) + 1  # a bit between two sentences: their words are no neighbours
    return found


def _without_items(claim: str) -> Iterator[tuple[int, int, int]]:
    """The sentences of ``claim``: where they start, where without the number or bullet of an item, where they end."""
    for start, end in sentences(claim):
        item = _ITEM.match(claim, start, end)
        yield start, (item.end() if item else start), end


def _announces(claim: str, first: int, start: int, end: int) -> bool:
    """Whether a sentence says what comes next: it ends in a colon, stands behind ``#``, or heads a table."""
    if claim[end - 1] in "*_:：" and claim[start:end].rstrip("*_ ").endswith((":", "：")):
        return True
    return "# " in claim[first:start] or (claim[start] == "|" and _TABLE_RULE.match(claim, end) is not None)


def _numbers(read: list[str], content: list[int]) -> list[int]:
    return [bit for bit, place in enumerate(content) if read[place][0].isdigit() and read[place] not in COMMON]


def kind(read: list[str]) -> Kind:
    """What a sentence of these keys claims: a rule with exceptions, if it says so at once; an inference; or a fact."""
    if not GENERAL.isdisjoint(read[:_AT_ONCE]):
        return "general"
    return "assertion" if TENTATIVE.isdisjoint(read) else "inference"


class _Weights(dict[str, float]):
    """How much it counts that a word is found; 0 for function words, which count by their neighbours."""

    def __missing__(self, key: str) -> float:
        if len(self) > MEMORY:
            self.clear()
        weight = _weight(key)
        if len(key) <= LONGEST:
            self[key] = weight
        return weight


def _weight(key: str) -> float:
    if key in FUNCTION:
        return 0.0
    if key[0].isdigit():
        return NUMBER_WEIGHT
    return SELF_WEIGHT if key in SELF else LENGTH_WEIGHTS[min(len(key), _LONGEST)]


_WEIGHTS = _Weights()
