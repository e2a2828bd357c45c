"""Errors, as values and as the few exceptions that carry them to :func:`rag_eval.common.guard.guarded`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

PASSED, GATE_FAILED, CANNOT_JUDGE, BUG = 0, 1, 2, 3
"""The exit codes: all gates passed; a gate failed; invalid input or configuration; a bug in rag-eval."""


class Problem(NamedTuple):
    """A problem of an input file: where, what is wrong, and how to fix it.

    ``line`` counts from 1; 0 means the whole file. ``where`` is a JSON pointer (``/gold_claim_substr/0``) or a column
    (``column 17``), empty when the whole line or file is meant.
    """

    file: str
    line: int
    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        prefix = f"{self.file}:{self.line}" if self.line else self.file
        parts = [f"{prefix}:", f"{self.where}:" if self.where else "", f"{self.message}.", self.hint]
        return " ".join(part for part in parts if part)


class Note(NamedTuple):
    """A remark on the inputs that is no problem. ``line`` is its first occurrence, 0 for the whole file."""

    file: str
    line: int
    message: str
    times: int = 1

    def __str__(self) -> str:
        again = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.file}:{self.line}: {self.message}{again}" if self.line else f"{self.file}: {self.message}"


Level = Literal["error", "warning"]


class Finding(NamedTuple):
    """A fact about a run or a pull request that people have to know, whatever the values are.

    ``code`` is stable. An ``error`` fails the run, a ``warning`` does not. ``file`` is empty and ``line`` 0 if there is
    no position.
    """

    code: str
    level: Level
    message: str
    fix: str = ""
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """Return ``file:line``, as far as it is known."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: [{self.code}] {self.message}" if self.file else f"[{self.code}] {self.message}"


class RagEvalError(Exception):
    """The base class of expected errors. The message says what is wrong and how to fix it."""

    exit_code = CANNOT_JUDGE

    @property
    def first(self) -> str:
        """Return the first line of the message."""
        return str(self).partition("\n")[0]


class UsageError(RagEvalError):
    """An invalid argument of the command line, the action or the library."""


class MissingExtra(RagEvalError):
    """An optional dependency is not installed; the message names the extra that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        # In double quotes, which also work in the shells of Windows.
        super().__init__(f'{what} needs an optional package. Install it with: pip install "rag-eval-action[{extra}]"')
        self._told = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        """Allow the exception to be pickled by a worker process."""
        return MissingExtra, self._told


_SHOWN_OF_EQUAL = 3


class InputError(RagEvalError):
    """Input files that are invalid or cannot be read.

    ``problems`` has the first hundred, ``more`` counts the rest. It is raised before anything is scored: a file with a
    problem never gives numbers.
    """

    def __init__(self, problems: Sequence[Problem], more: int = 0) -> None:
        super().__init__(problems, more)
        self.problems = tuple(problems)
        self.more = more

    def __str__(self) -> str:
        """Return the number of problems, then one line for each."""
        total = len(self.problems) + self.more
        return "\n".join([f"{total} problem{'s' if total != 1 else ''} in the input", *self.lines()])

    @property
    def first(self) -> str:
        """Return the first problem."""
        return self.lines()[0]

    def lines(self) -> list[str]:
        """Return a line for each problem, as printed on stderr; of one that many rows have, only the first three."""
        equal: dict[Problem, list[Problem]] = {}
        for problem in self.problems:
            equal.setdefault(problem._replace(line=0), []).append(problem)
        lines: list[str] = []
        for same in equal.values():
            cut = len(same) - _SHOWN_OF_EQUAL
            lines += map(str, same if cut <= 1 else same[:_SHOWN_OF_EQUAL])
            lines += [f"… and {cut} more problems like this one."] if cut > 1 else []
        more = f"… and {self.more} more problem{'s' if self.more != 1 else ''} not shown."
        return [*lines, more] if self.more else lines
