"""Words of a text as keys, which are equal for forms of a word or number: ``Studies``, ``study``; ``1,000``, ``1000``.

A text is cut at its white space, and each distinct piece is read once. Within a piece, one expression finds the tokens,
so that each key knows its characters.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from importlib.resources import files
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.textual.tokens import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_PIECES = 1 << 16
"""Distinct pieces that are remembered; then all are forgotten, which changes no result."""
MAX_WORD = 64
"""Characters of a piece that is remembered, and digits of a number that is read as one."""
SAID = "×"
"""The key of a magnitude whose value is in the number before it: it says nothing more."""


def _lexicon() -> dict[str, Any]:
    return tomllib.loads(files("rag_eval.textual").joinpath("data", "lexicon.toml").read_text(encoding="utf-8"))


_LEXICON = _lexicon()


def word_list(name: str) -> frozenset[str]:
    """Return the words of a list of the lexicon."""
    return frozenset(_LEXICON[name].split())


def patterns(name: str) -> dict[str, re.Pattern[str]]:
    """Return the expressions of a table of the lexicon by their names."""
    return {key: re.compile(text, re.IGNORECASE | re.VERBOSE) for key, text in _LEXICON[name].items()}


def _inverted(name: str) -> dict[str, str]:
    return {form: word for word, forms in _LEXICON[name].items() for form in forms.split()}


SELF = word_list("self")
FUNCTION = (STOP_WORDS | word_list("function") | {SAID}) - SELF
"""Words that say little about content."""
NEGATIONS = word_list("negations")
MONTHS: list[str] = _LEXICON["months"].split()
POWERS: dict[str, int] = _LEXICON["powers"]
NUMBERS = _inverted("numbers")
CURRENCIES: dict[str, str] = _LEXICON["currencies"]
_AS_WRITTEN = FUNCTION | NEGATIONS | word_list("general") | POWERS.keys()
_FORMS = _inverted("forms")
_ENDINGS = {name: tuple(text.split()) for name, text in _LEXICON["endings"].items()}
_TENS = {word: f"{number}+" for word, number in NUMBERS.items() if len(number) == 2 and word.endswith("ty")}
"""Keys of *twenty* to *ninety*, until the next word is read: *twenty-five* is 25."""
_JOINING = frozenset([*POWERS, *_TENS.values()])

_HIDDEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_PIECE = re.compile(r"\S+")
_GROUP = re.compile(r"[ \u00a0\u2009\u202f](?<=\d.)(?<!\d{4}.)(?=\d{3}(?!\d))")
_HIDES = re.compile(f"[{_HIDDEN}]")
_NUMBER = (
    r"[$€£¥₹]\d+(?:[.,]\d+)*[MmBbTtKk]n?\b|\d+(?:[.,]\d+)*(?:[¼½¾]|(?:st|nd|rd|th|s|k)\b|\(k\))?"
    r"|(?<![\w.])\.\d+|[¼½¾]|°[CF]\b|[%$€£¥₹°℃℉]"
)
_TOKEN = re.compile(rf"[^\W\d_]+(?:['’]t\b)?|{_NUMBER}")
_TOKEN_WITH_HIDDEN = re.compile(rf"[^\W\d_](?:[{_HIDDEN}]*[^\W\d_])*(?:['’]t\b)?|{_NUMBER}")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_NOT = ("'t", "’t")
_DATE = re.compile(r"([0-3]?[0-9])\.(0?[1-9]|1[0-2])\.([12][0-9]{3})")
_SIGNS = {"%": "percent", "°": "degree", "½": "half", "¼": "quarter", "¾": "0.75", **CURRENCIES}
_MONEY = {"k": 3, "m": 6, "b": 9, "t": 12}
_FRACTIONS = {"½": "5", "¼": "25", "¾": "75"}
_VOWELS = frozenset("aeiouy")


class _Pieces(dict[str, tuple[str, ...]]):
    """The keys of pieces of text without white space."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        folded = tuple([key for token in _pattern(piece).findall(piece) for key in _fold(token)])
        if folded and folded[-1][-1] == "+" and not piece[-1].isalnum():
            folded = *folded[:-1], f"{folded[-1][0]}0"  # twenty, five: the number ends here
        if len(piece) <= MAX_WORD:
            if len(self) > MAX_PIECES:
                self.clear()
            self[piece] = folded
        return folded


_known = _Pieces()


class Word(NamedTuple):
    """A key with the characters of the text that it stands for."""

    key: str
    start: int
    end: int


def keys(text: str) -> list[str]:
    """Return the keys of the words of ``text``, in order."""
    found = [*chain.from_iterable(map(_known.__getitem__, _grouped(text).split()))]
    return found if _JOINING.isdisjoint(found) else _joined(found)


def words(text: str) -> list[Word]:
    """Return the keys of ``text`` with their characters: as many as :func:`keys` has, in the same order."""
    found: list[Word] = []
    for piece in _PIECE.finditer(_grouped(text)):
        for token in _pattern(piece[0]).finditer(piece[0]):
            found += _placed(token, piece.start())
    joined = _joined([word.key for word in found])
    return [word._replace(key=key) for word, key in zip(found, joined, strict=True)]


def is_number(key: str) -> bool:
    """Return whether a key is a number."""
    return key[0].isdigit()


def _pattern(text: str) -> re.Pattern[str]:
    return _TOKEN if text.isascii() or not _HIDES.search(text) else _TOKEN_WITH_HIDDEN


def _grouped(text: str) -> str:
    """Return ``text`` with commas in place of the spaces between thousands."""
    return _GROUP.sub(",", text)


def _placed(token: re.Match[str], shift: int) -> Iterator[Word]:
    folded, written = _fold(token[0]), len(token[0])
    start, end = token.start() + shift, token.end() + shift
    word = _folded_word(token[0])
    if len(folded) == 1 or not _CJK.search(word) or word.endswith(_NOT):
        yield from [Word(key, start, end) for key in folded]
        return
    for key, first, last in _runs(word):  # where folding changed the length, characters are counted in proportion
        yield Word(key, start + first * written // len(word), start - (-last * written // len(word)))


def _fold(token: str) -> tuple[str, ...]:
    """Return the key of a token, or several for money, dates, degrees and scripts that write without spaces."""
    if not token.isascii():
        if token[0] in "°℃℉" and token != "°":
            return "degree", "celsius" if token[-1] in "C℃" else "fahrenheit"
        token = _HIDES.sub("", token)
        token = token if token[-1] in _FRACTIONS else unicodedata.normalize("NFKC", token)
    if token in _SIGNS:
        return (_SIGNS[token],)
    if token[0] in CURRENCIES:
        power = _MONEY[token.rstrip("nN")[-1].lower()]
        return CURRENCIES[token[0]], _times(_values(token[1:].rstrip("MmBbTtKkNn"))[0], power)
    if token[0].isdigit() or token[0] == ".":
        return _number(token)
    word = token.casefold()
    if word.endswith(_NOT):
        return ("not",) if word[-3] == "n" else (word[:-2], "t")
    return tuple([key for key, _, _ in _runs(word)]) if _CJK.search(word) else (_word(word),)


def _folded_word(token: str) -> str:
    return unicodedata.normalize("NFKC", _HIDES.sub("", token)).casefold()


def _word(word: str) -> str:
    if word == "cannot":
        return "not"
    if word in _AS_WRITTEN:
        return word
    if word in _TENS:
        return _TENS[word]
    if word in NUMBERS:
        return NUMBERS[word]
    word = _FORMS.get(word, word)
    stemmed = stem(_FORMS.get(stem(word), word))
    return word if stemmed in _AS_WRITTEN else stemmed  # "sure" is not French "sur"


def _runs(word: str) -> Iterator[tuple[str, int, int]]:
    """Yield a run of Chinese or Japanese script as overlapping pairs, and other runs whole, with their places."""
    for run in re.finditer(f"{_CJK.pattern}+|[^{_CJK.pattern[1:]}+", word):
        start, end = run.span()
        if not _CJK.match(run[0]):
            yield _word(run[0]), start, end
        elif end - start == 1:
            yield run[0], start, end
        else:
            yield from [(word[place : place + 2], place, place + 2) for place in range(start, end - 1)]


def _number(token: str) -> tuple[str, ...]:
    """Return the value of a number as it is written, without what leaves its value as it is."""
    if not token.isascii():
        token = "".join([str(unicodedata.digit(sign, sign)) for sign in token])
    if date := _DATE.fullmatch(token):
        return date[1].lstrip("0") or "0", MONTHS[int(date[2]) - 1], date[3]
    if token[-1] in _FRACTIONS:
        return (f"{token[:-1]}.{_FRACTIONS[token[-1]]}",)
    digits = token.rstrip("stndrhk()")
    values = _values(digits)
    return (_times(values[0], POWERS["thousand"]),) if "k" in token and len(values) == 1 else values


def _values(digits: str) -> tuple[str, ...]:
    """Return digits with separators as one value, or as several where they are a list: ``10,20,30``."""
    whole, comma, rest = digits.rpartition(",")
    if comma and "." not in rest and len(rest) != 3:
        if len(rest) <= 2 and "," not in whole:  # 3,75 and 1.250,50
            return (_plain(f"{whole.replace('.', '')}.{rest}"),)
        return tuple([_plain(part) for part in digits.split(",")])
    digits = digits.replace(",", "")
    if digits.count(".") > 1 and all(len(group) == 3 for group in digits.split(".")[1:]):
        digits = digits.replace(".", "")  # 1.000.000
    return (_plain(digits),)


def _plain(digits: str) -> str:
    """Return a number without zeros before it and behind its point. ``1.250`` keeps its zeros: it may be 1250."""
    whole, point, decimals = digits.partition(".")
    if point and "." not in decimals and not (len(decimals) == 3 and 0 < len(whole) <= 3 and whole[0] != "0"):
        decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if decimals else whole


def _times(number: str, power: int) -> str:
    """Return ``number`` times ten to the ``power``."""
    whole, _, decimals = number.partition(".")
    if not power or len(decimals) > power or not (whole + decimals).isdigit():
        return number
    return (whole + decimals.ljust(power, "0")).lstrip("0") or "0"


def _joined(read: list[str]) -> list[str]:
    """Return ``read`` with numbers of several words as one: ``1.4 million`` is 1400000, ``twenty five`` is 25.

    The keys of the further words say nothing more then.
    """
    found = list(read)
    for place in compress(range(len(read)), map(_JOINING.__contains__, read)):
        key, before, behind = read[place], found[place - 1] if place else "", read[place + 1 : place + 2]
        if key.endswith("+"):
            digit = behind[0] if behind and len(behind[0]) == 1 and behind[0] in "123456789" else ""
            found[place] = key[0] + (digit or "0")
            if digit:
                found[place + 1] = SAID
            continue
        first = place - 1
        while first > 0 and found[first] == SAID:
            first -= 1
        number = "1" if before == "a" else found[first] if place else ""
        again = before == SAID
        if number[:1].isdigit() and (len(number.partition(".")[0]) <= 3 or again) and len(number) < MAX_WORD:
            found[first], found[place] = _times(number, POWERS[key]), SAID
    return found


def variants(number: str) -> list[Sequence[str]]:
    """Return other ways to write a number, each as the keys that have to occur: 35000 as 35.000, 5 as May."""
    found: list[Sequence[str]] = []
    whole, _, decimals = number.partition(".")
    if whole.isdigit() and not decimals and 3 < len(whole) < MAX_WORD:
        groups = f"{int(whole):,}".split(",")
        found += [[".".join(groups)], [group.lstrip("0") or "0" for group in groups]]
    elif decimals.isdigit():
        found += [[f"{whole}.{decimals.ljust(3, '0')}"], [_plain(f"{whole}.{decimals}0").rstrip("0").rstrip(".")]]
        if len(decimals) == 3:
            found += [[whole + decimals], [f"{whole}.{decimals.rstrip('0')}".rstrip(".")]]
    if number.isdigit() and 0 < len(number) <= 2 and 0 < int(number) <= len(MONTHS):
        found.append([MONTHS[int(number) - 1]])
    return found


def stem(word: str) -> str:
    """Return a lower-cased word without its inflection. It keeps at least three letters, and need not be a word."""
    if len(word) <= 3:
        return word
    if word.isascii():
        return _english(word)
    if "\u0400" <= word[0] <= "\u04ff":
        return _without(word, _ENDINGS["cyrillic"], 3)
    if "\u0600" <= word[0] <= "\u06ff":
        first = next((one for one in _ENDINGS["arabic_first"] if word.startswith(one) and len(word) - len(one) > 2), "")
        return _without(word[len(first) :], _ENDINGS["arabic_last"], 3)
    return _without(_english(word), _ENDINGS["romance_germanic"], 4)


def _english(word: str) -> str:
    if word[-1] == "s" and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies") and len(word) > 4:
            word = f"{word[:-3]}y"
        else:
            word = word[:-2] if word.endswith(("sses", "xes", "zes", "ches", "shes")) else word[:-1]
    if word.endswith("ied") and len(word) > 4:
        word = f"{word[:-3]}y"
    for ending in ("ing", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3 and not _VOWELS.isdisjoint(root):
            doubled = root[-1] == root[-2] and root[-1] not in "lsz" and len(root) > 3
            word = root[:-1] if doubled else root
            break
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    word = _without(word, _ENDINGS["derived"], 4)
    if word.endswith(("tion", "sion")) and len(word) > 6:
        word = word[:-3]
    if word[-1] == "e" and len(word) > 3:
        return word[:-1]
    return f"{word[:-1]}i" if word[-1] == "y" and len(word) > 3 else word


def _without(word: str, endings: tuple[str, ...], minimum: int) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= minimum:
            return word[: -len(ending)]
    return word
