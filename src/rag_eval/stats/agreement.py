"""Agreement of two graders, and its dependence on another value, with jackknife intervals.

Everything here is a function of weighted sums of pairs (x, y), so that leaving out a unit, which is a question with all
its answers, is a subtraction. Quadratic weighted kappa equals Lin's concordance correlation coefficient of the scores
(with variances over n), which takes means of several people as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import atanh, isfinite, sqrt, tanh
from typing import NamedTuple

from rag_eval.stats.intervals import CONFIDENCE
from rag_eval.stats.special import student_upper

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


def correlation(sums: Sums) -> float | None:
    """Return Pearson's correlation; None if a side is constant."""
    varied_x, varied_y, together = _moments(sums)
    if min(varied_x, varied_y) <= _NONE:
        return None
    return max(-1.0, min(1.0, together / sqrt(varied_x * varied_y)))


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
    whole = Sums(*map(sum, zip(*units, strict=True))) if units else Sums()
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
    whole = Sums(*map(sum, zip(*units, strict=True))) if units else Sums()
    value, n = statistic(whole), len(units)
    without = [statistic(whole.plus(unit, -1)) for unit in units] if n > 1 else []
    known = [item for item in without if item is not None and isfinite(item)]
    if value is None or len(known) < n or n < 2:
        return value, None
    mean = sum(known) / n
    return value, sqrt((n - 1) / n * sum((item - mean) ** 2 for item in known))
