"""Names that a team says no answer may hold, by the regular expressions of ``safety.internal_ids``."""

from __future__ import annotations

import re

from rag_eval.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Pattern = re.Pattern[str]
_WINDOW, _OVERLAP = 1000, 200
_REPEATED_GROUP = Later(r"(?<!\\)(?:\\\\)*\)(?:[*+]|\{\d*,\d*\})")
_QUANTIFIED = Later(r"(?<!\\)(?:\\\\)*(?:[*+]|\{\d*,\})")
_MOST_OPEN = 3


def too_costly(pattern: str) -> str:
    """Why matching a pattern could take for ever; empty where it cannot.

    A group that is repeated, and more than three parts without a greatest length, are how patterns come to try every
    way to cut a text up.
    """
    if _REPEATED_GROUP.search(pattern):
        return "repeats a group"
    if len(_QUANTIFIED.findall(pattern)) > _MOST_OPEN:
        return f"has more than {_MOST_OPEN} parts of any length"
    return ""


def compiled(pattern: str) -> Pattern:
    """The pattern, as ``re`` takes it."""
    return re.compile(pattern)


def names(pattern: Pattern, text: str) -> Iterator[tuple[int, int]]:
    """Where the pattern matches, a window of the text at a time; a name of more than 200 characters may be missed."""
    reached, step = 0, _WINDOW - _OVERLAP
    for window in range(0, max(len(text), 1), step):
        end = min(len(text), window + _WINDOW)
        for found in pattern.finditer(text, window, end):
            cut = found.end() == end < len(text) and found.start() >= window + step  # the next window has all of it
            if found.end() > found.start() >= reached and not cut:
                yield found.span()
                reached = found.end()
