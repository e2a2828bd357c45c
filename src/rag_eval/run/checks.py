"""Checks of a run that read its files again: findings about problems that metric values do not show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from rag_eval.cases import ABSENT, REFUSED, UNRETRIEVED, Case
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.digests import by_line_ends
from rag_eval.contract import Trace
from rag_eval.errors import Finding
from rag_eval.gates import answer_integrity, missing_fields, retrieval_integrity
from rag_eval.gates.integrity import UNJUDGED, at_levels, levels_of, measurement_findings, provenance
from rag_eval.gates.policy import Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import measure
from rag_eval.readers.run_file import sidecar_of
from rag_eval.run.inputs import Inputs
from rag_eval.stats.sampling import sample_positions

_SAMPLE = 150


def origin(inputs: Inputs, about: Mapping[str, Any] | None) -> list[Finding]:
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
    severities = levels_of(*inputs.policies)
    if not (authority and authority.ci):  # on a laptop the gold is often ahead of the traces
        severities = {code: "warning" if level == "error" else level for code, level in severities.items()}
    return provenance(sidecar_of(policy.trace), about, hashes, commits, severities)


def of_answers(
    inputs: Inputs, questions: Sequence[Question], before: Sequence[Question], past: Inputs | None
) -> list[Finding]:
    """Return the findings of all checks that read the answers again.

    ``questions`` are their outcomes, ``before`` those of the baseline, ``past`` the inputs of its traces if they are
    known.
    """
    policies, golds, settings = inputs.policies, inputs.golds, inputs.policy.settings
    levels, seed = levels_of(*policies), inputs.digests.hex("trace")
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
        *measurement_findings(questions, policies),
        *answer_integrity.padded_answers(right, golds.values(), f"{seed} {len(golds)}"),
        *answer_integrity.constant_answers(right),
        *answer_integrity.hidden_answers(right),
        *answer_integrity.hidden_refusals(cases["refused"]),
        *answer_integrity.copied_answers(judged, policies, settings.safety.verbatim_words),
        *answer_integrity.answers_from_gold(judged),
        *answer_integrity.other_answers(cases["answered"]),
        *answer_integrity.marked_refusals(cases["refused"], settings),
        *retrieval_integrity.padded_retrieval(cases["answered"], policies),
        *retrieval_integrity.unmatched_ids(cases["labelled"], inputs.policy.gold),
        *answer_integrity.unrecognised_refusals(
            cases["answers"] + cases["hallucinated"], inputs.policy.trace, is_builtin=is_builtin
        ),
    ]
    if past and levels["ids-changed"] != "off":
        pairs = _pairs_with_baseline(inputs, questions, before, past, seed)
        findings += retrieval_integrity.changed_ids(pairs, policies)
    if levels["injected-instructions"] != "off":
        answered = [question for question in questions if question.trace_line]
        texts = (case for _, case in _cases(inputs, answered))
        findings += retrieval_integrity.injected_instructions(texts, inputs.policy.trace)
    return at_levels(findings, levels)


def _cases(inputs: Inputs, questions: Iterable[Question]) -> Iterator[tuple[Question, Case]]:
    """Read the traces of some questions again."""
    by_line = {question.trace_line: question for question in questions}
    reader = inputs.reader.silent()
    source = reader.open(inputs.policy.trace) if by_line else None
    if source is None:
        return
    settings = inputs.policy.settings
    with source:
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
    samples["answers"] = _draw([item for item in answerable if item.label not in UNJUDGED], seed)
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
    watched = missing_fields.watched(inputs.policies, columns, questions, before)
    gated = [column for column, _ in watched.values()]
    suspects = missing_fields.suspects(questions, inputs.golds, gated, inputs.policy.settings)
    if not suspects:
        return ()
    cases = _cases(inputs, suspects)
    return missing_fields.partly_measured(questions, cases, watched, before, inputs.policies)


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
