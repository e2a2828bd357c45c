"""Comparison of runs: each metric over the cases that all runs have, tested in pairs against one of them.

A metric is compared only if all runs have the same metric fingerprint, and only over the cases that all runs have under
the same gold item, byte for byte. Metrics that cannot be compared are listed with the reason. The weighted score and
the Pareto front help to choose among runs. They decide no gate, because a weighted mean hides failures that a gate
stops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, fsum
from typing import NamedTuple

from msgspec.structs import replace

from rag_eval import __version__
from rag_eval.analysis.baseline import Flip, flips, gold_counts
from rag_eval.cases import GOOD
from rag_eval.common.escaping import quantity, quoted, some
from rag_eval.errors import UsageError
from rag_eval.gates import QUALITY, SPENDING, WEIGHTS, Comparison, Scoring, Statistics
from rag_eval.gates.evidence import Baseline, RunEvidence, pair_cases
from rag_eval.gates.questions import Question
from rag_eval.gates.regression import compare_two_sided
from rag_eval.metrics import METRICS, find, measure
from rag_eval.scoring import Completeness, aggregations
from rag_eval.stats.tally import DECIMALS

_LABELLED = "precision", "abstention_accuracy"
"""Metrics that depend on the same settings as labels: passing means the same if these have the same fingerprints."""
_SCORED = frozenset(name for names in QUALITY.values() for name in names)
_OTHER_JUDGE = "verdicts of another judge"


class Column(NamedTuple):
    """A run to compare: its name, its file and run, its cases by qid, and the fingerprints of its metrics.

    ``gated`` are the metrics that its gates judge, ``statistics`` the statistics of its gates file.
    """

    name: str
    source: str
    run: str | None
    cases: Mapping[str, Question]
    contracts: Mapping[str, str]
    gated: tuple[str, ...] = ()
    statistics: Statistics = Statistics()


class BaseDifference(NamedTuple):
    """A metric compared with the base, as published: ``difference`` is this run's value minus the base's.

    It is a :class:`~rag_eval.gates.Comparison` as a change of the value, from two-sided tests. Cases with a
    score in both runs are wins (better than in the base), losses or ties.
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    adjusted: float
    result: str
    wins: int
    losses: int
    ties: int


class Spread(NamedTuple):
    """Percentiles of ``n`` amounts by nearest rank: the smallest one not exceeded by this share of them."""

    n: int
    total: float
    mean: float
    p50: float
    p95: float
    most: float


def spread(numbers: Iterable[float | None]) -> Spread | None:
    """Return the spread of all numbers except None; None if there are none."""
    values = sorted(float(number) for number in numbers if number is not None)
    if not values:
        return None
    p50, p95 = (values[ceil(len(values) * percent / 100) - 1] for percent in (50, 95))
    total = fsum(values)
    return Spread(len(values), round(total, DECIMALS), round(total / len(values), DECIMALS), p50, p95, values[-1])


ValuesByRun = Sequence[float | None]
"""The value of each run, None if it has none."""


class Objective(NamedTuple):
    """An objective that counts: its share of the score, its metrics, and its value by run."""

    name: str
    share: float
    metrics: tuple[str, ...]
    values: tuple[float, ...]


class LeftOut(NamedTuple):
    """A metric, an objective or a dimension that does not count, and why."""

    name: str
    why: str


class Weighted(NamedTuple):
    """The weighted score by run, None if no objective has a value; shares of the counted objectives add up to 1."""

    scores: tuple[float, ...] | None
    objectives: tuple[Objective, ...]
    dropped: tuple[LeftOut, ...]


class Front(NamedTuple):
    """The Pareto front of runs in several dimensions.

    ``dimensions`` are those in which every run has a value, ``points`` are the runs' values in their order.
    ``beaten_by`` has the index of the first run that is at least as good in all dimensions and better in one; None on
    the front.
    """

    quality: str
    dimensions: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    points: tuple[tuple[float, ...], ...]
    beaten_by: tuple[int | None, ...]


def weighted(scoring: Scoring, metrics: Mapping[str, ValuesByRun], spending: Mapping[str, ValuesByRun]) -> Weighted:
    """Return the weighted score of runs.

    ``metrics`` and ``spending`` (mean cost and latency of a question, by objective) have a value for each run. An
    objective is the mean of its metrics that have a value in every run, so that it means the same in all of them; cost
    and latency are 1 / (1 + value / budget). Objectives without a value drop out, and the weights of the rest are
    rescaled.
    """
    counting, dropped = [], []
    for name in WEIGHTS:
        if name not in scoring.weights:
            continue
        budget, why, values = scoring.budgets.get(SPENDING.get(name, "")), "", None
        if name not in SPENDING:
            columns = {metric: known for metric in QUALITY[name] if (known := _whole(metrics.get(metric, ())))}
            names, why = tuple(columns), "none of its metrics has a value in every run"
            values = tuple(fsum(column) / len(columns) for column in zip(*columns.values(), strict=True))
        elif budget is None:
            why = f"the gates file has no score.budgets.{SPENDING[name]}"
        else:
            names, why = (SPENDING[name],), "not every run has a value"
            values = tuple(1 / (1 + value / budget) for value in _whole(spending.get(name, ())) or ())
        if values:
            counting.append(Objective(name, scoring.weights[name], names, values))
        else:
            dropped.append(LeftOut(name, why))
    total = fsum(item.share for item in counting)
    shared = tuple(item._replace(share=round(item.share / total, DECIMALS)) for item in counting)
    if not shared:
        return Weighted(None, (), tuple(dropped))
    by_run = zip(*(item.values for item in counting), strict=True)
    scores = (fsum(item.share * value for item, value in zip(counting, row, strict=True)) for row in by_run)
    return Weighted(tuple(round(score / total, DECIMALS) for score in scores), shared, tuple(dropped))


def _whole(column: ValuesByRun) -> tuple[float, ...] | None:
    """Return the values if every run has one."""
    values = tuple(value for value in column if value is not None)
    return values if values and len(values) == len(column) else None


def front(scoring: Scoring, metrics: Mapping[str, ValuesByRun], spending: Mapping[str, ValuesByRun]) -> Front | None:
    """Return the Pareto front over quality, cost and latency; None if no run has a quality.

    Quality is the weighted score without cost and latency, or precision if that has no value. ``spending`` has cost and
    latency. A dimension in which some run has no value is left out.
    """
    named = {name: weight for name, weight in scoring.weights.items() if name in QUALITY}
    scores = weighted(replace(scoring, weights=named), metrics, {}).scores
    quality = "weighted score without cost and latency" if scores else "precision"
    scores = scores or _whole(metrics.get("precision", ()))
    if scores is None:
        return None
    columns = {name: known for name, column in spending.items() if (known := _whole(column)) is not None}
    left_out = tuple(LeftOut(name, "not every run has a value") for name in spending if name not in columns)
    points = tuple(zip(scores, *columns.values(), strict=True))

    def beats(point: tuple[float, ...], other: tuple[float, ...]) -> bool:
        # Higher quality is better, lower values of the rest are.
        ahead = point[0] - other[0], *(b - a for a, b in zip(point[1:], other[1:], strict=True))
        return min(ahead) >= 0 and max(ahead) > 0

    beaten = (next((index for index, other in enumerate(points) if beats(other, point)), None) for point in points)
    return Front(quality, ("quality", *columns), left_out, points, tuple(beaten))


class Cell(NamedTuple):
    """A metric's value in one run over the compared cases, with its 95 % interval; None if it applies to no case.

    ``against`` is None for the base, and if one side has no value.
    """

    value: float | None
    n: int
    hits: int | None
    low: float | None
    high: float | None
    against: BaseDifference | None = None


class Row(NamedTuple):
    """A metric with a cell for each run, in the order of the runs."""

    name: str
    better: str
    perspective: str
    cells: tuple[Cell, ...]


class Standing(NamedTuple):
    """A run: its number of cases, those that are not compared, and the results of the others.

    ``changed`` cases are in the base too, under another gold item; ``gone`` are only in the base, ``new`` only in this
    run. ``passing``, ``missing`` and ``errored`` count compared cases; ``flips`` are those that pass in only one of the
    two runs. ``cost`` and ``latency`` are None if no trace records them.
    """

    name: str
    source: str
    run: str | None
    cases: int
    changed: int
    gone: int
    new: int
    passing: int
    missing: int
    errored: int
    flips: tuple[Flip, ...]
    cost: Spread | None
    latency: Spread | None


class SideBySide(NamedTuple):
    """The whole comparison of ``cases`` cases; ``base`` is the index of the run that the others are compared with."""

    version: str
    base: int
    cases: int
    alpha: str
    runs: tuple[Standing, ...]
    metrics: tuple[Row, ...]
    refused: tuple[LeftOut, ...]
    score: Weighted
    front: Front | None


def side_by_side(
    columns: Sequence[Column],
    base: int = 0,
    scoring: Scoring = Scoring(),  # noqa: B008 - a constant
    only: Sequence[str] = (),
    *,
    every: bool = False,
    across_judges: bool = False,
) -> SideBySide:
    """Compare runs with the one at ``base``; verdicts of different judges only ``across_judges``.

    ``only`` names the metrics to compare. By default they are the metrics that the last run gates; ``every`` compares
    all. UsageError is raised if no case is in all runs under the same gold item, or if a named metric cannot be
    compared.
    """
    qids = shared(columns)
    contracts = {name: {column.contracts.get(name) for column in columns} for name in columns[0].contracts}
    judged = [name for name, some in contracts.items() if name.startswith("judge_") and None not in some]
    by_judges = [name for name in judged if len(contracts[name]) > 1 and labels_are_comparable(columns)]
    if across_judges:  # as if one judge had graded them all
        same_judge = {name: columns[0].contracts[name] for name in by_judges}
        columns = [column._replace(contracts={**column.contracts, **same_judge}) for column in columns]
        by_judges = []
    statistics, gated = columns[-1].statistics, () if every else columns[-1].gated
    refused = tuple(_refused(columns, by_judges))
    comparable, chosen = _chosen(columns, refused, only, gated)
    evidence = _evidence(columns, base, qids, statistics.cluster)
    standings = tuple(_standing(column, columns[base], qids, columns) for column in columns)
    values = {name: [item.value(name).as_float for item in evidence] for name in comparable if name in _SCORED}
    # Costs at other prices are not comparable.
    spending = [name for name in SPENDING if SPENDING[name] in {measure(item).column for item in comparable}]
    spreads = {name: [getattr(item, name) if name in spending else None for item in standings] for name in SPENDING}
    means = {name: [item and item.mean for item in spreads[name]] for name in SPENDING}
    p95 = {"latency": [item and item.p95 for item in spreads["latency"]]}
    return SideBySide(
        version=__version__,
        base=base,
        cases=len(qids),
        alpha=statistics.alpha,
        runs=standings,
        metrics=tuple(_rows(chosen, evidence, base, float(statistics.alpha))),
        refused=refused,
        score=weighted(scoring, values, means),
        front=front(scoring, values, {**means, **p95}),
    )


def _rows(names: Sequence[str], evidence: Sequence[RunEvidence], base: int, alpha: float) -> Iterator[Row]:
    """Yield the values of the metrics, tested against the base; all tests are corrected together."""
    asked = [(name, item) for name in names for index, item in enumerate(evidence) if index != base]
    tests = iter(compare_two_sided(asked, alpha))
    for name in names:
        cells, metric = [], measure(name).metric
        for index, item in enumerate(evidence):
            value, bounds, test = item.value(name), item.interval(name), None if index == base else next(tests)
            ends = (bounds.low, bounds.high) if bounds else (None, None)
            against = _against(name, test, item) if test else None
            cells.append(Cell(value.as_float, value.n, value.hits, *ends, against))
        yield Row(name, metric.better, metric.perspective, tuple(cells))


def _evidence(columns: Sequence[Column], base: int, qids: Sequence[str], cluster: str) -> list[RunEvidence]:
    completeness, evidence = Completeness(len(qids), len(qids), 0, 0, 0, 0), []
    sides = [[column.cases[qid] for qid in qids] for column in columns]
    for index, (column, cases) in enumerate(zip(columns, sides, strict=True)):
        earlier = None if index == base else Baseline(sides[base], columns[base].contracts)
        evidence.append(RunEvidence(cases, {}, completeness, column.contracts, earlier, cluster=cluster))
    return evidence


def shared(columns: Sequence[Column]) -> list[str]:
    """Return the qids, sorted, that all runs have under the same gold item; raise UsageError if there are none."""
    items = [{(qid, case.content_hash) for qid, case in column.cases.items()} for column in columns]
    qids = sorted(qid for qid, _ in set.intersection(*items))
    if not qids:
        common = len(set.intersection(*[set(column.cases) for column in columns]))
        why = quantity(common, "has a different one", "have different ones") if common else "no qid is in all of them"
        message = f"nothing to compare: no question has the same gold item in all {len(columns)} runs ({why})"
        raise UsageError(f"{message}. Score all of them again with one gold set")
    return qids


def labels_are_comparable(columns: Sequence[Column]) -> bool:
    """Return whether the conditions for passing are the same in all runs."""
    return all(len({column.contracts.get(name) for column in columns}) == 1 for name in _LABELLED)


def _refused(columns: Sequence[Column], by_judges: Sequence[str]) -> Iterator[LeftOut]:
    """Yield metrics that not all runs measured, or not under the same fingerprint."""

    def joined(names: Sequence[str]) -> str:
        return some(names, 3, lambda name: quoted(name, 40))

    for name in sorted({name for column in columns for name in column.contracts}):
        lacking = [column.name for column in columns if name not in column.contracts]
        others = [item.name for item in columns if item.contracts.get(name) != columns[0].contracts.get(name)]
        if lacking:
            yield LeftOut(name, f"not measured in {joined(lacking)}")
        elif name in by_judges:
            yield LeftOut(name, f"{_OTHER_JUDGE} in {joined(others)}; --across-judges compares them")
        elif others:
            yield LeftOut(name, f"defined differently in {joined(others)}")
        elif not find(name):
            yield LeftOut(name, "unknown to this version of rag-eval")
    if not labels_are_comparable(columns):
        yield LeftOut("flips", "the runs detect refusals differently, so passing does not mean the same")


def _chosen(
    columns: Sequence[Column], refused: Iterable[LeftOut], only: Sequence[str], gated: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the metrics that can be compared, and those that are.

    The latter are those that were named, otherwise the gated ones. Without either, they are all except sums and maxima,
    which estimate nothing: each test costs power. Raises UsageError if one of them cannot be compared.
    """
    order, reasons = list(METRICS), {item.name: item.why for item in refused}
    measures = [measure(name) for name in columns[0].contracts if name not in reasons]
    measures.sort(key=lambda item: (order.index(item.metric.name), item.k or 0))
    comparable = [item.name for item in measures if item.metric.level == "case"]  # run.json's metrics are in no case
    for name, why in reasons.items():
        if name in (only or gated) and why.startswith(_OTHER_JUDGE):
            fix = "Let one judge grade all runs, choose other metrics with --metric, or add --across-judges"
            raise UsageError(f"{name} cannot be compared: {why.partition(';')[0]}. {fix}")
    for name in (measure(name).name for name in only):  # suggests a similar name
        if name not in comparable:
            raise UsageError(f"{name} cannot be compared: {reasons.get(name, 'not measured in any run')}")
    wanted = set(only or gated).intersection(comparable)
    estimates = [name for name in comparable if aggregations.FOLDS[measure(name).fold].estimates]
    return comparable, [name for name in comparable if name in wanted] or estimates


def _against(name: str, comparison: Comparison, evidence: RunEvidence) -> BaseDifference | None:
    if comparison.p is None or comparison.adjusted is None:
        return None
    better = measure(name).metric.better
    sign = 1 if better == "higher" else -1
    # Scores are rounded before the comparison: a difference only in the last bits is a tie.
    steps: Counter[int] = Counter()
    for (a, b), count in evidence.pairs(name).items():
        if a is not None and b is not None:
            if isinstance(a, tuple) and isinstance(b, tuple):  # labelled: it should be high, or low
                turned = a[1] != b[1]  # a turn of a conversation that is right in only one run
                step = (1 if b[1] else -1) * (1 if turned else round(b[0] - a[0], DECIMALS))
            else:
                step = round(b - a, DECIMALS)  # type: ignore[operator]
            step *= sign
            steps[(step > 0) - (step < 0)] += count
    tested = comparison.p, comparison.adjusted, comparison.result
    return BaseDifference(*comparison.change(better), *tested, steps[1], steps[-1], steps[0])


def _standing(column: Column, base: Column, qids: Sequence[str], columns: Sequence[Column]) -> Standing:
    compared, before = ([item.cases[qid] for qid in qids] for item in (column, base))
    labels = Counter(case.label for case in compared)
    spreads = {}
    for name, amount in SPENDING.items():
        scores = (case.scores.get(amount) for case in compared)
        spreads[name] = spread(score for score in scores if not isinstance(score, tuple))
    counts = gold_counts(base.cases.values(), column.cases.values())
    return Standing(
        name=column.name,
        source=column.source,
        run=column.run,
        cases=len(column.cases),
        changed=counts.changed,
        gone=counts.gone,
        new=counts.new,
        passing=sum(labels[label] for label in GOOD),
        missing=labels["MISSING"],
        errored=labels["ERROR"],
        flips=tuple(flips(pair_cases(before, compared)) if labels_are_comparable(columns) else ()),
        **spreads,
    )
