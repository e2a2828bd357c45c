"""Intervals for several scores of one question: its repeats are not independent cases.

Questions are drawn at random, each with all its repeats, so questions are counted, and differ from one sample to the
next. The value does not change: the mean (or percentile, or area) of all scores. So a question with more scores has
more weight, and the interval is that of a ratio of two means over the questions: of the totals of their scores and of
their numbers. With one score for each question it is the interval of independent scores, and also if all scores are
repeated equally often.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import fsum, hypot, sqrt
from typing import NamedTuple

from rag_eval.stats.intervals import (
    CONFIDENCE,
    DECIMALS,
    UNIT,
    Ends,
    Interval,
    UnitTotals,
    area,
    area_interval,
    interval,
    percentile,
    ratio_at_least,
    ratio_at_most,
    settled,
    small_sample,
)
from rag_eval.stats.special import normal_quantile, student_upper

Question = tuple[tuple[float, int], ...]
"""The distinct scores of a question's repeats, in order, with their counts."""


def interval_of_questions(
    questions: Mapping[Question, int], kind: str, bounds: Ends = UNIT, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the interval of a percentile of scores by question; see :func:`rag_eval.stats.intervals.interval`."""
    if not questions:
        return None
    low, high = _around(questions, percentile(kind), confidence)
    ends = bounds[0] if low is None else low, bounds[1] if high is None else high
    small = small_sample(sum(questions.values()), kind, bounds, confidence) or None in ends
    return Interval(settled(ends[0]), settled(ends[1]), small)


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
    ends = ratio_at_least(totals, low or 0.0, tail), ratio_at_most(totals, 1.0 if high is None else high, tail)
    return Interval(settled(ends[0]), settled(ends[1]), small=False)


class BetweenRuns(NamedTuple):
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
    minimum, maximum = bounds
    low = None if interval.low is None else value - sqrt(max(0.0, value - interval.low) ** 2 + half**2)
    high = None if interval.high is None else value + sqrt(max(0.0, interval.high - value) ** 2 + half**2)
    low = low if low is None or minimum is None else max(low, minimum)
    high = high if high is None or maximum is None else min(high, maximum)
    return interval._replace(low=settled(low), high=settled(high))


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
    loose, strict = _around(negatives, 1 - false_alarms, half)
    hits: tuple[Counter[tuple[float, int]], Counter[tuple[float, int]]] = Counter(), Counter()
    for scores, count in positives.items():
        size = sum([times for _, times in scores])
        # The strict end is above its negative's score, the loose one includes its own.
        hits[0][sum([times for score, times in scores if strict is not None and score > strict]), size] += count
        hits[1][sum([times for score, times in scores if loose is None or score >= loose]), size] += count
    ends = ratio_at_least(hits[0], 0.0, (1 - half) / 2), ratio_at_most(hits[1], 1.0, (1 - half) / 2)
    return Interval(settled(ends[0]), settled(ends[1]), small=strict is None)


def _around(questions: Mapping[Question, int], share: float, confidence: float) -> tuple[float | None, float | None]:
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

    nothing = ratio_at_most(up_to(grid[0] - 1), 1.0, tail) > share
    below = first(lambda totals: ratio_at_most(totals, 1.0, tail) > share)
    above = first(lambda totals: ratio_at_least(totals, 0.0, tail) >= share)
    return None if nothing else grid[below], grid[above] if above < len(grid) else None
