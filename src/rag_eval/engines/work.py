"""The scoring of a trace file: as a stream, or in byte ranges by one of :data:`rag_eval.engines.ENGINES`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from rag_eval.cases.pairing import QuestionIndex
from rag_eval.common.digests import Digests
from rag_eval.common.progress import SILENT, Watched
from rag_eval.contract import Limits
from rag_eval.engines import ENGINES, ExecutionOptions
from rag_eval.errors import UsageError
from rag_eval.readers.problems import ProblemCollector, Unreadable
from rag_eval.readers.ranges import ByteRange, File, ProblemMerger, RangeProblemCollector, RangeProblems, RangeSource
from rag_eval.readers.source import Digest, Reader, large
from rag_eval.readers.trace_file import pair_finder, read_traces, trace_lines
from rag_eval.scoring.scorer import OutcomeLog, PairTrace, Scorer

_SETTLE = 1 << 16  # traces, until they replace earlier ones


class Work(NamedTuple):
    """All inputs of scoring except the traces. It can be sent to another process or another machine.

    ``scorer`` has seen no trace. ``is_complete`` is true if all of the gold was readable.
    """

    scorer: Scorer
    questions: QuestionIndex
    limits: Limits
    is_complete: bool


class RangeResult(NamedTuple):
    """The outcomes and the problems of a range."""

    log: OutcomeLog
    problems: RangeProblems


def score_stream(work: Work, reader: Reader, path: str, digest: Digest | None) -> Scorer:
    """Score a trace file, read as a stream."""
    scorer, pair = work.scorer.empty_copy(), _pair(work, reader.ledger, path)
    for traces in read_traces(reader, path, digest):
        scorer.add(traces, pair)
        if len(scorer.log) >= _SETTLE:
            scorer.settle()
    return scorer


def score_range(work: Work, path: str, file: File, lines: ByteRange, answered: Sequence[int] = b"") -> RangeResult:
    """Score the lines that begin in a range of ``file``, named ``path`` in reports.

    ``answered`` tells for each item whether a trace after the range answers it.
    """
    ledger, scorer = RangeProblemCollector(), work.scorer.empty_copy()
    reader = Reader(ledger, work.limits._replace(lines=sys.maxsize))
    try:
        source = RangeSource(path, reader, file, lines)
    except (OSError, Unreadable) as error:
        ledger.problem(path, 0, "", f"cannot be read: {error}", "Check the disk, or write the file again.")
        return RangeResult(scorer.log, ledger.close(0, cut_off=True))
    pair = _pair(work, ledger, path)
    for traces in trace_lines(reader, path).blocks(source):
        scorer.add(traces, pair, answered)
    return RangeResult(scorer.log, ledger.close(source.count, cut_off=source.is_cut_off))


def merge(work: Work, reader: Reader, path: str, results: Iterable[RangeResult]) -> Scorer:
    """Return the scorer of a whole file from the results of its ranges, as if it had read the file itself."""
    scorer, problems = work.scorer.empty_copy(), ProblemMerger(reader.ledger, path, work.limits)
    for result in results:
        scorer.merge(result.log, problems.lines)
        if not problems.add(result.problems):
            break
    return scorer


def _pair(work: Work, ledger: ProblemCollector, path: str) -> PairTrace:
    return pair_finder(work.questions, ledger, path, is_complete=work.is_complete)


LARGE = 4 << 20
"""Bytes of a file from which it is cut into ranges: to have further processes takes 60 ms of processor time."""


class Task(NamedTuple):
    """A trace file to be scored; ``digests`` is None if the digest of its bytes is not needed."""

    work: Work
    reader: Reader
    path: str
    digests: Digests | None
    execution: ExecutionOptions


def score_file(task: Task) -> Scorer:
    """Return the scorer of a trace file; raise UsageError or MissingExtra if the engine is unavailable."""
    execution = task.execution
    if execution.engine not in ENGINES:
        raise UsageError(f"unknown engine '{execution.engine[:40]}'. There are: {', '.join(ENGINES)}")
    if execution.scheduler and execution.engine != "dask":
        raise UsageError("--scheduler works only with dask. Add --engine dask, or remove --scheduler")
    try:
        return _in_ranges(task) or score_stream(task.work, task.reader, task.path, _digest(task))
    finally:
        execution.watch.end()


def _in_ranges(task: Task) -> Scorer | None:
    """Return the scorer of a file that can be split into ranges; None for small, packed and other files."""
    is_dask = task.execution.engine == "dask"
    if task.path in task.reader.contents or not (is_dask or large(task.path, LARGE)):
        return None
    source = task.reader.open(task.path)
    if source is None:
        return task.work.scorer.empty_copy()
    with source:
        if source.plain is None or source.is_array:
            return None
        scorer: Scorer = import_module(ENGINES[task.execution.engine]).run(task, source.plain, source.size)
        return scorer


def _digest(task: Task) -> Any:
    digest = task.digests.of("trace", task.path) if task.digests else None
    if task.execution.watch is SILENT:
        return digest
    try:
        task.execution.watch.begin(os.stat(task.path).st_size)  # noqa: PTH116 - a path may be of bytes that are no UTF-8
    except (OSError, ValueError):  # reading it reports the error
        return digest
    return Watched(digest, task.execution.watch)
