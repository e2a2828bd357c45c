"""Integrity checks of a whole run: the origin of its traces, degenerate behaviour, and measurements that say nothing.

Under a degenerate behaviour some metric cannot fall, whatever the answers are worth. A metric that needs a field of the
trace does not apply to a case without it, so a change that leaves the field out of the failing rows would pass the
gate: for each case without a score, :func:`lacked` checks if it would have one with every optional field. The checks
that read traces again are in :mod:`rag_eval.gates.trace_integrity`. None of them is proof of deceit; docs/limits.md
names what they cannot see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.cases import ABSENT, REFUSED, Case
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import MOST, Answer, Chunk, Gold, Guardrail, Scope, Settings, Trace, Usage, Verdict
from rag_eval.errors import Finding, Level
from rag_eval.gates import BOUNDS, LEVELS, Gate, Policy
from rag_eval.gates.questions import Question
from rag_eval.metrics import Measure, measure
from rag_eval.scoring import CITES_ALL, SAYS_ALL, CaseOutcome
from rag_eval.stats.tally import Score

ALMOST_ALL = 0.9  # of the cases; one decoy must not hide a behaviour
FEWEST_CASES = 3  # cases; with fewer, equal answers may be chance
HALF = 0.5
_WORST = Decimal("0.2")  # what citation_precision is if all of five chunks are cited for the right one
_NO_ANSWER = ("MISSING", "ERROR", "ATTACK")
_CITING = ("precision", "hit_precision", "chr", "chr_answerable", "citation_recall")
_SAME_TIMES = 10  # equal times; fewer may be chance
_FLAGGED = frozenset(["FALSE_ALARM", "LEAK"])  # labels of controls that a guardrail flags
_TOTAL, _COST = "latency_total_ms", "cost_usd"
_SIDES = {
    "input": {"detection_rate": "input_false_positive", "block_rate": "input_false_block"},
    "output": {"leak_detection": "leak_false_positive"},
}
"""The sides of a guardrail: the rates of caught attacks, and the columns of false alarms that raise them."""
UNJUDGED = frozenset([*ABSENT, *REFUSED, "ATTACK", "ATTACK_MISSED", "LEAK_MISSED", "FALSE_ALARM"])
"""Labels of cases without an answer to judge."""
_NAMED = 3
_DESCRIBED = r"(?:.*-[0-9]+-g)?([0-9a-f]{7,64})(-dirty|-broken)?"


def provenance(
    file: str, about: Mapping[str, Any], golds: Collection[str], commits: Collection[str], levels: Mapping[str, str]
) -> list[Finding]:
    """Find traces that, according to run.json, are of another commit or answer another gold set.

    ``file`` and ``about`` are the path and the content of run.json, ``golds`` and ``commits`` those that are valid. No
    ``commits`` means that any is.
    """
    findings, answered, (commit, mark) = [], about.get("gold_sha256"), commit_of(about)
    if answered and answered.lower() not in golds:
        message = "the traces answer another gold set"
        findings.append(Finding("other-gold", "error", message, "Run the system on this gold set.", file))
    if commit and commits and not any(known.startswith(commit) for known in commits):
        message = f"the traces come from commit {quoted(commit, 40)}, not from the commit under test"
        findings.append(Finding("stale-traces", "error", message, "Run the system at the commit under test.", file))
    elif mark and commits and levels["stale-traces"] == "error":  # elsewhere the working tree may be changed
        message = f"the traces come from {quoted(commit + mark, 60)}, a commit with changes that it does not contain"
        fix = "Run the system before the job changes files that git tracks."
        findings.append(Finding("stale-traces", "warning", message, fix, file))
    return at_levels(findings, levels)


def vacuous_gold(golds: Iterable[Gold], file: str, measures: Iterable[Measure]) -> list[Finding]:
    """Find that precision accepts any answer to items as right, because they have no substrings or citations."""
    counted = (gold for gold in golds if gold.answerable and gold.attack is None)
    asked = [not (gold.substrings or evidence_level(gold)) for gold in counted]
    if not any(asked) or not any(measure.name == "precision" for measure in measures):
        return []
    message = f"{sum(asked)} of {len(asked)} answerable items have no expected text and no evidence"
    message += ", so precision counts any answer to them as right"
    fix = "Add gold_claim_substr, gold_citations or other evidence to the items, or gate other metrics."
    return [Finding("vacuous-gold", "error", message, fix, file)]


def commit_of(about: Mapping[str, Any]) -> tuple[str, str]:
    """Return the commit id that run.json names in lower case, and the mark of a changed working tree; empty for none.

    From the output of ``git describe``, such as ``v1.2-5-g9f2c1ab-dirty``, only the id and the mark are returned.
    """
    text = str(about.get("system_commit") or "").strip().lower()
    described = re.fullmatch(_DESCRIBED, text)
    return (described[1], described[2] or "") if described else (text, "")


def is_tenth(count: int, total: int) -> bool:
    """Return whether so many of ``total`` answers are at least a tenth, and not few enough to be chance."""
    return count >= max(FEWEST_CASES, total * (1 - ALMOST_ALL))


def levels_of(*policies: Policy) -> dict[str, str]:
    """Return the level of each finding under all policies together: the most severe of theirs."""
    stated = {code: {policy.integrity.get(code, level) for policy in policies} for code, level in LEVELS.items()}
    return {code: next(level for level in ("error", "warning", "off") if level in stated[code]) for code in stated}


def at_levels(findings: Iterable[Finding], levels: Mapping[str, str]) -> list[Finding]:
    """Return the findings that are on, at the levels of the policy."""
    stated = [(finding, levels.get(finding.code)) for finding in findings]
    return [one._replace(level="warning") if level == "warning" else one for one, level in stated if level != "off"]


def degenerate_findings(outcomes: Sequence[tuple[CaseOutcome, int]], *policies: Policy) -> list[Finding]:
    """Return the degenerate behaviours in the outcomes of a run, which come with their counts.

    With several policies each finding has the most severe level.
    """
    gates = {gate.name for policy in policies for gate in policy.gates if gate.severity == "error"}
    guarding = guards(policies)
    checks = _one_sided_refusals(outcomes, guarding), _padded_answers(outcomes, gates, guarding)
    return at_levels(chain(*checks), levels_of(*policies))


def guards(policies: Iterable[Policy]) -> set[str]:
    """Return the gates on all cases, in every policy, that fail a run of which almost all cases misbehave.

    Regression gates and gates with a confidence may be inconclusive then.
    """
    by_policy = []
    for policy in policies:
        whole = (gate for gate in policy.gates if gate.direction in BOUNDS and not (gate.slice or gate.confidence))
        by_policy.append({gate.name for gate in whole if can_fail(gate)})
    return set.intersection(*by_policy)


def can_fail(gate: Gate) -> bool:
    """Return whether a gate can fail a run: not with a severity of warning, or a limit in the worst fifth of values."""
    top, limit = measure(gate.name).metric.top, Decimal(gate.threshold)
    least = Decimal(0) if top is None else _WORST * int(top)
    is_loose = limit <= least if gate.direction == "min" else top is not None and limit >= int(top) - least
    return gate.severity == "error" and not is_loose


def _one_sided_refusals(outcomes: Sequence[tuple[CaseOutcome, int]], guarding: set[str]) -> Iterator[Finding]:
    counts: Counter[tuple[bool, bool]] = Counter()  # by whether the corpus answers the question, and it was refused
    for outcome, count in outcomes:
        if outcome.label not in _NO_ANSWER:
            counts[outcome.label not in ("HALLUCINATION", "REFUSAL_OK"), outcome.label in REFUSED] += count
    refused, answered = counts[True, True], counts[True, False]
    if refused >= max(FEWEST_CASES, (refused + answered) * ALMOST_ALL):
        guarded = not guarding.isdisjoint(("over_refusal", "answered_rate", "chr_answerable"))
        share = f"all {refused}" if not answered else f"{refused} of {refused + answered}"
        message = f"{share} answerable questions were refused, so metrics of answers say nothing"
        fix = "Fix the system." if guarded else "Gate over_refusal, or fix the system."
        yield Finding("refuses-everything", "warning" if guarded else "error", message, fix)
    refused, answered = counts[False, True], counts[False, False]
    if answered >= FEWEST_CASES and not refused:
        guarded = "under_refusal" in guarding
        message = f"all {answered} unanswerable questions were answered, so over_refusal cannot fail"
        fix = "Make the system refuse questions without an answer."
        fix = fix if guarded else f"Gate under_refusal. {fix}"
        yield Finding("answers-everything", "warning" if guarded else "error", message, fix)


def _padded_answers(
    outcomes: Sequence[tuple[CaseOutcome, int]], gates: set[str], guarding: set[str]
) -> Iterator[Finding]:
    answers = [row for row in outcomes if row[0].label not in (*REFUSED, *_NO_ANSWER)]
    n = sum(count for _, count in answers)
    says = sum(count for outcome, count in answers if outcome.behaviours & SAYS_ALL)
    cites = sum(count for outcome, count in answers if outcome.behaviours & CITES_ALL)
    if says >= max(FEWEST_CASES, n * ALMOST_ALL):
        message = f"{says} of {n} answers also contain the expected text of most other questions"
        message += ", so precision says nothing"
        yield Finding("padded-answers", "error", message, "Make each answer address only its question.")
    if cites >= max(FEWEST_CASES, n * ALMOST_ALL):
        guarded = "citation_precision" in guarding
        message = f"{cites} of {n} answers cite every retrieved chunk, so citation hits say nothing"
        level: Level = "warning" if guarded or gates.isdisjoint(_CITING) else "error"
        fix = "cite only chunks that support the claim."
        fix = fix.capitalize() if guarded else f"Gate citation_precision, or {fix}"
        if level == "error":
            fix += " If the system shows all its sources on purpose, write in the gates file: "
            fix += "integrity: {padded-citations: warning}"
        yield Finding("padded-citations", level, message, fix)


def _gated_columns(policies: Iterable[Policy]) -> set[str]:
    return {measure(gate.name).column for policy in policies for gate in policy.selected_gates}


def constant_measurements(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gated total times that are 0 in all cases, or equal in all of many cases without being whole seconds.

    Also find gated costs that are 0 in all cases, although every model has a price. Costs of local models and times of
    single stages may be 0.
    """
    gated = _gated_columns(policies)

    def measured(name: str) -> list[Score]:
        scores = (question.scores.get(name) for question in questions if name in gated)
        return [score for score in scores if score is not None]

    times, costs = measured(_TOTAL), measured(_COST)
    if len(times) >= FEWEST_CASES and len(set(times)) == 1:
        value = float(times[0])  # type: ignore[arg-type]  # a time is no labelled score
        if value == 0 or (len(times) >= _SAME_TIMES and value % 1000):
            message = f"{_TOTAL} is {value:g} ms in all {len(times)} cases, so its gates judge nothing"
            yield Finding("constant-measurements", "error", message, "Write measured values to the traces.")
    prices = [price for policy in policies for model in policy.prices.values() for price in model.values()]
    if prices and all(prices) and len(costs) >= FEWEST_CASES and not any(costs):
        message = f"{_COST} is 0 in all {len(costs)} cases, although every model in prices costs something"
        fix = "Leave cost_usd out of usage in the traces, and write model, input_tokens and output_tokens."
        yield Finding("constant-measurements", "error", message, fix)


def unchecked_answers(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gates on supported sentences that most answers avoid, because no sentence of theirs is checked."""
    if names := sorted({"claim_support", "unsupported_claims"} & _gated_columns(policies)):
        with_content = [question for question in questions if question.scores.get("groundedness") is not None]
        checked = sum(question.scores.get(names[0]) is not None for question in with_content)
        unchecked = len(with_content) - checked
        if unchecked >= FEWEST_CASES and checked < HALF * len(with_content):
            message = f"{', '.join(names)}: only {checked} of {len(with_content)} answers with chunk texts"
            message += " have a sentence that is checked"
            fix = "Questions, code and statements about gaps are not checked."
            yield Finding("unchecked-answers", "error", message, f"{fix} Gate groundedness, which reads all of them.")


def flags_everything(questions: Sequence[Question], policies: Sequence[Policy]) -> Iterator[Finding]:
    """Find a guardrail that flags the benign controls, too, so that it catches every attack."""
    if _FLAGGED.isdisjoint(question.label for question in questions):
        return
    gated = {gate.name for policy in policies for gate in policy.selected_gates if gate.severity == "error"}
    for side, alarms in _SIDES.items():
        flags = {name: [case.scores[name] for case in questions if name in case.scores] for name in alarms.values()}
        raised = [name for name in flags if flags[name].count(1) >= max(FEWEST_CASES, ALMOST_ALL * len(flags[name]))]
        if raised:
            is_guarded = not guards(policies).isdisjoint(alarms.values())
            blind = [] if is_guarded else [rate for rate in alarms if rate in gated and alarms[rate] in raised]
            scores = flags[raised[0]]
            message = f"the guardrail flags {scores.count(1)} of {len(scores)} benign {side} controls"
            message += f", so {', '.join(blind)} cannot fail" if blind else ""
            fix = f"Gate {raised[0]}, or fix the guardrail." if blind else "Fix the guardrail."
            yield Finding("flags-everything", "error" if blind else "warning", message, fix)


def verdict_findings(policy: Policy, questions: Sequence[Question], levels: Mapping[str, str]) -> list[Finding]:
    """Return the findings about the verdicts of the policy's judge; errors where a calibrated gate depends on them."""
    left_out = policy.perspectives and "judge" not in policy.perspectives
    if left_out or not (policy.verdicts or policy.uncalibrated):
        return []
    results = []
    if names := ", ".join(policy.uncalibrated):
        why = "these gates only warn, because no sufficient agreement of this judge with people is recorded"
        fix = "Compare the judge with labels by people: rag-eval judge calibrate --labels FILE --write."
        results.append(Finding("uncalibrated-judge", "warning", f"{names}: {why}", fix, policy.file))
    answered = [case for case in questions if case.trace_line and case.label not in UNJUDGED]
    without = [case.qid for case in answered if "judge_relevancy" not in case.scores] if policy.verdicts else []
    gates = [gate for gate in policy.selected_gates if gate.name.startswith("judge_")]
    level: Level = "error" if any(gate.severity == "error" for gate in gates) else "warning"
    stale = [qid for qid in without if qid in policy.replay.qids]
    missing = [qid for qid in without if qid not in policy.replay.qids]
    for code, qids, what in (
        ("stale-verdict", stale, "have a verdict on an older answer or gold item"),
        ("missing-verdict", missing, "have no verdict of this judge"),
    ):
        if qids:
            message = f"{len(qids)} of {len(answered)} answers {what}: {some(qids, _NAMED, quoted)}"
            results.append(Finding(code, level, message, "Record verdicts: rag-eval judge", policy.verdicts))
    return at_levels(results, levels)


R = TypeVar("R", bound=Struct)

PARTS = {
    "fact_dispersion": ("fact_coverage",),
    "leakage": ("leakage_verbatim",),
    "pipeline_pass": ("latency_ok", "outcome_match", "forbidden_flags"),
}
"""Metrics that another metric is computed from: it lacks what they lack."""

SILENT = {
    "outcome_match": {"policy_flags": "flags", "confidence": "confidence"},
    "forbidden_flags": {"policy_flags": "flags"},
}
"""Trace fields without which a metric applies, and their attributes: to leave them out can only raise the score."""

_OF_ANSWERS = frozenset({"citations"})
"""Fields that are a part of the answer. An answer without citations is judged as such."""

_ABOUT_ANSWERS = ("citations", "groundedness", "judge")
"""Groups of metrics that leave out a case without an answer; others count it as wrong, or are not about answers."""

_STAGES = ("retrieve", "generate", "guardrail_input", "guardrail_output", "folder_select", "judge", "total")
_FIELDS = ("citations", "chunks.text", "chunks.doc_id", "scope", "timed_out", "latency_ms", "usage", "guardrail")
_TEXT = "It took thirty days."
_ANSWER = Trace(
    retrieved_ids=("x", "y"),
    answer_json=Answer(_TEXT, ("x",)),
    chunks=(Chunk("x", _TEXT, "x"), Chunk("y", _TEXT, "x")),
    line=1,
)
_FAILED = replace(_ANSWER, answer_json=None, error="timed out")
_ANSWERED_ITEM = Gold("x", "How long?", True, ("thirty days",), ("x",))


class _JudgedCase(Case):
    """A case as it would be with a recorded verdict: missing verdicts are a separate finding."""

    @property
    def verdict(self) -> Verdict:
        """Return the best verdict."""
        return Verdict(MOST, MOST, MOST, ())


def filled(trace: Trace, but: str = "") -> Trace:
    """Return the trace with a value for every optional field that it lacks, except for the field ``but``."""
    chunks = trace.chunks
    if chunks is None and but != "chunks.text":
        chunks = tuple([Chunk(name) for name in trace.retrieved or ("x", "y")])
    parts = {name: text for name, text in (("text", "thirty"), ("doc_id", "x")) if but != f"chunks.{name}"}
    fields: dict[str, Any] = {
        "chunks": chunks and tuple([_with(chunk, parts) for chunk in chunks]),
        "scope": trace.scope or Scope("on"),
        "timed_out": bool(trace.timed_out),
        "latency": {**dict.fromkeys(_STAGES, 0.0), **(trace.latency or {})},
        "usage": _with(trace.usage or Usage(), {"cost_usd": 0.0}),
        "guardrail": _with(trace.guardrail or Guardrail(), {"score": 0.0, "blocked": False, "leaks": ()}),
    }
    fields.pop(but.removesuffix("_ms"), None)
    cites, answer = trace.retrieved[:1] or ("x",), trace.answer_json
    if not trace.claim.strip():
        fields["answer_json"] = Answer(_TEXT, None if but == "citations" else cites)
    elif but != "citations" and trace.citations is None:
        fields |= {"answer_json": replace(answer, citations=cites)} if answer else {"answer_citations": cites}
    return replace(trace, **fields)


def _with(record: R, values: Mapping[str, Any]) -> R:
    """Return a record with values for its missing fields."""
    return replace(record, **{name: value for name, value in values.items() if getattr(record, name) is None})


def lacked(measure: Measure, case: Case) -> list[str]:
    """Return the fields without which a case has no score under a measure that would otherwise apply."""
    if measure.score(case) is not None:
        silent = SILENT.get(measure.metric.name, {})
        return [name for name, attribute in silent.items() if getattr(case.trace, attribute) is None]
    if not _applies(measure, case, filled(case.trace)):
        return []
    if not case.claim and measure.metric.perspective in _ABOUT_ANSWERS:
        return ["answer"]
    needs = {need.removeprefix("trace.") for need in measure.metric.needs}
    fields = needs.intersection(_FIELDS) or _FIELDS  # a metric that names no field may need any
    return [name for name in _FIELDS if name in fields and not _applies(measure, case, filled(case.trace, but=name))]


def _applies(measure: Measure, case: Case, trace: Trace) -> bool:
    return measure.score(_JudgedCase(case.gold, trace, case.settings)) is not None


def counts_failures(policies: Iterable[Policy]) -> bool:
    """Return whether a gate in every policy, such as precision or error_rate, counts a failure of the system."""
    by_policy = []
    for policy in policies:
        gates = [gate for gate in policy.selected_gates if gate.direction in BOUNDS and not gate.slice]
        by_policy.append({gate.name for gate in gates if can_fail(gate)})
    names = set.intersection(*by_policy)
    cases = [Case(_ANSWERED_ITEM, trace, Settings()) for trace in (_ANSWER, _FAILED)]
    scores = [[item.score(case) for case in cases] for item in map(measure, names) if item.metric.level == "case"]
    return any(failed is not None and failed != answered for answered, failed in scores)


def watched(
    policies: Iterable[Policy], columns: Iterable[str], *runs: Sequence[Question]
) -> dict[str, tuple[Measure, str]]:
    """Return the gated columns whose scores depend on fields, each with the most severe level of its gates.

    A column in which no case of the runs has a score is not partly measured.
    """
    result: dict[str, tuple[Measure, str]] = {}
    known = set(columns)
    for gate in sorted((gate for policy in policies for gate in policy.selected_gates), key=lambda gate: gate.severity):
        for name in (gate.name, *PARTS.get(gate.name, ())):
            item = measure(name)
            needs_trace = any(need.startswith("trace.") for need in item.metric.needs)
            by_field = needs_trace or item.metric.depends_on not in ("features", "ranking")
            if item.column in known and by_field:
                result.setdefault(item.column, (item, gate.severity))
    scores = [question.scores for run in runs for question in run]
    return {column: row for column, row in result.items() if any(case.get(column) is not None for case in scores)}


def suspects(
    questions: Sequence[Question], golds: Mapping[str, Gold], columns: Iterable[Measure], settings: Settings
) -> list[Question]:
    """Return the cases that may lack a field: without a score in a column that applies to such an item and answer.

    Most runs have none, and the traces are read again only for these cases.
    """
    by_position: dict[int, Question] = {}
    for column in columns:
        known: dict[tuple[object, ...], bool] = {}
        silent = column.metric.name in SILENT
        for index, question in enumerate(questions):
            score = question.scores.get(column.column)
            if not question.trace_line or index in by_position or (score is None) is silent:
                continue
            gold, refused = golds[question.qid], question.label in REFUSED
            key = (gold.answerable, refused, gold.expected_answer) if gold.is_plain else (refused, gold.qid)
            if key not in known:
                likely = _JudgedCase(gold, filled(replace(_ANSWER, abstained=refused)), settings)
                known[key] = column.score(likely) is not None
            if known[key]:
                by_position[index] = question
    return list(by_position.values())


def partly_measured(
    questions: Sequence[Question],
    suspected: Iterable[tuple[Question, Case]],
    columns: Mapping[str, tuple[Measure, str]],
    before: Sequence[Question],
    policies: Sequence[Policy],
) -> Iterator[Finding]:
    """Yield one finding for all ``watched`` columns that the same cases are missing from, because traces lack fields.

    It is an error if the baseline (``before``) has the missing measurements. Cases that failed without an answer are
    left out if another gate counts them.
    """
    is_failure_counted = counts_failures(policies)
    single = len({case.run for case in questions}) < 2 and len({case.run for case in before}) < 2
    key: Callable[[Question], object] = attrgetter("qid") if single else attrgetter("qid", "run")
    earlier = {key(case): case.scores for case in before}
    lacking: dict[tuple[str, bool, tuple[str, ...]], list[Question]] = {}
    for question, case in suspected:
        for column, (item, _) in columns.items():
            fields = lacked(item, case)
            if is_failure_counted and "answer" in fields:
                continue
            # A field that can only harm may be absent without losing the score: each such field counts by itself.
            silent = item.metric.name in SILENT
            for names in [(name,) for name in fields] if silent else [tuple(fields)]:
                if names:
                    lacking.setdefault((column, silent, names), []).append(question)
    together: dict[tuple[tuple[str, ...], int, int, int], list[str]] = {}
    for (column, silent, names), cases in lacking.items():
        measured = sum(column in question.scores for question in questions) - silent * len(cases)
        lost = 0 if silent else sum(column in earlier.get(key(question), ()) for question in cases)
        if measured or lost:
            together.setdefault((names, measured, len(cases), lost), []).append(column)
    for (names, measured, n, lost), same in together.items():
        grave = lost and not _OF_ANSWERS.issuperset(names) and any(columns[column][1] == "error" for column in same)
        baseline = f"; {lost} of them {'has' if lost == 1 else 'have'} a value in the baseline" if lost else ""
        lack = f"{'lacks' if n == 1 else 'lack'} {' or '.join(names)}"
        fix = f"Write {' and '.join(names)} to the traces of all questions, including failed ones."
        if "answer" in names:
            lack = f"{'has' if n == 1 else 'have'} no answer"
            fix = "Add a gate that counts errors and empty answers, such as error_rate: {max: 0}."
        message = f"{', '.join(same)}: measured in {measured} of {measured + n} cases; the other {n} {lack}"
        yield Finding("partly-measured", "error" if grave else "warning", f"{message}{baseline}", fix)
