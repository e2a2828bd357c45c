"""What the caller names in place of what the base's files name, and traces that are in git."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.cases.finding import Finding
from rag_eval.common.escaping import quoted
from rag_eval.common.paths import GATES_FILES
from rag_eval.contract import USUAL_GOLD
from rag_eval.git.snapshots import Irregular, read_regular
from rag_eval.governance.base_gates import gold_named_by, usual_places
from rag_eval.readers.gates_file import beside, policy_of
from rag_eval.readers.problems import Ledger

if TYPE_CHECKING:
    from rag_eval.git.snapshots import Tree
    from rag_eval.governance.review_context import Scene


def findings(scene: Scene) -> Iterator[Finding]:
    """Yield a warning for each input that differs from what the base names, and for traces that git tracks."""
    if meant := _meant(scene, "gold", scene.named.gold):
        message = f"the caller names this gold, and the base's gates file names {quoted(meant)}"
        yield Finding("gold-overridden", "warning", message, _ONLY, scene.head.gold)
    if meant := _meant(scene, "trace", scene.named.trace):
        message = f"the caller names these traces, and the base's gates file names {quoted(meant)}"
        yield Finding("traces-overridden", "warning", message, _ONLY, scene.head.trace)
    yield from _gates(scene)
    yield from _cutoffs(scene)
    yield from _tracked(scene)


_ONLY = "Name the file only in the gates file."


def _meant(scene: Scene, key: str, named: str) -> str | None:
    """Return the path that the base's gates file states, when the caller names another one.

    A file that states no gold means the usual one, when the base has it.
    """
    if scene.base is None or not named:
        return None
    stated = scene.base.stated.get(key)
    meant = scene.authority.inside(beside(scene.base.file, stated or USUAL_GOLD))
    if stated is None and not (key == "gold" and meant and _holds(scene.authority.fork, meant)):
        return None
    return None if meant == scene.authority.inside(named) else meant


def _gates(scene: Scene) -> Iterator[Finding]:
    """A gates file of an unusual name or place, though the base has one of the usual name for this gold."""
    tree, named = scene.authority.gates, scene.authority.inside(scene.named.gates) if scene.named.gates else None
    if scene.base is None or tree is None or named is None:
        return
    usual = named.rpartition("/")[2] in GATES_FILES
    if usual and posixpath.dirname(named) == scene.authority.inside(scene.named.folder or "."):
        return
    places = usual_places(scene.authority, scene.named.folder, scene.head.gold)
    meant = next((place for place in places if _holds(tree, place)), named)
    nearer = "/" in meant or _gold_of(scene, tree, meant) == scene.authority.inside(scene.head.gold)
    if meant != named and (not usual or (nearer and _holds(tree, named))):
        message = f"the caller names this gates file, and the base has {quoted(meant)} for this gold"
        yield Finding("gates-overridden", "warning", message, "Leave the input gates out.", scene.head.file)


def _gold_of(scene: Scene, tree: Tree, gates: str) -> str | None:
    data = read_regular(tree, gates)
    policy = None if data is None else policy_of(data, scene.authority.outside(gates), Ledger())
    return gold_named_by(scene.authority, policy, tree) if policy else None


def _holds(tree: Tree, path: str) -> bool:
    try:
        return bool(tree.files(path))
    except Irregular:
        return False


def _cutoffs(scene: Scene) -> Iterator[Finding]:
    stated = scene.base.stated.get("k") if scene.base else None
    if scene.base and stated is not None and int(stated) != scene.base.k:
        message = f"the caller sets k to {scene.base.k}, and the base's gates file to {stated}"
        yield Finding("k-overridden", "warning", message, "Set k only in the gates file.", scene.head.file)


def _tracked(scene: Scene) -> Iterator[Finding]:
    if scene.authority.gates is None:
        return
    ways = [scene.authority.inside(path) for path in (scene.head.trace, os.path.realpath(scene.head.trace))]
    if any(path and _holds(scene.authority.after, path) for path in ways):
        message = "the traces are in git: they are answers that somebody committed, not those of this run"
        yield Finding(
            "traces-tracked", "warning", message, "Let the job write them, and ignore the file.", scene.head.trace
        )
