"""Judge an existing report.json again, under its own gates or under another gates file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.analysis.baseline import impossible
from rag_eval.analysis.history import gated
from rag_eval.analysis.report import rejudge, rejudge_same_gates
from rag_eval.analysis.runs import Column
from rag_eval.cli.commands._shared import add_outputs, put, remark
from rag_eval.common.escaping import quantity, quoted
from rag_eval.errors import UsageError
from rag_eval.gates.policy import REFERENCE_GATES
from rag_eval.gates.selection import selected_gates
from rag_eval.readers.gates_file import read_policy
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import check_gates, checked_report, read_report
from rag_eval.readers.source import Reader
from rag_eval.readers.validation import check, kind_of, unpacked
from rag_eval.rendering.json_file import Questions, from_json
from rag_eval.run.inputs import open_policy, read_inputs
from rag_eval.run.scored import score_run

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Policy
    from rag_eval.gates.results import Question
    from rag_eval.run.options import Options

EXAMPLES = """\
  rag-eval gate rag-eval-report/report.json
  rag-eval gate rag-eval-report/report.json --gates stricter.yml --format markdown
"""
FORMATS = ("table", "markdown", "html", "json", "junit", "sarif", "codequality", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("report", metavar="REPORT", help="a report.json of rag-eval score")
    parser.add_argument(
        "--gates", metavar="FILE", default="", help="gates file to judge by (default: the report's own gates)"
    )
    add_outputs(parser, FORMATS)


def run(args: argparse.Namespace) -> int:
    """Judge, and return the new report's exit code."""
    reader = Reader(ProblemCollector())
    value = read_report(reader, args.report)
    policy = _policy(reader, args.gates)
    reader.ledger.stop_on_problems()
    with checked_report(args.report, "Score the run again."):
        judged = _judged(args, from_json(value or {}), policy)
    put(judged, args)
    return judged.exit_code


def _judged(args: argparse.Namespace, report: Report, policy: Policy | None) -> Report:
    """Return the report, judged again; raise RagEvalError if its content is impossible."""
    check_scores(args.report, report)
    if policy is None:
        check_gates(args.report, report, "Score the run again, or name gates with --gates.")
    if policy and report.scope:  # metric groups that were left out stay so
        policy = policy._replace(perspectives=report.scope.perspectives)
    lost = [gate.name for gate in selected_gates(policy) if gate.name not in report.metrics] if policy else []
    remark((f"{args.report}: no value for {name}. To get it, score the run again" for name in lost), quiet=args.quiet)
    return rejudge(report, policy) if policy else rejudge_same_gates(report)


def _policy(reader: Reader, path: str) -> Policy | None:
    policy = read_policy(reader, path) if path else None
    return policy._replace(gates=policy.gates or REFERENCE_GATES) if policy else None


class Read(NamedTuple):
    """The runs of all files in their order, and notes from reading them."""

    columns: list[Column]
    notes: list[str]


def read_runs(paths: Sequence[str], options: Options) -> Read:
    """Return the runs of report.json files and trace files; the latter are scored under ``options``.

    InputError with the problems of the first file that cannot be read.
    """
    columns: list[Column] = []
    notes: list[str] = []
    for path in paths:
        columns += _split(path, _scored(path, options, notes))
    return Read(_named(columns), notes)


def columns_of(reports: Sequence[Report]) -> list[Column]:
    """Return the runs of reports, named run 1, run 2 and so on."""
    columns = [column for number, report in enumerate(reports, 1) for column in _split(f"run {number}", report)]
    return _named(columns)


def place_of(columns: Sequence[Column], name: str | None) -> int:
    """Return the index of the run called ``name`` (by its name, its run field or its file); 0 if no name is given."""
    if name is None:
        return 0
    by_name = [index for index, column in enumerate(columns) if column.name == name]
    matches = by_name or [index for index, column in enumerate(columns) if name in (column.run, column.source)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(quoted(column.name, 40) for column in columns[:10])
    raise UsageError(f"--base {quoted(name)} matches {quantity(len(matches), 'run')}. Choose one of: {names}")


def _scored(path: str, options: Options, notes: list[str]) -> Report:
    reader = Reader(ProblemCollector(), root=options.root)
    kind = kind_of(reader, path)
    reader.ledger.stop_on_problems()
    if kind == "report":
        return _saved_report(reader, path)
    if kind == "json":
        check(reader, path, kind)
        reader.ledger.stop_on_problems()
    if unpacked(path).endswith((".json", ".yml", ".yaml")):
        raise UsageError(f"{path} is not a report.json of rag-eval score. If it contains traces, name it .jsonl")
    return _scored_traces(path, options, notes)


def _saved_report(reader: Reader, path: str) -> Report:
    value = read_report(reader, path, Questions().made)
    reader.ledger.stop_on_problems()
    report = from_json(value or {})
    check_scores(path, report)
    return report


def check_scores(path: str, report: Report) -> None:
    """Raise UsageError if a report.json has a score that its metric cannot give: it was edited by hand."""
    wrong = impossible(report.questions)
    if wrong:
        raise UsageError(f"{path}: {wrong}. Score the run again.")


def _scored_traces(path: str, options: Options, notes: list[str]) -> Report:
    reader, policy, digests = open_policy(options._replace(trace=path))
    # The command line names the run to compare with.
    alone = policy._replace(baseline="", baseline_trace="", must_pass=())
    report = score_run(read_inputs(options, reader, alone, digests)).report
    notes += [f"{note.file}: {note.message}" for note in reader.ledger.notes]
    notes += [
        f"{path}: {quantity(number, f'{name} trace')}"
        for name in ("duplicate", "unknown")
        if (number := getattr(report.completeness, name))
    ]
    return report


def _split(path: str, report: Report) -> Iterator[Column]:
    """Yield a column for each run of a report, in the order of their names; raise UsageError if it has none."""
    if not report.questions:
        hint = "To compare a run with these values, run: rag-eval score --baseline FILE"
        raise UsageError(f"{path} has no questions, and runs are compared question by question. {hint}")
    cases: dict[str | None, dict[str, Question]] = {}
    for case in report.questions:
        cases.setdefault(case.run, {})[case.qid] = case
    for run in sorted(cases, key=lambda run: run or ""):
        yield Column("", path, run, cases[run], report.contracts, tuple(gated(report)), report.statistics)


def _named(columns: list[Column]) -> list[Column]:
    """Return the columns under their shortest distinct names: by run, otherwise by file, numbered if files agree."""
    for names in zip(*map(_names, columns), strict=True):
        if len(set(names)) == len(names):
            return [column._replace(name=name) for column, name in zip(columns, names, strict=True)]
    return [column._replace(name=f"{_names(column)[-1]} ({index})") for index, column in enumerate(columns, 1)]


def _names(column: Column) -> tuple[str, str, str]:
    base = os.path.basename(column.source)  # noqa: PTH119 - pathlib costs start-up time
    stem, run = base.split(".")[0] or base, column.run
    if run is None:
        return stem, column.source, column.source
    return run, f"{stem}:{run}", f"{column.source}:{run}"
