"""What questions cost and how long they took: how amounts are spread over a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, fsum
from typing import NamedTuple

MOST = 1e15
"""Greater numbers are no dollars, milliseconds or tokens; sums of so many questions stay finite below it."""
_DECIMALS = 12


class Spread(NamedTuple):
    """What ``n`` questions cost or took, by nearest rank: the smallest value that the share of them does not exceed."""

    n: int
    total: float
    mean: float
    p50: float
    p95: float
    most: float


def spread(numbers: Iterable[float | None]) -> Spread | None:
    """The spread of the numbers that are there, None where none is."""
    values = sorted(float(number) for number in numbers if number is not None)
    if not values:
        return None
    total = fsum(values)
    mean, total = (round(one, _DECIMALS) for one in (total / len(values), total))
    return Spread(len(values), total, mean, _nearest(values, 50), _nearest(values, 95), values[-1])


def _nearest(values: Sequence[float], percent: int) -> float:
    return values[ceil(len(values) * percent / 100) - 1]
