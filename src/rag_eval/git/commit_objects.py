"""A commit of a repository that others can write to, by nothing but its id.

A step that ran before may have changed refs and objects of a checkout. What is read here is held to the commit's id by
git's own chain of hashes, so that it is what that commit holds or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from rag_eval.git.plumbing import GitError
from rag_eval.git.snapshots import CommitTree, Entry

if TYPE_CHECKING:
    from rag_eval.git.plumbing import Git

    class Objects(Protocol):
        """Whatever gives the bytes of git's objects by their ids."""

        def raw(self, kind: str, object_id: str, /) -> bytes:
            """The bytes of a commit, a tree or a blob, which are those that its id was made of."""


def parents(objects: Objects, commit: str) -> list[str]:
    """The ids of a commit's parents, also of those that a shallow clone does not have."""
    return _parents(objects.raw("commit", commit))


def root(objects: Objects, commit: str) -> str:
    """The id of a commit's topmost folder."""
    return next(line[5:] for line in _head(objects.raw("commit", commit)) if line.startswith("tree "))


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


def snapshot(objects: Objects, commit: str) -> CommitTree:
    """The tree of a commit; RagEvalError if its objects are not there."""
    top = root(objects, commit)
    size = len(top) // 2
    return CommitTree(top, lambda name: _rows(objects.raw("tree", name), size), lambda name: objects.raw("blob", name))


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
