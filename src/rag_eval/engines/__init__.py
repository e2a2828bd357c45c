"""The scoring of a trace file: as a stream, or shared out by one of :data:`rag_eval.how.ENGINES`."""

from __future__ import annotations

import os
from importlib import import_module

from rag_eval.engines._work import Work, score_stream
from rag_eval.errors import UsageError
from rag_eval.files.source import large
from rag_eval.how import ENGINES
from rag_eval.progress import SILENT, Watched
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rag_eval.digests import Digests
    from rag_eval.engines._work import Scorer
    from rag_eval.files.source import Reader
    from rag_eval.how import How

__all__ = ["Task", "Work", "score"]


class Task(NamedTuple):
    """A trace file to be scored."""

    work: Work
    reader: Reader
    path: str
    digests: Digests
    how: How


def score(task: Task) -> Scorer:
    """What holds the scored cases of a trace file. UsageError, MissingExtra where the engine cannot be had."""
    watch = task.how.watch
    try:
        return _shared(task) or score_stream(task.work, task.reader, task.path, _digest(task))
    finally:
        watch.end()


def _shared(task: Task) -> Scorer | None:
    how = task.how
    if how.engine not in ENGINES:
        raise UsageError(f"unknown engine '{how.engine[:40]}'. There are: {', '.join(ENGINES)}")
    if how.scheduler and how.engine != "dask":
        raise UsageError("a scheduler is dask's: say --engine dask too, or leave --scheduler out")
    alone = how.jobs == 1 or not large(task.path, task.work.scorer.least_shared)
    if task.path in task.reader.held or (how.engine == "process" and alone):
        return None
    scorer: Scorer | None = import_module(ENGINES[how.engine]).run(task)
    return scorer


def _digest(task: Task) -> Any:
    digest = task.digests.of("trace", task.path)
    if task.how.watch is SILENT:
        return digest
    try:
        task.how.watch.begin(os.stat(task.path).st_size)  # noqa: PTH116 - pathlib costs start-up time
    except (OSError, ValueError):  # reading will say what is wrong
        return digest
    return Watched(digest, task.how.watch)
