"""Outcomes of all gates of a policy: bounds on values, margins on regressions, completeness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from math import ceil, floor
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from rag_eval.gates.evidence import CONFIDENCE, GroupedCases, RunEvidence, counted
from rag_eval.gates.policy import BOUNDS, COMPLETENESS, MARGINS, Gate, GateResult, Outcome, Policy
from rag_eval.gates.regression import by_comparison, compared
from rag_eval.gates.results import MetricResult, Question, Scores
from rag_eval.gates.selection import expanded, slices_of
from rag_eval.metrics import METRICS, Measure, measure
from rag_eval.scoring.aggregations import FOLDS, enclosed
from rag_eval.scoring.scorecard import Completeness, Scorecard
from rag_eval.stats.intervals import Interval
from rag_eval.stats.tally import Shown, Value, as_shown, tally

Valued = tuple[Measure, Value, Interval | None]
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
    results = [judge_bound(gate, evidence) if gate.direction in BOUNDS else next(margins) for gate in gates]
    return [
        *(_settled(result, policy, evidence) for result in results),
        *judge_completeness(policy.completeness, evidence.completeness),
    ]


def spread(gates: Sequence[Gate], evidence: RunEvidence) -> list[Gate]:
    """Return the gates, with those on each value of a field (``category=*``) repeated for each value."""
    present = evidence.present()
    return [
        gate._replace(slice=part) for gate in gates for part in (expanded(gate.slice, present) if gate.slice else [""])
    ]


def _settled(gate: GateResult, policy: Policy, evidence: RunEvidence) -> GateResult:
    few = evidence.few(gate.slice, policy.slices.min_n)
    return _unless_few(gate._replace(few=few, inconclusive=policy.statistics.inconclusive))


def _unless_few(gate: GateResult) -> GateResult:
    return gate._replace(outcome="inconclusive") if gate.few and gate.outcome != "no_data" else gate


def rejudged(gate: GateResult, now: RunEvidence) -> GateResult:
    """Judge a gate of a report again, by the report's values and not by its recorded outcome.

    The base branch may define a metric differently from the report's table, so its gates carry their own values. A
    regression gate carries its comparison and its level, a gate on a slice whether the slice was large enough.
    """
    counts = counted(now.completeness)
    if gate.direction in MARGINS:
        result = gate._replace(outcome=by_comparison(gate.gate, gate.comparison))
    elif gate.origin == "base":
        result = _with_outcome_of(gate, judge(gate.gate, gate.as_value()))
    elif gate.name in counts:
        result = _with_outcome_of(gate, judge(gate.gate, counts[gate.name]))
    else:
        result = _with_outcome_of(gate, judge_bound(gate.gate, now))
    return _unless_few(result)


def _with_outcome_of(gate: GateResult, result: GateResult) -> GateResult:
    if gate.origin == "base" and gate.confidence and result.value is not None:
        result = result._replace(outcome=_by_interval(gate.gate, gate.low, gate.high))
    return gate._replace(outcome=result.outcome, value=result.value, exact=result.exact, n=result.n)


def judge_bound(gate: Gate, evidence: RunEvidence) -> GateResult:
    """Judge a minimum or maximum: by the value, or by the whole interval if the gate has a confidence."""
    item = judge(gate, evidence.value(gate.name, gate.slice))
    if item.value is None:
        return item._replace(why="the slice has no case" if gate.slice and not evidence.size(gate.slice) else "")
    interval = evidence.interval(gate.name, gate.slice, gate.confidence or CONFIDENCE)
    if interval is None:
        return item
    item = item._replace(low=interval.low, high=interval.high, small=interval.small, asks=_asks(gate, item.n))
    return item._replace(outcome=_by_interval(gate, interval.low, interval.high)) if gate.confidence else item


def judge(gate: Gate, value: Value) -> GateResult:
    """Judge a gate by a value."""
    exact = str(value.number) if isinstance(value.number, Fraction) else None
    number = None if value.number is None else float(value.number)
    outcome: Outcome = "no_data"
    if value.number is not None:
        outcome = "passed" if gate.keeps(value.number) else "failed"
    return gate.judged(outcome, number, value.n, exact)


def _by_interval(gate: Gate, low: float | None, high: float | None) -> Outcome:
    inside = [end is not None and gate.keeps(end) for end in (low, high)]
    if all(inside):
        return "passed"
    return "inconclusive" if any(inside) or None in (low, high) else "failed"


def _asks(gate: Gate, n: int) -> int | None:
    """Return the number of cases that a threshold on a rate requires, if it is not a share of n cases."""
    if not measure(gate.name).is_rate:
        return None
    limit = expressible(Decimal(gate.threshold), n, "min" if gate.direction == "min" else "max")
    return None if limit.exact else limit.cases


class CaseThreshold(NamedTuple):
    """A threshold in cases: at least (``min``) or at most (``max``) ``cases`` of ``n``.

    ``exact`` is true if the threshold is exactly that share; otherwise n cases cannot express it.
    """

    cases: int
    n: int
    exact: bool


def expressible(threshold: Decimal | Fraction, n: int, direction: Literal["min", "max"]) -> CaseThreshold:
    """Return the number of n cases that a threshold on a rate requires."""
    share = Fraction(threshold) * n
    return CaseThreshold(ceil(share) if direction == "min" else floor(share), n, share.denominator == 1)


def judge_completeness(allowed: Mapping[str, int], completeness: Completeness) -> list[GateResult]:
    """Return the outcomes of the completeness gates."""
    values = counted(completeness)
    gates = [Gate(f"completeness.{name}", "max", str(allowed[name])) for name in COMPLETENESS if name in allowed]
    return [judge(gate, values[gate.name]) for gate in gates]


def results_of(card: Scorecard, about: Mapping[str, Any], grouped: GroupedCases | None) -> dict[str, MetricResult]:
    """Return every measure's value, in the order of METRICS; ``about`` is the content of run.json.

    ``grouped`` are the cases of the scorecard by question, if there are several runs.
    """
    positions = {name: index for index, name in enumerate(METRICS)}
    valued = sorted([*_of_cases(card, grouped), *_of_run(card, about)], key=lambda row: positions[row[0].metric.name])
    return {valued_row[0].name: as_result(*valued_row) for valued_row in valued}


def as_result(measure: Measure, value: Value, interval: Interval | None) -> MetricResult:
    """Return a value with its interval for a report."""
    exact = str(value.number) if isinstance(value.number, Fraction) else None
    number = None if value.number is None else float(value.number)
    hits = value.hits if measure.is_rate else None
    result = MetricResult(number, value.n, exact, hits, measure.metric.better, measure.metric.perspective)
    return result._replace(low=interval.low, high=interval.high, small=interval.small) if interval else result


def questions_of(card: Scorecard, hashes: Mapping[str, str], fields: Sequence[str]) -> tuple[Question, ...]:
    """Return the cases of a scorecard with the ``hashes`` of their gold items and their slices by ``fields``.

    Values that cases share are one object, because there may be millions of cases: equal scores, and slices of all
    runs.
    """
    cases = card.cases
    golds, runs, repeated, outcomes = cases.golds, cases.runs, cases.repeated, list(cases.all_outcomes())
    positions = {name: index for index, name in enumerate(card.columns)}
    scores = {
        id(outcome): Scores(positions, outcome.scores, outcome.case_scores) for outcome, _ in cases.outcome_counts
    }
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


def _of_cases(card: Scorecard, grouped: GroupedCases | None) -> list[Valued]:
    """Return each measure with its value and its interval; measures whose cases score alike share one."""
    known: dict[Any, Interval | None] = {}
    rows, tallies = [], card.tallies()
    for item in (one for one in card.measures if one.metric.level == "case"):
        counts = tallies[item.column]
        scores: Counter[Shown] = Counter()
        for score, count in counts.items():  # 1/1 and 2/2 are shown as 1
            scores[as_shown(score)] += count
        key_scores = grouped.scores(item.column) if grouped else frozenset(scores.items())
        key = item.is_rate, item.metric.top, item.fold, key_scores
        if key not in known:
            level = float(CONFIDENCE)
            known[key] = grouped.interval(item, level) if grouped else enclosed(item, scores, level)
        rows.append((item, FOLDS[item.fold].value(counts), known[key]))
    return rows


def _of_run(card: Scorecard, about: Mapping[str, Any]) -> list[Valued]:
    """Return the metrics of run.json; they count everything, so they have no interval."""
    measures = [measure for measure in card.measures if measure.metric.level == "run"]
    return [(measure, FOLDS[measure.fold].value(tally([measure.score(about)])), None) for measure in measures]
