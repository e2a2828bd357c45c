"""The command ``rag-eval completion``."""

from __future__ import annotations

import argparse
import sys

from rag_eval.cli.parser import build_parser
from rag_eval.errors import MissingExtra


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=["bash", "zsh", "tcsh"], help="bash, zsh or tcsh")


def run(args: argparse.Namespace) -> int:
    """Print the completion script of a shell, for commands, options and file names.

    Examples:
      rag-eval completion bash > ~/.local/share/bash-completion/completions/rag-eval
      rag-eval completion zsh > ~/.zfunc/_rag-eval
    """
    try:
        import shtab
    except ModuleNotFoundError:
        raise MissingExtra("Shell completion", "completion") from None
    parser = build_parser()
    _complete_files(parser, shtab.FILE)
    sys.stdout.write(shtab.complete(parser, args.shell) + "\n")
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Complete file names for every option that takes a path."""
    for action in parser._actions:  # argparse has no public way to list its actions
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.metavar in ("FILE", "PATH", "DIR", "REPORT", "RUN"):
            action.complete = files  # type: ignore[attr-defined]
