"""Power of regression gates: how often a gate fails, and the minimum detectable effect (MDE).

The model of a pair of runs is noise plus losses. A share ``noise`` of n cases changes without any change of the system,
half of it for the worse and half for the better. A drop is added to it: each loss costs a case one whole unit, so that
a drop of d is a share d of the cases. For scores of 0 and 1 the unit is 1. Other scores count in units of the largest
loss, which is the hardest drop to detect because fewer cases have it. See docs/statistics.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, floor, sqrt

from rag_eval.stats.intervals import interval
from rag_eval.stats.probability import beta_quantile, binomial_tail, log_binomial

POWER = 0.8
_NOISE_CONFIDENCE = 0.8
_GRID = 1_000
"""The MDE is a multiple of 1 / _GRID, rounded up."""
_MAX_CASES = 100_000
_EQUAL = 1 + 1e-12  # a level such as 1/16 can be met exactly, except for the last bits of a sum
_DEVIATIONS = 7  # the rest has a probability below 1e-11


def noise_bound(moves: float, n: int) -> float:
    """Return the upper end of the share of cases that change by chance, if ``moves`` of n did (Clopper-Pearson).

    The observed share would promise too much: no change among 50 cases does not mean that there is no noise.
    """
    return beta_quantile(_NOISE_CONFIDENCE, moves + 1, n - moves) if moves < n else 1.0


@lru_cache(maxsize=1024)  # the gates of base and head, and many slices, need the same
def minimum_effect(n: int, noise: float, margin: Fraction | Decimal, level: float) -> Fraction | None:
    """Return the smallest drop that fails the gate with a probability of :data:`POWER`; None if n cases are too few."""
    least = _smallest(1, _GRID, lambda d: fail_probability(n, noise, d / _GRID, margin, level) >= POWER)
    return None if least is None else Fraction(least, _GRID)


@lru_cache(maxsize=1024)
def cases_needed(drop: float, noise: float, margin: Fraction | Decimal, level: float) -> int | None:
    """Return about the smallest number of cases that shows a drop; None beyond :data:`_MAX_CASES`, or never.

    The number is approximate because the exact test's power falls a little here and there as n grows.
    """
    if drop <= margin:
        return None
    return _smallest(1, _MAX_CASES, lambda n: fail_probability(n, noise, drop, margin, level) >= POWER)


def fail_probability(n: int, noise: float, drop: float, margin: Fraction | Decimal, level: float) -> float:
    """Return P(regression > margin and p <= level) of the exact one-sided McNemar test, to 1e-9."""
    lead = floor(Fraction(margin) * n) + 1

    def needed(first: int, last: int) -> list[int]:
        significant = _significant(1 << last.bit_length(), level)[first : last + 1]
        return [max(least, (lead + k + 1) // 2) for k, least in enumerate(significant, first)]

    return tail_probability(n, noise, drop, needed)


def fail_rates(
    n: int, noise: float, drops: Sequence[float], margin: Fraction | Decimal, level: float, test: str
) -> list[float]:
    """Return the probability that a gate fails at each drop, by its test at a level: see rag_eval.gates.regression."""
    if test != "non_inferiority":
        return [fail_probability(n, noise, drop, margin, level) for drop in drops]
    return [_not_ruled_out(n, noise, min(drop, 1 - noise / 2), margin, level) for drop in drops]


def _not_ruled_out(n: int, noise: float, drop: float, margin: Fraction | Decimal, alpha: float) -> float:
    """Return the probability that the interval of the drop reaches beyond the margin."""
    share = min(1.0, noise + drop)
    first, last = _likely_counts(n, share)
    failing, least = 0.0, 0
    for changed in range(first, last + 1):
        while least and not _ruled_out(n, least - 1, changed, margin, alpha):
            least -= 1
        while least <= changed and _ruled_out(n, least, changed, margin, alpha):
            least += 1
        for_worse = (noise / 2 + drop) / share if share else 0.0
        failing += exp(log_binomial(changed, n, share)) * binomial_tail(least, changed, for_worse)
    return failing


@lru_cache(maxsize=4096)
def _ruled_out(n: int, regressed: int, changed: int, margin: Fraction | Decimal, alpha: float) -> bool:
    """Return whether the interval of the drop is within the margin."""
    counts = Counter({1.0: regressed, -1.0: changed - regressed, 0.0: n - changed})
    bounds = interval(+counts, "mean", (-1.0, 1.0), 1 - alpha)
    return bounds is not None and bounds.high is not None and bounds.high <= margin


def tail_probability(n: int, noise: float, drop: float, needed: Callable[[int, int], Sequence[int]]) -> float:
    """Return the probability that a run fails if ``needed`` of k changed cases are worse.

    ``needed(first, last)`` gives that number for each k from first to last; it rises by 0 or 1 with k. The probability
    of k, and that of reaching its number, are carried from k to k + 1.
    """
    drop = min(drop, 1 - noise / 2)
    share = min(1.0, noise + drop)
    if share <= 0:
        return 0.0
    for_worse = min(1.0, (noise / 2 + drop) / share)
    first, last = _likely_counts(n, share)
    limits = needed(first, last + 1)
    tail, below = binomial_tail(limits[0], first, for_worse), exp(log_binomial(limits[0] - 1, first, for_worse))
    power, weight = 0.0, exp(log_binomial(first, n, share))
    odds = share / (1 - share) if share < 1 else 0.0
    for k, (least, following) in enumerate(pairwise(limits), first):
        power += weight * tail
        weight *= (n - k) / (k + 1) * odds
        if following == least:
            tail += for_worse * below
        else:  # P(X = least) of k, from P(X = least - 1)
            ratio = (k - least + 1) / least * for_worse / (1 - for_worse) if least and for_worse < 1 else 0.0
            below = below * ratio or exp(log_binomial(least, k, for_worse))
            tail -= (1 - for_worse) * below
        # P(X = following - 1) of k + 1
        if below and k + 2 > following:
            below *= (k + 1) / (k + 2 - following) * (1 - for_worse)
        else:
            below = exp(log_binomial(following - 1, k + 1, for_worse))
    return power


def _smallest(low: int, high: int, condition: Callable[[int], bool]) -> int | None:
    """Return the minimum number from which a condition is true. Large ones cost more: double first."""
    reached = low
    while not condition(reached):
        if reached >= high:
            return None
        low, reached = reached + 1, min(2 * reached, high)
    return bisect_left(range(reached), True, low, key=condition)


def _likely_counts(n: int, share: float) -> tuple[int, int]:
    if share >= 1:
        return n, n
    around = _DEVIATIONS * sqrt(n * share * (1 - share)) + _DEVIATIONS
    return max(0, floor(n * share - around)), min(n, floor(n * share + around) + 1)


@lru_cache(maxsize=32)
def _significant(size: int, level: float) -> list[int]:
    """Return for each k below ``size`` the minimum w with P(X >= w) <= level for X of Binomial(k, 1/2)."""
    least, tail = (0, 1.0) if level >= 1 else (1, 0.0)
    first_counts = [least]
    for k in range(size - 1):
        # P(X >= least) over k + 1 trials, from that over k
        same = tail + 0.5 * exp(log_binomial(least - 1, k, 0.5))
        if same > level * _EQUAL:
            tail -= 0.5 * exp(log_binomial(least, k, 0.5))
            least += 1
        else:
            tail = same
        first_counts.append(least)
    return first_counts
