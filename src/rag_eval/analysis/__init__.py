"""The report: one value with everything that renderings, later judgements and comparisons need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.analysis.baseline import Compared, Effect, Flip
from rag_eval.analysis.diagnosis import Diagnosis
from rag_eval.analysis.gold_impact import GateTurn, GoldChange
from rag_eval.analysis.policy_changes import PolicyChange
from rag_eval.errors import Finding, Note
from rag_eval.gates import GateResult, MetricResult, Policy, Statistics
from rag_eval.gates.evidence import Baseline
from rag_eval.gates.questions import Question, QuestionList
from rag_eval.gates.selection import RunScope
from rag_eval.metrics import find
from rag_eval.scoring import Completeness

FORMAT = 1


class Input(NamedTuple):
    """An input file: its purpose, its name, and the sha256 of its bytes."""

    role: str
    path: str
    sha256: str


class Base(NamedTuple):
    """The base branch's part in the verdict: where its gates, sign-off policy and signers were read.

    ``kind``: ``base`` (another state of the repository), ``head`` (the change under test itself, as requested) or
    ``bootstrap`` (the base branch has no gates yet). ``through`` is how it was read.
    """

    kind: Literal["base", "head", "bootstrap"]
    ref: str
    commit: str
    through: str


class SliceResult(NamedTuple):
    """The metrics over a slice of ``n`` questions."""

    slice: str
    n: int
    metrics: Mapping[str, MetricResult]


class SignedAt(NamedTuple):
    """The required level of sign-off of a gold change, what it proves, and what was not checked here."""

    level: str
    enforced: bool
    proves: str
    unchecked: tuple[str, ...]


class CiRun(NamedTuple):
    """The CI run that made a report, as its environment names it; empty or None if it does not."""

    repository: str
    branch: str
    commit: str
    pull_request: int | None
    run: int | None


_OF_CHANGE = frozenset(
    "baseline-changed baseline-from-head baseline-overridden bootstrap change-not-checked-out changed-verdict"
    " fewer-cases gates-from-elsewhere gates-from-head gates-overridden gold-not-governed gold-not-in-git"
    " gold-not-in-items gold-overridden k-overridden run-json-missing signoff-off signoff-unchecked"
    " traces-overridden traces-tracked verdicts-overridden workflow-changed".split()
)
"""Findings about the gates, gold set and other inputs by which a pull request is judged."""


class Report(NamedTuple):
    """The whole outcome of a run. ``report.json`` contains all of it; renderings are pure functions of it."""

    version: str
    verdict: Literal["passed", "failed"]
    gates_file: str
    k: int
    refusal: Mapping[str, Any]
    gates: tuple[GateResult, ...]
    metrics: Mapping[str, MetricResult]
    completeness: Completeness
    allowed: Mapping[str, int]
    labels: Mapping[str, int]
    diagnosis: tuple[Diagnosis, ...]
    questions: QuestionList
    notes: tuple[Note, ...]
    inputs: tuple[Input, ...]
    contracts: Mapping[str, str]
    run: Mapping[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    base: Base | None = None
    policy_changes: tuple[PolicyChange, ...] = ()
    gold_changes: tuple[GoldChange, ...] = ()
    gate_turns: tuple[GateTurn, ...] = ()
    signed_at: SignedAt | None = None
    slices: tuple[SliceResult, ...] = ()
    min_n: int = 0
    statistics: Statistics = Statistics()
    baseline: Compared | None = None
    flips: tuple[Flip, ...] = ()
    effects: tuple[Effect, ...] = ()
    scope: RunScope | None = None  # a whole run
    ci: CiRun | None = None  # outside CI

    @property
    def passed(self) -> bool:
        """Return whether no gate of severity error failed and no finding is an error."""
        return self.verdict == "passed"

    @property
    def exit_code(self) -> int:
        """Return 0 if the run passed, 1 if a gate failed."""
        return 0 if self.passed else 1

    @property
    def paths(self) -> dict[str, str]:
        """Return the paths of the input files by their role, such as gold, trace or gates."""
        return {item.role: item.path for item in self.inputs}

    @property
    def failed_gates(self) -> list[GateResult]:
        """Return the gates that fail the run."""
        return [gate for gate in self.gates if gate.blocks]

    @property
    def errors(self) -> list[Finding]:
        """Return the findings that fail the run."""
        return [finding for finding in self.findings if finding.level == "error"]

    @property
    def needs_review(self) -> bool:
        """Return whether this run has looser gates, another gold set or other inputs than the base branch."""
        is_looser = any(change.kind == "looser" for change in self.policy_changes)
        return is_looser or bool(self.gold_changes) or any(item.code in _OF_CHANGE for item in self.findings)

    @property
    def warnings(self) -> list[Finding]:
        """Return the findings that do not fail the run."""
        return [finding for finding in self.findings if finding.level != "error"]


def system_commit(report: Report) -> str:
    """Return the commit of the system as run.json names it, otherwise as the CI run does; empty if unknown."""
    return str((report.run or {}).get("system_commit") or "") or (report.ci.commit if report.ci else "")


def run_date(report: Report) -> str:
    """Return when the system ran, as run.json says; empty if unknown."""
    dates = map((report.run or {}).get, ("started_at", "date", "created_at"))
    return next((date for date in dates if isinstance(date, str)), "")


class Earlier(Struct, frozen=True):
    """The baseline as it was recorded, and its cases under the gold in use if its traces could be scored again.

    ``file`` says where it was read, without the counts.
    """

    recorded: Report
    questions: Sequence[Question]
    contracts: Mapping[str, str]
    file: Compared
    rerun: Report | None = None

    @property
    def baseline(self) -> Baseline:
        """Return the baseline."""
        again = self.rerun and Baseline(self.rerun.questions, self.rerun.contracts)
        return Baseline(self.questions, self.contracts, self.recorded.metrics, again)

    def without(self, qids: Collection[str]) -> Earlier:
        """Return the baseline without some questions, and without the values that count them."""
        if not qids:
            return self
        metrics = self.recorded.metrics.items()
        run_metrics = {name: value for name, value in metrics if (item := find(name)) and item.metric.level == "run"}
        questions = QuestionList(case for case in self.recorded.questions if case.qid not in qids)
        recorded = self.recorded._replace(questions=questions, metrics=run_metrics)
        if self.questions is not self.recorded.questions:  # the baseline was scored again
            questions = QuestionList(case for case in self.questions if case.qid not in qids)
        return replace(self, recorded=recorded, questions=questions)


class Context(Struct, frozen=True):
    """Facts about a run other than its scores.

    ``about`` is the content of run.json, ``fields`` the gold fields of slices, ``policies`` those whose integrity
    settings apply, by default only that of the report.
    """

    notes: Sequence[Note] = ()
    inputs: Sequence[Input] = ()
    about: Mapping[str, Any] | None = None
    fields: Sequence[str] = ()
    earlier: Earlier | None = None
    policies: Sequence[Policy] = ()


def has_answers(questions: Iterable[Question]) -> bool:
    """Return whether a case of a report has an answer, right or wrong."""
    return any(case.label in ("OK", "REFUSAL_OK") or case.scores.get("empty_rate") == 0 for case in questions)
