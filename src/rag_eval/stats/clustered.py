"""Intervals for several scores of one question: its repeats are not independent cases.

Questions are drawn at random, each with all its repeats, so questions are counted, and differ from one sample to the
next. The value does not change: the mean (or percentile, or area) of all scores. So a question with more scores has
more weight, and the interval is that of a ratio of two means over the questions: of the totals of their scores and of
their numbers. With one score for each question it is the interval of independent scores, and also if all scores are
repeated equally often.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum, hypot, sqrt
from typing import TYPE_CHECKING, NamedTuple

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

if TYPE_CHECKING:
    Question = tuple[tuple[float, int], ...]
    """The scores of a question's tries, in their order, each with how many tries have it."""

_BY_CHANCE, _HALF, _LEAST, _CLOSE = 0.5, 0.5, 1e-30, 1e-13


def interval_of_questions(
    questions: Mapping[Question, int], kind: str, bounds: Ends = UNIT, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the interval of a percentile of scores by question; see :func:`rag_eval.stats.intervals.interval`."""
    if not questions:
        return None
    low, high = _around(questions, percentile(kind), confidence)
    ends = bounds[0] if low is None else low, bounds[1] if high is None else high
    small = small_sample(sum(questions.values()), kind, bounds, confidence) or None in ends
    return Interval(settled(ends[0]), settled(ends[1]), "order-statistics-of-questions", small)


def interval_of_totals(totals: UnitTotals, bounds: Ends = UNIT, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a mean from the rounded sum and the number of the scores of each question."""
    if not totals:
        return None
    sizes = {size for _, size in totals}
    if len(sizes) == 1 or None in bounds:
        return interval(_linear(totals), "mean", bounds, confidence)
    (low, high), tail = bounds, (1 - confidence) / 2
    ends = ratio_at_least(totals, low or 0.0, tail), ratio_at_most(totals, 1.0 if high is None else high, tail)
    return Interval(settled(ends[0]), settled(ends[1]), "gaffke-units", small=False)


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
    excess = among / (number - 1) - (_BY_CHANCE if number > 2 else 0.0) * max(0.0, within - among) / freedom
    return BetweenRuns(excess / n, number) if round(excess, DECIMALS) > 0 else None


def with_runs(interval: Interval, value: float, runs: BetweenRuns | None, bounds: Ends, confidence: float) -> Interval:
    """Return the interval of a mean with the variance between runs added, by Student's quantile for so many runs."""
    if runs is None:
        return interval
    half = student_upper((1 - confidence) / 2, runs.runs - 1) * sqrt(runs.variance)
    least, greatest = bounds
    low = None if interval.low is None else value - sqrt(max(0.0, value - interval.low) ** 2 + half**2)
    high = None if interval.high is None else value + sqrt(max(0.0, interval.high - value) ** 2 + half**2)
    low = low if low is None or least is None else max(low, least)
    high = high if high is None or greatest is None else min(high, greatest)
    return interval._replace(low=settled(low), high=settled(high), method=f"{interval.method}-runs")


def p_with_runs(p: float, difference: float, runs: BetweenRuns | None) -> float:
    """Return the one-sided p of a difference with the variance between runs added, as in the interval.

    At the returned level the distance that p alone needs, and Student's quantile for so many runs, make up the
    difference in quadrature.
    """
    if runs is None or p >= _HALF or difference <= 0:
        return p
    low, high = max(p, _LEAST), _HALF
    alone, error = difference / -normal_quantile(low), sqrt(runs.variance)
    while high - low > _CLOSE * high:
        level = (low + high) / 2
        reach = hypot(normal_quantile(level) * alone, student_upper(level, runs.runs - 1) * error)
        low, high = (level, high) if reach > difference else (low, level)
    return float(f"{high:.9g}")


def effect_with_runs(effect: float, level: float, power: float, runs: BetweenRuns) -> float:
    """Return the minimum detectable effect with the variance between runs added."""
    quantiles = student_upper(level, runs.runs - 1) + student_upper(1 - power, runs.runs - 1)
    return hypot(effect, quantiles * sqrt(runs.variance))


def auc_interval_of_questions(
    positives: Mapping[Question, int], negatives: Mapping[Question, int], confidence: float = CONFIDENCE
) -> Interval:
    """Return :func:`auc_interval` by question: repeats of one question count as one."""
    sides = positives, negatives
    return area_interval(area(*map(_scores, sides)), min(map(_effective, sides)), confidence)


def hit_rate_interval_of_questions(
    positives: Mapping[Question, int],
    negatives: Mapping[Question, int],
    false_alarms: float,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return :func:`rag_eval.stats.intervals.hit_rate_interval` by question."""
    half = 1 - (1 - confidence) / 2
    loose, strict = _around(negatives, 1 - false_alarms, half)
    most_hits = _hits(positives, lambda score: loose is None or score >= loose)
    least = _hits(positives, lambda score: strict is not None and score > strict)
    ends = ratio_at_least(least, 0.0, (1 - half) / 2), ratio_at_most(most_hits, 1.0, (1 - half) / 2)
    return Interval(settled(ends[0]), settled(ends[1]), "order-statistics-gaffke", small=strict is None)


def _linear(totals: UnitTotals) -> Counter[float]:
    """Return the mean of each question, or its contribution to the mean of all scores if questions differ in size.

    The latter are the mean and its residuals over the mean number of scores: they vary as the ratio does.
    """
    n, cases = sum(totals.values()), sum(size * count for (_, size), count in totals.items())
    ratio = fsum(total * count for (total, _), count in totals.items()) / cases
    equal_sizes = len({size for _, size in totals}) == 1
    effects: Counter[float] = Counter()
    for (total, size), count in totals.items():
        effects[total / size if equal_sizes else ratio + (total - ratio * size) * n / cases] += count
    return effects


class _Steps(NamedTuple):
    """The scores of a question, how many of its repeats score at most each, and the number of such questions."""

    scores: Sequence[float]
    reached: Sequence[int]
    questions: int


def _around(questions: Mapping[Question, int], share: float, confidence: float) -> tuple[float | None, float | None]:
    """Return the scores that enclose a percentile, by the share of repeats that score at most each.

    The share of repeats up to a score is a mean over the questions, and has the bounds of such a mean.
    """
    grid, tail = sorted({score for scores in questions for score, _ in scores}), (1 - confidence) / 2
    steps = [_steps(scores, count) for scores, count in questions.items()]

    def first(condition: Callable[[UnitTotals], bool]) -> int:
        low, high = -1, len(grid)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if condition(_up_to(steps, grid[middle])) else (middle, high)
        return high

    below = first(lambda cases: ratio_at_most(cases, 1.0, tail) > share)
    above = first(lambda cases: ratio_at_least(cases, 0.0, tail) >= share)
    nothing = ratio_at_most(_up_to(steps, grid[0] - 1), 1.0, tail) > share
    return None if nothing else grid[below], grid[above] if above < len(grid) else None


def _steps(scores: Question, count: int) -> _Steps:
    reached = [0]
    for _, times in scores:
        reached.append(reached[-1] + times)
    return _Steps([score for score, _ in scores], reached, count)


def _up_to(steps: Sequence[_Steps], score: float) -> UnitTotals:
    reached_scores: Counter[tuple[float, int]] = Counter()
    for scores, reached, weight in steps:
        reached_scores[reached[bisect_right(scores, score)], reached[-1]] += weight
    return reached_scores


def _hits(questions: Mapping[Question, int], hits: Callable[[float], bool]) -> UnitTotals:
    hit_scores: Counter[tuple[float, int]] = Counter()
    for scores, count in questions.items():
        hit_scores[sum([times for score, times in scores if hits(score)]), sum([times for _, times in scores])] += count
    return hit_scores


def _scores(questions: Mapping[Question, int]) -> Counter[float]:
    scores_of_questions: Counter[float] = Counter()
    for scores, count in questions.items():
        for score, times in scores:
            scores_of_questions[score] += times * count
    return scores_of_questions


def _effective(questions: Mapping[Question, int]) -> float:
    """Return how many questions of equal size carry the same information (Kish's effective size)."""
    sizes = [(sum([times for _, times in scores]), count) for scores, count in questions.items()]
    return sum(size * count for size, count in sizes) ** 2 / sum(size * size * count for size, count in sizes)
