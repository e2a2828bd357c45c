"""Finds words that each pattern of a refusal requires, so that a run tries and compiles few of the patterns.

``index.json`` has, by language, its folded hints, typical words and whole claims, so that a run reads few of the files.
``required.json`` has sets of words, and for each pattern of ``declines`` and ``lacks`` the numbers of its sets: the
most selective one, then all of them in the order of the pattern. A text that a pattern matches has a word of each of
them in this order, as ``Language.candidates`` reads it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from rag_eval.textual import read_table
from rag_eval.textual.refusals import KINDS, LANGUAGES, WORD_START, Language
from rag_eval.textual.tokens import fold

_MAX_TEXTS = 300  # texts of a part of a pattern that are listed
_MAX_SETS = 5  # of a pattern
_TYPICAL = 20  # a frequent word selects as little as so many others
_EDGE, _CUT = "\0", "\1"  # the edge of a word; a place before or after which anything may be
_WORD = re.compile(rf"{_CUT}?\w+{_CUT}?")

Words = frozenset[str]


def index_file() -> str:
    """Return the text of ``index.json``, a line for each language."""
    return _lines(_folded_words)


def required_words() -> str:
    """Return the text of ``required.json``, a line for each language."""
    return _lines(lambda code: _table(Language(code, _folded_words(code))))


def _lines(entry: Callable[[str], dict[str, list[Any]]]) -> str:
    lines = [f'"{code}": {json.dumps(entry(code), ensure_ascii=False)}' for code in LANGUAGES]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _folded_words(code: str) -> dict[str, list[Any]]:
    """Return the words that tell whether a text may refuse in a language, as ``Language`` compares them."""
    table = read_table(f"refusals/{code}.toml")
    words = {name: list(map(fold, table.get(name, ()))) for name in ("typical", "whole", "hints", "hints_within")}
    return {**words, "hints": [word[:WORD_START] for word in words["hints"]]}


def _table(language: Language) -> dict[str, list[Any]]:
    """Return the sets of words of a language, and the numbers of those that each pattern requires."""
    numbers: dict[Words, int] = {}
    table: dict[str, list[Any]] = {
        kind: [[numbers.setdefault(one, len(numbers)) for one in required(rule, language)] for rule in rules]
        for kind, rules in [(kind, language.table[kind]) for kind in KINDS]
    }
    return {**table, "words": [" ".join(sorted(one)) for one in numbers]}


def required(rule: str, language: Language) -> list[Words]:
    """Return the most selective set of words of which each match of a pattern has one, then several in their order.

    A pattern without any gets the set of the empty word, which all texts have.
    """
    sets = _Reader(language).read(_parser.parse(language.pattern(rule).pattern)) or [Words([""])]
    numbers = sorted(range(len(sets)), key=lambda number: (_cost(sets[number], language), sorted(sets[number])))
    return [sets[numbers[0]], *[sets[number] for number in sorted(numbers[:_MAX_SETS])]]


class _Reader:
    """Reads the tree of a pattern: lists the texts of its parts without gaps, and takes words of each text."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def read(self, tree: Any, start: str = _CUT, end: str = _CUT) -> list[Words]:
        """Return the sets of words that a sequence requires. ``start`` and ``end`` say what is around it."""
        sets: list[Words] = []
        run: list[tuple[str, ...]] = [(start,)]  # texts, each in the pieces that the parts of the sequence match
        for place, part in enumerate(tree):
            texts = _texts([part])
            if texts and len(run) * len(texts) <= _MAX_TEXTS:
                run = [(*before, text) for before in run for text in texts]
                continue
            edge = _edge(tree[place:], end, at_start=True)
            sets += self._sets([(*pieces, edge) for pieces in run])
            is_cut = any(re.search(rf"[\w{_CUT}]\Z", "".join(pieces)) for pieces in run)
            before, after = _CUT if is_cut else _EDGE, _edge(tree[place + 1 :], end, at_start=True)
            sets += self._of_part(part, before, after)
            run = [(_edge([part], before, at_start=False),)]
        return sets + self._sets([(*pieces, end) for pieces in run])

    def _of_part(self, part: Any, start: str, end: str) -> list[Words]:
        """Return the sets that a part requires whose texts are too many to list."""
        kind, value = str(part[0]), part[1]
        if kind == "SUBPATTERN":
            return self.read(value[3], start, end)
        if kind.endswith("_REPEAT"):
            return self.read(value[2]) if value[0] else []
        if kind == "BRANCH":
            sets = [self.read(branch, start, end) for branch in value[1]]
            return [Words().union(*[min(one, key=self._cost) for one in sets])] if all(sets) else []
        return []

    def _sets(self, run: list[tuple[str, ...]]) -> list[Words]:
        """Return the sets that have a word of each text: one for each piece of the texts, or one of all their words."""
        places = [self._words(pieces) for pieces in run]
        columns = [[*column] for column in zip(*places, strict=True) if all(column)]
        columns = columns or [[[word for words in found for word in words] for found in places]]
        return [frozenset([min(words, key=self._rank) for words in column]) for column in columns if all(column)]

    def _words(self, pieces: tuple[str, ...]) -> list[list[str]]:
        """Return the starts of words by the piece in which they begin; pairs of signs if no spaces separate words."""
        if not self.language.spaced:
            return [[pair for text in re.split(f"[{_EDGE}{_CUT}]", piece) for pair in _pairs(text)] for piece in pieces]
        ends = [*accumulate(map(len, pieces))]
        found: list[list[str]] = [[] for _ in pieces]
        for word in _WORD.finditer("".join(pieces)):
            bare = word[0].rstrip(_CUT)
            if not bare.startswith(_CUT) and (bare == word[0] or len(bare) >= WORD_START):
                found[bisect_right(ends, word.start())].append(bare[:WORD_START])
        return found

    def _rank(self, word: str) -> tuple[int, int, str]:
        return self._cost({word}), -len(word), word

    def _cost(self, words: Words | set[str]) -> int:
        return _cost(words, self.language)


def _cost(words: Words | set[str], language: Language) -> int:
    """Return how little a set of words selects: most texts have typical words."""
    typical = _starts(language.typical)
    return sum([_TYPICAL if word in typical else 1 for word in words])


@cache
def _starts(words: Words) -> Words:
    return frozenset([word[:WORD_START] for word in words])


def _pairs(text: str) -> list[str]:
    pairs = [text[place : place + 2] for place in range(len(text) - 1)] or [text]
    return [pair for pair in pairs if pair.strip() and " " not in pair]


def _texts(tree: Any) -> list[str] | None:
    """Return all texts that a part of a pattern matches, with the edges of words; None if they are too many."""
    texts = [""]
    for kind, value in tree:
        name, more = str(kind), None
        if name == "LITERAL":
            more = [chr(value)]
        elif name == "IN" and all(str(one) == "LITERAL" for one, _ in value):
            more = [chr(code) for _, code in value]
        elif name == "SUBPATTERN":
            more = _texts(value[3])
        elif name == "BRANCH":
            branches = [_texts(branch) for branch in value[1]]
            more = [text for branch in branches for text in branch or ()] if None not in branches else None
        elif name.endswith("_REPEAT") and value[1] == 1:
            once = _texts(value[2])
            more = once if once is None or value[0] else ["", *once]
        elif name == "AT":
            more = ["" if str(value) == "AT_NON_BOUNDARY" else _EDGE]
        elif name in ("ASSERT", "ASSERT_NOT"):
            is_word = name == "ASSERT_NOT" and str(list(value[1])) == "[(IN, [(CATEGORY, CATEGORY_WORD)])]"
            more = [_EDGE if is_word else ""]
        if more is None or len(texts) * len(more) > _MAX_TEXTS:
            return None
        texts = [before + text for before in texts for text in more]
    return texts


def _edge(tree: Any, beyond: str, *, at_start: bool) -> str:
    """Return whether a letter or digit may be at the start or end of a part, given the same of what is beyond it."""
    parts = list(tree)
    while parts:
        kind, value = parts.pop(0 if at_start else -1)
        name = str(kind)
        if name == "LITERAL":
            return _CUT if chr(value).isalnum() or chr(value) == "_" else _EDGE
        if name == "SUBPATTERN":
            parts = [*value[3], *parts] if at_start else [*parts, *value[3]]
        elif name == "BRANCH":
            beyond = _edge(parts, beyond, at_start=at_start)
            return max(_edge(branch, beyond, at_start=at_start) for branch in value[1])  # _CUT if one is cut
        elif name.endswith("_REPEAT"):
            without = _EDGE if value[0] else _edge(parts, beyond, at_start=at_start)
            return max(without, _edge(value[2], _CUT, at_start=at_start))
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            return _CUT
    return beyond
