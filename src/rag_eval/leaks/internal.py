"""Names that a team says no answer may hold, by the regular expressions of ``safety.internal_ids``."""

from __future__ import annotations

import re

from rag_eval.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Pattern = re.Pattern[str]
_WINDOW, _OVERLAP = 1000, 200
_PIECE = Later(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\??|(?:[*+?]|\{\d*,\d*\}|\{\d+\})[?+]?|.", re.DOTALL)
"""An escape, a set, what opens a group, how often something repeats, or any other sign."""
_COUNTS = Later(r"\{(\d*)(,?)(\d*)\}")
_MOST_OPEN, _WIDE = 3, 100
_ENDLESS = 1 << 32


def too_costly(pattern: str) -> str:
    """Why matching a pattern could take for ever; empty where it cannot.

    A group that repeats a number of times, or that repeats and may be matched in several ways, and more than three
    parts of nearly any length, are how patterns come to try every way to cut a text up.
    """
    several, wide = [False], 0  # of each group that is open whether it may be matched in several ways
    closed: bool | None = None  # the same of the group that ends before a sign
    for piece in _PIECE.finditer(pattern):
        sign, group, closed = piece[0], closed, None
        least, most = _repeats(sign)
        if sign.startswith("("):
            several.append(False)
        elif sign == ")" and len(several) > 1:
            closed = several.pop()
            several[-1] |= closed
        elif sign == "|" or least != most:
            several[-1] = True
        if group is not None and most > 1 and (least != most or group):
            return "repeats a group"
        wide += most - least >= _WIDE
    return f"has more than {_MOST_OPEN} parts of any length" if wide > _MOST_OPEN else ""


def _repeats(sign: str) -> tuple[int, int]:
    """How often what stands before ``sign`` repeats, at least and at most; once where that is no quantifier."""
    counts = _COUNTS.search(sign) if sign[0] == "{" and len(sign) > 1 else None
    if counts:
        least = int(counts[1] or 0)
        return least, least if not counts[2] else int(counts[3] or _ENDLESS)
    return {"*": (0, _ENDLESS), "+": (1, _ENDLESS), "?": (0, 1)}.get(sign[0], (1, 1))


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
