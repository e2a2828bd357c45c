"""Recognise refusals in free text: does a claim refuse to answer, in which language, and by which pattern.

A claim refuses when one of its first sentences says that the speaker will not or cannot answer, and the rest answers
nothing. ``I can't say who built it, but it was finished in 1889`` is a partial answer, not a refusal.

The patterns of a language are data in ``data/refusals/CODE.toml``. To add a language, add such a file and examples in
``tests/refusals/``, and run ``make generate``, which lists in ``index.json`` the hints of each language, and in
``required.json`` the words that each pattern requires: only patterns whose words a sentence has are compiled and tried.
Line breaks in a pattern and the indentation after them are ignored. ``<name>`` in a pattern is the entry of ``[words]``
with that name; an entry may use earlier ones. Patterns meet folded text: lower case, no accents, and only classes in
lower case. The keys of a file:

- ``hints``: words, one of which occurs in any text that ``declines`` or ``lacks`` match. Six letters are compared.
  ``hints_within``: substrings with the same purpose, for languages that do not separate words.
- ``typical``: frequent words that tell this language from its neighbours.
- ``declines``: the speaker will not or may not answer. ``lacks``: the speaker does not know, or the sources do not say.
- ``turns``: *but*, *however*: the text behind is an answer unless it is idle.
- ``concedes``: *although*, *while*: the refusal behind counts only if the clause after it is idle.
- ``idle``: beginnings of sentences and clauses that answer nothing: apologies, offers, advice to look elsewhere.
  ``lead`` may precede them. ``idle_within``: the same anywhere in the sentence.
- ``moral``: a sentence behind a pattern of ``declines`` that matches this is a lecture, not an answer.
- ``before``: words before a match that make it a condition (*if*, *whether*). ``behind``: the same right behind it.
  ``case``: sentences that are a condition as a whole, by their word order, and counts (*14 of the 60*).
- ``others``: a subject other than the speaker and the sources: people, companies, courts.
- ``whole``: claims that refuse by being this text, up to a semicolon. ``spaced``: whether spaces separate words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any, Literal

from msgspec import Struct

from rag_eval.textual import read_table
from rag_eval.textual.tokens import fold, holds_any, tokens

Kind = Literal["declines", "lacks", "whole", "empty"]

VERSION = 16
"""Version of the patterns and limits below. Scores are comparable only under the same version."""
LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "tr", "ar", "zh", "ja", "ko")
MAX_CLAIM = 2000
"""Characters. A longer claim is an answer."""
HEAD = 500
"""A refusal begins within this many characters of the claim."""
MAX_PREAMBLE = 80
"""Characters of content that a sentence may say before it refuses."""
MAX_CONTENT = {"declines": 600, "lacks": 200, "whole": 30}
"""Characters of content behind a refusal, by its kind. A claim with more content is a partial answer."""
_MAX_SENTENCE = 600  # characters of one sentence that are searched
_CONDITION_WINDOW = 60  # characters before a match in which a word may make it a condition
_TURN_WINDOW = 20  # characters at the start of a sentence in which a word may turn it, as in "It does, however, say"
_MAX_WHOLE = 60  # characters of the longest claim that is compared with ``whole``
_SHOWN = 80  # characters of a match that explain shows
_MIN_CONTENT = 3  # characters; a shorter clause has no content
_MAX_TEXTS = 8  # whose words are remembered: several languages read the same sentences
_MANY_WORDS = 12  # distinct words; so many have a typical word of their language among them
_MIN_SHARE = 1 / 8  # of the typical words of another language, in a text that may refuse in both
WORD_START = 6
"""Letters of a word that are compared, of hints and of words that a pattern requires."""
_WORD_END = {True: r"(?!\w)", False: ""}  # by whether spaces separate words
_ENDS = {"before": r"[\s,:]*$", "concedes": r"\s*$"}  # of the entries that end right before something
KINDS: tuple[Literal["declines", "lacks"], ...] = ("declines", "lacks")
"""The kinds of patterns that refuse."""

# Compiled at their first use: most claims have no hint of a refusal, and classes of many letters take milliseconds.
_SENTENCE_END = (
    r"[.!?。।؟！？\n](?:(?<=[。।؟！？\n])\s*|(?<=[\u3000-\u9fff][!?])"
    r"|(?<!\s\d\.)(?<!\s\d\d\.)[\"')\]]*\s+)"  # not behind the number of a list item
)
_QUOTED = r"[\"'](?:(?<=\")[^\"\n]{1,400}\"|(?<!\w')(?<=')(?:[^'\n]|'(?=\w)){1,200}'(?!\w))"
# A label (**Answer:**) or a repeated question in front of an answer; emphasis, and citations such as [1], [3]-[5].
_PREFIX = (
    r"\W*(?!context\b|information\b|evidence\b)(?:(?:final )?[^\W\d\u2e80-\ud7ff]{1,12}|[^\W\d]{1,2}) ?:\W*"
    r"|[^.!?؟\"\n]{1,300}[?؟]\W*(?=\w)"
)
_MARKUP = r"[*_#>[](?:(?<!\[)|\d[\d\s,;-]*\](?:\s?(?:[-~〜]|\w{1,3})\s?\[\d[\d\s,;-]*\])?\s?)"
_LINE_BREAK = re.compile(r"\n\s*")
_PART = re.compile("<([a-z_]+)>")
_WORD = re.compile(r"\w+")


class Refusal(Struct, frozen=True):
    """A claim that refuses.

    ``kind``: ``declines`` (will not), ``lacks`` (does not know, or the sources do not say), ``whole`` (a sentence that
    is nothing else) or ``empty`` (no letter and no digit). ``text`` is the match in the folded claim. ``partial``: the
    rest of the claim answers.
    """

    language: str
    kind: Kind
    text: str
    partial: bool = False

    def __str__(self) -> str:
        """Describe the rule, as in ``the built-in pattern 'i cannot help' (en, declines)``."""
        if self.kind == "empty":
            return "the empty answer (built-in)"
        return f"the built-in pattern '{self.text[:_SHOWN]}' ({self.language}, {self.kind})"


class _Rule(Struct, frozen=True):
    """A pattern that refuses. Its sentences have a word of each set of ``required``, in this order."""

    kind: Literal["declines", "lacks"]
    text: str
    selective: frozenset[str]
    required: list[frozenset[str]]


class _Match(Struct, frozen=True):
    """A part of a sentence that refuses."""

    kind: Literal["declines", "lacks", "whole"]
    start: int
    end: int


def recognise(claim: str) -> Refusal | None:
    """Return the refusal that ``claim`` is, or None for an answer, also a partial one."""
    refusal = examine(claim)
    return None if refusal is None or refusal.partial else refusal


def examine(claim: str) -> Refusal | None:
    """Return the refusal in ``claim``, partial or not, or None."""
    claim = claim.strip()
    if len(claim) > MAX_CLAIM:
        return None
    head = fold(claim[:HEAD])
    if len(head) <= _MAX_WHOLE:
        bare = _bare(head)
        if not bare:
            return Refusal("", "empty", "")
        if bare in _whole_claims():
            return Refusal(_whole_claims()[bare], "whole", bare)
    languages = possible_languages(head)
    if not languages:
        return None
    first = _sentences(head)
    languages = [language for language in languages if language.first_match(first)]
    if not languages:
        return None
    sentences = first if len(claim) <= HEAD else _sentences(fold(claim))
    refusals = [refusal for language in languages if (refusal := language.refusal(sentences))]
    return min(refusals, key=lambda refusal: refusal.partial, default=None)


def says_nothing(sentence: str) -> bool:
    """Return whether one sentence of an answer refuses, or says that the sources lack something."""
    folded = fold(sentence[:_MAX_SENTENCE])
    return any([language.match(folded, is_hinted=True) for language in possible_languages(folded)])


def possible_languages(folded: str) -> list[Language]:
    """Return the languages in which a folded text may refuse: those with a hint, and with typical words.

    A short text without any needs only a hint. A longer text needs more of them, and not far fewer than in another.
    """
    words, hints = frozenset(_words(folded)), _hints()
    hinted = {one for word in words if (start := word[:WORD_START]) in hints for one in hints[start]}
    expected = len(words) // _MANY_WORDS
    for one in _hinted_within()[folded.isascii()]:
        if (not expected or one.typical_words(words)) and holds_any(one.hints_within, folded):
            hinted.add(one)
    if not hinted:
        return []
    possible = {one: one.typical_words(words) for one in _languages() if one in hinted}
    least = max(1, expected, max(possible.values()) * _MIN_SHARE)
    typical = [one for one, count in possible.items() if count >= least or not one.typical]
    return typical if typical or expected else list(possible)


class Language:
    """The patterns of one language, each compiled at its first use."""

    def __init__(self, code: str, index: Mapping[str, Any] | None = None) -> None:
        self.code, index = code, read_table("refusals/index.json")[code] if index is None else index
        self.typical, self.whole, self.hints = (frozenset(index[name]) for name in ("typical", "whole", "hints"))
        self.hints_within: tuple[str, ...] = tuple(index["hints_within"])
        self._patterns: dict[str, re.Pattern[str]] = {}

    @cached_property
    def table(self) -> dict[str, Any]:
        """Return the content of the file of the language, which only a text that may refuse in it needs."""
        return read_table(f"refusals/{self.code}.toml")

    @cached_property
    def spaced(self) -> bool:
        """Return whether spaces separate words."""
        return bool(self.table.get("spaced", True))

    def typical_words(self, words: frozenset[str]) -> int:
        """Return how many words of a text are typical of the language; 1 if it lists none, as its hints are enough."""
        return len(self.typical & words) if self.typical else 1

    def refusal(self, sentences: Sequence[str]) -> Refusal | None:
        """Return the refusal of the first sentence that refuses; partial if the sentence or the rest answers."""
        first = self.first_match(sentences)
        if first is None:
            return None
        number, match = first
        sentence = sentences[number]
        partial = self._is_turned(sentence, match) or self._is_answered(sentences[number + 1 :], match.kind)
        return Refusal(self.code, match.kind, sentence[match.start : match.end], partial)

    def first_match(self, sentences: Sequence[str]) -> tuple[int, _Match] | None:
        """Return the number of the first sentence that refuses, with its match; None if content precedes it.

        A lecture (``That would be harmful.``) may precede a refusal to help.
        """
        lectured = False
        for number, sentence in enumerate(sentences):
            if match := self.match(sentence):
                return (number, match) if match.kind == "declines" or not lectured else None
            if self._length(sentence, "declines"):
                return None
            lectured = lectured or self._length(sentence, "lacks") > 0
        return None

    def match(self, sentence: str, *, is_hinted: bool = False) -> _Match | None:
        """Return the part of a sentence that refuses. Conditions and other people's failures do not count."""
        if not is_hinted:
            starts = [word[:WORD_START] for word in _words(sentence)]
            if self.hints.isdisjoint(starts) and not holds_any(self.hints_within, sentence):
                return None
        clause = sentence[: _MAX_WHOLE + 1].partition(";")[0]
        if len(clause) <= _MAX_WHOLE and _bare(clause) in self.whole:
            return _Match("whole" if len(clause) == len(sentence) else "lacks", 0, len(clause))
        others = None  # the end of a subject other than the speaker; the text behind it is about others
        for match in self._matches(sentence):
            if self._is_condition(sentence, match):
                continue
            if others is None:
                other = self._entry("others").search(sentence, 0, _MAX_SENTENCE)
                others = other.end() if other else len(sentence) + 1
            if match.start < others:
                return match
        return None

    def _matches(self, sentence: str) -> Iterator[_Match]:
        """Yield the matches of ``lacks``, then of ``declines``, by their start; of several there, the first pattern's.

        ``I can't say`` matches both. A pattern is compiled when a sentence has the words that it requires.
        """
        candidates = self.candidates(sentence)
        for kind in reversed(KINDS):
            rules, start = [rule.text for rule in candidates if rule.kind == kind], 0
            while rules:
                searched = [(rule, self.pattern(rule).search(sentence, start, _MAX_SENTENCE)) for rule in rules]
                matches = [match for _, match in searched if match]
                if not matches:
                    break
                first = min(matches, key=re.Match.start)
                yield _Match(kind, *first.span())
                start = max(first.end(), start + 1)
                rules = [rule for rule, match in searched if match]

    def candidates(self, sentence: str) -> list[_Rule]:
        """Return the patterns whose sets each have a word in a sentence, in the order of the file."""
        text = sentence[:_MAX_SENTENCE]
        if self.spaced:
            read = ["", *[word[:WORD_START] for word in _words(text)]]
        else:  # signs, and pairs of signs
            read = ["", *chain.from_iterable(zip(text, map("".join, pairwise(f"{text} ")), strict=True))]
        words, by_word = frozenset(read), self._by_word
        numbers = {number for word in words if word in by_word for number in by_word[word]}
        rules = []
        for number in sorted(numbers):
            rule, rest = self._rules[number], iter(read)
            has_all = not any(map(words.isdisjoint, rule.required))
            if has_all and all(any(word in one for word in rest) for one in rule.required):  # in this order
                rules.append(rule)
        return rules

    def _is_condition(self, sentence: str, match: _Match) -> bool:
        if self._entry("behind").match(sentence, match.end) or self._entry("case").match(sentence, 0, _MAX_SENTENCE):
            return True
        return self._entry("before").search(sentence, max(0, match.start - _CONDITION_WINDOW), match.start) is not None

    def _is_turned(self, sentence: str, match: _Match) -> bool:
        """Return whether a sentence turns from its refusal to an answer, or from an answer to its refusal."""
        opening = self._entry("turns").match(sentence, 0, match.start)
        first = opening.end() if opening else 0  # it turns from earlier sentences, which have no content
        before = self._content(sentence[first : match.start], match.kind)
        if self._entry("concedes").match(sentence, 0, match.start):
            clauses = sentence[match.end : _MAX_SENTENCE].split(",")[1:]
            return any(self._content(clause, match.kind) for clause in clauses)
        if before > MAX_PREAMBLE or (before and self._entry("turns").search(sentence, first, match.end)):
            return True
        turn = self._entry("turns").search(sentence, match.end, _MAX_SENTENCE)
        return turn is not None and self._content(sentence[turn.end() :], match.kind) > 0

    def _is_answered(self, rest: Sequence[str], kind: Kind) -> bool:
        """Return whether the sentences behind a refusal answer: one turns or has a number, or they have much content.

        Behind a refusal to help, numbers do not count: lectures have them, too.
        """
        total, listing = 0, False
        for sentence in rest:
            turn = self._entry("turns").search(sentence, 0, _TURN_WINDOW)
            length = 0 if listing else self._content(sentence, kind)
            if turn:
                length = length and self._content(sentence[turn.end() :], kind)
            total += length
            if total > MAX_CONTENT[kind] or (length and (turn or (kind == "lacks" and _states_number(sentence)))):
                return True
            # A lecture may end in a list of better things to do.
            listing = listing or (kind == "declines" and not length and sentence.endswith(":"))
        return False

    def _content(self, text: str, kind: Kind) -> int:
        """Return the number of characters of content in a sentence or clause: all or none."""
        length = self._length(text, kind)
        return 0 if length and self.match(text) else length

    def _length(self, text: str, kind: Kind) -> int:
        """Return the same for text that does not refuse."""
        text = _bare(text)
        if len(text) < _MIN_CONTENT or self._entry("idle").search(text, 0, _MAX_SENTENCE):
            return 0
        return 0 if kind == "declines" and self._entry("moral").search(text, 0, _MAX_SENTENCE) else len(text)

    def pattern(self, rule: str) -> re.Pattern[str]:
        """Return a pattern of ``declines`` or ``lacks``, compiled at its first use."""
        if rule not in self._patterns:
            self._patterns[rule] = re.compile(self._alternatives(rule, end=_WORD_END[self.spaced]))
        return self._patterns[rule]

    def _entry(self, name: str) -> re.Pattern[str]:
        """Return the alternatives of another entry as a pattern, which never matches if there are none."""
        if name not in self._patterns:
            entry = self.table.get(name, ())
            if name == "turns":
                text = f"{self._alternatives(entry, end=_WORD_END[self.spaced])}|[;؛]"
            elif name == "idle":
                lead, idle = [self._alternatives(self.table.get(one, ()), start=False) for one in ("lead", "idle")]
                text = f"^(?:{lead})?{idle}|{self._alternatives(self.table.get('idle_within', ()))}"
            else:
                text = self._alternatives(entry, start=name != "behind", end=_ENDS.get(name, ""))
            self._patterns[name] = re.compile(text)
        return self._patterns[name]

    def _alternatives(self, entry: str | Sequence[str], *, start: bool = True, end: str = "") -> str:
        texts = [entry] if isinstance(entry, str) else entry
        parts = [_PART.sub(lambda part: self._words[part[1]], _joined(text)) for text in texts or ["(?!)"]]
        boundary = r"(?<!\w)" if start and self.spaced else ""
        return f"{boundary}(?:{'|'.join(map(fold, parts))}){end}"

    @cached_property
    def _words(self) -> dict[str, str]:
        words: dict[str, str] = {}
        for name, text in self.table.get("words", {}).items():
            words[name] = _PART.sub(lambda part: words[part[1]], _joined(text))
        return words

    @cached_property
    def _rules(self) -> list[_Rule]:
        """Return the patterns that refuse, each with the words that it requires."""
        table = read_table("refusals/required.json")[self.code]  # tools/refusal_words.py finds the words
        sets = [frozenset(words.split(" ")) for words in table["words"]]
        return [
            _Rule(kind, text, sets[numbers[0]], [sets[number] for number in numbers[1:]])
            for kind in KINDS
            for text, numbers in zip(self.table[kind], table[kind], strict=True)
        ]

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        """Return the numbers of the patterns by a word of ``selective``, their most selective set."""
        numbers = defaultdict[str, list[int]](list)
        for number, rule in enumerate(self._rules):
            for word in rule.selective:
                numbers[word].append(number)
        return numbers


@cache
def _languages() -> tuple[Language, ...]:
    return tuple(map(Language, LANGUAGES))


@cache
def _hints() -> dict[str, list[Language]]:
    """Return the languages by the first letters of their hints."""
    by_start = defaultdict[str, list[Language]](list)
    for language in _languages():
        for start in language.hints:
            by_start[start].append(language)
    return dict(by_start)


@cache
def _hinted_within() -> tuple[list[Language], list[Language]]:
    """Return the languages with hints within words, and those of them with hints in ASCII."""
    languages = [language for language in _languages() if language.hints_within]
    return languages, [language for language in languages if any(map(str.isascii, language.hints_within))]


@lru_cache(maxsize=_MAX_TEXTS)
def _words(text: str) -> list[str]:
    """Return the words of a folded text."""
    return tokens(text) if text.isascii() else _WORD.findall(text)


@cache
def _whole_claims() -> dict[str, str]:
    return {text: language.code for language in reversed(_languages()) for text in language.whole}


def _states_number(sentence: str) -> bool:
    """Return whether a sentence has a number other than one, in digits or words. It does not begin like a list item."""
    from rag_eval.textual.words import keys  # loads the lexicon

    return not sentence[0].isdigit() and any(key[0].isdigit() and key != "1" for key in keys(sentence))


def _joined(text: str) -> str:
    """Return a text of the file without its line breaks and indentation."""
    return _LINE_BREAK.sub("", text.lstrip())


def _bare(text: str) -> str:
    """Return ``text`` without the signs at its ends that are no letter and no digit."""
    first, last = 0, len(text)
    while first < last and not text[first].isalnum():
        first += 1
    while last > first and not text[last - 1].isalnum():
        last -= 1
    return text[first:last]


def _sentences(text: str) -> list[str]:
    """Return the sentences, with dots in place of quotations: quoting a refusal is no refusal."""
    if text[0] == text[-1] == '"':
        text = text[1:-1]
    text = re.sub(_MARKUP, "", text[prefix.end() :] if (prefix := re.match(_PREFIX, text)) else text)
    text = re.sub(_QUOTED, lambda quoted: "·" * len(quoted[0]), text)
    return [sentence for sentence in re.split(_SENTENCE_END, text) if sentence]
