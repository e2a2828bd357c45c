"""Evidence for people: for each sentence the chunk and span that support it best, and what is missing there."""

from __future__ import annotations

import re

from rag_eval.grounding.lexicon import CURRENCIES, MONTHS
from rag_eval.grounding.places import BLOCK, span
from rag_eval.grounding.words import remembered, words
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.grounding import Checked
    from rag_eval.grounding.claims import Kind, Part

_AHEAD = 2000  # characters in which the next word is looked for
_WRITTEN = {
    "not": ("t",),
    "percent": ("%", "per cent"),
    "seconds": ("second",),
    "degrees": ("°", "℃", "℉"),
    "celsius": ("c",),
    "fahrenheit": ("f",),
    "half": ("½",),
    "quarter": ("¼",),
    **{currency: (sign,) for sign, currency in CURRENCIES.items()},
    "million": ("m",),
    "billion": ("b",),
    "trillion": ("t",),
    "usa": ("united states", "u.s.", "us"),
    "uk": ("united kingdom", "u.k."),
} | {month: (f"{number:02}", str(number)) for number, month in enumerate(MONTHS, 1)}
"""Other ways in which a word may stand in the text: ``don't``, ``$2m``, the month of a date in digits."""


class Evidence(NamedTuple):
    """What bears a sentence out.

    ``start`` and ``end`` are characters of the claim, ``span`` characters of the chunk; ``chunk`` is its place among
    the chunks. Both are None where no word of the sentence was found. ``missing`` are the content words that are in no
    chunk, ``names`` those of them that start with a capital; ``numbers`` have no basis; ``mismatches`` are what the
    place says otherwise, as ``(reason, word)``. The spans say where missing words and numbers stand in the claim.
    """

    text: str
    start: int
    end: int
    kind: Kind
    support: float
    supported: bool | None
    chunk: int | None
    span: tuple[int, int] | None
    missing: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    mismatches: tuple[tuple[str, str], ...]
    missing_spans: tuple[tuple[int, int], ...]
    number_spans: tuple[tuple[int, int], ...]


def evidence(one: Checked, claim: str, chunks: Sequence[str], supported: bool | None) -> Evidence:
    """The evidence for one sentence of ``claim`` in the texts of ``chunks``; ``supported`` None: it is not checked."""
    part, support, _ = one
    text = claim[part.start : part.end]
    places = offsets(text)
    spans = [*map(places.__getitem__, part.content)]
    missing = [
        spans[bit] for bit in range(len(spans)) if not support.found >> bit & 1 and spans[bit][0] < spans[bit][1]
    ]
    numbers = [spans[bit] for bit in support.fabricated]
    words = [text[start:end] for start, end in missing]
    chunk, first = support.place or (None, 0)
    return Evidence(
        text=text,
        start=part.start,
        end=part.end,
        kind=part.kind,
        support=support.number,
        supported=supported,
        chunk=chunk,
        span=None if chunk is None else _span(part, first, chunks[chunk]),
        missing=tuple(words),
        numbers=tuple([text[start:end] for start, end in numbers]),
        names=tuple([word for word in words if word[:1].isupper() and not text.startswith(word)]),
        mismatches=_otherwise(one, [text[start:end] for start, end in places]),
        missing_spans=_moved(missing, part.start),
        number_spans=_moved(numbers, part.start),
    )


def _otherwise(one: Checked, written: list[str]) -> tuple[tuple[str, str], ...]:
    """What the place says otherwise of words as ``written``, less the numbers that no place says at all."""
    part, support, _ = one
    made_up = {("number", part.keys[part.content[bit]]) for bit in support.fabricated}
    as_written = {key: word for key, word in zip(part.keys, written, strict=True) if word}
    found = [wrong[:2] for wrong in support.mismatches if wrong[:2] not in made_up]
    return tuple(dict.fromkeys((reason, as_written.get(key, key)) for reason, key in found))


def _moved(spans: list[tuple[int, int]], by: int) -> tuple[tuple[int, int], ...]:
    return tuple([(start + by, end + by) for start, end in spans])


def _span(part: Part, first: int, text: str) -> tuple[int, int]:
    """From the first to the last of the sentence's content words in the window that starts at a word."""
    content = {part.keys[place] for place in part.content}
    last = first + span(len(part.keys)) * BLOCK
    held = [first + place for place, key in enumerate(remembered([text])[0][first:last]) if key in content]
    spans = offsets(text)
    start, end = (held[0], held[-1]) if held else (first, min(last, len(spans)) - 1)  # none: all are written otherwise
    return spans[start][0], spans[end][1]


def offsets(text: str) -> list[tuple[int, int]]:
    """Where the words of ``text`` stand, in characters, one for each of its keys; empty where a word is not found."""
    found, position = [], 0
    lowered = text.lower() if len(text.lower()) == len(text) else text
    for word in words(text):
        start, end = _find(word, lowered, position)
        found.append((start, end))
        position = max(position, start + 1 if _is_pair(word) else end)
    return found


def _find(word: str, text: str, position: int) -> tuple[int, int]:
    """Where the next of the ways to write ``word`` stands; the longest of those that start there."""
    stop = position + len(word) + _AHEAD
    ways = {word, word.replace("_", "."), word.replace("_", "-"), word.replace("_", " "), *_WRITTEN.get(word, ())}
    found = [(start, -len(written)) for written in ways if (start := text.find(written, position, stop)) >= 0]
    if word.isdigit() and len(word) < BLOCK and (number := _with_commas(word).search(text, position, stop)):
        found.append((number.start(), -len(number[0])))
    start, length = min(found, default=(position, 0))
    return start, start - length


def _with_commas(digits: str) -> re.Pattern[str]:
    return re.compile(",?".join(digits))


def _is_pair(word: str) -> bool:
    """Whether ``word`` may overlap with the next: two characters of a script that writes without spaces."""
    return len(word) == 2 and word[0] > "\u2e80"
