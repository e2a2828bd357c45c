"""Words as the engine compares them: folded to keys, so that ``Studies``, ``study`` and ``studied`` are the same.

Written for speed, since it reads every chunk of every case: text is cut by tables of the interpreter, and each
distinct word is folded once.
"""

from __future__ import annotations

import re

from rag_eval.grounding.lexicon import AS_WRITTEN, IRREGULAR, MONTHS, NUMBER_WORDS, ORDINAL_WORDS, SHORT_FORMS, SYNONYMS
from rag_eval.grounding.stems import stem
from rag_eval.text import tokens

MEMORY = 1 << 16
"""How many distinct words are remembered at most; then all are forgotten, which changes no result."""
_LONGEST = 64  # characters of a word that is remembered

_WORDS_ONLY = bytes(i if chr(i).isalnum() or chr(i) == "_" else 32 for i in range(128)).lower()
_TABLE = _WORDS_ONLY + bytes(range(128, 256))
_THOUSANDS = re.compile(r",(?<=[0-9],)(?=[0-9]{3}(?![0-9]))")
_DECIMAL = re.compile(r"\.(?<=[0-9]\.)(?=[0-9])")
_ISO_DATE = re.compile(r"-(?<=[0-9]{4}-)(0[1-9]|1[0-2])-([0-3][0-9])(?![0-9])")
_TYPOGRAPHIC = (("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("–", "-"), ("—", "-"), ("…", " "), ("\xa0", " "))
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th|s)", re.ASCII)
_known: dict[bytes, str] = {}


def keys(text: str) -> list[str]:
    """The keys of the words of ``text``, in order.

    ``n't`` is read as ``not`` and ``cannot`` as two words, ``%`` and ``$`` as words, ``1,000`` as 1000, ``2.5`` as one
    word, the month of an ISO date by its name.
    """
    found = _cut(text)
    try:
        return [*map(_known.__getitem__, found)]
    except KeyError:
        return _learnt(found) or [key(word) for word in words(text)]


def words(text: str) -> list[str]:
    """The words of ``text`` as its keys are made of them, lower-cased."""
    return [part for word in _cut(text) for part in tokens(word.decode())]


def _cut(text: str) -> list[bytes]:
    text = _spelled_out(text)
    if not text.isascii():
        for sign, plain in _TYPOGRAPHIC:
            text = text.replace(sign, plain)
    return text.encode(errors="replace").translate(_TABLE).split()


def _learnt(found: list[bytes]) -> list[str]:
    """The keys of ``found``; none where one of them is no single word, as in scripts that write without spaces."""
    read: dict[bytes, str] = {}
    for word in set(found):
        parts = tokens(word.decode())
        if len(parts) != 1:
            return []
        read[word] = key(parts[0])
    if len(_known) > MEMORY:
        _known.clear()
    _known.update({word: own for word, own in read.items() if len(word) <= _LONGEST})
    return [read[word] for word in found]


def _spelled_out(text: str) -> str:
    if "," in text:
        text = _THOUSANDS.sub("", text)
    text = _DECIMAL.sub("_", text)
    if "'t" in text or "’t" in text:
        text = text.replace("n't", " not").replace("n’t", " not")
    if "annot" in text:
        text = text.replace("cannot", "can not")
    if "%" in text:
        text = text.replace("%", " percent ")
    if "$" in text:
        text = text.replace("$", " dollar ")
    if "U" in text:
        text = text.replace("United States", "USA").replace("U.S.", "USA ").replace(" US ", " USA ")
        text = text.replace("United Kingdom", "UK").replace("U.K.", "UK ")
    return _ISO_DATE.sub(_named_month, text) if "-0" in text or "-1" in text else text


def _named_month(date: re.Match[str]) -> str:
    return f" {MONTHS[int(date[1]) - 1]} {date[2]} "


def key(word: str) -> str:
    """The key of a lower-cased word: number words and ordinals as digits, short forms in full, else its stem."""
    if word in AS_WRITTEN:
        return word
    digits = NUMBER_WORDS.get(word) or ORDINAL_WORDS.get(word)
    if digits:
        return digits
    if word[0].isdigit():
        return _number(word)
    word = SHORT_FORMS.get(word, word)
    word = IRREGULAR.get(word, word)
    found = stem(word)
    found = _SAME.get(found, found)
    return word if found in AS_WRITTEN else found  # "sure" is not French "sur"


def _number(word: str) -> str:
    """``word`` without what leaves its value as it is: ordinal endings, zeros before it and behind its point."""
    ordinal = _ORDINAL.fullmatch(word)
    word = ordinal[1] if ordinal else word
    if word.count("_") == 1:
        word = word.rstrip("0").rstrip("_")
    return word.lstrip("0") or "0"


_SAME = {stem(other): stem(first) for other, first in SYNONYMS.items()}
