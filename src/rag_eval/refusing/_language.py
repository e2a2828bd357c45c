"""What a language says when it refuses: a table of patterns, and the folding that patterns and claims share."""

from __future__ import annotations

import re
import unicodedata

from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u0655\u0640]")  # what NFKD splits off, Arabic vowel signs and tatweel
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‛`´ʼ′＇", "'"),
        **dict.fromkeys("“”„‟«»″＂「」『』", '"'),
        **dict.fromkeys("‐‑‒–—", "-"),
        "…": "...",
        "\u00a0": " ",
        "ı": "i",  # what a Turkish i becomes in upper case and back
        "ł": "l",  # which NFKD leaves whole
        # What is not seen (soft hyphens, spaces of no width, marks of direction) would cut a word in two.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"),
        **dict.fromkeys(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))),
    }
)
_ESCAPED = re.compile("&(?:#0?39|#x27|apos|[lr]squo|(#34|quot|[lr]dquo)|(#160|nbsp));", re.IGNORECASE)
HINT = 6  # letters of a word that are compared
_PART = re.compile("<([a-z_]+)>")


class Language(NamedTuple):
    """The table of one language. Adding a language is one such entry in ``LANGUAGES``, and its examples.

    Texts with ``|`` are alternatives; all but ``hints``, ``hints_within`` and ``whole`` are regular expressions.
    ``<name>`` in a pattern stands for that part of ``words``. Patterns meet folded text: small letters, no accents.

    ``hints``: words, of which six letters count, one of which stands in whatever ``declines`` and ``lacks`` find;
    ``hints_within``: texts that do, where words do not tell. They are looked for first.
    ``declines``: the speaker will not or may not. ``lacks``: the speaker does not know, or the sources do not say.
    ``turns``: but, however: what stands behind is an answer unless it is idle.
    ``concedes``: although, while: a refusal behind it is one only if the clause behind that is idle.
    ``idle``: beginnings of sentences and clauses that answer nothing: apologies, offers, advice to look elsewhere;
    ``lead`` may stand before them. ``idle_within``: the same for what may stand anywhere.
    ``moral``: what makes a sentence behind a pattern of ``declines`` a lecture.
    ``before``: words before a match that undo it (if, when, whether); ``behind``: the same right behind it, for
    languages that say *if* there. ``case``: sentences that are a case as a whole, by the order of their words.
    ``others``: somebody else as the subject of what stands behind it, for languages that leave *I* and *we* out.
    ``whole``: claims that refuse by being just that. ``spaced``: whether words stand apart.
    """

    code: str
    declines: tuple[str, ...]
    lacks: tuple[str, ...]
    turns: str
    whole: str
    hints: str = ""
    hints_within: str = ""
    lead: str = ""
    idle: tuple[str, ...] = ()
    idle_within: tuple[str, ...] = ()
    moral: tuple[str, ...] = ()
    before: str = "(?!)"
    behind: str = "(?!)"
    case: str = "(?!)"
    others: str = ""
    concedes: str = "(?!)"
    words: Mapping[str, str] = {}
    spaced: bool = True


class Compiled(NamedTuple):
    """A language ready for use; all texts in it are folded."""

    code: str
    hints: frozenset[str]
    hints_within: tuple[str, ...]
    declines: re.Pattern[str]
    lacks: re.Pattern[str]
    turns: re.Pattern[str]
    idle: re.Pattern[str]
    moral: re.Pattern[str]
    before: re.Pattern[str]
    behind: re.Pattern[str]
    case: re.Pattern[str]
    others: re.Pattern[str] | None
    concedes: re.Pattern[str]
    whole: frozenset[str]


def fold(text: str) -> str:
    """The text without letter case, accents and kinds of quotation marks, which writers of refusals take or leave."""
    if "&" in text:
        text = _ESCAPED.sub(_unescaped, text)
    if not text.isascii():
        text = text.translate(_ALIKE)
    if text.isascii():
        return text.lower().replace("`", "'")
    folded = unicodedata.normalize("NFKD", text.casefold().translate(_ALIKE))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", folded))


def _unescaped(found: re.Match[str]) -> str:
    return '"' if found[1] else " " if found[2] else "'"


def compiled(language: Language) -> Compiled:
    """The language with its patterns folded and compiled."""
    start, end = (r"(?<!\w)", r"(?!\w)") if language.spaced else ("", "")
    idle = f"^(?:{language.lead})?(?:{'|'.join(language.idle)})" if language.idle else "(?!)"

    def pattern(*texts: str, behind: str = "") -> re.Pattern[str]:
        written = [_PART.sub(lambda found: language.words[found[1]], text) for text in texts or ("(?!)",)]
        return re.compile(f"{start}(?:{'|'.join(map(fold, written))}){behind}")

    return Compiled(
        language.code,
        frozenset(word[:HINT] for word in _split(language.hints)),
        _split(language.hints_within),
        pattern(*language.declines, behind=end),
        pattern(*language.lacks, behind=end),
        re.compile(f"{pattern(language.turns, behind=end).pattern}|;"),
        pattern(idle, *language.idle_within),
        pattern(*language.moral),
        pattern(language.before, behind=r"[\s,:]*$"),
        re.compile(fold(language.behind)),
        pattern(language.case),
        pattern(language.others) if language.others else None,
        pattern(language.concedes, behind=r"\s*$"),
        frozenset(_split(language.whole)),
    )


def _split(texts: str) -> tuple[str, ...]:
    return tuple(fold(texts).split("|")) if texts else ()
