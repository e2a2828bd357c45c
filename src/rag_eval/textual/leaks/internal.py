"""Internal names that no answer may contain, by the regular expressions of ``safety.internal_ids``.

They run on RE2, whose time is linear in the length of a text for any pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module

from rag_eval.errors import MissingExtra

_WINDOW, _OVERLAP = 1000, 200
_LITERAL = re.compile(r"(?<!\\)\{(?:,[0-9]+|[0-9]{5,}|[0-9]+,[0-9]{5,})\}")
"""Repetitions that RE2 takes for plain text."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern with RE2; raise ValueError with the reason if it is refused."""
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


def names(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
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
