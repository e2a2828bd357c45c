"""Samples and orders drawn by sha256: the same items and the same seed always give the same sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import sqrt
from typing import TypeVar

T = TypeVar("T")


def hash_order(items: Iterable[T], name_of: Callable[[T], str] = str, seed: str = "") -> list[T]:
    """Return items by the hash of ``seed`` and their name; the first n of them are a sample.

    An additional item changes few members of a sample, and the order of the items changes none.
    """
    return sorted(items, key=lambda item: sha256(f"{seed}{name_of(item)}".encode("utf-8", "surrogatepass")).digest())


def proportional_counts(strata: Mapping[str, Sequence[T]], size: int) -> dict[str, int]:
    """Return how many of ``size`` items each stratum has by its share, at least one, then by the largest remainder."""
    counts = {name: len(items) for name, items in strata.items()}
    total = sum(counts.values())
    size = min(size, total)
    drawn = {name: max(1, size * count // total) for name, count in counts.items()}
    while sum(drawn.values()) < size:
        short = {name: counts[name] * size - drawn[name] * total for name in counts if drawn[name] < counts[name]}
        drawn[max(sorted(short), key=short.__getitem__)] += 1
    if sum(drawn.values()) > size and max(drawn.values()) > 1:  # two rare strata take one place too many
        drawn[max(drawn, key=drawn.__getitem__)] -= 1
    return drawn


def root_counts(strata: Mapping[str, Sequence[T]], size: int) -> dict[str, int]:
    """Return how many of ``size`` items each stratum has: one, and more by the square root of its number of items."""
    drawn = dict.fromkeys(strata, 0)
    for _ in range(min(size, sum(map(len, strata.values())))):
        rest = [name for name, items in strata.items() if drawn[name] < len(items)]
        drawn[max(rest, key=lambda name: (sqrt(len(strata[name])) / (drawn[name] or 1e-9), name))] += 1
    return drawn


def sample_positions(count: int, limit: int, seed: str) -> list[int]:
    """Return up to ``limit`` of ``count`` positions, sorted, as :func:`draw_positions` draws them."""
    return list(range(count)) if count <= limit else sorted(draw_positions(count, limit, seed))


def draw_positions(count: int, limit: int, seed: str) -> Iterator[int]:
    """Draw up to ``limit`` of ``count`` positions, each once: random without the seed, reproducible with it."""
    drawn: set[int] = set()
    for number in range(8 * limit if count else 0):  # with few positions some may be drawn several times
        position = int.from_bytes(sha256(f"{seed} {number}".encode()).digest()[:8], "big") % count
        if position not in drawn:
            drawn.add(position)
            yield position
        if len(drawn) == min(limit, count):
            return
