"""A finding: something about a run or a pull request that people have to know, whatever the values are."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["error", "warning"]


class Finding(NamedTuple):
    """What was found: a stable code, how grave it is, where, what, and what fixes it.

    An ``error`` fails the run, a ``warning`` is only said. ``file`` is empty and ``line`` 0 where there is no place.
    """

    code: str
    level: Level
    message: str
    fix: str = ""
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """``file:line``, as far as it is known."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: [{self.code}] {self.message}" if self.file else f"[{self.code}] {self.message}"
