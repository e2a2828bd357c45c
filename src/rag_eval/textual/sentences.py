"""Sentences of a text by rules for Latin, Cyrillic, Greek, Arabic, Devanagari, Chinese and Japanese punctuation.

The kind of a sentence says whether it is a statement that can be checked.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from rag_eval.textual.words import LEXICON, expression, word_list

Kind = Literal[
    "assertion", "inference", "general", "heading", "question", "pleasantry", "transition", "code", "citation", "gap"
]
CHECKED: frozenset[Kind] = frozenset({"assertion", "inference"})
"""Kinds that have a verdict. The others count in the value of groundedness only."""
MAX_SENTENCES, MAX_CHARACTERS = 200, 40_000
"""Limits of what is read of an answer."""
_WORD_LIMIT = 24  # characters of the last word before a stop
_MAX_TRANSITION = 4  # content words
_OPENING_WORDS = 4  # words at the start among which *generally* makes a sentence one about the general case

_STOPS = ".!?…؟۔।"
_BREAK = re.compile(
    rf"""[{_STOPS}。！？｡\n](?:(?<=[{_STOPS}])[{_STOPS}]*+(?:["'”’»)\]*_]*+(\s++))?|(?<=\n)\s*+|["'”’』」）)]*+\s*+)"""
)  # begins with one of a set of signs, which is fast to find; no run is read twice
_OPENERS = "\"'“‘«([*_-–—•#>"
_ABBREVIATIONS = word_list("abbreviations")
_ITEM, _ITEM_NUMBER, _LINE_START, _TABLE_RULE = map(expression, LEXICON["cut"].values())
_KIND = re.compile("|".join([f"(?P<{kind}>{text})" for kind, text in LEXICON["kinds"].items()]), re.VERBOSE)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w")
_GENERAL, _TENTATIVE = word_list("general"), word_list("tentative")


class Span(NamedTuple):
    """A sentence from ``start`` to ``end`` in characters, without the number or bullet of a list item before it."""

    start: int
    end: int
    first: int
    """The start of the sentence with its number or bullet."""


def sentences(text: str) -> list[Span]:
    """Return the sentences of the first :data:`MAX_CHARACTERS` of a text, at most :data:`MAX_SENTENCES`."""
    text, start = text[:MAX_CHARACTERS], 0
    ends = [match.end() for match in _BREAK.finditer(text) if _ends_sentence(text, match)]
    spans: list[Span] = []
    for end in (*ends, len(text)):
        part = text[start:end].rstrip()
        stripped, start = start + len(part), end
        first = stripped - len(part.lstrip())
        item = _ITEM.match(text, first, stripped)
        begin = item.end() if item else first
        if begin < stripped:
            spans.append(Span(begin, stripped, first))
            if len(spans) == MAX_SENTENCES:
                break
    return spans


def sentence_kind(text: str, span: Span, keys: list[str], content: int) -> Kind:
    """Return the kind of a sentence with these keys, ``content`` of which are no function words."""
    sentence = text[span.start : span.end]
    announces = sentence[-1] in "*_:：" and sentence.rstrip("*_ ").endswith((":", "："))
    heads_table = sentence[0] == "|" and _TABLE_RULE.match(text, span.end)
    if announces or heads_table or "# " in text[span.first : span.start]:
        return "heading"
    if sentence.rstrip("*_\"' )").endswith(("?", "？", "؟")):
        return "question"
    if sentence.startswith("```"):
        return "code"
    match = _KIND.match(sentence.lower())
    if match and match.lastgroup == "transition":  # one with a fact is a statement
        has_fact = content > _MAX_TRANSITION or _NAME.search(sentence) or any([key[0].isdigit() for key in keys])
        match = None if has_fact else match
    if match:
        return match.lastgroup  # type: ignore[return-value]
    if not _GENERAL.isdisjoint(keys[:_OPENING_WORDS]):
        return "general"
    return "assertion" if _TENTATIVE.isdisjoint(keys) else "inference"


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether a stop or a line break ends a sentence."""
    sign, after = text[match.start()], text[match.end() : match.end() + 1]
    if sign in _STOPS and not match[1]:
        return False
    if not after or sign in "。！？｡؟۔।":
        return True
    opens = after in _OPENERS or not after.islower()
    if sign == "\n":
        return opens or after.isdigit()
    return opens and not (sign == "." and _is_abbreviation(text, match.start()))


def _is_abbreviation(text: str, stop: int) -> bool:
    """Return whether the word before a full stop is an abbreviation or the number of a list item."""
    low = max(0, stop - _WORD_LIMIT)
    last = text[1 + max(text.rfind(" ", low, stop), text.rfind("\n", low, stop)) : stop].lstrip(_OPENERS)
    if last.lower() in _ABBREVIATIONS or (len(last) == 1 and last.isupper()):
        return True
    if not last[-1:].isdigit() or not _ITEM_NUMBER.fullmatch(last):
        return False
    start = stop - len(last)
    return _LINE_START.search(text, max(0, start - _WORD_LIMIT), start) is not None
