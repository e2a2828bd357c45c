"""Integrity checks of a whole run: the origin of its traces, degenerate behaviour, and measurements that say nothing.

Under a degenerate behaviour some metric cannot fall, whatever the answers are worth. The other checks are in
:mod:`rag_eval.gates.trace_integrity` and :mod:`rag_eval.gates.missing_fields`. None of them is proof of deceit;
docs/limits.md names what they cannot see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

from rag_eval.cases import ABSENT, REFUSED
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import Gold
from rag_eval.errors import Finding, Level
from rag_eval.gates import BOUNDS, Gate, Policy
from rag_eval.gates.results import Question
from rag_eval.metrics import measure
from rag_eval.scoring import CITES_ALL, SAYS_ALL, CaseOutcome
from rag_eval.stats.tally import Score

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
_DESCRIBED = re.compile(r"(?:.*-[0-9]+-g)?([0-9a-f]{7,64})(-dirty|-broken)?")


def provenance(
    file: str, about: Mapping[str, Any], golds: Collection[str], commits: Collection[str], levels: Mapping[str, str]
) -> list[Finding]:
    """Find traces that, according to run.json, are of another commit or answer another gold set.

    ``file`` and ``about`` are the path and the content of run.json, ``golds`` and ``commits`` those that are valid. No
    ``commits`` means that any is.
    """
    findings, answered, (commit, mark) = [], about.get("gold_sha256"), commit_of(about)
    if answered and answered.lower() not in golds:
        message = "stale run: the traces answer another gold set"
        findings.append(Finding("other-gold", "error", message, "Run the system on this gold set.", file))
    if commit and commits and not any(known.startswith(commit) for known in commits):
        message = f"stale run: the traces come from commit {quoted(commit, 40)}, not from the commit under test"
        findings.append(Finding("stale-traces", "error", message, "Run the system at the commit under test.", file))
    elif mark and commits and levels["stale-traces"] == "error":  # elsewhere the working tree may be changed
        message = f"the traces come from {quoted(commit + mark, 60)}, a commit with changes that it does not contain"
        fix = "Run the system before the job changes files that git tracks."
        findings.append(Finding("stale-traces", "warning", message, fix, file))
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


def commit_of(about: Mapping[str, Any]) -> tuple[str, str]:
    """Return the commit id that run.json names in lower case, and the mark of a changed working tree; empty for none.

    From the output of ``git describe``, such as ``v1.2-5-g9f2c1ab-dirty``, only the id and the mark are returned.
    """
    text = str(about.get("system_commit") or "").strip().lower()
    described = _DESCRIBED.fullmatch(text)
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


def measurement_findings(questions: Sequence[Question], policies: Sequence[Policy]) -> list[Finding]:
    """Return the findings about gated metrics that measure nothing, or only few answers."""
    checks = _constant_measurements, _unchecked_answers, _flags_everything
    return [finding for check in checks for finding in check(questions, policies)]


def _gated_columns(policies: Iterable[Policy]) -> set[str]:
    return {measure(gate.name).column for policy in policies for gate in policy.selected_gates}


def _constant_measurements(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
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


def _unchecked_answers(questions: Sequence[Question], policies: Iterable[Policy]) -> Iterator[Finding]:
    """Find gates on supported sentences that most answers avoid, because no sentence of theirs is checked."""
    if names := sorted({"claim_support", "unsupported_claims"} & _gated_columns(policies)):
        with_content = [question for question in questions if question.scores.get("groundedness") is not None]
        checked = sum(question.scores.get(names[0]) is not None for question in with_content)
        unchecked = len(with_content) - checked
        if unchecked >= FEWEST_CASES and checked < HALF * len(with_content):
            message = f"{', '.join(names)}: only {checked} of {len(with_content)} answers with chunk texts"
            message += " have a sentence that is checked"
            fix = "Questions, code and statements about gaps are not checked: see docs/groundedness.md."
            yield Finding("unchecked-answers", "error", message, f"{fix} Gate groundedness, which reads all of them.")


def _flags_everything(questions: Sequence[Question], policies: Sequence[Policy]) -> Iterator[Finding]:
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
