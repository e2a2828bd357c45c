"""The sign-off of a change of the gold: who signed it, by the policies of both sides that apply."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.common.escaping import quantity
from rag_eval.errors import Finding, InputError, UsageError
from rag_eval.git.snapshots import NOTHING, Irregular, follow_links, is_folder, read, read_regular
from rag_eval.gold.signoff import repository
from rag_eval.gold.signoff.identity import SignoffPolicy
from rag_eval.readers.source import PACKED

if TYPE_CHECKING:
    from rag_eval.git.snapshots import Tree
    from rag_eval.governance.context import GoldDiff, ReviewContext

_OF_ITEMS = {"unsigned-change", "replayed-record"}
_ASK = "To require a sign-off, write in eval-gates.yml: signoff: {require: record}."
LFS = re.compile(rb"version https://git-lfs\.github\.com/spec/.*?^oid sha256:([0-9a-f]{64})$", re.DOTALL | re.MULTILINE)
"""A pointer of Git LFS, with the digest of the file."""


def review_signoff(
    context: ReviewContext, path: str | None, diff: GoldDiff
) -> tuple[list[Finding], SignoffPolicy | None]:
    """Return the sign-off findings and the sign-off policy of the gold, None if it has none."""
    if path is None:
        return [untracked(context, "is outside the repository")], None
    try:
        blob = read(context.authority.after, path)
    except Irregular as error:
        if not is_folder(error, path):
            raise
        return [_without_items(context, repository.no_items(path))], None
    if blob is None:
        return [untracked(context, "is not in the commit under test")], None
    if LFS.match(blob):
        is_same = blob == read_regular(context.authority.fork, path) and not is_enforced(context)
        return [] if is_same else [_without_items(context, repository.in_lfs(path))], None
    if (read(context.authority.head, path) or b"").startswith(PACKED):
        return [_without_items(context, repository.packed(path))], None
    policies = signoff_policies(context)
    policy_of_gold = next((policy for policy in policies if policy.gold == path), None)
    findings = list(unsigned(context, policies, diff)) if policy_of_gold else [ungoverned(context)]
    return findings, policy_of_gold or SignoffPolicy(gold=path)


def violations_of_base_policy(context: ReviewContext) -> list[str]:
    """Return the codes that block sign-off of this change now, but not under the head's own policy."""
    if not is_enforced(context):
        return []
    policies, authority = signoff_policies(context), context.authority
    now = {violation.code for policy in policies for violation in _check(context, policy)}
    if now and (authority.signoff == "require" or "signoff" in context.head.stated):
        head_policy = _head_signoff_policy(context)
        now -= {item.code for item in _check(context, head_policy or SignoffPolicy().for_gold(named_gold(context)))}
    return sorted(now)


def signoff_policies(context: ReviewContext) -> list[SignoffPolicy]:
    """Return the sign-off policies that apply: the base's, and the head's if its paths differ."""
    authority = context.authority
    head = _head_signoff_policy(context)
    path = authority.on_base(context.base.file) if context.base else None
    base = signoff_policy_at(context, authority.gates, path)
    first = authority.fork is NOTHING or authority.gates is None
    return repository.policies_in_force(base, head, named_gold(context), first=first)


def _head_signoff_policy(context: ReviewContext) -> SignoffPolicy | None:
    path = context.authority.inside(context.head.file) if context.head.file else None
    return signoff_policy_at(context, context.authority.head, path)


def signoff_policy_at(context: ReviewContext, tree: Tree | None, path: str | None) -> SignoffPolicy | None:
    """Return the sign-off policy of a gates file for the scored gold, None without one."""
    policy = repository.policy_at(tree, path) if tree and path else None
    return policy.for_gold(named_gold(context)) if policy else None


def named_gold(context: ReviewContext) -> str | None:
    """Return the path of the gold that the caller named, by the links of the base."""
    path = context.authority.on_base(context.options.gold) if context.options.gold else None
    return follow_links(context.authority.fork, path) if path else None


def is_enforced(context: ReviewContext) -> bool:
    """Return whether an unsigned change fails the run, by option or by a policy that applies."""
    asked = context.authority.signoff
    return asked == "require" or (asked == "policy" and any("signoff" in policy.stated for policy in context.policies))


def unsigned(context: ReviewContext, policies: list[SignoffPolicy], diff: GoldDiff) -> Iterator[Finding]:
    """Yield the findings about changes without a sign-off, by all these policies."""
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
    is_same = not diff.changes and not diff.not_comparable  # the gold set may still have another path
    if enforced:
        yield from violations
    elif violations and not (is_same and _OF_ITEMS.issuperset(finding.code for finding in violations)):
        what = f"{quantity(len(diff.changes), 'change')} of the gold set"
        what = what if diff.changes else "the sign-off of the gold set changed"
        yield Finding(
            "gold-not-governed", "warning", f"{what}, and no policy requires a sign-off", _ASK, context.head.gold
        )


def _check(context: ReviewContext, policy: SignoffPolicy) -> list[Finding]:
    authority, has_no_base = context.authority, context.authority.gates is None
    # A branch's name may contain shell commands.
    since = "--baseline" if has_no_base else f"--base {shlex.quote(authority.ref)}"
    since += " --key ~/.ssh/id_ed25519" if policy.require == "signature" else ""
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


def ungoverned(context: ReviewContext) -> Finding:
    """Return the finding that no sign-off policy is about the scored gold."""
    message = "the scored gold set is not the one in the sign-off policy"
    fix = "Name the same gold file in the gates file and under signoff."
    return _unsure(context, "gold-not-governed", message, fix)


def untracked(context: ReviewContext, where: str) -> Finding:
    """Return the finding that nobody knows who signed changes of gold that git does not have."""
    message = f"the gold set {where}, so the signers of its changes are unknown"
    return _unsure(context, "gold-not-in-git", message, "Commit the gold set.")


def _without_items(context: ReviewContext, why: str) -> Finding:
    message, _, fix = why.partition(". ")
    return _unsure(context, "gold-not-in-items", message, fix)


def _unsure(context: ReviewContext, code: str, message: str, fix: str) -> Finding:
    return Finding(code, "error" if is_enforced(context) else "warning", message, fix, context.head.gold)
