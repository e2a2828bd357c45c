"""Judge an existing report.json again, under its own gates or under another gates file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rag_eval.cli.commands._shared import add_outputs, put, remark
from rag_eval.errors import RagEvalError

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Policy

EXAMPLES = """\
  rag-eval gate rag-eval-report/report.json
  rag-eval gate rag-eval-report/report.json --gates stricter.yml --format markdown
"""
FORMATS = ("table", "markdown", "html", "json", "junit", "sarif", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score")
    parser.add_argument("--gates", metavar="FILE", default="", help="judge by this gates file (the report's own gates)")
    add_outputs(parser, FORMATS)


def run(args: argparse.Namespace) -> int:
    """Judge; the exit code is the new report's."""
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.report_file import believed, read_report
    from rag_eval.readers.source import Reader

    reader = Reader(Ledger())
    value = read_report(reader, args.report)
    policy = _policy(reader, args.gates)
    reader.ledger.stop_on_problems()
    with believed(args.report, "Score the run again."):
        judged = _judged(args, _report(value), policy)
    put(judged, args)
    return judged.exit_code


def _judged(args: argparse.Namespace, report: Report, policy: Policy | None) -> Report:
    """The report as it is judged now; RagEvalError where no run can have written it."""
    from rag_eval.analysis.report import again, rejudge
    from rag_eval.cli.commands._runs import check_scores
    from rag_eval.gates.scope import asked
    from rag_eval.readers.report_file import check_gates

    check_scores(args.report, report)
    if policy is None:
        check_gates(args.report, report, "Score the run again, or name gates with --gates.")
    if policy and report.scope:  # what was left out stays so
        policy = policy._replace(perspectives=report.scope.perspectives)
    lost = [gate.name for gate in asked(policy) if gate.name not in report.metrics] if policy else []
    remark((f"{args.report}: holds no {name}; score again to get it" for name in lost), quiet=args.quiet)
    return rejudge(report, policy) if policy else again(report)


def _policy(reader: object, path: str) -> Policy | None:
    from rag_eval.gates.policy import REFERENCE_GATES
    from rag_eval.readers.gates_file import read_policy

    policy = read_policy(reader, path) if path else None  # type: ignore[arg-type]
    return policy._replace(gates=policy.gates or REFERENCE_GATES) if policy else None


def _report(value: object) -> Report:
    from rag_eval.rendering.json_file import from_json

    if not isinstance(value, dict):
        raise RagEvalError("the report could not be read")
    return from_json(value)
