"""Folds: aggregations of the scores of all cases. Each is a function of the multiset, so the order does not matter.

``f1`` takes 0/1 scores of the true positives (1), false positives and false negatives (0) of a classifier. ``p50``,
``p95`` and ``max`` are percentiles by nearest rank. ``auc``, ``fpr1`` and ``fpr5`` take labelled scores ``(score,
positive)``: the area under the ROC curve, ties counted half, and the highest true positive rate at a false positive
rate of at most 1 % or 5 %, over all thresholds "at least this score".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, fsum
from typing import Any

from msgspec import Struct

from rag_eval.metrics import Measure, Metric
from rag_eval.stats import intervals, paired
from rag_eval.stats.agreement import auc_interval, doubled_wins, hit_rate_interval
from rag_eval.stats.intervals import BetweenRuns, Interval, interval
from rag_eval.stats.tally import DECIMALS, JsonScore, Score, Tally, Value, as_float, mean, tally

Pair = tuple[JsonScore | None, JsonScore | None]
Unit = tuple[tuple[Any, int], ...]


class Fold(Struct, frozen=True):
    """A fold: its description, its function, and whether its value is an estimate.

    Values that are not estimates (a sum, the maximum) have no interval.
    """

    words: str
    value: Callable[[Tally], Value]
    estimates: bool = True


def total(scores: Tally) -> Value:
    """Return the sum, rounded to twelve decimals if a score is a float."""
    average = mean(scores)
    if average.number is None or isinstance(average.number, Fraction):
        return average._replace(number=None if average.number is None else average.number * average.n, hits=None)
    exact = fsum(as_float(score) * count for score, count in scores.items())
    return Value(round(exact, DECIMALS), average.n)


def percentile(percent: int) -> Callable[[Tally], Value]:
    """Return the smallest score that ``percent`` of the cases do not exceed."""

    def value(scores: Tally) -> Value:
        n = scores.total()
        rank, passed = ceil(n * percent / 100), 0
        for score, count in sorted((as_float(score), count) for score, count in scores.items()):
            passed += count
            if passed >= rank:
                return Value(round(score, DECIMALS), n)
        return Value(None, 0)

    return value


def f1(scores: Tally) -> Value:
    """Return F1 of a classifier whose true positives score 1, its false positives and false negatives 0."""
    average = mean(scores)
    if average.number is None:
        return average
    return Value(2 * average.number / (1 + average.number), average.n)


def auc(scores: Tally) -> Value:
    """Return the share of pairs of a positive and a negative in which the positive scores higher, ties counted half."""
    positives, negatives = sides(scores)
    if not positives or not negatives:
        return Value(None, 0)
    doubled, pairs = doubled_wins(positives, negatives)
    return Value(Fraction(doubled, 2 * pairs), scores.total())


def hit_rate(false_alarms: Fraction) -> Callable[[Tally], Value]:
    """Return the highest share of positives at a threshold that at most ``false_alarms`` of the negatives reach."""

    def value(scores: Tally) -> Value:
        positives, negatives = sides(scores)
        if not positives or not negatives:
            return Value(None, 0)
        reached = hits = 0
        for score in sorted(positives.keys() | negatives.keys(), reverse=True):
            reached += negatives[score]
            if reached > false_alarms * negatives.total():
                break
            hits += positives[score]
        return Value(Fraction(hits, positives.total()), scores.total())

    return value


def groups(scores: Iterable[Score] | Tally) -> list[Fraction]:
    """Return the share of right ones in each group of labelled scores; the number of a score names the group."""
    pair = sides(scores)
    return [Fraction(pair[0][name], pair[0][name] + pair[1][name]) for name in sorted(pair[0].keys() | pair[1])]


def all_right(scores: Tally) -> Value:
    """Return the share of groups in which all are right."""
    shares = groups(scores)
    return Value(Fraction(shares.count(Fraction(1)), len(shares)) if shares else None, len(shares))


def mean_of_groups(scores: Tally) -> Value:
    """Return the mean, over groups, of the share that is right."""
    shares = groups(scores)
    return Value(round(float(sum(shares) / len(shares)), DECIMALS) if shares else None, len(shares))


FOLDS: Mapping[str, Fold] = {
    "mean": Fold("the mean", mean),
    "total": Fold("the sum", total, estimates=False),
    "f1": Fold("F1: twice the sum over the sum and the number of cases", f1),
    "p50": Fold("the median, by nearest rank", percentile(50)),
    "p95": Fold("the 95th percentile, by nearest rank", percentile(95)),
    "max": Fold("the maximum", percentile(100), estimates=False),
    "auc": Fold("the area under the ROC curve", auc),
    "fpr1": Fold("the true positive rate at a false positive rate of at most 1 %", hit_rate(Fraction(1, 100))),
    "fpr5": Fold("the true positive rate at a false positive rate of at most 5 %", hit_rate(Fraction(5, 100))),
    "all": Fold("the share of groups in which all are right", all_right),
    "turns": Fold("the mean, over groups, of the share that is right", mean_of_groups),
}
GROUPED = ("all", "turns")
RANKED = {"p50": 50, "p95": 95, "max": 100}
"""The percentile of each fold."""
MEANS = ("mean", "f1")
"""Folds that rise and fall with the mean: the interval of the mean becomes theirs."""
ALARMS = {"fpr1": 0.01, "fpr5": 0.05}


def sides(scores: Iterable[Score] | Tally) -> tuple[Counter[float], Counter[float]]:
    """Split labelled scores into those of the positives and those of the negatives."""
    pair = Counter[float](), Counter[float]()
    for labelled, count in Counter(scores).items():
        score, positive = labelled  # type: ignore[misc]
        pair[not positive][score] += count
    return pair


def aggregate(measure: Measure, scores: Mapping[JsonScore, int]) -> Value:
    """Aggregate scores of a report: exact for 0/1 metrics, otherwise rounded to twelve decimals."""
    fold = FOLDS[measure.fold].value
    if measure.metric.scale == "rate":
        return fold(Tally({bool(score): count for score, count in scores.items()}))
    return fold(Tally(scores))


def confidence_interval(measure: Measure, scores: Mapping[JsonScore, int], confidence: float) -> Interval | None:
    """Return the interval of a value over its scores; None without scores, or if the value estimates nothing."""
    if not scores or not FOLDS[measure.fold].estimates or measure.metric.level == "run":
        return None
    if measure.fold in GROUPED:
        shares = Counter(share == 1 if measure.fold == "all" else float(share) for share in groups(Tally(scores)))
        return interval(shares, "rate" if measure.fold == "all" else "mean", (0.0, 1.0), confidence)
    if measure.metric.scale == "labelled":
        return interval_over_units(measure, {((score, 1),): count for score, count in scores.items()}, confidence)
    kind = "rate" if measure.metric.scale == "rate" and measure.fold in MEANS else measure.fold
    return from_mean(measure, interval(Counter(scores), kind, bounds(measure), confidence))  # type: ignore[arg-type]


def from_mean(measure: Measure, interval: Interval | None) -> Interval | None:
    """Return the interval of a figure from that of the mean, if it depends only on the mean."""
    if measure.fold != "f1" or interval is None:
        return interval
    low, high = [None if end is None else round(2 * end / (1 + end), DECIMALS) for end in (interval.low, interval.high)]
    return interval._replace(low=low, high=high)


def interval_over_units(measure: Measure, units: Mapping[Unit, int], confidence: float) -> Interval | None:
    """Return the interval of a figure other than a mean, over questions or clusters."""
    if measure.fold in GROUPED:
        return confidence_interval(measure, scores_of_units(units), confidence)
    if measure.metric.scale == "labelled":
        positives, negatives = _labelled(units)
        if not positives or not negatives:
            return None
        if measure.fold == "auc":
            return auc_interval(positives, negatives, confidence)
        return hit_rate_interval(positives, negatives, ALARMS[measure.fold], confidence)
    if measure.fold in MEANS:
        totals = Counter[tuple[float, int]]()
        for unit, count in units.items():
            totals[sum([score * times for score, times in unit]), sum([times for _, times in unit])] += count
        return from_mean(measure, intervals.interval_of_totals(totals, bounds(measure), confidence))
    return intervals.interval_of_questions(units, measure.fold, bounds(measure), confidence)


def bounds(measure: Measure) -> tuple[float, float | None]:
    """Return the smallest and the largest score; None without a limit."""
    return 0.0, measure.metric.top


def difference(
    measure: Measure, pairs: Counter[Pair] | paired.Units, confidence: float, runs: BetweenRuns | None = None
) -> Interval | None:
    """Return the interval of the first run's figure minus the second's; None if the figure estimates nothing.

    ``runs`` is the variance of the difference between several runs.
    """
    if not FOLDS[measure.fold].estimates or measure.metric.level == "run":
        return None
    if measure.fold == "mean":
        of_cases = paired.mean_difference(pairs, bounds(measure), confidence)  # type: ignore[arg-type]
        if runs is None:
            return of_cases
        moved = paired.effects(pairs, bounds(measure)).counts  # type: ignore[arg-type]
        value = fsum(effect * count for effect, count in moved.items()) / moved.total()
        top = measure.metric.top
        ends = (None, None) if top is None else (-top, top)
        return intervals.with_runs(of_cases, value, runs, ends, confidence)
    units_of_runs = [_units_of_run(pairs, side) for side in (0, 1)]
    scores_of_runs = [scores_of_units(units) for units in units_of_runs]
    if isinstance(pairs, paired.Units):
        enclosing = [interval_over_units(measure, units, confidence) for units in units_of_runs]
    else:
        enclosing = [confidence_interval(measure, scores, confidence) for scores in scores_of_runs]
    values = [aggregate(measure, scores).number for scores in scores_of_runs]
    if None in values or None in enclosing:
        return None
    return paired.other_difference((float(values[0]), float(values[1])), *enclosing)  # type: ignore[arg-type]


def _units_of_run(pairs: Counter[Pair] | paired.Units, side: int) -> Counter[Unit]:
    run: Counter[Unit] = Counter()
    for unit, count in paired.units_of(pairs).items():
        scores: Counter[Any] = Counter()
        for pair, times in unit:
            scores[pair[side]] += times
        del scores[None]
        if scores:
            run[tuple(sorted(scores.items()))] += count
    return run


def scores_of_units(units: Mapping[Unit, int]) -> Counter[Any]:
    """Return all scores of units."""
    scores: Counter[Any] = Counter()
    for unit, count in units.items():
        for score, times in unit:
            scores[score] += times * count
    return scores


def _labelled(questions: Mapping[Unit, int]) -> tuple[Counter[Unit], Counter[Unit]]:
    labelled: tuple[Counter[Unit], Counter[Unit]] = Counter(), Counter()
    for unit, count in questions.items():
        for side, label in zip(labelled, (True, False), strict=True):
            scores = tuple([(score, times) for (score, positive), times in unit if positive is label])
            if scores:
                side[scores] += count
    return labelled


def one_sided_p(fold: str, worse_first: Counter[Pair] | paired.Units, seed: bytes, *, level: float = 1.0) -> float:
    """Return the one-sided p of the paired test that the first run's figure is no larger; a score may be missing.

    ``worse_first`` has the number of cases with each pair of scores, or of units with each pairs: they are swapped
    together. If p is drawn, the number of draws allows it to be below ``level``.

    It is exact McNemar if every case has a 0/1 score on both sides, otherwise a permutation that swaps whole pairs. A
    percentile is tested as the rate of scores above the percentile of each case's lower score. Cases with only one
    score do not count for a percentile or an area. They count for F1: a case that is neither an error nor a true
    positive in one of the runs changes F1 as well.
    """
    if fold == "f1":
        return _chance_of_f1(worse_first, seed, level)
    if fold not in ("mean", "total") and paired.has_gaps(worse_first):
        worse_first = paired.complete(worse_first)
        sides = [[pair[side] for unit in worse_first for pair, _ in unit] for side in (0, 1)]
        if None in [_number(fold, side) for side in sides]:
            return 1.0
    if fold in RANKED:
        worse_first = paired.above_percentile(worse_first, RANKED[fold])  # type: ignore[arg-type]
        fold = "mean"
    if fold != "mean":
        return paired.permutation_p(worse_first, lambda side: _number(fold, side), seed, level=level)
    return paired.paired_p(worse_first, seed, level=level)  # type: ignore[arg-type]


def _chance_of_f1(pairs: Counter[Pair] | paired.Units, seed: bytes, level: float) -> float:
    """Swap the units that differ; the scores of the others stay unchanged."""
    moved = paired.Units()
    same: Counter[JsonScore | None] = Counter()
    for unit, count in paired.units_of(pairs).items():
        if any([a != b for (a, b), _ in unit]):
            moved[unit] = count
        else:
            same.update({a: times * count for (a, _), times in unit})

    def figure(scores: Sequence[JsonScore | None]) -> float | None:
        hits, errors = same[1] + scores.count(1), same[0] + scores.count(0)
        return 2 * hits / (2 * hits + errors) if hits or errors else None

    sides = [[pair[side] for unit in moved for pair, _ in unit] for side in (0, 1)]
    return paired.permutation_p(moved, figure, seed, level=level) if moved and None not in map(figure, sides) else 1.0


def _number(fold: str, scores: Iterable[JsonScore | None]) -> float | None:
    return FOLDS[fold].value(tally(scores)).as_float


def values_in_words(metric: Metric) -> list[tuple[str, str]]:
    """Return the names of a metric's values, each with its aggregation."""
    return [(f"{metric.name}{suffix}", FOLDS[fold].words) for suffix, fold in metric.folds.items()]
