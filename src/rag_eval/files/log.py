"""What reading a part of a file found, so that the parts together say what reading the whole file says.

A part does not know what stands before it: on which line it begins, how many problems are known already, which fields
have been remarked on. It takes down enough that :class:`Replay` can tell afterwards.
"""

from __future__ import annotations

from array import array
from itertools import groupby, islice

from rag_eval.files.json_lines import MANY_SHAPES, SHAPES
from rag_eval.files.ledger import SHOWN, Ledger
from rag_eval.files.source import too_many_lines
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_eval.errors import Problem
    from rag_eval.files.limits import Limits

    Names = tuple[str, ...]
    Said = tuple[int, str, bool, int]
    """Line, message, whether it is said once a file, and how often it is said in the part."""


class Logged(NamedTuple):
    """The log of a part, closed. Lines count from its own first one; line 0 stands for the file as a whole.

    ``further`` are the lines of problems beyond the first hundred, ``shapes`` the first row of each set of fields
    (line, names, remarks). ``ended`` says that nothing after this part is read.
    """

    lines: int
    problems: tuple[Problem, ...] = ()
    further: array[int] = array("Q")
    notes: tuple[tuple[int, str, int], ...] = ()
    shapes: tuple[tuple[int, Names, Names], ...] = ()
    ended: bool = False


class Log(Ledger):
    """A ledger that also remembers the lines of what it only counts, and of which row it remarks on fields."""

    def __init__(self) -> None:
        super().__init__()
        self._further = array("Q")
        self._said: dict[str, tuple[int, int]] = {}
        self._shapes: list[tuple[int, Names, Names]] = []

    def another(self, line: int) -> None:
        """Count a problem that is not shown."""
        super().another(line)
        self._further.append(line)

    def fields(self, file: str, line: int, names: tuple[str, ...], messages: Iterable[str]) -> None:  # noqa: ARG002
        """Take down what there is to say of the first row with fields of these names."""
        # One more than there is room for: that there are further ones is said too.
        self._shapes.append((line, names, tuple(islice(dict.fromkeys(messages), SHOWN + 1))))

    def note(self, file: str, line: int, message: str, *, once: bool = False, times: int = 1) -> None:  # noqa: ARG002
        """Take down a note; the same words are counted under the first line."""
        first, known = self._said.get(message, (line, 0))
        self._said[message] = first, known + times

    def closed(self, lines: int, *, cut: bool) -> Logged:
        """The log of a part of so many lines; ``cut`` says that it could not be read to its end."""
        notes = tuple((line, message, times) for message, (line, times) in self._said.items())
        ended = cut or bool(self.foreign)
        if self.foreign:  # read no further than to the row of another kind, the last thing to be wrong
            lines = self._further[-1] if self._further else self.problems[-1].line
        return Logged(lines, tuple(self.problems), self._further, notes, tuple(self._shapes), ended)


class Replay:
    """Takes the logs of the parts of a file in their order, and tells a ledger what reading it whole would have."""

    def __init__(self, ledger: Ledger, path: str, limits: Limits) -> None:
        self._ledger, self._path, self._limits = ledger, path, limits
        self._seen: set[Names] = set()
        self.lines = 0
        """Lines before the next part."""

    def take(self, log: Logged) -> bool:
        """Tell what the next part found; whether there is a next one after that."""
        self._tell_problems(log)
        for line, message, once, times in self._said(log):
            self._ledger.note(self._path, line + self.lines, message, once=once, times=times)
        self.lines += log.lines
        if self.lines > self._limits.lines:
            self._ledger.problem(self._path, *too_many_lines(self._limits))
            return False
        return not log.ended

    def _tell_problems(self, log: Logged) -> None:
        found: list[tuple[int, Problem | None]] = [(problem.line, problem) for problem in log.problems]
        found += [(line, None) for line in log.further]
        for line, group in groupby(found, key=lambda one: one[0]):
            number = line and line + self.lines
            if (number or self.lines + log.lines) > self._limits.lines:
                return
            if self._ledger.full:  # a line is one then, whatever is wrong with it
                self._ledger.another(number)
                continue
            for _, problem in group:
                self._tell(problem, number)

    def _tell(self, problem: Problem | None, number: int) -> None:
        if problem is None:
            self._ledger.another(number)
        else:
            self._ledger.problem(self._path, number, *problem[2:])

    def _said(self, log: Logged) -> list[Said]:
        """The notes of a part in the order of their lines: only so many kinds of note are told apart."""
        notes: list[Said] = [(line, message, False, times) for line, message, times in log.notes]
        return sorted([*self._unknown(log), *notes], key=lambda one: one[0])

    def _unknown(self, log: Logged) -> Iterator[Said]:
        for line, names, messages in log.shapes:
            if names in self._seen or len(self._seen) > SHAPES:
                continue
            self._seen.add(names)
            for message in messages if len(self._seen) <= SHAPES else (MANY_SHAPES,):
                yield line, message, True, 1
