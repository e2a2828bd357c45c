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

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn, GoldChange
    from rag_eval.analysis.report import Earlier, Report
    from rag_eval.cases.finding import Level
    from rag_eval.git.snapshots import Tree
    from rag_eval.gold.signoff.checking import Policy
    from rag_eval.governance.base_gold import Change, GoldDiff
    from rag_eval.governance.review_context import Scene

_ASK = "To have it signed off, say so in eval-gates.yml: signoff: {require: record}."


class Look(NamedTuple):
    """What there is to say of the gold. ``signed_at`` is None where sign-off has nothing to say of it."""

    changes: tuple[GoldChange, ...] = ()
    turns: tuple[GateTurn, ...] = ()
    findings: tuple[Finding, ...] = ()
    signed_at: SignedAt | None = None


def look(scene: Scene) -> Look:
    """Review the change of the gold that was scored: changed items, flips, turned gates, sign-off."""
    path = scene.authority.inside(scene.head.gold)
    if scene.authority.gates is None:
        return Look(findings=tuple(_as_it_stands(scene, path)))
    found, own = _governed(scene, path)
    diff = compare(scene)
    if diff.old is None and diff.changes and scene.base:
        message = "the base has no gold where its gates file names it, so nothing is compared: all of it counts as new"
        mend = "Name the gold in the gates file, under the path that the base has."
        found.append(Finding("gold-not-on-base", "warning", message, mend, scene.head.gold))
    if diff.unseen:
        found += _untracked(scene, f"cannot be compared: {diff.unseen}")
    found += _unchecked(scene, own, diff) if own else []
    if diff.old is None and not own:
        return Look(findings=tuple(found))
    return _radius(scene, diff, found)._replace(signed_at=_signed_at(scene, own) if own else None)


def _governed(scene: Scene, path: str | None) -> tuple[list[Finding], Policy | None]:
    """Who answers for the change: the findings, and the sign-off policy of the gold, None when it cannot have one."""
    try:
        tracked = path is not None and bool(scene.authority.after.files(path))
    except Irregular as error:
        if path is None or not repository.is_folder(error, path):
            raise
        return list(_without_items(scene, repository.no_items(path))), None
    if path is None or not tracked:
        where = "lies outside of the repository" if path is None else "is not in the commit under test"
        return list(_untracked(scene, where)), None
    if repository.is_packed(read(scene.authority.head, path) or b""):
        return list(_without_items(scene, repository.packed(path))), None
    policies = _policies(scene)
    own = next((policy for policy in policies if policy.gold == path), None)
    found = list(_unsigned(scene, policies) if own else _ungoverned(scene))
    return found, own or checking.Policy(gold=path)


def _signed_at(scene: Scene, policy: Policy) -> SignedAt:
    """What sign-off asked for here, and what that proves."""
    known = NO_PROOF._replace(approvals=(), authors=()) if scene.authority.people else NO_PROOF
    return SignedAt(policy.require, _enforced(scene), proves(policy), tuple(unchecked(policy, known)))


def unbound(scene: Scene) -> list[str]:
    """The codes that keep this change from being signed off now, and would not if its own policy held alone."""
    if not _enforced(scene):
        return []
    now = {found.code for policy in _policies(scene) for found in _check(scene, policy)}
    return sorted(now - _by_its_own(scene)) if now else []


def _by_its_own(scene: Scene) -> set[str]:
    """The codes that the head's policy alone gives: none where it asks for no sign-off."""
    if scene.authority.signoff != "require" and "signoff" not in scene.head.stated:
        return set()
    own = _stated(scene, scene.authority.head, scene.head.file) or _at_place(scene, checking.Policy())
    return {found.code for found in _check(scene, own)}


def key_changes(scene: Scene) -> list[PolicyChange]:
    """The keys that the change adds to the allowed-signers file of the base, and those that it takes away."""
    authority, policy = scene.authority, scene.base and _stated(scene, scene.authority.gates, scene.base.file)
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


def _radius(scene: Scene, diff: GoldDiff, found: list[Finding]) -> Look:
    past = scene.session.before(diff.old) if diff.changes and diff.old else None
    before, after = (gold_impact.labels(one.questions) if one else {} for one in (past and past.report, scene.report))
    stands = gold_impact.standing(diff.changes, {**_recorded(scene, diff.changes), **before} if past else {}, after)
    answered = {case.qid for case in past.report.questions if case.trace_line} if past else set()
    found += gold_impact.findings(stands, scene.head.gold, _touched(scene), answered) if stands else []
    if past is None or diff.old is None or diff.new is None:
        return Look(tuple(stands), (), tuple(found))
    sides, policy = (past, Past(scene.report, scene.earlier)), scene.base or scene.head
    old, new = (rejudge(one.report, policy, one.earlier) for one in sides)
    found += gold_impact.turning(freed(old.gates, new.gates), scene.head.gold)
    found += gold_impact.turning_must_pass(old.findings, new.findings, scene.head.gold)
    found += gold_impact.fewer_cases(_counts(old, scene.earlier), new.gates, scene.head.gold)
    found += gold_impact.lost_labels(diff.changes, diff.old.golds, diff.new.golds, scene.head.gold)
    found += changed_items.findings(diff, scene)
    return Look(tuple(stands), tuple(gold_impact.turns(old.gates, new.gates)), tuple(found))


def _counts(old: Report, earlier: Earlier | None) -> dict[str, int]:
    """The number of cases under each gate on the gold of the base: of this run, or of the baseline if it had more."""
    recorded = earlier.recorded.metrics if earlier and earlier.recorded.scope is None and old.scope is None else {}
    found: dict[str, int] = {}
    for gate in old.gates:
        then = recorded[gate.name].n if gate.name in recorded and not gate.slice else 0
        found[gate.label] = max(found.get(gate.label, 0), gate.n, then)
    return found


def _recorded(scene: Scene, moved: Sequence[Change]) -> dict[str, str]:
    """The labels in the baseline of questions that nobody is asked any more: all that is known of them."""
    gone = {change.qid for change in moved if change.verb == "removed"}
    return (
        gold_impact.labels(case for case in scene.earlier.recorded.questions if case.qid in gone)
        if scene.earlier
        else {}
    )


def _touched(scene: Scene) -> list[str]:
    """What else the change touches, beside gold, records, gates and traces."""
    authority = scene.authority
    named = [scene.head.gold, scene.head.file, scene.head.trace, sidecar_of(scene.head.trace)]
    own = {inside for name in named if name and (inside := authority.inside(name))}
    own |= {f"{policy.records}/" for policy in _policies(scene)}
    return differing(authority.before, authority.after, own)


# --- sign-off ---------------------------------------------------------------------------------------------------------


def _policies(scene: Scene) -> list[Policy]:
    """The sign-off policies in force: the base's, and the head's where it looks elsewhere."""
    authority = scene.authority
    head = _stated(scene, authority.head, scene.head.file)
    base = _stated(scene, authority.gates, scene.base.file) if authority.gates and scene.base else None
    first = authority.fork is NOTHING or authority.gates is None
    return repository.in_force(base, head, lambda policy: _at_place(scene, policy), first=first)


def _stated(scene: Scene, tree: Tree | None, file: str) -> Policy | None:
    path = scene.authority.inside(file) if file else None
    policy = repository.policy_at(tree, path) if tree and path else None
    return _at_place(scene, policy) if policy else None


def _at_place(scene: Scene, policy: Policy) -> Policy:
    """The policy for the gold that the caller named in place of the policy's own."""
    gold = scene.authority.inside(scene.named.gold) if scene.named.gold else None
    return policy if gold in (None, policy.gold) else policy._replace(gold=gold, records=beside(gold or ""))


def _enforced(scene: Scene) -> bool:
    """Whether an unsigned change fails the run: where it was asked for, or some policy in force states it."""
    asked = scene.authority.signoff
    return asked == "require" or (asked == "policy" and any("signoff" in policy.stated for policy in scene.policies))


def _unsigned(scene: Scene, policies: list[Policy]) -> Iterator[Finding]:
    if scene.authority.signoff == "off":
        yield Finding("signoff-off", "warning", "sign-off of the gold is not checked, as was asked for")
        return
    try:
        found = [finding for policy in policies for finding in _check(scene, policy)]
    except (InputError, UsageError) as error:  # such as gold that is packed on one side: sign-off goes by lines
        if _enforced(scene):
            raise
        yield from _without_items(scene, error.first)
        return
    if _enforced(scene):
        yield from (Finding(one.code, "error", one.message, one.mend, one.file, one.line) for one in found)
    elif found:
        message = f"the gold changed, and nothing asks for a sign-off ({len(found)} finding(s) if it did)"
        yield Finding("gold-not-governed", "warning", message, _ASK, scene.head.gold)


def _as_it_stands(scene: Scene, path: str | None) -> Iterator[Finding]:
    """With nothing to compare with, every item has to be what some record signed last, where that is asked for."""
    own = next((policy for policy in _policies(scene) if policy.gold == path), None)
    if scene.authority.signoff == "off" or _enforced(scene):
        yield from _unsigned(scene, [own]) if own else _ungoverned(scene)


def _check(scene: Scene, policy: Policy) -> list[checking.Breach]:
    import shlex

    # A branch's name may hold what a shell would run.
    since = "--baseline" if scene.authority.gates is None else f"--base {shlex.quote(scene.authority.ref)}"
    command = f"rag-eval gold signoff {since} --reason '…'"
    return repository.findings(scene.authority.frame, policy, command, scene.authority.people)


def _unchecked(scene: Scene, policy: Policy, diff: GoldDiff) -> Iterator[Finding]:
    """Reviews and four eyes are known of pull requests only: what other events do not enforce is named."""
    authority = scene.authority
    if not (authority.ci and diff.changes and _enforced(scene)) or authority.people:
        return
    if asked := unchecked(policy, NO_PROOF):
        message = f"the gold changed, and {' and '.join(asked)} cannot be checked on this event"
        mend = "Require this check on pull requests or in the merge queue."
        yield Finding("signoff-unchecked", "warning", message, mend, policy.gold)


def _ungoverned(scene: Scene) -> Iterator[Finding]:
    message = "the gold that is scored is not the one that the sign-off policy is about"
    yield Finding("gold-not-governed", _level(scene), message, "Name one gold file in both places.", scene.head.gold)


def _untracked(scene: Scene, where: str) -> Iterator[Finding]:
    message = f"the gold {where}: who signed for what changed in it cannot be seen"
    yield Finding("gold-not-in-git", _level(scene), message, "Commit the gold.", scene.head.gold)


def _without_items(scene: Scene, why: str) -> Iterator[Finding]:
    message, _, mend = why.partition(". ")
    yield Finding("gold-not-in-items", _level(scene), message, mend, scene.head.gold)


def _level(scene: Scene) -> Level:
    return "error" if _enforced(scene) else "warning"
