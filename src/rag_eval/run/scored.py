"""A scored run: scored by its own policy, and again by another policy or against other gold."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import Any, NamedTuple

from rag_eval.analysis.report import (
    Context,
    Earlier,
    Input,
    InputNote,
    Report,
    RescoredRun,
    build_report,
    case_results,
    integrity_findings,
    levels,
)
from rag_eval.common.digests import Digests
from rag_eval.contract import Gold
from rag_eval.engines.work import Task, Work, score_file
from rag_eval.errors import Finding, InputError
from rag_eval.gates.integrity import vacuous
from rag_eval.gates.policy import Policy
from rag_eval.gates.selection import in_suite
from rag_eval.readers.gold_file import GoldSet, StoredGold, gold_set, read_gold, stored_gold_set
from rag_eval.readers.jsonl import read_traces
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run import checks
from rag_eval.run.inputs import Inputs, by_conversation, read_run_json
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.scoring.scorecard import Scorecard
from rag_eval.scoring.scorer import QuestionIndex, other_question

RunJson = dict[str, Any] | None


class ScoredRun(NamedTuple):
    """A run under its own policy.

    ``about`` is its run.json, ``old_traces`` are the path and the bytes of the baseline's traces.
    """

    inputs: Inputs
    card: Scorecard
    about: RunJson
    gold: GoldSet
    earlier: Earlier | None
    report: Report
    old_traces: tuple[str, bytes] | None = None

    @property
    def gold_sha256(self) -> str:
        """Return the sha256, in hex, of the gold file that was scored."""
        return self.inputs.digests.hex("gold")

    def stored(self, gold: StoredGold) -> GoldSet:
        """Read the gold set of another commit; InputError if it cannot be read."""
        return stored_gold_set(self.inputs.reader, gold)

    def other_questions(self) -> list[str]:
        """Return the qids, sorted, whose traces have another question than the gold, in all trace files that apply."""
        reader, golds = self.inputs.reader._replace(ledger=ProblemCollector()), self.inputs.golds
        files = dict.fromkeys(policy.trace for policy in self.inputs.policies)
        traces = chain.from_iterable(block for file in files for block in read_traces(reader, file))
        others = {other_question(trace, golds) for trace in traces if trace.q or trace.question}
        return sorted(qid for qid in others if qid is not None)


def score_run(inputs: Inputs) -> ScoredRun:
    """Score the traces under the run's own policy; InputError with every problem of every file."""
    reader, policy, digests = inputs.reader, inputs.policy, inputs.digests
    try:
        card = _scorecard(inputs, reader, inputs.golds, policy, digests)
        about = read_run_json(reader, policy, digests)
        reader.ledger.stop_on_problems()
    except InputError as error:
        raise _name_export(reader, policy.trace, error) from None
    gold = gold_set(reader, policy.gold, inputs.golds)
    severities = levels(*inputs.policies)
    findings = checks.origin(reader, inputs.authority, policy, severities, about, digests.hex("gold"))
    if any(measure.name == "precision" for measure in inputs.measures):
        findings += vacuous(inputs.suite_golds.values(), policy.gold, severities)
    context = Context(about=about, hashes=gold.hashes, fields=inputs.fields, cluster=policy.statistics.cluster)
    cases = case_results(card, context)
    earlier, of_baseline, old_traces = _baseline(inputs, gold, policy, about)
    before = earlier.questions if earlier else ()
    answers = checks.Answers(reader, inputs.policies, policy, inputs.golds, cases.questions, digests.hex("trace"))
    findings += checks.of_answers(answers, card.columns, before, old_traces)
    context = context._replace(
        case_results=cases,
        notes=[InputNote(*note[:4]) for note in reader.ledger.notes],
        inputs=[Input(*row) for row in digests.rows()],
        findings=[*findings, *of_baseline],
        earlier=earlier,
    )
    report = build_report(card, inputs.golds, policy, context)
    return ScoredRun(inputs, card, about, gold, earlier, report, old_traces)


def rescore(run: ScoredRun, policy: Policy) -> Report:
    """Score the run again under another policy, with the baseline of that policy."""
    inputs, digests = run.inputs, Digests()
    reader, previous = inputs.reader._replace(ledger=ProblemCollector()), inputs.policy
    gold, gold_digests = run.gold, inputs.digests
    if policy.gold != previous.gold:
        gold_digests = digests
        gold = gold_set(reader, policy.gold, read_gold(reader, policy.gold, digests.of("gold", policy.gold)))
        policy = by_conversation(policy, gold.golds)
    card = _scorecard(inputs, reader, gold.golds, policy, digests)
    earlier = run.earlier
    if earlier and (policy.settings, policy.gold) != (previous.settings, previous.gold):  # values have another meaning
        earlier, *_ = _baseline(inputs, run.gold, policy, run.about)
    context = Context(fields=_fields(inputs, gold), hashes=gold.hashes, about=run.about, earlier=earlier)
    context = context._replace(cluster=policy.statistics.cluster)
    findings = integrity_findings(card, policy, previous)
    if policy.trace != previous.trace:
        about = read_run_json(reader, policy, Digests())
        severities, gold_sha256 = levels(*inputs.policies), gold_digests.hex("gold")
        findings = [*checks.origin(reader, inputs.authority, policy, severities, about, gold_sha256), *findings]
        context = context._replace(about=about)
    # Other settings also mean other right answers: an answer that counts as a refusal is not one of them.
    cases = case_results(card, context)
    before = run.earlier.questions if run.earlier else ()
    answers = checks.Answers(reader, inputs.policies, policy, gold.golds, cases.questions, digests.hex("trace"))
    if policy.trace != previous.trace:  # these answers are not yet checked
        findings += checks.of_answers(answers, run.card.columns, before, run.old_traces)
    else:
        findings += checks.partly_measured(answers, run.card.columns, before)
        findings += checks.degenerate_answers(answers)
    context = context._replace(case_results=cases)
    reader.ledger.stop_on_problems()
    return build_report(card, gold.golds, policy, context._replace(findings=findings))


def scored_under(run: ScoredRun, policy: Policy) -> ScoredRun:
    """Return the run, and its baseline, scored again under another policy."""
    earlier = _baseline(run.inputs, run.gold, policy, run.about)[0] if run.earlier else None
    return run._replace(inputs=run.inputs._replace(policy=policy), earlier=earlier, report=rescore(run, policy))


def rescore_on(run: ScoredRun, gold: GoldSet) -> RescoredRun:
    """Score the run and the baseline on other gold.

    Traces that answer none of its questions are left out. So are questions that were removed from the run's gold, or
    from its suite, and have no trace: the system's answers to them are unknown.
    """
    inputs, policy, reader = run.inputs, run.inputs.policy, run.inputs.reader._replace(ledger=ProblemCollector())
    earlier = _baseline(inputs, gold, policy, run.about)[0] if run.earlier else None
    golds = gold.golds
    card = _scorecard(inputs, reader, golds, policy, Digests())
    if removed := golds.keys() - inputs.suite_golds.keys():
        missing = {item.qid for item, _, outcome, _ in card.cases if outcome.label == "MISSING"}
        if unanswered := removed & missing:
            card = _scorecard(inputs, reader, golds, policy, Digests(), unanswered)
    fields = _fields(inputs, gold)
    context = Context(fields=fields, hashes=gold.hashes, about=run.about, earlier=earlier)
    return RescoredRun(
        build_report(card, golds, policy, context._replace(findings=integrity_findings(card, policy))), earlier
    )


def _fields(inputs: Inputs, gold: GoldSet) -> tuple[str, ...]:
    """Return the gold fields of the slices, with those of conversations if this gold has any."""
    return tuple(dict.fromkeys((*inputs.fields, *by_conversation(Policy(), gold.golds).fields)))


def _baseline(
    inputs: Inputs, gold: GoldSet, policy: Policy, about: RunJson
) -> tuple[Earlier | None, list[Finding], tuple[str, bytes] | None]:
    """Return the baseline, findings about it, and the path and bytes of its traces if they were scored again.

    They are scored under ``policy``, on its gold if that is another file than the run's, otherwise on ``gold``. The
    caller's own baseline has precedence over the one that the base branch's policy names.
    """
    if inputs.baseline is None:
        return None, [], None
    from rag_eval.run.baseline import read_baseline

    def rescored(path: str, data: bytes) -> Report:
        reader, now = inputs.reader._replace(ledger=ProblemCollector(), contents={path: data}), gold
        if policy.gold != inputs.policy.gold:
            now = gold_set(reader, policy.gold, read_gold(reader, policy.gold))
        under, limited = policy._replace(trace=path), reader._replace(limits=inputs.base_limits)
        card = _scorecard(inputs, limited, now.golds, under, Digests())
        return build_report(card, now.golds, under, Context(fields=inputs.fields, hashes=now.hashes))

    earlier, findings, traces = read_baseline(inputs.baseline, inputs.policy, inputs.base, about, rescored)
    return earlier and earlier.without(inputs.golds.keys() - inputs.suite_golds.keys()), findings, traces


def _scorecard(
    inputs: Inputs,
    reader: Reader,
    golds: dict[str, Gold],
    policy: Policy,
    digests: Digests,
    left_out: Collection[str] = (),
) -> Scorecard:
    """Score a policy's trace file against ``golds``: only about those in their suite that are not ``left_out``."""
    chosen = inputs.suite_golds if golds is inputs.golds else in_suite(golds, policy.suite)
    suite = golds
    if left_out or len(chosen) < len(golds):
        suite = {qid: gold for qid, gold in chosen.items() if qid not in left_out}
    scorer = metric_scorer(suite, inputs.measures, policy.settings, () if suite is golds else golds)
    work = Work(scorer, QuestionIndex(golds), reader.limits, is_complete=not reader.ledger.problems)
    return score_file(Task(work, reader, policy.trace, digests, inputs.execution)).close()


def _name_export(reader: Reader, path: str, error: InputError) -> InputError:
    """Return the error with one problem for a trace file that is the export of another tool."""
    others = [problem for problem in error.problems if problem.file != path]
    if len(others) == len(error.problems):
        return error
    from rag_eval.readers.import_inputs import export_problem

    export = export_problem(reader, path, "trace")
    return InputError([*others, export]) if export else error
