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
_SLASHED_DATE = re.compile(r"/(?<=[0-9]/)[0-3]?[0-9]/[12][0-9]{3}(?![0-9/])")
_DATE = re.compile(r"(?<![0-9_/])([0-3]?[0-9])/([0-3]?[0-9])/([12][0-9]{3})(?![0-9_/])")
_MONEY = {sign: re.compile(rf"{re.escape(sign)}( ?[0-9][0-9_]*) ?(mn?|bn?|tn?|[MBT])(?![^\W_])") for sign in CURRENCIES}
_GROUPED = {sign: re.compile(rf"{sign}(?<=[0-9].)(?=[0-9]{{3}}(?![0-9]))") for sign in "\u00a0\u2009\u202f"}
"""By the space that does not break a line between thousands."""
_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}


def spelled_out(text: str) -> str:
    """``text`` with signs as words: ``1,000`` is 1000, ``2.5`` is ``2_5``, ``$2m`` dollar 2 million, ``%`` percent."""
    if not text.isascii():
        text = _without_spaces(text)
    text = _THOUSANDS.sub("", text) if "," in text else text
    text = _DECIMAL.sub("_", text)
    if "/" in text and _SLASHED_DATE.search(text):
        text = _DATE.sub(_day_and_month, text)
    if "%" in text:
        text = text.replace("%", " percent ")
    if holds_any(CURRENCIES, text):
        text = _with_currencies(text)
    if "U" in text and _COUNTRY.search(text):
        text = _COUNTRY.sub(_short, text)
    return _ISO_DATE.sub(_named_month, text)


def _without_spaces(text: str) -> str:
    for sign, between in _GROUPED.items():
        if sign in text:
            text = between.sub("", text)
    return text


def _with_currencies(text: str) -> str:
    for sign, currency in CURRENCIES.items():
        if sign in text:
            text = _MONEY[sign].sub(_in_full, text).replace(sign, f" {currency} ")
    return text


def _in_full(money: re.Match[str]) -> str:
    return f"{money[0][0]}{money[1]} {_MAGNITUDES[money[2][0].lower()]} "


def _short(country: re.Match[str]) -> str:
    return " usa " if "S" in country[0] else " uk "


def _day_and_month(date: re.Match[str]) -> str:
    """The month by its name where it can be told: one of the two is above 12."""
    first, second = int(date[1]), int(date[2])
    if 0 < second <= 12 < first:
        return f" {date[1]} {MONTHS[second - 1]} {date[3]} "
    return f" {MONTHS[first - 1]} {date[2]} {date[3]} " if 0 < first <= 12 < second else date[0]


def _named_month(date: re.Match[str]) -> str:
    return f" {MONTHS[int(date[1]) - 1]} {date[2]} "
