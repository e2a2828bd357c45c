"""Intervals for a detector's figures, which hang on two samples at once: positives and negatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from math import inf

from rag_eval.stats.intervals import CONFIDENCE, Interval, clopper_pearson, percentile_ranks, settled
from rag_eval.stats.special import beta_quantile


def auc_interval(positives: Counter[float], negatives: Counter[float], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the area under the ROC curve; both samples hold at least one score.

    Whatever the distributions, the estimate's variance is at most A (1 - A) / min(m, n) (Birnbaum and Klose, "Bounds
    for the variance of the Mann-Whitney statistic", 1957): that of a rate over the smaller sample. So it is enclosed as
    such a rate, by Clopper and Pearson's formula with as many hits, which need not be whole, as the area comes to.
    """
    return area_interval(area(positives, negatives), min(positives.total(), negatives.total()), confidence)


def area_interval(value: float, n: float, confidence: float) -> Interval:
    """That of an area of which the smaller sample has ``n`` scores, or what says as much."""
    hits = value * n
    tail = (1 - confidence) / 2
    low = beta_quantile(tail, hits, n - hits + 1) if hits > 0 else 0.0
    high = beta_quantile(1 - tail, hits + 1, n - hits) if hits < n else 1.0
    return Interval(settled(low), settled(high), "birnbaum-klose", small=False)


def hit_rate_interval(
    positives: Counter[float], negatives: Counter[float], false_alarms: float, confidence: float = CONFIDENCE
) -> Interval:
    """The interval of the true positive rate at a rate of ``false_alarms``; both samples hold at least one score.

    The threshold itself is an estimate: a percentile of the negatives. Its two ends by order statistics take half of
    what may go wrong, the exact intervals of the share of positives at or above each end the other half (Bonferroni).
    """
    half = 1 - (1 - confidence) / 2
    ordered = sorted(negatives.elements())
    below, above = percentile_ranks(len(ordered), 1 - false_alarms, half)
    loose, strict = _at(ordered, below, -inf), _at(ordered, above, inf)
    n = positives.total()
    # The strict end lies above its negative's score, the loose one reaches down to its own.
    most = sum(count for score, count in positives.items() if score >= loose)
    least = sum(count for score, count in positives.items() if score > strict)
    low, high = clopper_pearson(least, n, half)[0], clopper_pearson(most, n, half)[1]
    return Interval(low, high, "order-statistics-clopper-pearson", small=above is None)


def _at(ordered: Sequence[float], rank: int | None, otherwise: float) -> float:
    return otherwise if rank is None else ordered[rank - 1]


def area(positives: Counter[float], negatives: Counter[float]) -> float:
    """The area under the ROC curve, ties counted half."""
    grid = sorted(positives.keys() | negatives.keys())
    below = [0, *accumulate(negatives[score] for score in grid)]
    won = sum(positives[score] * (2 * before + negatives[score]) for score, before in zip(grid, below, strict=False))
    return won / (2 * positives.total() * negatives.total())
