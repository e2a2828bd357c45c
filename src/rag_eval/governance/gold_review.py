"""The gold of a change under test: who signed for what changed, and what that does to the cases of this run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.analysis import gold_impact
from rag_eval.analysis.policy_changes import PolicyChange, freed
from rag_eval.analysis.report import Past, SignedAt, rejudge
from rag_eval.cases.finding import Finding
from rag_eval.errors import InputError, UsageError
from rag_eval.git.snapshots import NOTHING, Irregular, differing, read, read_regular
from rag_eval.gold.signoff import checking, repository
from rag_eval.gold.signoff.identity import NO_PROOF, unchecked
from rag_eval.gold.signoff.policy import proves
from rag_eval.gold.signoff.policy_file import beside
from rag_eval.governance import changed_items
from rag_eval.governance.base_gold import compare
from rag_eval.readers.report_file import sidecar_of
from rag_eval.run.scored import rescore_on

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn, GoldChange
    from rag_eval.analysis.report import Earlier, Report
    from rag_eval.cases.finding import Level
    from rag_eval.git.snapshots import Tree
    from rag_eval.gold.signoff.checking import Policy
    from rag_eval.governance.base_gold import Change, GoldDiff
    from rag_eval.governance.review_context import ReviewContext

_ASK = "To have it signed off, say so in eval-gates.yml: signoff: {require: record}."


class GoldReview(NamedTuple):
    """What there is to say of the gold. ``signed_at`` is None where sign-off has nothing to say of it."""

    changes: tuple[GoldChange, ...] = ()
    turns: tuple[GateTurn, ...] = ()
    findings: tuple[Finding, ...] = ()
    signed_at: SignedAt | None = None


def look(context: ReviewContext) -> GoldReview:
    """Review the change of the gold that was scored: changed items, flips, turned gates, sign-off."""
    path = context.authority.inside(context.head.gold)
    if context.authority.gates is None:
        return GoldReview(findings=tuple(_as_it_stands(context, path)))
    found, own = _governed(context, path)
    diff = compare(context)
    if diff.old is None and diff.changes and context.base:
        message = "the base has no gold where its gates file names it, so nothing is compared: all of it counts as new"
        fix = "Name the gold in the gates file, under the path that the base has."
        found.append(Finding("gold-not-on-base", "warning", message, fix, context.head.gold))
    if diff.unseen:
        found += _untracked(context, f"cannot be compared: {diff.unseen}")
    found += _unchecked(context, own, diff) if own else []
    if diff.old is None and not own:
        return GoldReview(findings=tuple(found))
    return _radius(context, diff, found)._replace(signed_at=_signed_at(context, own) if own else None)


def _governed(context: ReviewContext, path: str | None) -> tuple[list[Finding], Policy | None]:
    """Who answers for the change: the findings, and the sign-off policy of the gold, None when it cannot have one."""
    try:
        tracked = path is not None and bool(context.authority.after.files(path))
    except Irregular as error:
        if path is None or not repository.is_folder(error, path):
            raise
        return list(_without_items(context, repository.no_items(path))), None
    if path is None or not tracked:
        where = "lies outside of the repository" if path is None else "is not in the commit under test"
        return list(_untracked(context, where)), None
    if repository.is_packed(read(context.authority.head, path) or b""):
        return list(_without_items(context, repository.packed(path))), None
    policies = _policies(context)
    own = next((policy for policy in policies if policy.gold == path), None)
    found = list(_unsigned(context, policies) if own else _ungoverned(context))
    return found, own or checking.Policy(gold=path)


def _signed_at(context: ReviewContext, policy: Policy) -> SignedAt:
    """What sign-off asked for here, and what that proves."""
    known = NO_PROOF._replace(approvals=(), authors=()) if context.authority.people else NO_PROOF
    return SignedAt(policy.require, _enforced(context), proves(policy), tuple(unchecked(policy, known)))


def unbound(context: ReviewContext) -> list[str]:
    """The codes that keep this change from being signed off now, and would not if its own policy held alone."""
    if not _enforced(context):
        return []
    now = {found.code for policy in _policies(context) for found in _check(context, policy)}
    return sorted(now - _by_its_own(context)) if now else []


def _by_its_own(context: ReviewContext) -> set[str]:
    """The codes that the head's policy alone gives: none where it asks for no sign-off."""
    if context.authority.signoff != "require" and "signoff" not in context.head.stated:
        return set()
    own = _stated(context, context.authority.head, context.head.file) or _at_place(context, checking.Policy())
    return {found.code for found in _check(context, own)}


def key_changes(context: ReviewContext) -> list[PolicyChange]:
    """The keys that the change adds to the allowed-signers file of the base, and those that it takes away."""
    authority, policy = context.authority, context.base and _stated(context, context.authority.gates, context.base.file)
    if not policy or not policy.allowed_signers:
        return []
    old, new = (_lines(tree, policy.allowed_signers) for tree in (authority.gates, authority.head))
    # What the base did since the change left it is none of the change's doing.
    then = _lines_of(read_regular(authority.began, policy.allowed_signers)) if authority.began else old
    key = f"signoff.allowed_signers: {policy.allowed_signers}"
    found = [PolicyChange(key, "looser", None, json.dumps(line)) for line in sorted(new - old - then)]
    return found + [PolicyChange(key, "stricter", json.dumps(line), None) for line in sorted((old & then) - new)]


def _lines(tree: Tree | None, path: str) -> set[str]:
    return _lines_of(read(tree, path) if tree else None)


def _lines_of(data: bytes | None) -> set[str]:
    lines = (line.strip() for line in (data or b"").decode("utf-8", "replace").split("\n"))
    return {line for line in lines if line and not line.startswith("#")}


def _radius(context: ReviewContext, diff: GoldDiff, found: list[Finding]) -> GoldReview:
    past = rescore_on(context.run, diff.old) if diff.changes and diff.old else None
    before, after = (gold_impact.labels(one.questions) if one else {} for one in (past and past.report, context.report))
    stands = gold_impact.standing(diff.changes, {**_recorded(context, diff.changes), **before} if past else {}, after)
    answered = {case.qid for case in past.report.questions if case.trace_line} if past else set()
    found += gold_impact.findings(stands, context.head.gold, _touched(context), answered) if stands else []
    if past is None or diff.old is None or diff.new is None:
        return GoldReview(tuple(stands), (), tuple(found))
    sides, policy = (past, Past(context.report, context.earlier)), context.base or context.head
    old, new = (rejudge(one.report, policy, one.earlier) for one in sides)
    freed_gates = list(freed(old.gates, new.gates))
    found += gold_impact.turning(freed_gates, context.head.gold)
    found += gold_impact.regrouped(freed_gates, diff.old.golds, diff.new.golds, context.head.gold)
    found += gold_impact.turning_must_pass(old.findings, new.findings, context.head.gold)
    found += gold_impact.fewer_cases(_counts(old, context.earlier), new.gates, context.head.gold)
    found += gold_impact.lost_labels(diff.changes, diff.old.golds, diff.new.golds, context.head.gold)
    found += changed_items.findings(diff, context)
    return GoldReview(tuple(stands), tuple(gold_impact.turns(old.gates, new.gates)), tuple(found))


def _counts(old: Report, earlier: Earlier | None) -> dict[str, int]:
    """The number of cases under each gate on the gold of the base: of this run, or of the baseline if it had more."""
    recorded = earlier.recorded.metrics if earlier and earlier.recorded.scope is None and old.scope is None else {}
    found: dict[str, int] = {}
    for gate in old.gates:
        then = recorded[gate.name].n if gate.name in recorded and not gate.slice else 0
        found[gate.label] = max(found.get(gate.label, 0), gate.n, then)
    return found


def _recorded(context: ReviewContext, moved: Sequence[Change]) -> dict[str, str]:
    """The labels in the baseline of questions that nobody is asked any more: all that is known of them."""
    gone = {change.qid for change in moved if change.verb == "removed"}
    return (
        gold_impact.labels(case for case in context.earlier.recorded.questions if case.qid in gone)
        if context.earlier
        else {}
    )


def _touched(context: ReviewContext) -> list[str]:
    """What else the change touches, beside gold, records, gates and traces."""
    authority = context.authority
    named = [context.head.gold, context.head.file, context.head.trace, sidecar_of(context.head.trace)]
    own = {inside for name in named if name and (inside := authority.inside(name))}
    own |= {f"{policy.records}/" for policy in _policies(context)}
    return differing(authority.before, authority.after, own)


# --- sign-off ---------------------------------------------------------------------------------------------------------


def _policies(context: ReviewContext) -> list[Policy]:
    """The sign-off policies in force: the base's, and the head's where it looks elsewhere."""
    authority = context.authority
    head = _stated(context, authority.head, context.head.file)
    base = _stated(context, authority.gates, context.base.file) if authority.gates and context.base else None
    first = authority.fork is NOTHING or authority.gates is None
    return repository.in_force(base, head, lambda policy: _at_place(context, policy), first=first)


def _stated(context: ReviewContext, tree: Tree | None, file: str) -> Policy | None:
    path = context.authority.inside(file) if file else None
    policy = repository.policy_at(tree, path) if tree and path else None
    return _at_place(context, policy) if policy else None


def _at_place(context: ReviewContext, policy: Policy) -> Policy:
    """The policy for the gold that the caller named in place of the policy's own."""
    gold = context.authority.inside(context.options.gold) if context.options.gold else None
    return policy if gold in (None, policy.gold) else policy._replace(gold=gold, records=beside(gold or ""))


def _enforced(context: ReviewContext) -> bool:
    """Whether an unsigned change fails the run: where it was asked for, or some policy in force states it."""
    asked = context.authority.signoff
    return asked == "require" or (asked == "policy" and any("signoff" in policy.stated for policy in context.policies))


def _unsigned(context: ReviewContext, policies: list[Policy]) -> Iterator[Finding]:
    if context.authority.signoff == "off":
        yield Finding("signoff-off", "warning", "sign-off of the gold is not checked, as was asked for")
        return
    try:
        found = [finding for policy in policies for finding in _check(context, policy)]
    except (InputError, UsageError) as error:  # such as gold that is packed on one side: sign-off goes by lines
        if _enforced(context):
            raise
        yield from _without_items(context, error.first)
        return
    if _enforced(context):
        yield from (Finding(one.code, "error", one.message, one.fix, one.file, one.line) for one in found)
    elif found:
        message = f"the gold changed, and nothing asks for a sign-off ({len(found)} finding(s) if it did)"
        yield Finding("gold-not-governed", "warning", message, _ASK, context.head.gold)


def _as_it_stands(context: ReviewContext, path: str | None) -> Iterator[Finding]:
    """With nothing to compare with, every item has to be what some record signed last, where that is asked for."""
    own = next((policy for policy in _policies(context) if policy.gold == path), None)
    if context.authority.signoff == "off" or _enforced(context):
        yield from _unsigned(context, [own]) if own else _ungoverned(context)


def _check(context: ReviewContext, policy: Policy) -> list[checking.Violation]:
    import shlex

    # A branch's name may hold what a shell would run.
    since = "--baseline" if context.authority.gates is None else f"--base {shlex.quote(context.authority.ref)}"
    command = f"rag-eval gold signoff {since} --reason '…'"
    return repository.findings(context.authority.frame, policy, command, context.authority.people)


def _unchecked(context: ReviewContext, policy: Policy, diff: GoldDiff) -> Iterator[Finding]:
    """Reviews and four eyes are known of pull requests only: what other events do not enforce is named."""
    authority = context.authority
    if not (authority.ci and diff.changes and _enforced(context)) or authority.people:
        return
    if asked := unchecked(policy, NO_PROOF):
        message = f"the gold changed, and {' and '.join(asked)} cannot be checked on this event"
        fix = "Require this check on pull requests or in the merge queue."
        yield Finding("signoff-unchecked", "warning", message, fix, policy.gold)


def _ungoverned(context: ReviewContext) -> Iterator[Finding]:
    message = "the gold that is scored is not the one that the sign-off policy is about"
    yield Finding(
        "gold-not-governed", _level(context), message, "Name one gold file in both places.", context.head.gold
    )


def _untracked(context: ReviewContext, where: str) -> Iterator[Finding]:
    message = f"the gold {where}: who signed for what changed in it cannot be seen"
    yield Finding("gold-not-in-git", _level(context), message, "Commit the gold.", context.head.gold)


def _without_items(context: ReviewContext, why: str) -> Iterator[Finding]:
    message, _, fix = why.partition(". ")
    yield Finding("gold-not-in-items", _level(context), message, fix, context.head.gold)


def _level(context: ReviewContext) -> Level:
    return "error" if _enforced(context) else "warning"
