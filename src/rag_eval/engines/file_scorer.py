"""The scoring of a trace file: as a stream, or in byte ranges by processes of this machine or another engine."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, BinaryIO, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.common.files import Digests
from rag_eval.common.progress import Watched
from rag_eval.contract import Limits, Trace
from rag_eval.engines import DEFAULT_EXECUTION, ENGINES, ExecutionOptions
from rag_eval.errors import UsageError
from rag_eval.readers.jsonl import JsonLines, pair_finder, read_traces
from rag_eval.readers.problems import ProblemCollector, Unreadable
from rag_eval.readers.source import BOM, Digest, Reader, Remote, SourceFile
from rag_eval.scoring import OutcomeLog, QuestionIndex, Scorer

_SETTLE = 1 << 16  # traces, until they replace earlier ones
LARGE = 4 << 20
"""Bytes of a file from which it is cut into ranges: to have further processes takes 60 ms of processor time."""
_BLOCK = 64 * 1024
_LEAST_STEP, _MOST_STEP = 1 << 20, 4 << 20  # bytes of a range
_ROUNDS = 8  # minimum number of ranges for each process
_HASHED = 1 << 20  # bytes at a time
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
T = TypeVar("T")
_work: Callable[[int], Any]
"""The work of a forked process."""


class Work(Struct, frozen=True):
    """All inputs of scoring except the traces. It can be sent to another process or another machine.

    ``scorer`` has seen no trace. ``is_complete`` is true if all of the gold was readable.
    """

    scorer: Scorer
    questions: QuestionIndex
    limits: Limits
    is_complete: bool


class Task(Struct, frozen=True):
    """A trace file to be scored; ``digests`` is None if the digest of its bytes is not needed."""

    work: Work
    reader: Reader
    path: str
    digests: Digests | None = None
    execution: ExecutionOptions = DEFAULT_EXECUTION


def score_file(task: Task) -> Scorer:
    """Return the scorer of a trace file; raise UsageError or MissingExtra if the engine is unavailable."""
    execution = task.execution
    if execution.engine not in ENGINES:
        raise UsageError(f"unknown engine '{execution.engine[:40]}'. Choose from: {', '.join(ENGINES)}")
    if execution.scheduler and execution.engine != "dask":
        raise UsageError("--scheduler works only with dask. Add --engine dask, or remove --scheduler")
    size = 0
    with suppress(OSError, ValueError):  # reading the file reports the error
        size = Path(task.path).stat().st_size
    try:
        if scorer := _in_ranges(task, size):
            return scorer
        digest = task.digests.of("trace", task.path) if task.digests else None
        watched = Watched(digest, execution.watch, size)
        scorer = task.work.scorer.empty_copy()
        pair = pair_finder(task.work.questions, task.reader.ledger, task.path, is_complete=task.work.is_complete)
        for traces in read_traces(task.reader, task.path, watched):
            scorer.add_traces(traces, pair)
            if len(scorer.log) >= _SETTLE:
                scorer.settle()
        return scorer
    finally:
        execution.watch.end()


def _in_ranges(task: Task, size: int) -> Scorer | None:
    """Return the scorer of a file that can be split into ranges.

    It is None for small and packed files, and for files with problems, which are read again to report them.
    """
    is_dask = task.execution.engine == "dask"
    if task.path in task.reader.contents or not (is_dask or size >= LARGE):
        return None
    with task.reader.silent().open(task.path) as source:
        if source.plain is None or source.is_array:
            return None
        scorer: Scorer | None = import_module(ENGINES[task.execution.engine]).run(task, source.plain, source.size)
        return scorer


class LocalFile(Struct, frozen=True):
    """An open file of this machine, read by several threads at a time."""

    number: int

    def at(self, index: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``index`` on; none at the end of the file."""
        return os.pread(self.number, size, index)


File = LocalFile | Remote
"""A file with random access."""


def update_digest(digest: Digest, file: File) -> None:
    """Update a digest with the bytes of a file."""
    position = 0
    while block := file.at(position, _HASHED):
        digest.update(block)
        position += len(block)


class ByteRange(Struct, frozen=True):
    """The lines that begin at ``start`` or after, and before ``end``, in bytes from 0."""

    start: int
    end: int


def byte_ranges(size: int, step: int) -> list[ByteRange]:
    """Return a file of ``size`` bytes in ranges of ``step`` bytes, the last one shorter. Each line is in one range."""
    return [ByteRange(start, min(start + step, size)) for start in range(0, size, step)]


class RangeSource(SourceFile):
    """The lines of a range, numbered from its first one; ``count`` is how many were read."""

    def __init__(self, path: str, reader: Reader, file: File, lines: ByteRange) -> None:
        self.count, self._is_first = 0, lines.start == 0
        window = _Window(file, _line_start(file, lines.start), _line_start(file, lines.end))
        super().__init__(path, reader, window, None)  # type: ignore[arg-type]

    def line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield lines in blocks, like those of a whole file."""
        for first, lines in super().line_blocks():
            self.count = first + len(lines) - 1
            yield first, lines

    def _begin(self, digest: Digest | None) -> None:  # noqa: ARG002 - the whole file has one
        # Only the first bytes of a file indicate its kind.
        if self._is_first:
            self.head = self.head.removeprefix(BOM)


class _Window:
    """The bytes between two positions of a file, which its caller closes."""

    def __init__(self, file: File, start: int, end: int) -> None:
        self._file, self._position, self._end = file, start, end

    def read(self, size: int) -> bytes:
        size = min(size, self._end - self._position)
        block = self._file.at(self._position, size) if size > 0 else b""
        self._position += len(block)
        return block

    def close(self) -> None:
        """Leave the file open."""


def _line_start(file: File, index: int) -> int:
    """Return the first start of a line at or after ``index``; the end of the file if there is none."""
    if index == 0:
        return 0
    index -= 1
    while block := file.at(index, _BLOCK):
        end = block.find(b"\n")
        if end >= 0:
            return index + end + 1
        index += len(block)
    return index


class RangeResult(Struct, frozen=True):
    """The outcomes of a range, the number of its lines, and the notes on them, which count from its first line."""

    log: OutcomeLog
    lines: int
    ledger: ProblemCollector
    has_problems: bool


def score_range(work: Work, path: str, file: File, lines: ByteRange, answered: Sequence[int] = b"") -> RangeResult:
    """Score the lines that begin in a range of ``file``, named ``path`` in reports.

    ``answered`` tells for each item whether a trace after the range answers it.
    """
    ledger, scorer = ProblemCollector(), work.scorer.empty_copy()
    reader = Reader(ledger, replace(work.limits, lines=sys.maxsize))
    try:
        source = RangeSource(path, reader, file, lines)
    except (OSError, Unreadable):
        return RangeResult(scorer.log, 0, ledger, has_problems=True)
    pair = pair_finder(work.questions, ledger, path, is_complete=work.is_complete)
    for traces in JsonLines(Trace, reader, path).blocks(source):
        scorer.add_traces(traces, pair, answered)
        if ledger.problems:
            break
    return RangeResult(scorer.log, source.count, ledger, bool(ledger.problems))


def merge(task: Task, results: Iterable[RangeResult]) -> Scorer | None:
    """Return the scorer of a whole file from the results of its ranges, as if it had read the file itself.

    It is None if the file has a problem, whose line and number only reading it as a stream tells.
    """
    scorer, lines, parts = task.work.scorer.empty_copy(), 0, list[tuple[ProblemCollector, int]]()
    for result in results:
        if result.has_problems or lines + result.lines > task.work.limits.lines:
            return None
        scorer.merge(result.log, lines)
        parts.append((result.ledger, lines))
        lines += result.lines
    for ledger, before in parts:
        task.reader.ledger.add_notes(ledger, before)
    return scorer


def run(task: Task, opened: BinaryIO, size: int) -> Scorer | None:
    """Return the scorer of a file; None if it has a problem.

    The last range is scored first: the last trace of a question counts, so earlier ones need not be scored. Every
    process reads the file that is already open, so that the digest belongs to the bytes that were scored.
    """
    file, jobs = LocalFile(opened.fileno()), processes(task.execution.jobs)
    cuts = byte_ranges(size, min(max(size // (jobs * _ROUNDS), _LEAST_STEP), _MOST_STEP))
    answered = bytearray(task.work.scorer.size)  # each process has its own

    def score(number: int) -> RangeResult:
        result = score_range(task.work, task.path, file, cuts[number], answered)
        for slot in result.log.runs[""].slots:
            answered[slot] = True
        return result

    task.execution.watch.begin(size)
    results_by_number: dict[int, RangeResult] = {}
    with run_in_processes(score, range(len(cuts))[::-1], jobs) as done:
        if task.digests:
            update_digest(task.digests.of("trace", task.path), file)
        for number, result in done:
            task.execution.watch.advance(cuts[number].end - cuts[number].start)
            if result.has_problems:
                return None
            if jobs > 1:
                task.work.scorer.intern(result.log)
            results_by_number[number] = result
    return merge(task, (results_by_number.pop(number) for number in range(len(cuts))))


def processes(jobs: int) -> int:
    """Return how many processes may work at once: ``jobs``, or the number of cores if that is 0.

    It is 1 unless this process has one thread and runs on a system where forking it is safe.
    """
    jobs = jobs or usable_cores()
    if jobs < 2 or not sys.platform.startswith("linux"):
        return 1
    try:
        threads = len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 1
    return jobs if threads == 1 else 1


def usable_cores(group: str = "/sys/fs/cgroup") -> int:
    """Return the number of cores that this process may use by affinity and by the control group of its container."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # "max" is no number: no limit
        quota, period = Path(group, "cpu.max").read_text("ascii").split()
        cores = min(cores, int(quota) // int(period))
    return max(1, cores)


@contextmanager
def run_in_processes(work: Callable[[int], T], numbers: Sequence[int], jobs: int) -> Iterator[Iterator[tuple[int, T]]]:
    """Start ``work`` on numbers, in their order, and yield each result when it is done.

    Work of a killed or failed process is repeated here, so that its error is raised again in this process.
    """
    if jobs < 2:
        yield ((number, work(number)) for number in numbers)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed  # small files need no processes
    from multiprocessing import get_context

    # A signal must not arrive while processes and threads begin: it would be lost, or leave some behind.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pool = ProcessPoolExecutor(jobs, get_context("fork"), partial(_begin, os.getpid(), work))
        futures = {pool.submit(_do, number): number for number in numbers}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        # The result of a process that failed or was killed is computed here.
        done = ((futures[future], future) for future in as_completed(futures))
        yield ((number, work(number) if future.exception() else future.result()) for number, future in done)
    finally:
        pool.shutdown(cancel_futures=True)


def _do(number: int) -> Any:
    return _work(number)


def _begin(parent: int, work: Callable[[int], Any]) -> None:
    """Set up a new process, which ends when its parent does, for any reason."""
    global _work  # noqa: PLW0603 - it comes by the fork, as it need not be one that can be pickled
    _work = work
    gc.disable()  # a collection would write to the gold's pages, and so copy them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to all: the parent ends the others
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def end_with_parent() -> None:
        while os.getppid() == parent:
            sleep(0.5)
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
