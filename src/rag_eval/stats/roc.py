"""The area under the ROC curve and the true positive rate at a rate of false alarms, with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rag_eval.stats.intervals import CONFIDENCE, Interval, Question, around, ratio_at_least, ratio_at_most, settled
from rag_eval.stats.special import beta_quantile


def area_interval(value: float, n: float, confidence: float) -> Interval:
    """Return the interval of an area under the ROC curve whose smaller sample has ``n`` scores or their equivalent.

    For any distributions, the estimate's variance is at most A (1 - A) / n (Birnbaum and Klose, "Bounds for the
    variance of the Mann-Whitney statistic", 1957): that of a rate over the smaller sample. So the interval is that of
    such a rate, by Clopper and Pearson's formula with A n as the hits, which need not be whole.
    """
    hits, tail = value * n, (1 - confidence) / 2
    low = beta_quantile(tail, hits, n - hits + 1) if hits > 0 else 0.0
    high = beta_quantile(1 - tail, hits + 1, n - hits) if hits < n else 1.0
    return Interval(settled(low), settled(high), small=False)


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
    loose, strict = around(negatives, 1 - false_alarms, half)
    hits: tuple[Counter[tuple[float, int]], Counter[tuple[float, int]]] = Counter(), Counter()
    for scores, count in positives.items():
        size = sum([times for _, times in scores])
        # The strict end is above its negative's score, the loose one includes its own.
        hits[0][sum([times for score, times in scores if strict is not None and score > strict]), size] += count
        hits[1][sum([times for score, times in scores if loose is None or score >= loose]), size] += count
    ends = ratio_at_least(hits[0], 0.0, (1 - half) / 2), ratio_at_most(hits[1], 1.0, (1 - half) / 2)
    return Interval(settled(ends[0]), settled(ends[1]), small=strict is None)
