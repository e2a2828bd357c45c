"""Cases that depend on one another and count together: those of a question in several runs, or of a cluster.

A unit is the results of one question or cluster: the results of its repeats, in order, with their counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice, repeat
from math import fsum
from operator import attrgetter, itemgetter, mul, ne
from typing import Any, NamedTuple

from rag_eval.gates.results import Layouts, Question, identities
from rag_eval.gates.selection import clusters
from rag_eval.metrics import Measure
from rag_eval.scoring.aggregations import FOLDS, MEANS, bounds, enclosed_units, from_mean
from rag_eval.stats import clustered
from rag_eval.stats.differences import Units
from rag_eval.stats.intervals import Interval
from rag_eval.stats.tally import DECIMALS, Shown

Unit = tuple[tuple[Any, int], ...]
Total = tuple[float, int]
RunSums = tuple[int, float, float]
ColumnScores = tuple[Shown | None, ...]
_QID, _RUN, _SCORES = map(attrgetter, ("qid", "run", "scores"))
_ONE = 10**15


def has_several_runs(cases: Iterable[Question]) -> bool:
    """Return whether there are several runs, so that a question may have several cases."""
    runs = map(_RUN, cases)
    return any(map(ne, repeat(next(runs, None)), runs))


def count_questions(cases: Iterable[Question]) -> int:
    """Return the number of questions of cases."""
    return len(set(map(_QID, cases)))


class GroupedCases:
    """The cases of several runs by question, or of one run by the cluster that a gold field names."""

    def __init__(self, cases: Sequence[Question], cluster: str = "") -> None:
        self._cases, self._cluster = cases, cluster
        self._layouts = Layouts(map(_SCORES, cases))
        self._columns: dict[str, tuple[bool, ColumnScores]] = {}
        self._keys: dict[tuple[bool, ColumnScores], tuple[bool, ColumnScores]] = {}
        self._distinct: dict[bool, _Distinct] = {}
        self._by_run: dict[bool, Counter[tuple[str | None, int]]] = {}
        self._units: dict[bool, list[_Unit]] = {}

    @cached_property
    def by_question(self) -> GroupedCases:
        """Return the same cases without clusters."""
        return GroupedCases(self._cases) if self._cluster else self

    def scores(self, column: str) -> tuple[bool, ColumnScores]:
        """Return the key on which a column's results depend, for the same cases; equal keys are one object."""
        if column not in self._columns:
            shared = self._layouts.shares(column)
            key = shared, tuple([scores.get(column) for scores in self._distinct_of(shared).scores])
            self._columns[column] = self._keys.setdefault(key, key)
        return self._columns[column]

    def column(self, column: str) -> Counter[Unit]:
        """Return the scores of each question in a column; questions without a score are left out."""
        shared, scores = self.scores(column)
        return _units_of_scores(self._units_of(shared), scores)

    def totals(self, column: str) -> Counter[Total]:
        """Count the questions by the sum (to twelve decimals) and the number of their scores, if they have any."""
        shared, scores = self.scores(column)
        applies = [score is not None for score in scores]
        whole = [0 if score is None else round(score * _ONE) for score in scores]  # type: ignore[arg-type]
        groups: Counter[Total] = Counter()
        for at, times, count in self._units_of(shared):
            if size := sum(map(mul, at(applies), times)):
                groups[round(sum(map(mul, at(whole), times)) / _ONE, DECIMALS), size] += count
        return groups

    def runs(self, column: str) -> list[RunSums]:
        """Return count, sum and sum of squares of each run's scores in a column; nothing for a single run."""
        shared, scores = self.scores(column)
        if shared not in self._by_run:
            names = map(list(map(_RUN, self._cases)).__getitem__, self._order.places)
            self._by_run[shared] = Counter(zip(names, self._distinct_of(shared).cases, strict=True))
        by_run: dict[str | None, list[tuple[float, int]]] = {}
        for (run, position), count in self._by_run[shared].items():
            score = scores[position]
            if score is not None:
                by_run.setdefault(run, []).append((float(score), count))  # type: ignore[arg-type]  # no labelled one
        return [
            (
                sum(n for _, n in scores_of_run),
                fsum(score * n for score, n in scores_of_run),
                fsum(score * score * n for score, n in scores_of_run),
            )
            for scores_of_run in by_run.values()
        ]

    def interval(self, measure: Measure, confidence: float) -> Interval | None:
        """Return the interval of a metric's value; None if it has none."""
        if not FOLDS[measure.fold].estimates or measure.metric.level == "run":
            return None
        if measure.fold not in MEANS:
            return enclosed_units(measure, self.column(measure.column), confidence)
        limits, by_run = bounds(measure), self.runs(measure.column)
        interval = clustered.interval_of_totals(self.totals(measure.column), limits, confidence)
        if interval and len(by_run) > 1:
            runs = clustered.between_runs(self.by_question.totals(measure.column), by_run)
            value = fsum(total for _, total, _ in by_run) / sum(n for n, _, _ in by_run)
            interval = clustered.with_runs(interval, value, runs, limits, confidence)
        return from_mean(measure, interval)

    @cached_property
    def _order(self) -> _Order:
        return _Order.of(names(self._cases, self._cluster))

    def _distinct_of(self, shared: bool) -> _Distinct:
        if shared not in self._distinct:
            scores = list(map(_SCORES, self._cases))
            keys = list(identities(scores, shared))
            known = dict(zip(keys, scores, strict=True))
            positions = {key: index for index, key in enumerate(known)}
            cases = map(positions.__getitem__, map(keys.__getitem__, self._order.places))
            self._distinct[shared] = _Distinct(list(known.values()), list(cases))
        return self._distinct[shared]

    def _units_of(self, shared: bool) -> list[_Unit]:
        if shared not in self._units:
            units = _units(self._distinct_of(shared).cases, self._order.sizes)
            self._units[shared] = [_split(*item) for item in units.items()]
        return self._units[shared]


class _Order(NamedTuple):
    """The indexes of cases, grouped by question, and the number of cases of each question."""

    places: Sequence[int]
    sizes: Sequence[int]

    @classmethod
    def of(cls, names_of_cases: Sequence[str]) -> _Order:
        """Return the order of cases by name."""
        positions = sorted(
            range(len(names_of_cases)), key=names_of_cases.__getitem__
        )  # usually they are in order, which is quick to check
        return cls(positions, [size for _, size in sorted(Counter(names_of_cases).items())])


class _Distinct(NamedTuple):
    """The distinct scores of cases, and the index among them for each case, question by question."""

    scores: Sequence[Mapping[str, Shown]]
    cases: Sequence[int]


class _Unit(NamedTuple):
    """The results of one question's repeats.

    ``at`` takes the items at the indexes of their scores out of a list, as a tuple. ``times`` has the number of repeats
    with each, and ``questions`` the number of such questions.
    """

    at: Callable[[Sequence[Any]], tuple[Any, ...]]
    times: tuple[int, ...]
    questions: int


def _units(outcomes: Iterable[Any], sizes: Iterable[int], key: Callable[[Any], Any] | None = None) -> Counter[Unit]:
    """Count the results of each question's repeats; ``key`` sorts them."""
    rest = iter(outcomes)
    groups = [Counter(islice(rest, size)) for size in sizes]
    return Counter([tuple(sorted(group.items(), key=key)) for group in groups])


def names(cases: Iterable[Question], cluster: str = "") -> list[str]:
    """Return the group of each case: its cluster if there is one, otherwise its question."""
    return clusters(cases, cluster) if cluster else list(map(_QID, cases))


def units(
    cases: Iterable[Question], pairs: Iterable[tuple[Shown | None, Shown | None]], cluster: str = ""
) -> Units | None:
    """Return the pairs of cases as tests swap them; None if each is the only one of its question or cluster."""
    known = [(case, pair) for case, pair in zip(cases, pairs, strict=True) if pair != (None, None)]
    order = _Order.of(names([case for case, _ in known], cluster))
    grouped = _units([known[index][1] for index in order.places], order.sizes, repr)
    return Units(grouped) if any(sum([times for _, times in unit]) > 1 for unit in grouped) else None


def _split(unit: Unit, questions: int) -> _Unit:
    positions, times = zip(*unit, strict=True)
    at = itemgetter(*positions) if len(positions) > 1 else itemgetter(slice(positions[0], positions[0] + 1))
    return _Unit(at, times, questions)


def _units_of_scores(grouped: Iterable[_Unit], scores: ColumnScores) -> Counter[Unit]:
    """Replace indexes by scores in units."""
    units: Counter[Unit] = Counter()
    for at, times, questions in grouped:
        counts: dict[Shown | None, int] = {}
        for score, count in zip(at(scores), times, strict=True):
            counts[score] = counts.get(score, 0) + count
        counts.pop(None, None)
        if counts:
            units[tuple(sorted(counts.items()))] += questions
    return units
