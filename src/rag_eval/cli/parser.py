"""The parser of the command line, which adds the options only of the command that is called.

A command is a function ``run`` in a module next to this one, with the function ``add_arguments`` that
declares its options. A command in the module of another one, such as ``gold check``, is ``run_check`` and
``add_check_arguments``. The docstring of the command is its help: the description, then examples.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from rag_eval import __version__
from rag_eval.common.escaping import log_line, quoted
from rag_eval.common.paths import GATES_FILES
from rag_eval.errors import UsageError

Group = argparse._ArgumentGroup

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
SUB_COMMANDS = {
    "gold": {
        "signoff": "record and stage a sign-off of the staged changes",
        "check": "check that every change is signed off",
        "diff": "show what was added, changed and removed",
        "lint": "find weak gold items",
        "stats": "count the items, labels and fields",
        "relink": "propose new chunk ids after re-chunking",
        "draft": "draft items from traces, for review",
        "review": "accept, edit or reject drafts, and sign",
        "freeze": "write or check the manifest of a release of the gold set",
    },
    "judge": {
        "calibrate": "measure how far people agree with recorded verdicts",
        "spot-check": "draw answers for people to grade, and record their grades",
        "repeat": "ask again, and measure by how much the judge's own grades differ",
    },
}
_MODULES = {
    **dict.fromkeys(("completion", "demo"), "init"),
    **dict.fromkeys(("export", "import"), "import_export"),
    "gold check": "gold_signoff",
    **dict.fromkeys(("gold draft", "gold review"), "gold_drafts"),
    **dict.fromkeys(("gold diff", "gold freeze", "gold lint", "gold relink", "gold stats"), "gold_files"),
    **dict.fromkeys(("judge calibrate", "judge spot-check"), "judge_labels"),
    "dataset": "collect",
    "judge repeat": "judge",
    **dict.fromkeys(("comment", "compare", "gate", "history"), "saved_reports"),
    **dict.fromkeys(("explain", "metrics", "probe", "validate"), "inspection"),
}
_WIDEST, _USUAL = 120, 100
_USUAL_GOLD = "from the gates file, or eval/gold.jsonl"
_WRITTEN = ("EMAIL", "NAME", "TEXT")
"""The values that go into files. A path may have any bytes, which Python reads as surrogate escapes."""
_EPILOG = """\
exit codes: 0 passed, 1 a gate failed, 2 the input cannot be judged, 3 a bug in rag-eval

examples:
  rag-eval demo
  rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl
"""


class Command(NamedTuple):
    """A command: its help, the function that adds its options, and the one that runs it, None for only a group."""

    description: str
    examples: str
    add_arguments: Callable[[Parser], None] | None = None
    run: Callable[[argparse.Namespace], int] | None = None


GROUPS = {
    "gold": Command(
        "Sign off, check and show changes of the gold set in git; lint, count, draft and freeze its files.",
        """\
  rag-eval gold diff
  rag-eval gold signoff --reason 'Q04: the new manual gives ten days'
  rag-eval gold check --base origin/main
""",
    )
}


def find_command(name: str, nested: str | None = None) -> Command:
    """Return a command, or its sub-command."""
    if name in GROUPS and not nested:
        return GROUPS[name]
    full = f"{name} {nested}" if nested else name
    home = _MODULES.get(full, full.replace(" ", "_"))
    module = import_module(f"rag_eval.cli.{home}")
    word = (nested or name).replace("-", "_")
    run, add_arguments = (getattr(module, name, None) for name in (f"run_{word}", f"add_{word}_arguments"))
    if run is None:
        run, add_arguments = module.run, module.add_arguments
    description, _, examples = (run.__doc__ or "").replace("\n    ", "\n").partition("\n\nExamples:\n")
    return Command(description, examples, add_arguments, run)


def build_parser(first: str | None = None) -> Parser:
    """Return the parser of all commands; with the ``first`` argument, only of that command if it is one.

    A command then gets its options when it is called, which saves the modules of all other commands at start-up.
    """
    about = "Fail a pull request that makes the answers of a RAG system worse. Deterministic, without LLM calls."
    parser = Parser("rag-eval", description=about, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"rag-eval {__version__}")
    # With prog given, argparse formats no usage text to find it out.
    commands = parser.add_subparsers(prog="rag-eval", dest="command", metavar="COMMAND", required=True)
    for name in [first] if first in COMMANDS else COMMANDS:
        sub = commands.add_parser(name, help=COMMANDS[name], command=name)
        if first is None:
            sub.fill(nested=True)
    return parser


class Parser(argparse.ArgumentParser):
    """A parser with the options that several commands share.

    It rejects an empty value of any option: it would mean the usual file, which nobody named. A shell gives an empty
    value if a variable is not set. Options with their own type check it themselves.
    """

    def __init__(self, prog: str, *, command: str = "", **more: Any) -> None:
        super().__init__(prog, formatter_class=_Formatter, **more)
        self._command = command

    def fill(self, *, nested: bool = False) -> None:
        """Add the description, the sub-commands and the options of the command, once; ``nested`` fills those, too."""
        name, self._command = self._command, ""
        if not name:
            return
        command = find_command(*name.split(" "))
        self.description, self.epilog = command.description, f"examples:\n{command.examples}"
        if name in SUB_COMMANDS:
            prog, is_group = f"rag-eval {name}", command.run is None
            subs = self.add_subparsers(prog=prog, dest="nested", metavar="COMMAND", required=is_group)
            for word, text in SUB_COMMANDS[name].items():
                sub = subs.add_parser(word, help=text, command=f"{name} {word}")
                if nested:
                    sub.fill()
        if command.add_arguments:
            command.add_arguments(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and reject unknown arguments with the usage of the right command."""
        self.fill()
        parsed, rest = super().parse_known_args(args, namespace)
        many = next((action for action in self._positionals._group_actions if action.nargs == "*"), None)
        if many and not any(word.startswith("-") for word in rest):  # argparse finds no files after an option
            setattr(parsed, many.dest, [*(getattr(parsed, many.dest) or ()), *rest])
            rest = []
        if rest and not self._subparsers:
            self.error(f"unrecognized arguments: {' '.join(map(log_line, rest))}. {self._hint(rest[0])}")
        return parsed, rest

    def _hint(self, word: str) -> str:
        from difflib import get_close_matches

        options = [name for name in self._option_string_actions if name.startswith("--")]
        if not word.startswith("-"):
            files = " and ".join(name for name in ("--gold", "--trace") if name in options)
            return f"Name files with {files}." if files else f"For help: {self.prog} --help"
        # Without the dashes, which all options share.
        close = get_close_matches(word.partition("=")[0].lstrip("-"), [name[2:] for name in options], n=1)
        return f"Did you mean '--{close[0]}'?" if close else f"For help: {self.prog} --help"

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        name = (*action.option_strings, action.metavar)[0]
        if "" in arg_strings and action.nargs != argparse.PARSER:
            fix = "Check if a shell variable is not set. Give it a value, or leave it out."
            raise UsageError(f"{name} is empty. {fix}")
        if action.nargs != argparse.PARSER:
            try:
                "".join(arg_strings).encode("utf-8", "strict" if action.metavar in _WRITTEN else "surrogateescape")
            except UnicodeEncodeError:
                raise UsageError(f"{name} is not UTF-8 text. Check the encoding of your terminal or script.") from None
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from rag_eval.readers.problems import did_you_mean

        known = list(action.choices)
        close = did_you_mean(str(value), known) or f"Choose one of: {', '.join(map(str, known))}"
        what = "command" if isinstance(action, argparse._SubParsersAction) else "value"
        raise argparse.ArgumentError(action if what == "value" else None, f"unknown {what} {quoted(value)}. {close}")

    def add_option(
        self, name: str, metavar: str, text: str, default: Any = "", *, group: Group | None = None, **more: Any
    ) -> None:
        """Add an option with a value, empty by default; ``text`` is its help."""
        (group or self).add_argument(name, metavar=metavar, default=default, help=text, **more)

    def add_flag(self, name: str, text: str, group: Group | None = None) -> None:
        """Add an option without a value."""
        (group or self).add_argument(name, action="store_true", help=text)

    def list_values(self, title: str, texts: Mapping[str, str]) -> None:
        """Append values with their texts to the description."""
        width = max(map(len, texts))
        lines = [f"  {name:<{width}}  {text}" for name, text in texts.items()]
        self.description = "\n".join([f"{self.description}", title, *lines, ""])

    def add_format(self, forms: Iterable[str]) -> None:
        """Add ``--format``; the first form is the default."""
        known = list(forms)
        self.add_argument("--format", choices=known, default=known[0], help=f"output format (default: {known[0]})")

    def add_inputs(self, *, with_cutoffs: bool = True) -> None:
        """Add ``--gold``, ``--trace``, ``--gates`` and, unless the command needs no retrieval metrics, ``--k``."""
        self.add_option("--gold", "FILE", f"gold set, - for stdin (default: {_USUAL_GOLD})")
        self.add_option("--trace", "FILE", "traces, - for stdin (default: from the gates file, or runs/trace.jsonl)")
        usual = f"the nearest {GATES_FILES[0]}, here or above"
        gates = f"gates file; its paths are relative to its folder (default: {usual})"
        self.add_option("--gates", "FILE", gates)
        if with_cutoffs:
            self.add_cutoffs()

    def add_cutoffs(self) -> None:
        """Add ``--k``."""
        self.add_option("--k", "K[,K]", "cutoffs of retrieval metrics (default: 1,3,5,10)", default=(), type=cutoffs)

    def add_gold(self, *, gates: bool = True) -> None:
        """Add ``--gold`` for commands without traces, and ``--gates``."""
        self.add_option("--gold", "FILE", f"gold set (default: {_USUAL_GOLD})")
        if gates:
            self.add_gates()

    def add_gates(self) -> None:
        """Add ``--gates``."""
        self.add_option("--gates", "FILE", f"gates file (default: the nearest {GATES_FILES[0]})")

    def add_baseline(self) -> None:
        """Add ``--baseline``."""
        self.add_option("--baseline", "FILE", "report.json of an earlier run (default: from the gates file)")

    def add_outputs(self, forms: Iterable[str]) -> None:
        """Add ``--format``, ``--out``, ``--verbose``, ``--quiet`` and ``--no-color``."""
        self.add_format(forms)
        self.add_option("--out", "DIR", "also write the report into this folder, in every format")
        text = "show everything in the table, not only failures"
        self.add_argument("-v", "--verbose", action="store_true", help=text)
        self.add_quiet()
        self.add_flag("--no-color", "no colours on a terminal, as the environment variable NO_COLOR")

    def add_quiet(self) -> None:
        """Add ``--quiet``."""
        self.add_flag("--quiet", "no notes on stderr")


def whole(minimum: int, maximum: int = 999_999_999) -> Callable[[str], int]:
    """Return a parser of whole numbers in a range, for the ``type`` of an option."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and minimum <= int(text) <= maximum):
            raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def cutoffs(text: str) -> tuple[int, ...]:
    """Parse ``1,3,5`` into numbers, ascending, each once."""
    from rag_eval.run import as_cutoffs  # loads the engines' options and JSON

    try:
        return as_cutoffs(int(part) for part in text.split(","))
    except (ValueError, UsageError):
        message = f"'{text[:40]}' is not a list of whole numbers from 1, such as 5 or 1,3,5"
        raise argparse.ArgumentTypeError(message) from None


def names(text: str) -> tuple[str, ...]:
    """Parse ``retrieval,safety`` into names."""
    parsed = tuple(name for part in text.split(",") if (name := part.strip()))
    if not parsed:  # an empty text would mean all
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a list of names, such as retrieval,citations")
    return parsed


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that knows the terminal's width without shutil, which argparse would load for each option."""

    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")[:9]
        width = int(columns) if columns.isdecimal() else 0
        if not width:
            try:
                width = os.get_terminal_size().columns
            except (OSError, ValueError):
                width = _USUAL
        super().__init__(prog, width=min(width, _WIDEST) - 2)
