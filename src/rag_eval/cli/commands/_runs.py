"""Runs named on the command line, each a report.json or a trace file, as columns of a comparison."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.analysis.runs import Column
    from rag_eval.gates.results import Question
    from rag_eval.readers.source import Reader
    from rag_eval.run.options import Options


class Read(NamedTuple):
    """The runs of all files in their order, and what reading them had to say."""

    columns: list[Column]
    notes: list[str]


def read_runs(paths: Sequence[str], options: Options) -> Read:
    """The runs of report.json files and trace files; the latter are scored under ``options``.

    InputError with the problems of the first file that cannot be read.
    """
    found: list[Column] = []
    notes: list[str] = []
    for path in paths:
        found += _split(path, _scored(path, options, notes))
    return Read(_named(found), notes)


def columns_of(reports: Sequence[Report]) -> list[Column]:
    """Return the runs of reports, called run 1, run 2 and so on."""
    found = [column for number, one in enumerate(reports, 1) for column in _split(f"run {number}", one)]
    return _named(found)


def place_of(columns: Sequence[Column], name: str | None) -> int:
    """The place of the run called ``name`` (by its name, its run field or its file), of the first where none is."""
    if name is None:
        return 0
    by_name = [place for place, one in enumerate(columns) if one.name == name]
    found = by_name or [place for place, one in enumerate(columns) if name in (one.run, one.source)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(quoted(one.name, 40) for one in columns[:10])
    raise UsageError(f"--base {quoted(name)} names {len(found) or 'none'} of the runs. They are: {names}")


def _scored(path: str, options: Options, notes: list[str]) -> Report:
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.source import Reader
    from rag_eval.readers.validation import kind_of, unpacked

    reader = Reader(Ledger(), root=options.root)
    kind = kind_of(reader, path)
    reader.ledger.stop_on_problems()
    if kind == "report":
        return _report(reader, path)
    if unpacked(path).endswith((".json", ".yml", ".yaml")):
        raise UsageError(f"{path} is no report.json of rag-eval score. Traces are JSON Lines: name them .jsonl")
    return _traces(path, options, notes)


def _report(reader: Reader, path: str) -> Report:
    from rag_eval.readers.report_file import read_report
    from rag_eval.rendering.json_file import Questions, from_json

    value = read_report(reader, path, Questions().made)
    reader.ledger.stop_on_problems()
    report = from_json(value or {})
    check_scores(path, report)
    return report


def check_scores(path: str, report: Report) -> None:
    """UsageError where a score of a report.json is none that its metric can give: the file was written by hand."""
    from rag_eval.analysis.score_bounds import impossible

    wrong = impossible(report.questions)
    if wrong:
        raise UsageError(f"{path}: {wrong}. Score the run again")


def _traces(path: str, options: Options, notes: list[str]) -> Report:
    from rag_eval.run.inputs import load_inputs, open_policy
    from rag_eval.run.scored import score_run

    reader, policy, digests = open_policy(options._replace(trace=path))
    # What a run is compared with is said on the command line.
    alone = policy._replace(baseline="", baseline_trace="", must_pass=())
    report = score_run(load_inputs(options, reader, alone, digests)).report
    notes += [f"{note.file}: {note.message}" for note in reader.ledger.notes]
    notes += [
        f"{path}: {number} {name} trace(s)"
        for name in ("duplicate", "unknown")
        if (number := getattr(report.completeness, name))
    ]
    return report


def _split(path: str, report: Report) -> Iterator[Column]:
    """A column for each run of a report, in the order of their names; UsageError where it has none."""
    from rag_eval.analysis.history import gated
    from rag_eval.analysis.runs import Column

    if not report.questions:
        hint = "Hold a run against its values alone with: rag-eval score --baseline FILE"
        raise UsageError(f"{path} holds no questions, and runs are compared question by question. {hint}")
    cases: dict[str | None, dict[str, Question]] = {}
    for case in report.questions:
        cases.setdefault(case.run, {})[case.qid] = case
    for run in sorted(cases, key=lambda run: run or ""):
        yield Column("", path, run, cases[run], report.contracts, tuple(gated(report)), report.statistics)


def _named(columns: list[Column]) -> list[Column]:
    """The columns under the shortest names that tell them apart: by run, else by file, numbered where that is alike."""
    for names in zip(*map(_names, columns), strict=True):
        if len(set(names)) == len(names):
            return [one._replace(name=name) for one, name in zip(columns, names, strict=True)]
    return [one._replace(name=f"{_names(one)[-1]} ({place})") for place, one in enumerate(columns, 1)]


def _names(column: Column) -> tuple[str, str, str]:
    base = os.path.basename(column.source)  # noqa: PTH119 - pathlib costs start-up time
    stem, run = base.split(".")[0] or base, column.run
    if run is None:
        return stem, column.source, column.source
    return run, f"{stem}:{run}", f"{column.source}:{run}"
