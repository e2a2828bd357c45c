"""Sentences of a text by rules for Latin, Cyrillic, Greek, Arabic, Devanagari, Chinese and Japanese punctuation.

Each sentence has a kind: what it is besides a statement that can be checked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.textual.words import patterns, word_list

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal[
    "assertion", "inference", "general", "heading", "question", "pleasantry", "transition", "code", "citation", "gap"
]
CHECKED: frozenset[Kind] = frozenset({"assertion", "inference"})
"""Kinds that have a verdict. The others count in the value of groundedness only."""
MAX_SENTENCES, MAX_CHARACTERS = 200, 40_000
"""What is read of an answer."""
_REACH = 24  # characters before a stop in which its last word is looked for
_MAX_TRANSITION = 4  # content words

_STOPS = ".!?…؟۔।"
_BREAK = re.compile(
    rf"""[{_STOPS}。！？｡\n](?:(?<=[{_STOPS}])[{_STOPS}]*+(?:["'”’»)\]*_]*+(\s++))?|(?<=\n)\s*+|["'”’』」）)]*+\s*+)"""
)  # begins with one of a set of signs, which is fast to find; no run is read twice
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st mt jr sr vs etc inc ltd co corp no vol fig eq ca cf al approx dept est gen gov sen rep rev "
    "hon capt lt col sgt ave blvd rd e.g i.e a.k.a u.s u.k p.m a.m "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "bzw usw z.b d.h nr str bspw ggf inkl m mme mlle sra г гг т.е др".split()
)
_LAST_WORD = re.compile(r"[\w.]*\w\Z")
_ITEM_NUMBER = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,2})*")
_LINE_START = re.compile(r"(?:\A|[\n.!?:])[ \t*_#>•·–(-]*\Z")
_OPENERS = "\"'“‘«([*_-–—•#>"
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
_KINDS = patterns("kinds")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w")
_GENERAL, _TENTATIVE = word_list("general"), word_list("tentative")
_AT_ONCE = 4  # words at the start among which *generally* makes a sentence one about the general case


class Span(NamedTuple):
    """A sentence from ``start`` to ``end`` in characters, without the number or bullet of a list item before it."""

    start: int
    end: int
    first: int
    """Where the sentence starts with its number or bullet."""


def sentences(text: str) -> list[Span]:
    """Return the sentences of the first :data:`MAX_CHARACTERS` of a text, at most :data:`MAX_SENTENCES`."""
    text = text[:MAX_CHARACTERS]
    found: list[Span] = []
    for start, end in _spans(text):
        item = _ITEM.match(text, start, end)
        first = item.end() if item else start
        if first < end:
            found.append(Span(first, end, start))
        if len(found) == MAX_SENTENCES:
            break
    return found


def kind_of(text: str, span: Span, keys: list[str], content: int) -> Kind:
    """Return the kind of a sentence with these keys, ``content`` of which are no function words."""
    sentence = text[span.start : span.end]
    if _is_heading(text, span):
        return "heading"
    if sentence.rstrip("*_\"' )").endswith(("?", "？", "؟")):
        return "question"
    if sentence.startswith("```"):
        return "code"
    for kind, pattern in _KINDS.items():
        if pattern.match(sentence) and (kind != "transition" or _says_little(sentence, keys, content)):
            return kind  # type: ignore[return-value]
    if not _GENERAL.isdisjoint(keys[:_AT_ONCE]):
        return "general"
    return "assertion" if _TENTATIVE.isdisjoint(keys) else "inference"


def _says_little(sentence: str, keys: list[str], content: int) -> bool:
    """Return whether a sentence has few content words, no number and no name."""
    return content <= _MAX_TRANSITION and not _NAME.search(sentence) and not any(key[0].isdigit() for key in keys)


def _is_heading(text: str, span: Span) -> bool:
    """Return whether a sentence announces the next: it ends in a colon, stands behind ``#``, or heads a table."""
    sentence = text[span.start : span.end]
    if sentence[-1] in "*_:：" and sentence.rstrip("*_ ").endswith((":", "：")):
        return True
    return "# " in text[span.first : span.start] or (
        sentence[0] == "|" and _TABLE_RULE.match(text, span.end) is not None
    )


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where sentences start and end, without the white space around them."""
    start = 0
    for found in _BREAK.finditer(text):
        if _ends(text, found):
            yield from _stripped(text, start, found.end())
            start = found.end()
    yield from _stripped(text, start, len(text))


def _ends(text: str, found: re.Match[str]) -> bool:
    sign, after = text[found.start()], text[found.end() : found.end() + 1]
    if sign in _STOPS and not found[1]:
        return False
    if not after or sign in "。！？｡؟۔।":
        return True
    opens = after in _OPENERS or not after.islower()
    if sign.isspace():
        return opens or after.isdigit()
    return opens and not (sign == "." and _is_abbreviation(text, found.start()))


def _is_abbreviation(text: str, stop: int) -> bool:
    last = _LAST_WORD.search(text, max(0, stop - _REACH), stop)
    if last is None:
        return False
    word = last[0]
    if (len(word) == 1 and word.isupper()) or word.lower() in _ABBREVIATIONS:
        return True
    # The number of a list item, at the start of a line or sentence.
    numbers_item = _ITEM_NUMBER.fullmatch(word) and _LINE_START.search(
        text, max(0, last.start() - _REACH), last.start()
    )
    return numbers_item is not None


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    start, end = start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
    if start < end:
        yield start, end
