"""Words as the engine compares them: folded to keys, so that ``Studies``, ``study`` and ``studied`` are the same.

Written for speed, since it reads every chunk of every case: text is cut by tables of the interpreter, and each
distinct word is folded once.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rag_eval.grounding.amounts import JOINED, joined, multiplied, unglued
from rag_eval.grounding.lexicon import AS_WRITTEN, IRREGULAR, NUMBER_WORDS, ORDINAL_WORDS, POWERS, SHORT_FORMS, SYNONYMS
from rag_eval.grounding.stems import stem
from rag_eval.grounding.written import spelled_out
from rag_eval.text import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY = 1 << 16
"""How many distinct words are remembered at most; then all are forgotten, which changes no result."""
LONGEST = 64
"""Characters of a word that is remembered."""
TEXTS = 1 << 12
"""How many texts are remembered at most, and of how many characters each: chunks that several questions retrieve."""

BETWEEN_TEXTS = "\0"
"""Stands between texts that are read at once; in a text itself it is read as a space."""

_WORDS_ONLY = bytes(i if not i or chr(i).isalnum() or chr(i) == "_" else 32 for i in range(128)).lower()
_TABLE = _WORDS_ONLY + bytes(range(128, 256))
_DASHES, _QUOTES = re.compile(rb"\xe2\x80[\x80-\x8a\x90-\xa9\xaf]"), re.compile(rb"\xc2[\xa0\xab\xbb]")
"""Dashes, quotes, dots and spaces in UTF-8: two patterns, since a search for a fixed start is quick."""
_UNSEEN = dict.fromkeys([0xAD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A)])
"""Soft hyphens, signs of no width and marks of direction: they would cut a word in two."""
_LONE_T = re.compile(rb" t(?![^ \0])")
_DENYING = frozenset(
    [
        b"n",  # of "do n't"
        *b"don doesn didn isn aren wasn weren won wouldn can couldn shouldn hasn haven hadn mustn needn mightn".split(),
        *b"ain shan daren oughtn".split(),
    ]
)
"""What stands before the ``t`` of ``don't`` and the like, cut at the apostrophe. Any other is a ``t``: ``180 t``."""
_ENDING = re.compile(r"([0-9]+(?:_[0-9]+)?)(st|nd|rd|th|s|m|t|k)")
_GROUPS = re.compile("[0-9]{1,3}(?:_[0-9]{3}){2,}")
"""``1.000.000``, of which each group is full: no decimal, and seldom a version."""
_THOUSANDS = re.compile("[1-9][0-9]{0,2}_[0-9]{3}")
"""``1.250``, which keeps its zeros: it may be 1250."""
_VERSION = re.compile(r"v[0-9]+(?:_[0-9]+)+")
_known: dict[bytes, str] = {}
_read_before: dict[str, list[str]] = {}


def keys(texts: Sequence[str]) -> list[list[str]]:
    """The keys of the words of each of ``texts``, in order; all texts are cut at once.

    The ``t`` of ``don't`` is read as ``not``, and so is ``cannot``; ``%`` and ``$`` are words, ``1,000`` is 1000,
    ``2.5`` one word, ``5kg`` two, the month of an ISO date its name.
    """
    return [_folded(text) for text in _cleaned(texts)]


def remembered(texts: Sequence[str]) -> list[list[str]]:
    """As :func:`keys`, for texts that are read again and again; no list of it may be changed."""
    found = [*map(_read_before.get, texts)]
    if None in found:
        new = [text for text, its_keys in zip(texts, found, strict=True) if its_keys is None]
        read = dict(zip(new, keys(new), strict=True))
        found = [read[text] if its_keys is None else its_keys for text, its_keys in zip(texts, found, strict=True)]
        _remember_texts(read)
    return found  # type: ignore[return-value]


def _remember_texts(read: dict[str, list[str]]) -> None:
    if len(_read_before) > TEXTS:
        _read_before.clear()
    _read_before.update({text: its_keys for text, its_keys in read.items() if len(text) <= TEXTS})


def forget() -> None:
    """Forget the texts that were read, not their words: what the next case takes is what new texts take."""
    _read_before.clear()


def words(text: str) -> list[str]:
    """The words of ``text`` as its keys are made of them, lower-cased."""
    [cleaned] = _cleaned([text])
    return [part for word in joined(cleaned).split() for part in _cut(word)]


def _cleaned(texts: Sequence[str]) -> list[bytes]:
    """The texts in lower case, with spaces in place of all ASCII that is no word."""
    if not texts:
        return []
    together = BETWEEN_TEXTS.join(texts)
    if together.count(BETWEEN_TEXTS) >= len(texts):
        together = BETWEEN_TEXTS.join([text.replace(BETWEEN_TEXTS, " ") for text in texts])
    written = spelled_out(together).encode(errors="replace")
    if not together.isascii():
        written = _QUOTES.sub(b" ", _DASHES.sub(b" ", written))
    cut = written.translate(_TABLE)
    if b" t " in cut or b" t\0" in cut or cut.endswith(b" t"):
        cut = _LONE_T.sub(_denying, cut)
    return cut.split(b"\0")


def _denying(found: re.Match[bytes]) -> bytes:
    end = found.start()
    before = found.string[max(end - 16, 0) : end].replace(b"\0", b" ").split()
    return b" not" if before and before[-1] in _DENYING else found[0]


def _folded(text: bytes) -> list[str]:
    try:
        return [*map(_known.__getitem__, text.split())]
    except KeyError:
        return _read(text)


def _read(text: bytes) -> list[str]:
    """The keys of ``text``, whose words are not all known: what is read with the words beside it never is."""
    found = joined(text).split()
    known = [*map(_known.get, found)]
    read: list[str] = []
    start, scaled = 0, False
    for place in [place for place, its_key in enumerate(known) if its_key is None]:
        parts = _learned(found[place])
        read += known[start:place]  # type: ignore[arg-type]
        read += parts
        start, scaled = place + 1, scaled or not POWERS.keys().isdisjoint(parts)
    read += known[start:]  # type: ignore[arg-type]
    return multiplied(read) if scaled else read


def _learned(word: bytes) -> tuple[str, ...]:
    """The keys of a word, which is remembered if it has one, and that hangs on no word beside it."""
    if len(word) > LONGEST:
        return _parts.__wrapped__(word)
    parts = _parts(word)
    if len(parts) == 1 and word not in JOINED and parts[0] not in POWERS:
        _remember(word, parts[0])
    return parts


@lru_cache(maxsize=1 << 14)
def _parts(word: bytes) -> tuple[str, ...]:
    return tuple([key(part) for part in _cut(word)])


def _cut(word: bytes) -> list[str]:
    """A word without emphasis (``_word_``) and signs that are not seen, in the parts that have a key each."""
    text = word.decode()
    text = text if text.isascii() else text.translate(_UNSEEN)
    return [part for token in tokens(text.strip("_")) for part in unglued(token)]


def _remember(word: bytes, its_key: str) -> None:
    if len(_known) > MEMORY:
        _known.clear()
    _known[word] = its_key


def key(word: str) -> str:
    """The key of a lower-cased word: number words and ordinals as digits, short forms in full, else its stem."""
    if word == "cannot":
        return "not"
    if word in AS_WRITTEN:
        return word
    digits = NUMBER_WORDS.get(word) or ORDINAL_WORDS.get(word)
    if digits:
        return digits
    if word[0].isdigit():
        return _number(word)
    if word[0] == "v" and _VERSION.fullmatch(word):
        return _number(word[1:])
    word = SHORT_FORMS.get(word, word)
    word = IRREGULAR.get(word, word)
    found = stem(word)
    found = _SAME.get(found, found)
    return word if found in AS_WRITTEN else found  # "sure" is not French "sur"


def _number(word: str) -> str:
    """``word`` without what leaves its value as it is: ordinal endings, zeros before it and behind its point."""
    if not word.isascii() and word.isdecimal():
        return str(int(word))  # of another script
    if not word[-1].isdigit():
        word = _without_ending(word)
    points = word.count("_")
    if points == 1 and not _THOUSANDS.fullmatch(word):
        word = word.rstrip("0").rstrip("_")
    elif points and _GROUPS.fullmatch(word):
        word = word.replace("_", "")
    value = word.lstrip("0")
    return value if value and value[0] != "_" else f"0{value}"


def _without_ending(number: str) -> str:
    """Years and ordinals without their ending, 90m and 90t without theirs; 250k is 250000."""
    ending = _ENDING.fullmatch(number)
    if ending is None:
        return number
    return multiplied([ending[1], "thousand"])[0] if ending[2] == "k" else ending[1]


_SAME = {stem(other): stem(first) for other, first in SYNONYMS.items()}
