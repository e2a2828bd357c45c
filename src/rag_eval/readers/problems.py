"""Problems and notes of reading: all problems, and each kind of note once for each file."""

from __future__ import annotations

from collections.abc import Iterable

from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Note, Problem

SHOWN = 100


class Unreadable(Exception):
    """An unreadable file: message and hint, without the file's name."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class ProblemCollector:
    """Collects problems and notes over all files of one call."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.more = 0  # problems that are only counted
        self._notes: dict[tuple[str, str], Note] = {}
        self._unknown_fields: set[tuple[str, str]] = set()

    @property
    def count(self) -> int:
        """Return the number of problems, shown or not."""
        return len(self.problems) + self.more

    @property
    def full(self) -> bool:
        """True if further problems are only counted."""
        return len(self.problems) >= SHOWN

    def problem(self, file: str, line: int, where: str, message: str, hint: str = "") -> None:
        """Record a problem; beyond the first hundred they are only counted."""
        if self.full:
            self.more += 1
        else:
            self.problems.append(Problem(file, line, where, message, hint))

    def replace(self, file: str, problem: Problem) -> None:
        """Replace the problems of a file by one that explains them all."""
        self.problems = [*(known for known in self.problems if known.file != file), problem]
        self.more = 0

    def unknown_field(self, file: str, line: int, parent: str, field: str, fields: Iterable[str]) -> None:
        """Note the first row with a field that the contract lacks, with the known field of a similar name."""
        name = f"{parent}.{field}" if parent else field
        if (file, name) in self._unknown_fields or len(self._unknown_fields) > SHOWN:
            return
        self._unknown_fields.add((file, name))
        hint = did_you_mean(field, sorted(fields))
        self.note(file, line, f"unknown field {quoted(name)} is ignored.{' ' + hint if hint else ''}", times=0)

    def note(self, file: str, line: int, message: str, *, times: int = 1) -> None:
        """Record a note; the same words on the same file are counted under the first line, unless ``times`` is 0.

        After a hundred kinds of note, further kinds become one note for each file.
        """
        if len(self._notes) >= SHOWN and (file, message) not in self._notes:
            message, times = "there are more notes like these", 0
        known = self._notes.get((file, message)) or Note(file, line, message, 0)
        self._notes[file, message] = known._replace(times=known.times + times)

    def add_notes(self, other: ProblemCollector, line: int) -> None:
        """Add the notes on a part of a file that begins after ``line``."""
        for note in sorted(other._notes.values(), key=lambda note: note.line):
            self.note(note.file, note.line + line, note.message, times=note.times)

    @property
    def notes(self) -> list[Note]:
        """Return the notes, sorted so that the order of rows does not matter."""
        notes = sorted(self._notes.values(), key=lambda note: (note.file, note.message))
        return [note._replace(times=max(1, note.times)) for note in notes]

    def stop_on_problems(self) -> None:
        """Raise :class:`InputError` with all problems, if there are any."""
        if self.problems:
            raise InputError(self.problems, self.more)


def did_you_mean(name: str, existing: Iterable[object]) -> str:
    """Return ``Did you mean 'x'?`` if a known name is similar, otherwise an empty text."""
    from difflib import get_close_matches

    names = [item for item in existing if isinstance(item, str)]
    close = get_close_matches(name[:80], names, n=1, cutoff=0.6)
    return f"Did you mean '{close[0]}'?" if close else ""
