"""Write gold, traces and verdicts in the formats of other tools."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from rag_eval.cli.commands._shared import add_option, file_bytes, refuse_existing, write
from rag_eval.common.escaping import quantity
from rag_eval.errors import UsageError
from rag_eval.exporters import EXPORTERS, Contents
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import read_report
from rag_eval.readers.source import Reader

EXAMPLES = """\
  rag-eval export trec --out trec
  rag-eval export ragas --gold eval/gold.jsonl --trace runs/trace.jsonl --out .
  rag-eval export langfuse-scores --report rag-eval-report/report.json --out .
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    width = max(map(len, EXPORTERS))
    known = "".join(
        f"  {name:<{width}}  {exporter.summary} (of {', '.join(exporter.needs)})\n"
        for name, exporter in EXPORTERS.items()
    )
    parser.description = f"{parser.description}\nformats:\n{known}"
    parser.add_argument("format", metavar="FORMAT", help="one of the formats above")
    add_option(parser, "--gold", "FILE", "gold set (default: eval/gold.jsonl)", default="eval/gold.jsonl")
    add_option(parser, "--trace", "FILE", "traces (default: runs/trace.jsonl)", default="runs/trace.jsonl")
    add_option(
        parser,
        "--report",
        "FILE",
        "report.json (default: rag-eval-report/report.json)",
        default="rag-eval-report/report.json",
    )
    add_option(parser, "--out", "FOLDER", "folder to write the files to (default: the current one)", default=".")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run(args: argparse.Namespace) -> int:
    """Write the files of the form; raise InputError with every problem if its inputs are unreadable."""
    if args.format not in EXPORTERS:
        raise UsageError(f"unknown format '{args.format[:80]}'. Choose one of: {', '.join(EXPORTERS)}")
    form, reader = EXPORTERS[args.format], Reader(ProblemCollector())
    gold = _rows(Files(reader, [args.gold]), args.gold, "gold") if {"gold", "trace"} & {*form.needs} else []
    traces = _rows(Files(reader, [args.trace]), args.trace, "trace") if "trace" in form.needs else []
    if "report" in form.needs:
        read_report(reader, args.report)  # problems of the output are errors of the command
    reader.ledger.stop_on_problems()
    report = json.loads(file_bytes(args.report)) if "report" in form.needs else {}
    files = form.write(Contents(gold, traces, report))
    for name, text in files.items():
        path = os.path.join(args.out, name)  # noqa: PTH118
        refuse_existing(path, force=args.force, other="folder with --out")
        if not text:
            reason = "the traces have no ids of their source, or the format fits no item"
            raise UsageError(f"{args.format}: nothing to export: {reason}. See docs/export.md")
    for name, text in files.items():
        write(Path(args.out) / name, text)
        print(f"wrote {os.path.join(args.out, name)}: {quantity(text.count(chr(10)), 'line')}", file=sys.stderr)  # noqa: PTH118
    return 0


def _rows(files: Files, path: str, kind: str) -> list[dict[str, object]]:
    return [row for _, row in files.rows(path, kind)]
