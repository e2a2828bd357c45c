"""Check that every change of the gold is signed off: what the hook runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

EXAMPLE = "example: rag-eval gold check --base origin/main"
_STAGED = "the index against HEAD (default); in a push, what is pushed; by hand with no gold staged, every item"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the sub-command."""
    against = parser.add_mutually_exclusive_group()
    # The default, and so without effect: hooks say it to be read more easily.
    against.add_argument("--staged", action="store_true", help=_STAGED)
    against.add_argument("--all-files", action="store_true", help="every item of the index, whatever changed")
    against.add_argument("--base", metavar="REF", help="the index against where the branch left REF")
    parser.add_argument("--worktree", action="store_true", help="the files as they are now, staged or not")
    parser.add_argument("--trace", metavar="FILE", help="traces that show the effect (default: as eval-gates.yml says)")


def run(args: Namespace) -> int:
    """Check; the exit code says whether every change is signed off."""
    from rag_eval.cli.commands._gold_check import check

    return check(args)
