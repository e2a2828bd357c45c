"""Whether work takes time in proportion to the length of its text, on a machine of any speed."""

import time
from collections.abc import Callable

SHARE, FLOOR, TRIES = 8, 0.2, 3
"""How many times longer the text is than its part; seconds up to which nothing is slow; measurements of slow work."""


def is_linear(work: Callable[[str], object], text: str) -> bool:
    """Return whether ``work`` of a text takes less than twice as many times as long as of an eighth of it.

    That is 8 times if linear and 64 times if quadratic. Another process may disturb one measurement, but hardly three.
    """
    part = text[: len(text) // SHARE]
    work(part[:100])  # compiles the patterns
    large, small = seconds(work, text), 0.0
    for _ in range(TRIES):
        small = max(small, seconds(work, part))
        if large < max(FLOOR, 2 * SHARE * small):
            return True
        large = min(large, seconds(work, text))
    return False


def seconds(work: Callable[[str], object], text: str) -> float:
    """Return the processor time of ``work``."""
    start = time.process_time()
    work(text)
    return time.process_time() - start
