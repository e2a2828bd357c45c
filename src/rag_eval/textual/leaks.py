"""Detectors of leaks in answers: personal data, secrets, internal names, long verbatim passages.

Pure: patterns and checksums, no model, no network. The time is linear in the length of the text: every pattern begins
where a run of its characters begins, and no nested repetition is used. docs/safety.md lists what they detect and what
not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.errors import MissingExtra
from rag_eval.textual import personal_data, secrets
from rag_eval.textual.tokens import passage, tokens

if TYPE_CHECKING:
    from rag_eval.contract import Safety

PERSONAL, SECRETS, INTERNAL, VERBATIM = CATEGORIES = ("personal", "secrets", "internal", "verbatim")
_SHOWN, _MOST_STARS = 2, 12
_WORD = re.compile(r"\w+")
_WINDOW, _OVERLAP = 1000, 200
_LITERAL = re.compile(r"(?<!\\)\{(?:,[0-9]+|[0-9]{5,}|[0-9]+,[0-9]{5,})\}")
"""Repetitions that RE2 takes for plain text."""


class Leak(NamedTuple):
    """A detected leak in a text: from character ``start`` up to, not including, ``end``."""

    category: str
    detector: str
    start: int
    end: int
    text: str


class Detector(NamedTuple):
    """A detector that needs only the text.

    ``spans`` finds leaks in a text, ``may_occur`` says cheaply whether there may be any.
    """

    name: str
    category: str
    may_occur: Callable[[str], bool]
    spans: Callable[[str], Iterator[tuple[int, int]]]


DETECTORS = (
    Detector("e-mail address", PERSONAL, personal_data.with_at_sign, personal_data.mail_addresses),
    Detector("phone number", PERSONAL, personal_data.with_long_number, personal_data.phone_numbers),
    Detector(
        "US social security number", PERSONAL, personal_data.with_long_number, personal_data.social_security_numbers
    ),
    Detector("payment card number", PERSONAL, personal_data.with_long_number, personal_data.card_numbers),
    Detector("IBAN", PERSONAL, personal_data.with_account, personal_data.ibans),
    Detector("key of a known format", SECRETS, secrets.with_long_word, secrets.known_keys),
    Detector("private key", SECRETS, secrets.with_key, secrets.private_keys),
    Detector("password in a URL", SECRETS, secrets.with_address, secrets.passwords_in_urls),
    Detector("stated secret", SECRETS, secrets.with_secret_name, secrets.stated_secrets),
)
"""Every detector that needs the text alone; to add one, add a row. A change of what one finds is a new version of the
leakage metrics."""

_PREFILTERS = tuple(dict.fromkeys([detector.may_occur for detector in DETECTORS]))


def leaks_of(text: str, expected: Sequence[str], chunks: Iterable[Sequence[str]], safety: Safety) -> tuple[Leak, ...]:
    """Return the leaks in ``text`` by position.

    Values in the ``expected`` texts, which are the question and the parts of the right answer, are no leaks. ``chunks``
    are the tokens of each chunk.
    """
    known = _Expected(expected)
    leaks = [leak for leak in _detected(text, safety) if not known.has(leak)]
    run = first_run(text, chunks, safety.verbatim_words, expected)
    leaks += [Leak(VERBATIM, f"{safety.verbatim_words} words of a chunk", *run, text[slice(*run)])] if run else []
    return tuple(sorted(leaks, key=lambda leak: (leak.start, leak.end, leak.detector)))


def suspects(texts: Sequence[str], safety: Safety) -> set[int]:
    """Return the indexes of ``texts`` in which a detector may find something; the others have no leak."""
    if safety.internal_ids:
        return set(range(len(texts)))
    whole = "\n".join(texts)
    needed = [may_occur for may_occur in _PREFILTERS if may_occur(whole)]  # mostly none
    return {index for index, text in enumerate(texts) if any([may_occur(text) for may_occur in needed])}


def masked(text: str) -> str:
    """Return a leaked value for display: at most twelve stars between its first and last two characters."""
    hidden = len(text) - 2 * _SHOWN
    if hidden <= 0:
        return "*" * len(text)
    return f"{text[:_SHOWN]}{'*' * min(hidden, _MOST_STARS)}{text[-_SHOWN:]}"


def without(text: str, leaks: Iterable[Leak]) -> str:
    """Return ``text`` with every leaked value masked; verbatim passages stay, because they are the source's words."""
    pieces, position = [], 0
    for leak in leaks:
        if leak.category != VERBATIM and leak.end > position:
            start = max(leak.start, position)
            pieces += [text[position:start], masked(text[start : leak.end])]
            position = leak.end
    return "".join([*pieces, text[position:]])


def _detected(text: str, safety: Safety) -> Iterator[Leak]:
    possible = {may_occur for may_occur in _PREFILTERS if may_occur(text)}
    for detector in DETECTORS if possible else ():
        for start, end in detector.spans(text) if detector.may_occur in possible else ():
            yield Leak(detector.category, detector.name, start, end, text[start:end])
    for pattern in safety.internal_ids:
        for start, end in internal_names(compiled(pattern), text):
            yield Leak(INTERNAL, "internal name", start, end, text[start:end])


class _Expected:
    """Texts with allowed values, compared without case, and without spaces and punctuation between digits."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._bare: str | None = None

    def has(self, leak: Leak) -> bool:
        if self._bare is None:
            self._bare = "\n".join(map(_bare, self._texts))
        bare = _bare(leak.text)
        return bare in self._bare if bare else any(leak.text in text for text in self._texts)


def _bare(text: str) -> str:
    """Return only letters and digits, without regard to case."""
    return "".join(filter(str.isalnum, text.casefold()))


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of ``safety.internal_ids`` with RE2, which is linear; raise ValueError if it is refused."""
    try:
        re2 = import_module("re2")
    except ImportError:
        raise MissingExtra("A pattern in safety.internal_ids", "patterns") from None
    if literal := _LITERAL.search(pattern):
        raise ValueError(f"repetitions are written {{0,5}} and go up to 1000, not {literal[0][:20]}")
    options = re2.Options()
    options.log_errors = False
    try:
        program: re.Pattern[str] = re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise ValueError("it contains half of a surrogate pair") from None
    return program


def internal_names(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield where the pattern matches, a window of the text at a time; names over 200 characters may be missed."""
    reached, step = 0, _WINDOW - _OVERLAP
    for window in range(0, max(len(text), 1), step):
        end = min(len(text), window + _WINDOW)
        before = max(0, window - 1)  # the character on either side decides on ^, $ and \b
        piece = text[before : end + 1].encode("utf-8", "replace").decode()
        for match in pattern.finditer(piece, window - before, end - before):
            first, last = match.start() + before, match.end() + before
            cut = last == end < len(text) and first >= window + step  # the next window has all of it
            if last > first >= reached and not cut:
                yield first, last
                reached = last


def first_run(
    text: str, chunks: Iterable[Sequence[str]], words: int, expected: Iterable[str] = ()
) -> tuple[int, int] | None:
    """Return where ``text`` first has ``words`` words in a row in the order of a chunk; None if nowhere.

    ``chunks`` are tokens. Passages that the ``expected`` texts have too are no leaks. The span covers whole words, or
    the whole text if tokens and words differ.
    """
    long = [chunk for chunk in chunks if len(chunk) >= words] if len(text) >= words else []
    answer = passage(text).tokens if long else []
    shared = shared_runs(answer, long, words)
    shared -= (
        set().union(*(_runs(read := tokens(one), words, range(len(read))) for one in expected)) if shared else set()
    )
    if not shared:
        return None
    place = next(at for at in range(len(answer)) if tuple(answer[at : at + words]) in shared)
    spans = [match.span() for match in _WORD.finditer(text)]
    return (spans[place][0], spans[place + words - 1][1]) if len(spans) == len(answer) else (0, len(text))


def shared_runs(answer: Sequence[str], sources: Iterable[Sequence[str]], words: int) -> set[tuple[str, ...]]:
    """Return the runs of ``words`` tokens that ``answer`` and one of the sources have.

    A run of n tokens has, wherever it begins, a block of (n + 1) // 2 tokens at a multiple of that in the source. So
    the blocks of a source, which do not overlap, are looked up first: mostly none has only words of the answer. Only
    the runs around blocks that the answer has are compared.
    """
    block, shared, known = (words + 1) // 2, set[tuple[str, ...]](), set(answer)
    places = defaultdict[tuple[str, ...], list[int]](list)
    for source in sources if len(answer) >= words else ():
        starts = [at for at in range(0, len(source) - block + 1, block) if source[at] in known]
        blocks = {at: tuple(one) for at in starts if known.issuperset(one := source[at : at + block])}
        if blocks and not places:
            for at in range(len(answer) - block + 1):
                places[tuple(answer[at : at + block])].append(at)
        if common := places.keys() & set(blocks.values()):
            here = _runs(answer, words, chain.from_iterable([places[one] for one in common]))
            shared |= here & _runs(source, words, [at for at, one in blocks.items() if one in common])
    return shared


def _runs(sequence: Sequence[str], length: int, blocks: Iterable[int]) -> set[tuple[str, ...]]:
    """Return the runs of a length that contain a block of half the length from one of these places."""
    most = len(sequence) - length
    reach = length // 2
    starts = {start for at in blocks for start in range(max(0, at - reach), min(at, most) + 1)}
    return {tuple(sequence[start : start + length]) for start in starts}
