"""Compare runs, which are reports or files of them or of traces."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rag_eval.analysis import Report
from rag_eval.analysis.history import Repeats, gated_metrics, repeats
from rag_eval.analysis.runs import Column, SideBySide, labels_are_comparable, shared, side_by_side
from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.files import Digests
from rag_eval.common.paths import nearest_gates
from rag_eval.errors import UsageError
from rag_eval.gates.questions import Question
from rag_eval.readers.report_file import check_scores, read_report
from rag_eval.readers.source import checked_reader
from rag_eval.readers.validation import check, file_kind, unpacked
from rag_eval.rendering.comparison import render
from rag_eval.run import Options, PathLike, as_path
from rag_eval.run.inputs import open_policy, read_inputs
from rag_eval.run.scored_run import score_run

MOST = 50


class RunComparison(SideBySide):
    """Runs side by side: every field of ``rag-eval compare --format json``, and ways to show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<RunComparison: {len(self.runs)} runs over {self.cases} cases>"

    def __str__(self) -> str:
        return render(self, "table")

    def _repr_html_(self) -> str:
        """Return the comparison as HTML, for notebooks."""
        from rag_eval.rendering.html import comparison_tables

        return comparison_tables(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        value: dict[str, Any] = json.loads(render(self, "json"))
        return value


def compare(
    *runs: PathLike | Report,
    gold: PathLike = "",
    gates: PathLike = "",
    base: str | None = None,
    metrics: Sequence[str] = (),
    every: bool = False,
    across_judges: bool = False,
) -> RunComparison:
    """Compare runs: reports, or paths of report.json and trace files. The first is the base unless ``base`` names one.

    A run has the name in the field ``run`` of its traces, otherwise that of its file, or ``run 1`` for a report.

    Print the result, or read its ``runs`` and ``metrics``. ``metrics`` names those to compare, ``every``
    compares all; otherwise the metrics that the last run gates are compared. Verdicts of different judges are refused
    unless ``across_judges`` is true.

    Examples:
        >>> folder = "examples/quickstart"
        >>> comparison = compare(f"{folder}/good.jsonl", f"{folder}/bad.jsonl", gold=f"{folder}/gold.jsonl")
        >>> print(comparison)  # doctest: +ELLIPSIS
        2 runs over 14 cases
        ...
    """
    options = Options(as_path(gold, "gold", ""), "", as_path(gates, "gates", nearest_gates()))
    reports = [run for run in runs if not isinstance(run, (str, bytes, os.PathLike))]
    files = [os.fsdecode(run) for run in runs if isinstance(run, (str, bytes, os.PathLike))]
    if wrong := [type(run).__name__ for run in reports if not hasattr(run, "questions")]:
        raise UsageError(f"compare: expected reports or paths, but got {wrong[0]}. Pass score(gold, trace)")
    if reports and files:
        raise UsageError("compare takes reports or paths, not both. Pass the paths of all reports.")
    numbered = [column for number, report in enumerate(reports, 1) for column in _split(f"run {number}", report)]
    columns = _named(numbered) if reports else read_runs(files, options)[0]
    check_number_of_runs(columns, "Pass other reports or paths.")
    return RunComparison(*compare_columns(columns, options, base, metrics, every=every, across_judges=across_judges))


def check_number_of_runs(columns: Sequence[Column], fix: str) -> None:
    """Raise UsageError for too few or too many runs."""
    if not 1 < len(columns) <= MOST:
        raise UsageError(f"compare takes 2 to {MOST} runs, not {len(columns)}. {fix}")


def compare_columns(
    columns: Sequence[Column],
    options: Options,
    base: str | None,
    metrics: Sequence[str],
    *,
    every: bool,
    across_judges: bool,
) -> SideBySide:
    """Compare runs with the one that ``base`` names."""
    index = 0
    if base is not None:  # the name of a run, its run field or its file
        by_name = [index for index, column in enumerate(columns) if column.name == base]
        matches = by_name or [index for index, column in enumerate(columns) if base in (column.run, column.source)]
        if len(matches) != 1:
            known = ", ".join(quoted(column.name, 40) for column in columns[:10])
            raise UsageError(f"--base {quoted(base)} matches {quantity(len(matches), 'run')}. Choose one of: {known}")
        index = matches[0]
    scoring = open_policy(options)[1].score
    return side_by_side(columns, index, scoring, list(metrics), every=every, across_judges=across_judges)


def systems_of(columns: Sequence[Column]) -> list[list[Column]]:
    """Return the systems: the runs of each file are repeats of one system, and so are files of one run each."""
    files = dict.fromkeys(column.source for column in columns)
    if 1 < len(columns) == len(files):
        return [list(columns)]
    systems = [[column for column in columns if column.source == file] for file in files]
    alone = next((runs_of_system[0].source for runs_of_system in systems if len(runs_of_system) == 1), None)
    if alone is not None:
        raise UsageError(f"{alone} has only one run. Give each repeat its own value of the field run.")
    return systems


def repeats_of(columns: Sequence[Column]) -> Repeats:
    """Return pass^k of runs that repeat one system; raise UsageError if they cannot be compared."""
    if not labels_are_comparable(columns):
        fix = "Score them again with the same gates file."
        raise UsageError(f"the runs were scored with different refusal settings. {fix}")
    sources = {column.source for column in columns}
    name = f"{len(columns)} files" if len(sources) > 1 else sources.pop()
    return repeats(name, [(column.name, column.cases) for column in columns], shared(columns))


def read_runs(paths: Sequence[str], options: Options) -> tuple[list[Column], list[str]]:
    """Return the runs of report.json and trace files in their order, scored under ``options``, and notes from reading.

    InputError with the problems of the first file that cannot be read.
    """
    notes: list[str] = []
    return _named([column for path in paths for column in _split(path, _scored(path, options, notes))]), notes


def _scored(path: str, options: Options, notes: list[str]) -> Report:
    with checked_reader() as reader:
        kind = file_kind(reader, path)
    with checked_reader() as reader:
        report = read_report(reader, path) if kind == "report" else None
        if kind == "json":
            check(reader, path, kind)
    if report is not None:
        check_scores(path, report)
        return report
    if unpacked(path).endswith((".json", ".yml", ".yaml")):
        raise UsageError(f"{path} is not a report.json of rag-eval score. If it contains traces, name it .jsonl")
    digests = Digests()
    reader, policy = open_policy(replace(options, trace=path), digests)
    # The command line names the run to compare with.
    policy = replace(policy, baseline="", baseline_trace="", must_pass=())
    report = score_run(read_inputs(options, reader, digests, [policy])).report
    notes += [f"{note.file}: {note.message}" for note in reader.ledger.notes]
    counts = {name: getattr(report.completeness, name) for name in ("duplicate", "unknown")}
    notes += [f"{path}: {quantity(number, f'{name} trace')}" for name, number in counts.items() if number]
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
        yield Column("", path, run, cases[run], report.contracts, tuple(gated_metrics(report)), report.statistics)


def _named(columns: list[Column]) -> list[Column]:
    """Return the columns under their shortest distinct names: by run, otherwise by file, numbered if files agree."""
    for candidates in zip(*map(_names, columns), strict=True):
        if len(set(candidates)) == len(candidates):
            return [column._replace(name=name) for column, name in zip(columns, candidates, strict=True)]
    return [column._replace(name=f"{_names(column)[-1]} ({index})") for index, column in enumerate(columns, 1)]


def _names(column: Column) -> tuple[str, str, str]:
    base = Path(column.source).name
    stem, run = base.split(".")[0] or base, column.run
    if run is None:
        return stem, column.source, column.source
    return run, f"{stem}:{run}", f"{column.source}:{run}"
