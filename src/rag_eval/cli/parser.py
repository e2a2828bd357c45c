"""The parser of the command line, built only for the command that is called."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from rag_eval import __version__
from rag_eval.common.escaping import log_line, quoted
from rag_eval.errors import UsageError

COMMANDS = {
    "demo": "score the packaged example and show where to go next",
    "init": "write a first gold set, sample traces, gates, workflow and hooks; keep existing files",
    "collect": "ask a system the questions of the gold set and write its answers as traces",
    "judge": "ask a language model to judge the answers, and record its verdicts",
    "dataset": "turn a public data set into a gold set, its chunks and traces",
    "validate": "check gold, trace, gates and report files",
    "score": "score traces against the gold set and judge the gates",
    "gold": "sign off, check and show changes of the gold set; lint, count and freeze it",
    "import": "convert gold sets, traces and saved runs of other tools into files of rag-eval",
    "export": "write gold, traces and verdicts in the formats of other tools",
    "gate": "judge an existing report.json again",
    "comment": "post a finished report.json as the comment of its pull request",
    "compare": "compare runs side by side: paired tests, flips, weighted score, Pareto front, repeats",
    "history": "show the trend of metrics over earlier reports, and slow drift",
    "probe": "perturb the traces and show what each gate catches",
    "explain": "explain a metric, a label or another term, or the score of a question",
    "metrics": "list the metrics",
    "completion": "print the completion script of a shell",
}
_MODULES = {"import": "import_"}  # a keyword of Python
_WIDEST, _USUAL = 120, 98
_EPILOG = """\
exit codes: 0 passed, 1 a gate failed, 2 the input cannot be judged, 3 a bug in rag-eval

examples:
  rag-eval demo
  rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl
"""


def build_parser(chosen: str = "", rest: Sequence[str] = (), *, bare: bool = False) -> argparse.ArgumentParser:
    """Return the parser of all commands, or only of the ``chosen`` one: each costs start-up time.

    ``rest`` is the command line after the command, by which it chooses its sub-command. A ``bare`` parser has the names
    of the commands without their options, which is enough to list them.
    """
    about = "Fail a pull request that makes the answers of a RAG system worse. Deterministic, without LLM calls."
    parser = _Parser("rag-eval", description=about, epilog=_EPILOG, formatter_class=_Formatter)
    parser.add_argument("--version", action="version", version=f"rag-eval {__version__}")
    # With prog given, argparse formats no usage text to find it out.
    commands = parser.add_subparsers(prog="rag-eval", dest="command", metavar="COMMAND", required=True)
    for name in (chosen,) if chosen else COMMANDS:
        sub = commands.add_parser(name, help=COMMANDS[name], formatter_class=_Formatter)
        if bare:
            continue
        module = module_of(name)
        sub.description, sub.epilog = module.__doc__, f"examples:\n{module.EXAMPLES}"
        is_chosen = hasattr(module, "COMMANDS") and _add_nested(sub, name, module.COMMANDS, rest, not has_run(module))
        if has_run(module) and not is_chosen:
            module.add_arguments(sub)
    return parser


def _add_nested(
    parser: argparse.ArgumentParser, command: str, names: Mapping[str, str], rest: Sequence[str], required: bool
) -> bool:
    """Add the sub-commands, or only the one that ``rest`` begins with; return whether it begins with one.

    If ``rest`` names none, as in ``gold --help``, they get no options.
    """
    chosen = [name for name in rest[:1] if name in names]
    nested = parser.add_subparsers(prog=f"rag-eval {command}", dest="nested", metavar="COMMAND", required=required)
    for name in chosen or names:
        if rest and names.keys().isdisjoint(rest):
            nested.add_parser(name, help=names[name])
            continue
        module = module_of(command, name)
        epilog = f"examples:\n{module.EXAMPLES}"
        sub = nested.add_parser(
            name, help=names[name], description=module.__doc__, epilog=epilog, formatter_class=_Formatter
        )
        module.add_arguments(sub)
    return bool(chosen)


def module_of(command: str, nested: str | None = None) -> ModuleType:
    """Return the module of a command, or of its sub-command."""
    name = f"{command}_{nested.replace('-', '_')}" if nested else _MODULES.get(command, command)
    return import_module(f"rag_eval.cli.commands.{name}")


def has_run(module: ModuleType) -> bool:
    """Return whether a command runs without a sub-command."""
    return hasattr(module, "run")


class _Parser(argparse.ArgumentParser):
    """A parser that rejects an empty value of any option: it would mean the usual file, which nobody named.

    A shell gives an empty value if a variable is not set. Options with their own type check it themselves.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and reject unknown arguments with the usage of the right command."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest and not self._subparsers:
            self.error(f"unrecognized arguments: {' '.join(map(log_line, rest))}. {self._hint(rest[0])}")
        return parsed, rest

    def _hint(self, word: str) -> str:
        from rag_eval.readers.schema_validation import did_you_mean

        options = [name for name in self._option_string_actions if name.startswith("--")]
        if not word.startswith("-"):
            files = " and ".join(name for name in ("--gold", "--trace") if name in options)
            return f"Name files with {files}." if files else f"For help: {self.prog} --help"
        return did_you_mean(word.partition("=")[0], options) or f"For help: {self.prog} --help"

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if "" in arg_strings and action.type is None and action.nargs != argparse.PARSER:
            name = (*action.option_strings, action.metavar)[0]
            raise UsageError(
                f"{name} is empty. Check if a shell variable is not set. Give it a value, or leave it out."
            )
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from rag_eval.readers.schema_validation import did_you_mean

        known = list(action.choices)
        close = did_you_mean(str(value), known) or f"Choose one of: {', '.join(map(str, known))}"
        what = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        raise argparse.ArgumentError(action if what == "value" else None, f"unknown {what} {quoted(value)}. {close}")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that knows the terminal's width without shutil, which argparse would load for each option."""

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
