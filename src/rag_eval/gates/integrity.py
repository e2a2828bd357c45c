"""Integrity checks: the origin of traces, degenerate behaviour of a whole run, and metrics that some cases lack.

Under a degenerate behaviour some metric cannot fall, whatever the answers are worth.

A metric that needs a field of the trace does not apply to a case without it. A change that leaves the field out of the
failing rows would pass the gate. So for each case without a score, :func:`lacked` checks if it would have one with
every optional field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.cases import ABSENT, REFUSED, Case
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import Answer, Chunk, Gold, Guardrail, Scope, Settings, Trace, Usage
from rag_eval.contract.settings import MOST, Verdict
from rag_eval.errors import Finding, Level
from rag_eval.gates.policy import BOUNDS, Gate, Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import Measure, measure
from rag_eval.scoring.scorecard import CITES_ALL, SAYS_ALL, CaseOutcome

R = TypeVar("R", bound=Struct)

WHOLE_RUN_CHECKS = tuple(
    "refuses-everything answers-everything padded-answers constant-answers padded-citations padded-retrieval".split()
)
"""Checks of all cases together: a part of the questions may look degenerate by chance."""

_OF_INPUTS = (
    "hidden-answers copied-answers flags-everything partly-measured stale-traces other-gold stale-verdict"
    " missing-verdict changed-verdict ids-changed"
).split()
_DOUBTFUL = (
    "answers-from-gold other-answer marked-refusals constant-measurements unchecked-answers vacuous-gold"
).split()
LEVELS: Mapping[str, str] = {
    **dict.fromkeys((*WHOLE_RUN_CHECKS, *_OF_INPUTS), "error"),
    **dict.fromkeys(_DOUBTFUL, "warning"),
    "injected-instructions": "off",
}
"""The default severity of each finding; ``integrity`` in eval-gates.yml may set another."""

ALMOST_ALL = 0.9  # of the cases; one decoy must not hide a behaviour
FEWEST_CASES = 3  # cases; with fewer, equal answers may be chance
_WORST = Decimal("0.2")  # what citation_precision is if all of five chunks are cited for the right one
_DESCRIBED = re.compile(r"(?:.*-[0-9]+-g)?([0-9a-f]{7,64})(?:-dirty|-broken)?")


def provenance(
    file: str, about: Mapping[str, Any], golds: Collection[str], commits: Collection[str], levels: Mapping[str, str]
) -> list[Finding]:
    """Find traces that, according to run.json, are of another commit or answer another gold set.

    ``file`` and ``about`` are the path and the content of run.json, ``golds`` and ``commits`` those that are valid. No
    ``commits`` means that any is.
    """
    findings, answered, commit = [], about.get("gold_sha256"), commit_of(about)
    if answered and answered.lower() not in golds:
        message = "stale run: the traces answer another gold set"
        findings.append(Finding("other-gold", "error", message, "Run the system on this gold set.", file))
    if commit and commits and not any(known.startswith(commit) for known in commits):
        message = f"stale run: the traces come from commit {quoted(commit, 40)}, not from the commit under test"
        findings.append(Finding("stale-traces", "error", message, "Run the system at the commit under test.", file))
    return at_levels(findings, levels)


def vacuous(golds: Iterable[Gold], file: str, levels: Mapping[str, str]) -> list[Finding]:
    """Return the finding that items accept any answer as right, because they have no substrings or citations."""
    counted = (gold for gold in golds if gold.answerable and gold.attack is None)
    asked = [not (gold.substrings or evidence_level(gold)) for gold in counted]
    if not any(asked):
        return []
    message = f"{sum(asked)} of {len(asked)} answerable items have no expected text and no evidence"
    message += ", so precision counts any answer to them as right"
    fix = "Add gold_claim_substr, gold_citations or other evidence to the items, or gate other metrics."
    return at_levels([Finding("vacuous-gold", "error", message, fix, file)], levels)


def commit_of(about: Mapping[str, Any]) -> str:
    """Return the commit id that run.json names in lower case, empty for none.

    From the output of ``git describe``, such as ``v1.2-5-g9f2c1ab-dirty``, only the id is returned.
    """
    text = str(about.get("system_commit") or "").strip().lower()
    described = _DESCRIBED.fullmatch(text)
    return described[1] if described else text


def is_tenth(count: int, total: int) -> bool:
    """Return whether so many of ``total`` answers are at least a tenth, and not few enough to be chance."""
    return count >= max(FEWEST_CASES, total * (1 - ALMOST_ALL))


def levels_of(*policies: Policy) -> dict[str, str]:
    """Return the level of each finding under all policies together: the most severe of theirs."""
    stated = {code: {policy.integrity.get(code, level) for policy in policies} for code, level in LEVELS.items()}
    return {code: next(level for level in ("error", "warning", "off") if level in stated[code]) for code in stated}


def levelled(finding: Finding, levels: Mapping[str, str]) -> Finding:
    """Return the finding at the level of the policy."""
    return finding._replace(level="warning") if levels.get(finding.code) == "warning" else finding


def at_levels(findings: Iterable[Finding], levels: Mapping[str, str]) -> list[Finding]:
    """Return the findings that are on, at the levels of the policy."""
    return [levelled(finding, levels) for finding in findings if levels.get(finding.code) != "off"]


_NO_ANSWER = ("MISSING", "ERROR", "ATTACK")
_CITING = ("precision", "hit_precision", "chr", "chr_answerable", "citation_recall")
_UNRANKED = ("union_recall", "first_evidence_hop", "wasted_hops", "hop_recall@")
_UNCUT = re.compile(r"(?:recall|recall_all|recall_any)@([0-9]+)")


class Run(Struct, frozen=True):
    """The outcomes of a run with their counts, and the gates that can fail it.

    ``gates`` are the names of the gates that can. ``guards`` are those that :func:`guards` returns for all policies
    that apply. A gate that only the change has is not among them, because the same change chose its threshold.
    ``guards`` is None if ``gates`` guard.
    """

    outcomes: Sequence[tuple[CaseOutcome, int]]
    gates: Collection[str]
    guards: Collection[str] | None = None

    def guarded(self, *names: str) -> bool:
        """Return whether one of the gates decides instead."""
        return not set(names).isdisjoint(self.gates if self.guards is None else self.guards)


def degenerate_findings(run: Run, levels: Mapping[str, str]) -> list[Finding]:
    """Return the degenerate behaviours of a run; ``levels`` are the policy's severities, error by default."""
    checks = _one_sided_refusals, _padded_answers
    return at_levels((finding for check in checks for finding in check(run)), {**LEVELS, **levels})


def guards(policies: Iterable[Policy]) -> set[str]:
    """Return the gates on all cases, in every policy, that fail a run of which almost all cases misbehave.

    Regression gates and gates with a confidence may be inconclusive then.
    """
    by_policy = []
    for policy in policies:
        whole = (gate for gate in policy.gates if gate.direction in BOUNDS and not (gate.slice or gate.confidence))
        by_policy.append({gate.name for gate in whole if _decides(gate)})
    return set.intersection(*by_policy)


def _decides(gate: Gate) -> bool:
    """Return whether a gate can fail a run: not with a severity of warning, or a limit in the worst fifth of values."""
    top, limit = measure(gate.name).metric.top, Decimal(gate.threshold)
    least = Decimal(0) if top is None else _WORST * int(top)
    is_loose = limit <= least if gate.direction == "min" else top is not None and limit >= int(top) - least
    return gate.severity == "error" and not is_loose


def _one_sided_refusals(run: Run) -> Iterator[Finding]:
    counts: Counter[tuple[bool, bool]] = Counter()  # by whether the corpus answers the question, and it was refused
    for outcome, count in run.outcomes:
        if outcome.label not in _NO_ANSWER:
            counts[outcome.label not in ("HALLUCINATION", "REFUSAL_OK"), outcome.label in REFUSED] += count
    refused, answered = counts[True, True], counts[True, False]
    if refused >= max(FEWEST_CASES, (refused + answered) * ALMOST_ALL):
        guarded = run.guarded("over_refusal", "answered_rate", "chr_answerable")
        share = f"all {refused}" if not answered else f"{refused} of {refused + answered}"
        message = f"{share} answerable questions were refused, so metrics of answers say nothing"
        fix = "Fix the system." if guarded else "Gate over_refusal, or fix the system."
        yield Finding("refuses-everything", "warning" if guarded else "error", message, fix)
    refused, answered = counts[False, True], counts[False, False]
    if answered >= FEWEST_CASES and not refused:
        guarded = run.guarded("under_refusal")
        message = f"all {answered} unanswerable questions were answered, so over_refusal cannot fail"
        fix = "Make the system refuse questions without an answer."
        fix = fix if guarded else f"Gate under_refusal. {fix}"
        yield Finding("answers-everything", "warning" if guarded else "error", message, fix)


def _padded_answers(run: Run) -> Iterator[Finding]:
    answers = [row for row in run.outcomes if row[0].label not in (*REFUSED, *_NO_ANSWER)]
    n = sum(count for _, count in answers)
    says = sum(count for outcome, count in answers if outcome.behaviours & SAYS_ALL)
    cites = sum(count for outcome, count in answers if outcome.behaviours & CITES_ALL)
    if says >= max(FEWEST_CASES, n * ALMOST_ALL):
        message = f"{says} of {n} answers also contain the expected text of most other questions"
        message += ", so precision says nothing"
        yield Finding("padded-answers", "error", message, "Make each answer address only its question.")
    if cites >= max(FEWEST_CASES, n * ALMOST_ALL):
        guarded = run.guarded("citation_precision")
        message = f"{cites} of {n} answers cite every retrieved chunk, so citation hits say nothing"
        level: Level = "warning" if guarded or not set(_CITING) & set(run.gates) else "error"
        fix = "cite only chunks that support the claim."
        fix = fix.capitalize() if guarded else f"Gate citation_precision, or {fix}"
        yield Finding("padded-citations", level, message, fix)


def gates_without_ranks(gates: Iterable[str], size: int) -> list[str]:
    """Return the gates, sorted, that ignore the order of a list of ``size`` chunks: a long list passes them."""
    cuts = {name: _UNCUT.fullmatch(name) for name in gates}
    beyond = {name for name, cut in cuts.items() if cut and int(cut[1]) >= size}
    return sorted(name for name in cuts if name in beyond or name.startswith(_UNRANKED))


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
_NAMED = 3
UNJUDGED = frozenset([*ABSENT, *REFUSED, "ATTACK", "ATTACK_MISSED", "LEAK_MISSED", "FALSE_ALARM"])
"""Labels of cases without an answer to judge."""


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
    if case.missing:
        return []
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
        by_policy.append({gate.name for gate in gates if _decides(gate)})
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
    *,
    is_failure_counted: bool,
) -> Iterator[Finding]:
    """Yield one finding for all ``watched`` columns that the same cases are missing from, because traces lack fields.

    It is an error if the baseline (``before``) has the missing measurements. Cases that failed without an answer are
    left out if another gate counts them (``is_failure_counted``).
    """
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
        lack = f"lack {' or '.join(names)}"
        fix = f"Write {' and '.join(names)} to the traces of all questions, including failed ones."
        if "answer" in names:
            lack = "have no answer"
            fix = "Add a gate that counts errors and empty answers, such as error_rate: {max: 0}."
        message = f"{', '.join(same)}: measured in {measured} of {measured + n} cases; the other {n} {lack}"
        yield Finding("partly-measured", "error" if grave else "warning", f"{message}{baseline}", fix)


def verdict_findings(policy: Policy, questions: Sequence[Question], levels: Mapping[str, str]) -> list[Finding]:
    """Return the findings about the verdicts of the policy's judge; errors where a calibrated gate depends on them."""
    left_out = policy.perspectives and "judge" not in policy.perspectives
    if left_out or not (policy.verdicts or policy.uncalibrated):
        return []
    results = []
    if names := ", ".join(policy.uncalibrated):
        why = "these gates only warn, because no sufficient agreement of this judge with people is recorded"
        fix = "Compare the judge with labels by people: rag-eval judge calibrate --labels FILE --write."
        fix += " See docs/judge.md."
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
