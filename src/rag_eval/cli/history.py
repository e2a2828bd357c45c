"""The command ``rag-eval history``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rag_eval.analysis.history import Point, flaky, gated_metrics, history, point
from rag_eval.cli._shared import print_lines, print_notes, refuse
from rag_eval.cli.parser import Parser, whole
from rag_eval.common.escaping import quantity
from rag_eval.common.writing import write_together
from rag_eval.errors import PASSED
from rag_eval.metrics import find, measure
from rag_eval.readers.report_file import reports_in_folder, reports_in_git
from rag_eval.rendering.history import badges, render
from rag_eval.rendering.html import history_page

FORMATS = ("table", "markdown", "html", "json")


def add_arguments(parser: Parser) -> None:
    words = "metrics (default: those with gates in the newest report), then the folder of reports unless --ref is given"
    parser.add_argument("words", metavar="METRIC… FOLDER", nargs="*", help=words)
    parser.add_option("--ref", "REF", "read the commits of this branch or tag instead of a folder")
    parser.add_option("--file", "PATH", "path of the report file in those commits")
    parser.add_option("--last", "N", "only the newest N reports (default: all)", default=0, type=whole(1))
    parser.add_format(FORMATS)
    parser.add_option("--site", "DIR", "write a web page and badges into this folder instead")
    parser.add_quiet()


def run(args: argparse.Namespace) -> int:
    """Show the trend of metrics over earlier reports, and slow drift that no single step shows.

    Examples:
      rag-eval history reports
      rag-eval history precision recall_all@5 reports --format markdown
      rag-eval history precision --ref origin/main --file eval/baseline.json
      rag-eval history --site site reports
    """
    together = "--ref and --file must be used together. Write: --ref origin/main --file eval/baseline.json"
    fix = "Name a folder of report.json files, or add --ref and --file"
    refuse((bool(args.ref) != bool(args.file), together), (not (args.ref or args.words), f"no folder is named. {fix}"))
    names = list(dict.fromkeys(args.words if args.ref else args.words[:-1]))
    for name in names:
        is_path = find(name) is None and os.path.lexists(name)
        refuse((is_path, f"{name} is a path, not a metric. Name one folder, after the metrics"))
        measure(name)  # raises UsageError for an unknown metric
    stored = reports_in_git(args.ref, args.file) if args.ref else reports_in_folder(args.words[-1])
    print_notes(*stored.notes, quiet=args.quiet)
    points: list[Point] = []
    for reading in stored.newest_first:
        print_notes(*filter(None, [reading.why]), quiet=args.quiet)
        if reading.report is not None:
            names = names or gated_metrics(reading.report)
            points.insert(0, point(reading.label, reading.report, names))  # keeps no other metrics in memory
            if len(points) == args.last:
                break
    refuse((not points, f"there are no reports. {fix}"))
    lost = [name for name in names if not any(name in point.metrics for point in points)]
    print_notes(*(f"no report has a value for {name}" for name in lost), quiet=args.quiet)
    series = history(points, [name for name in names if name not in lost])
    if not args.site and args.format != "html":
        sys.stdout.write(render(series, len(points), args.format))
        return PASSED
    page = history_page(series, len(points), points, flaky(points))
    if args.site:
        write_together(Path(args.site), {"index.html": page, **badges(series, points[-1])}.items())
        print_lines(f"wrote {args.site}/index.html: {quantity(len(points), 'report')}")
    else:
        sys.stdout.write(page)
    return PASSED
