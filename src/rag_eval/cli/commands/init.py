"""Write a first gold set, traces, gates, workflow and hook configuration. Files that exist are kept."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rag_eval.cli.commands._shared import write
from rag_eval.common.paths import GATES_FILES

EXAMPLES = """\
  rag-eval init
  rag-eval init --preset starter
  rag-eval init --preset enterprise
"""
PRESETS = {
    "reference": "the reference scorer's gates",
    "starter": "those of a first pipeline",
    "enterprise": "a gate or more in every perspective",
}
_TEMPLATES = Path(__file__).parents[2] / "templates"
_SAMPLE = "runs/trace.jsonl"
_NEXT = """\
Next:
  1. Score the sample answers: rag-eval score
  2. Replace the three questions of eval/gold.jsonl with your own. Include some that your documents do not answer.
  3. Call your own system in eval/write_traces.py, then: python eval/write_traces.py && rag-eval score
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    text = "; ".join(f"{name}: {words}" for name, words in PRESETS.items())
    parser.add_argument("--preset", choices=PRESETS, default="reference", help=f"{text} (default: reference)")


def run(args: argparse.Namespace) -> int:
    """Write the files that do not exist yet."""
    below = _below_a_root()
    questions_exist = os.path.lexists("eval/gold.jsonl")
    for target, template in files(args.preset).items():
        if below and target.startswith("."):
            sys.stdout.write(f"left   {target}  (nobody reads it below the root of the repository: docs/several.md)\n")
            continue
        path = Path(_standing(target))
        there = path.exists() or path.is_symlink()
        if target == _SAMPLE and questions_exist and not there:
            sys.stdout.write(f"left   {target}  (the sample answers other questions than your eval/gold.jsonl)\n")
            continue
        if not there:
            write(path, (_TEMPLATES / template).read_text(encoding="utf-8"))
        aside = _advice(path) if there and target.startswith(".") else ""
        sys.stdout.write(f"{'kept ' if there else 'wrote'}  {path}{aside}\n")
    sys.stdout.write("\n" + _NEXT)
    return 0


def _below_a_root() -> bool:
    """Whether this is a folder in a repository, and not the root of one, where workflows and hooks are read."""
    here = Path.cwd()
    return not (here / ".git").exists() and any((folder / ".git").exists() for folder in here.parents)


def _standing(target: str) -> str:
    """``target``, or the gates file that stands there under the other usual name."""
    names = GATES_FILES if target in GATES_FILES else ()
    return next((name for name in names if os.path.lexists(name)), target)


def _advice(path: Path) -> str:
    """What to do about a configuration that stood there already."""
    known = path.is_file() and b"rag-eval" in path.read_bytes()
    return "" if known else "  (it does not name rag-eval yet: the README shows the entry to add)"


def files(preset: str) -> dict[str, str]:
    """Template by the path that it is written to."""
    return {
        "eval/gold.jsonl": "gold.jsonl",
        "eval-gates.yml": f"gates-{preset}.yml",
        "eval/write_traces.py": "write_traces.py",
        _SAMPLE: "trace.jsonl",
        "runs/.gitignore": "gitignore",
        ".github/workflows/rag-eval.yml": "workflow.yml",
        ".pre-commit-config.yaml": "pre-commit.yaml",
    }
