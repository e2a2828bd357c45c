"""The steps of a run: read the inputs, score and check the traces, judge; again by another policy or on other gold."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rag_eval.analysis import Context, Earlier, Input, Report
from rag_eval.analysis.judging import build_report
from rag_eval.cases import ABSENT, REFUSED, UNRETRIEVED, Case
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.files import Digests, by_line_ends
from rag_eval.common.paths import sidecar_of
from rag_eval.contract import Gold, Limits, Trace
from rag_eval.engines import ExecutionOptions
from rag_eval.engines.file_scorer import Task, Work, score_file
from rag_eval.errors import Finding
from rag_eval.gates import REFERENCE_GATES, Policy, integrity, trace_integrity
from rag_eval.gates.questions import Question, by_conversation, in_suite, restrict_policy, select_measures
from rag_eval.metrics import Measure, measure
from rag_eval.readers.gates_file import read_policy, with_verdicts
from rag_eval.readers.gold_file import GoldSet, read_gold_set
from rag_eval.readers.json_objects import read_sidecar
from rag_eval.readers.jsonl import read_traces
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run import Options, headline
from rag_eval.scoring import QuestionIndex, Scorecard, other_question
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.stats.sampling import sample_positions

if TYPE_CHECKING:
    from rag_eval.run.authority import Authority
    from rag_eval.run.baseline import BaselineFile

RunJson = Mapping[str, Any] | None
_SAMPLE = 150


class Inputs(NamedTuple):
    """All inputs of scoring except the traces, which stay a stream.

    The traces and the gold of ``policy`` are scored, for its gates. ``policies`` are those that apply: that of the pull
    request with the options laid over it, and that of the base branch if there is one. ``suite_golds`` are the gold
    items of the suite. ``measures`` serve all policies.
    """

    reader: Reader
    digests: Digests
    policy: Policy
    policies: tuple[Policy, ...]
    authority: Authority | None
    gold: GoldSet
    suite_golds: Mapping[str, Gold]
    measures: tuple[Measure, ...]
    execution: ExecutionOptions
    baseline: BaselineFile | None = None

    @property
    def golds(self) -> dict[str, Gold]:
        """Return the gold items."""
        return self.gold.golds

    @property
    def base(self) -> Policy | None:
        """Return the policy of the base branch."""
        return self.policies[1] if len(self.policies) > 1 else None

    @property
    def base_limits(self) -> Limits:
        """Return the limits for files of the base branch."""
        return Limits(**self.base.limits) if self.base else self.reader.limits

    def again(self, policy: Policy, gold: GoldSet | None = None) -> Inputs:
        """Return the inputs for scoring under another policy, on its gold or on ``gold``.

        Problems and digests are separate from those of the run.
        """
        reader, digests = self.reader.silent(), Digests()
        if gold is None and policy.gold == self.policy.gold:
            gold = self.gold
            digests.record("gold", policy.gold, self.digests.hex("gold"))
        gold = gold or read_gold_set(reader, policy.gold, digests.of("gold", policy.gold))
        return self._replace(
            reader=reader,
            digests=digests,
            policy=by_conversation(policy, gold.golds),
            policies=tuple(by_conversation(item, gold.golds) for item in self.policies),
            gold=gold,
            suite_golds=in_suite(gold.golds, policy.suite),
        )


def load_inputs(options: Options, authority: Authority | None = None) -> Inputs:
    """Read everything except the traces: the policies of the change and of its base, the gold, the baseline.

    Raises InputError if a policy is unreadable. Other problems go into the reader's ledger.
    """
    digests = Digests()
    reader, policy = open_policy(options, digests)
    base = _base_policy(options, authority, policy, reader) if authority else None
    return read_inputs(options, reader, digests, [policy, base] if base else [policy], authority)


def read_inputs(
    options: Options, reader: Reader, digests: Digests, policies: Sequence[Policy], authority: Authority | None = None
) -> Inputs:
    """Read the gold of the first policy, and determine the measures. Problems go into the reader's ledger."""
    gold = read_gold_set(reader, policies[0].gold, digests.of("gold", policies[0].gold))
    policies = tuple(by_conversation(policy, gold.golds) for policy in policies)
    suite, measures = in_suite(gold.golds, policies[0].suite), select_measures(options.cutoffs, *policies)
    inputs = Inputs(reader, digests, policies[0], policies, authority, gold, suite, measures, options.execution)
    if not options.baseline and not any(policy.baseline for policy in policies):
        return inputs
    from rag_eval.run.baseline import BaselineFile

    return inputs._replace(baseline=BaselineFile(reader, authority, inputs.base_limits, policies, options.baseline))


def open_policy(options: Options, digests: Digests | None = None) -> tuple[Reader, Policy]:
    """Return a reader, and the policy with the options laid over it.

    Raises InputError with every problem of the gates file.
    """
    is_dask = options.execution.engine == "dask"
    reader = Reader(ProblemCollector(), root=options.root, contents=options.contents, urls=is_dask)
    policy = read_gates_policy(reader, options.gates, digests, options.folder)
    reader = reader._replace(limits=Limits(**policy.limits))
    by = dict.fromkeys([*policy.slices.by, *options.by])
    policy = _with_options(policy, options)._replace(slices=policy.slices._replace(by=tuple(by)))
    return reader, with_verdicts(policy, reader, digests, is_required=bool(options.verdicts))


def _base_policy(options: Options, authority: Authority, head: Policy, reader: Reader) -> Policy | None:
    """Return the policy of the base branch, with the same options laid over it as over the pull request's.

    If files that it names no longer exist, the pull request's files are used: removing them is another change. The
    same applies to gold that the change edits at the base's path, and to scores from elsewhere. Without verdicts of the
    pull request those of the base are missing, which is a finding.
    """
    from rag_eval.run.base_policy import find_base_policy, is_unchanged

    policy = find_base_policy(authority, head, options.folder, is_discovered=options.is_discovered, reader=reader)
    if policy is None:
        return None
    policy = _with_options(policy, options)
    gold, trace, verdicts = policy.gold, policy.trace, policy.verdicts
    is_same_gold = gold == head.gold or (os.path.lexists(gold) and is_unchanged(authority, gold))
    policy = policy._replace(
        gold=gold if is_same_gold else head.gold,
        trace=trace if os.path.lexists(trace) else head.trace,
        verdicts=verdicts if os.path.lexists(verdicts) else head.verdicts or verdicts,
    )
    return with_verdicts(policy, reader.silent())


def _with_options(policy: Policy, options: Options) -> Policy:
    """Return a policy with the options of the run laid over it."""
    return restrict_policy(policy, options.perspectives, options.suite)._replace(
        k=headline(options.cutoffs, policy.k),
        gold=options.gold or policy.gold,
        trace=options.trace or policy.trace,
        verdicts=options.verdicts or policy.verdicts,
    )


def read_gates_policy(reader: Reader, path: str, digests: Digests | None = None, folder: str = "") -> Policy:
    """Return the policy of the gates file at ``path``; without a path the default gates of files in ``folder``."""
    if path:
        policy = read_policy(reader, path, digests.of("gates", path) if digests else None) or Policy()
        reader.ledger.stop_on_problems()
        return policy
    usual = Policy(gates=REFERENCE_GATES)
    gold, trace = (os.path.join(folder, name) for name in (usual.gold, usual.trace))  # noqa: PTH118 - shown with / on Windows too
    return usual._replace(gold=gold, trace=trace)


def read_run_json(reader: Reader, policy: Policy, digests: Digests | None = None) -> dict[str, Any] | None:
    """Return the run.json next to the traces of a policy; None if there is none."""
    path = sidecar_of(policy.trace)
    if policy.trace in reader.contents or not reader.has(path):
        return None
    return read_sidecar(reader, path, digests.of("run", path) if digests else None)


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
    findings = _check_origin(inputs, about)
    if any(measure.name == "precision" for measure in inputs.measures):
        findings += integrity.vacuous(inputs.suite_golds.values(), policy.gold, integrity.levels_of(*inputs.policies))
    earlier, of_baseline, past = _baseline(inputs, about)
    context = _context(inputs, about, earlier)
    context = context._replace(notes=reader.ledger.notes, inputs=[Input(*row) for row in digests.rows()])

    def check(questions: Sequence[Question]) -> list[Finding]:
        answers = _check_answers(inputs, questions, earlier.questions if earlier else (), past)
        return [*findings, *answers, *of_baseline]

    return ScoredRun(inputs, card, earlier, build_report(card, inputs.golds, policy, context, check))


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
    earlier, findings = read_baseline(inputs.baseline, inputs.policy.trace, about, rescored, inputs.golds.keys())
    return earlier and earlier.without(inputs.golds.keys() - inputs.suite_golds.keys()), findings, past


def _context(inputs: Inputs, about: RunJson = None, earlier: Earlier | None = None) -> Context:
    fields = dict.fromkeys(field for policy in (*inputs.policies, inputs.policy) for field in policy.fields)
    hashes, policies = inputs.gold.hashes, inputs.policies
    return Context(about=about, hashes=hashes, fields=tuple(fields), earlier=earlier, policies=policies)


def _scorecard(inputs: Inputs, questions: QuestionIndex | None = None) -> Scorecard:
    """Score the traces against the gold items of the suite; traces of other items are ignored."""
    policy, reader = inputs.policy, inputs.reader
    scorer = metric_scorer(inputs.suite_golds, inputs.measures, policy.settings, inputs.golds)
    questions = questions or QuestionIndex(inputs.golds)
    work = Work(scorer, questions, reader.limits, is_complete=not reader.ledger.problems)
    return score_file(Task(work, reader, policy.trace, inputs.digests, inputs.execution)).close()


def _check_origin(inputs: Inputs, about: Mapping[str, Any] | None) -> list[Finding]:
    """Find that traces are of another commit or other gold, according to run.json (``about``)."""
    authority, policy, head = inputs.authority, inputs.policy, inputs.policies[0]
    if policy.trace == head.trace and policy.gold != head.gold:  # they answer the gold of the run, which is checked
        return []
    gold_sha256 = inputs.digests.hex("gold")
    commits = authority.commits if authority else frozenset[str]()
    about = about or {}
    hashes, named = [gold_sha256], about.get("gold_sha256") or gold_sha256
    if named.lower() != gold_sha256:  # it may be the hash of the file with other line ends
        data = inputs.reader.silent().read(policy.gold)
        hashes += by_line_ends(data) if data else []
    severities = integrity.levels_of(*inputs.policies)
    if not (authority and authority.ci):  # on a laptop the gold is often ahead of the traces
        severities = {code: "warning" if level == "error" else level for code, level in severities.items()}
    return integrity.provenance(sidecar_of(policy.trace), about, hashes, commits, severities)


def _check_answers(
    inputs: Inputs, questions: Sequence[Question], before: Sequence[Question], past: Inputs | None
) -> list[Finding]:
    """Return the findings of all checks that read the answers again.

    ``questions`` are their outcomes, ``before`` those of the baseline, ``past`` the inputs of its traces if they are
    known.
    """
    policies, golds, settings = inputs.policies, inputs.golds, inputs.policy.settings
    levels, seed = integrity.levels_of(*policies), inputs.digests.hex("trace")
    samples = _samples(inputs, questions, seed)
    # All samples are read at once, because reading a large file to its end takes long.
    by_line = {question.trace_line: case for question, case in _cases(inputs, chain(*samples.values()))}
    cases = defaultdict[str, list[Case]](list)
    for name, sample in samples.items():
        lines = sorted(question.trace_line for question in sample)
        cases[name] = [by_line[line] for line in lines] if by_line else []
    right = cases["right"]
    judged = cases["answers"] if _has_text_gates(policies, "groundedness") else []
    is_builtin = inputs.policy.builtin or policies[0].builtin  # a change may be the fix
    findings = [
        *_partly_measured(inputs, questions, before),
        *integrity.measurement_findings(questions, policies),
        *trace_integrity.padded_answers(right, golds.values(), f"{seed} {len(golds)}"),
        *trace_integrity.constant_answers(right),
        *trace_integrity.hidden_answers(right),
        *trace_integrity.hidden_support(judged),
        *trace_integrity.hidden_refusals(cases["refused"]),
        *trace_integrity.copied_answers(judged, policies, settings.safety.verbatim_words),
        *trace_integrity.answers_from_gold(judged),
        *trace_integrity.other_answers(cases["answered"]),
        *trace_integrity.marked_refusals(cases["refused"], settings),
        *trace_integrity.padded_retrieval(cases["answered"], policies),
        *trace_integrity.unmatched_ids(cases["labelled"], inputs.policy.gold),
        *trace_integrity.unrecognised_refusals(
            cases["answers"] + cases["hallucinated"], inputs.policy.trace, is_builtin=is_builtin
        ),
    ]
    if past and levels["ids-changed"] != "off":
        pairs = _pairs_with_baseline(inputs, questions, before, past, seed)
        findings += trace_integrity.changed_ids(pairs, policies)
    if levels["injected-instructions"] != "off":
        answered = [question for question in questions if question.trace_line]
        texts = (case for _, case in _cases(inputs, answered))
        findings += trace_integrity.injected_instructions(texts, inputs.policy.trace)
    return integrity.at_levels(findings, levels)


def _cases(inputs: Inputs, questions: Iterable[Question]) -> Iterator[tuple[Question, Case]]:
    """Read the traces of some questions again."""
    by_line = {question.trace_line: question for question in questions}
    reader = inputs.reader.silent()
    settings = inputs.policy.settings
    with reader.open(inputs.policy.trace) as source:
        for number, line in source.lines_at(by_line):
            question = by_line[number]
            # It was validated during scoring.
            trace = Trace.from_row(msgspec.json.decode(line), question.qid, number)
            yield question, Case(inputs.golds[question.qid], trace, settings)


def _draw(questions: Sequence[Question], seed: str) -> list[Question]:
    """Return some questions, drawn by the content of the files: nobody can predict which answers are checked."""
    return [questions[index] for index in sample_positions(len(questions), _SAMPLE, seed)]


def _samples(inputs: Inputs, questions: Sequence[Question], seed: str) -> dict[str, list[Question]]:
    """Return samples of the questions whose answers the gates files ask to check, by the kind of their answers."""
    policies, golds = inputs.policies, inputs.golds
    answerable = [item for item in questions if item.answerable]
    traced = [item for item in answerable if item.trace_line]
    samples = {}
    if _has_text_gates(policies):
        right = [item for item in answerable if item.label == "OK"]
        samples["right"] = _draw(right, f"{seed} {len(golds)}")
    samples["answers"] = _draw([item for item in answerable if item.label not in integrity.UNJUDGED], seed)
    samples["hallucinated"] = _draw([item for item in questions if item.label == "HALLUCINATION"], seed)
    samples["answered"] = _draw([item for item in questions if item.trace_line and item.label not in ABSENT], seed)
    if _has_text_gates(policies, "refusals"):
        samples["refused"] = _draw([item for item in questions if item.label in REFUSED], seed)
    # Other ids are likely if nothing of the gold was retrieved for most questions.
    if 2 * sum(item.label in UNRETRIEVED for item in questions) > len(traced):
        samples["labelled"] = _draw([item for item in traced if evidence_level(golds[item.qid])], seed)
    return samples


def _has_text_gates(policies: Sequence[Policy], *groups: str) -> bool:
    """Return whether a gate judges the texts of answers: one on precision, containment or a metric of some groups."""
    names = {gate.name for policy in policies for gate in policy.gates}
    return any(name in ("precision", "containment") or measure(name).metric.perspective in groups for name in names)


def _partly_measured(inputs: Inputs, questions: Sequence[Question], before: Sequence[Question]) -> Iterable[Finding]:
    """Find the gated metrics that some cases are missing from because their traces lack a field."""
    columns = [measure.column for measure in inputs.measures]
    watched = integrity.watched(inputs.policies, columns, questions, before)
    gated = [column for column, _ in watched.values()]
    suspects = integrity.suspects(questions, inputs.golds, gated, inputs.policy.settings)
    if not suspects:
        return ()
    cases = _cases(inputs, suspects)
    return integrity.partly_measured(questions, cases, watched, before, inputs.policies)


def _pairs_with_baseline(
    inputs: Inputs, questions: Sequence[Question], before: Sequence[Question], past: Inputs, seed: str
) -> Iterator[tuple[Sequence[str], Case]]:
    """Yield cases labelled by chunk ids, from a sample, each after the ids that the baseline retrieved for it."""
    earlier = {question.qid: question for question in before if question.trace_line}
    both = [item for item in questions if item.trace_line and item.answerable and item.qid in earlier]
    both = _draw([item for item in both if evidence_level(inputs.golds[item.qid]) == "chunk"], seed)
    old_cases = _cases(past, [earlier[question.qid] for question in both])
    old_ids = {question.qid: case.trace.retrieved for question, case in old_cases}
    for question, case in _cases(inputs, both):
        if question.qid in old_ids:
            yield old_ids[question.qid], case
