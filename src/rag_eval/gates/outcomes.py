"""The outcome of every gate of a policy: bounds on values, margins on worsenings, completeness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.gates.gate_inputs import CONFIDENCE, counted, is_rate
from rag_eval.gates.policy import BOUNDS, COMPLETENESS, MARGINS, Gate, GateResult
from rag_eval.gates.regression import by_comparison, compared
from rag_eval.gates.scope import asked
from rag_eval.gates.slices import expanded

if TYPE_CHECKING:
    from rag_eval.gates.gate_inputs import Evidence
    from rag_eval.gates.policy import Outcome, Policy
    from rag_eval.scoring.scorecard import Completeness
    from rag_eval.stats.tally import Value


def judge_all(policy: Policy, evidence: Evidence) -> list[GateResult]:
    """The outcome of every gate of a policy in its order, completeness last.

    A metric without a value is ``no_data``, a slice of fewer cases than ``min_n`` inconclusive.
    """
    gates = spread(asked(policy), evidence)
    worsening = [gate for gate in gates if gate.direction not in BOUNDS]
    margins = compared(worsening, evidence, policy.statistics, policy.slices.min_n)
    found = [judge_bound(gate, evidence) if gate.direction in BOUNDS else next(margins) for gate in gates]
    return [
        *(_settled(one, policy, evidence) for one in found),
        *judge_completeness(policy.completeness, evidence.completeness),
    ]


def spread(gates: Sequence[Gate], evidence: Evidence) -> list[Gate]:
    """The gates, those on each value of a field (``category=*``) once for each value that there is."""
    present = evidence.present()
    return [
        gate._replace(slice=part) for gate in gates for part in (expanded(gate.slice, present) if gate.slice else [""])
    ]


def _settled(one: GateResult, policy: Policy, evidence: Evidence) -> GateResult:
    few = evidence.few(one.slice, policy.slices.min_n)
    return _unless_few(one._replace(few=few, inconclusive=policy.statistics.inconclusive))


def _unless_few(one: GateResult) -> GateResult:
    return one._replace(outcome="inconclusive") if one.few and one.outcome != "no_data" else one


def rejudged(one: GateResult, now: Evidence) -> GateResult:
    """A gate of a report, judged again by the report's values and not by what it says came of it.

    The base may define a metric otherwise than the report's table does: its gates carry their own values. A worsening
    carries what it was compared with, at which level; a gate on a slice, whether the slice was large enough.
    """
    counts = counted(now.completeness)
    if one.direction in MARGINS:
        found = one._replace(outcome=by_comparison(one.gate, one.comparison))
    elif one.origin == "base":
        found = _with_outcome_of(one, judge(one.gate, one.as_value()))
    elif one.name in counts:
        found = _with_outcome_of(one, judge(one.gate, counts[one.name]))
    else:
        found = _with_outcome_of(one, judge_bound(one.gate, now))
    return _unless_few(found)


def _with_outcome_of(one: GateResult, found: GateResult) -> GateResult:
    if one.origin == "base" and one.confidence and found.value is not None:
        found = found._replace(outcome=_by_interval(one.gate, one.low, one.high))
    return one._replace(outcome=found.outcome, value=found.value, exact=found.exact, n=found.n)


def judge_bound(gate: Gate, evidence: Evidence) -> GateResult:
    """The outcome of a floor or a ceiling: on the value, or on all of the interval where a confidence is asked for."""
    one = judge(gate, evidence.value(gate.name, gate.slice))
    if one.value is None:
        return one._replace(why="no case is in the slice" if gate.slice and not evidence.size(gate.slice) else "")
    found = evidence.interval(gate.name, gate.slice, gate.confidence or CONFIDENCE)
    if found is None:
        return one
    one = one._replace(low=found.low, high=found.high, small=found.small, asks=_asks(gate, one.n))
    return one._replace(outcome=_by_interval(gate, found.low, found.high)) if gate.confidence else one


def judge(gate: Gate, value: Value) -> GateResult:
    """The outcome of a gate on a value."""
    exact = str(value.number) if isinstance(value.number, Fraction) else None
    number = None if value.number is None else float(value.number)
    outcome: Outcome = "no_data"
    if value.number is not None:
        outcome = "passed" if gate.keeps(value.number) else "failed"
    terms = gate.name, gate.direction, gate.threshold, gate.severity, gate.when_no_data
    one = GateResult(*terms, outcome, number, exact, value.n, gate.line)
    return one._replace(slice=gate.slice, confidence=gate.confidence, test=gate.test)


def _by_interval(gate: Gate, low: float | None, high: float | None) -> Outcome:
    kept = [end is not None and gate.keeps(end) for end in (low, high)]
    if all(kept):
        return "passed"
    return "inconclusive" if any(kept) or None in (low, high) else "failed"


def _asks(gate: Gate, n: int) -> int | None:
    """How many cases a threshold on a rate asks for, where it is no share of n cases."""
    if not is_rate(gate.name):
        return None
    asked = expressible(Decimal(gate.threshold), n, "min" if gate.direction == "min" else "max")
    return None if asked.exact else asked.cases


class CaseThreshold(NamedTuple):
    """A threshold in cases: at least (``min``) or at most (``max``) ``cases`` of ``n``.

    ``exact`` says that the threshold is just that share; where it is not, n cases cannot express it.
    """

    cases: int
    n: int
    exact: bool


def expressible(threshold: Decimal | Fraction, n: int, direction: Literal["min", "max"]) -> CaseThreshold:
    """The count of n cases that a threshold on a rate asks for."""
    share = Fraction(threshold) * n
    return CaseThreshold(ceil(share) if direction == "min" else floor(share), n, share.denominator == 1)


def judge_completeness(allowed: Mapping[str, int], found: Completeness) -> list[GateResult]:
    """The outcomes of the completeness gates."""
    values = counted(found)
    gates = [Gate(f"completeness.{name}", "max", str(allowed[name])) for name in COMPLETENESS if name in allowed]
    return [judge(gate, values[gate.name]) for gate in gates]
