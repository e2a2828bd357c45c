"""Confidence intervals of the system's true value, from a value over n cases.

Every method is a formula without random draws: the same scores in any order give the same interval. Measured coverage
decides which formula is used for which kind of value: docs/statistics.md, written by bench/statistics/coverage.py.

Repeats of a question are not independent cases. Questions are drawn at random, each with all its repeats, so questions
are counted, and differ from one sample to the next. The value does not change: the mean (or percentile, or area) of all
scores. So a question with more scores has more weight, and the interval is that of a ratio of two means over the
questions: of the totals of their scores and of their numbers. With one score for each question it is the interval of
independent scores, and also if all scores are repeated equally often.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import cbrt, fsum, hypot, inf, log, sqrt
from operator import mul, truediv
from typing import NamedTuple, TypeVar

from msgspec import Struct

from rag_eval.stats.probability import beta_quantile, binomial_tail, normal_quantile, student_upper
from rag_eval.stats.tally import DECIMALS

UnitTotals = Mapping[tuple[float, int], int]
"""The total of so many scores and their number, each with how often they occur together."""

Points = list[tuple[float, int]]
"""Distinct scores, each with how often it occurs."""

Question = tuple[tuple[float, int], ...]
"""The distinct scores of a question's repeats, in order, with their counts."""

Ends = tuple[float | None, float | None]
End = TypeVar("End", float, float | None)

CONFIDENCE = 0.95
UNIT: Ends = (0.0, 1.0)
FEW = 100
"""From so many scores without a maximum on, the mean's interval has covered at least 92 % of the time, measured on
log-normal scores of which one in twenty is above twelve times the median."""
_STEPS, _CLOSE = 100, 1e-8


def mean_upper_bound(points: Points, end: float, tail: float) -> float:
    """Return the bound that the true mean exceeds with probability ``tail`` at most, for scores up to ``end``."""
    inside = [(value, count) for value, count in points if value < end]
    n = sum(count for _, count in inside)
    at_end = 1 + sum(count for value, count in points if value >= end)
    if len(inside) < 2:
        return inside[0][0] + (end - inside[0][0]) * beta_quantile(1 - tail, at_end, n) if inside else end
    return _weighted_quantile([*inside, (end, at_end)], normal_quantile(1 - tail))


def ratio_upper_bound(grouped: UnitTotals, end: float, tail: float) -> float:
    """Return :func:`mean_upper_bound` of a ratio of two means over units: of totals and of numbers of scores.

    A unit counts by its contribution to the ratio. The unit at the end of the range is as large as that of a score
    drawn at random. If all units have equally many scores, this is the bound of the mean of their means.
    """
    n = sum(size * count for (_, size), count in grouped.items())
    units = sum(grouped.values())
    size = sum(size * size * count for (_, size), count in grouped.items()) / n
    ratio = fsum(total * count for (total, _), count in grouped.items()) / n
    points: Counter[float] = Counter()
    for (total, number), count in grouped.items():
        points[round(ratio + units / n * (total - ratio * number), DECIMALS)] += count
    top = round(ratio + units * size / n * (end - ratio), DECIMALS)
    return min(end, mean_upper_bound(sorted(points.items()), max(top, *points), tail))


def ratio_lower_bound(grouped: UnitTotals, end: float, tail: float) -> float:
    """Return the mirror image of :func:`ratio_upper_bound`, for scores from ``end`` on."""
    return -ratio_upper_bound({(-total, size): count for (total, size), count in grouped.items()}, -end, tail)


def _weighted_quantile(points: Points, z: float) -> float:
    """Return the t that the randomly weighted mean of the points stays below with the probability of ``z``, above 0."""
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


def _root_of_deviance(offsets: Sequence[float], counts: Sequence[int], start: float) -> tuple[float, float]:
    """Return the standard normal deviate with the probability that the weighted sum is below 0, and the saddlepoint.

    The saddlepoint s makes the sum's tilted mean 0. It is between 0 and the pole of the maximum offset's term.
    """
    low, high = 0.0, 1 / max(offsets)
    s = start if start < high else 0.0
    for _ in range(_STEPS):
        tilted = [offset / (1 - s * offset) for offset in offsets]
        weighted = list(map(mul, counts, tilted))
        slope, bend = fsum(weighted), fsum(map(mul, weighted, tilted))
        low, high = (s, high) if slope < 0 else (low, s)
        following = s - slope / bend
        before, s = s, following if low < following < high else (low + high) / 2
        if abs(s - before) <= _CLOSE * s:
            break
    shrunk = [1 - s * offset for offset in offsets]
    w = sqrt(max(0.0, 2 * fsum(map(mul, counts, map(log, shrunk)))))
    if w == 0.0:
        return 0.0, s
    tilted = list(map(truediv, offsets, shrunk))
    u = s * sqrt(fsum(map(mul, counts, map(mul, tilted, tilted))))
    return w + log(u / w) / w, s


def _root(function: Callable[[float], float], bracket: tuple[float, float], start: float, step: float) -> float:
    """Find the root of an increasing function by secants within a bracket."""
    low, high = bracket
    before, now = start, min(start + step, (start + high) / 2)
    value_before = function(before)
    for _ in range(_STEPS):
        value = function(now)
        low, high = (now, high) if value < 0 else (low, now)
        slope = (value - value_before) / (now - before) if now != before else inf
        following = now - value / slope if slope > 0 else inf
        if abs(following - now) <= _CLOSE * step:
            return min(max(following, low), high)  # each step squares the error: this one is beyond a float's precision
        following = following if low < following < high else (low + high) / 2
        before, value_before, now = now, value, following
    return now


class Interval(NamedTuple):
    """A confidence interval. An end is None if the scores set no limit on that side.

    ``small`` says that there are too few cases for the stated confidence: see :func:`small_sample`.
    """

    low: float | None
    high: float | None
    small: bool


def interval(
    scores: Iterable[float], kind: str = "mean", bounds: Ends = UNIT, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the interval of a value over the cases' scores (or a Counter of them), or None without scores.

    ``kind`` is ``rate`` (scores of 0 and 1), ``mean`` or a percentile such as ``p95``. ``bounds`` are the minimum and
    the maximum score of the metric, None without a limit.
    """
    # Rounded like values, so that scores which differ only in their last bits count as equal.
    counted: Counter[float] = Counter()
    for score, count in Counter(scores).items():
        counted[round(float(score), DECIMALS) + 0.0] += count
    points, n, tail = sorted(counted.items()), counted.total(), (1 - confidence) / 2
    if not points:
        return None
    low, high = bounds
    if kind == "rate":
        if not counted.keys() <= {0.0, 1.0}:
            raise ValueError("a rate is made of scores of 0 and 1")
        low, high = clopper_pearson(counted[1.0], n, confidence)
    elif kind != "mean":
        below, above = percentile_ranks(n, percentile(kind), confidence)
        low = low if below is None else _ranked(points, below)
        high = high if above is None else _ranked(points, above)
    elif None in bounds and len(points) > 1:
        low, high = _open_mean(points, bounds, tail)
    else:
        if (low is not None and points[0][0] < low) or (high is not None and points[-1][0] > high):
            raise ValueError("a score lies outside the bounds")
        mirrored = [(-value, count) for value, count in points]
        low = None if low is None else -mean_upper_bound(mirrored, -low, tail)
        high = None if high is None else mean_upper_bound(points, high, tail)
    small = small_sample(n, kind, bounds, confidence) or low is None or high is None
    return Interval(rounded_end(low), rounded_end(high), small)


def small_sample(n: int, kind: str = "mean", bounds: Ends = UNIT, confidence: float = CONFIDENCE) -> bool:
    """Return whether n scores are too few for ``confidence``.

    Rates and means of scores with a known minimum and maximum have the stated coverage for any n. Without one of them a
    mean needs :data:`FEW` scores; a percentile needs enough scores that both its ends are scores.
    """
    if kind in ("rate", "mean"):
        return kind == "mean" and None in bounds and n < FEW
    rarer = max(percentile(kind), 1 - percentile(kind))
    return n * log(rarer) > log((1 - confidence) / 2)


@lru_cache(maxsize=1024)  # many metrics have equally many hits, and gates request an interval again
def clopper_pearson(hits: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the exact two-sided interval of a rate, ``hits`` of ``n`` above 0 (Clopper and Pearson, 1934)."""
    if not 0 <= hits <= n or n == 0:
        raise ValueError(f"{hits} of {n} is not a rate")
    tail = (1 - confidence) / 2
    low = beta_quantile(tail, hits, n - hits + 1) if hits else 0.0
    high = beta_quantile(1 - tail, hits + 1, n - hits) if hits < n else 1.0
    return rounded_end(low), rounded_end(high)


def percentile(kind: str) -> float:
    """Return the share of ``p50`` or ``p95``."""
    if not (kind[:1] == "p" and kind[1:].isdecimal() and 0 < int(kind[1:]) < 100):
        raise ValueError(f"{kind!r} is neither rate nor mean nor a percentile such as p95")
    return int(kind[1:]) / 100


@lru_cache(maxsize=256)  # the percentiles of several metrics are often of equally many scores
def percentile_ranks(n: int, share: float, confidence: float = CONFIDENCE) -> tuple[int | None, int | None]:
    """Return the ranks, from 1, of the ordered scores that enclose a percentile; None if n scores are too few.

    The number of scores at or below the true percentile is binomial, so the ranks are right for any distribution.
    """
    tail = (1 - confidence) / 2

    def first(condition: Callable[[int], bool]) -> int:
        return 1 + bisect_left(range(1, n + 1), True, key=condition)

    above = first(lambda rank: binomial_tail(rank, n, share) <= tail)
    # P(X <= rank - 1) > tail, computed so that no small number is a difference of large ones
    below = first(lambda rank: binomial_tail(n - rank + 1, n, 1 - share) > tail) - 1
    return below or None, above if above <= n else None


def _open_mean(points: Points, bounds: Ends, tail: float) -> Ends:
    """Return the union of Student's interval and Hall's.

    Hall's removes the sample's skewness from the t statistic ("On the removal of skewness by transformation", 1992) and
    reaches further towards the long tail; Student's reaches further on the other side.
    """
    n = sum(count for _, count in points)
    mean = fsum(value * count for value, count in points) / n
    second = fsum(count * (value - mean) ** 2 for value, count in points)
    third = fsum(count * (value - mean) ** 3 for value, count in points)
    skewness = 0.0 if n < 3 else third / n / (second / n) ** 1.5 * sqrt(n * (n - 1)) / (n - 2)  # G1
    t, error, tilt = student_upper(tail, n - 1), sqrt(second / (n - 1)) / sqrt(n), skewness / sqrt(n)

    def unskewed(t: float) -> float:
        """Return the inverse of Hall's t + tilt t²/3 + tilt² t³/27 + tilt/6."""
        off = t - tilt / 6
        return (cbrt(1 + tilt * off) - 1) * 3 / tilt if abs(tilt) > 1e-6 else off  # the limit

    return _within(mean - error * max(t, unskewed(t)), mean - error * min(-t, unskewed(-t)), bounds)


def _within(low: float | None, high: float | None, bounds: Ends) -> Ends:
    minimum, maximum = bounds
    low = low if low is None or minimum is None else max(low, minimum)
    return low, high if high is None or maximum is None else min(high, maximum)


def _ranked(points: Points, rank: int) -> float:
    passed = accumulate(count for _, count in points)
    return next(value for (value, _), reached in zip(points, passed, strict=True) if reached >= rank)


def rounded_end(end: End) -> End:
    """Return an end of an interval with ten digits, which are equal on every platform."""
    if end is None:
        return None
    return float(f"{end:.10g}") if abs(end) > 1 else round(end, 10)


def interval_of_questions(
    questions: Mapping[Question, int], kind: str, bounds: Ends = UNIT, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the interval of a percentile of scores by question; see :func:`interval`."""
    if not questions:
        return None
    low, high = percentile_ends(questions, percentile(kind), confidence)
    ends = bounds[0] if low is None else low, bounds[1] if high is None else high
    small = small_sample(sum(questions.values()), kind, bounds, confidence) or None in ends
    return Interval(rounded_end(ends[0]), rounded_end(ends[1]), small)


def interval_of_totals(totals: UnitTotals, bounds: Ends = UNIT, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a mean from the rounded sum and the number of the scores of each question."""
    if not totals:
        return None
    equal_sizes = len({size for _, size in totals}) == 1
    if equal_sizes or None in bounds:
        # The mean of each question, or, if questions differ in size, its contribution to the mean of all scores: the
        # mean and its residuals over the mean number of scores, which vary as the ratio does.
        n, cases = sum(totals.values()), sum(size * count for (_, size), count in totals.items())
        ratio = fsum(total * count for (total, _), count in totals.items()) / cases
        means: Counter[float] = Counter()
        for (total, size), count in totals.items():
            means[total / size if equal_sizes else ratio + (total - ratio * size) * n / cases] += count
        return interval(means, "mean", bounds, confidence)
    (low, high), tail = bounds, (1 - confidence) / 2
    ends = ratio_lower_bound(totals, low or 0.0, tail), ratio_upper_bound(totals, 1.0 if high is None else high, tail)
    return Interval(rounded_end(ends[0]), rounded_end(ends[1]), small=False)


class BetweenRuns(Struct, frozen=True):
    """The variance of a mean between runs, and the number of runs."""

    variance: float
    runs: int


def between_runs(totals: UnitTotals, runs: Sequence[tuple[int, float, float]]) -> BetweenRuns | None:
    """Return the variance between a system's runs, because it may be better on some days; None if it shows none.

    ``runs`` has the number of scores of each run, their sum and that of their squares. Half of the mean square within
    questions is subtracted from that between runs; with two runs nothing is: all of it is right on average, but two
    runs often seem to differ by less than they do.
    """
    n, number, questions = sum(run[0] for run in runs), len(runs), sum(totals.values())
    freedom = n - questions - number + 1
    if number < 2 or freedom < 1:
        return None
    value = fsum(run[1] for run in runs) / n
    within = fsum(run[2] for run in runs) - fsum(total**2 / size * count for (total, size), count in totals.items())
    among = fsum((run[1] - run[0] * value) ** 2 / run[0] for run in runs)
    excess = among / (number - 1) - (0.5 if number > 2 else 0.0) * max(0.0, within - among) / freedom
    return BetweenRuns(excess / n, number) if round(excess, DECIMALS) > 0 else None


def with_runs(interval: Interval, value: float, runs: BetweenRuns | None, bounds: Ends, confidence: float) -> Interval:
    """Return the interval of a mean with the variance between runs added, by Student's quantile for so many runs."""
    if runs is None:
        return interval
    half = student_upper((1 - confidence) / 2, runs.runs - 1) * sqrt(runs.variance)
    low = None if interval.low is None else value - sqrt(max(0.0, value - interval.low) ** 2 + half**2)
    high = None if interval.high is None else value + sqrt(max(0.0, interval.high - value) ** 2 + half**2)
    low, high = _within(low, high, bounds)
    return interval._replace(low=rounded_end(low), high=rounded_end(high))


def p_with_runs(p: float, difference: float, runs: BetweenRuns | None) -> float:
    """Return the one-sided p of a difference with the variance between runs added, as in the interval.

    At the returned level the distance that p alone needs, and Student's quantile for so many runs, make up the
    difference in quadrature.
    """
    if runs is None or p >= 0.5 or difference <= 0:
        return p
    low, high = max(p, 1e-30), 0.5
    alone, error = difference / -normal_quantile(low), sqrt(runs.variance)
    while high - low > 1e-13 * high:
        level = (low + high) / 2
        reach = hypot(normal_quantile(level) * alone, student_upper(level, runs.runs - 1) * error)
        low, high = (level, high) if reach > difference else (low, level)
    return float(f"{high:.9g}")


def effect_with_runs(effect: float, level: float, power: float, runs: BetweenRuns) -> float:
    """Return the minimum detectable effect with the variance between runs added."""
    quantiles = student_upper(level, runs.runs - 1) + student_upper(1 - power, runs.runs - 1)
    return hypot(effect, quantiles * sqrt(runs.variance))


def percentile_ends(
    questions: Mapping[Question, int], share: float, confidence: float
) -> tuple[float | None, float | None]:
    """Return the scores that enclose a percentile, by the share of repeats that score at most each.

    The share of repeats up to a score is a mean over the questions, and has the bounds of such a mean.
    """
    grid, tail = sorted({score for scores in questions for score, _ in scores}), (1 - confidence) / 2
    steps = [
        ([score for score, _ in scores], [0, *accumulate(times for _, times in scores)], count)
        for scores, count in questions.items()
    ]

    def up_to(score: float) -> UnitTotals:
        totals: Counter[tuple[float, int]] = Counter()
        for scores, reached, count in steps:
            totals[reached[bisect_right(scores, score)], reached[-1]] += count
        return totals

    def first(condition: Callable[[UnitTotals], bool]) -> int:
        return bisect_left(grid, True, key=lambda score: condition(up_to(score)))

    nothing = ratio_upper_bound(up_to(grid[0] - 1), 1.0, tail) > share
    below = first(lambda totals: ratio_upper_bound(totals, 1.0, tail) > share)
    above = first(lambda totals: ratio_lower_bound(totals, 0.0, tail) >= share)
    return None if nothing else grid[below], grid[above] if above < len(grid) else None
