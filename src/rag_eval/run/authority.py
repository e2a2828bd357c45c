"""Authority over a change: the states of the repository whose gates, policies and gold apply to it, and its files."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from rag_eval.common.paths import from_here
from rag_eval.git.plumbing import Git, LastWrite
from rag_eval.git.snapshots import NOTHING, CommitTree, Tree
from rag_eval.git.work_tree import WorkTree
from rag_eval.gold.signoff.repository import People

Signoff = Literal["policy", "require", "off"]


class Authority(NamedTuple):
    """The authority over a change under test.

    ``gates`` is the state that gates and policies are read from, None if the head decides for itself. The gold is
    compared from ``fork``, where the change began, to ``head``, which is scored; ``used_records`` has records that no
    longer count. ``after`` is the commit of ``head``. ``commits`` are the allowed commit ids of traces, empty if any is
    allowed. ``people`` returns who approved and who wrote the change, ``written_at`` how old a file of the base is;
    either is None if unknown. ``fork_of_gates`` is where the change left the history of ``gates``. It is None if the
    change is based on that very state, or on another history. ``unknown``: the state of ``gates`` may never have been
    on the base. ``instead_of`` is the state of the base branch if ``gates`` is that of another commit, which the caller
    names. ``wrong_checkout`` is the commit that is checked out if it is known to lack the change. ``workflow`` is the
    path of the workflow that runs this check, if it is a file of the change under test.
    """

    ref: str
    commit: str
    through: str
    gates: CommitTree | None
    fork: CommitTree
    head: WorkTree
    used_records: Tree = NOTHING
    after: CommitTree = NOTHING
    commits: frozenset[str] = frozenset()
    signoff: Signoff = "policy"
    people: People | None = None
    written_at: Callable[[str], LastWrite | None] | None = None
    ci: bool = False
    fork_of_gates: CommitTree | None = None
    unknown: bool = False
    instead_of: CommitTree | None = None
    wrong_checkout: str = ""
    workflow: str = ""

    def inside(self, path: str) -> str | None:
        """Return a path as git has it, from the root of the repository; None for a path outside of it."""
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps ".."
        return self._below(Path(os.path.realpath(folder), name))

    def written(self, path: str) -> str | None:
        """Return a path as git has it, without following links, because the head controls them."""
        return self._below(os.path.abspath(path))  # noqa: PTH100 - as above

    def on_base(self, path: str) -> str | None:
        """Return the path of a file that was read from the base, where links of the head lead nowhere else."""
        return self.written(path) or self.inside(path)

    def _below(self, path: str | Path) -> str | None:
        try:
            relative = os.path.relpath(path, os.path.realpath(self.head.top)).replace(os.sep, "/")
        except ValueError:  # on different drives
            return None
        return None if relative.startswith("../") or posixpath.isabs(relative) or relative == ".." else relative

    def outside(self, path: str) -> str:
        """Return a path of the repository relative to the current folder."""
        return from_here(os.path.join(self.head.top, *path.split("/")))  # noqa: PTH118 - from_here may return it as it is


def authority_from_git(ref: str) -> Authority:
    """Return the authority of ``ref`` over the current work tree: gates of its tip, gold since the fork."""
    git = Git()
    tip, head = git.commit_named(ref), git.commit_named("HEAD")
    fork = git.merge_base(tip, head)
    began, work_tree = git.at(fork), WorkTree(git.top)
    gates = began if fork == tip else git.at(tip)
    work_tree.committed = git.at(head)
    return Authority(
        ref=ref,
        commit=tip,
        through="git",
        gates=gates,
        fork=began,
        head=work_tree,
        used_records=NOTHING if fork == tip else gates,
        written_at=lambda path: git.last_write(path, tip),
        after=work_tree.committed,
        commits=frozenset([head]),
        fork_of_gates=None if fork == tip else began,
    )
