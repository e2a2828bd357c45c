"""An interval for the mean of scores with a known least or greatest value.

Gaffke's bound (Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded random variable", 2019):
add one score at the end of the range, give the scores random weights, uniform over all weights that add up to one, and
take the upper quantile of the weighted mean. For scores of 0 and 1 this is Clopper and Pearson's bound to the letter.
Its coverage is conjectured, and measured in bench/statistics/coverage.py, never to be below the level for any
distribution on the range. Scores need not be normal, or many, or differ from one another.

The quantile needs no chance: the weighted mean is below t exactly when a sum of exponential variables, each times
(score - t), is below 0, and that has a saddlepoint formula (Barndorff-Nielsen's r*).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum, inf, log, sqrt
from operator import mul, truediv

from rag_eval.stats.special import beta_quantile, normal_quantile

Tries = Mapping[tuple[float, int], int]
"""The total of so many scores and their number, each with how often they occur together."""

Points = list[tuple[float, int]]
"""Distinct scores, each with how often it occurs."""

DECIMALS = 12
_STEPS = 100
_CLOSE = 1e-8


def mean_at_most(points: Points, end: float, tail: float) -> float:
    """The bound that the true mean exceeds with probability ``tail`` at most, for scores that never exceed ``end``."""
    inside = [(value, count) for value, count in points if value < end]
    n = sum(count for _, count in inside)
    at_end = 1 + sum(count for value, count in points if value >= end)
    if len(inside) < 2:
        return inside[0][0] + (end - inside[0][0]) * beta_quantile(1 - tail, at_end, n) if inside else end
    return _weighted_quantile([*inside, (end, at_end)], normal_quantile(1 - tail))


def mean_at_least(points: Points, end: float, tail: float) -> float:
    """The mirror image: for scores that are never below ``end``."""
    return -mean_at_most([(-value, count) for value, count in points], -end, tail)


def ratio_at_most(tries: Tries, end: float, tail: float) -> float:
    """Return the same bound for a ratio of two means over units: of their totals, and of their numbers of scores.

    A unit counts by what it adds to the ratio. The unit at the end of the range is as large as that of a score drawn at
    random. Where all units have as many scores this is the bound of the mean of their means.
    """
    n = sum(size * count for (_, size), count in tries.items())
    units = sum(tries.values())
    size = sum(size * size * count for (_, size), count in tries.items()) / n
    ratio = fsum(total * count for (total, _), count in tries.items()) / n
    points: Counter[float] = Counter()
    for (total, number), count in tries.items():
        points[round(ratio + units / n * (total - ratio * number), DECIMALS)] += count
    top = round(ratio + units * size / n * (end - ratio), DECIMALS)
    return min(end, mean_at_most(sorted(points.items()), max(top, *points), tail))


def ratio_at_least(tries: Tries, end: float, tail: float) -> float:
    """The mirror image: for scores that are never below ``end``."""
    return -ratio_at_most({(-total, size): count for (total, size), count in tries.items()}, -end, tail)


def _weighted_quantile(points: Points, z: float) -> float:
    """Return the t below which the randomly weighted mean of the points is with the probability of ``z``, above 0."""
    n = sum(count for _, count in points)
    mean = fsum(value * count for value, count in points) / n
    end = max(value for value, _ in points)
    spread = sqrt(fsum(count * (value - mean) ** 2 for value, count in points) / n / (n + 1))
    counts = [count for _, count in points]
    s = 0.0

    def off(t: float) -> float:
        nonlocal s  # the next saddlepoint is near the last one
        deviate, s = _root_of_deviance([value - t for value, _ in points], counts, s)
        return deviate - z

    return _root(off, (mean, end), min(mean + z * spread, (mean + end) / 2), spread / 100)


def _root_of_deviance(offsets: Sequence[float], counts: Sequence[int], near: float) -> tuple[float, float]:
    """The standard normal deviate with the probability that the weighted sum is below 0, and the saddlepoint."""
    s = _saddlepoint(offsets, counts, near)
    shrunk = [1 - s * offset for offset in offsets]
    w = sqrt(max(0.0, 2 * fsum(map(mul, counts, map(log, shrunk)))))
    if w == 0.0:
        return 0.0, s
    tilted = list(map(truediv, offsets, shrunk))
    u = s * sqrt(fsum(map(mul, counts, map(mul, tilted, tilted))))
    return w + log(u / w) / w, s


def _saddlepoint(offsets: Sequence[float], counts: Sequence[int], near: float) -> float:
    """The s at which the sum's tilted mean is 0. It lies between 0 and where the greatest offset's term is infinite."""
    low, high = 0.0, 1 / max(offsets)
    s = near if near < high else 0.0
    for _ in range(_STEPS):
        tilted = [offset / (1 - s * offset) for offset in offsets]
        weighted = list(map(mul, counts, tilted))
        slope, bend = fsum(weighted), fsum(map(mul, weighted, tilted))
        low, high = (s, high) if slope < 0 else (low, s)
        following = s - slope / bend
        before, s = s, following if low < following < high else (low + high) / 2
        if abs(s - before) <= _CLOSE * s:
            break
    return s


def _root(function: Callable[[float], float], bracket: tuple[float, float], start: float, step: float) -> float:
    """Where an increasing function is 0: secants inside a bracket that each of them narrows."""
    low, high = bracket
    before, now = start, min(start + step, (start + high) / 2)
    value_before = function(before)
    for _ in range(_STEPS):
        value = function(now)
        low, high = (now, high) if value < 0 else (low, now)
        slope = (value - value_before) / (now - before) if now != before else inf
        following = now - value / slope if slope > 0 else inf
        if abs(following - now) <= _CLOSE * step:
            return min(max(following, low), high)  # each step squares the error: this one is below what a float holds
        following = following if low < following < high else (low + high) / 2
        before, value_before, now = now, value, following
    return now
