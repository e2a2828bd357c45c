"""Gates: a threshold on a metric or on completeness, and the judgement of it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from rag_eval.model import USUAL_GOLD, USUAL_TRACE, Settings
from rag_eval.reference import CEILINGS, DEFAULT_GATES, FLOORS
from rag_eval.tally import Value, exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_eval.finding import Finding
    from rag_eval.scoring import Completeness

Outcome = Literal["passed", "failed", "no_data"]
Severity = Literal["error", "warning"]
Origin = Literal["both", "base", "head"]
COMPLETENESS = ("missing", "duplicate", "unknown")


class Gate(NamedTuple):
    """A threshold as it was written: ``direction`` is ``min`` or ``max``. ``line`` is its place in eval-gates.yml."""

    name: str
    direction: str
    threshold: str
    severity: Severity = "error"
    when_no_data: Literal["fail", "skip"] = "fail"
    line: int = 0

    def keeps(self, number: Fraction | float) -> bool:
        """Whether a number is on the right side, compared exactly."""
        limit = Fraction(Decimal(self.threshold))
        return exactly(number) >= limit if self.direction == "min" else exactly(number) <= limit


class Judged(NamedTuple):
    """A gate with its outcome. ``exact`` is the value as a ratio where it is one.

    ``origin`` says whose gate it is: the base's, the head's or one that both have.
    """

    name: str
    direction: str
    threshold: str
    severity: Severity
    when_no_data: Literal["fail", "skip"]
    outcome: Outcome
    value: float | None
    exact: str | None
    n: int
    line: int = 0
    origin: Origin = "head"

    @property
    def gate(self) -> Gate:
        """The gate that was judged."""
        return Gate(self.name, self.direction, self.threshold, self.severity, self.when_no_data, self.line)

    def as_value(self) -> Value:
        """The value that was judged."""
        return Value(Fraction(self.exact) if self.exact is not None else self.value, self.n)

    @property
    def blocks(self) -> bool:
        """Whether this outcome fails the run."""
        return self.broken and self.severity == "error"

    @property
    def broken(self) -> bool:
        """Whether the gate did not hold, whatever follows from it."""
        return self.outcome == "failed" or (self.outcome == "no_data" and self.when_no_data == "fail")


class Policy(NamedTuple):
    """What eval-gates.yml decides, or the defaults where there is none (``file`` is then empty)."""

    file: str = ""
    gold: str = USUAL_GOLD
    trace: str = USUAL_TRACE
    k: int = Settings().k
    token: str = Settings().token
    phrases: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    completeness: Mapping[str, int] = dict.fromkeys(COMPLETENESS, 0)
    limits: Mapping[str, int] = {}
    integrity: Mapping[str, str] = {}
    stated: Mapping[str, Any] = {}  # the file's own keys and values, to compare two of them

    @property
    def settings(self) -> Settings:
        """What the scores themselves hang on."""
        return Settings(self.token, self.phrases, self.k)


REFERENCE_GATES = (
    *(Gate(metric, "min", DEFAULT_GATES[name]) for name, metric in FLOORS.items()),
    *(Gate(metric, "max", DEFAULT_GATES[name]) for name, metric in CEILINGS.items()),
)
"""The reference scorer's defaults, in force without a gates file."""


def judge(gate: Gate, value: Value) -> Judged:
    """The outcome of a metric gate."""
    exact = str(value.number) if isinstance(value.number, Fraction) else None
    number = None if value.number is None else float(value.number)
    outcome: Outcome = "no_data"
    if value.number is not None:
        outcome = "passed" if gate.keeps(value.number) else "failed"
    terms = gate.name, gate.direction, gate.threshold, gate.severity, gate.when_no_data
    return Judged(*terms, outcome, number, exact, value.n, gate.line)


def judge_all(policy: Policy, values: Mapping[str, Value], completeness: Completeness) -> list[Judged]:
    """The outcome of every gate of a policy, completeness last; a metric without a value is ``no_data``."""
    none = Value(None, 0)
    judged = [judge(gate, values.get(gate.name, none)) for gate in policy.gates]
    return judged + judge_completeness(policy.completeness, completeness)


def merged(base: Sequence[Judged], head: Sequence[Judged]) -> list[Judged]:
    """The gates of both, those that are the same once: the head's in their order, then what only the base has."""
    same = {_terms(one) for one in base} & {_terms(one) for one in head}
    found = [one._replace(origin="both" if _terms(one) in same else "head") for one in head]
    return found + [one._replace(origin="base") for one in base if _terms(one) not in same]


def _terms(one: Judged) -> Judged:
    return one._replace(line=0, origin="both")


def counted(found: Completeness) -> dict[str, Value]:
    """The counts of completeness as values that gates compare."""
    counts = found._asdict()
    return {f"completeness.{name}": Value(Fraction(counts[name]), found.expected) for name in COMPLETENESS}


def judge_completeness(allowed: Mapping[str, int], found: Completeness) -> list[Judged]:
    """The outcomes of the completeness gates."""
    values = counted(found)
    gates = [Gate(f"completeness.{name}", "max", str(allowed[name])) for name in COMPLETENESS if name in allowed]
    return [judge(gate, values[gate.name]) for gate in gates]


def verdict(judged: Sequence[Judged], findings: Sequence[Finding] = ()) -> Literal["passed", "failed"]:
    """``failed`` where a gate of severity error did not hold, or something was found that is an error."""
    wrong = any(one.blocks for one in judged) or any(one.level == "error" for one in findings)
    return "failed" if wrong else "passed"
