"""A part of a file, between any two of its bytes, as the whole lines that begin in it.

Cut a file anywhere, however often: every line is in one part, and in one part alone.
"""

from __future__ import annotations

import os

from rag_eval.files.source import BOM, Source
from rag_eval.typed import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_eval.files.lines import Lines
    from rag_eval.files.source import Reader

_BLOCK = 64 * 1024


class File(Protocol):
    """What can be read anywhere, by several at a time."""

    def at(self, place: int, size: int) -> bytes:
        """At most ``size`` bytes from ``place`` on; none at the end of the file."""


class Local(NamedTuple):
    """An open file of this machine."""

    number: int

    def at(self, place: int, size: int) -> bytes:
        """At most ``size`` bytes from ``place`` on; none at the end of the file."""
        return os.pread(self.number, size, place)


class Range(NamedTuple):
    """The lines that begin at ``start`` or after, and before ``end``, in bytes from 0."""

    start: int
    end: int

    def within(self, file: File) -> Range:
        """Where these lines stand: from the first byte of the first one to the last byte of the last one."""
        return Range(_line_start(file, self.start), _line_start(file, self.end))


def ranges(size: int, step: int) -> list[Range]:
    """A file of ``size`` bytes in ranges of ``step`` bytes, the last one shorter."""
    return [Range(start, min(start + step, size)) for start in range(0, size, step)]


class Part(Source):
    """The lines of a range. Their numbers count from the first of them; ``count`` says how many were read."""

    def __init__(self, path: str, reader: Reader, file: File, cut: Range) -> None:
        self.count, self._first = 0, cut.start == 0
        super().__init__(path, reader, _Window(file, *cut.within(file)), None)  # type: ignore[arg-type]

    @property
    def small(self) -> bool:
        """A part is one of many lines."""
        return False

    @property
    def cut(self) -> bool:
        """Whether reading ended before the part did."""
        return self._cut

    def batches(self) -> Iterator[Lines]:
        """Lines by the block, as those of a whole file."""
        for batch in super().batches():
            self.count = batch.first + batch.count - 1
            yield batch

    def _begin(self) -> None:
        # What a file is, its first bytes say; in the middle the same bytes mean nothing.
        if self._first:
            self._head = self._head.removeprefix(BOM)


class _Window:
    """The bytes between two places of a file."""

    def __init__(self, file: File, start: int, end: int) -> None:
        self._file, self._place, self._end = file, start, end

    def read(self, size: int) -> bytes:
        block = self._file.at(self._place, min(size, self._end - self._place)) if self._place < self._end else b""
        self._place += len(block)
        return block

    def close(self) -> None:
        """The file is its owner's to close."""


def _line_start(file: File, place: int) -> int:
    """Where the first line begins that begins at ``place`` or after; the end of the file where there is none."""
    if place == 0:
        return 0
    place -= 1
    while block := file.at(place, _BLOCK):
        found = block.find(b"\n")
        if found >= 0:
            return place + found + 1
        place += len(block)
    return place
