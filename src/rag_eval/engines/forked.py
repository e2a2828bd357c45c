"""Work shared out over forked processes, so that nothing of what this process holds has to be sent to them."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from threading import Thread
from time import sleep
from typing import Any, TypeVar

from rag_eval.engines.cores import usable

S = TypeVar("S")
T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_work: Callable[[int], Any]
"""The work of a forked process: set before the fork, as it need not be one that can be pickled."""


def may_fork() -> bool:
    """Whether this is a process of one thread on a system where such a one can be forked safely."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - a file system of the kernel's
    except OSError:
        return False


def processes(jobs: int) -> int:
    """Return how many processes may work at once: ``jobs``, or as many as there are cores if that is 0."""
    jobs = jobs or usable()
    return jobs if jobs > 1 and may_fork() else 1


@contextmanager
def results(work: Callable[[int], T], numbers: Sequence[int], jobs: int) -> Iterator[Iterator[tuple[int, T]]]:
    """Start ``work`` on numbers, in their order, and give what comes of each as it is done.

    What no process delivers, because it was killed or met a defect, is done here: what went wrong goes wrong again
    where it can be reported.
    """
    if jobs < 2:
        yield ((number, work(number)) for number in numbers)
        return
    global _work  # noqa: PLW0603 - what a process inherits when it is forked
    _work = work
    # A signal must not come while processes and threads begin: it would be lost, or leave some behind.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pool = ProcessPoolExecutor(jobs, get_context("fork"), partial(_begin, os.getpid()))
        futures = {pool.submit(_do, number): number for number in numbers}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield _as_done(futures, work)
    finally:
        pool.shutdown(cancel_futures=True)


def spread(work: Callable[[S], T], items: Sequence[S], jobs: int) -> list[T]:
    """Return what ``work`` makes of each of the items, in their order, by so many processes."""
    if jobs < 2 or len(items) < 2:
        return list(map(work, items))
    with results(lambda part: list(map(work, items[part::jobs])), range(jobs), jobs) as parts:
        made = dict(parts)
    return [made[place % jobs][place // jobs] for place in range(len(items))]


def _as_done(futures: dict[Future[T], int], work: Callable[[int], T]) -> Iterator[tuple[int, T]]:
    for future in as_completed(futures):
        number = futures[future]
        yield number, work(number) if future.exception() else future.result()


def _do(number: int) -> Any:
    return _work(number)


def _begin(parent: int) -> None:
    """Begin the life of a process, which ends when its parent does, however that ends."""
    gc.disable()  # to walk the gold would be to copy it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all: the parent ends the others
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        sleep(0.5)
    os._exit(1)
