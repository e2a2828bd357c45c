"""A commit of a repository that others can write to, by nothing but its id.

A step that ran before may have changed refs and objects of a checkout. What is read here is held to the commit's id by
git's own chain of hashes, so that it is what that commit holds or nothing.
"""

from __future__ import annotations

import os

from rag_eval.git import GitError
from rag_eval.trees import Entry, Walked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from rag_eval.git import Git


def parents(git: Git, commit: str) -> list[str]:
    """The ids of a commit's parents, also of those that a shallow clone does not have."""
    return _parents(_commit(git, commit))


def _parents(data: bytes) -> list[str]:
    return [line[7:] for line in _head(data) if line.startswith("parent ")]


def merge_base(git: Git, one: str, other: str) -> str:
    """The best common ancestor of two commits, found by the parents that their own bytes name.

    What git itself says of a history can be forged by grafts, by other bytes in a commit's place or by a commit-graph
    file; GitError where the clone does not hold all of the history of ``one``.
    """
    known = git.history(one, other)  # read at once, for a process a commit would take its time
    shared = _ancestors(git, known, [one])
    best = {commit for commit in _ancestors(git, known, [other], shared) if commit in shared}
    best -= _ancestors(git, known, [parent for commit in best for parent in shared[commit]]).keys()
    if not best:
        raise GitError(f"The commits {one[:12]} and {other[:12]} have no common ancestor. Fetch it: fetch-depth: 0")
    return min(best)


def _ancestors(
    git: Git, known: Mapping[str, bytes], commits: Iterable[str], stop: Container[str] = ()
) -> dict[str, list[str]]:
    """Commits and all that came before them, with their parents; those in ``stop`` are given and not gone beyond."""
    found: dict[str, list[str]] = {}
    rest = list(commits)
    while rest:
        commit = rest.pop()
        if commit not in found:
            found[commit] = _parents(known[commit]) if commit in known else parents(git, commit)
            rest += [] if commit in stop else found[commit]
    return found


def snapshot(git: Git, commit: str) -> Walked:
    """The tree of a commit; GitError where this clone does not hold it."""
    root = next(line[5:] for line in _head(_commit(git, commit)) if line.startswith("tree "))
    size = len(root) // 2
    return Walked(root, lambda name: _rows(git.raw("tree", name), size), lambda name: git.raw("blob", name))


def _commit(git: Git, commit: str) -> bytes:
    if git.resolve(commit) is None:
        raise GitError(f"This clone does not hold commit {commit[:12]}. Fetch it: fetch-depth: 2 or more")
    return git.raw("commit", commit)


def _head(data: bytes) -> list[str]:
    return data.split(b"\n\n", 1)[0].decode("utf-8", "replace").split("\n")


def _rows(data: bytes, size: int) -> dict[str, Entry]:
    """A tree as git keeps it: mode, space, name, NUL, then the id in ``size`` bytes."""
    found, at = {}, 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        name = os.fsdecode(data[space + 1 : end])
        found[name] = Entry(data[at:space].decode("ascii"), data[end + 1 : end + 1 + size].hex())
        at = end + 1 + size
    return found
