"""Outcomes of the gates of a policy: bounds on values, margins on regressions, completeness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from math import ceil, floor
from operator import attrgetter
from typing import Any

from rag_eval.gates import BOUNDS, COMPLETENESS, MARGINS, Gate, GateResult, Outcome, Policy
from rag_eval.gates.evidence import CONFIDENCE, RunEvidence, counted
from rag_eval.gates.regression import by_comparison, judge_regressions
from rag_eval.gates.results import MetricResult, Question, Scores
from rag_eval.gates.selection import expand_slice, slices_of
from rag_eval.metrics import METRICS, Measure, measure
from rag_eval.scoring import Scorecard
from rag_eval.scoring.aggregations import FOLDS
from rag_eval.stats.intervals import Interval
from rag_eval.stats.tally import Tally, Value, tally

_QUESTION_SHOWN = 200
_QID, _ANSWERABLE, _LINE = map(attrgetter, ("qid", "answerable", "line"))
_LABEL, _EXAMPLE = map(attrgetter, ("label", "coarse_label"))


def judge_all(policy: Policy, evidence: RunEvidence) -> list[GateResult]:
    """Return the outcome of every gate of a policy in its order, completeness last.

    A metric without a value is ``no_data``, a slice of fewer cases than ``min_n`` inconclusive.
    """
    gates = expand_gates(policy.selected_gates, evidence)
    regression = [gate for gate in gates if gate.direction not in BOUNDS]
    margins = judge_regressions(regression, evidence, policy.statistics, policy.slices.min_n)
    results = []
    for gate in gates:
        result = judge_bound(gate, evidence) if gate.direction in BOUNDS else next(margins)
        few = evidence.few(gate.slice, policy.slices.min_n)
        results.append(_unless_few(result._replace(few=few, inconclusive=policy.statistics.inconclusive)))
    counts, allowed = counted(evidence.completeness), policy.completeness
    gates = [Gate(f"completeness.{name}", "max", str(allowed[name])) for name in COMPLETENESS if name in allowed]
    return results + [judge(gate, counts[gate.name]) for gate in gates]


def expand_gates(gates: Sequence[Gate], evidence: RunEvidence) -> list[Gate]:
    """Return the gates, with those on each value of a field (``category=*``) repeated for each value."""
    present, result = evidence.present(), []
    for gate in gates:
        result += [gate._replace(slice=part) for part in (expand_slice(gate.slice, present) if gate.slice else [""])]
    return result


def _unless_few(gate: GateResult) -> GateResult:
    return gate._replace(outcome="inconclusive") if gate.few and gate.outcome != "no_data" else gate


def rejudge_gate(gate: GateResult, now: RunEvidence) -> GateResult:
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
    asks = cases_required(Decimal(gate.threshold), item.n, gate.direction) if measure(gate.name).is_rate else None
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


def cases_required(threshold: Decimal | Fraction, n: int, direction: str) -> int | None:
    """Return the minimum or maximum number of n cases that a threshold on a rate allows, if it is no share of n."""
    share = Fraction(threshold) * n
    if share.denominator == 1:
        return None
    return ceil(share) if direction == "min" else floor(share)


def results_of(
    measures: Iterable[Measure], tallies: Mapping[str, Tally], about: Mapping[str, Any], now: RunEvidence
) -> dict[str, MetricResult]:
    """Return every measure's value, in the order of METRICS; ``about`` is the content of run.json.

    ``tallies`` are the scores of each column, and ``now`` has the intervals. The metrics of run.json count everything,
    so they have none.
    """
    results = {}
    positions = {name: index for index, name in enumerate(METRICS)}
    for item in sorted(measures, key=lambda item: positions[item.metric.name]):
        scores = tally([item.score(about)]) if item.metric.level == "run" else tallies[item.column]
        results[item.name] = as_result(item, FOLDS[item.fold].value(scores), now.interval(item.name))
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
