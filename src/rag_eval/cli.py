"""The command line: which commands there are, and what each is called with."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from rag_eval import __version__
from rag_eval.boundary import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "demo": "score the packaged example and show where to go next",
    "init": "write a first gold set and gates, never over what is there",
    "validate": "check gold, trace, gates and report files",
    "score": "score traces against the gold set and judge the gates",
    "gold": "sign off changes of the gold set, check and show them",
    "gate": "judge an existing report.json again",
    "explain": "what a metric means, or why a question scored as it did",
    "metrics": "list the metrics",
}
_EPILOG = """\
exit codes: 0 passed, 1 a gate failed, 2 the input cannot be judged, 3 a defect of rag-eval

examples:
  rag-eval demo
  rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _run(arguments))


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser; only the ``chosen`` command is loaded with its options, all of them where it is None."""
    about = "Says in a pull request whether the answers of a RAG system got worse: deterministic, without LLM calls."
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("rag-eval", description=about, epilog=_EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"rag-eval {__version__}")
    # Given its prog, argparse need not format a usage text (and load shutil) to find it out.
    commands = parser.add_subparsers(prog="rag-eval", dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, formatter_class=raw)
        if chosen in (None, name):
            module = import_module(f"rag_eval.commands.{name}")
            sub.description, sub.epilog = module.__doc__, f"examples:\n{module.EXAMPLES}"
            module.add_arguments(sub)
    return parser


def _run(arguments: list[str]) -> int:
    chosen = next((word for word in arguments if word in COMMANDS), "")
    parsed = build_parser(chosen).parse_args(arguments)
    code: int = import_module(f"rag_eval.commands.{parsed.command}").run(parsed)
    sys.stdout.flush()
    return code
