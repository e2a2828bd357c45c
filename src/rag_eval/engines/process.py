"""Ranges of a large file, scored by processes that are forked once the gold is there: nothing of it is sent to them.

The file is opened once: every process reads the very bytes whose digest the parent takes meanwhile. A range that no
child delivers, because it was killed or met a defect, is scored by the parent: what went wrong goes wrong again here,
where it can be said.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import sys
from contextlib import closing, contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector

from rag_eval.engines._cores import usable
from rag_eval.engines._work import Piece, Work, merged, score_range
from rag_eval.files.part import Local, Range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rag_eval.engines import Task
    from rag_eval.engines._work import Scorer
    from rag_eval.files.source import Digest

_HEAD = 64 << 10
_LEAST, _MOST = 2 << 20, 128 << 20  # bytes of a range: a child holds what one comes to
_ROUNDS = 2  # ranges a child, of what is left of the file: at the end they are short, and none keeps others waiting
_MOST_RANGES = 1_000  # their numbers have to fit into a pipe, be it as small as one page
_BLOCK = 1 << 20
_NUMBER, _FRAME = struct.Struct("<I"), struct.Struct("<IQ")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(task: Task) -> Scorer | None:
    """The scorer of the whole file; None where it is packed, not JSON Lines, or there is but one core or no fork."""
    jobs = task.how.jobs or usable()
    if jobs < 2 or not _may_fork():
        return None
    source = task.reader.open(task.path)
    if source is None:
        return task.work.scorer.fresh()
    with source:
        if source.plain is None or source.first_byte == b"[":
            return None
        return _run(task, Local(source.plain.fileno()), source.size, jobs)


def shares(size: int, jobs: int) -> list[Range]:
    """A file of ``size`` bytes in ranges, long ones first."""
    least = max(_LEAST, size // _MOST_RANGES + 1)
    most, begin, found = max(_MOST, least), 0, []
    while begin < size:
        step = min(max((size - begin) // (jobs * _ROUNDS), least), most)
        found.append(Range(begin, min(begin + step, size)))
        begin += step
    return found


def _run(task: Task, file: Local, size: int, jobs: int) -> Scorer:
    hashing = _Hashing(file, task.digests.of("trace", task.path))
    # The first rows tell the first long list, mostly, and have everything loaded that the children need.
    head = score_range(task.work, task.path, file, Range(0, _HEAD))
    work = task.work._replace(pool=head.pool)

    @contextmanager
    def pieces(work: Work, cuts: list[Range]) -> Iterator[Iterator[Piece]]:
        def score(number: int) -> Piece:
            return score_range(work, task.path, file, cuts[number])

        with closing(_Children(score, len(cuts), jobs)) as children:
            yield children.pieces(hashing.step)

    task.how.watch.begin(size)
    scorer = merged(work, task.reader, task.path, shares(size, jobs), pieces, task.how.watch)
    while not task.reader.ledger.problems and hashing.step():
        pass
    return scorer


def _may_fork() -> bool:
    """Whether this is a process of one thread on a system where such a one may be forked safely."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - start-up time
    except OSError:
        return False


class _Hashing:
    """The digest of a file, taken in steps while there is nothing else to do."""

    def __init__(self, file: Local, digest: Digest) -> None:
        self._file, self._digest, self._place = file, digest, 0

    def step(self) -> bool:
        """Take the next block; whether there was one."""
        block = self._file.at(self._place, _BLOCK)
        self._digest.update(block)
        self._place += len(block)
        return bool(block)


class _Children:
    """Processes that take the next number from a pipe, and send what ``score`` makes of it through one each."""

    def __init__(self, score: Callable[[int], Piece], count: int, jobs: int) -> None:
        self._score, self._count = score, count
        self._queue, numbers = os.pipe()
        self._pids: list[int] = []
        self._open: dict[int, bytearray] = {}
        try:
            os.write(numbers, b"".join(map(_NUMBER.pack, range(count))))
            os.close(numbers)
            for _ in range(min(jobs, count)):
                self._fork()
        except BaseException:
            self.close()
            raise

    def pieces(self, idle: Callable[[], bool]) -> Iterator[Piece]:
        """The pieces in the order of their numbers; ``idle`` does a step of other work, or says that there is none."""
        found: dict[int, Piece] = {}
        with DefaultSelector() as selector:
            for pipe in self._open:
                selector.register(pipe, EVENT_READ)
            for number in range(self._count):
                while number not in found and self._open:
                    for key, _ in selector.select(0 if idle() else None):
                        found.update(self._received(key.fd))
                        if key.fd not in self._open:
                            selector.unregister(key.fd)
                yield found.pop(number) if number in found else self._score(number)

    def close(self) -> None:
        """Leave no child behind, at work or not."""
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        for pipe in (self._queue, *self._open):
            os.close(pipe)
        self._pids, self._open = [], {}

    def _fork(self) -> None:
        receiver, sender = os.pipe()
        # A signal must find either a process without the child, or a child that is known.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._live(sender, receiver)
            self._pids.append(pid)
            self._open[receiver] = bytearray()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(sender)

    def _live(self, sender: int, receiver: int) -> None:
        """A child's life. It never returns into the parent's code, and says nothing: the parent will."""
        try:
            gc.disable()  # to walk the gold would be to copy it
            for known in _SIGNALS:
                signal.signal(known, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            for pipe in (receiver, *self._open):
                os.close(pipe)  # else it would not be noticed that the parent is gone
            while number := os.read(self._queue, _NUMBER.size):
                _send(sender, _NUMBER.unpack(number)[0], self._score)
        finally:
            os._exit(0)

    def _received(self, pipe: int) -> Iterator[tuple[int, Piece]]:
        data, buffer = os.read(pipe, _BLOCK), self._open[pipe]
        buffer += data
        while len(buffer) >= _FRAME.size:
            number, size = _FRAME.unpack_from(buffer)
            if len(buffer) < _FRAME.size + size:
                break
            # Written by our own child: nothing else can write into this pipe.
            yield number, pickle.loads(memoryview(buffer)[_FRAME.size : _FRAME.size + size].tobytes())  # noqa: S301
            del buffer[: _FRAME.size + size]
        if not data:
            os.close(pipe)
            del self._open[pipe]


def _send(pipe: int, number: int, score: Callable[[int], Piece]) -> None:
    data = pickle.dumps(score(number), pickle.HIGHEST_PROTOCOL)
    left = memoryview(_FRAME.pack(number, len(data)) + data)
    while left:
        left = left[os.write(pipe, left) :]
