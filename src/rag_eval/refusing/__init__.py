"""Refusals in words of their own: is a claim one, in which language, and by which pattern.

A claim refuses when one of its first sentences says that the speaker will not or cannot answer, and what stands beside
that answers nothing. ``I can't say who built it, but it was finished in 1889`` is an answer.
"""

from __future__ import annotations

import re
from functools import cache

from rag_eval.refusing._arabic import ARABIC
from rag_eval.refusing._chinese import CHINESE
from rag_eval.refusing._dutch import DUTCH
from rag_eval.refusing._english import ENGLISH
from rag_eval.refusing._french import FRENCH
from rag_eval.refusing._german import GERMAN
from rag_eval.refusing._italian import ITALIAN
from rag_eval.refusing._japanese import JAPANESE
from rag_eval.refusing._korean import KOREAN
from rag_eval.refusing._language import HINT, compiled, fold
from rag_eval.refusing._polish import POLISH
from rag_eval.refusing._portuguese import PORTUGUESE
from rag_eval.refusing._russian import RUSSIAN
from rag_eval.refusing._spanish import SPANISH
from rag_eval.refusing._turkish import TURKISH
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from rag_eval.refusing._language import Compiled, Language

    Kind = Literal["declines", "lacks", "whole", "empty"]

VERSION = 3  # of the patterns and limits below: scores are comparable only under the same one
LONGEST = 2000  # characters; a longer claim is an answer
HEAD = 500  # characters from the start in which a refusal has to begin
LEADING = 80  # characters that its own sentence says before it, at most
BESIDE = {"declines": 300, "lacks": 200, "whole": 30}  # characters that say something behind it, at most
_SENTENCE = 600  # characters of one sentence that are looked at
_BEFORE = 60  # characters before a match in which a word may undo it
_TURNING = 20  # characters of a sentence in which a word may turn it, as in "It does, however, say"
_WHOLE = 60  # characters of the longest claim that refuses by being just that
_SHOWN = 80  # characters of a match that explain shows
_SHORT = 3  # letters and digits; fewer say nothing

LANGUAGES: tuple[Language, ...] = (
    ENGLISH,
    GERMAN,
    FRENCH,
    SPANISH,
    ITALIAN,
    PORTUGUESE,
    DUTCH,
    POLISH,
    RUSSIAN,
    TURKISH,
    ARABIC,
    CHINESE,
    JAPANESE,
    KOREAN,
)

_NONE: set[str] = set()
_BETWEEN = str.maketrans(dict.fromkeys("'\".,;:!?()[]{}*_-/<>\n", " "))
_ENDS = re.compile(
    r"[.!?。।؟\n](?:(?<=[。।؟\n])\s*|(?<=[\u3000-\u9fff][!?])"
    r"|(?<!\s\d\.)(?<!\s\d\d\.)[\"')\]]*\s+)"  # not behind the number of a list's item
)
_QUOTED = re.compile(r"[\"'](?:(?<=\")[^\"\n]{1,400}\"|(?<!\w')(?<=')(?:[^'\n]|'(?=\w)){1,200}'(?!\w))")
_MARKUP = re.compile("[*_#>]")


class Refusal(NamedTuple):
    """A claim that refuses.

    ``kind``: ``declines`` (will not), ``lacks`` (does not know, or the sources do not say), ``whole`` (the claim or
    a sentence of it is nothing else) or ``empty`` (no letter and no digit). ``text`` is what was recognised, folded.
    """

    language: str
    kind: Kind
    text: str

    def __str__(self) -> str:
        """In words, as in ``the built-in pattern 'i cannot help' (en, declines)``."""
        if self.kind == "empty":
            return "its emptiness (built-in)"
        return f"the built-in pattern '{self.text[:_SHOWN]}' ({self.language}, {self.kind})"


def recognise(claim: str) -> Refusal | None:
    """The refusal that a claim is; None for an answer."""
    claim = claim.strip()
    if len(claim) > LONGEST:
        return None
    head = fold(claim[:HEAD])
    if len(head) <= _WHOLE:
        bare = _bare(head)
        if not bare:
            return Refusal("", "empty", "")
        if bare in _wholes():
            return Refusal(_wholes()[bare], "whole", bare)
    starts = _starts(head)
    hinting = [language for language in _compiled() if _hinted(language, head, starts)]
    if not hinting:
        return None
    begun = _sentences(head)
    hinting = [language for language in hinting if _begun(language, begun)]
    if not hinting:
        return None
    sentences = begun if len(claim) <= HEAD else _sentences(fold(claim))
    return next((found for language in hinting if (found := _refusal(language, sentences))), None)


@cache
def _compiled() -> tuple[Compiled, ...]:
    return tuple(map(compiled, LANGUAGES))


@cache
def _wholes() -> dict[str, str]:
    return {text: language.code for language in reversed(_compiled()) for text in language.whole}


def _starts(text: str) -> set[str]:
    return {word[:HINT] for word in text.translate(_BETWEEN).split()}


def _hinted(language: Compiled, text: str, starts: set[str]) -> bool:
    if not language.hints.isdisjoint(starts):
        return True
    for hint in language.hints_within:  # noqa: SIM110 - a generator costs more than the search
        if hint in text:
            return True
    return False


def _bare(text: str) -> str:
    """The text without what is no letter and no digit at its ends."""
    first, last = 0, len(text)
    while first < last and not text[first].isalnum():
        first += 1
    while last > first and not text[last - 1].isalnum():
        last -= 1
    return text[first:last]


def _sentences(text: str) -> list[str]:
    """The sentences, with dots for what is quoted: who quotes a refusal does not refuse."""
    if text[0] == text[-1] == '"':
        text = text[1:-1]
    text = _QUOTED.sub(lambda found: "·" * len(found[0]), _MARKUP.sub("", text))
    return [sentence for sentence in _ENDS.split(text) if sentence]


def _refusal(language: Compiled, sentences: Sequence[str]) -> Refusal | None:
    """The first sentence that refuses, unless what stands around it answers."""
    begun = _begun(language, sentences)
    if begun is None:
        return None
    number, found = begun
    sentence = sentences[number]
    if _turned(language, sentence, found) or _answered(language, sentences[number + 1 :], found.kind):
        return None
    return Refusal(language.code, found.kind, sentence[found.start : found.end])


def _begun(language: Compiled, sentences: Sequence[str]) -> tuple[int, _Match] | None:
    """The first sentence that refuses, by its number, and what refuses in it; None where others said something before.

    A lecture (``That would be harmful.``) may lead to a refusal to help.
    """
    lectured = False
    for number, sentence in enumerate(sentences):
        if found := _match(language, sentence):
            return (number, found) if found.kind == "declines" or not lectured else None
        if _told(language, sentence, "declines"):
            return None
        lectured = lectured or _told(language, sentence, "lacks") > 0
    return None


class _Match(NamedTuple):
    kind: Literal["declines", "lacks", "whole"]
    start: int
    end: int


def _match(language: Compiled, sentence: str) -> _Match | None:
    """What refuses in a sentence; nothing that is but a case (``if the text does not say``) or that others cannot."""
    if not _hinted(language, sentence, _starts(sentence) if language.hints else _NONE):
        return None
    if len(sentence) <= _WHOLE and _bare(sentence) in language.whole:
        return _Match("whole", 0, len(sentence))
    others = None
    for found in _found(language, sentence):
        if _supposed(language, sentence, found):
            continue
        others = _others(language, sentence) if others is None else others
        if found.start < others:
            return found
    return None


def _supposed(language: Compiled, sentence: str, found: _Match) -> bool:
    """Whether what stands around a match makes a case of it."""
    if language.behind.match(sentence, found.end) or language.case.match(sentence, 0, _SENTENCE):
        return True
    return language.before.search(sentence, max(0, found.start - _BEFORE), found.start) is not None


def _others(language: Compiled, sentence: str) -> int:
    """Where the subject ends that is not the speaker; what stands behind it is said of others."""
    other = language.others.search(sentence, 0, _SENTENCE) if language.others else None
    return other.end() if other else len(sentence) + 1


def _found(language: Compiled, sentence: str) -> Iterator[_Match]:
    for found in language.declines.finditer(sentence, 0, _SENTENCE):
        yield _Match("declines", *found.span())
    for found in language.lacks.finditer(sentence, 0, _SENTENCE):
        yield _Match("lacks", *found.span())


def _turned(language: Compiled, sentence: str, found: _Match) -> bool:
    """Whether the sentence turns from its refusal to an answer, or comes to its refusal from one."""
    opening = language.turns.match(sentence, 0, found.start)
    first = opening.end() if opening else 0  # it turns from what other sentences say, and they said nothing
    before = _said(language, sentence[first : found.start], found.kind)
    if language.concedes.match(sentence, 0, found.start):
        return any(_said(language, clause, found.kind) for clause in sentence[found.end : _SENTENCE].split(",")[1:])
    if before > LEADING or (before and language.turns.search(sentence, first, found.end)):
        return True
    turn = language.turns.search(sentence, found.end, _SENTENCE)
    return turn is not None and _said(language, sentence[turn.end() :], found.kind) > 0


def _answered(language: Compiled, behind: Sequence[str], kind: Kind) -> bool:
    """Whether the sentences behind a refusal answer: one that turns and says something, or several that say much."""
    told, listing = 0, False
    for sentence in behind:
        turn = language.turns.search(sentence, 0, _TURNING)
        said = 0 if listing else _said(language, sentence, kind)
        if turn and said:
            said = _said(language, sentence[turn.end() :], kind)
        told += said
        if told > BESIDE[kind] or (turn and said):
            return True
        # A lecture may end in a list of better things to do.
        listing = listing or (kind == "declines" and not said and sentence.endswith(":"))
    return False


def _said(language: Compiled, text: str, kind: Kind = "lacks") -> int:
    """How many characters of a sentence or clause say something: all or none."""
    told = _told(language, text, kind)
    return 0 if told and _match(language, text) else told


def _told(language: Compiled, text: str, kind: Kind) -> int:
    """The same of what does not refuse."""
    text = _bare(text)
    if len(text) < _SHORT or language.idle.search(text, 0, _SENTENCE):
        return 0
    return 0 if kind == "declines" and language.moral.search(text, 0, _SENTENCE) else len(text)
