"""Compare runs side by side: values, paired tests, flips, a weighted score. There are no gates: the exit code is 0."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.analysis.history import gated
from rag_eval.analysis.repeats import repeats
from rag_eval.analysis.runs import Column, SideBySide, labels_are_comparable, shared, side_by_side
from rag_eval.cli.commands._shared import add_option, cutoffs, gates_path, remark
from rag_eval.cli.commands.gate import check_scores
from rag_eval.common.escaping import hypertext, quantity, quoted
from rag_eval.errors import UsageError
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import read_report
from rag_eval.readers.source import Reader
from rag_eval.readers.validation import check, file_kind, unpacked
from rag_eval.rendering.json_file import Questions, from_json
from rag_eval.run.inputs import open_policy, read_inputs
from rag_eval.run.options import Options
from rag_eval.run.scored import score_run

Path = str | os.PathLike[str]

if TYPE_CHECKING:
    from rag_eval.analysis.repeats import Repeats
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import Question

EXAMPLES = """\
  rag-eval compare runs/main.jsonl runs/rerank.jsonl
  rag-eval compare eval/baseline.json rag-eval-report/report.json --metric precision,recall@5
  rag-eval compare runs/main.jsonl runs/rerank.jsonl --all
  rag-eval compare runs/small.jsonl runs/large.jsonl --base large --pareto
  rag-eval compare runs/five-times.jsonl --repeats
"""
FORMATS = ("table", "markdown", "html", "json", "csv")
MOST = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a report.json, or traces; each run in them is a column")
    parser.add_argument("--base", metavar="NAME", help="the run that the others are compared with (default: the first)")
    add_option(parser, "--metric", "M[,M]", "compare only these metrics (default: those with gates in the last run)")
    parser.add_argument("--all", action="store_true", help="compare every metric that all runs have")
    parser.add_argument("--across-judges", action="store_true", help="also compare verdicts of different judges")
    parser.add_argument(
        "--pareto", action="store_true", help="list the runs that no other run beats in quality, cost and latency"
    )
    parser.add_argument(
        "--repeats", action="store_true", help="treat the runs of a file as repeats of one system: pass^k"
    )
    add_option(parser, "--gold", "FILE", "gold set to score traces against")
    add_option(parser, "--gates", "FILE", "gates file with settings, weights and budgets")
    add_option(parser, "--k", "K[,K]", "cutoffs of retrieval metrics (default: 1,3,5,10)", default=(), type=cutoffs)
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default: table)")
    parser.add_argument("--quiet", action="store_true", help="no notes on stderr")


def run(args: argparse.Namespace) -> int:
    """Print the comparison; return 0 if the runs can be compared."""
    if args.repeats and (args.base or args.metric or args.all or args.pareto):
        raise UsageError("--repeats does not compare runs. Remove --base, --metric, --all and --pareto.")
    if args.all and args.metric:
        raise UsageError("--all and --metric cannot be used together. Remove one of them.")
    options = Options(args.gold, "", gates_path(args.gates), args.k)
    columns, notes = _read_runs(args.runs, options)
    remark(dict.fromkeys(notes), quiet=args.quiet)
    sys.stdout.write(_repeated(columns, args.format) if args.repeats else _compared(columns, options, args))
    return 0


class RunComparison(SideBySide):
    """Runs side by side: every field of ``rag-eval compare --format json``, and ways to show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<RunComparison: {len(self.runs)} runs over {self.cases} cases>"

    def __str__(self) -> str:
        from rag_eval.rendering.comparison import render

        return render(self, "table")

    def _repr_html_(self) -> str:
        return f"<pre>{hypertext(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        from rag_eval.rendering.comparison import render

        value: dict[str, Any] = json.loads(render(self, "json"))
        return value


def compare(
    *runs: Path | Report,
    gold: Path = "",
    gates: Path = "",
    base: str | None = None,
    metrics: Sequence[str] = (),
    every: bool = False,
    across_judges: bool = False,
) -> RunComparison:
    """Compare runs: reports, or paths of report.json and trace files. The first is the base unless ``base`` names one.

    Print the result, or read its ``runs`` and ``metrics``. ``metrics`` names those to compare, ``every``
    compares all; otherwise the metrics that the last run gates are compared. Verdicts of different judges are refused
    unless ``across_judges`` is true.

    >>> folder = "examples/quickstart"
    >>> found = compare(f"{folder}/good.jsonl", f"{folder}/bad.jsonl", gold=f"{folder}/gold.jsonl")
    >>> print(found)  # doctest: +ELLIPSIS
    2 runs over 14 cases
    ...
    """
    options = Options(os.fsdecode(gold), "", gates_path(os.fsdecode(gates)))
    reports = [run for run in runs if not isinstance(run, (str, os.PathLike))]
    files = [os.fsdecode(run) for run in runs if isinstance(run, (str, os.PathLike))]
    if wrong := [type(run).__name__ for run in reports if not hasattr(run, "questions")]:
        raise UsageError(f"compare: expected reports or paths, but got {wrong[0]}. Pass score(gold, trace)")
    if reports and files:
        raise UsageError("compare takes reports or paths, not both. Pass the paths of all reports.")
    numbered = [column for number, report in enumerate(reports, 1) for column in _split(f"run {number}", report)]
    columns = _named(numbered) if reports else _read_runs(files, options)[0]
    if not 1 < len(columns) <= MOST:
        raise UsageError(f"compare takes 2 to {MOST} runs, not {len(columns)}. Pass other reports or paths.")
    scoring = open_policy(options)[1].score
    comparison = side_by_side(
        columns, _index_of(columns, base), scoring, list(metrics), every=every, across_judges=across_judges
    )
    return RunComparison(*comparison)


def _compared(columns: Sequence[Column], options: Options, args: argparse.Namespace) -> str:
    from rag_eval.rendering.comparison import render

    if not 1 < len(columns) <= MOST:
        hint = (
            "Name another file, or add --repeats for repeats of one system."
            if len(columns) == 1
            else "Name fewer files."
        )
        raise UsageError(f"compare takes 2 to {MOST} runs, not {len(columns)}. {hint}")
    scoring, only = open_policy(options)[1].score, [name for name in args.metric.split(",") if name]
    base = _index_of(columns, args.base)
    comparison = side_by_side(columns, base, scoring, only, every=args.all, across_judges=args.across_judges)
    if args.pareto and comparison.front is None:
        remark(["--pareto is ignored, because not every run has a quality value"], quiet=args.quiet)
    comparison = comparison if args.pareto else comparison._replace(front=None)
    if args.format == "html":
        from rag_eval.rendering.html.pages import comparison_page  # loaded only for this form, for start-up time

        return comparison_page(comparison)
    return render(comparison, args.format)


def _repeated(columns: Sequence[Column], form: str) -> str:
    from rag_eval.rendering.comparison import render_repeats

    systems = [_repeats_of(system) for system in _systems(columns)]
    if form == "html":
        from rag_eval.rendering.html.pages import repeats_page

        return repeats_page(systems)
    return render_repeats(systems, form)


def _systems(columns: Sequence[Column]) -> list[list[Column]]:
    """Return the systems: the runs of each file are repeats of one system, and so are files of one run each."""
    files = dict.fromkeys(column.source for column in columns)
    if 1 < len(columns) == len(files):
        return [list(columns)]
    systems = [[column for column in columns if column.source == file] for file in files]
    alone = next((runs_of_system[0].source for runs_of_system in systems if len(runs_of_system) == 1), None)
    if alone is not None:
        raise UsageError(f"{alone} has only one run. Give each repeat its own value of the field run.")
    return systems


def _repeats_of(columns: Sequence[Column]) -> Repeats:
    if not labels_are_comparable(columns):
        raise UsageError(
            "the runs were scored with different refusal settings. Score them again with the same gates file."
        )
    qids = shared(columns)
    if not qids:
        raise UsageError("no case has the same gold item in all runs. Score the runs against the same gold set.")
    name = columns[0].source if len({column.source for column in columns}) == 1 else f"{len(columns)} files"
    return repeats(name, [(column.name, column.cases) for column in columns], qids)


def _read_runs(paths: Sequence[str], options: Options) -> tuple[list[Column], list[str]]:
    """Return the runs of report.json and trace files in their order, scored under ``options``, and notes from reading.

    InputError with the problems of the first file that cannot be read.
    """
    columns: list[Column] = []
    notes: list[str] = []
    for path in paths:
        columns += _split(path, _scored(path, options, notes))
    return _named(columns), notes


def _index_of(columns: Sequence[Column], name: str | None) -> int:
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
    kind = file_kind(reader, path)
    reader.ledger.stop_on_problems()
    if kind == "report":
        value = read_report(reader, path, Questions().made)
        reader.ledger.stop_on_problems()
        check_scores(path, report := from_json(value or {}))
        return report
    if kind == "json":
        check(reader, path, kind)
        reader.ledger.stop_on_problems()
    if unpacked(path).endswith((".json", ".yml", ".yaml")):
        raise UsageError(f"{path} is not a report.json of rag-eval score. If it contains traces, name it .jsonl")
    return _scored_traces(path, options, notes)


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
