"""Byte ranges of a file, scored by processes of this machine, or by this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from rag_eval.engines import Task
from rag_eval.engines.forked import processes, results
from rag_eval.engines.work import RangeResult, merge, score_range
from rag_eval.readers.ranges import LocalFile, byte_ranges
from rag_eval.scoring.scorer import Scorer

_LEAST, _MOST = 1 << 20, 4 << 20  # bytes of a range
_ROUNDS = 8  # ranges a process, at least
_BLOCK = 1 << 20


def run(task: Task, opened: BinaryIO, size: int) -> Scorer:
    """Return the scorer of a file.

    The last range is scored first: the last trace of a question counts, so that none before it has to be scored. Every
    process reads the file that is open already: its bytes are those whose digest is taken here meanwhile.
    """
    file, jobs = LocalFile(opened.fileno()), processes(task.execution.jobs)
    cuts = byte_ranges(size, min(max(size // (jobs * _ROUNDS), _LEAST), _MOST))
    answered = bytearray(len(task.work.golds))  # each process has its own

    def score(number: int) -> RangeResult:
        result = score_range(task.work, task.path, file, cuts[number], answered)
        for slot in result.log.run("").slots:
            answered[slot] = True
        return result

    task.execution.watch.begin(size)
    found: dict[int, RangeResult] = {}
    with results(score, range(len(cuts))[::-1], jobs) as done:
        if task.digests.taken:
            digest = task.digests.of("trace", task.path)
            for block in _blocks(file):
                digest.update(block)
        for number, result in done:
            task.execution.watch.advance(cuts[number].end - cuts[number].start)
            found[number] = result
    return merge(task.work, task.reader, task.path, (found.pop(number) for number in range(len(cuts))))


def _blocks(file: LocalFile) -> Iterator[bytes]:
    place = 0
    while block := file.at(place, _BLOCK):
        yield block
        place += len(block)
