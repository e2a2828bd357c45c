"""What the caller names in place of what the base's files name, and traces that are in git."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.cases.finding import Finding
from rag_eval.common.escaping import quoted
from rag_eval.common.paths import GATES_FILES
from rag_eval.contract import DEFAULT_GOLD
from rag_eval.git.snapshots import Irregular, read_regular
from rag_eval.governance.base_gates import gold_named_by, usual_places
from rag_eval.readers.gates_file import beside, policy_of
from rag_eval.readers.problems import Ledger

if TYPE_CHECKING:
    from rag_eval.git.snapshots import Tree
    from rag_eval.governance.review_context import ReviewContext


def findings(context: ReviewContext) -> Iterator[Finding]:
    """Yield a warning for each input that differs from what the base names, and for traces that git tracks."""
    if meant := _meant(context, "gold", context.options.gold):
        message = f"the caller names this gold, and the base's gates file names {quoted(meant)}"
        yield Finding("gold-overridden", "warning", message, _ONLY, context.head.gold)
    if meant := _meant(context, "trace", context.options.trace):
        message = f"the caller names these traces, and the base's gates file names {quoted(meant)}"
        yield Finding("traces-overridden", "warning", message, _ONLY, context.head.trace)
    yield from _gates(context)
    yield from _cutoffs(context)
    yield from _tracked(context)


_ONLY = "Name the file only in the gates file."


def _meant(context: ReviewContext, key: str, named: str) -> str | None:
    """Return the path that the base's gates file states, when the caller names another one.

    A file that states no gold means the usual one, when the base has it.
    """
    if context.base is None or not named:
        return None
    stated = context.base.stated.get(key)
    meant = context.authority.inside(beside(context.base.file, stated or DEFAULT_GOLD))
    if stated is None and not (key == "gold" and meant and _holds(context.authority.fork, meant)):
        return None
    return None if meant == context.authority.inside(named) else meant


def _gates(context: ReviewContext) -> Iterator[Finding]:
    """A gates file of an unusual name or place, though the base has one of the usual name for this gold."""
    tree, named = (
        context.authority.gates,
        context.authority.inside(context.options.gates) if context.options.gates else None,
    )
    if context.base is None or tree is None or named is None:
        return
    usual = named.rpartition("/")[2] in GATES_FILES
    if usual and posixpath.dirname(named) == context.authority.inside(context.options.folder or "."):
        return
    places = usual_places(context.authority, context.options.folder, context.head.gold)
    meant = next((place for place in places if _holds(tree, place)), named)
    nearer = "/" in meant or _gold_of(context, tree, meant) == context.authority.inside(context.head.gold)
    if meant != named and (not usual or (nearer and _holds(tree, named))):
        message = f"the caller names this gates file, and the base has {quoted(meant)} for this gold"
        yield Finding("gates-overridden", "warning", message, "Leave the input gates out.", context.head.file)


def _gold_of(context: ReviewContext, tree: Tree, gates: str) -> str | None:
    data = read_regular(tree, gates)
    policy = None if data is None else policy_of(data, context.authority.outside(gates), Ledger())
    return gold_named_by(context.authority, policy, tree) if policy else None


def _holds(tree: Tree, path: str) -> bool:
    try:
        return bool(tree.files(path))
    except Irregular:
        return False


def _cutoffs(context: ReviewContext) -> Iterator[Finding]:
    stated = context.base.stated.get("k") if context.base else None
    if context.base and stated is not None and int(stated) != context.base.k:
        message = f"the caller sets k to {context.base.k}, and the base's gates file to {stated}"
        yield Finding("k-overridden", "warning", message, "Set k only in the gates file.", context.head.file)


def _tracked(context: ReviewContext) -> Iterator[Finding]:
    if context.authority.gates is None:
        return
    ways = [context.authority.inside(path) for path in (context.head.trace, os.path.realpath(context.head.trace))]
    if any(path and _holds(context.authority.after, path) for path in ways):
        message = "the traces are in git: they are answers that somebody committed, not those of this run"
        yield Finding(
            "traces-tracked", "warning", message, "Let the job write them, and ignore the file.", context.head.trace
        )
