"""The scored run, and the authority that it is compared with."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.contract import DEFAULT_GOLD, Limits
from rag_eval.errors import InputError
from rag_eval.git.snapshots import NOTHING, Irregular, read
from rag_eval.readers.gold_file import StoredGold
from rag_eval.run.base_policy import gold_named_by, has_path, stored_at

if TYPE_CHECKING:
    from rag_eval.analysis.baseline import Earlier
    from rag_eval.analysis.gold_impact import Verb
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Policy
    from rag_eval.git.snapshots import Tree
    from rag_eval.readers.gold_file import GoldSet
    from rag_eval.run.authority import Authority
    from rag_eval.run.options import Options
    from rag_eval.run.scored import ScoredRun


_LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/.*?^oid sha256:([0-9a-f]{64})$", re.DOTALL | re.MULTILINE
)


class ReviewContext(NamedTuple):
    """A scored run and the authority that it is compared with."""

    authority: Authority
    run: ScoredRun

    @property
    def options(self) -> Options:
        """Return the files and cutoffs that the caller named."""
        return self.run.inputs.options

    @property
    def head(self) -> Policy:
        """Return the policy of the pull request."""
        return self.run.inputs.policy

    @property
    def base(self) -> Policy | None:
        """Return the policy of the base branch, if it has one."""
        return self.run.inputs.base

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Return the policies that apply, the head's first."""
        return self.run.inputs.policies

    @property
    def report(self) -> Report:
        """Return the report under the policy of the pull request."""
        return self.run.report

    @property
    def earlier(self) -> Earlier | None:
        """Return the baseline."""
        return self.run.earlier


class ItemChange(NamedTuple):
    """A gold item that was added, changed or removed; a mutation changes the question of a qid."""

    qid: str
    verb: Verb
    mutation: bool


class GoldDiff(NamedTuple):
    """The differences between the scored gold and the gold of the base.

    ``old`` is None if the base has no gold. ``not_comparable`` is the reason why the two could not be compared.
    """

    changes: tuple[ItemChange, ...] = ()
    old: GoldSet | None = None
    new: GoldSet | None = None
    not_comparable: str = ""


def compare(context: ReviewContext) -> GoldDiff:
    """Compare the scored gold with the gold that the base's policy names; raise InputError if that is unreadable."""
    authority, run, scored_path = context.authority, context.run, context.head.gold
    limits = Limits(**(context.base or context.head).limits)
    path = gold_path(context, authority.fork)
    stored = stored_at(authority, authority.fork, path, limits) if path else None
    new = run.gold
    if stored is None:
        return GoldDiff(tuple(ItemChange(qid, "added", False) for qid in sorted(new.golds)), None, new)
    data = None if stored.folder else next(iter(stored.files.values()))
    committed = _scored_bytes(context)
    if data is not None and data == committed:
        return GoldDiff()
    if data is not None and (pointer := _LFS.match(data)):
        same = pointer[1].decode() == run.gold_sha256
        return GoldDiff(not_comparable="" if same else f"{quoted(stored.path)} is in Git LFS on the base")
    old = run.stored(stored)
    if committed is not None and hashlib.sha256(committed).hexdigest() != run.gold_sha256:  # a checkout changed it
        own_limits = Limits(**context.head.limits)
        new = run.stored(StoredGold(scored_path, scored_path, {scored_path: committed}, limits=own_limits))
    changed = [qid for qid in sorted(old.golds.keys() | new.golds.keys()) if old.differs(qid, new)]
    if merged := _merged_since(context, new, changed, limits):
        changed = [qid for qid in changed if qid not in merged]
        golds = {qid: gold for qid, gold in old.golds.items() if qid not in merged}
        hashes = {qid: digest for qid, digest in old.hashes.items() if qid not in merged}
        both = merged & new.golds.keys()
        golds |= {qid: new.golds[qid] for qid in both}
        old = old._replace(golds=golds, hashes=hashes | {qid: new.hashes[qid] for qid in both})
    changes = []
    for qid in changed:
        before, after = old.golds.get(qid), new.golds.get(qid)
        if before is None or after is None:
            changes.append(ItemChange(qid, "added" if before is None else "removed", False))
        else:
            mutation = (before.question, before.answerable) != (after.question, after.answerable)
            changes.append(ItemChange(qid, "changed", mutation))
    return GoldDiff(tuple(changes), old, new)


def gold_path(context: ReviewContext, tree: Tree) -> str | None:
    """Return the path of the gold of ``tree``: the caller's if it exists there, otherwise the base gates' path.

    Without gates on the base it is the path of the scored gold, otherwise the usual one.
    """
    authority = context.authority
    named = authority.inside(context.options.gold) if context.options.gold else None
    if named and has_path(tree, named):
        return named
    if context.base:
        return gold_named_by(authority, context.base, tree)
    usual = authority.inside(os.path.join(context.options.folder, DEFAULT_GOLD))  # noqa: PTH118
    paths = (authority.inside(context.head.gold), usual)
    return next((path for path in paths if path and has_path(tree, path)), None)


def _scored_bytes(context: ReviewContext) -> bytes | None:
    """Return the scored file as git has it; None if it is a folder or not in git."""
    path = context.authority.inside(context.head.gold)
    try:
        is_file = path is not None and context.authority.after.files(path)
    except Irregular:
        return None
    return read(context.authority.head, path) if path and is_file else None


def _merged_since(context: ReviewContext, new: GoldSet, changed: list[str], limits: Limits) -> set[str]:
    """Return the qids whose items the base has in this change's form, but did not have when the change began.

    They come from an earlier part of the change that was merged already, as with stacked pull requests.
    """
    tip = context.authority.used_records
    path = gold_path(context, tip) if changed and tip is not NOTHING else None
    try:
        stored = stored_at(context.authority, tip, path, limits) if path else None
        now = context.run.stored(stored) if stored else None
    except InputError:
        return set()
    return {qid for qid in changed if not now.differs(qid, new)} if now else set()
