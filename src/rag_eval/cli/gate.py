"""The command ``rag-eval gate``: the gates on a finished report."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator
from hashlib import sha256

from rag_eval.analysis import Report
from rag_eval.analysis.judging import rejudge, rejudge_same_gates
from rag_eval.cli._shared import print_notes, write_report
from rag_eval.cli.parser import Parser
from rag_eval.errors import InputError
from rag_eval.readers.gates_file import read_policy
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import check_gates, check_scores, checked_report, read_report
from rag_eval.readers.source import Reader
from rag_eval.rendering import RENDERERS


def add_arguments(parser: Parser) -> None:
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score")
    parser.add_option("--gates", "FILE", "gates file to judge by (default: the report's own gates)")
    parser.add_outputs(RENDERERS)


def run(args: argparse.Namespace) -> int:
    """Judge an existing report.json again, under its own gates or under another gates file.

    Examples:
      rag-eval gate rag-eval-report/report.json
      rag-eval gate rag-eval-report/report.json --gates stricter.yml --format markdown
    """
    reader = Reader(ProblemCollector())
    with checked_report(args.report, "Score the run again."):
        report = read_report(reader, args.report)
        policy = read_policy(reader, args.gates) if args.gates else None
        if report is None or reader.ledger.problems:
            raise InputError(reader.ledger.problems, reader.ledger.more)
        check_scores(args.report, report)
        if policy is None:
            check_gates(args.report, report, "Score the run again, or name gates with --gates.")
            judged = rejudge_same_gates(report)
        else:
            if report.scope:  # metric groups that were left out stay so
                policy = policy._replace(perspectives=report.scope.perspectives)
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
