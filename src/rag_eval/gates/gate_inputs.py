"""Evidence of gates: values, intervals and pairs of scores, over all cases or a slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import fsum
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from rag_eval.gates import dependent_cases
from rag_eval.gates.dependent_cases import GroupedCases
from rag_eval.gates.results import Layouts, MetricResult, Question, identities
from rag_eval.metrics import measure
from rag_eval.scoring import aggregations
from rag_eval.scoring.scorecard import Completeness
from rag_eval.stats.clustered import BetweenRuns, between_runs
from rag_eval.stats.differences import Units
from rag_eval.stats.intervals import Interval
from rag_eval.stats.tally import Shown, Value, weighed

Pair = tuple[Shown | None, Shown | None]
Pairs = Counter[Pair]
Scores = Mapping[str, Shown]
Key = tuple[str, str | None]
T = TypeVar("T")
CONFIDENCE = "0.95"
_QID, _RUN, _SLICES, _SCORES = map(attrgetter, ("qid", "run", "slices", "scores"))
_CASE = attrgetter("qid", "run")
_GOLD = attrgetter("qid", "gold_sha256")


class Baseline(NamedTuple):
    """An earlier run: its cases, and the fingerprint and the values of each metric.

    A run that was saved without its cases has only values. ``rerun`` is a second run of the same system.
    """

    questions: Sequence[Question]
    contracts: Mapping[str, str]
    metrics: Mapping[str, MetricResult] = {}
    rerun: Baseline | None = None


class RunEvidence:
    """A run, and its baseline if there is one.

    ``known`` are the grouped cases, if already computed. ``cluster`` names the gold field whose values group cases.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        metrics: Mapping[str, MetricResult],
        completeness: Completeness,
        contracts: Mapping[str, str],
        baseline: Baseline | None = None,
        grouped: GroupedCases | None = None,
        cluster: str = "",
    ) -> None:
        self.cluster = cluster
        self.questions, self.completeness, self.baseline = questions, completeness, baseline
        self._metrics, self._contracts = metrics, contracts
        self._columns: dict[tuple[str, str], Counter[Shown]] = {}
        self._pairs: dict[tuple[str, str], Pairs] = {}
        self._parts: dict[tuple[str, bool], tuple[list[Scores], list[int]]] = {}
        self._shared: dict[tuple[str, bool], _Both] = {}
        self._grouped: dict[str, GroupedCases] = {"": grouped} if grouped else {}
        self._intervals: dict[tuple[Any, ...], Interval | None] = {}
        self._units: dict[tuple[str, str], Units | None] = {}
        self.pairs_of_cases = pair_cases(baseline.questions, questions) if baseline else []
        """The cases of baseline and run under the same gold item."""

    @cached_property
    def rerun(self) -> RunEvidence | None:
        """Return the baseline's rerun, compared with the baseline: differences between them are noise."""
        before = self.baseline
        if before is None or before.rerun is None:
            return None
        again, earlier = before.rerun, before._replace(rerun=None)
        return RunEvidence(again.questions, {}, self.completeness, again.contracts, earlier, cluster=self.cluster)

    @cached_property
    def unpaired(self) -> int:
        """Return the number of questions in both without a pair, because their runs have other names."""
        if self.baseline is None or _single(self.baseline.questions, self.questions):
            return 0
        both = set(map(_GOLD, self.baseline.questions)).intersection(map(_GOLD, self.questions))
        return len(both.difference([_GOLD(new) for _, new in self.pairs_of_cases]))

    @cached_property
    def new_runs(self) -> tuple[str, ...]:
        """Return the names of the runs that the baseline lacks; none if either side is a single run, or has no cases.

        Their results cannot be compared, so they could be arbitrarily bad without failing a regression gate.
        """
        if self.baseline is None or not self.baseline.questions or _single(self.baseline.questions, self.questions):
            return ()
        current, earlier = (set(map(_RUN, side)) for side in (self.questions, self.baseline.questions))
        return tuple(sorted(run or "" for run in current - earlier))

    @cached_property
    def _layouts(self) -> list[Layouts]:
        sides = self.questions, self.baseline.questions if self.baseline else ()
        return [Layouts(map(_SCORES, side)) for side in sides]

    def present(self) -> set[str]:
        """Return the slices that some case of this run or of the baseline is in."""
        sides = self.questions, self.baseline.questions if self.baseline else ()
        return set().union(*[slices for side in sides for slices in set(map(_SLICES, side))])

    @cached_property
    def several(self) -> bool:
        """Return whether there are several runs, so that a question may have several cases."""
        return dependent_cases.has_several_runs(self.questions)

    @cached_property
    def grouped(self) -> bool:
        """Return whether questions or clusters are the units, not cases."""
        return bool(self.cluster) or self.several

    def size(self, part: str) -> int:
        """Return the number of questions in a slice."""
        return self._sizes[part] if part else dependent_cases.count_questions(self.questions)

    @cached_property
    def _sizes(self) -> Counter[str]:
        named = ((case.qid, name) for case in self.questions for name in case.slices)
        return Counter(name for _, name in (set(named) if self.several else named))

    def few(self, part: str, least: int) -> bool:
        """Return whether a slice has some questions, but fewer than ``least``, so that its gates are inconclusive."""
        return bool(part) and 0 < self.size(part) < least

    def value(self, name: str, part: str = "") -> Value:
        """Return a metric's value; over a slice too, exact for 0/1 metrics."""
        result = None if part else self._metrics.get(name)
        return result.as_value() if result else aggregations.folded(measure(name), self._column(name, part))

    def interval(self, name: str, part: str = "", confidence: str = CONFIDENCE) -> Interval | None:
        """Return the interval of a metric's value, None if it has no value."""
        item = measure(name)
        if self.grouped:
            return self._grouped_cases(part).interval(item, float(confidence))
        scores = self._column(name, part)
        # Cutoffs and slices often have the same scores, and computing an interval takes time.
        key = item.metric.name, item.fold, confidence, frozenset(scores.items())
        if key not in self._intervals:
            self._intervals[key] = aggregations.enclosed(item, scores, float(confidence))
        return self._intervals[key]

    def values(self, name: str) -> tuple[Value, Value] | None:
        """Return the baseline's value and the run's if no cases can be compared.

        That applies to values of run.json, and to a baseline that was saved without its cases.
        """
        earlier = self.baseline.metrics.get(name) if self.baseline else None
        if earlier is None or (measure(name).metric.level == "case" and self.baseline and self.baseline.questions):
            return None
        return earlier.as_value(), self.value(name)

    def may_be_worse(self, name: str) -> bool:
        """Return whether a metric could be worse than in the baseline; both values decide if all cases pair."""
        before, after = self.baseline.metrics.get(name) if self.baseline else None, self._metrics.get(name)
        if before is None or after is None or before.value is None or after.value is None:
            return True
        sides = self.questions, self.baseline.questions if self.baseline else ()
        higher = measure(name).metric.better == "higher"
        is_worse = before.value > after.value if higher else before.value < after.value
        return is_worse or len(self.pairs_of_cases) < max(map(len, sides))

    def comparable(self, name: str) -> bool:
        """Return whether the baseline has the same metric fingerprint."""
        current, earlier = self._contracts.get(name), self.baseline.contracts.get(name) if self.baseline else None
        return current is not None and current == earlier

    def pairs(self, name: str, part: str = "") -> Pairs:
        """Return a metric's scores in baseline and run as pairs with their counts, over the cases with the same gold.

        Cases to which the metric applies in neither run are left out.
        """
        column = measure(name).column
        if (column, part) not in self._pairs:
            both = self._both(part, all(side.shares(column) for side in self._layouts))
            before, after = ([case.get(column) for case in side] for side in (both.before, both.after))
            counted: Pairs = weighed([(before[old], after[new]) for old, new in both.counts], both.counts.values())
            counted.pop((None, None), None)
            self._pairs[column, part] = counted
        return self._pairs[column, part]

    def units(self, name: str, part: str = "") -> Units | None:
        """Return the same pairs by question or cluster; None if none has several."""
        column = measure(name).column
        if not self.grouped:
            return None
        if (column, part) not in self._units:
            cases = list(map(itemgetter(1), self._pairs_in(part)))
            self._units[column, part] = dependent_cases.units(cases, self._sides(column, part), self.cluster)
        return self._units[column, part]

    def by_case(self, name: str, part: str = "") -> Iterator[tuple[tuple[str, str | None], Shown | None, Shown | None]]:
        """Yield a metric's scores in baseline and run, case by case."""
        cases = map(itemgetter(1), self._pairs_in(part))
        for case, (before, after) in zip(cases, self._sides(measure(name).column, part), strict=True):
            if before is not None or after is not None:
                yield _CASE(case), before, after

    def between_runs(self, name: str, part: str = "") -> BetweenRuns | None:
        """Return the variance of a metric's difference between several runs; None of one run."""
        if not self.several:
            return None
        moves: dict[bool, dict[str | None, list[float]]] = {True: {}, False: {}}
        for (qid, run), before, after in self.by_case(name, part):
            if before is not None and after is not None:
                step = float(after) - float(before)  # type: ignore[arg-type]  # the scores of a mean
                moves[True].setdefault(qid, []).append(step)
                moves[False].setdefault(run, []).append(step)
        totals = Counter((fsum(steps), len(steps)) for steps in moves[True].values())
        runs = [(len(steps), fsum(steps), fsum(step * step for step in steps)) for steps in moves[False].values()]
        return between_runs(totals, runs)

    def _sides(self, column: str, part: str) -> Iterator[Pair]:
        return ((old.scores.get(column), new.scores.get(column)) for old, new in self._pairs_in(part))

    def _grouped_cases(self, part: str) -> GroupedCases:
        if part not in self._grouped:
            self._grouped[part] = dependent_cases.GroupedCases(self._cases(part), self.cluster)
        return self._grouped[part]

    def _column(self, name: str, part: str) -> Counter[Shown]:
        column = measure(name).column
        if (column, part) not in self._columns:
            cases, counts = self._alone(part, self._layouts[0].shares(column))
            scores = weighed([case.get(column) for case in cases], counts)
            del scores[None]
            self._columns[column, part] = scores  # type: ignore[assignment]  # no other score is None
        return self._columns[column, part]

    def _alone(self, part: str, shared: bool) -> tuple[list[Scores], list[int]]:
        """Return the distinct scores in a slice with their counts, computed once for each slice.

        With ``shared``, only scores that cases share are counted.
        """
        if (part, shared) not in self._parts:
            # First by identity: millions of cases share few objects.
            cases, weights = self._alone(part, False) if shared else (list(map(_SCORES, self._cases(part))), None)
            keys = list(identities(cases, shared))
            known = dict(zip(keys, cases, strict=True))
            counts = weighed(keys, weights) if weights else Counter(keys)
            self._parts[part, shared] = list(known.values()), list(map(counts.__getitem__, known))
        return self._parts[part, shared]

    def _cases(self, part: str) -> Sequence[Question]:
        return self._cases_by_slice.get(part, ()) if part else self.questions

    def _pairs_in(self, part: str) -> Sequence[tuple[Question, Question]]:
        if self.new_runs:
            return ()
        return self._pairs_by_slice.get(part, ()) if part else self.pairs_of_cases

    @cached_property
    def _cases_by_slice(self) -> dict[str, list[Question]]:
        return _by_slice(self.questions, _SLICES)

    @cached_property
    def _pairs_by_slice(self) -> dict[str, list[tuple[Question, Question]]]:
        return _by_slice(self.pairs_of_cases, lambda pair: pair[1].slices)

    def _both(self, part: str, shared: bool) -> _Both:
        """Return the scores of a slice's cases in baseline and run, computed once for each slice."""
        if (part, shared) not in self._shared:
            pairs = self._pairs_in(part)
            sides = [list(map(_SCORES, map(itemgetter(side), pairs))) for side in (0, 1)]
            self._shared[part, shared] = _Both.of(sides, shared)
        return self._shared[part, shared]


def _by_slice(items: Iterable[T], slices: Callable[[T], Iterable[str]]) -> dict[str, list[T]]:
    """Group items by slice in one pass: there may be as many slices as items."""
    groups: dict[str, list[T]] = {}
    for item in items:
        for part in dict.fromkeys(slices(item)):
            groups.setdefault(part, []).append(item)
    return groups


class _Both(NamedTuple):
    """The distinct scores in baseline and run, and the counts of pairs of them, by index."""

    before: list[Scores]
    after: list[Scores]
    counts: Counter[tuple[int, int]]

    @classmethod
    def of(cls, sides: Sequence[list[Scores]], shared: bool) -> _Both:
        """Return the scores of the cases of both sides; ``shared`` compares only the scores that cases share."""
        known = [dict(zip(identities(side, shared), side, strict=True)) for side in sides]
        at = [{key: index for index, key in enumerate(positions_by_key)} for positions_by_key in known]
        positions = [
            map(positions_by_key.__getitem__, identities(side, shared))
            for positions_by_key, side in zip(at, sides, strict=True)
        ]
        before, after = (list(positions_by_key.values()) for positions_by_key in known)
        return cls(before, after, Counter(zip(*positions, strict=True)))


def pair_cases(before: Sequence[Question], after: Sequence[Question]) -> list[tuple[Question, Question]]:
    """Return the cases that two runs have under the same gold item, byte for byte.

    If each side is a single run, its name does not matter, because a nightly run and a pull request's run may have
    different names.
    """
    key = _QID if _single(before, after) else _CASE
    earlier = dict(zip(map(key, before), before, strict=True))
    sides = zip(map(earlier.get, map(key, after)), after, strict=True)
    return [(old, new) for old, new in sides if old is not None and old.gold_sha256 == new.gold_sha256]


def _single(*sides: Iterable[Question]) -> bool:
    """Return whether each side is one run."""
    return not any(map(dependent_cases.has_several_runs, sides))


def counted(completeness: Completeness) -> dict[str, Value]:
    """Return the counts of completeness as values for gates."""
    counts = completeness._asdict()
    names = ("missing", "duplicate", "unknown")
    return {f"completeness.{name}": Value(Fraction(counts[name]), completeness.expected) for name in names}
