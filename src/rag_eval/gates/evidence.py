"""Evidence of gates: values, intervals and pairs of scores, over all cases or a slice.

Cases that depend on one another count together: those of a question in several runs, or of a cluster that a gold field
names. A unit is the results of one question or cluster, in order, with their counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import fsum
from operator import attrgetter, mul
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.gates import COMPLETENESS, MetricResult
from rag_eval.gates.questions import CaseScores, Question, are_shared, distinct
from rag_eval.gates.selection import clusters
from rag_eval.metrics import Measure, measure
from rag_eval.scoring import Completeness, aggregations
from rag_eval.scoring.aggregations import FOLDS, MEANS, bounds, from_mean, interval_over_units
from rag_eval.stats import intervals
from rag_eval.stats.intervals import BetweenRuns, Interval
from rag_eval.stats.paired import Units
from rag_eval.stats.tally import DECIMALS, JsonScore, Tally, Value, json_scores, weighted_counts

Pair = tuple[JsonScore | None, JsonScore | None]
Pairs = Counter[Pair]
Unit = tuple[tuple[Any, int], ...]
ColumnScores = tuple[JsonScore | None, ...]
CONFIDENCE = "0.95"
_QID, _RUN, _SLICES = map(attrgetter, ("qid", "run", "slices"))
_CASE, _GOLD = attrgetter("qid", "run"), attrgetter("qid", "content_hash")


def has_several_runs(cases: Iterable[Question]) -> bool:
    """Return whether there are several runs, so that a question may have several cases."""
    return len(set(map(_RUN, cases))) > 1


def count_questions(cases: Iterable[Question]) -> int:
    """Return the number of questions of cases."""
    return len(set(map(_QID, cases)))


def pair_cases(before: Sequence[Question], after: Sequence[Question]) -> list[tuple[Question, Question]]:
    """Return the cases that two runs have under a gold item of the same content.

    If each side is a single run, its name does not matter, because a nightly run and a pull request's run may have
    different names.
    """
    key = _CASE if has_several_runs(before) or has_several_runs(after) else _QID
    earlier = dict(zip(map(key, before), before, strict=True))
    sides = zip(map(earlier.get, map(key, after)), after, strict=True)
    return [(old, new) for old, new in sides if old is not None and old.content_hash == new.content_hash]


def counted(completeness: Completeness) -> dict[str, Value]:
    """Return the counts of completeness as values for gates."""
    counts = completeness._asdict()
    return {f"completeness.{name}": Value(Fraction(counts[name]), completeness.expected) for name in COMPLETENESS}


class GroupedCases:
    """The cases of several runs by question, or of one run by the cluster that a gold field names."""

    def __init__(self, cases: Sequence[Question], cluster: str = "") -> None:
        names = clusters(cases, cluster)
        order = sorted(range(len(cases)), key=names.__getitem__)  # usually in order, which is quick to check
        self._cases, self._cluster = [cases[index] for index in order], cluster
        self._sizes = [size for _, size in sorted(Counter(names).items())]
        self._columns: dict[str, tuple[bool, ColumnScores]] = {}
        self._distinct: dict[bool, tuple[list[CaseScores], list[int]]] = {}
        self._positions: dict[bool, list[tuple[list[int], list[int]]]] = {}
        self._units: dict[bool, Counter[tuple[int, ...]]] = {}

    @cached_property
    def by_question(self) -> GroupedCases:
        """Return the same cases without clusters."""
        return GroupedCases(self._cases) if self._cluster else self

    def scores(self, column: str) -> tuple[bool, ColumnScores]:
        """Return the key on which a column's results depend, for the same cases."""
        if column not in self._columns:
            shared = are_shared(self._cases, column)
            if shared not in self._distinct:
                self._distinct[shared] = distinct(self._cases, shared)
                rest = iter(self._distinct[shared][1])
                self._units[shared] = Counter([tuple(sorted(islice(rest, size))) for size in self._sizes])
            self._columns[column] = shared, tuple([scores.get(column) for scores in self._distinct[shared][0]])
        return self._columns[column]

    def column(self, column: str) -> Counter[Unit]:
        """Return the scores of each question in a column; questions without a score are left out."""
        shared, scores = self.scores(column)
        units: Counter[Unit] = Counter()
        for unit, questions in self._units[shared].items():
            counts = Counter(map(scores.__getitem__, unit))
            del counts[None]
            if counts:
                units[tuple(sorted(counts.items()))] += questions
        return units

    def totals(self, column: str) -> Counter[tuple[float, int]]:
        """Count the questions by the sum (to twelve decimals) and the number of their scores, if they have any."""
        shared, scores = self.scores(column)
        units, groups = self._units[shared], Counter[tuple[float, int]]()
        known: Any = [[score for index in unit if (score := scores[index]) is not None] for unit in units]
        exact = weighted_counts(list(zip(map(fsum, known), map(len, known), strict=True)), units.values())
        for (total, size), questions in exact.items():
            if size:
                groups[round(total, DECIMALS), size] += questions
        return groups

    def runs(self, column: str) -> list[tuple[int, float, float]]:
        """Return count, sum and sum of squares of each run's scores in a column; nothing for a run without scores."""
        shared, scores = self.scores(column)
        if shared not in self._positions:
            positions: dict[str | None, list[int]] = {}
            for case, position in zip(self._cases, self._distinct[shared][1], strict=True):
                positions.setdefault(case.run, []).append(position)
            counted = map(Counter, positions.values())
            self._positions[shared] = [(list(counts), list(counts.values())) for counts in counted]
        values = [0.0 if score is None else float(score) for score in scores]  # type: ignore[arg-type]  # no labelled one
        has_score = [score is not None for score in scores]
        sums = []
        for indices, counts in self._positions[shared]:
            scored = list(map(values.__getitem__, indices))
            weighted = list(map(mul, scored, counts))
            number = sum(map(mul, counts, map(has_score.__getitem__, indices)))
            sums.append((number, fsum(weighted), fsum(map(mul, weighted, scored))))
        return [run for run in sums if run[0]]

    def interval(self, measure: Measure, confidence: float) -> Interval | None:
        """Return the interval of a metric's value; None if it has none."""
        if not FOLDS[measure.fold].estimates or measure.metric.level == "run":
            return None
        if measure.fold not in MEANS:
            return interval_over_units(measure, self.column(measure.column), confidence)
        limits, by_run = bounds(measure), self.runs(measure.column)
        totals = self.totals(measure.column)
        interval = intervals.interval_of_totals(totals, limits, confidence)
        if interval and len(by_run) > 1:
            of_questions = self.by_question.totals(measure.column) if self._cluster else totals
            runs = intervals.between_runs(of_questions, by_run)
            value = fsum(total for _, total, _ in by_run) / sum(n for n, _, _ in by_run)
            interval = intervals.with_runs(interval, value, runs, limits, confidence)
        return from_mean(measure, interval)


class Baseline(Struct, frozen=True):
    """An earlier run: its cases, and the fingerprint and the values of each metric.

    A run that was saved without its cases has only values. ``rerun`` is a second run of the same system.
    """

    questions: Sequence[Question]
    contracts: Mapping[str, str]
    metrics: Mapping[str, MetricResult] = {}
    rerun: Baseline | None = None


class RunEvidence:
    """A run, and its baseline if there is one. ``cluster`` names the gold field whose values group cases.

    ``tallies`` are the scores of each column, if they are already counted.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        metrics: Mapping[str, MetricResult],
        completeness: Completeness,
        contracts: Mapping[str, str],
        baseline: Baseline | None = None,
        cluster: str = "",
        tallies: Mapping[str, Tally] = {},
    ) -> None:
        self.cluster = cluster
        self.questions, self.completeness, self.baseline = questions, completeness, baseline
        self.metrics, self.contracts = metrics, contracts
        self._both_sides = questions, baseline.questions if baseline else ()
        counted = {(column, ""): json_scores(tally) for column, tally in tallies.items()}
        self._columns: dict[tuple[str, str], Counter[JsonScore]] = counted
        self._pairs: dict[tuple[str, str], Pairs] = {}
        self._distinct: dict[tuple[str, bool], tuple[list[CaseScores], Counter[int]]] = {}
        self._paired: dict[tuple[str, tuple[bool, ...]], tuple[list[list[CaseScores]], Counter[tuple[int, int]]]] = {}
        self._grouped: dict[str, GroupedCases] = {}
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
        again, earlier = before.rerun, replace(before, rerun=None)
        return RunEvidence(again.questions, {}, self.completeness, again.contracts, earlier, cluster=self.cluster)

    @cached_property
    def unpaired(self) -> int:
        """Return the number of questions in both without a pair, because their runs have other names."""
        if not any(map(has_several_runs, self._both_sides)):
            return 0
        now, before = (set(map(_GOLD, side)) for side in self._both_sides)
        return len((now & before).difference([_GOLD(new) for _, new in self.pairs_of_cases]))

    @cached_property
    def new_runs(self) -> tuple[str, ...]:
        """Return the names of the runs that the baseline lacks; none if either side is a single run, or has no cases.

        Their results cannot be compared, so they could be arbitrarily bad without failing a regression gate.
        """
        if not self._both_sides[1] or not any(map(has_several_runs, self._both_sides)):
            return ()
        now, before = (set(map(_RUN, side)) for side in self._both_sides)
        return tuple(sorted(run or "" for run in now - before))

    def present(self) -> set[str]:
        """Return the slices that some case of this run or of the baseline is in."""
        return set().union(*[slices for side in self._both_sides for slices in set(map(_SLICES, side))])

    @cached_property
    def several(self) -> bool:
        """Return whether there are several runs, so that a question may have several cases."""
        return has_several_runs(self.questions)

    @cached_property
    def grouped(self) -> bool:
        """Return whether questions or clusters are the units, not cases."""
        return bool(self.cluster) or self.several

    def size(self, part: str) -> int:
        """Return the number of questions in a slice."""
        return self._sizes[part] if part else count_questions(self.questions)

    @cached_property
    def _sizes(self) -> Counter[str]:
        named = ((case.qid, name) for case in self.questions for name in case.slices)
        return Counter(name for _, name in (set(named) if self.several else named))

    def few(self, part: str, least: int) -> bool:
        """Return whether a slice has some questions, but fewer than ``least``, so that its gates are inconclusive."""
        return bool(part) and 0 < self.size(part) < least

    def value(self, name: str, part: str = "") -> Value:
        """Return a metric's value; over a slice too, exact for 0/1 metrics."""
        result = None if part else self.metrics.get(name)
        return result.as_value() if result else aggregations.aggregate(measure(name), self._column(name, part))

    def interval(self, name: str, part: str = "", confidence: str = CONFIDENCE) -> Interval | None:
        """Return the interval of a metric's value, None if it has no value."""
        item, level = measure(name), float(confidence)
        if self.grouped and part not in self._grouped:
            self._grouped[part] = GroupedCases(self._cases(part), self.cluster)
        grouped = self._grouped[part] if self.grouped else None
        scores = Counter[JsonScore]() if grouped else self._column(name, part)
        # Cutoffs, slices and metrics often have the same scores, and computing an interval takes time.
        depends = (part, grouped.scores(item.column)) if grouped else frozenset(scores.items())
        key = item.is_rate, item.metric.top, item.fold, level, depends
        if key not in self._intervals:
            self._intervals[key] = (
                grouped.interval(item, level) if grouped else aggregations.confidence_interval(item, scores, level)
            )
        return self._intervals[key]

    def values(self, name: str) -> tuple[Value, Value] | None:
        """Return the baseline's value and the run's if no cases can be compared.

        That applies to values of run.json, and to a baseline that was saved without its cases.
        """
        earlier = self.baseline.metrics.get(name) if self.baseline else None
        if earlier is None or (measure(name).metric.level == "case" and self._both_sides[1]):
            return None
        return earlier.as_value(), self.value(name)

    def comparable(self, name: str) -> bool:
        """Return whether the baseline has the same metric fingerprint."""
        current, earlier = self.contracts.get(name), self.baseline.contracts.get(name) if self.baseline else None
        return current is not None and current == earlier

    def pairs(self, name: str, part: str = "") -> Pairs:
        """Return a metric's scores in baseline and run as pairs with their counts, over the cases with the same gold.

        Cases to which the metric applies in neither run are left out.
        """
        column = measure(name).column
        if (column, part) not in self._pairs:
            shared = tuple([are_shared(side, column) for side in self._both_sides[::-1]])
            if (part, shared) not in self._paired:
                cases = self._pairs_in(part)
                sides = [distinct([pair[side] for pair in cases], shared[side]) for side in (0, 1)]
                counts = Counter(zip(sides[0][1], sides[1][1], strict=True))
                self._paired[part, shared] = [scores for scores, _ in sides], counts
            scores, counts = self._paired[part, shared]
            before, after = ([case.get(column) for case in side] for side in scores)
            pairs: Pairs = weighted_counts([(before[old], after[new]) for old, new in counts], counts.values())
            pairs.pop((None, None), None)
            self._pairs[column, part] = pairs
        return self._pairs[column, part]

    def units(self, name: str, part: str = "") -> Units | None:
        """Return the same pairs by question or cluster, as tests swap them; None if none has several."""
        column = measure(name).column
        if not self.grouped:
            return None
        if (column, part) not in self._units:
            rows = self._scored(name, part)
            groups: dict[str, Counter[Pair]] = {}
            for group, (_, pair) in zip(clusters([case for case, _ in rows], self.cluster), rows, strict=True):
                groups.setdefault(group, Counter())[pair] += 1
            units = Units(Counter(tuple(sorted(pairs.items(), key=repr)) for pairs in groups.values()))
            self._units[column, part] = units if len(groups) < len(rows) else None
        return self._units[column, part]

    def by_case(self, name: str, part: str = "") -> list[tuple[tuple[str, str | None], *Pair]]:
        """Return a metric's scores in baseline and run, case by case."""
        return [(_CASE(case), *pair) for case, pair in self._scored(name, part)]

    def between_runs(self, name: str, part: str = "") -> BetweenRuns | None:
        """Return the variance of a metric's difference between several runs; None of one run."""
        if not self.several:
            return None
        by_question: dict[str, list[float]] = {}
        by_run: dict[str | None, list[float]] = {}
        for case, (before, after) in self._scored(name, part):
            if before is not None and after is not None:
                step = float(after) - float(before)  # type: ignore[arg-type]  # the scores of a mean
                by_question.setdefault(case.qid, []).append(step)
                by_run.setdefault(case.run, []).append(step)
        totals = Counter((fsum(steps), len(steps)) for steps in by_question.values())
        runs = [(len(steps), fsum(steps), fsum(step * step for step in steps)) for steps in by_run.values()]
        return intervals.between_runs(totals, runs)

    def _scored(self, name: str, part: str) -> list[tuple[Question, Pair]]:
        """Return the cases with their scores in baseline and run, if either has one."""
        column = measure(name).column
        rows = ((new, (old.scores.get(column), new.scores.get(column))) for old, new in self._pairs_in(part))
        return [(case, pair) for case, pair in rows if pair != (None, None)]

    def _column(self, name: str, part: str) -> Counter[JsonScore]:
        column = measure(name).column
        if (column, part) not in self._columns:
            shared = are_shared(self.questions, column)
            if (part, shared) not in self._distinct:
                cases, positions = distinct(self._cases(part), shared)
                self._distinct[part, shared] = cases, Counter(positions)
            cases, counts = self._distinct[part, shared]
            scores = weighted_counts([case.get(column) for case in cases], map(counts.__getitem__, range(len(cases))))
            del scores[None]
            self._columns[column, part] = scores  # type: ignore[assignment]  # no other score is None
        return self._columns[column, part]

    def _cases(self, part: str) -> Sequence[Question]:
        return self._slices[0].get(part, ()) if part else self.questions

    def _pairs_in(self, part: str) -> Sequence[tuple[Question, Question]]:
        if self.new_runs:
            return ()
        return self._slices[1].get(part, ()) if part else self.pairs_of_cases

    @cached_property
    def _slices(self) -> tuple[dict[str, list[Question]], dict[str, list[tuple[Question, Question]]]]:
        """Return the cases and the pairs of cases by slice, in one pass: there may be as many slices as cases."""
        cases: dict[str, list[Question]] = {}
        pairs: dict[str, list[tuple[Question, Question]]] = {}
        for case in self.questions:
            for part in dict.fromkeys(case.slices):
                cases.setdefault(part, []).append(case)
        for pair in self.pairs_of_cases:
            for part in dict.fromkeys(pair[1].slices):
                pairs.setdefault(part, []).append(pair)
        return cases, pairs
