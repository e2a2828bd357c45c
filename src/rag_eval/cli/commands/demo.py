"""The command ``rag-eval demo``."""

from __future__ import annotations

import argparse
import sys

from rag_eval import api
from rag_eval.cli.commands._shared import print_page
from rag_eval.common.paths import from_here, shipped
from rag_eval.rendering import render
from rag_eval.run.options import Options

_NEXT = """\
That was a change that made the answers worse: the gate would have stopped it with exit code 1.
The demo itself ends with 0.

Where to go next:
  rag-eval init                     write a first gold set and gates here
  rag-eval score                    score your own traces
  rag-eval explain precision        what a metric means
  rag-eval explain Q05 --gold {folder}/gold.jsonl --trace {folder}/bad.jsonl
                                    why a question scored as it did
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Score the packaged example: a good run and a bad one.

    Examples:
      rag-eval demo
    """
    del args
    folder = from_here(shipped("examples", "quickstart"))
    gold, gates = f"{folder}/gold.jsonl", f"{folder}/eval-gates.yml"
    for title, trace in (("main", "good.jsonl"), ("the pull request", "bad.jsonl")):
        print(f"== The run of {title}: {trace} ==\n")
        print_page(render(api.run(Options(gold, f"{folder}/{trace}", gates)), "table") + "\n")
    sys.stdout.write(_NEXT.format(folder=folder))
    return 0
