"""The trend of metrics over earlier reports, and drift that no single step shows.

Values are compared only under the same contract, and case by case only under the same gold item: the newest report
with the oldest, with the best, and each one with the one before it.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, starmap, takewhile

from rag_eval.judging.evidence import Baseline, Evidence
from rag_eval.judging.gates import Gate, Statistics
from rag_eval.judging.regression import compared, comparison
from rag_eval.metrics import find, measure
from rag_eval.reference import CEILINGS, FLOORS
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rag_eval.judging.gates import Comparison
    from rag_eval.judging.results import MetricResult, Question
    from rag_eval.report import Report
    from rag_eval.scoring.scorecard import Completeness
    from rag_eval.tally import Shown

ALPHA = 0.05
_ALONE = Statistics(alpha=str(ALPHA), correction="none")


class Point(NamedTuple):
    """What history keeps of a report. ``label`` is its file or commit; ``questions`` have the wanted scores alone."""

    label: str
    metrics: Mapping[str, MetricResult]
    contracts: Mapping[str, str]
    questions: tuple[Question, ...]
    completeness: Completeness
    narrowed: bool = False  # questions that it lacks may have been left aside


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

    ``worsening`` is positive for the worse; ``p`` is that of the one-sided paired test that it is none, corrected as
    the field of :class:`Series` says.
    """

    before: str
    after: str
    old: float
    new: float
    worsening: float
    n: int
    p: float

    @property
    def worse(self) -> bool:
        """Whether it is worse by more than chance explains."""
        return self.worsening > 0 and self.p <= ALPHA


class Uncompared(NamedTuple):
    """Why the newest reading is not held against so many earlier ones of the same contract."""

    why: str
    readings: int


class Series(NamedTuple):
    """A metric over all points, oldest first.

    ``oldest`` and ``best`` hold the newest reading against the oldest and the best comparable one; ``p`` is corrected
    for the number of metrics (Holm), that of ``best`` also for the number of readings it was picked from. ``step`` is
    the largest worsening from one comparable reading to the next that is beyond chance, or the largest of all where
    none is, its ``p`` as a gate saw it at the time: uncorrected. ``uncompared`` are the readings before ``oldest``.
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
    return Point(label, metrics, report.contracts, questions, report.completeness, report.scope is not None)


def history(points: Sequence[Point], names: Sequence[str]) -> list[Series]:
    """The series of each metric over points, oldest first; their tests against the oldest are corrected for all."""
    golds = [_gold_change(*pair) for pair in pairwise(points)]
    pairs = _Pairs(points)
    found = [_series(name, points, [None, *golds], pairs) for name in names]
    return _corrected(found)


class _Pairs:
    """The evidence of two points, made once for all metrics."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._known: dict[tuple[int, int], Evidence] = {}
        self._tested: dict[tuple[str, int, int], Contrast | None] = {}

    def of(self, old: int, new: int) -> Evidence:
        if (old, new) not in self._known:
            before, now = self._points[old], self._points[new]
            own = now.questions, now.metrics, now.completeness, now.contracts
            self._known[old, new] = Evidence(*own, Baseline(before.questions, before.contracts))
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

    def tested(self, name: str, old: int, new: int) -> Contrast | None:
        """The same with the p of the paired test; None where no case is shared."""
        if (name, old, new) not in self._tested:
            self._tested[name, old, new] = self._test(name, old, new)
        return self._tested[name, old, new]

    def _test(self, name: str, old: int, new: int) -> Contrast | None:
        gate = Gate(name, "max_drop" if measure(name).metric.better == "higher" else "max_rise", "0")
        found = next(compared([gate], self.of(old, new), _ALONE)).comparison
        if found is None or found.baseline is None or found.value is None:
            return None
        own = found.baseline, found.value, found.worsening or 0.0, found.n
        return Contrast(self._points[old].label, self._points[new].label, *own, 1.0 if found.p is None else found.p)


def _series(name: str, points: Sequence[Point], golds: Sequence[GoldDiff | None], pairs: _Pairs) -> Series:
    better = measure(name).metric.better
    there = [place for place, one in enumerate(points) if _value(one, name) is not None]
    newest = points[there[-1]].contracts.get(name) if there else None
    series = Series(name, better, tuple(_readings(name, points, golds, newest)))
    alike = [place for place in there if points[place].contracts.get(name) == newest]
    if len(alike) < 2:
        return series
    *earlier, last = alike
    return series._replace(
        oldest=_first(pairs.tested(name, old, last) for old in earlier),
        uncompared=tuple(_uncompared(name, earlier, last, pairs)),
        best=_of_best(name, points, earlier, last, pairs),
        step=_largest(name, alike, pairs),
    )


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
    passed = takewhile(lambda old: pairs.tested(name, old, last) is None, earlier)
    return starmap(Uncompared, Counter(pairs.why(name, old, last) for old in passed).items())


def _of_best(name: str, points: Sequence[Point], earlier: Sequence[int], last: int, pairs: _Pairs) -> Contrast | None:
    """Against the best of the earlier ones; to have been picked counts against it."""
    sign = -1 if measure(name).metric.better == "higher" else 1
    ranked = sorted(earlier, key=lambda place: sign * (_value(points[place], name) or 0.0))
    found = _first(pairs.tested(name, old, last) for old in ranked)
    return found._replace(p=min(1.0, found.p * len(earlier))) if found else None


def _largest(name: str, alike: Sequence[int], pairs: _Pairs) -> Contrast | None:
    """The largest step that is worse beyond chance: a larger one may be over few cases, and hides none behind it."""
    steps = [(pairs.moved(name, old, new), old, new) for old, new in pairwise(alike)]
    ranked = sorted(((found.worsening or 0.0, old, new) for found, old, new in steps if found), reverse=True)
    tested = (pairs.tested(name, old, new) for worsening, old, new in ranked if worsening > 0)
    beyond = _first(one for one in tested if one and one.worse)
    return beyond or (pairs.tested(name, *ranked[0][1:]) if ranked else None)


def _first(found: Iterator[Contrast | None]) -> Contrast | None:
    return next((one for one in found if one is not None), None)


def _corrected(found: Sequence[Series]) -> list[Series]:
    """The series with the p of ``oldest`` and of ``best`` corrected for the number of metrics, each kind by itself."""
    oldest = _adjusted([one.oldest for one in found])
    best = _adjusted([one.best for one in found])
    return [one._replace(oldest=old, best=top) for one, old, top in zip(found, oldest, best, strict=True)]


def _adjusted(contrasts: Sequence[Contrast | None]) -> list[Contrast | None]:
    from rag_eval.stats import holm

    ps = iter(holm([one.p for one in contrasts if one is not None]))
    return [one if one is None else one._replace(p=next(ps)) for one in contrasts]


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
