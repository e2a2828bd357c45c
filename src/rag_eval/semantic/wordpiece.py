"""Text cut into the pieces of a vocabulary, as BERT does it (Devlin et al. 2019; Wu et al. 2016 for the pieces)."""

from __future__ import annotations

import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST = 100  # characters of a word that is cut into pieces; a longer one is unknown
_IDEOGRAPHS = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


class WordPiece:
    """A vocabulary that turns texts into numbers. ``lower`` folds case and takes accents off."""

    def __init__(self, vocabulary: Mapping[str, int], *, lower: bool) -> None:
        self._numbers, self._lower = vocabulary, lower
        self._first, self._last, self._unknown = (vocabulary[name] for name in ("[CLS]", "[SEP]", "[UNK]"))

    def numbers(self, text: str, most: int) -> list[int]:
        """The numbers of the pieces of ``text`` between the marks of its start and end, ``most`` in all."""
        found: list[int] = []
        for word in _words(_folded(text) if self._lower else text):
            found.extend(self._pieces(word))
            if len(found) > most - 2:
                break
        return [self._first, *found[: most - 2], self._last]

    def _pieces(self, word: str) -> list[int]:
        """The longest pieces that ``word`` starts with, one after the other; one unknown where some part is none."""
        found: list[int] = []
        start = 0
        while start < len(word) <= LONGEST:
            before = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if before + word[start:end] in self._numbers), 0)
            if not end:
                break
            found.append(self._numbers[before + word[start:end]])
            start = end
        return found if start == len(word) else [self._unknown]


def _folded(text: str) -> str:
    parts = unicodedata.normalize("NFD", text.lower())
    return "".join([sign for sign in parts if unicodedata.category(sign) != "Mn"])


def _words(text: str) -> Iterator[str]:
    """What stands between white space; signs and ideographs are words of their own, control characters nothing."""
    return iter("".join(map(_spaced, text)).split())


def _spaced(sign: str) -> str:
    if sign.isalnum() and ord(sign) < _IDEOGRAPHS[1][0]:
        return sign
    kind = unicodedata.category(sign)
    if kind[0] == "C":
        return " " if sign in "\t\n\r" else ""
    if sign.isspace():
        return " "
    return f" {sign} " if _is_word(sign, kind) else sign


def _is_word(sign: str, kind: str) -> bool:
    plain = sign.isascii() and not sign.isalnum()  # $, + and ^ are no punctuation to Unicode
    return plain or kind[0] == "P" or any(first <= ord(sign) <= last for first, last in _IDEOGRAPHS)
