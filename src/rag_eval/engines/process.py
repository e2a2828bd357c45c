"""Ranges of a large file, scored by processes that are forked once the gold is there: nothing of it is sent to them.

The file is opened once: every process reads the very bytes whose digest the parent takes meanwhile. The last range is
taken first: the last trace of a question counts, so that none before it has to be scored.
"""

from __future__ import annotations

from contextlib import closing, contextmanager

from rag_eval.engines._children import MOST, Children, may_fork
from rag_eval.engines._cores import usable
from rag_eval.engines._work import Piece, Work, merged, score_range
from rag_eval.files.part import Local, Range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_eval.engines import Task
    from rag_eval.engines._work import Scorer
    from rag_eval.files.source import Digest

_HEAD = 64 << 10
_LEAST, _MOST = 2 << 20, 64 << 20  # bytes of a range: a child holds what one comes to
_ROUNDS, _MOST_ROUNDS = 2, 16  # ranges a child, of what is left of the file and of all of it: the last ones are short
_BLOCK = 1 << 20


def run(task: Task) -> Scorer | None:
    """The scorer of the whole file; None where it is packed, not JSON Lines, or there is but one core or no fork."""
    jobs = task.how.jobs or usable()
    if jobs < 2 or not may_fork():
        return None
    source = task.reader.open(task.path)
    if source is None:
        return task.work.scorer.fresh()
    with source:
        if source.plain is None or source.is_array:
            return None
        return _run(task, Local(source.plain.fileno()), source.size, jobs)


def shares(size: int, jobs: int) -> list[Range]:
    """A file of ``size`` bytes in ranges, of which the last ones are long: they are taken first."""
    least = max(_LEAST, size // min(jobs * _MOST_ROUNDS, MOST) + 1)
    most, end, found = max(_MOST, least), size, []
    while end:
        begin = max(end - min(max(end // (jobs * _ROUNDS), least), most), 0)
        found.append(Range(begin, end))
        end = begin
    return found[::-1]


def _run(task: Task, file: Local, size: int, jobs: int) -> Scorer:
    hashing = _Hashing(file, task.digests.of("trace", task.path) if task.digests.taken else None)
    # The first rows tell the first long list, mostly, and have everything loaded that the children need.
    head = score_range(task.work, task.path, file, Range(0, _HEAD))
    work = task.work._replace(pool=head.pool)

    @contextmanager
    def pieces(work: Work, cuts: list[Range]) -> Iterator[Iterator[tuple[int, Piece]]]:
        behind: set[int] = set()  # each process has its own

        def score(number: int) -> Piece:
            return score_range(work, task.path, file, cuts[number], behind)

        with closing(Children(score, range(len(cuts))[::-1], jobs)) as children:
            yield children.pieces(hashing.step)

    task.how.watch.begin(size)
    scorer = merged(work, task.reader, task.path, shares(size, jobs), pieces, task.how.watch)
    while not task.reader.ledger.problems and hashing.step():
        pass
    return scorer


class _Hashing:
    """The digest of a file, taken in steps while there is nothing else to do; none where none is wanted."""

    def __init__(self, file: Local, digest: Digest | None) -> None:
        self._file, self._digest, self._place = file, digest, 0

    def step(self) -> bool:
        """Take the next block; whether there was one."""
        if self._digest is None:
            return False
        block = self._file.at(self._place, _BLOCK)
        self._digest.update(block)
        self._place += len(block)
        return bool(block)
