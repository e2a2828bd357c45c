"""Byte ranges of a file, each with the whole lines that begin in it, and the merge of their problems.

Every line is in exactly one range, wherever the file is split.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

from rag_eval.contract import Limits
from rag_eval.errors import Problem
from rag_eval.readers.problems import Note, ProblemCollector
from rag_eval.readers.source import BOM, Reader, SourceFile, too_many_lines

_BLOCK = 64 * 1024


class File(Protocol):
    """A file with random access, by several threads at a time."""

    def at(self, index: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``index`` on; none at the end of the file."""


class LocalFile(NamedTuple):
    """An open file of this machine."""

    number: int

    def at(self, index: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``index`` on; none at the end of the file."""
        return os.pread(self.number, size, index)


class ByteRange(NamedTuple):
    """The lines that begin at ``start`` or after, and before ``end``, in bytes from 0."""

    start: int
    end: int


def byte_ranges(size: int, step: int) -> list[ByteRange]:
    """Return a file of ``size`` bytes in ranges of ``step`` bytes, the last one shorter."""
    return [ByteRange(start, min(start + step, size)) for start in range(0, size, step)]


class RangeSource(SourceFile):
    """The lines of a range, numbered from its first one; ``count`` is how many were read."""

    def __init__(self, path: str, reader: Reader, file: File, lines: ByteRange) -> None:
        self.count, self._is_first = 0, lines.start == 0
        window = _Window(file, _line_start(file, lines.start), _line_start(file, lines.end))
        super().__init__(path, reader, window, None)  # type: ignore[arg-type]

    @property
    def is_cut_off(self) -> bool:
        """True if reading ended before the range did."""
        return self._cut

    def line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield lines in blocks, like those of a whole file."""
        for first, lines in super().line_blocks():
            self.count = first + len(lines) - 1
            yield first, lines

    def _begin(self) -> None:
        # Only the first bytes of a file indicate its kind.
        if self._is_first:
            self._head = self._head.removeprefix(BOM)


class RangeProblems(NamedTuple):
    """Problems and notes of a range. Lines count from its own first one; line 0 means the whole file.

    ``further`` are the lines of problems beyond the first hundred. ``ended`` is true if nothing after this range
    counts.
    """

    lines: int
    problems: tuple[Problem, ...] = ()
    further: array[int] = array("Q")
    notes: tuple[Note, ...] = ()
    ended: bool = False


class RangeProblemCollector(ProblemCollector):
    """A ledger that also remembers the lines of problems that it only counts."""

    def __init__(self) -> None:
        super().__init__()
        self._further = array("Q")

    def count_problem(self, line: int) -> None:
        """Count a problem that is not shown."""
        super().count_problem(line)
        self._further.append(line)

    def close(self, lines: int, *, cut_off: bool) -> RangeProblems:
        """Return the problems of a range of so many lines; ``cut_off`` is true if it could not be read to its end."""
        if self.foreign:  # reading stops after a row of another kind
            lines = self._further[-1] if self._further else self.problems[-1].line
        notes = tuple(sorted(self.notes, key=lambda note: note.line))
        return RangeProblems(lines, tuple(self.problems), self._further, notes, cut_off or bool(self.foreign))


class ProblemMerger:
    """Adds the problems of the ranges of a file to a ledger, in order, as if the file had been read whole."""

    def __init__(self, ledger: ProblemCollector, path: str, limits: Limits) -> None:
        self._ledger, self._path, self._limits = ledger, path, limits
        self.lines = 0
        """Lines before the next range."""

    def add(self, part: RangeProblems) -> bool:
        """Add the problems of the next range; return whether anything after it counts."""
        self._add_problems(part)
        for note in part.notes:
            self._ledger.note(self._path, note.line + self.lines, note.message, once=note.once, times=note.times)
        self.lines += part.lines
        if self.lines > self._limits.lines:
            self._ledger.problem(self._path, *too_many_lines(self._limits))
            return False
        return not part.ended

    def _add_problems(self, part: RangeProblems) -> None:
        problems: Iterable[tuple[int, Problem | None]] = [
            *((problem.line, problem) for problem in part.problems),
            *((line, None) for line in part.further),
        ]
        for line, group in groupby(problems, key=itemgetter(0)):
            number = line and line + self.lines
            if (number or self.lines + part.lines) > self._limits.lines:
                return
            if self._ledger.full:  # from then on a refused line counts as one problem
                self._ledger.count_problem(number)
                continue
            for _, problem in group:
                if problem is None:
                    self._ledger.count_problem(number)
                else:
                    self._ledger.problem(self._path, number, *problem[2:])


class _Window:
    """The bytes between two positions of a file."""

    def __init__(self, file: File, start: int, end: int) -> None:
        self._file, self._place, self._end = file, start, end

    def read(self, size: int) -> bytes:
        block = self._file.at(self._place, min(size, self._end - self._place)) if self._place < self._end else b""
        self._place += len(block)
        return block

    def close(self) -> None:
        """Do nothing: the caller owns the file."""


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
