"""The command line: which commands there are, and the one boundary where errors become exit codes."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from rag_eval import __version__
from rag_eval.errors import BUG, InputError, RagEvalError
from rag_eval.safe import log_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
_INTERRUPTED = 130
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


def guarded(work: Callable[[], int]) -> int:
    """Do ``work``; every error becomes lines on stderr and an exit code."""
    _speak_utf8()
    try:
        return work()
    except InputError as error:
        return _say(error.lines(), error.exit_code)
    except RagEvalError as error:
        return _say([f"rag-eval: {error}"], error.exit_code)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception:  # noqa: BLE001 - the one boundary: anything that arrives here is a defect, and said to be one
        return _report_defect()


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


def _say(lines: Sequence[str], code: int) -> int:
    for line in lines:
        print(log_line(line), file=sys.stderr)
    return code


def _speak_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _report_defect() -> int:
    """A defect as Markdown that can be pasted into an issue; it holds code lines, never data."""
    import platform
    import traceback

    kind, _, trace = sys.exc_info()
    frames = "\n".join(
        f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in traceback.extract_tb(trace)
    )
    system = f"rag-eval {__version__}, Python {platform.python_version()}, {platform.system()}"
    lines = ["rag-eval has a defect; please report it with what follows:", "", f"### {kind.__name__ if kind else ''}"]
    return _say([*lines, "", system, "", *frames.split("\n")], BUG)
