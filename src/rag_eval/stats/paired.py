"""Paired comparison of two runs on the same cases: units, their effects, and the interval of the difference.

A *unit* is the pair of scores of a case, or all pairs of a repeated question or of a cluster. Its effect is its
contribution to the difference of the two means, times the number of units, so that the difference is the mean effect.
If every unit is one case with both scores, the effect is the first score minus the second.

Swapping a case with a score in only one run gives it to the other run, and changes the number of scores by which a mean
is divided: a mean of five scores would seem as certain as one of fifty. So such a case counts by its contribution to
the observed difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from math import fsum, sqrt
from typing import Any, NamedTuple

from rag_eval.stats.intervals import DECIMALS, UNIT, Ends, Interval, interval, settled

Pair = tuple[float | None, float | None]
"""A case's scores under the two runs; None where the metric does not apply."""

Unit = tuple[tuple[tuple[Any, Any], int], ...]
"""Pairs of scores, in order, each with the number of repeats that have it."""
LEAST_IN_BOTH = 0.5
"""The share of the cases scored by either run that both runs must score. With fewer, which cases they are may explain
any difference of the two means, so only cases with both scores are tested. Simulated, a test at 5 % errs in 4 to 6 % of
all samples with that share, and in 12 to 34 % of them with a twentieth."""


class Units(Counter["Unit"]):
    """Counts of equal units. A Counter of pairs instead means that each case is its own question."""

    def reversed(self) -> Units:
        """Return the units with the runs in the other order."""
        units = Units()
        for unit, count in self.items():
            units[tuple(sorted((((b, a), times) for (a, b), times in unit), key=repr))] += count
        return units


def units_of(pairs: Iterable[tuple[Any, Any]] | Units) -> Units:
    """Return the units of pairs: themselves, or each pair as a unit."""
    if isinstance(pairs, Units):
        return pairs
    counted = pairs if isinstance(pairs, Counter) else Counter(pairs)
    return Units({((pair, 1),): count for pair, count in counted.items()})  # type: ignore[misc]


def has_gaps(pairs: Iterable[tuple[Any, Any]] | Units) -> bool:
    """Return whether some case has a score in only one run."""
    all_pairs = (pair for unit in pairs for pair, _ in unit) if isinstance(pairs, Units) else pairs
    return any(None in pair for pair in all_pairs)


def enough_in_both(pairs: Iterable[tuple[Any, Any]] | Units) -> bool:
    """Return whether both runs score enough of the cases that either does."""
    either = both = 0
    for unit, count in units_of(pairs).items():
        either += sum([times for pair, times in unit if pair != (None, None)]) * count
        both += sum([times for pair, times in unit if None not in pair]) * count
    return both >= LEAST_IN_BOTH * either


def complete(pairs: Iterable[tuple[Any, Any]] | Units) -> Units:
    """Return the units of the pairs that have both scores."""
    units = Units()
    for unit, count in units_of(pairs).items():
        pairs_with_both = tuple([(pair, times) for pair, times in unit if None not in pair])
        if pairs_with_both:
            units[pairs_with_both] += count
    return units


def moves(units: Units, *, changed: bool = False) -> Units:
    """Return each unit's contribution to the difference of means, as pairs with both scores.

    Without a change both runs have one mean: that of all scores, from which each of them counts. ``changed`` leaves out
    the units whose scores are the same in both runs. Raises ValueError if a run has no score at all.
    """
    sides = [_scores(units, side) for side in (0, 1)]
    if not all(sides):
        raise ValueError("one of the runs has no score at all")
    sizes = [sum([count for _, count in side]) for side in sides]
    middle = total(chain(*sides)) / sum(sizes)
    differing = Units()
    for unit, count in units.items():
        if changed and all(before == after for (before, after), _ in unit):
            continue
        differing[(((units.total() * share(unit, (middle, middle), sizes), 0.0), 1),)] += count
    return differing


def share(unit: Unit, middles: Sequence[float], sizes: Sequence[int]) -> float:
    """Return a unit's share in the difference of two means of so many scores, centred by run."""
    moved: float = fsum(
        [
            times * (sign * (score - middle) / size)
            for pair, times in unit
            for score, middle, size, sign in zip(pair, middles, sizes, (1, -1), strict=True)
            if score is not None
        ]
    )
    return moved


def mean(units: Units, side: int) -> tuple[float, int]:
    """Return a run's mean, and its number of scores."""
    scores = _scores(units, side)
    size = sum([count for _, count in scores])
    return total(scores) / size, size


def total(points: Iterable[tuple[float, int]]) -> float:
    """Return the sum of numbers with their counts, rounded once, so that equal numbers may be counted separately."""
    return fsum(chain.from_iterable(repeat(number, times) for number, times in points))


def _scores(units: Units, side: int) -> list[tuple[float, int]]:
    return [(pair[side], times * n) for unit, n in units.items() for pair, times in unit if pair[side] is not None]


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
    sizes = [(sum(times for pair, times in unit if pair != (None, None)), count) for unit, count in units.items()]
    size = sum(s * s * count for s, count in sizes) / sum(s * count for s, count in sizes)
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
    ends: Ends = (round(moved.low, DECIMALS), round(moved.high, DECIMALS))
    if None in bounds:  # skewness costs such scores half of the error rate
        ends, confidence = (None, None), 1 - (1 - confidence) / 2
    return interval(moved.counts, "mean", ends, confidence)  # type: ignore[return-value]


def other_difference(values: tuple[float, float], first: Interval, second: Interval) -> Interval:
    """Return the interval of the difference of any two figures from the intervals of both (square-and-add).

    The two intervals are treated as independent, so it is wide if the runs change together.
    """
    difference = values[0] - values[1]
    low = high = None
    if first.low is not None and second.high is not None:
        low = difference - sqrt((values[0] - first.low) ** 2 + (values[1] - second.high) ** 2)
    if first.high is not None and second.low is not None:
        high = difference + sqrt((values[0] - first.high) ** 2 + (values[1] - second.low) ** 2)
    return Interval(settled(low), settled(high), first.small or second.small)


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
