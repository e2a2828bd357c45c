"""Evidence for people: for each sentence the chunk and span that support it best, and what is missing there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rag_eval.textual.grounding import Index, Place
from rag_eval.textual.words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.textual.grounding import Checked
    from rag_eval.textual.sentences import Kind


class Evidence(NamedTuple):
    """What supports a sentence.

    ``start`` and ``end`` are characters of the claim, ``span`` characters of the chunk with the number ``chunk``; both
    are None if no content word of the sentence occurs. ``missing`` are content words that are in no chunk, ``numbers``
    made-up numbers; their spans are characters of the claim. ``mismatches`` are pairs of a reason and a word.
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
    mismatches: tuple[tuple[str, str], ...]
    missing_spans: tuple[tuple[int, int], ...]
    number_spans: tuple[tuple[int, int], ...]


def evidence(one: Checked, claim: str, chunks: Sequence[str], supported: bool | None) -> Evidence:
    """Return the evidence for a sentence of ``claim`` in the texts of ``chunks``, with its verdict ``supported``."""
    sentence, support = one
    text = claim[sentence.start : sentence.end]
    found = words(text)
    spans = [(word.start + sentence.start, word.end + sentence.start) for word in found]
    missing = tuple(dict.fromkeys(spans[place] for place in support.missing))
    numbers = tuple(dict.fromkeys(spans[place] for place in support.made_up))
    written = {word.key: text[word.start : word.end] for word in reversed(found)}
    place = support.place or _best_place(one, chunks)
    return Evidence(
        text=text,
        start=sentence.start,
        end=sentence.end,
        kind=sentence.kind,
        support=support.number,
        supported=supported,
        chunk=None if place is None else place.chunk,
        span=None if place is None else _characters(chunks[place.chunk], place),
        missing=tuple([claim[slice(*span)] for span in missing]),
        numbers=tuple([claim[slice(*span)] for span in numbers]),
        mismatches=tuple([(reason, written.get(key, key)) for reason, key in support.mismatches]),
        missing_spans=missing,
        number_spans=numbers,
    )


def _best_place(one: Checked, chunks: Sequence[str]) -> Place | None:
    content = frozenset([one.sentence.keys[place] for place in one.sentence.content])
    found = Index(chunks).best_place(content, one.sentence.width)
    return None if found is None else found[0]


def _characters(text: str, place: Place) -> tuple[int, int]:
    found = words(text)
    return found[place.first].start, found[place.last].end
