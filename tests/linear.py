"""Whether work takes time in proportion to the length of its text, on a machine of any speed that others use too."""

import time
from collections.abc import Callable

PARTS, FLOOR, TRIES = 8, 0.05, 3
"""Parts that a text is cut into; seconds up to which nothing is slow; measurements of slow work."""


def is_linear(work: Callable[[str], object], text: str) -> bool:
    """Return whether ``work`` of a text takes less than three times as long as of all its eight parts together.

    If linear, both take the same time; if quadratic, the text takes 8 times as long. What else runs slows both,
    because both take a while.
    """
    size = len(text) // PARTS
    parts = [text[start : start + size] for start in range(0, size * PARTS, size)]
    work(parts[0][:100])  # compiles the patterns
    whole, pieces = seconds(work, text), 0.0
    for _ in range(TRIES):
        if whole < FLOOR:
            return True
        pieces = max(pieces, sum(seconds(work, part) for part in parts))
        if whole < 3 * pieces:
            return True
        whole = min(whole, seconds(work, text))
    return False


def seconds(work: Callable[[str], object], text: str) -> float:
    """Return the processor time of ``work``."""
    start = time.process_time()
    work(text)
    return time.process_time() - start
