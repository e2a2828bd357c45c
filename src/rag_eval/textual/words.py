"""Sentences of a text, and their words as keys, which are equal for forms of a word or number: ``Studies``, ``study``.

A text is cut at its white space, and each distinct piece is read once. In a piece, one expression finds the tokens.
Sentences are cut by rules for Latin, Cyrillic, Greek, Arabic, Devanagari, Chinese and Japanese punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, compress, pairwise
from typing import Literal, NamedTuple

from rag_eval.textual import read_table
from rag_eval.textual.tokens import STOP_WORDS

_MAX_PIECES = 1 << 16  # distinct pieces that are remembered; then all are forgotten, which changes no result
_MAX_WORD = 64  # characters of a piece that is remembered, and digits of a number that is read as one
_ABSORBED = "×"  # the key of a magnitude whose value is in the number before it
_ANSWER, _ANSWER_ENDS = "no,", ".,!:;،"  # the key of a negation that is an answer and denies nothing of what follows
LEXICON = read_table("lexicon.toml")


def word_list(name: str) -> frozenset[str]:
    """Return the words of a list of the lexicon."""
    return frozenset(LEXICON[name].split())


def expression(text: str) -> re.Pattern[str]:
    """Compile an expression of the lexicon."""
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


def _inverted(name: str) -> dict[str, str]:
    return {form: word for word, forms in LEXICON[name].items() for form in forms.split()}


FUNCTION = (STOP_WORDS | word_list("function") | {_ABSORBED, _ANSWER}) - word_list("self")  # say little about content
NEGATIONS = word_list("negations")
POWERS: dict[str, int] = LEXICON["powers"]
CURRENCIES: dict[str, str] = LEXICON["currencies"]
_POWERS = frozenset(POWERS)
_NUMBERS, _FORMS = _inverted("numbers"), _inverted("forms")
_AS_WRITTEN = FUNCTION | NEGATIONS | word_list("general") | _POWERS
_STEM = {name: [(last, expression(text), end) for last, text, end in rules] for name, rules in LEXICON["stem"].items()}

_HIDDEN = "\u00ad\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKEN = re.compile(
    rf"{LEXICON['compound_number']}|{LEXICON['answer_no']}|[{_CJK}]+|[^\W\d_{_CJK}]+(?:[{_HIDDEN}]+[^\W\d_{_CJK}]+)*(?:['’]t\b)?"
    r"|[$€£¥₹]\d+(?:[.,]\d+)*[MmBbTtKk]n?\b|\d+(?:[.,]\d+)*(?:[¼½¾]|(?:st|nd|rd|th|s|k)\b|\(k\))?"
    r"|(?<![\w.])\.\d+|[¼½¾]|°[CF]\b|[%$€£¥₹°℃℉]"
)
_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))  # all digits as 0
_YEAR = re.compile("1[5-9][0-9]{2}|20[0-9]{2}")
_GROUP = re.compile(r"[ \u00a0\u2009\u202f](?<=\d.)(?<!\d{4}.)(?=\d{3}(?!\d))")
_HIDES, _IS_CJK = re.compile(f"[{_HIDDEN}]"), re.compile(f"[{_CJK}]")
_SIGNS: dict[str, tuple[str, ...]] = {sign: (name,) for sign, name in CURRENCIES.items()}
_SIGNS |= {"%": ("percent",), "°": ("degree",), "½": ("half",), "¼": ("quarter",), "¾": ("0.75",)}
_SIGNS |= {f"{unit}²": ("square", name) for unit, name in (("m", "meter"), ("km", "kilometer"))}
_SIGNS |= dict.fromkeys(("°C", "℃"), ("degree", "celsius")) | dict.fromkeys(("°F", "℉"), ("degree", "fahrenheit"))
_CJK_WORD = re.compile(f"(?P<negation>{LEXICON['cjk_negation']})|(?P<number>{LEXICON['cjk_number']})".replace("\n", ""))
_MYRIAD = 10_000
_CJK_DIGITS = {sign: at for at, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CJK_POWERS = {"十": 10, "百": 100, "千": 1000, "万": _MYRIAD}
_MONEY = {"k": 3, "m": 6, "b": 9, "t": 12}
_FRACTIONS = {"½": "5", "¼": "25", "¾": "75"}


class _Pieces(dict[str, tuple[str, ...]]):
    """The keys of pieces of text without white space."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        keys = tuple([key for token in _TOKEN.findall(piece) for key in _fold(token)])
        if len(piece) <= _MAX_WORD:
            if len(self) > _MAX_PIECES:
                self.clear()
            self[piece] = keys
        return keys


_pieces = _Pieces()


class Word(NamedTuple):
    """A key with the characters of the text that it represents."""

    key: str
    start: int
    end: int


def keys(text: str) -> list[str]:
    """Return the keys of the words of ``text``, in order."""
    return _join_numbers([*chain.from_iterable(map(_pieces.__getitem__, _join_groups(text).split()))])


def words(text: str) -> list[Word]:
    """Return the keys of ``text`` with their characters: as many as :func:`keys` returns, in the same order."""
    read: list[Word] = []
    for token in _TOKEN.finditer(_join_groups(text)):
        start, end = token.span()
        if _IS_CJK.match(token[0]):
            read += [Word(key, start + first, start + last) for key, first, last in _fold_cjk(token[0])]
        else:
            read += [Word(key, start, end) for key in _fold(token[0])]
    joined = _join_numbers([word.key for word in read])
    return [word._replace(key=key) for word, key in zip(read, joined, strict=True)]


def _join_groups(text: str) -> str:
    """Return ``text`` with commas instead of the spaces between thousands."""
    is_possible = not text.isascii() or b"0 000" in text.encode().translate(_DIGITS)
    return _GROUP.sub(",", text) if is_possible else text


def _fold(token: str) -> tuple[str, ...]:
    """Return the key of a token; several for money, degrees, lists of digits and runs of Chinese or Japanese."""
    if token in _SIGNS:
        return _SIGNS[token]
    if not token.isascii():
        if _IS_CJK.match(token):
            return tuple([key for key, _, _ in _fold_cjk(token)])
        token = _HIDES.sub("", token)
        token = token if token[-1] in _FRACTIONS else unicodedata.normalize("NFKC", token)
    if token[0] in CURRENCIES:
        power = _MONEY[token.rstrip("nN")[-1].lower()]
        return CURRENCIES[token[0]], _times(_values(token[1:].rstrip("MmBbTtKkNn"))[0], power)
    if token[0].isdigit() or token[0] == ".":
        return _number(token)
    word = token.casefold()
    if word.endswith(("'t", "’t")):
        return ("not",) if word[-3] == "n" else (word[:-2], "t")
    return (_ANSWER if word[-1] in _ANSWER_ENDS else _key(word),)


def _fold_cjk(token: str) -> Iterator[tuple[str, int, int]]:
    """Yield the keys of Chinese or Japanese with their characters: pairs, negations, numbers with a unit."""
    first = 0
    for match in (*_CJK_WORD.finditer(token), None):
        last = match.start() if match else len(token)
        if last - first == 1:
            yield token[first:last], first, last
        for at in range(first, last - 1):
            yield token[at : at + 2], at, at + 2
        if match:
            yield "not" if match.lastgroup == "negation" else _cjk_number(match[0]), match.start(), match.end()
            first = match.end()


def _cjk_number(signs: str) -> str:
    """Return the value of a number in Chinese signs: 二十五 is 25."""
    if not _CJK_POWERS.keys() & set(signs):
        return _plain("".join([str(_CJK_DIGITS[sign]) for sign in signs]))
    total = part = digit = 0
    for sign in signs:
        power = _CJK_POWERS.get(sign)
        if power is None:
            digit = _CJK_DIGITS[sign]
        elif power == _MYRIAD:
            total, part, digit = (total + part + digit or 1) * power, 0, 0
        else:
            part, digit = part + (digit or 1) * power, 0
    return str(total + part + digit)


def _key(word: str) -> str:
    """Return the key of a folded word."""
    if word == "cannot":
        return "not"
    if "-" in word:  # twenty-five
        return str(sum([int(_NUMBERS[part]) for part in word.split("-")]))
    if word in _AS_WRITTEN:
        return word
    if number := _NUMBERS.get(word):
        return number
    word = _FORMS.get(word, word)
    stemmed = stem(word)
    if stemmed in _FORMS:
        stemmed = stem(_FORMS[stemmed])
    return word if stemmed in _AS_WRITTEN else stemmed  # "sure" is not French "sur"


def _number(token: str) -> tuple[str, ...]:
    """Return the value of a number, or several if it is a list: ``1,000`` is 1000, ``3rd`` is 3, ``1½`` is 1.5."""
    if not token.isascii():
        token = "".join([str(unicodedata.digit(sign, sign)) for sign in token])
    if token.isdigit():
        return (_plain(token),)
    if token[-1] in _FRACTIONS:
        return (f"{token[:-1]}.{_FRACTIONS[token[-1]]}",)
    values = _values(token.rstrip("stndrhk()"))
    return (_times(values[0], POWERS["thousand"]),) if "k" in token and len(values) == 1 else values


def _values(digits: str) -> tuple[str, ...]:
    """Return digits with separators as one value, or as several if they are a list or a date: ``10,20,30``."""
    whole, comma, rest = digits.rpartition(",")
    if comma and "." not in rest and len(rest) != 3:
        if len(rest) <= 2 and "," not in whole:  # 3,75 and 1.250,50
            return (_plain(f"{whole.replace('.', '')}.{rest}"),)
        return tuple([_plain(part) for part in digits.split(",")])
    parts = digits.replace(",", "").split(".")
    if len(parts) > 2:  # 1.000.000 and 21.5.2016
        is_one = all([len(group) == 3 for group in parts[1:]])
        return (_plain("".join(parts)),) if is_one else tuple(map(_plain, parts))
    return (_plain(".".join(parts)),)


def _plain(digits: str) -> str:
    """Return a number without leading and trailing zeros. ``1.250`` keeps its zeros: it may be 1250."""
    whole, point, decimals = digits.partition(".")
    if point and not (len(decimals) == 3 and 0 < len(whole) <= 3 and whole[0] != "0"):
        decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if decimals else whole


def _times(number: str, power: int) -> str:
    """Return ``number`` times ten to the ``power``."""
    whole, _, decimals = number.partition(".")
    if len(decimals) > power or not (whole + decimals).isdigit():
        return number
    return (whole + decimals.ljust(power, "0")).lstrip("0") or "0"


def _join_numbers(read: list[str]) -> list[str]:
    """Return ``read`` with numbers and the magnitudes behind them as one: ``1.4 million`` is 1400000."""
    if _POWERS.isdisjoint(read):
        return read
    joined = list(read)
    for place in compress(range(len(read)), map(_POWERS.__contains__, read)):
        before, first = joined[place - 1] if place else "", place - 1
        while first > 0 and joined[first] == _ABSORBED:
            first -= 1
        number = "1" if before == "a" else joined[first] if place else ""
        is_year = before != _ABSORBED and _YEAR.fullmatch(number)
        if number[:1].isdigit() and not is_year and len(number) < _MAX_WORD:
            joined[first], joined[place] = _times(number, POWERS[read[place]]), _ABSORBED
    return joined


def stem(word: str) -> str:
    """Return a lower-cased word without its inflection. It keeps at least three letters, and need not be a word."""
    if len(word) <= 3:
        return word
    rules = _STEM["english"]
    if "\u0400" <= word[0] <= "\u04ff":
        rules = _STEM["cyrillic"]
    elif "\u0600" <= word[0] <= "\u06ff":
        rules = _STEM["arabic"]
    elif not word.isascii():
        rules = rules + _STEM["romance_germanic"]
    for last, ending, replacement in rules:
        if not last or word[-1] in last:
            word = ending.sub(replacement, word)
    return word


Kind = Literal[
    "assertion", "inference", "general", "heading", "question", "pleasantry", "transition", "code", "citation", "gap"
]
CHECKED: frozenset[Kind] = frozenset({"assertion", "inference"})
"""Kinds that have a verdict. The others count in the value of groundedness only."""
MAX_SENTENCES, MAX_CHARACTERS = 200, 40_000  # of an answer that are read
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


class Sentence(NamedTuple):
    """A sentence of a text, without the number or bullet of a list item before it.

    ``keys`` are its words, ``content`` those with content, ``places`` where these are, ``pairs`` its neighbouring
    words.
    """

    start: int
    end: int
    kind: Kind
    keys: list[str]
    content: list[str]
    places: list[int]
    pairs: list[tuple[str, str]]


def sentences(text: str) -> list[Sentence]:
    """Return the sentences with content, of the first :data:`MAX_SENTENCES` and :data:`MAX_CHARACTERS` of a text."""
    text, end, number = text[:MAX_CHARACTERS], 0, 0
    read: list[Sentence] = []
    for stop in (*[match.end() for match in _BREAK.finditer(text) if _ends_sentence(text, match)], len(text)):
        part = text[end:stop].rstrip()
        start, end = end + len(part) - len(part.lstrip()), end + len(part)
        item = _ITEM.match(text, start, end)
        bullet, start = start, item.end() if item else start
        if start < end:
            words = keys(text[start:end])
            if places := [place for place, key in enumerate(words) if key not in FUNCTION]:
                kind = _kind(text, bullet, start, end, words, len(places))
                content = [words[place] for place in places]
                read.append(Sentence(start, end, kind, words, content, places, [*pairwise(words)]))
            number += 1
            if number == MAX_SENTENCES:
                break
        end = stop
    return read


def _kind(text: str, bullet: int, start: int, end: int, keys: list[str], content: int) -> Kind:
    """Return the kind of a sentence with these keys, ``content`` of which are no function words."""
    sentence = text[start:end]
    announces = sentence[-1] in "*_:：" and sentence.rstrip("*_ ").endswith((":", "："))
    heads_table = sentence[0] == "|" and _TABLE_RULE.match(text, end)
    if announces or heads_table or "# " in text[bullet:start]:
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
    stop, after = match.start(), text[match.end() : match.end() + 1]
    sign = text[stop]
    if sign in _STOPS and not match[1]:
        return False
    if not after or sign in "。！？｡؟۔।":
        return True
    opens = after in _OPENERS or not after.islower()
    if sign != "." or not opens:
        return opens
    last = text[max(0, stop - _WORD_LIMIT) : stop].replace("\n", " ").rpartition(" ")[2].lstrip(_OPENERS)
    if last.lower() in _ABBREVIATIONS or (len(last) == 1 and last.isupper()):
        return False
    if not last[-1:].isdigit() or not _ITEM_NUMBER.fullmatch(last):
        return True
    start = stop - len(last)  # the number of a list item ends no sentence
    return not _LINE_START.search(text, max(0, start - _WORD_LIMIT), start)
