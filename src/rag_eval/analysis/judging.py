"""Judgements: the report of a run under a policy, with the outcomes of its gates and its integrity checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

from msgspec.structs import replace

from rag_eval import __version__
from rag_eval.analysis import Context, Earlier, Report, SliceResult, baseline, has_answers
from rag_eval.analysis.baseline import Compared, gold_counts
from rag_eval.analysis.diagnosis import diagnose, limits_of
from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, content_hash
from rag_eval.errors import Finding, Note
from rag_eval.gates import (
    BOUNDS,
    COMPLETENESS,
    FULL,
    MARGINS,
    OF_ANSWERS,
    WHOLE_RUN_CHECKS,
    Gate,
    GateResult,
    MetricResult,
    Outcome,
    Policy,
    contract,
    integrity,
    judges_answers,
    refusal_settings,
    verdict,
)
from rag_eval.gates.evidence import CONFIDENCE, Baseline, RunEvidence, count_questions, counted
from rag_eval.gates.integrity import levels_of
from rag_eval.gates.questions import Question, QuestionList, Scores
from rag_eval.gates.regression import by_comparison, judge_regressions
from rag_eval.gates.selection import expand_slice, scope_of, slices_of
from rag_eval.metrics import METRICS, Measure, measure
from rag_eval.metrics.operations import contradictions
from rag_eval.scoring import Scorecard
from rag_eval.scoring.aggregations import FOLDS
from rag_eval.stats.intervals import Interval
from rag_eval.stats.tally import Tally, Value, json_score, tally

_WHOLE_SLICES = 200
"""Slices that have every metric; the others have the gated ones."""
_OF_QUESTIONS = (*OF_ANSWERS, "retrieval", "context")
"""The metric groups that ignore safety cases."""
_QUESTION_SHOWN = 200


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
    return replace(card, measures=measures, cases=card.cases.of_search())


def build_report(
    card: Scorecard,
    golds: Mapping[str, Gold],
    policy: Policy,
    context: Context = Context(),  # noqa: B008 - a constant
    check: Callable[[Sequence[Question]], Iterable[Finding]] = lambda _: (),
) -> Report:
    """Return the report of a scorecard under a policy, with the findings of ``check`` about its cases."""
    card = judged_as_search(card, policy, context)
    questions, tallies = questions_of(card, context.fields), card.tallies()
    contracts = {measure.name: contract(measure, policy) for measure in card.measures}
    before, cluster = context.earlier.baseline if context.earlier else None, policy.statistics.cluster
    now = RunEvidence(questions, {}, card.completeness, contracts, before, cluster, tallies)
    now.metrics = results_of(card.measures, tallies, context.about or {}, now)
    findings: dict[object, Finding] = {}  # of two from the same integrity check, the first
    for finding in (
        *integrity.degenerate_findings(card.cases.outcome_counts, *(context.policies or [policy])),
        *integrity.verdict_findings(policy, now.questions, levels_of(policy)),
        *check(now.questions),
    ):
        findings.setdefault(finding.code if finding.code in WHOLE_RUN_CHECKS else finding, finding)
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
        policy = replace(policy, statistics=replace(policy.statistics, cluster="conversation"))
    if report.scope is not None:
        policy = replace(policy, perspectives=report.scope.perspectives, suite=report.scope.suite)
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
        findings += baseline.changed_since(report.gates, policy, now)
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


def judge_all(policy: Policy, evidence: RunEvidence) -> list[GateResult]:
    """Return the outcome of every gate of a policy in its order, completeness last.

    A gate on each value of a field (``category=*``) is judged for each value. A metric without a value is ``no_data``,
    a slice of fewer cases than ``min_n`` inconclusive.
    """
    present = evidence.present()
    gates = [replace(gate, slice=part) for gate in policy.selected_gates for part in expand_slice(gate.slice, present)]
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


def questions_of(card: Scorecard, fields: Sequence[str]) -> tuple[Question, ...]:
    """Return the cases of a scorecard with their slices by ``fields``.

    Values that cases share are one object, because there may be millions of cases: equal scores, and slices of all
    runs.
    """
    positions, rows, scores = {name: index for index, name in enumerate(card.columns)}, {}, {}
    for outcome, _ in card.cases.outcome_counts:
        for row in (outcome.scores, outcome.case_scores):
            if id(row) not in rows:
                rows[id(row)] = tuple([None if score is None else json_score(score) for score in row])
        scores[id(outcome)] = Scores(positions, rows[id(outcome.scores)], rows[id(outcome.case_scores)])
    facts = {gold.qid: (content_hash(gold), slices_of(gold, fields)) for gold in card.cases.golds}
    questions = []
    for gold, run, outcome, line in card.cases:
        about = gold.qid, run, gold.question[:_QUESTION_SHOWN], gold.answerable, outcome.label, outcome.coarse_label
        questions.append(Question(*about, scores[id(outcome)], gold.line, line, *facts[gold.qid]))
    return tuple(questions)
