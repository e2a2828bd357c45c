"""Ways of writing that say the same, brought to one before a text is cut into words: numbers, money, dates, countries.

Each pattern starts with a fixed sign and looks back from there, since the interpreter looks for one sign fast.
"""

from __future__ import annotations

import re

from rag_eval.grounding.lexicon import CURRENCIES, MONTHS
from rag_eval.text import holds_any

_THOUSANDS = re.compile(r",(?<=[0-9],)(?=[0-9]{3}(?![0-9]))")
_DECIMAL = re.compile(r"\.(?=[0-9])(?<=[0-9 (<=$]\.)")
_COMMA = re.compile(",(?<=[0-9],)(?=[0-9])")
_DECIMAL_COMMA = re.compile(r",(?<=[0-9],)(?<!,[0-9],)(?<!,[0-9]{2},)(?=[0-9]{1,2}(?![0-9)\]}]|[,.][0-9]))")
"""As in ``3,75 %``; what ends in a bracket is likely a list: ``(3,4)``."""
_DOTTED = re.compile(r"\.[0-9]{3},[0-9]")
_GROUPED_DOTS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:\.[0-9]{3})+(?=,[0-9]{1,2}(?![0-9]|[,.][0-9]))")
"""As in ``1.000,50``; ``1.000`` alone may be one with three decimals."""
_COUNTRY = re.compile(r"United (?:States|Kingdom)|U\.[SK]\.|US(?= [a-z])")
_ISO_DATE = re.compile(r"-(?<=[0-9]{4}-)(0[1-9]|1[0-2])-([0-3][0-9])(?![0-9])")
_SLASHED_DATE = re.compile(r"/(?<=[0-9]/)[0-3]?[0-9]/[12][0-9]{3}(?![0-9/])")
_DATE = re.compile(r"(?<![0-9_/])([0-3]?[0-9])/([0-3]?[0-9])/([12][0-9]{3})(?![0-9_/])")
_MONEY = {sign: re.compile(rf"{re.escape(sign)}( ?[0-9][0-9_]*) ?(mn?|bn?|tn?|[MBT])(?![^\W_])") for sign in CURRENCIES}
_GROUPED = {sign: re.compile(rf"{sign}(?<=[0-9].)(?=[0-9]{{3}}(?![0-9]))") for sign in "\u00a0\u2009\u202f"}
"""By the space that does not break a line between thousands."""
_TEMPERATURE = re.compile(r"° ?([CF])(?![^\W_])|[℃℉]")
_FRACTION = re.compile(" ?([¼½¾])")
_FRACTIONS = {"¼": ("quarter", "25"), "½": ("half", "5"), "¾": ("0_75", "75")}
_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}


def spelled_out(text: str) -> str:
    """``text`` with signs as words: ``1,000`` is 1000, ``2.5`` is ``2_5``, ``$2m`` dollar 2 million, ``%`` percent."""
    if not text.isascii():
        text = _without_signs(_without_spaces(text))
    if "," in text and _COMMA.search(text):
        text = _without_commas(text)
    text = _DECIMAL.sub(_point, text)
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


def _without_signs(text: str) -> str:
    """Temperatures and fractions: ``20 °C`` is 20 degrees Celsius, ``1½`` is 1.5."""
    if "°" in text or "℃" in text or "℉" in text:
        text = _TEMPERATURE.sub(_degrees, text)
    return _FRACTION.sub(_fraction, text) if holds_any(_FRACTIONS, text) else text


def _degrees(found: re.Match[str]) -> str:
    return " degrees celsius " if found[1] == "C" or found[0] == "℃" else " degrees fahrenheit "


def _fraction(found: re.Match[str]) -> str:
    alone, behind = _FRACTIONS[found[1]]
    before = found.string[found.start() - 1 : found.start()]
    return f"_{behind} " if before.isdigit() else f" {alone} "


def _without_commas(text: str) -> str:
    """Thousands in one, and the commas of decimals as points."""
    if _DOTTED.search(text):
        text = _GROUPED_DOTS.sub(lambda number: number[0].replace(".", ""), text)
    return _DECIMAL_COMMA.sub("_", _THOUSANDS.sub("", text))


def _point(found: re.Match[str]) -> str:
    """The point of a decimal; a zero stands before it, as nobody writes it in ``.05``."""
    before = found.string[found.start() - 1]
    return "_" if before.isdigit() else "0_"


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
