"""Outcomes of a policy: of its gates (bounds on values, margins on regressions, completeness) and its weighted score.

The weighted score helps to choose among runs and decides no gate, because a weighted mean hides failures that a gate
stops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from math import ceil, floor, fsum
from operator import attrgetter
from typing import Any, NamedTuple

from rag_eval.gates.evidence import CONFIDENCE, GroupedCases, RunEvidence, counted
from rag_eval.gates.policy import (
    BOUNDS,
    COMPLETENESS,
    MARGINS,
    QUALITY,
    SPENDING,
    WEIGHTS,
    Gate,
    GateResult,
    Outcome,
    Policy,
    Scoring,
)
from rag_eval.gates.regression import by_comparison, compared
from rag_eval.gates.results import MetricResult, Question, Scores
from rag_eval.gates.selection import expanded, slices_of
from rag_eval.metrics import METRICS, Measure, measure
from rag_eval.scoring.aggregations import FOLDS, enclosed
from rag_eval.scoring.scorecard import Scorecard
from rag_eval.stats.intervals import Interval
from rag_eval.stats.tally import DECIMALS, Shown, Value, as_shown, tally

ValuesByRun = Sequence[float | None]
"""The value of each run, None if it has none."""
_QUESTION_SHOWN = 200
_QID, _ANSWERABLE, _LINE = map(attrgetter, ("qid", "answerable", "line"))
_LABEL, _EXAMPLE = map(attrgetter, ("label", "coarse_label"))


def judge_all(policy: Policy, evidence: RunEvidence) -> list[GateResult]:
    """Return the outcome of every gate of a policy in its order, completeness last.

    A metric without a value is ``no_data``, a slice of fewer cases than ``min_n`` inconclusive.
    """
    gates = spread(policy.selected_gates, evidence)
    regression = [gate for gate in gates if gate.direction not in BOUNDS]
    margins = compared(regression, evidence, policy.statistics, policy.slices.min_n)
    results = []
    for gate in gates:
        result = judge_bound(gate, evidence) if gate.direction in BOUNDS else next(margins)
        few = evidence.few(gate.slice, policy.slices.min_n)
        results.append(_unless_few(result._replace(few=few, inconclusive=policy.statistics.inconclusive)))
    counts, allowed = counted(evidence.completeness), policy.completeness
    gates = [Gate(f"completeness.{name}", "max", str(allowed[name])) for name in COMPLETENESS if name in allowed]
    return results + [judge(gate, counts[gate.name]) for gate in gates]


def spread(gates: Sequence[Gate], evidence: RunEvidence) -> list[Gate]:
    """Return the gates, with those on each value of a field (``category=*``) repeated for each value."""
    present, result = evidence.present(), []
    for gate in gates:
        result += [gate._replace(slice=part) for part in (expanded(gate.slice, present) if gate.slice else [""])]
    return result


def _unless_few(gate: GateResult) -> GateResult:
    return gate._replace(outcome="inconclusive") if gate.few and gate.outcome != "no_data" else gate


def rejudged(gate: GateResult, now: RunEvidence) -> GateResult:
    """Judge a gate of a report again, by the report's values and not by its recorded outcome.

    The base branch may define a metric differently from the report's table, so its gates carry their own values. A
    regression gate carries its comparison and its level, a gate on a slice whether the slice was large enough.
    """
    if gate.direction in MARGINS:
        return _unless_few(gate._replace(outcome=by_comparison(gate.gate, gate.comparison)))
    counts = counted(now.completeness)
    if gate.origin == "base":
        result = judge(gate.gate, gate.as_value())
        if gate.confidence and (gate.low, gate.high) != (None, None):  # the value has an interval
            result = result._replace(outcome=_by_interval(gate.gate, gate.low, gate.high))
    elif gate.name in counts:
        result = judge(gate.gate, counts[gate.name])
    else:
        result = judge_bound(gate.gate, now)
    return _unless_few(gate._replace(outcome=result.outcome, value=result.value, exact=result.exact, n=result.n))


def judge_bound(gate: Gate, evidence: RunEvidence) -> GateResult:
    """Judge a minimum or maximum: by the value, or by the whole interval if the gate has a confidence."""
    item = judge(gate, evidence.value(gate.name, gate.slice))
    if item.value is None:
        return item._replace(why="the slice has no case" if gate.slice and not evidence.size(gate.slice) else "")
    interval = evidence.interval(gate.name, gate.slice, gate.confidence or CONFIDENCE)
    if interval is None:
        return item
    asks = cases_asked(Decimal(gate.threshold), item.n, gate.direction) if measure(gate.name).is_rate else None
    item = item._replace(low=interval.low, high=interval.high, small=interval.small, asks=asks)
    return item._replace(outcome=_by_interval(gate, interval.low, interval.high)) if gate.confidence else item


def judge(gate: Gate, value: Value) -> GateResult:
    """Judge a gate by a value."""
    outcome: Outcome = "no_data"
    if value.number is not None:
        outcome = "passed" if gate.keeps(value.number) else "failed"
    return gate.judged(outcome, value.as_float, value.n, value.exact)


def _by_interval(gate: Gate, low: float | None, high: float | None) -> Outcome:
    """Judge a gate by the ends of an interval; an open end, None, is beyond every number."""
    inside = [
        gate.direction == "max" if low is None else gate.keeps(low),
        gate.direction == "min" if high is None else gate.keeps(high),
    ]
    if all(inside):
        return "passed"
    return "inconclusive" if any(inside) else "failed"


def cases_asked(threshold: Decimal | Fraction, n: int, direction: str) -> int | None:
    """Return the minimum or maximum number of n cases that a threshold on a rate allows, if it is no share of n."""
    share = Fraction(threshold) * n
    if share.denominator == 1:
        return None
    return ceil(share) if direction == "min" else floor(share)


def results_of(card: Scorecard, about: Mapping[str, Any], grouped: GroupedCases | None) -> dict[str, MetricResult]:
    """Return every measure's value, in the order of METRICS; ``about`` is the content of run.json.

    ``grouped`` are the cases of the scorecard by question, if there are several runs. Measures whose cases score alike
    share an interval. The metrics of run.json count everything, so they have none.
    """
    known: dict[Any, Interval | None] = {}
    results, tallies, level = {}, card.tallies(), float(CONFIDENCE)
    positions = {name: index for index, name in enumerate(METRICS)}
    for item in sorted(card.measures, key=lambda item: positions[item.metric.name]):
        if item.metric.level == "run":
            results[item.name] = as_result(item, FOLDS[item.fold].value(tally([item.score(about)])), None)
            continue
        counts = tallies[item.column]
        scores: Counter[Shown] = Counter()
        for score, count in counts.items():  # 1/1 and 2/2 are shown as 1
            scores[as_shown(score)] += count
        depends = grouped.scores(item.column) if grouped else frozenset(scores.items())
        key = item.is_rate, item.metric.top, item.fold, depends
        if key not in known:
            known[key] = grouped.interval(item, level) if grouped else enclosed(item, scores, level)
        results[item.name] = as_result(item, FOLDS[item.fold].value(counts), known[key])
    return results


def as_result(measure: Measure, value: Value, interval: Interval | None) -> MetricResult:
    """Return a value with its interval for a report."""
    hits, metric = value.hits if measure.is_rate else None, measure.metric
    result = MetricResult(value.as_float, value.n, value.exact, hits, metric.better, metric.perspective)
    return result._replace(low=interval.low, high=interval.high, small=interval.small) if interval else result


def questions_of(card: Scorecard, hashes: Mapping[str, str], fields: Sequence[str]) -> tuple[Question, ...]:
    """Return the cases of a scorecard with the ``hashes`` of their gold items and their slices by ``fields``.

    Values that cases share are one object, because there may be millions of cases: equal scores, and slices of all
    runs.
    """
    cases = card.cases
    golds, runs, repeated, outcomes = cases.golds, cases.runs, cases.repeated, list(cases.all_outcomes())
    positions, scores = {name: index for index, name in enumerate(card.columns)}, {}
    for outcome, _ in cases.outcome_counts:
        scores[id(outcome)] = Scores(positions, outcome.scores, outcome.case_scores)
    qids = list(map(_QID, golds))
    slices = [slices_of(gold, fields) for gold in golds] if fields else repeat((), len(golds))
    columns: list[Iterable[Any]] = [
        repeated(qids),
        runs * len(golds),
        repeated([gold.question[:_QUESTION_SHOWN] for gold in golds]),
        repeated(map(_ANSWERABLE, golds)),
        map(_LABEL, outcomes),
        map(_EXAMPLE, outcomes),
        map(scores.__getitem__, map(id, outcomes)),
        repeated(map(_LINE, golds)),
        cases.lines(),
        repeated(map(hashes.get, qids, repeat(""))),
        repeated(slices),
    ]
    return tuple(map(Question, *columns))


class Objective(NamedTuple):
    """An objective that counts: its share of the score, its metrics, and its value by run."""

    name: str
    share: float
    metrics: tuple[str, ...]
    values: tuple[float, ...]


class Dropped(NamedTuple):
    """An objective that has a weight and does not count, with the reason."""

    name: str
    why: str


class Weighted(NamedTuple):
    """The weighted score by run, None if no objective has a value; shares of the counted objectives add up to 1."""

    scores: tuple[float, ...] | None
    objectives: tuple[Objective, ...]
    dropped: tuple[Dropped, ...]


class Front(NamedTuple):
    """The Pareto front of runs in several dimensions.

    ``dimensions`` are those in which every run has a value, ``points`` are the runs' values in their order.
    ``beaten_by`` has the index of the first run that is at least as good in all dimensions and better in one; None on
    the front.
    """

    quality: str
    dimensions: tuple[str, ...]
    left_out: tuple[Dropped, ...]
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
            dropped.append(Dropped(name, why))
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
    scores = weighted(scoring._replace(weights=named), metrics, {}).scores
    quality = "weighted score without cost and latency" if scores else "precision"
    scores = scores or _whole(metrics.get("precision", ()))
    if scores is None:
        return None
    columns = {name: known for name, column in spending.items() if (known := _whole(column)) is not None}
    left_out = tuple(Dropped(name, "not every run has a value") for name in spending if name not in columns)
    points = tuple(zip(scores, *columns.values(), strict=True))

    def beats(point: tuple[float, ...], other: tuple[float, ...]) -> bool:
        # Higher quality is better, lower values of the rest are.
        ahead = point[0] - other[0], *(b - a for a, b in zip(point[1:], other[1:], strict=True))
        return min(ahead) >= 0 and max(ahead) > 0

    beaten = (next((index for index, other in enumerate(points) if beats(other, point)), None) for point in points)
    return Front(quality, ("quality", *columns), left_out, points, tuple(beaten))
