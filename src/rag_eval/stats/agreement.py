"""Agreement of scores with labels (areas under the ROC curve) or with another grader's scores, and their intervals.

The agreement of two graders is a function of weighted sums of pairs (x, y), so that leaving out a unit, which is a
question with all its answers, is a subtraction. Quadratic weighted kappa equals Lin's concordance correlation
coefficient of the scores (with variances over n), which takes means of several people as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import atanh, isfinite, sqrt, tanh
from typing import NamedTuple

from rag_eval.stats import intervals
from rag_eval.stats.intervals import CONFIDENCE, Interval, Question
from rag_eval.stats.probability import student_upper

_NONE = 1e-12  # a variance that is only rounding
_FEWEST = 3  # units


class Sums(NamedTuple):
    """Weighted sums of pairs: of 1, x, y, x², y² and xy."""

    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float, float]]) -> Sums:
        """Return the sums of (x, y, weight)."""
        rows = ((w, w * x, w * y, w * x * x, w * y * y, w * x * y) for x, y, w in pairs)
        return cls(*map(sum, zip(*rows, strict=True)))

    def plus(self, other: Sums, sign: int = 1) -> Sums:
        """Return the sums with others added, or with ``sign`` -1 subtracted."""
        return Sums(*(a + sign * b for a, b in zip(self, other, strict=True)))


class Estimate(NamedTuple):
    """A value with the ends of its interval, None if the answers do not determine it."""

    value: float | None
    low: float | None = None
    high: float | None = None


Statistic = Callable[[Sums], float | None]


def concordance(sums: Sums) -> float | None:
    """Return Lin's concordance, which is quadratic weighted kappa; None if all scores are equal."""
    varied_x, varied_y, together = _moments(sums)
    bias = ((sums.x - sums.y) / sums.n) ** 2 if sums.n else 0.0
    expected = varied_x + varied_y + bias
    return 2 * together / expected if expected > _NONE else None


def mean_of_y(sums: Sums) -> float | None:
    """Return the mean of y."""
    return sums.y / sums.n if sums.n else None


def slope(sums: Sums) -> float | None:
    """Return how y grows with x: if x is 0 or 1, the difference of two means. None if x is constant."""
    varied_x, _, together = _moments(sums)
    return together / varied_x if varied_x > _NONE else None


def _moments(sums: Sums) -> tuple[float, float, float]:
    if not sums.n:
        return 0.0, 0.0, 0.0
    x, y = sums.x / sums.n, sums.y / sums.n
    return max(0.0, sums.xx / sums.n - x * x), max(0.0, sums.yy / sums.n - y * y), sums.xy / sums.n - x * y


def jackknife(units: Sequence[Sums], statistic: Statistic) -> Estimate:
    """Return a statistic over units and its interval: Student's quantile of the jackknife's standard error."""
    value, spread = _spread(units, statistic)
    if value is None or spread is None:
        return Estimate(value)
    reach = student_upper((1 - CONFIDENCE) / 2, len(units) - 1) * spread
    return Estimate(value, value - reach, value + reach)


def jackknife_z(units: Sequence[Sums], statistic: Statistic) -> Estimate:
    """Return a coefficient between -1 and 1 and its interval, by the jackknife on Fisher's z.

    One more unit, of pairs drawn at random from both sides, is added for the interval: it prevents an interval without
    width when a few answers all agree. A constant side shows neither agreement nor disagreement, so there are no ends.
    """
    whole = Sums(*map(sum, zip(*units, strict=True)))
    varied_x, varied_y, _ = _moments(whole)
    value = statistic(whole)
    if value is None or min(varied_x, varied_y) <= _NONE:
        return Estimate(value)
    means = [part / len(units) for part in whole]
    chance = Sums(*means)._replace(xy=means[1] * means[2] / means[0])
    middle, spread = _spread([*units, chance], statistic)
    if middle is None or spread is None or len(units) < _FEWEST:
        return Estimate(value)
    reach = student_upper((1 - CONFIDENCE) / 2, len(units) - 1) * spread / (1 - middle * middle)
    return Estimate(value, min(value, tanh(atanh(middle) - reach)), max(value, tanh(atanh(middle) + reach)))


def _spread(units: Sequence[Sums], statistic: Statistic) -> tuple[float | None, float | None]:
    """Return the statistic over all units, and its standard error from leaving out each unit in turn."""
    whole = Sums(*map(sum, zip(*units, strict=True)))
    value, n = statistic(whole), len(units)
    without = (statistic(whole.plus(unit, -1)) for unit in (units if n > 1 else ()))
    known = [item for item in without if item is not None and isfinite(item)]
    if value is None or len(known) < n or n < 2:
        return value, None
    mean = sum(known) / n
    return value, sqrt((n - 1) / n * sum((item - mean) ** 2 for item in known))


def area_interval(value: float, n: float, confidence: float) -> Interval:
    """Return the interval of an area under the ROC curve whose smaller sample has ``n`` scores or their equivalent.

    For any distributions, the estimate's variance is at most A (1 - A) / n (Birnbaum and Klose, "Bounds for the
    variance of the Mann-Whitney statistic", 1957): that of a rate over the smaller sample. So the interval is that of
    such a rate, by Clopper and Pearson's formula with A n as the hits, which need not be whole.
    """
    return Interval(*intervals.clopper_pearson(value * n, n, confidence), small=False)


def area(positives: Counter[float], negatives: Counter[float]) -> float:
    """Return the area under the ROC curve: the share of pairs in which the positive is higher, ties counted half."""
    doubled, pairs = doubled_wins(positives, negatives)
    return doubled / (2 * pairs)


def doubled_wins(positives: Counter[float], negatives: Counter[float]) -> tuple[int, int]:
    """Return twice the number of pairs in which the positive is higher, a tie as half a pair, and that of all pairs."""
    below = won = 0
    for score in sorted(positives.keys() | negatives.keys()):
        won += positives[score] * (2 * below + negatives[score])
        below += negatives[score]
    return won, positives.total() * negatives.total()


def auc_interval(
    positives: Mapping[Question, int], negatives: Mapping[Question, int], confidence: float = CONFIDENCE
) -> Interval:
    """Return the interval of the area under the ROC curve; both samples have at least one score.

    The size of a sample is its number of questions of equal size that carry the same information (Kish, 1965).
    """
    scores, sizes = [], []
    for questions in (positives, negatives):
        scores.append(Counter[float]())
        repeats = [(sum([times for _, times in question]), count) for question, count in questions.items()]
        sizes.append(sum(size * n for size, n in repeats) ** 2 / sum(size * size * n for size, n in repeats))
        for question, count in questions.items():
            for score, times in question:
                scores[-1][score] += times * count
    return area_interval(area(*scores), min(sizes), confidence)


def hit_rate_interval(
    positives: Mapping[Question, int],
    negatives: Mapping[Question, int],
    false_alarms: float,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the interval of the true positive rate at a rate of ``false_alarms``; both samples have a score.

    The threshold itself is an estimate: a percentile of the negatives. Half of the error rate is used for its two ends,
    the other half for the intervals of the share of positives at or above each end (Bonferroni).
    """
    half = 1 - (1 - confidence) / 2
    loose, strict = intervals.percentile_ends(negatives, 1 - false_alarms, half)
    hits: tuple[Counter[tuple[float, int]], Counter[tuple[float, int]]] = Counter(), Counter()
    for scores, count in positives.items():
        size = sum([times for _, times in scores])
        # The strict end is above its negative's score, the loose one includes its own.
        hits[0][sum([times for score, times in scores if strict is not None and score > strict]), size] += count
        hits[1][sum([times for score, times in scores if loose is None or score >= loose]), size] += count
    tail = (1 - half) / 2
    low, high = intervals.ratio_lower_bound(hits[0], 0.0, tail), intervals.ratio_upper_bound(hits[1], 1.0, tail)
    return Interval(intervals.rounded_end(low), intervals.rounded_end(high), small=strict is None)
