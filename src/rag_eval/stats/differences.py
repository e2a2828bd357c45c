"""The difference of two runs on the same cases: its interval, and how much noise it contains.

A *unit* is a case, or all cases of a question or a cluster. Its effect is its contribution to the difference of the two
means, times the number of units, so that the difference is the mean effect. If every unit is one case with both scores,
the effect is the first score minus the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum, sqrt
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.stats.intervals import DECIMALS, UNIT, Ends, Interval, interval, settled
from rag_eval.stats.swap_units import Units, mean, share, units_of

if TYPE_CHECKING:
    from rag_eval.stats.paired import Pair

_OPEN = 0.5
"""The share of the error rate that intervals of scores without a maximum use: skewness costs them the other half."""


class Effects(NamedTuple):
    """The effects of units with how many units have each, and the largest drop or gain that one unit could cause."""

    counts: Counter[float]
    low: float
    high: float

    @property
    def moves(self) -> float:
        """Return the sum of effects in whole units: for 0/1 scores the number of changed cases."""
        largest = self.unit
        return fsum(count * (effect / largest) ** 2 for effect, count in self.counts.items()) if largest else 0.0

    @property
    def unit(self) -> float:
        """Return the largest possible loss: 1 for a metric from 0 to 1, otherwise the largest that occurred."""
        return max(abs(self.low), abs(self.high), *map(abs, self.counts), 0.0)


def effects(pairs: Iterable[Pair] | Units, bounds: Ends = UNIT) -> Effects:
    """Return the effect of each unit on the difference of the two means, the first minus the second."""
    units = units_of(pairs)
    (first, n), (second, m) = (mean(units, side) for side in (0, 1))
    total = units.total()
    counts: Counter[float] = Counter()
    for unit, count in units.items():
        counts[round(first - second + total * share(unit, (first, second), (n, m)), DECIMALS) + 0.0] += count
    low, high = bounds
    if low is None or high is None:
        return Effects(counts, 0.0, 0.0)
    # Units differ in size; the next one is as large as the unit of a case drawn at random.
    sizes = [sum(times for pair, times in unit if pair != (None, None)) for unit in units]
    size = sum(s * s * count for s, count in zip(sizes, units.values(), strict=True)) / sum(
        s * count for s, count in zip(sizes, units.values(), strict=True)
    )
    falls = first - second + total * size * ((low - first) / n - (high - second) / m)
    rises = first - second + total * size * ((high - first) / n - (low - second) / m)
    return Effects(counts, min(falls, *counts), max(rises, *counts))


def mean_difference(pairs: Iterable[Pair] | Units, bounds: Ends = UNIT, confidence: float = 0.95) -> Interval:
    """Return the interval of the first run's mean minus the second's.

    For scores from 0 to 1 it is Gaffke's bound of the effects. For scores of 0 and 1 an end is beyond 0 exactly when
    the exact McNemar test is significant at half the error rate. For others it is Hall's and Student's interval of the
    effects.
    """
    moved = effects(pairs, bounds)
    if None not in bounds:
        ends: Ends = (round(moved.low, DECIMALS), round(moved.high, DECIMALS))
        return interval(moved.counts, "mean", ends, confidence)  # type: ignore[return-value]
    return interval(moved.counts, "mean", (None, None), 1 - (1 - confidence) * _OPEN)  # type: ignore[return-value]


def other_difference(values: tuple[float, float], first: Interval, second: Interval) -> Interval:
    """Return the interval of the difference of any two figures from the intervals of both (square-and-add).

    The two intervals are treated as independent, so it is wide if the runs change together.
    """
    difference = values[0] - values[1]
    low = _spread_of_means(values[0], first.low, values[1], second.high)
    high = _spread_of_means(values[0], first.high, values[1], second.low)
    return Interval(
        settled(None if low is None else difference - low),
        settled(None if high is None else difference + high),
        first.small or second.small,
    )


def _spread_of_means(value: float, end: float | None, other: float, its_end: float | None) -> float | None:
    return None if end is None or its_end is None else sqrt((value - end) ** 2 + (other - its_end) ** 2)


def above_percentile(pairs: Iterable[Pair] | Units, percent: int) -> Units:
    """Return the pairs as 0/1 scores: 1 above the percentile of the lower score of each case.

    Swapping a case does not change that percentile, so the sign-flip test of these scores is exact. It is near the
    percentile of the better run; with that of both runs together, too few scores are above it to show that all rose.
    """
    units = units_of(pairs)
    scores: Counter[float] = Counter()
    for unit, count in units.items():
        for pair, times in unit:
            if present := [score for score in pair if score is not None]:
                scores[min(present)] += times * count
    rank, passed, limit = -(-scores.total() * percent // 100), 0, 0.0
    for limit in sorted(scores):
        passed += scores[limit]
        if passed >= rank:
            break
    marked = Units()
    for unit, count in units.items():
        raised: Counter[Pair] = Counter()
        for (a, b), times in unit:
            raised[None if a is None else float(a > limit), None if b is None else float(b > limit)] += times
        marked[tuple(sorted(raised.items(), key=repr))] += count
    return marked
