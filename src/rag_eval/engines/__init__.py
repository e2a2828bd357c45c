"""The scoring of a trace file: as a stream, or in byte ranges by one of :data:`rag_eval.engines.options.ENGINES`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple

from rag_eval.common.digests import Digests
from rag_eval.engines.options import ENGINES, ExecutionOptions
from rag_eval.engines.progress import SILENT, Watched
from rag_eval.engines.work import Work, score_stream
from rag_eval.errors import UsageError
from rag_eval.readers.source import Reader, large
from rag_eval.scoring.scorer import Scorer

__all__ = ["Task", "Work", "score"]

LARGE = 4 << 20
"""Bytes of a file from which it is cut into ranges: to have further processes takes 60 ms of processor time."""


class Task(NamedTuple):
    """A trace file to be scored."""

    work: Work
    reader: Reader
    path: str
    digests: Digests
    execution: ExecutionOptions


def score(task: Task) -> Scorer:
    """Return what holds the scored cases of a trace file. UsageError, MissingExtra if the engine cannot be had."""
    execution = task.execution
    if execution.engine not in ENGINES:
        raise UsageError(f"unknown engine '{execution.engine[:40]}'. There are: {', '.join(ENGINES)}")
    if execution.scheduler and execution.engine != "dask":
        raise UsageError("a scheduler is dask's: say --engine dask too, or leave --scheduler out")
    try:
        return _in_ranges(task) or score_stream(task.work, task.reader, task.path, _digest(task))
    finally:
        execution.watch.end()


def _in_ranges(task: Task) -> Scorer | None:
    """The scorer of a file that can be cut into ranges; None for small, packed and other files."""
    is_dask = task.execution.engine == "dask"
    if task.path in task.reader.held or not (is_dask or large(task.path, LARGE)):
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
    digest = task.digests.of("trace", task.path)
    if task.execution.watch is SILENT:
        return digest
    try:
        task.execution.watch.begin(os.stat(task.path).st_size)  # noqa: PTH116 - a path may be of bytes that are no UTF-8
    except (OSError, ValueError):  # reading will say what is wrong
        return digest
    return Watched(digest, task.execution.watch)
