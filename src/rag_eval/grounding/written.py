"""Ways of writing that say the same, brought to one before a text is cut into words: numbers, money, dates, countries.

Each pattern starts with a fixed sign and looks back from there, since the interpreter looks for one sign fast.
"""

from __future__ import annotations

import re

from rag_eval.grounding.lexicon import CURRENCIES, MONTHS
from rag_eval.text import holds_any

_THOUSANDS = re.compile(r",(?<=[0-9],)(?=[0-9]{3}(?![0-9]))")
_DECIMAL = re.compile(r"\.(?<=[0-9]\.)(?=[0-9])")
_COUNTRY = re.compile(r"United (?:States|Kingdom)|U\.[SK]\.|US(?= [a-z])")
_ISO_DATE = re.compile(r"-(?<=[0-9]{4}-)(0[1-9]|1[0-2])-([0-3][0-9])(?![0-9])")
_GROUPED = re.compile("[\u00a0\u2009\u202f](?<=[0-9].)(?=[0-9]{3}(?![0-9]))")
_EMPHASIS = re.compile(r"_(?:(?<![^\W_]_)|(?![^\W_]))")
_DOTTED_DATE = re.compile(r"_(?<=[0-9]_)[01]?[0-9]_[12][0-9]{3}(?![0-9_])")
_SLASHED_DATE = re.compile(r"/(?<=[0-9]/)[0-3]?[0-9]/[12][0-9]{3}(?![0-9/])")
_DATE = re.compile(r"(?<![0-9_/])([0-3]?[0-9])([_/])([0-3]?[0-9])\2([12][0-9]{3})(?![0-9_/])")
_MONEY = re.compile(r"([$€£¥] ?[0-9][0-9_]*) ?(mn?|bn?|tn?|[MBT])(?!\w)")
_THIN = ("\u00a0", "\u2009", "\u202f")
"""Spaces that do not break a line, as they stand between thousands."""
_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}


def spelled_out(text: str) -> str:
    """``text`` with signs as words: ``1,000`` is 1000, ``2.5`` is ``2_5``, ``$2m`` dollar 2 million, ``%`` percent."""
    if "_" in text:
        text = _EMPHASIS.sub(" ", text)
    if holds_any(_THIN, text):
        text = _GROUPED.sub("", text)
    text = _THOUSANDS.sub("", text) if "," in text else text
    text = _DECIMAL.sub("_", text)
    if _DOTTED_DATE.search(text) or _SLASHED_DATE.search(text):
        text = _DATE.sub(_day_and_month, text)
    if "%" in text:
        text = text.replace("%", " percent ")
    if holds_any(CURRENCIES, text):
        text = _with_currencies(text)
    if "U" in text and _COUNTRY.search(text):
        text = _COUNTRY.sub(_short, text)
    return _ISO_DATE.sub(_named_month, text)


def _with_currencies(text: str) -> str:
    text = _MONEY.sub(_in_full, text)
    for sign, currency in CURRENCIES.items():
        text = text.replace(sign, f" {currency} ")
    return text


def _in_full(money: re.Match[str]) -> str:
    return f"{money[1]} {_MAGNITUDES[money[2][0].lower()]} "


def _short(country: re.Match[str]) -> str:
    return " usa " if "S" in country[0] else " uk "


def _day_and_month(date: re.Match[str]) -> str:
    """The month by its name where it can be told: with points the day comes first, with strokes one is above 12."""
    first, second = int(date[1]), int(date[3])
    if 0 < second <= 12 and (date[2] == "_" or first > 12):
        return f" {date[1]} {MONTHS[second - 1]} {date[4]} "
    if 0 < first <= 12 < second and date[2] == "/":
        return f" {MONTHS[first - 1]} {date[3]} {date[4]} "
    return date[0]


def _named_month(date: re.Match[str]) -> str:
    return f" {MONTHS[int(date[1]) - 1]} {date[2]} "
