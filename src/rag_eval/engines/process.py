"""Scoring of byte ranges of a file by processes of this machine, or by this one."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from threading import Thread
from time import sleep
from typing import Any, BinaryIO, TypeVar

from rag_eval.engines.work import LocalFile, RangeResult, Task, byte_ranges, merge, score_range
from rag_eval.scoring.scorer import Scorer

_GROUP = "/sys/fs/cgroup"


def usable_cores(group: str = _GROUP) -> int:
    """Return the number of cores that this process may use by affinity and by the control group of its container."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    for quota_file, period_file in (("cpu.max", "cpu.max"), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):
            quota, period = _words(group, quota_file)[0], _words(group, period_file)[-1]
            cores = min(cores, int(quota) // int(period)) if quota != "-1" else cores  # "max" is no number: no limit
    return max(1, cores)


def _words(group: str, name: str) -> list[str]:
    with open(f"{group}/{name}", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - start-up time
        return file.read().split()


T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_work: Callable[[int], Any]
"""The work of a forked process."""


def may_fork() -> bool:
    """Return whether this process has one thread and runs on a system where forking it is safe."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - a file system of the kernel's
    except OSError:
        return False


def processes(jobs: int) -> int:
    """Return how many processes may work at once: ``jobs``, or the number of cores if that is 0."""
    jobs = jobs or usable_cores()
    return jobs if jobs > 1 and may_fork() else 1


@contextmanager
def run_in_processes(work: Callable[[int], T], numbers: Sequence[int], jobs: int) -> Iterator[Iterator[tuple[int, T]]]:
    """Start ``work`` on numbers, in their order, and yield each result when it is done.

    Work of a killed or failed process is repeated here, so that its error is raised again in this process.
    """
    if jobs < 2:
        yield ((number, work(number)) for number in numbers)
        return
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
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        sleep(0.5)
    os._exit(1)


_LEAST, _MOST = 1 << 20, 4 << 20  # bytes of a range
_ROUNDS = 8  # minimum number of ranges for each process
_BLOCK = 1 << 20


def run(task: Task, opened: BinaryIO, size: int) -> Scorer | None:
    """Return the scorer of a file; None if it has a problem.

    The last range is scored first: the last trace of a question counts, so earlier ones need not be scored. Every
    process reads the file that is already open, so that the digest belongs to the bytes that were scored.
    """
    file, jobs = LocalFile(opened.fileno()), processes(task.execution.jobs)
    cuts = byte_ranges(size, min(max(size // (jobs * _ROUNDS), _LEAST), _MOST))
    answered = bytearray(task.work.scorer.size)  # each process has its own

    def score(number: int) -> RangeResult:
        result = score_range(task.work, task.path, file, cuts[number], answered)
        for slot in result.log.run("").slots:
            answered[slot] = True
        return result

    task.execution.watch.begin(size)
    results_by_number: dict[int, RangeResult] = {}
    with run_in_processes(score, range(len(cuts))[::-1], jobs) as done:
        if task.digests:
            digest, position = task.digests.of("trace", task.path), 0
            while block := file.at(position, _BLOCK):
                digest.update(block)
                position += len(block)
        for number, result in done:
            task.execution.watch.advance(cuts[number].end - cuts[number].start)
            if result.has_problems:
                return None
            if jobs > 1:
                task.work.scorer.intern(result.log)
            results_by_number[number] = result
    return merge(task.work, task.reader, task.path, (results_by_number.pop(number) for number in range(len(cuts))))
