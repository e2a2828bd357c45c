"""Check gold, trace, gates, report and run files against their schemas. Prints every problem; changes nothing."""

from __future__ import annotations

import argparse
import os
import sys

from rag_eval.common.escaping import log_line
from rag_eval.common.paths import usual_gates

EXAMPLES = """\
  rag-eval validate eval/gold.jsonl runs/trace.jsonl eval-gates.yml
  rag-eval validate --kind gold questions.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    from rag_eval.readers.validation import KINDS

    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="files to check; the kind is detected from name and content"
    )
    parser.add_argument("--kind", choices=list(KINDS), help="treat every file as this kind")
    parser.add_argument(
        "--only-named",
        action="store_true",
        help="skip files that the nearest eval-gates.yml above them does not name",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing for valid files")


def run(args: argparse.Namespace) -> int:
    """Return 0 if all files are valid; raise InputError with all problems otherwise."""
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.source import Reader
    from rag_eval.readers.validation import check

    reader = Reader(ProblemCollector())
    for path in dict.fromkeys(args.files):
        gates = _gates_without(path) if args.only_named else ""
        if gates:
            sys.stdout.write(log_line(f"{path}: not checked, because {gates} does not name it") + "\n")
            continue
        before = len(reader.ledger.problems) + reader.ledger.more
        summary = check(reader, path, args.kind)
        if not args.quiet and len(reader.ledger.problems) + reader.ledger.more == before:
            sys.stdout.write(log_line(f"{path}: valid, {summary}") + "\n")
    if not args.quiet:
        for note in reader.ledger.notes:
            print(log_line(str(note)), file=sys.stderr)
    reader.ledger.stop_on_problems()
    return 0


def _gates_without(path: str) -> str:
    """Return the nearest gates file above a path if it does not name the path; empty if it does, or cannot be read."""
    from rag_eval.readers.gates_file import read_policy
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.source import Reader

    inside, folder = os.path.normpath(path), os.path.dirname(os.path.normpath(path))  # noqa: PTH120
    while not (gates := usual_gates(folder)) and folder not in ("", os.sep):
        folder = os.path.dirname(folder)  # noqa: PTH120
    policy = read_policy(Reader(ProblemCollector()), gates) if gates else None
    if policy is None:
        return ""
    is_named = any(name and (inside == name or inside.startswith(f"{name}{os.sep}")) for name in policy.files)
    return "" if is_named else gates
