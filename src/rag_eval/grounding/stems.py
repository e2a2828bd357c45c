"""Light stemming: endings that grammar asks for are cut off, so that forms of a word compare equal.

Not a full stemmer of any language: a word keeps at least three letters, and what stays need not be a word.
"""

from __future__ import annotations

_VOWELS = frozenset("aeiouy")
_DERIVED = (
    "ization",
    "isation",
    "ational",
    "ation",
    "ition",
    "ement",
    "ment",
    "ness",
    "ity",
    "ive",
    "ize",
    "ise",
    "al",
)
_CYRILLIC = (
    "иями ями ами ией иям ого его ому ему ыми ими ешь ете ишь ите ала ила ать ять ить еть ует уют "
    "ов ев ей ой ий ый ая яя ое ее ые ие ых их ую юю ом ем ам ям ах ях ал ил ет ит ут ют ат ят ла ло ли "
    "а я о е ы и у ю ь й"
).split()
_ARABIC_FIRST = ("وال", "بال", "كال", "فال", "ال", "لل")
_ARABIC_LAST = ("ات", "ون", "ين", "ها", "هم", "ية", "ة", "ه", "ي")
_ROMANCE_GERMANIC = (
    "issement",
    "ungen",
    "heit",
    "keit",
    "aciones",
    "ación",
    "ung",
    "mente",
    "en",
    "er",
    "em",
    "os",
    "as",
)


def stem(word: str) -> str:
    """``word``, a lower-cased word, without its inflection."""
    if len(word) <= 3:
        return word
    if word.isascii():
        return _english(word)
    if "\u0400" <= word[0] <= "\u04ff":
        return _without(word, _CYRILLIC, 3)
    if "\u0600" <= word[0] <= "\u06ff":
        return _arabic(word)
    return word if word[0] > "\u2e80" else _without(_english(word), _ROMANCE_GERMANIC, 4)


def _english(word: str) -> str:
    word = _without_plural(word)
    word = _without_tense(word)
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    for ending in _DERIVED:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    if word.endswith(("tion", "sion")) and len(word) > 6:
        word = word[:-3]
    if word[-1] == "e" and len(word) > 3:
        return word[:-1]
    return f"{word[:-1]}i" if word[-1] == "y" and len(word) > 3 else word


def _without_plural(word: str) -> str:
    if word[-1] != "s" or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def _without_tense(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return f"{word[:-3]}y"
    for ending in ("ing", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= 3 and not _VOWELS.isdisjoint(root):
            doubled = root[-1] == root[-2] and root[-1] not in "lsz" and len(root) > 3
            return root[:-1] if doubled else root
    return word


def _arabic(word: str) -> str:
    for first in _ARABIC_FIRST:
        if word.startswith(first) and len(word) - len(first) >= 3:
            word = word[len(first) :]
            break
    return _without(word, _ARABIC_LAST, 3)


def _without(word: str, endings: tuple[str, ...] | list[str], least: int) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word
