"""Turn gold sets, traces and saved runs of other tools into files of rag-eval's own.

What is kept under another name and what is left out is said on stderr. Nothing is written where anything is wrong.
"""

from __future__ import annotations

import os
import sys

from rag_eval.commands._shared import remark, write
from rag_eval.errors import UsageError
from rag_eval.importers import IMPORTERS, importer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from rag_eval.files.source import Reader

EXAMPLES = """\
  rag-eval import labels path/to/labels --out eval/gold.jsonl
  rag-eval import example08 eval/qaset.json --out eval/gold.jsonl
  rag-eval import example08-trace eval/qaset.json runs/trace.jsonl --out runs/imported.jsonl
  rag-eval import rag-server-golden evals/data/golden_qa.json > eval/gold.jsonl
  rag-eval import rag-server-run data/eval_runs/RUN.json --out eval/baseline.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    width = max(map(len, IMPORTERS))
    known = "".join(f"  {name:<{width}}  {one.summary} ({one.takes})\n" for name, one in IMPORTERS.items())
    parser.description = f"{parser.description}\nformats:\n{known}"
    parser.add_argument("format", metavar="FORMAT", help="one of the formats above")
    parser.add_argument("files", metavar="FILE", nargs="+", help="what the format is made of")
    parser.add_argument("--out", metavar="FILE", default="-", help="where to write it (default: stdout)")
    parser.add_argument("--force", action="store_true", help="write over a file that is there")
    parser.add_argument("--quiet", action="store_true", help="do not say what became of the fields")


def run(args: argparse.Namespace) -> int:
    """Write what was made of the files. InputError with every problem where they cannot be read."""
    from pathlib import Path

    known = importer(args.format)
    if len(args.files) != known.files:
        raise UsageError(f"{args.format} is made of {known.takes}: {known.files} FILE, not {len(args.files)}")
    if args.out != "-" and os.path.lexists(args.out) and not args.force:
        raise UsageError(f"{args.out} is there already. Name another file, or write over it with --force")
    text, said = _made(args.format, args.files)
    if args.out == "-":
        sys.stdout.write(text)
    else:
        write(Path(args.out), text)
    remark(said, quiet=args.quiet)
    return 0


def _made(name: str, paths: list[str]) -> tuple[str, list[object]]:
    """What is to be written, and what there is to say of it."""
    from rag_eval.files.inputs import Files
    from rag_eval.files.ledger import Ledger
    from rag_eval.files.source import Reader
    from rag_eval.importers import report_of
    from rag_eval.importers._account import Account

    reader, account = Reader(Ledger()), Account()
    if IMPORTERS[name].gives == "report":
        from rag_eval.renderers import render

        report = report_of(name, Files(reader, paths), account)
        text = render(report, "json") if report else ""
        _hold(reader, paths[-1], text)
    else:
        from rag_eval.files.imported import imported

        text = imported(reader, name, paths, account)
    reader.ledger.stop_on_problems()
    return text, [*account.lines(), *reader.ledger.notes]


def _hold(reader: Reader, path: str, text: str) -> None:
    """Hold a report that is to be written to our own schema, as rows are."""
    import json

    from rag_eval.files.contract import Contract

    for fault in Contract("report", reader.limits.depth).faults(json.loads(text)) if text else ():
        reader.ledger.problem(path, 0, f"as report: {fault.where}", fault.message, fault.hint)
