"""The parser of the command line, built for the command that is called alone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from rag_eval import __version__
from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError

COMMANDS = {
    "demo": "score the packaged example and show where to go next",
    "init": "write a first gold set, sample traces, gates, workflow and hooks; keep files that exist",
    "collect": "ask a system the questions of the gold set and write its answers as traces",
    "judge": "ask a language model to judge the answers, and record its verdicts",
    "dataset": "turn a public data set into a gold set, its chunks and traces",
    "validate": "check gold, trace, gates and report files",
    "score": "score traces against the gold set and judge the gates",
    "gold": "sign off changes of the gold set, check and show them; lint, count and freeze it",
    "import": "turn gold sets, traces and saved runs of other tools into rag-eval's own files",
    "export": "write gold, traces and verdicts in the forms of other tools",
    "gate": "judge an existing report.json again",
    "comment": "post a finished report.json as the comment of its pull request",
    "compare": "runs side by side: paired tests, flips, weighted score, Pareto front, repeats",
    "history": "the trend of metrics over earlier reports, and slow drift",
    "probe": "damage the traces in known ways and show what each gate catches",
    "explain": "what a metric means, or why a question scored as it did",
    "metrics": "list the metrics",
    "completion": "print the completion script of a shell",
}
_NESTED = ("gold",)
_MODULES = {"import": "import_"}  # a word of Python's own
_WIDEST, _USUAL = 120, 98
_EPILOG = """\
exit codes: 0 passed, 1 a gate failed, 2 the input cannot be judged, 3 a defect of rag-eval

examples:
  rag-eval demo
  rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl
"""


def build_parser(chosen: str = "", rest: Sequence[str] = (), *, bare: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands, or of the ``chosen`` one alone: each costs start-up time.

    ``rest`` is what follows the command: one that has sub-commands chooses by it in turn. A ``bare`` parser knows the
    commands by name and not their options: enough to list them.
    """
    about = "Says in a pull request whether the answers of a RAG system got worse: deterministic, without LLM calls."
    parser = _Parser("rag-eval", description=about, epilog=_EPILOG, formatter_class=_Formatter)
    parser.add_argument("--version", action="version", version=f"rag-eval {__version__}")
    # Given its prog, argparse need not format a usage text to find it out.
    commands = parser.add_subparsers(prog="rag-eval", dest="command", metavar="COMMAND", required=True)
    for name in (chosen,) if chosen else COMMANDS:
        sub = commands.add_parser(name, help=COMMANDS[name], formatter_class=_Formatter)
        if bare:
            continue
        module = module_of(name)
        sub.description, sub.epilog = module.__doc__, f"examples:\n{module.EXAMPLES}"
        module.add_arguments(sub, *([rest] if name in _NESTED else []))
    return parser


def module_of(command: str) -> ModuleType:
    """The module of a command."""
    return import_module(f"rag_eval.cli.commands.{_MODULES.get(command, command)}")


class _Parser(argparse.ArgumentParser):
    """Refuses an empty value, of whatever option: it would be taken for the usual file, which nobody named.

    A shell gives one where a variable is not set. Options with a type of their own say themselves what they take.
    """

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if "" in arg_strings and action.type is None and action.nargs != argparse.PARSER:
            name = (*action.option_strings, action.metavar)[0]
            raise UsageError(f"{name} is empty. Is a variable of the shell not set? Give it a value, or leave it out")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from rag_eval.readers.error_messages import did_you_mean

        known = list(action.choices)
        close = did_you_mean(str(value), known) or f"Choose one of: {', '.join(map(str, known))}"
        what = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        raise argparse.ArgumentError(action if what == "value" else None, f"unknown {what} {quoted(value)}. {close}")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows the terminal's width without shutil, which argparse would load for each option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")[:9]
    if columns.isdecimal() and int(columns):
        return int(columns) - 2
    try:
        return min(os.get_terminal_size().columns, _WIDEST) - 2
    except (OSError, ValueError):
        return _USUAL
