"""The command line: the choice of the command, and the error boundary."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from rag_eval.cli.error_handling import guarded
from rag_eval.errors import CANNOT_JUDGE

_HOOK = ["gold", "check", "--staged"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _run(arguments))


def entry() -> NoReturn:
    """Run the installed ``rag-eval`` and end the process with its exit code.

    The process ends as soon as all output is written: freeing the objects of a large run one by one takes a tenth of
    its time. ``python -m rag_eval`` ends normally, for profilers and similar tools.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a closed output was handled before
            stream.flush()
    os._exit(code)


def _run(arguments: list[str]) -> int:
    # Runs in every commit: if the commit cannot touch the gold, nothing else is loaded.
    if arguments == _HOOK and _touches_nothing():
        return 0
    from rag_eval.cli.parser import COMMANDS, build_parser, has_run, module_of

    if not arguments:
        build_parser(bare=True).print_help()
        return CANNOT_JUDGE  # an empty variable of a script must not end successfully
    chosen = arguments[0] if arguments[0] in COMMANDS else ""
    if arguments == [chosen] and not has_run(module_of(chosen)):
        with suppress(SystemExit):
            build_parser(chosen, ["--help"]).parse_args([chosen, "--help"])
        return CANNOT_JUDGE
    bare = COMMANDS.keys().isdisjoint(arguments)  # rag-eval --help
    parsed = build_parser(chosen, arguments[1:], bare=bare).parse_args(arguments)
    code: int = module_of(parsed.command, getattr(parsed, "nested", None)).run(parsed)
    sys.stdout.flush()
    return code


def _touches_nothing() -> bool:
    from rag_eval.cli.commands._gold_precheck import touches_nothing

    return touches_nothing()
