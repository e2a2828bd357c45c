"""A scored run: score and check the traces, judge the gates; again under another policy or on other gold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rag_eval.analysis import Context, Earlier, Input, Report
from rag_eval.analysis.judging import build_report
from rag_eval.cases import ABSENT, REFUSED, UNRETRIEVED, Case
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.files import by_line_ends
from rag_eval.common.paths import sidecar_of
from rag_eval.contract import Trace
from rag_eval.engines.file_scorer import Task, Work, score_file
from rag_eval.errors import Finding
from rag_eval.gates import Policy, integrity, trace_integrity
from rag_eval.gates.questions import Question
from rag_eval.metrics import measure
from rag_eval.readers.gold_file import GoldSet
from rag_eval.readers.jsonl import read_run_json, read_traces
from rag_eval.run.inputs import Inputs
from rag_eval.scoring import QuestionIndex, Scorecard, is_other_question
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.stats.sampling import sample_positions

RunJson = Mapping[str, Any] | None
_SAMPLE = 150


class ScoredRun(Struct, frozen=True):
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
        pairs = ((trace, golds.get(trace.qid or trace.q_id or trace.case_id)) for trace in traces)
        return sorted({gold.qid for trace, gold in pairs if gold and is_other_question(trace, gold)})


def score_run(inputs: Inputs) -> ScoredRun:
    """Score the traces, check the answers and judge the gates; InputError with every problem of every file."""
    reader, policy, digests = inputs.reader, inputs.policy, inputs.digests
    card = _scorecard(inputs)
    about = read_run_json(reader, policy.trace, digests)
    if any(problem.file == policy.trace for problem in reader.ledger.problems):
        from rag_eval.readers.import_inputs import export_problem

        if export := export_problem(reader, policy.trace, "trace"):
            reader.ledger.replace(policy.trace, export)
    reader.ledger.stop_on_problems()
    of_origin = _check_origin(inputs, about)
    earlier, of_baseline, past = _baseline(inputs, about)
    context = _context(inputs, about, earlier)
    context = replace(context, notes=reader.ledger.notes, inputs=[Input(*row) for row in digests.rows()])

    def check(questions: Sequence[Question]) -> list[Finding]:
        answers = _check_answers(inputs, questions, earlier.questions if earlier else (), past)
        return [*of_origin, *answers, *of_baseline]

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
        card = _scorecard(replace(inputs, suite_golds=suite), questions)
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
        past = inputs.again(replace(inputs.policy, trace=path), inputs.gold)
        past = replace(past, reader=replace(past.reader, contents={path: traces}, limits=inputs.base_limits))
        rescored = build_report(_scorecard(past), past.golds, past.policy, _context(past))
    earlier, findings = read_baseline(inputs.baseline, inputs.policy.trace, about, rescored, inputs.golds.keys())
    return earlier and earlier.without(inputs.golds.keys() - inputs.suite_golds.keys()), findings, past


def _context(inputs: Inputs, about: RunJson = None, earlier: Earlier | None = None) -> Context:
    fields = dict.fromkeys(field for policy in (*inputs.policies, inputs.policy) for field in policy.fields)
    return Context(about=about, fields=tuple(fields), earlier=earlier, policies=inputs.policies)


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
    cases = _sampled_cases(inputs, questions, seed)
    right = cases["right"]
    judged = cases["answers"] if _has_text_gates(policies, "groundedness") else []
    is_builtin = inputs.policy.builtin or policies[0].builtin  # a change may be the fix
    qids = {case.gold.qid for case in cases["answered"]}
    same = (question for question in before if question.trace_line and question.qid in qids)
    earlier = (case for _, case in _cases(past, same)) if past else ()
    findings = [
        *integrity.vacuous_gold(inputs.suite_golds.values(), inputs.policy.gold, inputs.measures),
        *_partly_measured(inputs, questions, before),
        *integrity.constant_measurements(questions, policies),
        *integrity.unchecked_answers(questions, policies),
        *integrity.flags_everything(questions, policies),
        *trace_integrity.padded_answers(right, golds.values(), f"{seed} {len(golds)}"),
        *trace_integrity.constant_answers(right),
        *trace_integrity.hidden_answers(right),
        *trace_integrity.hidden_support(judged),
        *trace_integrity.hidden_refusals(cases["refused"]),
        *trace_integrity.ignored_reasoning(cases["answered"], earlier, "error" if inputs.authority else "warning"),
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
    if not inputs.authority:  # against a base branch the traces of all questions are compared
        findings += trace_integrity.other_questions(cases["answered"], inputs.policy.trace)
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


def _sampled_cases(inputs: Inputs, questions: Sequence[Question], seed: str) -> defaultdict[str, list[Case]]:
    """Return samples of the cases whose answers the gates files ask to check, by the kind of their answers."""
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
    # All samples are read at once, because reading a large file to its end takes long.
    by_line = {question.trace_line: case for question, case in _cases(inputs, chain(*samples.values()))}
    cases = defaultdict[str, list[Case]](list)
    for name, sample in samples.items():
        lines = sorted(question.trace_line for question in sample)
        cases[name] = [by_line[line] for line in lines] if by_line else []
    return cases


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
