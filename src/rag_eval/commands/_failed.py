"""Writes the failed cases of a run beside one another, for ``rag-eval score --save-trace``."""

from __future__ import annotations

from pathlib import Path

from rag_eval import app, failed
from rag_eval.case import Case
from rag_eval.commands._shared import write_data
from rag_eval.errors import UsageError
from rag_eval.files.ledger import Ledger
from rag_eval.files.rows import read_gold, read_traces
from rag_eval.model import Trace
from rag_eval.quick_json import orjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rag_eval.app import Options
    from rag_eval.files.source import Reader
    from rag_eval.judging.gates import Policy
    from rag_eval.judging.results import Question
    from rag_eval.report import Report

FOLDER, FILE = "traces", "failed.jsonl"
_FIRST = b'{"kind":"' + failed.KIND.encode() + b'"'


def save(report: Report, options: Options, folder: str) -> str:
    """Write one line for each failed case; what was written and where, in a sentence.

    The traces are read a second time, as a stream: what is held are the failed cases' lines of the report, not their
    rows. UsageError where a file is in the way that is none of these.
    """
    path = Path(folder) / FILE
    _check(path)
    reader, policy, _ = app.open_policy(options)
    cases = failed.failed(report)
    lines = _lines(report, cases, reader._replace(ledger=Ledger()), policy)
    write_data(path, (orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))
    return f"{len(cases)} failed case{'s' if len(cases) != 1 else ''} of {len(report.questions)} written to {path}"


def _lines(report: Report, cases: list[Question], reader: Reader, policy: Policy) -> Iterator[dict[str, Any]]:
    """In the order of the traces, then those without one."""
    kept: dict[str, dict[str, Any]] = {}
    golds, gates = read_gold(reader, policy.gold, kept=kept), failed.gated(report)
    by_line = {case.trace_line: case for case in cases if case.trace_line}
    for line, row in read_traces(reader, policy.trace) if by_line else ():
        question = by_line.get(line)
        if question is not None:
            trace = Trace.from_row(row, question.qid, line)
            rows = failed.Rows(kept[question.qid], row)
            yield failed.details(Case(golds[question.qid], trace, policy.settings), question, gates, rows)
    for question in cases:
        if not question.trace_line:
            case = Case(golds[question.qid], Trace.missing(question.qid, question.run), policy.settings)
            yield failed.details(case, question, gates, failed.Rows(kept[question.qid], None))


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
