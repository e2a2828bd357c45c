"""Writes the failed cases of a run beside one another, for ``rag-eval score --save-trace``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rag_eval.analysis import failed_cases
from rag_eval.cases.case import Case
from rag_eval.cli.commands._shared import write_data
from rag_eval.contract import Trace
from rag_eval.errors import UsageError
from rag_eval.readers.gold_file import read_entries
from rag_eval.readers.problems import Ledger
from rag_eval.readers.trace_file import read_trace_rows
from rag_eval.run.inputs import open_policy

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Policy
    from rag_eval.gates.results import Question
    from rag_eval.readers.source import Reader
    from rag_eval.run.options import Options

FOLDER, FILE = "traces", "failed.jsonl"
_FIRST = b'{"kind":"' + failed_cases.KIND.encode() + b'"'


def save(report: Report, options: Options, folder: str) -> str:
    """Write one line for each failed case; what was written and where, in a sentence.

    The traces are read a second time, as a stream: what is held are the failed cases' lines of the report, not their
    rows. UsageError where a file is in the way that is none of these.
    """
    path = Path(folder) / FILE
    _check(path)
    reader, policy, _ = open_policy(options)
    cases = failed_cases.failed(report)
    lines = _lines(report, cases, reader._replace(ledger=Ledger()), policy)
    write_data(path, (msgspec.json.encode(line) + b"\n" for line in lines))
    return f"{len(cases)} failed case{'s' if len(cases) != 1 else ''} of {len(report.questions)} written to {path}"


def _lines(report: Report, cases: list[Question], reader: Reader, policy: Policy) -> Iterator[dict[str, Any]]:
    """In the order of the traces, then those without one."""
    entries = {gold.qid: (gold, row) for gold, row in read_entries(reader, policy.gold)}
    gates = failed_cases.gated(report)
    by_line = {case.trace_line: case for case in cases if case.trace_line}
    for trace, row in read_trace_rows(reader, policy.trace) if by_line else ():
        question = by_line.get(trace.line)
        if question is not None:
            gold, gold_row = entries[question.qid]
            rows = failed_cases.Rows(gold_row, row)
            yield failed_cases.details(Case(gold, trace, policy.settings), question, gates, rows)
    for question in cases:
        if not question.trace_line:
            gold, gold_row = entries[question.qid]
            case = Case(gold, Trace.missing(question.qid, question.run or ""), policy.settings)
            yield failed_cases.details(case, question, gates, failed_cases.Rows(gold_row, None))


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            first = file.read(len(_FIRST))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or '').lower()}") from None
    if first not in (b"", _FIRST):
        raise UsageError(f"{path} holds something else than failed cases. Name another folder: --save-trace DIR")
