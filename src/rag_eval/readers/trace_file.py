"""A trace file as records, as a stream, each paired with the gold item that it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rag_eval.contract import Trace
from rag_eval.readers.jsonl import JsonLines
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Digest, Reader, SourceFile
from rag_eval.scoring.scorer import PairTrace, QuestionIndex

NO_QID = "Give the trace the qid of the gold item that it answers."


def read_traces(reader: Reader, path: str, digest: Digest | None = None) -> Iterator[list[Trace]]:
    """Yield the valid traces of a file, many at a time."""
    with _opened(reader, path, digest) as source:
        if source:
            yield from trace_lines(reader, path).blocks(source)


def read_trace_rows(reader: Reader, path: str) -> Iterator[tuple[Trace, dict[str, Any]]]:
    """Yield the valid traces of a file, each with its row as it was decoded."""
    with _opened(reader, path, None) as source:
        if source:
            yield from trace_lines(reader, path).rows(source)


def trace_lines(reader: Reader, path: str) -> JsonLines[Trace]:
    """Return a decoder of the lines of a trace file."""
    return JsonLines(Trace, reader.ledger, path, reader.limits.depth)


@contextmanager
def _opened(reader: Reader, path: str, digest: Digest | None) -> Iterator[SourceFile | None]:
    """Yield the source of a trace file, None with a problem if it is unreadable or an array."""
    with reader.open(path, digest) or nullcontext() as source:
        if source and source.is_array:
            hint = "Write one trace per line; jq -c '.[]' does it."
            reader.ledger.problem(path, 1, "", "is a JSON array; traces are JSON Lines", hint)
            source = None
        yield source


def pair_finder(questions: QuestionIndex, ledger: ProblemCollector, path: str, *, is_complete: bool) -> PairTrace:
    """Return a function that finds the qid of a trace of ``path``. A trace without one is a problem.

    If the gold set could not be read completely, it is no problem: the question may be missing.
    """

    def find(trace: Trace) -> str | None:
        qid, wrong = questions.pair(trace, lambda line, message: ledger.note(path, line, message))
        if qid is None and is_complete:
            ledger.problem(path, trace.line, "", wrong, NO_QID)
        return qid

    return find


def pair_traces(traces: Iterable[Trace], find: PairTrace) -> Iterator[Trace]:
    """Yield the traces that answer a gold item, under its qid."""
    for trace in traces:
        qid = find(trace)
        if qid is not None:
            trace.qid = qid
            yield trace
