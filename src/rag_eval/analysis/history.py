"""The trend of metrics over earlier reports, and drift that no single step shows.

Values are compared only under the same contract, and case by case only under the same gold item: the newest report
with the oldest, with the best, and each one with the one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, starmap, takewhile
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.gates.gate_inputs import Baseline, Evidence
from rag_eval.gates.policy import Statistics
from rag_eval.gates.regression import comparison, contrasts
from rag_eval.metrics import find, measure
from rag_eval.scoring.reference import CEILINGS, FLOORS

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Comparison
    from rag_eval.gates.results import MetricResult, Question
    from rag_eval.scoring.scorecard import Completeness
    from rag_eval.stats.tally import Shown


class Point(NamedTuple):
    """What history keeps of a report. ``label`` is its file or commit; ``questions`` have the wanted scores alone."""

    label: str
    metrics: Mapping[str, MetricResult]
    contracts: Mapping[str, str]
    questions: tuple[Question, ...]
    completeness: Completeness
    narrowed: bool = False  # questions that it lacks may have been left aside
    statistics: Statistics = Statistics()


class GoldDiff(NamedTuple):
    """How many gold items differ from those of the point before: with other bytes, no longer there, new."""

    changed: int
    gone: int
    new: int


class Reading(NamedTuple):
    """A metric at a point: its value over ``n`` cases with its 95 % interval; None where it has none.

    ``comparable`` says whether it was measured under the newest reading's contract, ``broken`` whether under another
    than the reading before. ``gold`` is what changed in the gold since the point before, None where nothing did.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    comparable: bool
    broken: bool
    gold: GoldDiff | None


class Contrast(NamedTuple):
    """One reading held against an earlier one, over the ``n`` cases that both have under the same gold.

    ``worsening`` is positive for the worse, ``low`` and ``high`` are its interval; ``p`` is that of the two-sided
    paired test, corrected as the field of :class:`Series` says, ``result`` what follows from it.
    """

    before: str
    after: str
    old: float
    new: float
    worsening: float
    low: float | None
    high: float | None
    n: int
    p: float
    result: str

    @property
    def worse(self) -> bool:
        """Whether it is significantly worse."""
        return self.result == "worse"


class Uncompared(NamedTuple):
    """Why the newest reading is not held against so many earlier ones of the same contract."""

    why: str
    readings: int


class Series(NamedTuple):
    """A metric over all points, oldest first.

    ``oldest`` and ``best`` compare the newest reading with the oldest and the best comparable one; ``p`` is corrected
    for the number of metrics (Holm), that of ``best`` also for the number of readings it was picked from. ``step`` is
    the largest significant worsening from one comparable reading to the next, or the largest of all if none is; its
    ``p`` is uncorrected. ``uncompared`` are the readings before ``oldest``.
    """

    metric: str
    better: str
    readings: tuple[Reading, ...]
    oldest: Contrast | None = None
    best: Contrast | None = None
    step: Contrast | None = None
    uncompared: tuple[Uncompared, ...] = ()

    @property
    def slow(self) -> bool:
        """Whether the newest is worse than the oldest or the best, and no single step was worse beyond chance."""
        worse = any(one is not None and one.worse for one in (self.oldest, self.best))
        return worse and not (self.step is not None and self.step.worse)

    @property
    def values(self) -> list[float]:
        """The values that there are."""
        return [reading.value for reading in self.readings if reading.value is not None]


def gated(report: Report) -> list[str]:
    """The metrics that a report's gates are about, else those of the reference scorer, as far as it has them."""
    names = dict.fromkeys(gate.name for gate in report.gates if gate.name in report.metrics and find(gate.name))
    return list(names) or [name for name in (FLOORS | CEILINGS).values() if name in report.metrics]


def point(label: str, report: Report, names: Sequence[str]) -> Point:
    """The point of a report, without the scores of other metrics: a folder may hold hundreds of reports."""
    wanted = {found.column for name in names if (found := find(name))}
    questions = tuple(case._replace(scores=_only(case.scores, wanted)) for case in report.questions)
    metrics = {name: result for name, result in report.metrics.items() if name in names}
    terms = report.completeness, report.scope is not None, report.statistics
    return Point(label, metrics, report.contracts, questions, *terms)


def history(points: Sequence[Point], names: Sequence[str]) -> list[Series]:
    """The series of each metric over points, oldest first; their tests against the oldest are corrected for all."""
    golds = [None, *(_gold_change(*pair) for pair in pairwise(points))]
    pairs = _Pairs(points)
    found = [_series(name, points, golds, pairs) for name in names]
    spots = [_spots(one.metric, points, pairs) for one in found]
    oldest = pairs.tested([(one.metric, *spot[:2]) for one, spot in zip(found, spots, strict=True) if spot])
    best = pairs.tested(
        [(one.metric, spot.best, spot.newest) for one, spot in zip(found, spots, strict=True) if spot],
        [spot.among for spot in spots if spot],  # to have been picked counts against it
    )
    tested = zip(oldest, best, strict=True)
    for place, spot in enumerate(spots):
        if spot:
            first, top = next(tested)
            found[place] = found[place]._replace(oldest=first, best=top)
    return found


class _Spots(NamedTuple):
    """The places of the points that the newest is compared with: the oldest and the best of so many."""

    oldest: int
    newest: int
    best: int
    among: int


def _spots(name: str, points: Sequence[Point], pairs: _Pairs) -> _Spots | None:
    *earlier, last = _alike(name, points) or [0]
    shared = [old for old in earlier if pairs.moved(name, old, last)]
    if not shared:
        return None
    sign = -1 if measure(name).metric.better == "higher" else 1
    best = min(shared, key=lambda place: sign * (_value(points[place], name) or 0.0))
    return _Spots(shared[0], last, best, len(earlier))


def _alike(name: str, points: Sequence[Point]) -> list[int]:
    """The places of the points with a value under the newest one's contract."""
    there = [place for place, one in enumerate(points) if _value(one, name) is not None]
    return [place for place in there if points[place].contracts.get(name) == points[there[-1]].contracts.get(name)]


class _Pairs:
    """The evidence of two points, made once for all metrics."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self.statistics = points[-1].statistics if points else Statistics()
        self.alpha = float(self.statistics.alpha)
        self._known: dict[tuple[int, int], Evidence] = {}
        self._tested: dict[tuple[str, int, int], Contrast | None] = {}

    def of(self, old: int, new: int) -> Evidence:
        if (old, new) not in self._known:
            before, now = self._points[old], self._points[new]
            own = now.questions, now.metrics, now.completeness, now.contracts
            earlier = Baseline(before.questions, before.contracts)
            self._known[old, new] = Evidence(*own, earlier, cluster=self.statistics.cluster)
        return self._known[old, new]

    def moved(self, name: str, old: int, new: int) -> Comparison | None:
        """Both values over the cases that both points have under the same gold, untested."""
        return comparison(name, self.of(old, new).pairs(name))

    def why(self, name: str, old: int, new: int) -> str:
        """Why the two cannot be compared."""
        if not (self._points[old].questions and self._points[new].questions):
            return "values alone, without questions, cannot be paired"
        if self.of(old, new).new_runs:
            return "it has runs that they lack; the same runs need the same names in every report"
        held = self.of(old, new).pairs(name)
        return "no question has a score in both" if held else "no question is in both under the same gold"

    def tested(self, asked: Sequence[tuple[str, int, int]], times: Sequence[int] = ()) -> list[Contrast | None]:
        """Test metrics of two points each as one family; ``times`` is how many points each was picked from."""
        found = contrasts([(name, self.of(old, new)) for name, old, new in asked], self.alpha)
        for place, picked in enumerate(times):
            one = found[place]
            if one and one.adjusted is not None:
                found[place] = one._replace(adjusted=min(1.0, one.adjusted * picked))
        return [self._contrast(one, old, new) for one, (_, old, new) in zip(found, asked, strict=True)]

    def alone(self, name: str, old: int, new: int) -> Contrast | None:
        """The same of one metric, uncorrected."""
        if (name, old, new) not in self._tested:
            [self._tested[name, old, new]] = self.tested([(name, old, new)])
        return self._tested[name, old, new]

    def _contrast(self, found: Comparison | None, old: int, new: int) -> Contrast | None:
        if found is None or found.baseline is None or found.value is None or found.p is None:
            return None
        own = found.baseline, found.value, found.worsening or 0.0, found.low, found.high, found.n
        p = 1.0 if found.adjusted is None else found.adjusted
        return Contrast(self._points[old].label, self._points[new].label, *own, p, found.result)


def _series(name: str, points: Sequence[Point], golds: Sequence[GoldDiff | None], pairs: _Pairs) -> Series:
    alike = _alike(name, points)
    newest = points[alike[-1]].contracts.get(name) if alike else None
    series = Series(name, measure(name).metric.better, tuple(_readings(name, points, golds, newest)))
    if len(alike) < 2:
        return series
    uncompared = tuple(_uncompared(name, alike[:-1], alike[-1], pairs))
    return series._replace(uncompared=uncompared, step=_largest(name, alike, pairs))


def _readings(
    name: str, points: Sequence[Point], golds: Sequence[GoldDiff | None], newest: str | None
) -> Iterator[Reading]:
    last: str | None = None
    for one, gold in zip(points, golds, strict=True):
        found, own = one.metrics.get(name), one.contracts.get(name)
        broken = last is not None and own is not None and own != last
        last = own or last
        value = (found.value, found.low, found.high, found.n) if found else (None, None, None, 0)
        yield Reading(one.label, *value, own is not None and own == newest, broken, gold)


def _uncompared(name: str, earlier: Sequence[int], last: int, pairs: _Pairs) -> Iterator[Uncompared]:
    passed = takewhile(lambda old: pairs.moved(name, old, last) is None, earlier)
    return starmap(Uncompared, Counter(pairs.why(name, old, last) for old in passed).items())


def _largest(name: str, alike: Sequence[int], pairs: _Pairs) -> Contrast | None:
    """The largest step that is worse beyond chance: a larger one may be over few cases, and hides none behind it."""
    steps = [(pairs.moved(name, old, new), old, new) for old, new in pairwise(alike)]
    ranked = sorted(((found.worsening or 0.0, old, new) for found, old, new in steps if found), reverse=True)
    tested = (pairs.alone(name, old, new) for worsening, old, new in ranked if worsening > 0)
    beyond = _first(one for one in tested if one and one.worse)
    return beyond or (pairs.alone(name, *ranked[0][1:]) if ranked else None)


def _first(found: Iterator[Contrast | None]) -> Contrast | None:
    return next((one for one in found if one is not None), None)


def _gold_change(before: Point, after: Point) -> GoldDiff | None:
    old, new = ({case.qid: case.gold_sha256 for case in one.questions} for one in (before, after))
    both = old.keys() & new.keys()
    changed = sum(old[qid] != new[qid] for qid in both)
    whole = not (before.narrowed or after.narrowed)
    found = GoldDiff(changed, *(len(side) - len(both) if whole else 0 for side in (old, new)))
    return found if any(found) else None


def _value(one: Point, name: str) -> float | None:
    found = one.metrics.get(name)
    return found.value if found else None


def _only(scores: Mapping[str, Shown], wanted: set[str]) -> dict[str, Shown]:
    return {name: score for name, score in scores.items() if name in wanted}
