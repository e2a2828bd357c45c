"""Sentences of a text, by rules: Latin, Cyrillic, Greek, Arabic, Devanagari, Chinese and Japanese punctuation."""

from __future__ import annotations

import re

_STOPS = ".!?…؟۔।"
_BREAK = re.compile(
    rf"""[{_STOPS}。！？｡\n](?:(?<=[{_STOPS}])[{_STOPS}]*+(?:["'”’»)\]*_]*+(\s++))?|(?<=\n)\s*+|["'”’』」）)]*+\s*+)"""
)  # starts with one of a set of signs, which the interpreter looks for fast; no run is read twice
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st mt jr sr vs etc inc ltd co corp no vol fig eq ca cf al approx dept est gen gov sen rep rev "
    "hon capt lt col sgt ave blvd rd e.g i.e a.k.a u.s u.k p.m a.m "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "bzw usw z.b d.h nr str bspw ggf inkl m mme mlle sra г гг т.е др".split()
)
_LAST_WORD = re.compile(r"[\w.]*\w\Z")
_ITEM_NUMBER = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,2})*")
_BEGINS = re.compile(r"(?:\A|[\n.!?:])[ \t*_#>•·–(-]*\Z")
"""What may stand between the start of a line or sentence and the number of an item: markup and indentation."""
_OPENERS = "\"'“‘«([*_-–—•#>"
_REACH = 24  # characters looked back at for the last word


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of ``text`` start and end, in characters, surrounding white space left out."""
    spans, start = [], 0
    for found in _BREAK.finditer(text):
        if _ends(text, found):
            spans.append((start, found.end()))
            start = found.end()
    spans.append((start, len(text)))
    return [span for span in [_stripped(text, *span) for span in spans] if span[0] < span[1]]


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
    return (len(word) == 1 and word.isupper()) or word.lower() in _ABBREVIATIONS or _numbers_item(text, last)


def _numbers_item(text: str, last: re.Match[str]) -> bool:
    """Whether the word before a stop numbers a list's item: ``12.`` or ``1.2.`` where a line or a sentence begins."""
    begins = _ITEM_NUMBER.fullmatch(last[0]) and _BEGINS.search(text, max(0, last.start() - _REACH), last.start())
    return begins is not None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
