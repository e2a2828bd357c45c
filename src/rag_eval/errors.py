"""What can go wrong, as values and as the few exceptions that carry them to :mod:`rag_eval.cli.error_handling`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PASSED, GATE_FAILED, CANNOT_JUDGE, BUG = 0, 1, 2, 3
"""The exit codes: all gates passed; a gate failed; input or configuration cannot be judged; a defect of rag-eval."""


class Problem(NamedTuple):
    """One thing that is wrong with an input: where, what, and what to do.

    ``line`` counts from 1, 0 means the file as a whole. ``where`` is a JSON pointer (``/gold_claim_substr/0``) or a
    column (``column 17``), empty when the whole line or file is meant.
    """

    file: str
    line: int
    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        parts = [f"{place}:", f"{self.where}:" if self.where else "", f"{self.message}.", self.hint]
        return " ".join(part for part in parts if part)


class RagEvalError(Exception):
    """rag-eval cannot go on; the message says why and what to do. ``exit_code`` is what the process ends with."""

    exit_code = CANNOT_JUDGE

    @property
    def first(self) -> str:
        """Its first line."""
        return str(self).partition("\n")[0]


class UsageError(RagEvalError):
    """The command line, an action input or an argument of the library asks for something that cannot be."""


class MissingExtra(RagEvalError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        # In double quotes, which the shells of Windows take for quotes too.
        super().__init__(f'{what} needs an optional package. Install it with: pip install "rag-eval-action[{extra}]"')
        self._told = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        """So that it comes back from another process."""
        return MissingExtra, self._told


class InputError(RagEvalError):
    """Files that cannot be judged.

    ``problems`` holds the first hundred, ``more`` counts the rest. Raised before anything is scored: a file with a
    problem never gives numbers.
    """

    def __init__(self, problems: Sequence[Problem], more: int = 0) -> None:
        super().__init__(problems, more)
        self.problems = tuple(problems)
        self.more = more

    def __str__(self) -> str:
        """Return how many problems there are, and below that a line each."""
        total = len(self.problems) + self.more
        return "\n".join([f"{total} problem{'s' if total != 1 else ''} in the input", *self.lines()])

    @property
    def first(self) -> str:
        """The first problem."""
        return self.lines()[0]

    def lines(self) -> list[str]:
        """One line a problem, ready for stderr."""
        shown = [str(problem) for problem in self.problems]
        return [*shown, f"… and {self.more} more problem(s) not shown."] if self.more else shown
