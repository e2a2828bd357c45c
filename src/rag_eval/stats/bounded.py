"""An interval for the mean of scores with a known least or greatest value.

Gaffke's bound (Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded random variable", 2019):
add one score at the end of the range, give the scores random weights, uniform over all weights that add up to one, and
take the upper quantile of the weighted mean. For scores of 0 and 1 this is Clopper and Pearson's bound to the letter.
Its coverage is conjectured, and measured in bench/coverage.py, never to be below the level for any distribution on the
range; what it does not need is that scores are normal, or many, or that they differ from one another.

The quantile needs no chance: the weighted mean is below t exactly when a sum of exponential variables, each times
(score - t), is below 0, and that has a saddlepoint formula (Barndorff-Nielsen's r*).
"""

from __future__ import annotations

from collections import Counter
from math import fsum, inf, log, sqrt
from operator import mul, truediv

from rag_eval.stats.special import beta_quantile, normal_quantile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Tries = Mapping[tuple[float, int], int]
    """The total of so many scores and their number, each with how often they occur together."""

Points = list[tuple[float, int]]
"""Distinct scores, each with how often it occurs."""

_STEPS = 100
_CLOSE = 1e-8  # Newton's and the secant's last step is smaller again by as much: what is returned is good to 1e-9


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
    """The same for the ratio of two means, that of totals and that of numbers, no total above ``end`` times its number.

    The totals are those of so many scores each: of the tries at a question, of which there may be more or fewer. Were
    the missing ones up to the most scores of t each, the ratio would be t where the mean of all is: the bound is the t
    that is the bound of that mean.
    """
    totals = Counter(tries)
    most = max(size for _, size in totals)
    if all(size == most for _, size in totals):
        return mean_at_most(sorted((total / most, count) for (total, _), count in totals.items()), end, tail)
    totals[end * most, most] += 1
    return _ratio_quantile(sorted(totals.items()), end, normal_quantile(1 - tail))


def ratio_at_least(tries: Tries, end: float, tail: float) -> float:
    """The mirror image: for scores that are never below ``end``."""
    return -ratio_at_most({(-total, size): count for (total, size), count in tries.items()}, -end, tail)


def _weighted_quantile(points: Points, z: float) -> float:
    """The t at which the randomly weighted mean of the points is below t with the probability of ``z``, above 0."""
    n = sum(count for _, count in points)
    mean = fsum(value * count for value, count in points) / n
    end = max(value for value, _ in points)
    spread = sqrt(fsum(count * (value - mean) ** 2 for value, count in points) / n / (n + 1))
    counts = [count for _, count in points]
    return _quantile(lambda t: [value - t for value, _ in points], counts, (mean, end), spread, z)


def _ratio_quantile(points: Sequence[tuple[tuple[float, int], int]], end: float, z: float) -> float:
    """The t at which the ratio of randomly weighted totals and numbers is below t with the probability of ``z``."""
    counts = [count for _, count in points]
    sizes = [size for (_, size), _ in points]
    n = sum(map(mul, counts, sizes))
    ratio = fsum(total * count for (total, _), count in points) / n
    if ratio >= end:
        return end
    spread = sqrt(fsum(count * (total - ratio * size) ** 2 for (total, size), count in points)) / n
    return _quantile(lambda t: [total - t * size for (total, size), _ in points], counts, (ratio, end), spread, z)


def _quantile(
    offsets: Callable[[float], list[float]],
    counts: Sequence[int],
    bracket: tuple[float, float],
    spread: float,
    z: float,
) -> float:
    """The t inside a bracket at which the randomly weighted sum of the offsets is below 0 with the probability of z."""
    mean, end = bracket
    s = 0.0

    def off(t: float) -> float:
        nonlocal s  # the next saddlepoint is near the last one
        deviate, s = _root_of_deviance(offsets(t), counts, s)
        return deviate - z

    return _root(off, bracket, min(mean + z * spread, (mean + end) / 2), spread / 100)


def _root_of_deviance(offsets: Sequence[float], counts: Sequence[int], near: float) -> tuple[float, float]:
    """The standard normal deviate with the probability that the weighted sum is below 0, and the saddlepoint."""
    s = _saddlepoint(offsets, counts, near)
    shrunk = [1 - s * offset for offset in offsets]
    w = sqrt(max(0.0, 2 * sum(map(mul, counts, map(log, shrunk)))))
    if w == 0.0:
        return 0.0, s
    tilted = list(map(truediv, offsets, shrunk))
    u = s * sqrt(sum(map(mul, counts, map(mul, tilted, tilted))))
    return w + log(u / w) / w, s


def _saddlepoint(offsets: Sequence[float], counts: Sequence[int], near: float) -> float:
    """The s at which the sum's tilted mean is 0. It lies between 0 and where the greatest offset's term is infinite."""
    low, high = 0.0, 1 / max(offsets)
    s = near if near < high else 0.0
    for _ in range(_STEPS):
        tilted = [offset / (1 - s * offset) for offset in offsets]
        weighted = list(map(mul, counts, tilted))
        slope, bend = sum(weighted), sum(map(mul, weighted, tilted))
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
            break
        following = following if low < following < high else (low + high) / 2
        before, value_before, now = now, value, following
    return now
