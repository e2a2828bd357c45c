"""Checks of a run that need its files: what the numbers could not have seen, as findings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval.analysis.report import levels
from rag_eval.cases.case import Case, evidence_level
from rag_eval.cases.finding import Finding
from rag_eval.cases.integrity import (
    SAMPLE,
    Answer,
    Origin,
    drawn_at,
    ids_changed,
    injected,
    provenance,
    repeated,
    unmatched,
    vacuous,
)
from rag_eval.cases.labels import UNRETRIEVED
from rag_eval.common.digests import by_line_ends
from rag_eval.contract import Gold, Trace
from rag_eval.gates import missing_measurements
from rag_eval.gates.policy import MARGINS, Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import measure
from rag_eval.readers.problems import Ledger
from rag_eval.readers.report_file import sidecar_of
from rag_eval.run.inputs import Inputs


def vacuous_gold(inputs: Inputs) -> list[Finding]:
    """Find gold that says too little, if a metric is asked for that needs it."""
    if all(one.name != "precision" for one in inputs.measures):
        return []
    return vacuous(inputs.asked.values(), inputs.policy.gold, levels(*inputs.policies))


def partly_measured(
    inputs: Inputs,
    policy: Policy,
    golds: Mapping[str, Gold],
    questions: Sequence[Question],
    columns: Sequence[str],
    before: Sequence[Question],
) -> list[Finding]:
    """Find the gated metrics that some cases are missing from because their traces lack a field.

    ``columns`` are those of the scorecard, ``before`` the questions of the baseline.
    """
    watched = missing_measurements.watched(inputs.policies, columns)
    gated = missing_measurements.with_values((column for column, _ in watched.values()), questions, before)
    suspects = missing_measurements.suspects(questions, golds, gated, policy.settings)
    if not suspects:
        return []
    cases = read_cases(inputs, policy, golds, suspects)
    found = missing_measurements.partly_measured(questions, cases, gated, before)
    severities = {name: severity for name, (_, severity) in watched.items()}
    return missing_measurements.findings(found, severities, levels(*inputs.policies))


def repeated_answers(
    inputs: Inputs, policy: Policy, golds: Mapping[str, Gold], questions: Sequence[Question], trace_sha256: str
) -> list[Finding]:
    """Find right answers that are the same for many questions, in a sample drawn by the content of the files."""
    if not {"precision", "containment"} & {gate.name for one in inputs.policies for gate in one.gates}:
        return []
    right = [question for question in questions if question.label == "OK" and question.answerable]
    seed = f"{trace_sha256} {len(golds)}"
    sample = [right[place] for place in drawn_at(len(right), SAMPLE, seed)]
    answers = [Answer(case.gold, case.claim) for _, case in read_cases(inputs, policy, golds, sample)]
    return repeated(answers, list(golds.values()), seed, levels(*inputs.policies))


def unmatched_ids(inputs: Inputs, questions: Sequence[Question], trace_sha256: str) -> list[Finding]:
    """Find that gold and traces name chunks differently, if nothing of the gold was retrieved for most questions."""
    lost = sum(question.label in UNRETRIEVED for question in questions)
    if 2 * lost <= sum(question.answerable and question.trace_line > 0 for question in questions):
        return []
    golds, policy = inputs.golds, inputs.policy
    labelled = [
        question
        for question in questions
        if question.trace_line and question.answerable and evidence_level(golds[question.qid])
    ]
    sample = [labelled[place] for place in drawn_at(len(labelled), SAMPLE, trace_sha256)]
    return unmatched((case for _, case in read_cases(inputs, policy, golds, sample) if case.is_answerable), policy.gold)


def changed_ids(
    inputs: Inputs,
    questions: Sequence[Question],
    before: Sequence[Question],
    old_traces: tuple[str, bytes],
    trace_sha256: str,
) -> list[Finding]:
    """Find that chunks have other ids than in the traces of the baseline, in a sample of the questions of both.

    ``before`` are the questions of the baseline, ``old_traces`` the path and the bytes of its traces.
    """
    golds, policy = inputs.golds, inputs.policy
    earlier = {question.qid: question for question in before if question.trace_line}
    both = [one for one in questions if one.trace_line and one.answerable and one.qid in earlier]
    both = [one for one in both if evidence_level(golds[one.qid]) == "chunk"]
    both = [both[place] for place in drawn_at(len(both), SAMPLE, trace_sha256)]
    path, data = old_traces
    asked = [earlier[question.qid] for question in both]
    old_cases = read_cases(inputs, policy._replace(trace=path), golds, asked, data)
    old = {question.qid: case for question, case in old_cases}
    new_cases = read_cases(inputs, policy, golds, both)
    pairs = [(old[question.qid], case) for question, case in new_cases if question.qid in old]
    gates = [gate for one in inputs.policies for gate in one.gates if gate.direction in MARGINS]
    metrics = [measure(gate.name).metric for gate in gates if gate.severity == "error"]
    by_id = any(one.perspective in ("retrieval", "citations") or "precision" in one.name for one in metrics)
    return ids_changed(pairs, by_id, levels(*inputs.policies))


def injected_instructions(inputs: Inputs, questions: Sequence[Question]) -> list[Finding]:
    """Find instructions to a language model in the retrieved chunks, if a gates file asks for it."""
    severities = levels(*inputs.policies)
    if severities["injected-instructions"] == "off":
        return []
    answered = [question for question in questions if question.trace_line]
    cases = read_cases(inputs, inputs.policy, inputs.golds, answered)
    return injected((case.trace for _, case in cases), inputs.policy.trace, severities)


def origin(inputs: Inputs, policy: Policy, about: Mapping[str, Any] | None, gold_sha256: str) -> list[Finding]:
    """Find that traces are of another commit or other gold, as far as run.json (``about``) tells."""
    authority = inputs.authority
    commits = authority.commits if authority else frozenset[str]()
    about = about or {}
    hashes = _hashes_of_gold(inputs, policy.gold, gold_sha256, about)
    severities = levels(*inputs.policies)
    if not (authority and authority.ci):  # on a laptop the gold is often ahead of the traces
        severities = {code: "warning" if level == "error" else level for code, level in severities.items()}
    return provenance(Origin(sidecar_of(policy.trace), about, hashes, commits), severities)


def read_cases(
    inputs: Inputs,
    policy: Policy,
    golds: Mapping[str, Gold],
    questions: Sequence[Question],
    data: bytes | None = None,
) -> Iterator[tuple[Question, Case]]:
    """Read the traces of some questions again, from the file of the policy or from its bytes."""
    by_line = {question.trace_line: question for question in questions}
    held = inputs.reader.held if data is None else {policy.trace: data}
    source = inputs.reader._replace(ledger=Ledger(), held=held).open(policy.trace) if by_line else None
    if source is None:
        return
    with source:
        for number, line in source.lines_at(by_line):
            question = by_line[number]
            trace = Trace.from_row(json.loads(line), question.qid, number)  # it was validated when it was scored
            yield question, Case(golds[question.qid], trace, policy.settings)


def _hashes_of_gold(inputs: Inputs, path: str, sha256: str, about: Mapping[str, Any]) -> list[str]:
    """Return the hashes by which run.json may name a gold file: of its bytes, and of them with other line ends."""
    named = about.get("gold_sha256") or sha256
    source = None if named.lower() == sha256 else inputs.reader._replace(ledger=Ledger()).open(path)
    if source is None:
        return [sha256]
    with source:
        data = source.whole()
    return [sha256, *by_line_ends(data)] if data else [sha256]
