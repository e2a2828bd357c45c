"""Amounts: numbers that are glued to their unit, and numbers of several words, such as ``1.4 million``."""

from __future__ import annotations

import re
from itertools import compress

from rag_eval.grounding.lexicon import FIRST, MONTHS, ONES, POWERS, SAID, TENS

_GLUED = re.compile(
    r"([0-9][0-9_]*)"
    r"(mg|kg|g|kms?|cm|mm|ml|l|[kmgt]b|[kmg]?hz|[kmg]?wh?|v|bn|mn|tn|am|pm|ms|h|hrs?|mins?|secs?|yrs?|mph|ft|lbs?|oz|x)"
)
"""Without ``m``, ``s`` and ``t``: 90m may be metres or millions, 1990s are years."""
_DATE = re.compile(r"([0-3]?[0-9])_(0?[1-9]|1[0-2])_([12][0-9]{3})")
_ENDED = "|".join(f"(?<={ten} )" for ten in TENS)
_COMPOUND = re.compile(f"ty (?:{_ENDED})(?=(?:{'|'.join((*ONES[1:], *FIRST))})(?![^ ]))".encode())
"""Starts with a fixed text, which the interpreter looks for fast."""
_SECONDS = re.compile(
    rb" second(?:(?<=(?:per|one|two|six|ten) second)|(?<=(?:four|five|nine) second)|(?<=(?:three|seven|eight) second)"
    rb"|(?<=[0-9] second)(?<![0-9]{4} second))(?![^ ])"
)
"""The unit, which is no ordinal; behind a year it is one."""
_PER_CENT = re.compile(rb" cent(?<= per cent)(?![^ ])")
JOINED = frozenset([b"second", b"cent", *[ten.encode() for ten in TENS]])
"""What hangs on the word beside it, so that it is never remembered."""
_MOST = 3  # digits before the point of a number that a magnitude follows: "in 2019, million-dollar homes" has none


def joined(text: bytes) -> bytes:
    """``text``, cut into words, with ``twenty five`` as one, ``per cent`` as well, and ``one second`` as seconds."""
    text = _COMPOUND.sub(b"ty_", text)
    return _PER_CENT.sub(b"cent", _SECONDS.sub(b" seconds", text))


def unglued(word: str) -> tuple[str, ...]:
    """A word, the number and the unit that it is made of, or the parts of a date such as ``21_05_2016``."""
    if not word[0].isdigit() or word.isdigit():
        return (word,)
    glued, date = _GLUED.fullmatch(word), _DATE.fullmatch(word)
    if glued:
        return glued[1], glued[2]
    return (date[1], MONTHS[int(date[2]) - 1], date[3]) if date else (word,)


def multiplied(keys: list[str]) -> list[str]:
    """``keys`` with the full value of numbers before a magnitude: ``1.4 million`` is 1400000, and so is ``1,400,000``.

    The magnitude's own key says nothing more then. A list that changes is changed in place.
    """
    number = end = -1
    for place in compress(range(len(keys)), map(POWERS.__contains__, keys)):
        at = number if place == end else place - 1
        if at >= 0 and (value := _times(keys[at], POWERS[keys[place]], again=place == end)):
            keys[at], keys[place] = value, SAID
            number, end = at, place + 1
    return keys


def _times(key: str, power: int, *, again: bool) -> str | None:
    """``key`` times ten to the ``power``; None where it is no number that a magnitude goes with."""
    front, _, back = ("1" if key == "a" else key).partition("_")
    if not (front + back).isdigit() or len(back) > power or (len(front) > _MOST and not again):
        return None
    return (front + back.ljust(power, "0")).lstrip("0") or "0"
