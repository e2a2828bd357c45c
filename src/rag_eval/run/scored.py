"""A scored run: scored by its own policy, and again by another policy or against other gold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from rag_eval.analysis.report import Context, Earlier, Input, Report, build_report, evidence_of
from rag_eval.engines.work import Task, Work, score_file
from rag_eval.errors import Finding
from rag_eval.gates.integrity import levels_of, vacuous
from rag_eval.gates.policy import Policy
from rag_eval.readers.gold_file import GoldSet
from rag_eval.readers.jsonl import read_traces
from rag_eval.run import checks
from rag_eval.run.inputs import Inputs, read_run_json
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.scoring.scorecard import Scorecard
from rag_eval.scoring.scorer import QuestionIndex, other_question

RunJson = Mapping[str, Any] | None


class ScoredRun(NamedTuple):
    """A run under one policy on one gold set, with its baseline."""

    inputs: Inputs
    card: Scorecard
    earlier: Earlier | None
    report: Report

    @property
    def gold_sha256(self) -> str:
        """Return the sha256, in hex, of the gold file that was scored."""
        return self.inputs.digests.hex("gold")

    def other_questions(self) -> list[str]:
        """Return the qids, sorted, whose traces have another question than the gold, in all trace files that apply."""
        reader, golds = self.inputs.reader.silent(), self.inputs.golds
        files = dict.fromkeys(policy.trace for policy in self.inputs.policies)
        traces = chain.from_iterable(block for file in files for block in read_traces(reader, file))
        others = {other_question(trace, golds) for trace in traces if trace.q or trace.question}
        return sorted(qid for qid in others if qid is not None)


def score_run(inputs: Inputs) -> ScoredRun:
    """Score the traces, check the answers and judge the gates; InputError with every problem of every file."""
    reader, policy, digests = inputs.reader, inputs.policy, inputs.digests
    card = _scorecard(inputs)
    about = read_run_json(reader, policy, digests)
    if any(problem.file == policy.trace for problem in reader.ledger.problems):
        from rag_eval.readers.import_inputs import export_problem

        if export := export_problem(reader, policy.trace, "trace"):
            reader.ledger.replace(policy.trace, export)
    reader.ledger.stop_on_problems()
    findings = checks.origin(inputs, about)
    if any(measure.name == "precision" for measure in inputs.measures):
        findings += vacuous(inputs.suite_golds.values(), policy.gold, levels_of(*inputs.policies))
    earlier, of_baseline, past = _baseline(inputs, about)
    context = _context(inputs, about, earlier)
    evidence = evidence_of(card, policy, context)
    before = earlier.questions if earlier else ()
    context = context._replace(
        evidence=evidence,
        notes=reader.ledger.notes,
        inputs=[Input(*row) for row in digests.rows()],
        findings=[*findings, *checks.of_answers(inputs, evidence.questions, before, past), *of_baseline],
        policies=inputs.policies,
    )
    return ScoredRun(inputs, card, earlier, build_report(card, inputs.golds, policy, context))


def rescore(run: ScoredRun, policy: Policy) -> ScoredRun:
    """Score the run again under another policy: its own traces, gold and baseline, with all checks."""
    return score_run(run.inputs.again(policy))


def rescore_on(run: ScoredRun, gold: GoldSet) -> ScoredRun:
    """Score the run and the baseline on other gold.

    Traces that answer none of its questions are left out. So are questions that were removed from the run's gold, or
    from its suite, and have no trace: the system's answers to them are unknown. A trace without an id may answer a
    question or a turn that only the run's gold has under these words.
    """
    inputs = run.inputs.again(run.inputs.policy, gold)
    earlier, *_ = _baseline(inputs, run.report.run)
    questions = QuestionIndex(gold.golds, QuestionIndex(run.inputs.golds))
    card, removed = _scorecard(inputs, questions), gold.golds.keys() - run.inputs.suite_golds.keys()
    if unanswered := {item.qid for item, _, outcome, _ in card.cases if outcome.label == "MISSING"} & removed:
        suite = {qid: item for qid, item in inputs.suite_golds.items() if qid not in unanswered}
        card = _scorecard(inputs._replace(suite_golds=suite), questions)
    # Its integrity is not checked: only its cases and its gates are compared with those of the run.
    report = build_report(card, gold.golds, inputs.policy, _context(inputs, run.report.run, earlier))
    return ScoredRun(inputs, card, earlier, report)


def _baseline(inputs: Inputs, about: RunJson) -> tuple[Earlier | None, list[Finding], Inputs | None]:
    """Return the baseline, findings about it, and the inputs of its traces if they could be scored again.

    The caller's own baseline has precedence over the one that the base branch's policy names.
    """
    if inputs.baseline is None:
        return None, [], None
    from rag_eval.run.baseline import read_baseline

    past, rescored, path = None, None, inputs.baseline.trace
    if (traces := inputs.baseline.traces()) is not None:
        past = inputs.again(inputs.policy._replace(trace=path), inputs.gold)
        past = past._replace(reader=past.reader._replace(contents={path: traces}, limits=inputs.base_limits))
        rescored = build_report(_scorecard(past), past.golds, past.policy, _context(past))
    earlier, findings = read_baseline(inputs.baseline, inputs.policy.trace, about, rescored)
    return earlier and earlier.without(inputs.golds.keys() - inputs.suite_golds.keys()), findings, past


def _context(inputs: Inputs, about: RunJson = None, earlier: Earlier | None = None) -> Context:
    fields = dict.fromkeys(field for policy in (*inputs.policies, inputs.policy) for field in policy.fields)
    return Context(about=about, hashes=inputs.gold.hashes, fields=tuple(fields), earlier=earlier)


def _scorecard(inputs: Inputs, questions: QuestionIndex | None = None) -> Scorecard:
    """Score the traces against the gold items of the suite; traces of other items are ignored."""
    policy, reader = inputs.policy, inputs.reader
    scorer = metric_scorer(inputs.suite_golds, inputs.measures, policy.settings, inputs.golds)
    questions = questions or QuestionIndex(inputs.golds)
    work = Work(scorer, questions, reader.limits, is_complete=not reader.ledger.problems)
    return score_file(Task(work, reader, policy.trace, inputs.digests, inputs.execution)).close()
