"""Tokens, content words and folded text: pure string helpers that metrics share."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cached_property, lru_cache
from sys import intern

_WORD = re.compile(r"\w+")
_APART = "".join(chr(code) if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128))
# Compiled at their first use: few texts need them, and large classes take milliseconds.
_CJK = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+"
_COMBINING = "[\u0300-\u036f\u064b-\u0655\u0640]"  # marks split by NFKD, Arabic vowel signs, tatweel
_ENTITY = "(?i)&(?:#0?39|#x27|apos|[lr]squo|(#34|quot|[lr]dquo)|(#160|nbsp));"
_FOLDED = str.maketrans(
    {
        **dict.fromkeys("‘’‛`´ʼ′＇", "'"),
        **dict.fromkeys("“”„‟«»″＂「」『』", '"'),
        **dict.fromkeys("‐‑‒–—", "-"),
        "…": "...",
        "\u00a0": " ",
        "ı": "i",  # a Turkish i in upper case and back
        "ł": "l",  # which NFKD does not decompose
        # Invisible characters would cut a word in two: soft hyphens, zero-width spaces, direction marks.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"),
        **dict.fromkeys(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))),
    }
)

MAX_PASSAGES, MAX_PASSAGE = 1 << 10, 1 << 12
"""Texts that are remembered, and characters of each."""

STOP_WORDS = frozenset(
    (
        "a about above after again against all also am an and any are as at be because been before being below "
        "between both but by can could did do does doing down during each either few for from further had has have "
        "having he her here hers him his how i if in into is it its itself just may me might more most must my no nor "
        "not of off on once only or other our ours out over own same shall she should so some such than that the "
        "their theirs them then there these they this those through to too under until up upon very was we were what "
        "when where which while who whom whose why will with would you your yours "
    ).split()
)
"""English function words that say nothing about a claim's content. Fixed: a change of it changes scores."""


def tokens(text: str) -> list[str]:
    r"""Return the words of ``text``: NFKC, casefolded, ``\w+``; Chinese and Japanese script as overlapping pairs."""
    if text.isascii():
        return text.lower().translate(_APART).split()  # the same, but five times faster
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return [part for word in words for part in _split_cjk(word)] if re.search(_CJK, text) else words


def fold(text: str) -> str:
    """Return ``text`` in lower case without accents, with plain apostrophes and quotation marks."""
    if "&" in text:
        text = re.sub(_ENTITY, lambda entity: '"' if entity[1] else " " if entity[2] else "'", text)
    if not text.isascii():
        text = text.translate(_FOLDED)
    if text.isascii():
        return text.lower().replace("`", "'")
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_FOLDED))
    return unicodedata.normalize("NFC", re.sub(_COMBINING, "", decomposed))


class Passage:
    """A text that is read repeatedly, such as a chunk that many answers retrieve. Do not modify its values."""

    def __init__(self, text: str) -> None:
        self.tokens = list(map(intern, tokens(text)))  # the texts of a corpus share most words

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return the count of each token."""
        return dict(Counter(self.tokens))

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Return its distinct tokens."""
        return frozenset(self.tokens)

    @cached_property
    def trigrams(self) -> frozenset[tuple[str, str, str]]:
        """Return all sequences of three tokens."""
        return frozenset(zip(self.tokens, self.tokens[1:], self.tokens[2:], strict=False))

    @cached_property
    def size(self) -> int:
        """Return the square of the length of its vector of counts."""
        return sum([count * count for count in self.counts.values()])


_remembered = lru_cache(maxsize=MAX_PASSAGES)(Passage)


def passage(text: str) -> Passage:
    """Return a parsed text, from the cache of the last :data:`MAX_PASSAGES` unless it is long."""
    return _remembered(text) if len(text) <= MAX_PASSAGE else Passage(text)


def content_words(text: str) -> frozenset[str]:
    """Return the distinct tokens of ``text`` without :data:`STOP_WORDS`."""
    return frozenset(tokens(text)) - STOP_WORDS


def holds_any(parts: Iterable[str], text: str) -> bool:
    """Return whether one of the parts occurs in a text."""
    return any(map(text.__contains__, parts))


@lru_cache(maxsize=4096)
def heading_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a heading path ``A > B``, inner space collapsed, without empty ones."""
    return tuple(part for raw in path.split(">") if (part := " ".join(raw.split())))


def _split_cjk(word: str) -> list[str]:
    """Return a word with its runs of Chinese and Japanese script as overlapping pairs."""
    parts, position = [], 0
    for match in re.finditer(_CJK, word):
        run = match[0]
        pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        parts += [word[position : match.start()], *pairs]
        position = match.end()
    return [part for part in [*parts, word[position:]] if part]
