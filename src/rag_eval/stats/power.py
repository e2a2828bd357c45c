"""Power: the smallest drop that a paired test on n cases could have seen, and how many cases a drop takes.

A drop is *visible* when the gate fails with a probability of at least :data:`POWER`: the worsening exceeds the margin
and the one-sided test is significant at ``alpha / tests``, the level that Holm's correction asks of the first of
``tests`` tests.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, floor, sqrt

from rag_eval.stats.gaps import mean, share, total
from rag_eval.stats.special import binomial_tail, log_binomial, normal_quantile
from rag_eval.stats.units import units_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from decimal import Decimal

    from rag_eval.stats.paired import Pair
    from rag_eval.stats.units import Units

POWER = 0.8
GRID = 1_000
"""Drops of 0/1 metrics are sought in steps of 1 / GRID, and rounded up to one."""
MOST_CASES = 100_000
_EQUAL = 1 + 1e-12  # a level such as 1/16 can be met exactly, but for the last bits of what is carried
_DEVIATIONS = 7  # what lies beyond has a probability below 1e-11


@lru_cache(maxsize=1024)  # the gates of base and head, and many a slice, ask the same
def smallest_visible_drop(
    n: int, discordance: float, margin: Fraction | Decimal, alpha: float, tests: int = 1
) -> Fraction | None:
    """The least visible drop of a 0/1 metric over n pairs, in thousandths; None where n pairs show none at all.

    ``discordance`` is the observed share of pairs whose score changed, either way. It is taken for as large as the drop
    where it is smaller, for a drop needs as many changes.
    """
    least = _least(1, GRID, lambda d: mcnemar_power(n, d / GRID, discordance, margin, alpha / tests) >= POWER)
    return None if least is None else Fraction(least, GRID)


@lru_cache(maxsize=1024)
def cases_needed(
    drop: Fraction | float, discordance: float, margin: Fraction | Decimal, alpha: float, tests: int = 1
) -> int | None:
    """A number of pairs that makes a drop visible, and about the least; None beyond :data:`MOST_CASES`, or never.

    About the least: the exact test's power falls a little here and there as n grows.
    """
    if drop <= margin:
        return None
    return _least(1, MOST_CASES, lambda n: mcnemar_power(n, float(drop), discordance, margin, alpha / tests) >= POWER)


def mcnemar_power(n: int, drop: float, discordance: float, margin: Fraction | Decimal, level: float) -> float:
    """P(worsening > margin and p <= level) of the exact one-sided McNemar test, to 1e-9.

    The number k of changed pairs is binomial, n trials of the larger of ``discordance`` and ``drop``; of these a
    binomial number is for the worse. For each k in reach the least number for the worse that fails the gate is known;
    the probability of k, and that of reaching this number, are carried from k to k + 1.
    """
    share = min(1.0, max(discordance, drop))
    if share <= 0:
        return 0.0
    for_worse = min(1.0, (share + drop) / (2 * share))
    first, last = _reach(n, share)
    needed = _needed(floor(Fraction(margin) * n) + 1, first, last + 1, level)
    tail = binomial_tail(needed[0], first, for_worse)
    power, weight = 0.0, exp(log_binomial(first, n, share))
    odds = share / (1 - share) if share < 1 else 0.0
    for k, (least, following) in enumerate(pairwise(needed), first):
        power += weight * tail
        weight *= (n - k) / (k + 1) * odds
        tail = _carried(tail, k, least, following, for_worse)
    return power


def smallest_visible_shift(n: int, spread: float, margin: float, alpha: float, tests: int = 1) -> float | None:
    """The least visible drop of a mean over n pairs; None where n pairs show none at all.

    ``spread`` is :func:`paired_spread`: the drop's standard error is spread / sqrt(n). The normal approximation of the
    sign-flip test: under swapping, the difference has variance (spread² + drop²) / n, and must exceed z of it.
    """
    z, surely = normal_quantile(1 - alpha / tests) / sqrt(n), normal_quantile(POWER) * spread / sqrt(n)
    if z >= 1:
        return None
    # (drop - surely)² = z² (spread² + drop²), solved for the drop
    rest = 1 - z * z
    significant = (surely + z * sqrt(surely**2 + rest * spread**2)) / rest
    return max(margin + surely, significant)


def cases_needed_for_shift(drop: float, spread: float, margin: float, alpha: float, tests: int = 1) -> int | None:
    """The least number of pairs that makes a drop of a mean visible; None beyond :data:`MOST_CASES`, or never."""

    def visible(n: int) -> bool:
        least = smallest_visible_shift(n, spread, margin, alpha, tests)
        return least is not None and least <= drop

    return _least(1, MOST_CASES, visible) if drop > margin else None


def paired_spread(pairs: Iterable[Pair] | Units) -> float:
    """The standard deviation of a unit's share in the difference of the two means, times n.

    Where every pair is a unit and has both scores it is the standard deviation of their differences (over n); where one
    is missing, the other counts with the weight that it has in its own mean.
    """
    units = units_of(pairs)
    means, sizes = zip(*[mean(units, side) for side in (0, 1)], strict=True)
    squares = [(share(unit, means, sizes) ** 2, n) for unit, n in units.items()]
    return sqrt(units.total() * total(squares))


def _least(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """The least number at which a condition that stays true becomes true. Doubles first: large numbers cost more."""
    reached = low
    while not holds(reached):
        if reached >= high:
            return None
        low, reached = reached + 1, min(2 * reached, high)
    while low < reached:
        middle = (low + reached) // 2
        low, reached = (low, middle) if holds(middle) else (middle + 1, reached)
    return reached


def _reach(n: int, share: float) -> tuple[int, int]:
    if share >= 1:
        return n, n
    around = _DEVIATIONS * sqrt(n * share * (1 - share)) + _DEVIATIONS
    return max(0, floor(n * share - around)), min(n, floor(n * share + around) + 1)


def _needed(lead: int, first: int, last: int, level: float) -> list[int]:
    """For each k from first to last, the least number for the worse that is significant and leads by ``lead``."""
    significant = _significant(1 << last.bit_length(), level)[first : last + 1]
    return [max(least, (lead + k + 1) // 2) for k, least in enumerate(significant, first)]


@lru_cache(maxsize=32)
def _significant(size: int, level: float) -> list[int]:
    """For each k below ``size``, the least number w with P(X >= w) <= level for X of Binomial(k, 1/2)."""
    least, tail = (0, 1.0) if level >= 1 else (1, 0.0)
    found = [least]
    for k in range(size - 1):
        same = _carried(tail, k, least, least, 0.5)
        if same > level * _EQUAL:
            tail = _carried(tail, k, least, least + 1, 0.5)
            least += 1
        else:
            tail = same
        found.append(least)
    return found


def _carried(tail: float, k: int, least: int, following: int, p: float) -> float:
    """P(X >= following) over k + 1 trials, from ``tail``, P(X >= least) over k; ``following`` - ``least`` is 0 or 1."""
    if following == least:
        return tail + p * exp(log_binomial(least - 1, k, p))
    return tail - (1 - p) * exp(log_binomial(least, k, p))
