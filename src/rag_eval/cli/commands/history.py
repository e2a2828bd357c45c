"""Show the trend of metrics over earlier reports, and slow drift that no single step shows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.commands._shared import remark, whole, write_together
from rag_eval.common.escaping import quantity
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.analysis.history import Point
    from rag_eval.readers.report_history import SavedReport, Stored

EXAMPLES = """\
  rag-eval history reports
  rag-eval history precision recall_all@5 reports --format markdown
  rag-eval history --by started_at reports
  rag-eval history precision --ref origin/main --file eval/baseline.json
  rag-eval history --site site reports
"""
FORMATS = ("table", "markdown", "html", "json", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    words = "metrics (default: those with gates in the newest report), then the folder of reports unless --ref is given"
    parser.add_argument("words", metavar="METRIC… FOLDER", nargs="*", help=words)
    parser.add_argument("--ref", metavar="REF", help="read the commits of this branch or tag instead of a folder")
    parser.add_argument("--file", metavar="PATH", help="path of the report file in those commits")
    parser.add_argument(
        "--by", metavar="FIELD", help="sort by this field of each run's run.json (default: by file name)"
    )
    parser.add_argument("--last", metavar="N", type=whole(1), help="only the newest N reports (default: all)")
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default: table)")
    parser.add_argument("--site", metavar="DIR", help="write a web page and badges into this folder instead")
    parser.add_argument("--quiet", action="store_true", help="no notes on stderr")


def run(args: argparse.Namespace) -> int:
    """Show the trend and return 0, because it is no gate."""
    from rag_eval.analysis.history import flaky, history
    from rag_eval.rendering.history import FORMS, badges

    wanted, stored = _places(args)
    remark(stored.notes, quiet=args.quiet)
    points, names = _points(args, stored, wanted)
    if not points:
        raise UsageError("there are no reports. Name a folder of report.json files, or add --ref and --file")
    lost = [name for name in names if not any(name in point.metrics for point in points)]
    remark((f"no report has a value for {name}" for name in lost), quiet=args.quiet)
    series = history(points, [name for name in names if name not in lost])
    if not args.site and args.format != "html":
        sys.stdout.write(FORMS[args.format](series, len(points)))
        return 0
    from rag_eval.rendering.html.pages import history_page

    page = history_page(series, len(points), points, flaky(points))
    if args.site:
        write_together(Path(args.site), {"index.html": page, **badges(series, points[-1])}.items())
        print(f"wrote {args.site}/index.html: {quantity(len(points), 'report')}")
    else:
        sys.stdout.write(page)
    return 0


def _places(args: argparse.Namespace) -> tuple[list[str], Stored]:
    """Return the requested metrics, and the paths of the reports."""
    from rag_eval.metrics import measure
    from rag_eval.readers.report_history import in_folder, in_git

    if bool(args.ref) != bool(args.file):
        raise UsageError("--ref and --file must be used together. Write: --ref origin/main --file eval/baseline.json")
    if not (args.ref or args.words):
        raise UsageError("no folder is named. Name a folder of report.json files, or add --ref and --file")
    names = list(dict.fromkeys(args.words if args.ref else args.words[:-1]))
    for name in names:
        measure(name)
    return names, in_git(args.ref, args.file) if args.ref else in_folder(args.words[-1])


def _points(args: argparse.Namespace, stored: Stored, wanted: Sequence[str]) -> tuple[list[Point], list[str]]:
    """Return the points, oldest first, and the shown metrics; other metrics of a report are not kept in memory."""
    from rag_eval.analysis.history import gated, point

    names, points = list(wanted), []
    for reading in _in_order(args, stored):
        remark([reading.why] if reading.why else [], quiet=args.quiet)
        if reading.report is not None:
            names = names or gated(reading.report)
            points.append(point(reading.label, reading.report, names))
            if len(points) == args.last:
                break
    return points[::-1], names


def _in_order(args: argparse.Namespace, stored: Stored) -> Iterable[SavedReport]:
    from rag_eval.readers.report_history import by_run

    if not args.by:
        return stored.newest_first()
    read = [*stored.newest_first()]
    ordered, notes = by_run([point for point in read if point.report], args.by)
    remark(notes, quiet=args.quiet)
    return [*(point for point in read if not point.report), *reversed(ordered)]
