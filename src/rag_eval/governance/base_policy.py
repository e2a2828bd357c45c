"""Who decides about a change: the states of the repository that its gates, policies and gold are held against."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.common.paths import from_here
from rag_eval.git.plumbing import Git
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.signoff.repository import GoldStates, named
from rag_eval.readers.work_tree import WorkTree

if TYPE_CHECKING:
    from rag_eval.git.snapshots import Snapshot, Tree
    from rag_eval.gold.signoff.repository import People

    Signoff = Literal["policy", "require", "off"]


class Written(NamedTuple):
    """When a file was last written: the commit, and how many commits and whole days lie between it and the base."""

    commit: str
    commits: int
    days: int


class Authority(NamedTuple):
    """What a change under test is held against.

    ``gates`` is the state that gates and policies come from, None where the head decides for itself. The gold is
    compared from ``fork``, where the change began, to ``head``, what is scored; records of ``spent`` are used up.
    ``before`` and ``after`` tell what else the change touches. ``commits`` are the ids that traces may be of; empty
    where any may. ``people`` says who approved and who wrote the change, ``written_at`` how old a file of the
    base is; None where nobody can be asked. ``began`` is where the change left the history of ``gates``, None where it
    grew out of that very state, or out of another history. ``unknown``: nobody knows that the base ever held the state
    of ``gates``. ``astray`` is the commit that is checked out where it is known to lack what the change is about.
    """

    ref: str
    commit: str
    through: str
    gates: Tree | None
    fork: Tree
    head: Tree
    top: str
    spent: Tree = NOTHING
    before: Snapshot = NOTHING
    after: Snapshot = NOTHING
    commits: frozenset[str] = frozenset()
    signoff: Signoff = "policy"
    people: People | None = None
    written_at: Callable[[str], Written | None] | None = None
    ci: bool = False
    began: Tree | None = None
    unknown: bool = False
    astray: str = ""

    def inside(self, path: str) -> str | None:
        """A path as git has it, from the root of the repository; None for what lies outside of it."""
        return self._below(_resolved(path))

    def written(self, path: str) -> str | None:
        """The same of a path as it was written, whatever links stand on it now: the head's have no say."""
        return self._below(os.path.abspath(path))  # noqa: PTH100

    def _below(self, path: str) -> str | None:
        try:
            found = os.path.relpath(path, os.path.realpath(self.top)).replace(os.sep, "/")
        except ValueError:  # on different drives
            return None
        return None if found.startswith("../") or posixpath.isabs(found) or found == ".." else found

    def outside(self, path: str) -> str:
        """A path of the repository as it is named from the current folder."""
        return from_here(os.path.join(self.top, *path.split("/")))  # noqa: PTH118

    @property
    def frame(self) -> GoldStates:
        """What sign-off compares."""
        restore, whole = self.commit or self.ref, self.gates is None
        return GoldStates(self.fork, self.head, self.ref, self.spent, whole=whole, restore=restore, rules=self.gates)


def _resolved(path: str) -> str:
    """A path with the links of its folders followed, and not its own: sign-off refuses it where it is one."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def last_written(git: Git, path: str, commit: str) -> Written | None:
    """When ``path`` was last written before ``commit``; None where this clone does not hold the history to say."""
    last = None if git.shallow else git.last_change(path, commit)
    if last is None:
        return None
    days = (git.committed(commit) - git.committed(last)) // _DAY
    return Written(last, git.count(last, commit), max(days, 0))


_DAY = 86_400


def of_git(ref: str) -> Authority:
    """The work tree around the current folder against ``ref``, by git: gates of its tip, gold since the fork."""
    git = Git()
    tip, head = named(git, ref), named(git, "HEAD")
    fork = git.merge_base(tip, head)
    work_tree = WorkTree(git.top)
    work_tree.committed = git.at(head)
    return Authority(
        ref=ref,
        commit=tip,
        through="git",
        gates=git.at(tip),
        fork=git.at(fork),
        head=work_tree,
        top=git.top,
        spent=NOTHING if fork == tip else git.at(tip),
        written_at=lambda path: last_written(git, path, tip),
        before=git.at(fork),
        after=git.at(head),
        began=None if fork == tip else git.at(fork),
    )
