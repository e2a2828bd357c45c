"""The command ``rag-eval validate``."""

from __future__ import annotations

import argparse
import os

from rag_eval.cli._shared import print_lines, print_notes
from rag_eval.cli.parser import Parser
from rag_eval.common.paths import usual_gates
from rag_eval.errors import PASSED
from rag_eval.readers.gates_file import read_policy
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader, checked_reader
from rag_eval.readers.validation import KINDS, check


def add_arguments(parser: Parser) -> None:
    files = "files to check; the kind is detected from name and content"
    parser.add_argument("files", metavar="FILE", nargs="+", help=files)
    kind = "treat every file as this kind, if the detected one is wrong"
    parser.add_argument("--kind", choices=list(KINDS), help=kind)
    parser.add_flag("--only-named", "for hooks: skip files that the nearest eval-gates.yml above them does not name")
    parser.add_flag("--quiet", "print nothing for valid files")


def run(args: argparse.Namespace) -> int:
    """Check gold, trace, gates, report and run files against their schemas. Prints every problem; changes nothing.

    Examples:
      rag-eval validate eval/gold.jsonl runs/trace.jsonl eval-gates.yml
      rag-eval validate --kind gold questions.jsonl
    """
    with checked_reader() as reader:
        for path in dict.fromkeys(args.files):
            gates = _gates_without(path) if args.only_named else ""
            if gates:
                print_lines(f"{path}: not checked, because {gates} does not name it")
                continue
            before = reader.ledger.count
            summary = check(reader, path, args.kind)
            if not args.quiet and reader.ledger.count == before:
                print_lines(f"{path}: valid, {summary}")
        print_notes(*reader.ledger.notes, quiet=args.quiet)
    return PASSED


def _gates_without(path: str) -> str:
    """Return the nearest gates file above a path if it does not name the path; empty if it does, or cannot be read."""
    inside, folder = os.path.normpath(path), os.path.dirname(os.path.normpath(path))  # noqa: PTH120 - empty, not ".", which messages would show
    while not (gates := usual_gates(folder)) and folder != os.path.dirname(folder):  # noqa: PTH120 - as above
        folder = os.path.dirname(folder)  # noqa: PTH120
    policy = read_policy(Reader(ProblemCollector()), gates) if gates else None
    if policy is None:
        return ""
    is_named = any(name and (inside == name or inside.startswith(f"{name}{os.sep}")) for name in policy.files)
    return "" if is_named else gates
