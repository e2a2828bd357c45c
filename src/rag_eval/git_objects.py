"""A commit of a repository that others can write to, by nothing but its id.

A step that ran before may have changed refs and objects of a checkout. What is read here is held to the commit's id by
git's own chain of hashes, so that it is what that commit holds or nothing.
"""

from __future__ import annotations

import os

from rag_eval.git import GitError, held
from rag_eval.trees import Entry, Walked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.git import Git


def parents(git: Git, commit: str) -> list[str]:
    """The ids of a commit's parents, also of those that a shallow clone does not have."""
    return _named(_head(git, commit), "parent ")


def merge_base(git: Git, one: str, other: str) -> str:
    """A common ancestor of two commits, the best one where nobody meddles: no word of git's is taken for the descent.

    Grafts and rewritten commits could make a change seem to have begun later than it did.
    """
    found = git.merge_base(one, other)
    for tip in (one, other):
        _hold_descent(git, found, tip)
    return found


def _hold_descent(git: Git, ancestor: str, tip: str) -> None:
    commits = git.contents(git.between(ancestor, tip), "commit")
    reached = {tip}
    for name, data in commits.items():
        if name in reached:
            reached.update(_named(_lines(held("commit", name, data)), "parent "))
    if ancestor not in reached:
        raise GitError(f"Commit {tip[:12]} does not descend from {ancestor[:12]} by their ids. Clone it anew.")


def snapshot(git: Git, commit: str) -> Walked:
    """The tree of a commit; GitError where this clone does not hold it."""
    root = _named(_head(git, commit), "tree ")[0]
    size = len(root) // 2
    return Walked(root, lambda name: _rows(git.raw("tree", name), size), lambda name: git.raw("blob", name))


def _head(git: Git, commit: str) -> list[str]:
    if git.resolve(commit) is None:
        raise GitError(f"This clone does not hold commit {commit[:12]}. Fetch it: fetch-depth: 2 or more")
    return _lines(git.raw("commit", commit))


def _lines(commit: bytes) -> list[str]:
    return commit.split(b"\n\n", 1)[0].decode("utf-8", "replace").split("\n")


def _named(lines: list[str], field: str) -> list[str]:
    return [line.removeprefix(field) for line in lines if line.startswith(field)]


def _rows(data: bytes, size: int) -> dict[str, Entry]:
    """A tree as git keeps it: mode, space, name, NUL, then the id in ``size`` bytes."""
    found, at = {}, 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        name = os.fsdecode(data[space + 1 : end])
        found[name] = Entry(data[at:space].decode("ascii"), data[end + 1 : end + 1 + size].hex())
        at = end + 1 + size
    return found
