"""Draws that come from a seed alone, and the p value that they give."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256, shake_256
from math import ceil

DRAWS = 9_999
"""The least p is then 0.0001."""
ENOUGH_HITS = 400
"""With so many the draws stop: p is then known to a twentieth of itself (Besag and Clifford, 1991)."""
FEW_HITS = 10
"""With more than these the usual number of draws will do; else they go on where the level is out of their reach."""
_BELOW, _TIMES = 4, 20


def enough(draws: int, level: float) -> int:
    """So many draws that without a hit p is a quarter of a level, which may be that of one of many tests.

    Twenty times the usual number are the most: beyond, see :func:`within_reach`, no test can fail.
    """
    return min(max(draws, ceil(_BELOW / level) - 1), _TIMES * (draws + 1) - 1)


def within_reach(level: float, draws: int = DRAWS) -> bool:
    """Whether a drawn test can be significant at a level."""
    return 1 / (1 + enough(draws, level)) <= level


def key_of(seed: bytes) -> bytes:
    """What :func:`chance` draws by: of a seed that is made of all scores, once and not for each draw."""
    return sha256(seed).digest()


def chance(key: bytes, purpose: bytes, number: int, size: int) -> bytes:
    """Bytes as good as random, the same for the same key on every platform and version of Python."""
    return shake_256(b"%s %d %s" % (purpose, number, key)).digest(size)


def p_value(hits: Iterable[bool], draws: int) -> float:
    """(1 + hits) / (1 + draws) over what the draws gave, or over as many of them as it takes to enough hits.

    Beyond the usual number of ``draws`` few hits are enough. Where draws stop hangs on hits alone that make p greater
    than any that goes on could come to: p keeps its level.
    """
    found = done = 0
    for done, hit in enumerate(hits, 1):
        found += hit
        if found >= ENOUGH_HITS or (done >= draws and found > FEW_HITS):
            break
    return (1 + found) / (1 + done)
