"""The command ``rag-eval export``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rag_eval.cli.commands._shared import checked_reader, file_bytes, print_notes, refuse_existing, write_together
from rag_eval.cli.parser import Parser
from rag_eval.common.escaping import quantity
from rag_eval.errors import PASSED, UsageError
from rag_eval.exporters import EXPORTERS, Contents
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.report_file import read_report
from rag_eval.readers.source import Reader


def add_arguments(parser: Parser) -> None:
    width = max(map(len, EXPORTERS))
    known = [f"  {name:<{width}}  {form.summary} (of {', '.join(form.needs)})" for name, form in EXPORTERS.items()]
    parser.description = "\n".join([f"{parser.description}", "formats:", *known, ""])
    parser.add_argument("format", metavar="FORMAT", help="one of the formats above")
    parser.add_option("--gold", "FILE", "gold set (default: eval/gold.jsonl)", default="eval/gold.jsonl")
    parser.add_option("--trace", "FILE", "traces (default: runs/trace.jsonl)", default="runs/trace.jsonl")
    report = "rag-eval-report/report.json"
    parser.add_option("--report", "FILE", f"report.json (default: {report})", default=report)
    parser.add_option("--out", "FOLDER", "folder to write the files to (default: the current one)", default=".")
    parser.add_flag("--force", "overwrite existing files")


def run(args: argparse.Namespace) -> int:
    """Write gold, traces and verdicts in the formats of other tools.

    Examples:
      rag-eval export trec --out trec
      rag-eval export ragas --gold eval/gold.jsonl --trace runs/trace.jsonl --out .
      rag-eval export langfuse-scores --report rag-eval-report/report.json --out .
    """
    if args.format not in EXPORTERS:
        raise UsageError(f"unknown format '{args.format[:80]}'. Choose one of: {', '.join(EXPORTERS)}")
    form = EXPORTERS[args.format]
    with checked_reader() as reader:
        gold = _rows(reader, args.gold, "gold") if {"gold", "trace"} & {*form.needs} else []
        traces = _rows(reader, args.trace, "trace") if "trace" in form.needs else []
        if "report" in form.needs:
            read_report(reader, args.report)  # problems of the output are errors of the command
    report = json.loads(file_bytes(args.report)) if "report" in form.needs else {}
    texts = form.write(Contents(gold, traces, report))
    for name, text in texts.items():
        refuse_existing(Path(args.out, name), force=args.force, other="folder with --out")
        if not text:
            reason = "the traces have no ids of their source, or the format fits no item"
            raise UsageError(f"{args.format}: nothing to export: {reason}. See docs/export.md")
    write_together(Path(args.out), texts.items())
    print_notes(
        *(f"wrote {Path(args.out, name)}: {quantity(text.count(chr(10)), 'line')}" for name, text in texts.items())
    )
    return PASSED


def _rows(reader: Reader, path: str, kind: str) -> list[dict[str, object]]:
    return [row for _, row in Files(reader, [path]).rows(path, kind)]
