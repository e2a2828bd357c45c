"""Cases of a report with their gold and trace rows, which are read a second time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from rag_eval.analysis import Report
from rag_eval.cases import Case
from rag_eval.common.escaping import quantity
from rag_eval.common.writing import write_data
from rag_eval.contract import Trace
from rag_eval.errors import UsageError
from rag_eval.gates.questions import Question
from rag_eval.readers.gold_file import read_entries
from rag_eval.readers.jsonl import read_trace_rows
from rag_eval.rendering.explanation import KIND, Details, Row, case_details, failed_cases, failed_row, gates_by_column
from rag_eval.rendering.results import by_urgency
from rag_eval.run.inputs import open_policy
from rag_eval.run.options import Options

_UNFOLDED = 1_000


def details_of(report: Report, options: Options) -> Details:
    """Return the first cases of a run for people, failing ones first; the traces are read a second time."""
    cases, gates = by_urgency(report, _UNFOLDED), gates_by_column(report)
    return {
        (question.qid, question.run): case_details(case, question, gates)
        for question, case, *_ in _read_again(options, cases)
    }


def save_failed(report: Report, options: Options, folder: str) -> str:
    """Write one line for each failed case, and return a sentence that names the file.

    The traces are read a second time, as a stream: memory holds the failed cases of the report, not their rows.
    UsageError is raised if another file of that name exists.
    """
    path, fix = Path(folder) / "failed.jsonl", "Choose another folder: --save-trace DIR"
    beginning = b'{"kind":"' + KIND.encode() + b'"'
    try:
        with path.open("rb") as file:
            first = file.read(len(beginning))
    except FileNotFoundError:
        first = b""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or '').lower()}. {fix}") from None
    if first not in (b"", beginning):
        raise UsageError(f"{path} is not a file of failed cases. {fix}")
    cases, gates = failed_cases(report), gates_by_column(report)
    lines = (
        failed_row(case, question, gates, gold, trace) for question, case, gold, trace in _read_again(options, cases)
    )
    write_data(path, (msgspec.json.encode(line) + b"\n" for line in lines))
    return f"wrote {path}: {quantity(len(cases), 'failed case')} of {len(report.questions)}"


def _read_again(options: Options, cases: list[Question]) -> Iterator[tuple[Question, Case, Row, Row | None]]:
    """Yield cases with their gold and trace rows: in the order of the traces, then those without a trace."""
    reader, policy = open_policy(options)
    reader = reader.silent()
    entries = {gold.qid: (gold, row) for gold, row in read_entries(reader, policy.gold)}
    by_line = {case.trace_line: case for case in cases if case.trace_line}
    for trace, row in read_trace_rows(reader, policy.trace) if by_line else ():
        question = by_line.get(trace.line)
        if question is not None:
            gold, gold_row = entries[question.qid]
            yield question, Case(gold, trace, policy.settings), gold_row, row
    for question in cases:
        if not question.trace_line:
            gold, gold_row = entries[question.qid]
            case = Case(gold, Trace.missing(question.qid, question.run or ""), policy.settings)
            yield question, case, gold_row, None
