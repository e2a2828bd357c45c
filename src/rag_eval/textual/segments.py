"""A text split into pieces that each have one state, so that a page can colour them.

Joined, the pieces are the text again, except masked parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rag_eval.textual.grounding import Evidence

PLAIN, MASKED = "plain", "masked"
VERDICTS = {True: "supported", False: "unsupported", None: "unchecked"}
STATES = (PLAIN, *VERDICTS.values(), "missing", "made_up", "best", MASKED)
"""Every state: ``missing`` and ``made_up`` are words of a sentence, ``best`` supports them in a chunk."""


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
    """Return the pieces of ``text``; where marks overlap, the later one counts, and each mask is a separate piece."""
    states: list[tuple[str, int]] = [(PLAIN, 0)] * len(text)
    for number, (start, end, state) in enumerate(marks, 1):
        states[start:end] = [(state, number if state == MASKED else 0)] * len(states[start:end])
    segments_found, start = [], 0
    for (state, _), run in groupby(states):
        end = start + sum(1 for _ in run)
        segments_found.append(Segment(text[start:end], state))
        start = end
    return segments_found


def answer_marks(sentences: Iterable[Evidence]) -> Iterator[Mark]:
    """Yield marks for the evidence of an answer's sentences."""
    for one in sentences:
        yield Mark(one.start, one.end, VERDICTS[one.supported])
        yield from (Mark(*span, "missing") for span in one.missing)
        yield from (Mark(*span, "made_up") for span in one.made_up)
