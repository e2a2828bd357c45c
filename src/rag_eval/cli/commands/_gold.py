"""Steps that the sub-commands of `rag-eval gold` share to read git."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import log_line, quantity
from rag_eval.common.paths import shell_line
from rag_eval.errors import InputError
from rag_eval.git.plumbing import INDEX, Git
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.signoff.repository import GoldStates, Place, between, untouched
from rag_eval.readers.work_tree import IsFolder, WorkTree

if TYPE_CHECKING:
    from rag_eval.git.snapshots import Tree
    from rag_eval.gold.signoff.checking import SignoffPolicy
    from rag_eval.readers.signoff_record import HashChange

_SHOWN = 100


def place_of(git: Git, args: Namespace) -> Place:
    """Return the paths of gold and gates from the command line."""
    return Place(args.gold, args.gates, git.prefix)


def frame_since(git: Git, base: str | None, *, worktree: bool = False) -> GoldStates:
    """Compare the index, or the work tree, with the last commit, or with the commit where the branch left ``base``."""
    head: Tree = git.at(INDEX)
    if worktree:
        head = WorkTree(git.top)
    if base is not None:
        return between(git, base, "HEAD", head)
    last = git.last()
    return GoldStates(git.at(last) if last else NOTHING, head, staged=True)


def unstaged(git: Git, policies: Iterable[SignoffPolicy], args: Namespace) -> list[str]:
    """Warn that the work tree has edits of the gold that are not staged, and so were not checked.

    The files are compared here: `git diff` runs filters and monitors that a repository configures.
    """
    if args.worktree or "GIT_INDEX_FILE" in os.environ:  # a hook checks only the index
        return []
    look = shell_line("rag-eval", "gold", args.nested, "--worktree")
    index, files, edited = git.at(INDEX), WorkTree(git.top), []
    files.committed = index  # a checkout may use other line endings than git
    for path in dict.fromkeys(policy.gold for policy in policies):
        try:
            now = files.files(path)
        except IsFolder:
            path = f"{path}/"
            now = files.files(path)
        except InputError:
            continue  # a link, or no file: reported by the check of the gold
        staged = index.files(path)
        edited += [name for name in staged if now.get(name) != staged[name]]
    return [f"{path} has unstaged edits, which were not checked. To check them: {look}" for path in edited]


def effect(git: Git, frame: GoldStates, policy: SignoffPolicy, args: Namespace) -> list[str]:
    """Return the effects of a change on local traces; load nothing if nothing changed."""
    if untouched(frame, policy):
        return []
    from rag_eval.cli.commands._gold_impact import flipped

    return flipped(git, frame, policy.gold, args.gates, args.trace)


def counted(changes: Iterable[HashChange]) -> str:
    """Count the items that were added, changed and removed."""
    verbs = [change.verb for change in changes]
    parts = [f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs]
    return ", ".join(parts) or "no changes"


def capped(lines: Sequence[str], noun: str) -> list[str]:
    """Return the first hundred lines, and the number of the others."""
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"… and {quantity(more, f'more {noun}')} not shown."] if more > 0 else [])]


def say(lines: Iterable[str]) -> None:
    """Print lines; the runner takes none of them for a command."""
    sys.stdout.writelines(f"{log_line(line)}\n" for line in lines)


def complain(lines: Iterable[str]) -> None:
    """Print lines to stderr; the runner takes none of them for a command."""
    sys.stderr.writelines(f"{log_line(line)}\n" for line in lines)
