"""What questions cost and how long they took, as traces say it: ``usage.cost_usd`` and ``latency_ms.total``."""

from __future__ import annotations

from math import ceil, fsum
from typing import Any, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST = 1e15
"""Greater numbers are no dollars and no milliseconds; sums of so many questions stay finite below it."""
_DECIMALS = 12


class Spent(NamedTuple):
    """What one question cost (US dollars) and took (milliseconds); None where the trace does not say."""

    cost: float | None
    latency: float | None


class Spread(NamedTuple):
    """What ``n`` questions cost or took, by nearest rank: the smallest value that the share of them does not exceed."""

    n: int
    total: float
    mean: float
    p50: float
    p95: float
    most: float


def spent(row: Mapping[str, Any]) -> Spent:
    """What a valid trace row says."""
    usage, latency = row.get("usage") or {}, row.get("latency_ms") or {}
    return Spent(usage.get("cost_usd"), latency.get("total"))


def implausible(found: Spent) -> str:
    """The JSON pointer of a number that is too great to be meant, '' where there is none."""
    places = {"/usage/cost_usd": found.cost, "/latency_ms/total": found.latency}
    return next((place for place, number in places.items() if number is not None and number > MOST), "")


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
