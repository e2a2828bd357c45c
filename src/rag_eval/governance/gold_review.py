"""Review of the gold of a change under test: who signed the changes, and their effects on the cases of this run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.analysis import gold_impact
from rag_eval.analysis.policy_changes import PolicyChange, loosened_gates
from rag_eval.analysis.report import RescoredRun, SignedAt, rejudge
from rag_eval.common.digests import Digests
from rag_eval.common.escaping import quantity
from rag_eval.errors import Finding, InputError, UsageError
from rag_eval.git.snapshots import NOTHING, Irregular, differing, read, read_regular
from rag_eval.gold.lint import CHECKS, GoldSample, watch
from rag_eval.gold.signoff import checking, repository
from rag_eval.gold.signoff.identity import NO_PROOF, proves, unchecked
from rag_eval.gold.signoff.policy_file import default_records
from rag_eval.governance.review_context import compare
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import sidecar_of
from rag_eval.run.inputs import paired_traces
from rag_eval.run.scored import rescore_on

if TYPE_CHECKING:
    from rag_eval.analysis.baseline import Earlier
    from rag_eval.analysis.gold_impact import GateTurn, GoldChange
    from rag_eval.analysis.report import Report
    from rag_eval.errors import Level
    from rag_eval.git.snapshots import Tree
    from rag_eval.gold.lint import Seen
    from rag_eval.gold.signoff.checking import SignoffPolicy
    from rag_eval.governance.review_context import GoldDiff, ItemChange, ReviewContext
    from rag_eval.readers.gold_file import GoldSet

    LintLines = dict[tuple[str, str, str], int]

_ASK = "To require a sign-off, write in eval-gates.yml: signoff: {require: record}."


RULES = (
    "no-substr",
    "substr-white-space",
    "substr-character",
    "substr-refusal",
    "substr-in-question",
    "substr-stop-words",
    "substr-in-citation",
    "substr-common",
    "no-citation",
    "expected-without-substr",
    "question-blank",
)
"""The rules of `gold lint` that say that an item judges too little."""
_SHOWN = 5
_ANSWERS = 20_000  # of the run, in which a substring is searched


class GoldReview(NamedTuple):
    """The review of the gold. ``signed_at`` is None if sign-off does not apply."""

    changes: tuple[GoldChange, ...] = ()
    turns: tuple[GateTurn, ...] = ()
    findings: tuple[Finding, ...] = ()
    signed_at: SignedAt | None = None


def review_gold(context: ReviewContext) -> GoldReview:
    """Review the change of the gold that was scored: changed items, flips, turned gates, sign-off."""
    path = context.authority.inside(context.head.gold)
    if context.authority.gates is None:
        return GoldReview(findings=tuple(_unsigned_items(context, path)))
    findings, policy = _governed(context, path)
    diff = compare(context)
    if diff.old is None and diff.changes and context.base:
        message = "the base branch has no gold set at the path in its gates file, so all items count as new"
        fix = "Name the gold set in the gates file by its path on the base branch."
        findings.append(Finding("gold-not-on-base", "warning", message, fix, context.head.gold))
    if diff.not_comparable:
        findings.append(_untracked(context, f"cannot be compared: {diff.not_comparable}"))
    findings += _unchecked(context, policy, diff) if policy else []
    if diff.old is None and not policy:
        return GoldReview(findings=tuple(findings))
    review = _with_impact(context, diff, findings)
    if not policy:
        return review
    known = NO_PROOF._replace(approvals=(), authors=()) if context.authority.people else NO_PROOF
    unproved = tuple(unchecked(policy, known))
    return review._replace(signed_at=SignedAt(policy.require, _enforced(context), proves(policy), unproved))


def _governed(context: ReviewContext, path: str | None) -> tuple[list[Finding], SignoffPolicy | None]:
    """Return the sign-off findings and the sign-off policy of the gold, None if it has none."""
    try:
        tracked = path is not None and bool(context.authority.after.files(path))
    except Irregular as error:
        if path is None or not repository.is_folder(error, path):
            raise
        return [_without_items(context, repository.no_items(path))], None
    if path is None or not tracked:
        where = "is outside the repository" if path is None else "is not in the commit under test"
        return [_untracked(context, where)], None
    if repository.is_packed(read(context.authority.head, path) or b""):
        return [_without_items(context, repository.packed(path))], None
    policies = _policies(context)
    policy_of_gold = next((policy for policy in policies if policy.gold == path), None)
    findings = list(_unsigned(context, policies)) if policy_of_gold else [_ungoverned(context)]
    return findings, policy_of_gold or checking.SignoffPolicy(gold=path)


def violations_of_base_policy(context: ReviewContext) -> list[str]:
    """Return the codes that block sign-off of this change now, but not under its own policy."""
    if not _enforced(context):
        return []
    now = {violation.code for policy in _policies(context) for violation in _check(context, policy)}
    return sorted(now - _codes_of_own_policy(context)) if now else []


def _codes_of_own_policy(context: ReviewContext) -> set[str]:
    """Return the codes that the head's policy gives; none if it requires no sign-off."""
    if context.authority.signoff != "require" and "signoff" not in context.head.stated:
        return set()
    policy = _signoff_policy(context, context.authority.head, context.head.file) or _at_place(
        context, checking.SignoffPolicy()
    )
    return {violation.code for violation in _check(context, policy)}


def key_changes(context: ReviewContext) -> list[PolicyChange]:
    """Return the keys that the change adds to the base's allowed-signers file, and those that it removes."""
    authority, policy = (
        context.authority,
        context.base and _signoff_policy(context, context.authority.gates, context.base.file),
    )
    if not policy or not policy.allowed_signers:
        return []
    old, new = (
        _lines_of(read(tree, policy.allowed_signers) if tree else None) for tree in (authority.gates, authority.head)
    )
    # Later changes of the base are not part of the change.
    then = _lines_of(read_regular(authority.fork_of_gates, policy.allowed_signers)) if authority.fork_of_gates else old
    key = f"signoff.allowed_signers: {policy.allowed_signers}"
    added = [PolicyChange(key, "looser", None, json.dumps(line)) for line in sorted(new - old - then)]
    return added + [PolicyChange(key, "stricter", json.dumps(line), None) for line in sorted((old & then) - new)]


def _lines_of(data: bytes | None) -> set[str]:
    lines = (line.strip() for line in (data or b"").decode("utf-8", "replace").split("\n"))
    return {line for line in lines if line and not line.startswith("#")}


def _with_impact(context: ReviewContext, diff: GoldDiff, findings: list[Finding]) -> GoldReview:
    past = rescore_on(context.run, diff.old) if diff.changes and diff.old else None
    before, after = (
        gold_impact.labels(item.questions) if item else {} for item in (past and past.report, context.report)
    )
    stands = gold_impact.gold_changes(
        diff.changes, {**_recorded(context, diff.changes), **before} if past else {}, after
    )
    answered = {case.qid for case in past.report.questions if case.trace_line} if past else set()
    findings += (
        gold_impact.findings(stands, context.head.gold, _other_changed_files(context), answered) if stands else []
    )
    if past is None or diff.old is None or diff.new is None:
        return GoldReview(tuple(stands), (), tuple(findings))
    sides, policy = (past, RescoredRun(context.report, context.earlier)), context.base or context.head
    old, new = (rejudge(side.report, policy, side.earlier) for side in sides)
    freed_gates = list(loosened_gates(old.gates, new.gates))
    findings += gold_impact.gates_that_pass_now(freed_gates, context.head.gold)
    findings += gold_impact.regrouped(freed_gates, diff.old.golds, diff.new.golds, context.head.gold)
    findings += gold_impact.turning_must_pass(old.findings, new.findings, context.head.gold)
    findings += gold_impact.fewer_cases(_counts(old, context.earlier), new.gates, context.head.gold)
    findings += gold_impact.lost_labels(diff.changes, diff.old.golds, diff.new.golds, context.head.gold)
    findings += _item_findings(diff, context)
    return GoldReview(tuple(stands), tuple(gold_impact.gate_turns(old.gates, new.gates)), tuple(findings))


def _counts(old: Report, earlier: Earlier | None) -> dict[str, int]:
    """Return the number of cases under each gate on the base's gold: of this run, or of the baseline if it has more."""
    recorded = earlier.recorded.metrics if earlier and earlier.recorded.scope is None and old.scope is None else {}
    counts: dict[str, int] = {}
    for gate in old.gates:
        then = recorded[gate.name].n if gate.name in recorded and not gate.slice else 0
        counts[gate.label] = max(counts.get(gate.label, 0), gate.n, then)
    return counts


def _recorded(context: ReviewContext, moved: Sequence[ItemChange]) -> dict[str, str]:
    """Return the labels in the baseline of questions that were removed: nothing else is known about them."""
    gone = {change.qid for change in moved if change.verb == "removed"}
    return (
        gold_impact.labels(case for case in context.earlier.recorded.questions if case.qid in gone)
        if context.earlier
        else {}
    )


def _other_changed_files(context: ReviewContext) -> list[str]:
    """Return the other files that the change touches, except gold, records, gates and traces."""
    authority = context.authority
    named = [context.head.gold, context.head.file, context.head.trace, sidecar_of(context.head.trace)]
    named_files = {inside for name in named if name and (inside := authority.inside(name))}
    named_files |= {f"{policy.records}/" for policy in _policies(context)}
    return differing(authority.before, authority.after, named_files)


# --- sign-off ---------------------------------------------------------------------------------------------------------


def _policies(context: ReviewContext) -> list[SignoffPolicy]:
    """Return the sign-off policies that apply: the base's, and the head's if its paths differ."""
    authority = context.authority
    head = _signoff_policy(context, authority.head, context.head.file)
    base = _signoff_policy(context, authority.gates, context.base.file) if authority.gates and context.base else None
    first = authority.fork is NOTHING or authority.gates is None
    return repository.in_force(base, head, lambda policy: _at_place(context, policy), first=first)


def _signoff_policy(context: ReviewContext, tree: Tree | None, file: str) -> SignoffPolicy | None:
    path = context.authority.inside(file) if file else None
    policy = repository.policy_at(tree, path) if tree and path else None
    return _at_place(context, policy) if policy else None


def _at_place(context: ReviewContext, policy: SignoffPolicy) -> SignoffPolicy:
    """Return the policy for the gold that the caller named in place of the policy's own."""
    gold = context.authority.inside(context.options.gold) if context.options.gold else None
    return policy if gold in (None, policy.gold) else policy._replace(gold=gold, records=default_records(gold or ""))


def _enforced(context: ReviewContext) -> bool:
    """Return whether an unsigned change fails the run, by option or by a policy that applies."""
    asked = context.authority.signoff
    return asked == "require" or (asked == "policy" and any("signoff" in policy.stated for policy in context.policies))


def _unsigned(context: ReviewContext, policies: list[SignoffPolicy]) -> Iterator[Finding]:
    if context.authority.signoff == "off":
        yield Finding("signoff-off", "warning", "signoff: off turns off the sign-off check")
        return
    try:
        violations = [finding for policy in policies for finding in _check(context, policy)]
    except (InputError, UsageError) as error:  # such as gold that is packed on one side: sign-off reads lines
        if _enforced(context):
            raise
        yield _without_items(context, error.first)
        return
    if _enforced(context):
        yield from (
            Finding(violation.code, "error", violation.message, violation.fix, violation.file, violation.line)
            for violation in violations
        )
    elif violations:
        message = (
            f"the gold changed, and no policy requires a sign-off (with one: {quantity(len(violations), 'finding')})"
        )
        yield Finding("gold-not-governed", "warning", message, _ASK, context.head.gold)


def _unsigned_items(context: ReviewContext, path: str | None) -> Iterator[Finding]:
    """Yield the items that differ from their last record, for a run without a base if sign-off is required."""
    in_force = next((policy for policy in _policies(context) if policy.gold == path), None)
    if context.authority.signoff == "off" or _enforced(context):
        yield from _unsigned(context, [in_force]) if in_force else [_ungoverned(context)]


def _check(context: ReviewContext, policy: SignoffPolicy) -> list[checking.Violation]:
    import shlex

    # A branch's name may contain shell commands.
    since = "--baseline" if context.authority.gates is None else f"--base {shlex.quote(context.authority.ref)}"
    command = f"rag-eval gold signoff {since} --reason '…'"
    return repository.findings(context.authority.frame, policy, command, context.authority.people)


def _unchecked(context: ReviewContext, policy: SignoffPolicy, diff: GoldDiff) -> Iterator[Finding]:
    """Yield the requirements that are not checked: reviews and four eyes are known only for pull requests."""
    authority = context.authority
    if not (authority.ci and diff.changes and _enforced(context)) or authority.people:
        return
    if asked := unchecked(policy, NO_PROOF):
        message = f"the gold changed, and {' and '.join(asked)} cannot be checked on this event"
        fix = "Require this check on pull requests or in the merge queue."
        yield Finding("signoff-unchecked", "warning", message, fix, policy.gold)


def _ungoverned(context: ReviewContext) -> Finding:
    message = "the scored gold set is not the one in the sign-off policy"
    fix = "Name the same gold file in the gates file and under signoff."
    return Finding("gold-not-governed", _level(context), message, fix, context.head.gold)


def _untracked(context: ReviewContext, where: str) -> Finding:
    message = f"the gold set {where}, so the signers of its changes are unknown"
    return Finding("gold-not-in-git", _level(context), message, "Commit the gold set.", context.head.gold)


def _without_items(context: ReviewContext, why: str) -> Finding:
    message, _, fix = why.partition(". ")
    return Finding("gold-not-in-items", _level(context), message, fix, context.head.gold)


def _level(context: ReviewContext) -> Level:
    return "error" if _enforced(context) else "warning"


def _item_findings(diff: GoldDiff, context: ReviewContext) -> Iterator[Finding]:
    """Yield a warning for each new finding of `gold lint` in the changed items."""
    qids = [change.qid for change in diff.changes if change.verb != "removed"]
    if not qids or diff.old is None or diff.new is None:
        return
    inputs = context.run.inputs
    silent = inputs.reader._replace(ledger=ProblemCollector())
    traces = paired_traces(silent, inputs.golds, inputs.policy.trace, Digests())
    seen = watch(inputs.golds, islice(traces, _ANSWERS), inputs.policy.settings)
    known = _lint(diff.old, qids, context, seen)
    new = {key: line for key, line in _lint(diff.new, qids, context, seen).items() if key not in known}
    for (code, qid, message), line in list(new.items())[:_SHOWN]:
        where = f"{qid}: " if qid else "in the changed items, "
        more = f" (and {quantity(len(new) - _SHOWN, 'more finding')})" if len(new) > _SHOWN else ""
        text = f"{where}{message} ({code}){more}"
        fix = "Correct the item. To list all weak items, run: rag-eval gold lint"
        yield Finding("changed-item-weak", "warning", text, fix, context.head.gold, line)


def _lint(golds: GoldSet, qids: Iterable[str], context: ReviewContext, seen: Seen) -> LintLines:
    sample = GoldSample(
        [(golds.golds[qid], {}) for qid in qids if qid in golds.golds], context.base or context.head, seen
    )
    notes = {}
    for code in RULES:
        for remark in CHECKS[code](sample):
            gold = remark.gold
            notes[code, gold.qid if gold else "", remark.message] = gold.line if gold else 0
    return notes
