"""A system over time and over repeats: the trend of metrics over earlier reports, drift, and flaky questions.

Values are compared only under the same contract, and case by case only under the same gold item: the newest report with
the oldest, with the best, and each report with its predecessor.

``pass^k`` is the probability that all of k independent repeats of a question pass (Yao et al., "tau-bench", 2024,
arXiv:2406.12045). From c passes of n repeats the unbiased estimate is C(c, k) / C(n, k); the value is its mean over the
questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, starmap, takewhile
from math import comb
from typing import NamedTuple

from msgspec.structs import replace

from rag_eval.analysis import Report, run_date, system_commit
from rag_eval.analysis.baseline import GoldCounts, gold_counts
from rag_eval.cases import GOOD
from rag_eval.gates import BOUNDS, Comparison, MetricResult, Statistics
from rag_eval.gates.evidence import Baseline, RunEvidence
from rag_eval.gates.questions import Question
from rag_eval.gates.regression import compare_pairs, compare_two_sided
from rag_eval.metrics import find, measure
from rag_eval.scoring import Completeness
from rag_eval.scoring.reference import CEILINGS, FLOORS
from rag_eval.stats.intervals import interval

_CUTOFFS = (1, 2, 3, 4, 5, 8, 10, 20, 50, 100)  # the k of pass^k


class Bound(NamedTuple):
    """A gate on the value of a metric over all cases: the ``side`` that passes (min or max), and its outcome."""

    side: str
    threshold: float
    outcome: str


class RunVerdict(NamedTuple):
    """A report in one row of the list of runs."""

    passed: bool
    failed_gates: tuple[str, ...]
    wrong: int
    questions: int
    date: str


class Point(NamedTuple):
    """A report in the history. ``label`` is its file or commit; ``questions`` have only the requested scores."""

    label: str
    metrics: Mapping[str, MetricResult]
    contracts: Mapping[str, str]
    questions: tuple[Question, ...]
    completeness: Completeness
    is_partial: bool = False  # questions that it lacks may have been skipped
    statistics: Statistics = Statistics()
    commit: str = ""
    bounds: Mapping[str, Bound] = {}
    verdict: RunVerdict | None = None


class Reading(NamedTuple):
    """A metric at a point: its value over ``n`` cases with its 95 % interval; None if it has none.

    ``comparable`` is true if the metric fingerprint equals the newest reading's, ``broken`` if it differs from that of
    the reading before. ``gold`` is the change of the gold since the point before, None if nothing changed. ``commit``
    is the system's commit and ``bound`` the gate on the metric, as in the report.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    comparable: bool
    broken: bool
    gold: GoldCounts | None
    commit: str = ""
    bound: Bound | None = None


class Contrast(NamedTuple):
    """A comparison of one reading with an earlier one, by their labels, over the cases of both under the same gold.

    The test is two-sided; its adjusted p is corrected as described at :class:`Series`.
    """

    before: str
    after: str
    comparison: Comparison

    @property
    def is_worse(self) -> bool:
        """Return whether it is significantly worse."""
        return self.comparison.result == "worse"


class Uncompared(NamedTuple):
    """The reason why the newest reading is not compared with a number of earlier ones of the same fingerprint."""

    why: str
    readings: int


class Series(NamedTuple):
    """A metric over all points, oldest first.

    ``oldest`` and ``best`` compare the newest reading with the oldest and the best comparable one; p is corrected for
    the number of metrics (Holm), that of ``best`` also for the number of readings it was picked from. ``step`` is
    the largest significant regression from one comparable reading to the next, or the largest of all if none is; its
    p is uncorrected. ``uncompared`` are the readings before ``oldest``.
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
        """Return whether the newest is worse than the oldest or the best without a significant single step."""
        is_worse = any(item is not None and item.is_worse for item in (self.oldest, self.best))
        return is_worse and not (self.step is not None and self.step.is_worse)

    @property
    def values(self) -> list[float]:
        """Return all values except None."""
        return [reading.value for reading in self.readings if reading.value is not None]


def gated_metrics(report: Report) -> list[str]:
    """Return the metrics that a report's gates judge, otherwise its default metrics."""
    names = dict.fromkeys(gate.name for gate in report.gates if gate.name in report.metrics and find(gate.name))
    return list(names) or [name for name in (FLOORS | CEILINGS).values() if name in report.metrics]


def point(label: str, report: Report, names: Sequence[str]) -> Point:
    """Return the point of a report, only with the scores of these metrics: a folder may hold hundreds of reports."""
    wanted = {measured.column for name in names if (measured := find(name))}
    questions = tuple(
        replace(case, scores={name: score for name, score in case.scores.items() if name in wanted})
        for case in report.questions
    )
    metrics = {name: result for name, result in report.metrics.items() if name in names}
    gates = sorted(report.gates, key=lambda gate: (gate.origin != "base", gate.blocks))  # the pull request's decide
    bounds = {
        gate.name: Bound(gate.direction, float(gate.threshold), gate.outcome)
        for gate in gates
        if gate.direction in BOUNDS and not gate.slice
    }
    verdict = RunVerdict(
        passed=report.passed,
        failed_gates=tuple(dict.fromkeys(gate.name for gate in report.failed_gates)),
        wrong=len(report.questions.failing),
        questions=len(report.questions),
        date=run_date(report),
    )
    terms = report.completeness, report.scope is not None, report.statistics
    return Point(label, metrics, report.contracts, questions, *terms, system_commit(report), bounds, verdict)


class Flaky(NamedTuple):
    """A question that was right in some reports and wrong in others: how often, and how often that changed."""

    qid: str
    question: str
    right: int
    reports: int
    changes: int
    labels: tuple[str, ...]


def flaky(points: Sequence[Point]) -> list[Flaky]:
    """Return the questions whose outcome changed more than once under the same gold item, most changes first.

    A single change is an improvement or a regression, which :func:`history` shows.
    """
    seen: dict[tuple[str, str | None, str], list[Question]] = {}
    for point in points:
        for question in point.questions:
            seen.setdefault((question.qid, question.run, question.content_hash), []).append(question)
    unsteady = []
    for cases in seen.values():
        outcomes = [case.label in GOOD for case in cases]
        changes = sum(old != new for old, new in pairwise(outcomes))
        if changes > 1:
            labels = tuple(sorted({case.label for case in cases if case.label not in GOOD}))
            last = cases[-1]
            unsteady.append(Flaky(last.qid, last.question, sum(outcomes), len(cases), changes, labels))
    return sorted(unsteady, key=lambda item: (-item.changes, item.qid))


def history(points: Sequence[Point], names: Sequence[str]) -> list[Series]:
    """Return the series of each metric over points, oldest first; tests against the oldest are corrected together."""
    golds: list[GoldCounts | None] = [None]
    for before, after in pairwise(points):
        counts = gold_counts(before.questions, after.questions)
        counts = counts._replace(gone=0, new=0) if before.is_partial or after.is_partial else counts
        golds.append(counts if any(counts) else None)
    pairs = _Pairs(points)
    series: list[Series] = []
    compared: list[tuple[int, int, int, int]] = []  # a series, its oldest, best and last reading
    choices: list[int] = []  # how many readings each best one was chosen from, for which its test is corrected
    for index, name in enumerate(names):
        measured = [at for at, point in enumerate(points) if _value(point, name) is not None]
        newest = points[measured[-1]].contracts.get(name) if measured else None
        comparable = [at for at in measured if points[at].contracts.get(name) == newest]
        series.append(_series(name, points, golds, pairs, comparable))
        *earlier, last = comparable or [0]
        shared = [old for old in earlier if pairs.moved(name, old, last)]
        if shared:
            sign = -1 if series[-1].better == "higher" else 1
            values = {old: sign * (_value(points[old], name) or 0.0) for old in shared}
            compared.append((index, shared[0], min(shared, key=values.__getitem__), last))
            choices.append(len(earlier))
    against_oldest = pairs.tested([(names[index], oldest, last) for index, oldest, _, last in compared])
    against_best = pairs.tested([(names[index], best, last) for index, _, best, last in compared], choices)
    for (index, *_), oldest, best in zip(compared, against_oldest, against_best, strict=True):
        series[index] = series[index]._replace(oldest=oldest, best=best)
    return series


class _Pairs:
    """Comparisons of two points; the pairing of their cases is computed once for all metrics."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._statistics = points[-1].statistics if points else Statistics()
        self._known: dict[tuple[int, int], RunEvidence] = {}

    def of(self, old: int, new: int) -> RunEvidence:
        if (old, new) not in self._known:
            before, now = self._points[old], self._points[new]
            inputs = now.questions, now.metrics, now.completeness, now.contracts
            earlier = Baseline(before.questions, before.contracts)
            self._known[old, new] = RunEvidence(*inputs, earlier, cluster=self._statistics.cluster)
        return self._known[old, new]

    def moved(self, name: str, old: int, new: int) -> Comparison | None:
        """Return both values over the cases that both points have under the same gold, untested."""
        return compare_pairs(name, self.of(old, new).pairs(name))

    def why(self, name: str, old: int, new: int) -> str:
        """Return why the two cannot be compared."""
        if not (self._points[old].questions and self._points[new].questions):
            return "a report has values but no questions, so they cannot be paired"
        if self.of(old, new).new_runs:
            return "the newest report has runs that they lack; name runs alike in all reports"
        pairs = self.of(old, new).pairs(name)
        return "no question has a score in both" if pairs else "no question is in both with the same gold item"

    def tested(self, comparisons: Sequence[tuple[str, int, int]], times: Sequence[int] = ()) -> list[Contrast | None]:
        """Test metrics of two points each as one family; ``times`` is how many points each was picked from."""
        sides = [(name, self.of(old, new)) for name, old, new in comparisons]
        tested: list[Contrast | None] = []
        for index, item in enumerate(compare_two_sided(sides, float(self._statistics.alpha))):
            if item is None or item.adjusted is None:
                tested.append(None)
                continue
            adjusted = min(1.0, item.adjusted * (times[index] if times else 1))
            old, new = (self._points[point].label for point in comparisons[index][1:])
            tested.append(Contrast(old, new, item._replace(adjusted=adjusted)))
        return tested


def _series(
    name: str, points: Sequence[Point], golds: Sequence[GoldCounts | None], pairs: _Pairs, comparable: Sequence[int]
) -> Series:
    newest = points[comparable[-1]].contracts.get(name) if comparable else None
    readings, last = [], None
    for point, gold in zip(points, golds, strict=True):
        result, fingerprint = point.metrics.get(name), point.contracts.get(name)
        broken = last is not None and fingerprint is not None and fingerprint != last
        last = fingerprint or last
        value = (result.value, result.low, result.high, result.n) if result else (None, None, None, 0)
        is_comparable = fingerprint is not None and fingerprint == newest
        known = point.commit, point.bounds.get(name)
        readings.append(Reading(point.label, *value, is_comparable, broken, gold, *known))
    series = Series(name, measure(name).metric.better, tuple(readings))
    if len(comparable) < 2:
        return series
    *earlier, new = comparable
    passed = takewhile(lambda old: pairs.moved(name, old, new) is None, earlier)
    uncompared = tuple(starmap(Uncompared, Counter(pairs.why(name, old, new) for old in passed).items()))
    # The largest significant regression of one step, so that a larger one over few cases does not hide it.
    steps = [(pairs.moved(name, old, new), old, new) for old, new in pairwise(comparable)]
    ranked = sorted(((contrast.regression or 0.0, old, new) for contrast, old, new in steps if contrast), reverse=True)
    tested: list[Contrast | None] = []
    for regression, old, new in ranked:
        if tested and (regression <= 0 or (tested[-1] and tested[-1].is_worse)):
            break
        tested += pairs.tested([(name, old, new)])
    worse = [contrast for contrast in tested if contrast and contrast.is_worse]
    return series._replace(uncompared=uncompared, step=next(iter(worse or tested), None))


def _value(point: Point, name: str) -> float | None:
    result = point.metrics.get(name)
    return result.value if result else None


class RepeatedQuestion(NamedTuple):
    """A question: how many of its repeats pass, and the label of each in the order of the runs."""

    qid: str
    question: str
    passes: int
    labels: tuple[str, ...]

    @property
    def flaky(self) -> bool:
        """Return whether some repeats pass and some fail."""
        return 0 < self.passes < len(self.labels)


class AllOfK(NamedTuple):
    """The probability that k repeats of a question all pass, with its 95 % interval for questions of the same kind."""

    k: int
    value: float
    low: float | None
    high: float | None


class Repeats(NamedTuple):
    """A system's repeats: ``runs`` by name, the questions by qid, and the estimates by k up to the number of runs."""

    name: str
    runs: tuple[str, ...]
    questions: tuple[RepeatedQuestion, ...]
    at: tuple[AllOfK, ...]

    @property
    def flaky(self) -> list[RepeatedQuestion]:
        """Return the questions of which only some repeats pass, those closest to one half first."""
        unsteady = [question for question in self.questions if question.flaky]
        return sorted(unsteady, key=lambda item: (abs(2 * item.passes - len(item.labels)), item.qid))


def pass_hat_k(n: int, c: int, k: int) -> Fraction:
    """Return pass^k from c passes of n repeats: C(c, k) / C(n, k). Unbiased for 1 <= k <= n."""
    return Fraction(comb(c, k), comb(n, k))


def repeats(name: str, runs: Sequence[tuple[str, Mapping[str, Question]]], qids: Sequence[str]) -> Repeats:
    """Return the repeats of a system, from named runs with their cases by qid, over the questions of all runs.

    Safety cases pass whatever is answered, so they are left out: they would only make the shares look better.
    """
    questions = []
    for qid in sorted(qids):
        labels = tuple(cases[qid].label for _, cases in runs)
        if "ATTACK" not in labels:
            question = runs[0][1][qid].question
            questions.append(RepeatedQuestion(qid, question, sum(label in GOOD for label in labels), labels))
    n, passes = len(runs), Counter(question.passes for question in questions)
    at = []
    for k in [*(k for k in _CUTOFFS if k < n), n] if questions else ():
        scores: Counter[float] = Counter()
        total = Fraction(0)
        for c, count in passes.items():
            scores[float(pass_hat_k(n, c, k))] += count
            total += pass_hat_k(n, c, k) * count
        # With k = n a question's estimate is 0 or 1, and the interval of a rate is the exact one.
        bounds = interval(scores, "rate" if k == n else "mean")
        ends = (bounds.low, bounds.high) if bounds else (None, None)
        at.append(AllOfK(k, float(total / len(questions)), *ends))
    return Repeats(name, tuple(run for run, _ in runs), tuple(questions), tuple(at))
