"""Show which gold items were added, changed and removed, and the effect on local traces."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._gold import complain, counted, effect, frame_since, place_of, say, unstaged
from rag_eval.cli.commands._shared import add_gold
from rag_eval.common.escaping import quoted
from rag_eval.errors import PASSED
from rag_eval.git.plumbing import Git
from rag_eval.gold.signoff import checking
from rag_eval.gold.signoff.repository import policies, sides

if TYPE_CHECKING:
    from rag_eval.gold.signoff.checking import Side
    from rag_eval.readers.signoff_record import HashChange

EXAMPLES = """\
  rag-eval gold diff --base origin/main
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("--base", metavar="REF", help="compare the index with the commit where the branch left REF")
    parser.add_argument("--worktree", action="store_true", help="compare the files of the work tree, staged or not")
    parser.add_argument("--trace", metavar="FILE", help="traces to show the effect on (default: from the gates file)")
    add_gold(parser)


def run(args: Namespace) -> int:
    """Print one line for each changed item."""
    git = Git()
    frame = frame_since(git, args.base, worktree=args.worktree)
    asked = policies(frame, place_of(git, args))
    for policy in asked:
        base, head = sides(frame, policy)
        changes = checking.changes(base.items, head.items)
        say(_described(change, base, head) for change in changes)
        say(effect(git, frame, policy, args))
        say([f"{policy.gold} against {frame.name}: {counted(changes)}."])
    complain(unstaged(git, asked, args))
    return PASSED


def _described(change: HashChange, base: Side, head: Side) -> str:
    before, after = base.items.get(change.qid), head.items.get(change.qid)
    if before is None or after is None:
        return f"{change.verb} {quoted(change.qid)}"
    both = sorted(before.row.keys() | after.row.keys())
    fields = [name for name in both if _shape(before.row, name) != _shape(after.row, name)]
    what = ", ".join(quoted(name)[1:-1] for name in fields) or "only its formatting"
    mutation = " (another question under the same qid)" if checking.mutated(before, after) else ""
    return f"changed {quoted(change.qid)}: {what}{mutation}"


def _shape(row: Mapping[str, Any], name: str) -> str:
    # Through JSON, because true == 1 in Python.
    return json.dumps(row[name], sort_keys=True) if name in row else ""
