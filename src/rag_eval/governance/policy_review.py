"""What a change does to its own measurement: gates and policies of the base beside those of the head.

Both sides' gates apply: a change may tighten at once, and what it loosens takes effect when it is merged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from rag_eval.analysis.notes import InputNote
from rag_eval.analysis.policy_changes import Effects, PolicyChange, changes, freed
from rag_eval.analysis.report import Base, concluded, diagnosed, habits, levels, rejudge
from rag_eval.cases.finding import Finding
from rag_eval.cases.integrity import HABITS, commit_of
from rag_eval.common.escaping import quoted
from rag_eval.gates.policy import merged
from rag_eval.gates.scope import scope_of
from rag_eval.git.snapshots import read_regular
from rag_eval.governance import gold_review, overrides
from rag_eval.readers.gates_file import policy_of
from rag_eval.readers.problems import Ledger
from rag_eval.run.scored import rescore

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult, Policy
    from rag_eval.governance.review_context import ReviewContext


_BY_BASELINE = ("must-pass-broken", "must-pass-gone", "must-pass-unjudged", "must-pass-unknown", "slices-disagree")


def review(context: ReviewContext) -> Report:
    """The report with what the base says of this run, and what the change does to gates, policies and gold."""
    report = context.report
    gold = gold_review.look(context)
    found = [
        *report.findings,
        *habits(context.run.card, *context.policies),
        *gold.findings,
        *overrides.findings(context),
        *_self_judged(context),
    ]
    report = report._replace(findings=tuple(_sorted(found)), base=_who(context), signed_at=gold.signed_at)
    report = report._replace(gold_changes=gold.changes, gate_turns=gold.turns)
    return concluded(_with_base(report, context, context.base) if context.base else report)


def _with_base(report: Report, context: ReviewContext, base: Policy) -> Report:
    """The base's gates are judged by the values as the base defines them, and so is what gates cannot see."""
    redefined = rejudge(report, base, context.earlier)
    other = None if _same_meaning(base, context.head) else rescore(context.run, base)
    scored = _on_the_scored_files(context, base, redefined)
    judged = _worse((other or redefined).gates, scored.gates if scored else ())
    freed_findings = {"signoff": gold_review.unbound(context), "integrity": _played_down(report, context.head)}
    again = [each for each in (other, scored) if each not in (None, redefined)]
    meant = list(dict.fromkeys(found for each in again for found in _as_the_base_has_it(report, each)))
    effects = Effects(judged, redefined.gates, report.gates, freed_findings, _new_errors(report, meant))
    found, theirs = _whose(changes(base.stated, context.head.stated, effects), context, base)
    found = [*_moved(context, base, effects), *found, *gold_review.key_changes(context)]
    beside = [*report.findings, *(each for each in redefined.findings if each.code in _BY_BASELINE), *meant]
    gates = tuple(merged(judged, report.gates))
    scope = scope_of(context.policies, report.scope.questions, report.scope.of) if report.scope else None
    report = report._replace(notes=(*report.notes, *theirs))
    report = report._replace(gates=gates, policy_changes=tuple(found), findings=tuple(_sorted(beside)), scope=scope)
    return diagnosed(report)


def _on_the_scored_files(context: ReviewContext, base: Policy, redefined: Report) -> Report | None:
    """The run under the base's settings, on the gold and traces that were scored, whichever files the base names.

    Files that the change leaves where the base names them may be older or easier than those that it scores.
    """
    own = base._replace(gold=context.head.gold, trace=context.head.trace)
    if own == base:
        return None
    return redefined if _same_meaning(own, context.head) else rescore(context.run, own)


def _worse(gates: Sequence[GateResult], others: Sequence[GateResult]) -> tuple[GateResult, ...]:
    """Of each gate, judged on two sets of files, the outcome that fails the run, else the one that is broken."""
    also = {(one.label, one.direction): one for one in others}
    pairs = ((one, also.get((one.label, one.direction), one)) for one in gates)
    return tuple(max(pair, key=lambda one: (one.blocks, one.broken)) for pair in pairs)


def _whose(
    found: list[PolicyChange], context: ReviewContext, base: Policy
) -> tuple[list[PolicyChange], list[InputNote]]:
    """Of what the base has otherwise, what the change did, and a note on what the base did since the change left it."""
    own = _done_since(context, base)
    theirs = [each.key for each in found if own is not None and not any(_touch(each.key, key) for key in own)]
    if not theirs:
        return found, []
    some = ", ".join(map(quoted, theirs[:_NAMED])) + (f" and {len(theirs) - _NAMED} more" if theirs[_NAMED:] else "")
    ref = quoted(context.authority.ref, 60)
    message = f"{ref} has changed {some} since this change left it, and decides. Rebase to have that"
    return [each for each in found if each.key not in theirs], [InputNote(base.file, 0, message, 1)]


def _done_since(context: ReviewContext, base: Policy) -> set[str] | None:
    """The keys of the gates file that the change touched; None where it began at the base, or nobody can say."""
    began, path = context.authority.began, context.authority.inside(base.file)
    data = read_regular(began, path) if began and path else None
    policy = None if data is None else policy_of(data, base.file, Ledger())
    return None if policy is None else {each.key for each in changes(policy.stated, context.head.stated)}


def _touch(one: str, other: str) -> bool:
    """Whether a key is the other one, or below or above it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


_NAMED = 5  # keys that are named in one note


def _played_down(report: Report, head: Policy) -> list[str]:
    """The codes that fail this run and would not if the head's levels held alone."""
    own = levels(head)
    return sorted({found.code for found in report.errors if own.get(found.code, "error") != "error"})


def _as_the_base_has_it(report: Report, other: Report) -> list[Finding]:
    """What is found where values, traces and gold are as the base's gates file says, and not as the change does."""
    known = {_apart_from_level(each) for each in report.findings}
    habitual = {(each.code, each.level) for each in report.findings if each.code in HABITS}
    habitual |= {(code, "warning") for code, _ in habitual}  # the same habit in other numbers
    new = [each for each in other.findings if (each.code, each.level) not in habitual]
    return [
        each if _apart_from_level(each) in known else each._replace(message=f"{each.message}; {_BY_BASE}")
        for each in new
    ]


_BY_BASE = "so it is by the base's gates file"


def _new_errors(report: Report, found: Sequence[Finding]) -> list[str]:
    """The codes that fail the run by these findings alone."""
    return sorted({each.code for each in found if each.level == "error"} - {each.code for each in report.errors})


def _apart_from_level(found: Finding) -> Finding:
    return found._replace(level="error", fix="")


def _same_meaning(base: Policy, head: Policy) -> bool:
    return (base.settings, base.gold, base.trace) == (head.settings, head.gold, head.trace)


def _moved(context: ReviewContext, base: Policy, effects: Effects) -> list[PolicyChange]:
    """The gates file itself: gone, or another one than the base has."""
    old, new = context.authority.inside(base.file), context.head.file and context.authority.inside(context.head.file)
    if old == new:
        return []
    through = tuple(sorted(set(freed(effects.base, effects.head))))
    return [PolicyChange("the gates file", "looser", json.dumps(old), json.dumps(new) if new else None, through)]


def _self_judged(context: ReviewContext) -> list[Finding]:
    """Where something else than the change is judged, or nobody but the change decides, or may."""
    return [*_astray(context), *_elsewhere(context), *_by_itself(context), *_other_questions(context)]


def _astray(context: ReviewContext) -> list[Finding]:
    """Where files of another commit are judged; traces that are said to be of the change may be all that it brings."""
    if not context.authority.astray:
        return []
    of = commit_of(context.report.run or {})
    is_named = of and any(each.startswith(of) for each in context.authority.commits)
    message = (
        f"commit {quoted(context.authority.astray[:12])} is checked out, without the last commit of this pull request"
    )
    fix = "Run on pull_request and leave ref out of actions/checkout; docs/forks.md has what forks need."
    return [Finding("change-not-checked-out", "warning" if is_named else "error", message, fix)]


def _other_questions(context: ReviewContext) -> list[Finding]:
    qids = context.run.other_questions()
    if not qids:
        return []
    what = "The trace of 1 question says" if len(qids) == 1 else f"The traces of {len(qids)} questions say"
    some = ", ".join(map(quoted, qids[:_NAMED])) + (f" and {len(qids) - _NAMED} more" if qids[_NAMED:] else "")
    message = f"{what} that another question was asked than the gold asks: {some}"
    fix = "Let the system answer the questions of the gold; q is the question as it was asked."
    return [Finding("other-question", "warning", message, fix, context.head.trace)]


def _elsewhere(context: ReviewContext) -> list[Finding]:
    if not context.authority.unknown:
        return []
    message = "gates were taken, as was asked for, from a commit that the base is not known to have held"
    fix = "Leave gates-ref out, or name what the base holds: a change could name a commit of its own."
    return [Finding("gates-from-elsewhere", "warning", f"{message}: {quoted(context.authority.ref, 60)}", fix)]


def _by_itself(context: ReviewContext) -> list[Finding]:
    if context.authority.gates is None:
        message = "gates were taken from the change itself, as was asked for: it can move its own goalposts"
        return [Finding("gates-from-head", "warning", message, "Leave gates-ref out, and the base decides.")]
    if context.base is None:
        message = "the base has no gates file of this name, nor one of the usual name: the change's own decide alone"
        return [
            Finding("bootstrap", "warning", message, "They hold for others once they are merged.", context.head.file)
        ]
    return []


def _who(context: ReviewContext) -> Base:
    authority = context.authority
    kind: Literal["base", "head", "bootstrap"]
    kind = "head" if authority.gates is None else "base" if context.base else "bootstrap"
    return Base(kind, authority.ref, authority.commit, authority.through)


def _sorted(found: Sequence[Finding]) -> list[Finding]:
    """Errors first; of what was found twice, the graver one, whatever either advises."""
    ordered = sorted(set(found), key=lambda each: (each.level, each.code, each.file, each.line, each.message, each.fix))
    first: dict[tuple[object, ...], Finding] = {}
    for each in ordered:
        first.setdefault(_apart_from_level(each), each)
    return list(first.values())
