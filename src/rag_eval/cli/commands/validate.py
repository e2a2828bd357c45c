"""Check gold, trace, gates, report and run files against their schemas. Prints every problem; changes nothing."""

from __future__ import annotations

import argparse
import sys

from rag_eval.common.escaping import log_line

EXAMPLES = """\
  rag-eval validate eval/gold.jsonl runs/trace.jsonl eval-gates.yml
  rag-eval validate --kind gold questions.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    from rag_eval.readers.validation import KINDS

    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="files to check; their kind is seen from name and content"
    )
    parser.add_argument("--kind", choices=list(KINDS), help="take every file as this kind")
    parser.add_argument("--quiet", action="store_true", help="say nothing of files that are valid")


def run(args: argparse.Namespace) -> int:
    """0 when all files are valid; InputError with all problems otherwise."""
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.source import Reader
    from rag_eval.readers.validation import check

    reader = Reader(Ledger())
    for path in dict.fromkeys(args.files):
        before = len(reader.ledger.problems) + reader.ledger.more
        found = check(reader, path, args.kind)
        if not args.quiet and len(reader.ledger.problems) + reader.ledger.more == before:
            sys.stdout.write(log_line(f"{path}: valid, {found}") + "\n")
    if not args.quiet:
        for note in reader.ledger.notes:
            print(log_line(str(note)), file=sys.stderr)
    reader.ledger.stop_on_problems()
    return 0
