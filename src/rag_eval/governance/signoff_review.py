"""Review of who signed the changes of the gold, under the sign-off policies of both sides."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.analysis.policy_changes import PolicyChange
from rag_eval.analysis.report import SignedAt
from rag_eval.common.escaping import quantity
from rag_eval.errors import Finding, InputError, UsageError
from rag_eval.git.snapshots import NOTHING, Irregular, follow_links, read, read_regular
from rag_eval.gold.signoff import checking, repository
from rag_eval.gold.signoff.identity import NO_PROOF, SignoffPolicy, default_records, proves, unchecked
from rag_eval.readers.source import PACKED

if TYPE_CHECKING:
    from rag_eval.gates.policy import Policy
    from rag_eval.git.snapshots import Tree
    from rag_eval.run.authority import Authority
    from rag_eval.run.inputs import Options
    from rag_eval.run.scored import ScoredRun

_ASK = "To require a sign-off, write in eval-gates.yml: signoff: {require: record}."


class ReviewContext(NamedTuple):
    """A scored run, its options, and the authority that it is compared with."""

    authority: Authority
    run: ScoredRun
    options: Options

    @property
    def head(self) -> Policy:
        """Return the policy of the pull request."""
        return self.run.inputs.policy

    @property
    def base(self) -> Policy | None:
        """Return the policy of the base branch."""
        return self.run.inputs.base

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Return the policies that apply."""
        return self.run.inputs.policies


def unsigned_without_base(context: ReviewContext, path: str | None) -> list[Finding]:
    """Return the findings without a base: items must be as their last record says, if sign-off is required."""
    if context.authority.signoff != "off" and not is_enforced(context):
        return []
    policies = [policy for policy in signoff_policies(context) if policy.gold == path]
    return list(_unsigned(context, policies[:1])) if policies else [_ungoverned(context)]


def signed_at(context: ReviewContext, policy: SignoffPolicy) -> SignedAt:
    """Return the level of sign-off, what it proves, and what cannot be checked in this run."""
    known = NO_PROOF._replace(approvals=(), authors=()) if context.authority.people else NO_PROOF
    return SignedAt(policy.require, is_enforced(context), proves(policy), tuple(unchecked(policy, known)))


def review_signoff(context: ReviewContext, path: str | None) -> tuple[list[Finding], SignoffPolicy | None]:
    """Return the sign-off findings and the sign-off policy of the gold, None if it has none."""
    try:
        tracked = path is not None and bool(context.authority.after.files(path))
    except Irregular as error:
        if path is None or not repository.is_folder(error, path):
            raise
        return [_without_items(context, repository.no_items(path))], None
    if path is None or not tracked:
        where = "is outside the repository" if path is None else "is not in the commit under test"
        return [untracked(context, where)], None
    if (read(context.authority.head, path) or b"").startswith(PACKED):
        return [_without_items(context, repository.packed(path))], None
    policies = signoff_policies(context)
    policy_of_gold = next((policy for policy in policies if policy.gold == path), None)
    findings = list(_unsigned(context, policies)) if policy_of_gold else [_ungoverned(context)]
    return findings, policy_of_gold or SignoffPolicy(gold=path)


def violations_of_base_policy(context: ReviewContext) -> list[str]:
    """Return the codes that block sign-off of this change now, but not under the head's own policy."""
    if not is_enforced(context):
        return []
    policies, authority = signoff_policies(context), context.authority
    now = {violation.code for policy in policies for violation in _check(context, policy)}
    if now and (authority.signoff == "require" or "signoff" in context.head.stated):
        head_policy = _head_signoff_policy(context)
        now -= {item.code for item in _check(context, head_policy or _at_place(context, SignoffPolicy()))}
    return sorted(now)


def key_changes(context: ReviewContext) -> list[PolicyChange]:
    """Return the keys that the change adds to the base's allowed-signers file, and those that it removes."""
    authority, base = context.authority, context.base
    policy = _signoff_policy(context, authority.gates, authority.on_base(base.file)) if base else None
    if not policy or not policy.allowed_signers:
        return []

    def lines_of(data: bytes | None) -> set[str]:
        lines = (line.strip() for line in (data or b"").decode("utf-8", "replace").split("\n"))
        return {line for line in lines if line and not line.startswith("#")}

    file, began = policy.allowed_signers, authority.fork_of_gates
    old, new = (lines_of(read(tree, file) if tree else None) for tree in (authority.gates, authority.head))
    then = lines_of(read_regular(began, file)) if began else old  # later changes of the base are not this change's
    key = f"signoff.allowed_signers: {file}"
    added = [PolicyChange(key, "looser", None, json.dumps(line)) for line in sorted(new - old - then)]
    return added + [PolicyChange(key, "stricter", json.dumps(line), None) for line in sorted((old & then) - new)]


def signoff_policies(context: ReviewContext) -> list[SignoffPolicy]:
    """Return the sign-off policies that apply: the base's, and the head's if its paths differ."""
    authority = context.authority
    head = _head_signoff_policy(context)
    path = authority.on_base(context.base.file) if context.base else None
    base = _signoff_policy(context, authority.gates, path)
    first = authority.fork is NOTHING or authority.gates is None
    return repository.in_force(base, head, lambda policy: _at_place(context, policy), first=first)


def _head_signoff_policy(context: ReviewContext) -> SignoffPolicy | None:
    path = context.authority.inside(context.head.file) if context.head.file else None
    return _signoff_policy(context, context.authority.head, path)


def _signoff_policy(context: ReviewContext, tree: Tree | None, path: str | None) -> SignoffPolicy | None:
    policy = repository.policy_at(tree, path) if tree and path else None
    return _at_place(context, policy) if policy else None


def named_gold(context: ReviewContext) -> str | None:
    """Return the path of the gold that the caller named, by the links of the base."""
    path = context.authority.on_base(context.options.gold) if context.options.gold else None
    return follow_links(context.authority.fork, path) if path else None


def _at_place(context: ReviewContext, policy: SignoffPolicy) -> SignoffPolicy:
    """Return the policy for the gold that the caller named in place of the policy's own."""
    gold = named_gold(context)
    return policy if gold in (None, policy.gold) else policy._replace(gold=gold, records=default_records(gold or ""))


def is_enforced(context: ReviewContext) -> bool:
    """Return whether an unsigned change fails the run, by option or by a policy that applies."""
    asked = context.authority.signoff
    return asked == "require" or (asked == "policy" and any("signoff" in policy.stated for policy in context.policies))


def _unsigned(context: ReviewContext, policies: list[SignoffPolicy]) -> Iterator[Finding]:
    if context.authority.signoff == "off":
        yield Finding("signoff-off", "warning", "signoff: off turns off the sign-off check")
        return
    enforced = is_enforced(context)
    try:
        violations = [finding for policy in policies for finding in _check(context, policy)]
    except (InputError, UsageError) as error:  # such as gold that is packed on one side: sign-off reads lines
        if enforced:
            raise
        yield _without_items(context, error.first)
        return
    if enforced:
        yield from (Finding(item.code, "error", item.message, item.fix, item.file, item.line) for item in violations)
    elif violations:
        count = quantity(len(violations), "finding")
        message = f"the gold changed, and no policy requires a sign-off (with one: {count})"
        yield Finding("gold-not-governed", "warning", message, _ASK, context.head.gold)


def _check(context: ReviewContext, policy: SignoffPolicy) -> list[checking.Violation]:
    authority, has_no_base = context.authority, context.authority.gates is None
    # A branch's name may contain shell commands.
    since = "--baseline" if has_no_base else f"--base {shlex.quote(authority.ref)}"
    states = repository.GoldStates(
        authority.fork,
        authority.head,
        authority.ref,
        authority.used_records,
        has_no_base,
        restore=authority.commit or authority.ref,
        rules=authority.gates,
    )
    return repository.findings(states, policy, f"rag-eval gold signoff {since} --reason '…'", authority.people)


def _ungoverned(context: ReviewContext) -> Finding:
    message = "the scored gold set is not the one in the sign-off policy"
    return _unsure(
        context, "gold-not-governed", message, "Name the same gold file in the gates file and under signoff."
    )


def untracked(context: ReviewContext, where: str) -> Finding:
    """Return the finding that nobody knows who signed changes of gold that git does not have."""
    message = f"the gold set {where}, so the signers of its changes are unknown"
    return _unsure(context, "gold-not-in-git", message, "Commit the gold set.")


def _without_items(context: ReviewContext, why: str) -> Finding:
    message, _, fix = why.partition(". ")
    return _unsure(context, "gold-not-in-items", message, fix)


def _unsure(context: ReviewContext, code: str, message: str, fix: str) -> Finding:
    return Finding(code, "error" if is_enforced(context) else "warning", message, fix, context.head.gold)
