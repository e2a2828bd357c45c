"""Processes forked from this one, so that nothing of what it holds has to be sent to them.

What no child delivers, because it was killed or met a defect, is done by the parent: what went wrong goes wrong again
here, where it can be said.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import sys
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

MOST = 1_000
"""Numbers of parts have to fit into a pipe, be it as small as one page."""

_BLOCK = 1 << 20
_NUMBER, _FRAME = struct.Struct("<I"), struct.Struct("<IQ")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def may_fork() -> bool:
    """Whether this is a process of one thread on a system where such a one may be forked safely."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - start-up time
    except OSError:
        return False


class Children(Generic[T]):
    """Processes that take the next number from a pipe, and send what ``made`` gives for it through one each.

    Every process takes numbers in the order of ``numbers``, this one too where it has to do what no other delivers.
    """

    def __init__(self, made: Callable[[int], T], numbers: Sequence[int], jobs: int) -> None:
        if len(numbers) > MOST:
            raise ValueError(f"more than {MOST} parts")
        self._made, self._numbers = made, numbers
        self._queue, sender = os.pipe()
        self._pids: list[int] = []
        self._open: dict[int, bytearray] = {}
        try:
            os.write(sender, b"".join(map(_NUMBER.pack, numbers)))
            os.close(sender)
            with suppress(OSError):  # no more processes to be had: those there are do it, or the parent
                for _ in range(min(jobs, len(numbers))):
                    self._fork()
        except BaseException:
            self.close()
            raise

    def pieces(self, idle: Callable[[], bool]) -> Iterator[tuple[int, T]]:
        """The pieces with their numbers, as they come; ``idle`` does a step of other work, or says there is none."""
        left = dict.fromkeys(self._numbers)
        with DefaultSelector() as selector:
            for pipe in self._open:
                selector.register(pipe, EVENT_READ)
            while left and self._open:
                for key, _ in selector.select(0 if idle() else None):
                    for number, piece in self._received(key.fd):
                        del left[number]
                        yield number, piece
                    if key.fd not in self._open:
                        selector.unregister(key.fd)
        for number in left:
            yield number, self._made(number)

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
        except OSError:
            os.close(receiver)
            raise
        finally:
            os.close(sender)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

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
                _send(sender, _NUMBER.unpack(number)[0], self._made)
        finally:
            os._exit(0)

    def _received(self, pipe: int) -> Iterator[tuple[int, T]]:
        data, buffer = os.read(pipe, _BLOCK), self._open[pipe]
        buffer += data
        while len(buffer) >= _FRAME.size:
            number, size = _FRAME.unpack_from(buffer)
            if len(buffer) < _FRAME.size + size:
                break
            with memoryview(buffer) as whole, whole[_FRAME.size : _FRAME.size + size] as piece:
                # Written by our own child: nothing else can write into this pipe.
                value = pickle.loads(piece)  # noqa: S301
            yield number, value
            del buffer[: _FRAME.size + size]
        if not data:
            os.close(pipe)
            del self._open[pipe]


def _send(pipe: int, number: int, made: Callable[[int], object]) -> None:
    data = pickle.dumps(made(number), pickle.HIGHEST_PROTOCOL)
    left = memoryview(_FRAME.pack(number, len(data)) + data)
    while left:
        left = left[os.write(pipe, left) :]
