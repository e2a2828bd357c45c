"""Draws that come from a seed alone, and the p value that they give."""

from __future__ import annotations

from hashlib import sha256, shake_256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

DRAWS = 9_999
"""The least p is then 0.0001. A test cannot fail at a corrected alpha below 1 / (1 + draws)."""
ENOUGH_HITS = 400
"""With so many the draws stop: p is then known to a twentieth of itself (Besag and Clifford, 1991)."""


def key_of(seed: bytes) -> bytes:
    """What :func:`chance` draws by: of a seed that is made of all scores, once and not for each draw."""
    return sha256(seed).digest()


def chance(key: bytes, purpose: bytes, number: int, size: int) -> bytes:
    """Bytes as good as random, the same for the same key on every platform and version of Python."""
    return shake_256(b"%s %d %s" % (purpose, number, key)).digest(size)


def p_value(hits: Iterable[bool], draws: int) -> float:
    """(1 + hits) / (1 + draws) over what the draws gave, or over as many of them as it takes to enough hits."""
    found = 0
    for done, hit in enumerate(hits, 1):
        found += hit
        if found == ENOUGH_HITS:
            return (1 + found) / (1 + done)
    return (1 + found) / (1 + draws)
