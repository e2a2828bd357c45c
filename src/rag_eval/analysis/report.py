"""The report: one value with everything that renderings, later judgements and comparisons need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rag_eval.analysis import baseline
from rag_eval.analysis.baseline import Compared, Effect, Flip, gold_counts
from rag_eval.analysis.diagnosis import Diagnosis, diagnose, limits_of
from rag_eval.analysis.gold_impact import GateTurn, GoldChange
from rag_eval.analysis.policy_changes import PolicyChange
from rag_eval.common.escaping import quoted
from rag_eval.common.version import __version__
from rag_eval.contract import Gold
from rag_eval.errors import Finding, Note
from rag_eval.gates import (
    FULL,
    OF_ANSWERS,
    GateResult,
    Policy,
    Statistics,
    contract,
    integrity,
    judges_answers,
    refusal_settings,
    verdict,
)
from rag_eval.gates.evidence import Baseline, RunEvidence, count_questions
from rag_eval.gates.integrity import levels_of
from rag_eval.gates.outcomes import as_result, judge_all, questions_of, rejudge_gate, results_of
from rag_eval.gates.results import MetricResult, Question, QuestionList
from rag_eval.gates.selection import RunScope, scope_of
from rag_eval.metrics import find, measure
from rag_eval.metrics.operations import contradictions
from rag_eval.scoring import Completeness, Scorecard

FORMAT = 1
_WHOLE_SLICES = 200
"""Slices that have every metric; the others have the gated ones."""
_OF_QUESTIONS = (*OF_ANSWERS, "retrieval", "context")
"""The metric groups that ignore safety cases."""


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


class Earlier(NamedTuple):
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
        return self._replace(recorded=recorded, questions=questions)


class Context(NamedTuple):
    """Facts about a run other than its scores.

    ``about`` is the content of run.json, ``findings`` are earlier findings, ``hashes`` the hashes of the gold items by
    qid, ``fields`` the gold fields of slices, ``evidence`` that of the scorecard if it is known.
    ``policies`` are those whose integrity settings apply, by default only that of the report.
    """

    notes: Sequence[Note] = ()
    inputs: Sequence[Input] = ()
    about: Mapping[str, Any] | None = None
    findings: Sequence[Finding] = ()
    hashes: Mapping[str, str] = {}
    fields: Sequence[str] = ()
    earlier: Earlier | None = None
    evidence: RunEvidence | None = None
    policies: Sequence[Policy] = ()


def has_answers(questions: Iterable[Question]) -> bool:
    """Return whether a case of a report has an answer, right or wrong."""
    return any(case.label in ("OK", "REFUSAL_OK") or case.scores.get("empty_rate") == 0 for case in questions)


def judged_as_search(card: Scorecard, policy: Policy, context: Context) -> Scorecard:
    """Return the scorecard, that of a search engine with the labels of one and without metrics of answers.

    A search engine gives no answer in any case, its gates are on retrieval and none on answers, and its baseline has no
    answers either: a system whose answers vanish is none.
    """
    is_judged = all(item.judges_search for item in (policy, *context.policies))
    if not is_judged or not all(outcome.search_label for outcome, _ in card.cases.outcome_counts):
        return card
    if context.earlier and has_answers(context.earlier.questions):
        return card
    measures = tuple(measure for measure in card.measures if not judges_answers(measure.metric))
    return card._replace(measures=measures, cases=card.cases.of_search())


def evidence_of(card: Scorecard, policy: Policy, context: Context) -> RunEvidence:
    """Return the cases of a scorecard and the values of its metrics, with the baseline."""
    card = judged_as_search(card, policy, context)
    questions = questions_of(card, context.hashes, context.fields)
    contracts = {measure.name: contract(measure, policy) for measure in card.measures}
    before, cluster = context.earlier.baseline if context.earlier else None, policy.statistics.cluster
    tallies = card.tallies()
    now = RunEvidence(questions, {}, card.completeness, contracts, before, cluster, tallies)
    now.metrics = results_of(card.measures, tallies, context.about or {}, now)
    return now


def build_report(card: Scorecard, golds: Mapping[str, Gold], policy: Policy, context: Context = Context()) -> Report:  # noqa: B008 - a constant
    """Return the report of a scorecard under a policy."""
    card = judged_as_search(card, policy, context)
    now = context.evidence or evidence_of(card, policy, context)
    findings: dict[object, Finding] = {}  # of two from the same integrity check, the first
    for finding in (
        *integrity.degenerate_findings(card.cases.outcome_counts, *(context.policies or [policy])),
        *integrity.verdict_findings(policy, now.questions, levels_of(policy)),
        *context.findings,
    ):
        findings.setdefault(finding.code if finding.code in integrity.WHOLE_RUN_CHECKS else finding, finding)
    if "padded-answers" in findings:  # they are constant too
        findings.pop("constant-answers", None)
    report = Report(
        version=__version__,
        verdict="passed",
        gates_file=policy.file,
        k=policy.k,
        refusal=refusal_settings(policy),
        gates=(),
        metrics=now.metrics,
        completeness=card.completeness,
        allowed={},
        labels=dict(sorted(card.cases.labels().items())),
        diagnosis=(),
        questions=QuestionList(now.questions),
        notes=(*_notes(card, golds, policy, context), *context.notes),
        inputs=tuple(context.inputs),
        contracts=now.contracts,
        run=context.about,
        findings=tuple(findings.values()),
        scope=scope_of([policy], len(card.cases.golds), len(golds)),
    )
    return _judged(report, policy, context.earlier, now)


def _notes(card: Scorecard, golds: Mapping[str, Gold], policy: Policy, context: Context) -> Iterator[Note]:
    """Yield notes on how the cases were scored and on run.json."""
    by_documents = sum(count for outcome, count in card.cases.outcome_counts if outcome.level == "doc")
    if by_documents:
        yield Note("retrieval", 0, "judged by documents because the items have no labels on chunks", by_documents)
    if searches := card.cases.labels()["RETRIEVED"]:
        message = "no trace has an answer, so questions are judged only by what was retrieved for them"
        yield Note("retrieval", 0, message, searches)
    gated = dict.fromkeys(gate.name for gate in policy.gates)
    idle = [name for name in gated if measure(name).metric.perspective in _OF_QUESTIONS]
    if idle and golds and all(gold.attack is not None for gold in golds.values()):
        names = ", ".join(idle[:5])
        text = f"all items are safety cases, which {names} do not judge; gate metrics such as injection_auc instead"
        yield Note("gates", 0, text, len(golds))
    if policy.prices or any(gate.name.startswith("cost_usd") for gate in policy.gates):
        message = "has no price, so its cases have no cost_usd; add it to prices in the gates file"
        yield from (Note(f"model {quoted(model, 60)}", 0, message) for model in card.unpriced)
    path = next((file.path for file in context.inputs if file.role == "run"), "run.json")
    yield from (Note(path, 0, message) for message in contradictions(context.about or {}))


def evidence(report: Report, before: Earlier | None = None, cluster: str = "") -> RunEvidence:
    """Return the evidence by which a report's gates are evaluated."""
    inputs = report.questions, report.metrics, report.completeness, report.contracts
    return RunEvidence(*inputs, before.baseline if before else None, cluster=cluster)


def rejudge(report: Report, policy: Policy, before: Earlier | None = None) -> Report:
    """Judge the same values under other gates; a metric that the report lacks is ``no_data``.

    No base branch decides about these gates, so its part of the report is removed. Findings stay.
    """
    alone = report._replace(gates_file=policy.file, base=None, policy_changes=(), gate_turns=())
    if report.statistics.cluster == "conversation" and not policy.statistics.cluster:
        policy = policy._replace(statistics=policy.statistics._replace(cluster="conversation"))
    if report.scope is not None:
        policy = policy._replace(perspectives=report.scope.perspectives, suite=report.scope.suite)
        alone = alone._replace(scope=scope_of([policy], report.scope.questions, report.scope.of))
    return _judged(alone, policy, before, evidence(alone, before, policy.statistics.cluster))


def rejudge_same_gates(report: Report) -> Report:
    """Judge the same values under the gates of the report, including the base branch's."""
    now = evidence(report, cluster=report.statistics.cluster)
    return with_verdict(report._replace(gates=tuple(rejudge_gate(gate, now) for gate in report.gates)))


def with_verdict(report: Report) -> Report:
    """Return the report with the verdict of its gates and findings."""
    return report._replace(verdict=verdict(report.gates, report.findings))


def with_diagnosis(report: Report) -> Report:
    """Return the report with the likely causes of values outside the limits of its gates and the base branch's."""
    values = {name: result.value for name, result in report.metrics.items()}
    if "RETRIEVED" in report.labels:
        values = {gate.name: values.get(gate.name) for gate in report.gates}
    by_code = {finding.code: finding for finding in reversed(report.findings)}
    refusals = by_code.get("unrecognised-refusals")
    causes = diagnose(
        values,
        report.labels,
        limits_of(report.gates),
        report.k,
        by_code.get("unmatched-ids"),
        report.completeness._asdict(),
        refusals.fix if refusals and "unanswerable" in refusals.message else "",
    )
    return report._replace(diagnosis=tuple(causes))


def _judged(report: Report, policy: Policy, before: Earlier | None, now: RunEvidence) -> Report:
    names = list(dict.fromkeys(gate.name for gate in policy.selected_gates))
    report = report._replace(
        gates=tuple(judge_all(policy, now)),
        allowed=dict(policy.completeness),
        slices=tuple(_slices(policy, names, now, report.metrics)),
        min_n=policy.slices.min_n if policy.slices.by or any(gate.slice for gate in policy.selected_gates) else 0,
        statistics=policy.statistics,
    )
    recorded = Baseline(before.recorded.questions, before.recorded.contracts) if before else Baseline((), {})
    findings = list(baseline.must_pass(policy.must_pass, now.baseline, report.questions, recorded.questions))
    if policy.suite != FULL:  # a partial run cannot be compared
        findings = [finding for finding in findings if finding.code != "must-pass-unknown"]
    if before is not None:
        findings += baseline.disagreeing(names, policy.slices.by, now)
        findings += baseline.less_judged(report.metrics, policy.k, now)
        findings += baseline.fewer_runs(before.recorded.questions, report.questions)
        if verdict(report.gates, (*report.findings, *findings)) == "passed":
            alpha = float(policy.statistics.alpha)
            findings += baseline.ungated_regressions(report.gates, report.metrics, now, alpha)
        report = report._replace(
            baseline=_compared(report, before, now),
            flips=tuple(baseline.flips(now.pairs_of_cases)),
            effects=tuple(baseline.effects(names, recorded, now)),
        )
    return with_verdict(with_diagnosis(report._replace(findings=(*report.findings, *findings))))


def _compared(report: Report, before: Earlier, now: RunEvidence) -> Compared:
    counts = gold_counts(before.recorded.questions, report.questions)
    other = sorted(name for name, fingerprint in report.contracts.items() if before.contracts.get(name) != fingerprint)
    return before.file._replace(
        commit=str((before.recorded.run or {}).get("system_commit") or ""),
        cases=count_questions(report.questions) - counts.changed - counts.new,
        **counts._asdict(),
        incomparable=tuple(other),
        rescored=before.questions is not before.recorded.questions,
        unpaired=now.unpaired,
        new_runs=now.new_runs,
    )


def _slices(
    policy: Policy, names: Sequence[str], now: RunEvidence, metrics: Mapping[str, MetricResult]
) -> Iterator[SliceResult]:
    """Yield the metrics of each slice, by field and then by size. Only gated ones have intervals, which take time."""
    fields = policy.slices.by
    parts = [part for part in now.present() if part.partition("=")[0] in fields]
    parts.sort(key=lambda part: (fields.index(part.partition("=")[0]), -now.size(part), part))
    measured = [name for name, result in metrics.items() if result.n and name not in names]
    others = [name for name in measured if measure(name).metric.level == "case"]
    for index, part in enumerate(parts):
        values = {name: as_result(measure(name), now.value(name, part), now.interval(name, part)) for name in names}
        for name in others if index < _WHOLE_SLICES else ():
            result = as_result(measure(name), now.value(name, part), None)
            if result.n:
                values[name] = result
        yield SliceResult(part, now.size(part), values)
