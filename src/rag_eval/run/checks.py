"""Checks of a run that need its files: findings about problems that metric values do not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from rag_eval.cases import ABSENT, PHRASE_LIMIT, REFUSED, UNRETRIEVED, Case
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.digests import by_line_ends, sample_positions
from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, Trace
from rag_eval.errors import Finding
from rag_eval.gates import answer_integrity, integrity
from rag_eval.gates.integrity import ALMOST_ALL, FEWEST_CASES, UNJUDGED, at_levels, is_tenth, levels_of, provenance
from rag_eval.gates.policy import MARGINS, Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import measure
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.run_file import sidecar_of
from rag_eval.run.inputs import Inputs
from rag_eval.textual.hidden import is_shown
from rag_eval.textual.tokens import holds_any, tokens

_PADDED = 0.5  # share of the expected answers of other questions
_SIMILARITY = 0.6  # share of the words of two claims
_TURNOVER, _ONE_SIDED = 0.8, 0.1  # share of the baseline's ids, and of the gold's
LEAST_POOL = 20  # honest systems also retrieve all of a shorter list
SAMPLE, PROBE_COUNT = 150, 40
"""So many right answers of a run are looked at, and so many items for what they want to hear."""
_FEW_WORDS = 3
_FIELD = {"chunk": "id", "support": "rel_path", "section": "section", "doc": "doc_id"}


class Answers(NamedTuple):
    """The answers of a run, which checks read again from its traces.

    ``questions`` are their outcomes, ``before`` those of the baseline, ``past`` the inputs of its traces if they are
    known.
    """

    inputs: Inputs
    questions: Sequence[Question]
    before: Sequence[Question] = ()
    past: Inputs | None = None

    @property
    def levels(self) -> dict[str, str]:
        """Return the severity of each finding."""
        return levels_of(*self.inputs.policies)

    @property
    def seed(self) -> str:
        """Return a seed for samples that the number of gold items changes, too."""
        return f"{self.inputs.digests.hex('trace')} {len(self.inputs.golds)}"

    def sample(self, questions: Sequence[Question], seed: str = "") -> list[Question]:
        """Return some questions, drawn by the content of the files: nobody can predict which answers are checked."""
        seed = seed or self.inputs.digests.hex("trace")
        return [questions[index] for index in sample_positions(len(questions), SAMPLE, seed)]

    def cases(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Case]]:
        """Read the traces of some questions again."""
        inputs, by_line = self.inputs, {question.trace_line: question for question in questions}
        reader = inputs.reader._replace(ledger=ProblemCollector())
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


Check = Callable[[Answers, Sequence[Case]], Iterable[Finding]]
"""A check of a sample: it gets the answers with only the questions of the sample, and their cases."""


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
        data = inputs.reader._replace(ledger=ProblemCollector()).read(policy.gold)
        hashes += by_line_ends(data) if data else []
    severities = levels_of(*inputs.policies)
    if not (authority and authority.ci):  # on a laptop the gold is often ahead of the traces
        severities = {code: "warning" if level == "error" else level for code, level in severities.items()}
    return provenance(sidecar_of(policy.trace), about, hashes, commits, severities)


def of_answers(answers: Answers) -> list[Finding]:
    """Return the findings of all checks that read the answers."""
    questions, policies = answers.questions, answers.inputs.policies
    findings = [*_partly_measured(answers), *answer_integrity.measurement_findings(questions, policies)]
    samples = list(_samples(answers))
    # All samples are read at once, because reading a large file to its end takes long.
    sampled = [question for _, sample in samples for question in sample]
    cases = {question.trace_line: case for question, case in answers.cases(sampled)}
    for check, sample in samples:
        lines = sorted(question.trace_line for question in sample)
        if lines and cases:
            findings += check(answers._replace(questions=sample), [cases[line] for line in lines])
    findings += [*_changed_ids(answers), *_injected_instructions(answers)]
    return at_levels(findings, answers.levels)


def _samples(answers: Answers) -> Iterator[tuple[Check, list[Question]]]:
    """Yield the checks of samples that the gates files ask for, each with the answers that it reads."""
    policies, golds, sample = answers.inputs.policies, answers.inputs.golds, answers.sample
    answered = [item for item in answers.questions if item.trace_line and item.label not in ABSENT]
    answerable = [item for item in answers.questions if item.answerable]
    if _has_text_gates(policies):
        yield _degenerate_answers, sample([item for item in answerable if item.label == "OK"], answers.seed)
    if _has_text_gates(policies, "groundedness"):
        yield _copied_answers, sample([item for item in answerable if item.label not in UNJUDGED])
    if _has_text_gates(policies, "refusals"):
        yield _marked_refusals, sample([item for item in answers.questions if item.label in REFUSED])
    if answers.levels["padded-retrieval"] != "off":
        yield _padded_retrieval, sample(answered)
    traced = [item for item in answerable if item.trace_line]
    # Other ids are likely if nothing of the gold was retrieved for most questions.
    if 2 * sum(item.label in UNRETRIEVED for item in answers.questions) > len(traced):
        yield _unmatched_ids, sample([item for item in traced if evidence_level(golds[item.qid])])
    if not (answers.inputs.policy.builtin or policies[0].builtin):  # a change may be the fix
        yield _unrecognised_refusals, sample([item for item in answers.questions if item.label == "HALLUCINATION"])


def _has_text_gates(policies: Sequence[Policy], *groups: str) -> bool:
    """Return whether a gate judges the texts of answers: one on precision, containment or a metric of some groups."""
    names = {gate.name for policy in policies for gate in policy.gates}
    return any(name in ("precision", "containment") or measure(name).metric.perspective in groups for name in names)


def _partly_measured(answers: Answers) -> Iterable[Finding]:
    """Find the gated metrics that some cases are missing from because their traces lack a field."""
    inputs, questions, before = answers.inputs, answers.questions, answers.before
    columns = [measure.column for measure in inputs.measures]
    watched = integrity.watched(inputs.policies, columns, questions, before)
    gated = [column for column, _ in watched.values()]
    suspects = integrity.suspects(questions, inputs.golds, gated, inputs.policy.settings)
    if not suspects:
        return ()
    is_failure_counted = integrity.counts_failures(inputs.policies)
    cases = answers.cases(suspects)
    return integrity.partly_measured(questions, cases, watched, before, is_failure_counted=is_failure_counted)


def _degenerate_answers(answers: Answers, cases: Sequence[Case]) -> list[Finding]:
    """Find right answers that answer no question.

    They are one claim for many questions, contain many answers, or have the right one where no reader sees it.
    """
    golds, levels = answers.inputs.golds.values(), answers.levels
    checks = {"padded-answers": _padded(cases, golds, answers.seed), "constant-answers": _constant(cases)}
    wanted = ([*check] for code, check in checks.items() if levels[code] != "off")
    return [*next(filter(None, wanted), []), *_hidden(cases)]


def _hidden(answers: Sequence[Case]) -> Iterator[Finding]:
    """Find answers that have their expected substring only in text that HTML and Markdown do not show."""
    unseen = []
    for answer in answers:
        claim, expected = answer.claim.lower(), answer.gold.substrings
        if holds_any(expected, claim) and not any(is_shown(text, claim) for text in expected):
            unseen.append(answer.gold.qid)
    if is_tenth(len(unseen), len(answers)):
        some = ", ".join(unseen[:FEWEST_CASES])
        message = f"{len(unseen)} of {len(answers)} right answers have the expected text only where no reader sees it"
        message += f", such as in a comment of HTML: {quoted(some, 60)}"
        yield Finding("hidden-answers", "error", message, "Write the answer as plain text.")


def _constant(answers: Sequence[Case]) -> Iterator[Finding]:
    groups = [group for group in _group_similar(answers) if _count_different(group) >= FEWEST_CASES]
    same = sum(map(len, groups))
    if not is_tenth(same, len(answers)):
        return
    largest = max(groups, key=len)
    item = "the same claim" if len(groups) == 1 else f"one of {len(groups)} claims"
    some = ", ".join(answer.gold.qid for answer in largest[:FEWEST_CASES])
    message = f"{same} of {len(answers)} right answers are {item}, although their questions expect different answers"
    wanted = any(answer.gold.substrings for group in groups for answer in group)
    grave = wanted or (2 * same >= len(answers) and any(len(tokens(group[0].claim)) >= _FEW_WORDS for group in groups))
    fix = "Answer the question that is asked"
    fix += "." if wanted else ", and write the right answers into gold_claim_substr."
    yield Finding("constant-answers", "error" if grave else "warning", f"{message}: {quoted(some, 60)}", fix)


def _group_similar(answers: Iterable[Case]) -> list[list[Case]]:
    """Return the answers in groups of nearly the same claim, each of which also answers the first one's question."""
    groups: list[tuple[str, frozenset[str], list[Case]]] = []
    for answer in answers:
        claim, texts = answer.claim.lower(), answer.gold.substrings
        words = frozenset(tokens(answer.claim))
        for first, known, group in groups:
            answers_both = holds_any(group[0].gold.substrings, claim) and holds_any(texts, first)
            if words == known or (answers_both and _SIMILARITY * len(words | known) <= len(words & known)):
                group.append(answer)
                break
        else:
            if words:
                groups.append((claim, words, [answer]))
    return [group for *_, group in groups]


def _count_different(answers: Iterable[Case]) -> int:
    """Count the items of some answers that differ in expected substrings and in evidence."""
    count, texts, cited = 0, set[str](), set[str]()
    for gold in (answer.gold for answer in answers):
        wants = set(gold.substrings or ([gold.expected_answer.lower()] if gold.expected_answer else [f"#{gold.qid}"]))
        evidence = {*gold.citations, *(gold.relevance_grades or ()), *(gold.relevant_docs or ())}
        evidence |= {*(gold.doc_grades or ()), *(f"{row.doc_id} {row.section}" for row in gold.sections or ())}
        evidence |= {f"{support.rel_path} > {support.heading_path}" for support in gold.supports or ()}
        if texts.isdisjoint(wants) and cited.isdisjoint(evidence):
            count, texts, cited = count + 1, texts | wants, cited | evidence
    return count


def _padded(answers: Sequence[Case], golds: Iterable[Gold], seed: str) -> Iterator[Finding]:
    """Find answers that also contain the expected substrings of many other questions."""
    answerable = [gold for gold in golds if gold.answerable and gold.attack is None and gold.substrings]
    positions = sample_positions(len(answerable), PROBE_COUNT, seed)
    probes = [frozenset(answerable[position].substrings) for position in positions]
    padded = 0
    for answer in answers:
        lowered, expected = answer.claim.lower(), answer.gold.substrings
        others = [texts for texts in probes if texts.isdisjoint(expected)]
        count = sum([holds_any(texts, lowered) for texts in others])
        padded += count >= FEWEST_CASES and count >= len(others) * _PADDED
    if is_tenth(padded, len(answers)):
        message = f"{padded} of {len(answers)} right answers also contain the expected text of many other questions"
        yield Finding("padded-answers", "error", message, "Answer the question that is asked.")


def _copied_answers(answers: Answers, cases: Sequence[Case]) -> list[Finding]:
    """Find answers that are copied from chunks or from the gold set, and traces with another answer."""
    words, policies = answers.inputs.policy.settings.safety.verbatim_words, answers.inputs.policies
    copies = answer_integrity.copied_answers(cases, policies, words)
    return [*copies, *answer_integrity.answers_from_gold(cases), *answer_integrity.other_answers(cases)]


def _marked_refusals(answers: Answers, cases: Sequence[Case]) -> Iterator[Finding]:
    return answer_integrity.marked_refusals(cases, answers.inputs.policy.settings)


def _padded_retrieval(answers: Answers, cases: Sequence[Case]) -> list[Finding]:
    """Find that almost all questions retrieve almost the same long list.

    It is an error if a gate ignores the order of the list.
    """
    lists = [frozenset(case.trace.retrieved) for case in cases]
    counts = Counter(chain.from_iterable(lists))
    common = {name for name, count in counts.items() if count >= len(lists) * ALMOST_ALL}
    padded = sum(len(names) > LEAST_POOL and len(names & common) >= len(names) * ALMOST_ALL for names in lists)
    if len(common) <= LEAST_POOL or padded < max(FEWEST_CASES, len(lists) * ALMOST_ALL):
        return []
    policies = answers.inputs.policies
    severe = {gate.name for policy in policies for gate in policy.gates if gate.severity == "error"}
    blind = integrity.gates_without_ranks(severe, len(common))
    message = f"{padded} of {len(lists)} questions retrieve almost the same {len(common)} chunks"
    message += f", so {', '.join(blind)} can hardly fail" if blind else ""
    fix = "Write the ranked list that the answer is made from."
    return [Finding("padded-retrieval", "error" if blind else "warning", message, fix)]


def _unmatched_ids(answers: Answers, cases: Sequence[Case]) -> list[Finding]:
    """Find that gold and traces name evidence differently, as after a new chunking."""
    gold: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    documents: set[str | None] = set()
    for case in cases:
        if case.is_answerable:
            field = _FIELD[case.evidence_level]
            chunks = case.trace.chunks or ()
            documents.update(chunk.doc_id for chunk in chunks)
            values = case.trace.retrieved if field == "id" else [getattr(chunk, field) for chunk in chunks]
            gold.setdefault(field, set()).update(_named(case.gold, field))
            seen.setdefault(field, set()).update(filter(None, values))
    findings = []
    for field, names in gold.items():
        strangers = sorted(names - seen[field])
        if len(strangers) >= FEWEST_CASES and 2 * len(strangers) > len(names):
            what = "chunk ids" if field == "id" else f"values of {field}"
            other = f"traces have {quoted(min(seen[field]), 60)}" if seen[field] else f"no trace has any {field}"
            message = f"{len(strangers)} of {len(names)} {what} of the gold occur in no trace: the gold has "
            message += f"{quoted(strangers[0], 60)}, {other}"
            fix = "If the documents were re-chunked, label the items again, or use supports. If not, check the index."
            if field == "id" and documents.issuperset(strangers):
                fix = "They are the doc_id of chunks, not their ids. Move them from gold_citations to relevant_docs."
            elif field == "id" and all(name.startswith("text:") for name in strangers):
                fix = "These ids are made of texts. Import the traces with --by-text too."
            findings.append(Finding("unmatched-ids", "warning", message, fix, answers.inputs.policy.gold))
    return findings


def _unrecognised_refusals(answers: Answers, cases: Sequence[Case]) -> list[Finding]:
    """Find answers to unanswerable items that refuse in other words than the token.

    Long answers are not searched, because that costs much and they rarely refuse.
    """
    from rag_eval.textual.refusals import recognise  # loads patterns

    claims = [case.claim for case in cases]
    refusals = [claim for claim in claims if len(claim) <= PHRASE_LIMIT and recognise(claim)]
    if not refusals:
        return []
    message = f"{len(refusals)} of {len(claims)} answers to unanswerable questions refuse in other words than the token"
    worded = [claim for claim in refusals if claim.strip()]
    message += f": {quoted(min(worded, key=len), 60) if worded else 'they are empty'}"
    fix = "To count them as refusals, write in the gates file: refusal: {builtin: true}"
    return [Finding("unrecognised-refusals", "warning", message, fix, answers.inputs.policy.trace)]


def _changed_ids(answers: Answers) -> list[Finding]:
    """Find that chunks have other ids than in the traces of the baseline, in a sample of the questions of both.

    Two signs distinguish new ids from another retriever: almost no id of the baseline was retrieved again, and the ids
    of the gold occur on only one side. It is an error if a regression gate compares ids.
    """
    if answers.past is None or answers.levels["ids-changed"] == "off":
        return []
    earlier = {question.qid: question for question in answers.before if question.trace_line}
    both = [item for item in answers.questions if item.trace_line and item.answerable and item.qid in earlier]
    both = answers.sample([item for item in both if evidence_level(answers.inputs.golds[item.qid]) == "chunk"])
    old_cases = answers._replace(inputs=answers.past).cases([earlier[question.qid] for question in both])
    old_ids = {question.qid: case.trace.retrieved for question, case in old_cases}
    old, new, gold = set[str](), set[str](), set[str]()
    for question, case in answers.cases(both):
        if question.qid in old_ids:
            old.update(old_ids[question.qid])
            new.update(case.trace.retrieved)
            gold.update(_named(case.gold, "id"))
    gone, then, after = old - new, len(gold & old), len(gold & new)
    one_sided = max(then, after) >= FEWEST_CASES and min(then, after) <= _ONE_SIDED * max(then, after)
    if not one_sided or len(gone) < _TURNOVER * len(old):
        return []
    message = f"{len(gone)} of {len(old)} chunk ids that the baseline retrieved occur in no trace of this run, such as "
    message += f"{quoted(min(gone), 60)}: the ids changed, so regressions of metrics that compare ids cannot be judged"
    hint = "The gold set already has the new ids. Renew the baseline with the new index, in a separate pull request."
    if after < then:
        hint = "Update the ids of the gold set: rag-eval gold relink. Then renew the baseline with the new index."
    gates = [gate for item in answers.inputs.policies for gate in item.gates if gate.direction in MARGINS]
    metrics = [measure(gate.name).metric for gate in gates if gate.severity == "error"]
    by_id = any(metric.perspective in ("retrieval", "citations") or "precision" in metric.name for metric in metrics)
    return [Finding("ids-changed", "error" if by_id else "warning", message, hint)]


def _injected_instructions(answers: Answers) -> list[Finding]:
    """Find retrieved chunks that address a language model, if a gates file asks for it.

    The message has their ids, but not their text.
    """
    if answers.levels["injected-instructions"] == "off":
        return []
    from rag_eval.textual.detectors import instruction

    answered = [question for question in answers.questions if question.trace_line]
    seen: set[str] = set()
    texts: dict[str, tuple[str, int]] = {}
    for _, case in answers.cases(answered):
        for chunk in case.trace.chunks or ():
            if chunk.text and chunk.text not in seen:
                seen.add(chunk.text)
                if kind := instruction(chunk.text):
                    texts.setdefault(chunk.id, (kind.kind, case.trace.line))
    if not texts:
        return []
    shown = [f"{quoted(name, 60)} ({kind}, line {line})" for name, (kind, line) in [*texts.items()][:FEWEST_CASES]]
    what = f"{len(texts)} of {len(seen)} retrieved texts read like instructions to a language model"
    fix = "Check the source of these chunks. This check is not a guardrail: it misses most attacks."
    file, line = answers.inputs.policy.trace, min(line for _, line in texts.values())
    return [Finding("injected-instructions", "error", f"{what}: {', '.join(shown)}", fix, file, line)]


def _named(gold: Gold, field: str) -> Iterable[str]:
    if field == "id":
        return gold.citations or [name for name, grade in (gold.relevance_grades or {}).items() if grade]
    if field == "rel_path":
        return [support.rel_path for support in gold.supports or ()]
    if field == "section":
        return [section.section for section in gold.sections or ()]
    return gold.expected_documents or gold.doc_grades or gold.relevant_docs or ()
