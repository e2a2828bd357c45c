"""The commands on saved reports: ``rag-eval compare``, ``history``, ``gate`` and ``comment``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from rag_eval.analysis import Report
from rag_eval.analysis.history import Point, flaky, gated_metrics, history, point
from rag_eval.analysis.judging import rejudge, rejudge_same_gates
from rag_eval.cli._shared import print_lines, print_notes, refuse, write_report
from rag_eval.cli.parser import Parser, names, whole
from rag_eval.common.escaping import quantity
from rag_eval.common.files import write_together
from rag_eval.common.paths import nearest_gates
from rag_eval.errors import PASSED, InputError, UsageError
from rag_eval.github import GitHub, Network, posting
from rag_eval.metrics import find, measure
from rag_eval.readers import report_file
from rag_eval.readers.gates_file import read_policy
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.rendering import RENDERERS
from rag_eval.rendering.comparison import render as render_comparison
from rag_eval.rendering.comparison import render_repeats
from rag_eval.rendering.history import badges
from rag_eval.rendering.history import render as render_history
from rag_eval.rendering.html import comparison_page, history_page, repeats_page
from rag_eval.run import Options
from rag_eval.run.run_comparison import check_number_of_runs, compare_columns, read_runs, repeats_of, systems_of

COMPARISON_FORMATS = ("table", "markdown", "html", "json", "csv")


def add_compare_arguments(parser: Parser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a report.json, or traces; each run in them is a column")
    parser.add_option("--base", "NAME", "the run that the others are compared with (default: the first)")
    metrics = "compare only these metrics (default: those with gates in the last run)"
    parser.add_option("--metric", "M[,M]", metrics, default=(), type=names)
    parser.add_flag("--all", "compare every metric that all runs have")
    parser.add_flag("--across-judges", "also compare verdicts of different judges")
    parser.add_flag("--pareto", "list the runs that no other run beats in quality, cost and latency")
    parser.add_flag("--repeats", "treat the runs of a file as repeats of one system: pass^k")
    parser.add_option("--gold", "FILE", "gold set to score traces against")
    parser.add_option("--gates", "FILE", "gates file with settings, weights and budgets")
    parser.add_cutoffs()
    parser.add_format(COMPARISON_FORMATS)
    parser.add_quiet()


def run_compare(args: argparse.Namespace) -> int:
    """Compare runs side by side: values, paired tests, flips, a weighted score. There are no gates: the exit code is 0.

    Examples:
      rag-eval compare runs/main.jsonl runs/rerank.jsonl
      rag-eval compare eval/baseline.json rag-eval-report/report.json --metric precision,recall@5
      rag-eval compare runs/main.jsonl runs/rerank.jsonl --all
      rag-eval compare runs/small.jsonl runs/large.jsonl --base large --pareto
      rag-eval compare runs/five-times.jsonl --repeats
    """
    compares = args.base or args.metric or args.all or args.pareto
    refuse(
        (args.repeats and compares, "--repeats does not compare runs. Remove --base, --metric, --all and --pareto."),
        (args.all and args.metric, "--all and --metric cannot be used together. Remove one of them."),
    )
    options = Options(args.gold, "", args.gates or nearest_gates(), args.k)
    columns, notes = read_runs(args.runs, options)
    print_notes(*dict.fromkeys(notes), quiet=args.quiet)
    if args.repeats:
        systems = [repeats_of(system) for system in systems_of(columns)]
        page = repeats_page(systems) if args.format == "html" else render_repeats(systems, args.format)
    else:
        fix = "Name fewer files."
        if len(columns) == 1:
            fix = "Name another file, or add --repeats for repeats of one system."
        check_number_of_runs(columns, fix)
        base, across = args.base or None, args.across_judges
        comparison = compare_columns(columns, options, base, args.metric, every=args.all, across_judges=across)
        if args.pareto and comparison.front is None:
            print_notes("--pareto is ignored, because not every run has a quality value", quiet=args.quiet)
        comparison = comparison if args.pareto else comparison._replace(front=None)
        page = comparison_page(comparison) if args.format == "html" else render_comparison(comparison, args.format)
    sys.stdout.write(page)
    return PASSED


def add_history_arguments(parser: Parser) -> None:
    words = "metrics (default: those with gates in the newest report), then the folder of reports unless --ref is given"
    parser.add_argument("words", metavar="METRIC… FOLDER", nargs="*", help=words)
    parser.add_option("--ref", "REF", "read the commits of this branch or tag instead of a folder")
    parser.add_option("--file", "PATH", "path of the report file in those commits")
    parser.add_option("--last", "N", "only the newest N reports (default: all)", default=0, type=whole(1))
    parser.add_format(("table", "markdown", "html", "json"))
    parser.add_option("--site", "DIR", "write a web page and badges into this folder instead")
    parser.add_quiet()


def run_history(args: argparse.Namespace) -> int:
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
    stored, notes = (
        report_file.reports_in_git(args.ref, args.file) if args.ref else report_file.reports_in_folder(args.words[-1])
    )
    print_notes(*notes, quiet=args.quiet)
    points: list[Point] = []
    for label, report in stored:
        if isinstance(report, str):
            print_notes(report, quiet=args.quiet)
            continue
        names = names or gated_metrics(report)
        points.insert(0, point(label, report, names))  # keeps no other metrics in memory
        if len(points) == args.last:
            break
    refuse((not points, f"there are no reports. {fix}"))
    lost = [name for name in names if not any(name in point.metrics for point in points)]
    print_notes(*(f"no report has a value for {name}" for name in lost), quiet=args.quiet)
    series = history(points, [name for name in names if name not in lost])
    if not args.site and args.format != "html":
        sys.stdout.write(render_history(series, len(points), args.format))
        return PASSED
    page = history_page(series, len(points), points, flaky(points))
    if args.site:
        write_together(Path(args.site), {"index.html": page, **badges(series, points[-1])}.items())
        print_lines(f"wrote {args.site}/index.html: {quantity(len(points), 'report')}")
    else:
        sys.stdout.write(page)
    return PASSED


def add_gate_arguments(parser: Parser) -> None:
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score")
    parser.add_option("--gates", "FILE", "gates file to judge by (default: the report's own gates)")
    parser.add_outputs(RENDERERS)


def run_gate(args: argparse.Namespace) -> int:
    """Judge an existing report.json again, under its own gates or under another gates file.

    Examples:
      rag-eval gate rag-eval-report/report.json
      rag-eval gate rag-eval-report/report.json --gates stricter.yml --format markdown
    """
    reader = Reader(ProblemCollector())
    with report_file.checked_report(args.report, "Score the run again."):
        report = report_file.read_report(reader, args.report)
        policy = read_policy(reader, args.gates) if args.gates else None
        if report is None or reader.ledger.problems:
            raise InputError(reader.ledger.problems, reader.ledger.more)
        report_file.check_scores(args.report, report)
        if policy is None:
            report_file.check_gates(args.report, report, "Score the run again, or name gates with --gates.")
            judged = rejudge_same_gates(report)
        else:
            if report.scope:  # metric groups that were left out stay so
                policy = replace(policy, perspectives=report.scope.perspectives)
            lost = [gate.name for gate in policy.selected_gates if gate.name not in report.metrics]
            lines = [f"{args.report}: no value for {name}. To get it, score the run again" for name in lost]
            print_notes(*lines, quiet=args.quiet)
            judged = rejudge(report, policy)
    changed = [path for path in _changed_inputs(reader, report) if path != args.gates]
    print_notes(*(f"{path}: changed since {args.report} was made. Score the run again" for path in changed))
    write_report(judged, args)
    return judged.exit_code


def _changed_inputs(reader: Reader, report: Report) -> Iterator[str]:
    """Yield the input files of a report that have other bytes now; files that cannot be opened are left out."""
    for recorded in report.inputs:
        digest = sha256()
        with reader.silent().open(recorded.path, digest) as source:
            deque(source.blocks(), maxlen=0)
        if source.is_open and digest.hexdigest() != recorded.sha256:
            yield recorded.path


def add_comment_arguments(parser: Parser) -> None:
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score or of the action")
    parser.add_option("--head", "SHA", "last commit of the pull request (default: from the event)")
    name = "name of the comment, if a pull request has several, one for each system (default: rag-eval)"
    parser.add_option("--comment-id", "ID", name, default="rag-eval")
    when = "always (default), on-change (only if the text differs) or on-failure (a new one only if a gate fails,"
    when += " or the change loosens gates or edits the gold set)"
    parser.add_argument(
        "--mode", choices=[mode for mode in posting.MODES if mode != "off"], default="always", help=when
    )
    parser.add_quiet()


def run_comment(args: argparse.Namespace) -> int:
    """Post a finished report.json as the comment of its pull request, in the second workflow for forks.

    The report may come from a stranger: it is read within limits, judged again and rendered here. GitHub tells which
    pull request it belongs to, by the last commit of the finished run. The environment names GitHub: GITHUB_TOKEN,
    GITHUB_REPOSITORY, GITHUB_EVENT_PATH and GITHUB_API_URL, as GitHub Actions sets them.

    Examples:
      rag-eval comment rag-eval-report/report.json
      rag-eval comment report.json --head 0123456789abcdef0123456789abcdef01234567 --comment-id nightly
    """
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise UsageError("GITHUB_TOKEN is not set. Set it to a token with `pull-requests: write`.")
    address = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
    network = Network.from_environ(os.environ, address)
    api = GitHub(address, token, os.environ.get("GITHUB_REPOSITORY", ""), network)
    fix = "Name the last commit of the pull request with --head."
    server = os.environ.get("GITHUB_SERVER_URL", "")
    origin = (
        posting.ReportOrigin(args.head)
        if args.head
        else posting.ReportOrigin.of_event(_event(), fix, server, api.repository)
    )
    posted = posting.publish(api, origin, posting.read(args.report), args.comment_id, args.mode)
    print_notes(posted, quiet=args.quiet)
    if posted.url:
        print_lines(posted.url)
    return PASSED


def _event() -> dict[str, object]:
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        event = {}
    return event if isinstance(event, dict) else {}
