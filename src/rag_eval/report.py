"""The report: one value that holds everything a rendering, a later judgement or a comparison needs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from rag_eval import __version__, integrity
from rag_eval.blast import GateTurn, GoldChange  # noqa: TC001 - part of the report's public type, as are some below
from rag_eval.diagnosis import Diagnosis, diagnose
from rag_eval.finding import Finding  # noqa: TC001
from rag_eval.gates import Judged, Policy, counted, judge, judge_all, verdict
from rag_eval.policy import PolicyChange  # noqa: TC001
from rag_eval.scoring import Completeness  # noqa: TC001
from rag_eval.tally import Value, as_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_eval.metrics import Measure
    from rag_eval.model import Gold
    from rag_eval.scoring import Scorecard, Scored

FORMAT = 1
_QUESTION_SHOWN = 200


class Input(NamedTuple):
    """A file that was read: what for, under which name, and the sha256 of its bytes."""

    role: str
    path: str
    sha256: str


class MetricResult(NamedTuple):
    """A metric's value over ``n`` cases; ``value`` is None where it applies to none.

    ``exact`` is the value as a ratio of whole numbers where it is one; ``hits`` counts the ones of a 0/1 metric.
    """

    value: float | None
    n: int
    exact: str | None
    hits: int | None
    better: str
    perspective: str

    def as_value(self) -> Value:
        """The value as gates compare it."""
        return Value(Fraction(self.exact) if self.exact is not None else self.value, self.n, self.hits)


class Question(NamedTuple):
    """One case: its labels, and its score under each metric that applies."""

    qid: str
    run: str | None
    question: str
    answerable: bool
    label: str
    example08: str
    scores: Mapping[str, float]
    gold_line: int
    trace_line: int


class Remark(NamedTuple):
    """A note on the input that a reader of the verdict should know."""

    file: str
    line: int
    message: str
    times: int


class Base(NamedTuple):
    """Who decided: where gates, sign-off policy and signers were taken from beside the head's own.

    ``kind``: ``base`` (another state of the repository), ``head`` (the change under test itself, as it was asked for)
    or ``bootstrap`` (the base has no gates yet). ``through`` says how it was read.
    """

    kind: Literal["base", "head", "bootstrap"]
    ref: str
    commit: str
    through: str


class SignedAt(NamedTuple):
    """The level of sign-off that a change of the gold was held to, what that proves, and what was not checked here."""

    level: str
    enforced: bool
    proves: str
    unchecked: tuple[str, ...]


class Report(NamedTuple):
    """The whole outcome of a run. ``report.json`` is all of it; renderings are pure functions of it."""

    version: str
    verdict: Literal["passed", "failed"]
    gates_file: str
    k: int
    refusal: Mapping[str, Any]
    gates: tuple[Judged, ...]
    metrics: Mapping[str, MetricResult]
    completeness: Completeness
    allowed: Mapping[str, int]
    labels: Mapping[str, int]
    diagnosis: tuple[Diagnosis, ...]
    questions: tuple[Question, ...]
    notes: tuple[Remark, ...]
    inputs: tuple[Input, ...]
    contracts: Mapping[str, str]
    run: Mapping[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    base: Base | None = None
    policy_changes: tuple[PolicyChange, ...] = ()
    gold_changes: tuple[GoldChange, ...] = ()
    gate_turns: tuple[GateTurn, ...] = ()
    signed_at: SignedAt | None = None

    @property
    def passed(self) -> bool:
        """Whether no gate of severity error is broken and no finding is an error."""
        return self.verdict == "passed"

    @property
    def exit_code(self) -> int:
        """0 passed, 1 a gate failed."""
        return 0 if self.passed else 1

    @property
    def failed_gates(self) -> list[Judged]:
        """The gates that fail the run."""
        return [gate for gate in self.gates if gate.blocks]

    @property
    def errors(self) -> list[Finding]:
        """The findings that fail the run."""
        return [finding for finding in self.findings if finding.level == "error"]

    def values(self) -> dict[str, Value]:
        """Each metric's value as gates compare it."""
        return {name: result.as_value() for name, result in self.metrics.items()}


def build(
    card: Scorecard,
    golds: Mapping[str, Gold],
    policy: Policy,
    notes: Sequence[Remark],
    inputs: Sequence[Input],
    run: Mapping[str, Any] | None = None,
    findings: Sequence[Finding] = (),
) -> Report:
    """The report of a scorecard under a policy; ``run`` is what run.json says, ``findings`` what was found already."""
    metrics = {one.name: _result(one, value) for one, value in _valued(card)}
    labels = dict(sorted(Counter(case.label for case in card.cases).items()))
    return _judged(
        Report(
            version=__version__,
            verdict="passed",
            gates_file=policy.file,
            k=policy.k,
            refusal={"token": policy.token, "phrases": list(policy.phrases)},
            gates=(),
            metrics=metrics,
            completeness=card.completeness,
            allowed={},
            labels=labels,
            diagnosis=(),
            questions=_questions(card, golds),
            notes=(*_level_notes(card), *notes),
            inputs=tuple(inputs),
            contracts={one.name: contract(one, policy) for one in card.measures},
            run=run,
            findings=(*findings, *habits(card, policy)),
        ),
        policy,
    )


def rejudge(report: Report, policy: Policy) -> Report:
    """The same values under other gates; a metric that the report lacks is ``no_data``.

    No base has a say in those, so what the report tells of one is left out. Findings stay.
    """
    alone = report._replace(gates_file=policy.file, base=None, policy_changes=(), gate_turns=())
    return _judged(alone, policy)


def again(report: Report) -> Report:
    """The same values under the gates that the report was judged by, the base's among them."""
    values = {**report.values(), **counted(report.completeness)}
    gates = []
    for one in report.gates:
        # The base may define a metric otherwise than this report's table does: its gates carry their own values.
        value = one.as_value() if one.origin == "base" else values.get(one.name, Value(None, 0))
        gates.append(judge(one.gate, value)._replace(origin=one.origin))
    return concluded(report._replace(gates=tuple(gates)))


def concluded(report: Report) -> Report:
    """The report with the verdict that its gates and findings come to."""
    return report._replace(verdict=verdict(report.gates, report.findings))


def contract(measure: Measure, policy: Policy) -> str:
    """sha256 of what a value's meaning hangs on: values are comparable only under the same one."""
    terms = {
        "metric": measure.metric.name,
        "version": measure.metric.version,
        "parameters": measure.parameters(),
        "refusal": [policy.token, list(policy.phrases)],
    }
    return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()


def _judged(report: Report, policy: Policy) -> Report:
    gates = tuple(judge_all(policy, report.values(), report.completeness))
    limits = {gate.name: float(gate.threshold) for gate in policy.gates}
    shown = {name: result.value for name, result in report.metrics.items()}
    causes = tuple(diagnose(shown, report.labels, limits, report.k))
    return concluded(report._replace(gates=gates, diagnosis=causes, allowed=dict(policy.completeness)))


def _valued(card: Scorecard) -> list[tuple[Measure, Value]]:
    values = card.values()
    return [(one, values[one.name]) for one in card.measures]


def _result(measure: Measure, value: Value) -> MetricResult:
    exact = str(value.number) if isinstance(value.number, Fraction) else None
    number = None if value.number is None else float(value.number)
    hits = value.hits if measure.metric.scale == "rate" else None
    return MetricResult(number, value.n, exact, hits, measure.metric.better, measure.metric.perspective)


def _questions(card: Scorecard, golds: Mapping[str, Gold]) -> tuple[Question, ...]:
    names = [one.name for one in card.measures]
    shown: dict[int, dict[str, float]] = {}  # cases that score alike share one tuple of scores, and one mapping here
    for case in card.cases:
        if id(case.scores) not in shown:
            applying = ((name, score) for name, score in zip(names, case.scores, strict=True) if score is not None)
            shown[id(case.scores)] = {name: as_float(score) for name, score in applying}
    return tuple([_question(case, golds[case.qid], shown[id(case.scores)]) for case in card.cases])


def _question(case: Scored, gold: Gold, scores: Mapping[str, float]) -> Question:
    text, own = gold.question[:_QUESTION_SHOWN], (case.label, case.example08)
    return Question(case.qid, case.run, text, gold.answerable, *own, scores, case.gold_line, case.trace_line)


def habits(card: Scorecard, *policies: Policy) -> list[Finding]:
    """What the run does that gates cannot see; where several policies are in force, the gravest level of each."""
    names = [{gate.name for gate in policy.gates if gate.severity == "error"} for policy in policies]
    run = integrity.Run(card.cases, set.union(*names), card.pool, set.intersection(*names))
    return integrity.findings(run, levels(*policies))


def levels(*policies: Policy) -> dict[str, str]:
    """How grave each finding about a run is under all of the policies together."""
    return {code: _gravest(code, policies) for code in integrity.LEVELS}


def _gravest(code: str, policies: Sequence[Policy]) -> str:
    own = {policy.integrity.get(code, integrity.LEVELS[code]) for policy in policies}
    return next(level for level in ("error", "warning", "off") if level in own)


def _level_notes(card: Scorecard) -> list[Remark]:
    by_documents = sum(case.level == "doc" for case in card.cases)
    if not by_documents:
        return []
    return [Remark("retrieval", 0, "judged by documents where no chunk labels exist", by_documents)]
