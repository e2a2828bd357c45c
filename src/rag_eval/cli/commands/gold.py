"""Sign off, check and show changes of the gold set in git; lint, count, draft and freeze its files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module

EXAMPLES = """\
  rag-eval gold diff
  rag-eval gold signoff --reason 'Q04: the new manual gives ten days'
  rag-eval gold check
  rag-eval gold check --base origin/main
  rag-eval gold signoff --key ~/.ssh/id_ed25519 --reason 'Q04: the new manual gives ten days'
  rag-eval gold signoff --baseline --reason 'reviewed by two of us'
  rag-eval gold lint --trace runs/trace.jsonl
  rag-eval gold relink --old eval/baseline.trace.jsonl --new runs/trace.jsonl
  rag-eval gold draft --from runs/trace.jsonl --sample 20
  rag-eval gold review
  rag-eval gold freeze v1.0
"""
COMMANDS = {
    "signoff": "record and stage a sign-off of the staged changes",
    "check": "check that every change is signed off",
    "diff": "show what was added, changed and removed",
    "lint": "find weak gold items",
    "stats": "count the items, labels and fields",
    "relink": "propose new chunk ids after re-chunking",
    "draft": "draft items from traces, for review",
    "review": "accept, edit or reject drafts, and sign",
    "freeze": "write or check the manifest of a release of the gold set",
}
_BY_GIT = ("signoff", "check", "diff")


def add_arguments(parser: ArgumentParser, rest: Sequence[str] = ()) -> None:
    """Add the sub-commands, or only the one that ``rest`` begins with: each costs start-up time.

    If ``rest`` names none, as in ``gold --help``, only their names are added.
    """
    commands = parser.add_subparsers(prog="rag-eval gold", dest="gold_command", metavar="COMMAND", required=True)
    for name in rest[:1] if rest and rest[0] in COMMANDS else COMMANDS:
        if rest and COMMANDS.keys().isdisjoint(rest):
            commands.add_parser(name, help=COMMANDS[name])
            continue
        module = import_module(f"rag_eval.cli.commands.gold_{name}")
        command = commands.add_parser(name, help=COMMANDS[name], description=module.__doc__, epilog=module.EXAMPLE)
        module.add_arguments(command)
        if name in _BY_GIT:
            command.add_argument("--gold", metavar="PATH", help="gold set (default: from the gates file)")
            command.add_argument("--gates", metavar="PATH", help="gates file (default: the nearest eval-gates.yml)")


def run(args: Namespace) -> int:
    """Run the chosen sub-command and return its exit code."""
    code: int = import_module(f"rag_eval.cli.commands.gold_{args.gold_command}").run(args)
    return code
