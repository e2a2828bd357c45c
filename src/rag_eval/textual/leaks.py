"""Leaks in answers, and texts for display: leaked values masked, sentences and words marked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from rag_eval.textual.detectors import DETECTORS, INTERNAL, VERBATIM, compiled, internal_names, plain
from rag_eval.textual.tokens import passage, tokens

if TYPE_CHECKING:
    from rag_eval.contract import Safety
    from rag_eval.textual.grounding import Evidence

_PREFILTERS = tuple(dict.fromkeys([detector.may_occur for detector in DETECTORS]))
_SHOWN, _MOST_STARS = 2, 12  # characters of a leaked value at either end, and stars between them
_WORD = re.compile(r"\w+")
PLAIN, MASKED = "plain", "masked"
VERDICTS = {True: "supported", False: "unsupported", None: "unchecked"}
STATES = (PLAIN, *VERDICTS.values(), "missing", "made_up", "best", MASKED)
"""Every state: ``missing`` and ``made_up`` are words of a sentence, ``best`` supports them in a chunk."""


class Leak(Struct, frozen=True):
    """A detected leak in a text: from character ``start`` up to, not including, ``end``."""

    category: str
    detector: str
    start: int
    end: int
    text: str


def leaks_of(text: str, expected: Sequence[str], chunks: Iterable[Sequence[str]], safety: Safety) -> tuple[Leak, ...]:
    """Return the leaks in ``text`` by position.

    Values in the ``expected`` texts, which are the question and the parts of the right answer, are no leaks. ``chunks``
    are the tokens of each chunk.
    """
    read = plain(text)
    possible = {may_occur for may_occur in _PREFILTERS if may_occur(read)}
    leaks: list[Leak] = []
    for one in DETECTORS if possible else ():
        if one.may_occur in possible:
            leaks += [Leak(one.category, one.name, start, end, text[start:end]) for start, end in one.spans(read)]
    for pattern in safety.internal_ids:
        places = internal_names(compiled(pattern), text)
        leaks += [Leak(INTERNAL, "internal name", start, end, text[start:end]) for start, end in places]
    if leaks:
        bare = "\n".join(map(_bare, expected))
        leaks = [leak for leak in leaks if not _is_expected(leak.text, expected, bare)]
    run = first_run(text, chunks, safety.verbatim_words, expected)
    leaks += [Leak(VERBATIM, f"{safety.verbatim_words} words of a chunk", *run, text[slice(*run)])] if run else []
    return tuple(sorted(leaks, key=lambda leak: (leak.start, leak.end, leak.detector)))


def suspects(texts: Sequence[str], safety: Safety) -> set[int]:
    """Return the indexes of ``texts`` in which a detector may find something; the others have no leak."""
    if safety.internal_ids:
        return set(range(len(texts)))
    texts = [plain(text) for text in texts]
    whole = "\n".join(texts)
    needed = [may_occur for may_occur in _PREFILTERS if may_occur(whole)]  # mostly none
    return {index for index, text in enumerate(texts) if any([may_occur(text) for may_occur in needed])}


def masked(text: str) -> str:
    """Return a leaked value for display: at most twelve stars between its first and last two characters."""
    hidden = len(text) - 2 * _SHOWN
    if hidden <= 0:
        return "*" * len(text)
    return f"{text[:_SHOWN]}{'*' * min(hidden, _MOST_STARS)}{text[-_SHOWN:]}"


def _is_expected(value: str, texts: Sequence[str], bare_texts: str) -> bool:
    """Return whether a text has a value, without regard to case, spaces and punctuation between digits."""
    bare = _bare(value)
    return bare in bare_texts if bare else any(value in text for text in texts)


def _bare(text: str) -> str:
    """Return only letters and digits, without regard to case."""
    return "".join(filter(str.isalnum, text.casefold()))


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
    for one in expected if shared else ():
        read = tokens(one)
        shared -= _runs(read, words, range(len(read)))
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


class Mark(NamedTuple):
    """A state for the characters from ``start`` up to, not including, ``end``."""

    start: int
    end: int
    state: str


class Segment(NamedTuple):
    """A piece of a text, and its state."""

    text: str
    state: str


def segments(text: str, marks: Iterable[Mark]) -> list[Segment]:
    """Return the pieces of ``text``, which joined are the text again.

    Where marks overlap, the later one counts, and each mask is a separate piece.
    """
    states: list[tuple[str, int]] = [(PLAIN, 0)] * len(text)
    for number, (start, end, state) in enumerate(marks, 1):
        states[start:end] = [(state, number if state == MASKED else 0)] * len(states[start:end])
    pieces, start = [], 0
    for (state, _), run in groupby(states):
        end = start + len([*run])
        pieces.append(Segment(text[start:end], state))
        start = end
    return pieces


def masked_segments(
    text: str, marks: Iterable[Mark], leaks: Iterable[Leak], start: int = 0, end: int | None = None
) -> list[Segment]:
    """Return the pieces of ``text`` from ``start`` up to ``end``, with every occurrence of a leaked value masked.

    A value that reaches beyond the part is masked as a whole, and overlapping values are one. Verbatim passages stay,
    because they are the source's words.
    """
    values = {leak.text for leak in leaks if leak.category != VERBATIM}
    spans: list[tuple[int, int]] = []
    for low, high in sorted(match.span() for value in values for match in re.finditer(re.escape(value), text)):
        if spans and low < spans[-1][1]:
            low, high = spans[-1][0], max(high, spans.pop()[1])
        spans.append((low, high))
    at, pieces = 0, []
    for piece in segments(text, [*marks, *(Mark(*span, MASKED) for span in spans)]):
        first, last = max(start - at, 0), min((len(text) if end is None else end) - at, len(piece.text))
        if piece.state == MASKED and last > 0 and first < len(piece.text):
            pieces.append(piece._replace(text=masked(piece.text)))
        elif first < last:
            pieces.append(piece._replace(text=piece.text[first:last]))
        at += len(piece.text)
    return pieces


def masked_text(text: str, leaks: Iterable[Leak], start: int = 0, end: int | None = None) -> str:
    """Return the text of :func:`masked_segments`."""
    return "".join([piece.text for piece in masked_segments(text, (), leaks, start, end)])


def answer_marks(sentences: Iterable[Evidence]) -> Iterator[Mark]:
    """Yield marks for the evidence of an answer's sentences."""
    for one in sentences:
        yield Mark(one.start, one.end, VERDICTS[one.supported])
        yield from (Mark(*span, "missing") for span in one.missing)
        yield from (Mark(*span, "made_up") for span in one.made_up)
