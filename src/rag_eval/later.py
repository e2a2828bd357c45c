"""Patterns that are compiled when they are first needed."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Later:
    """A regular expression that is compiled at its first use.

    For those that few runs need, or few texts get to, past the cheap looks before them: to compile all of them takes
    longer than to read a small run.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern, self._flags = pattern, flags
        self._compiled: re.Pattern[str] | None = None

    def _now(self) -> re.Pattern[str]:
        self._compiled = self._compiled or re.compile(self.pattern, self._flags)
        return self._compiled

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As the compiled pattern's."""
        return self._now().finditer(text)

    def findall(self, text: str) -> list[str]:
        """As the compiled pattern's; for patterns with at most one group."""
        return self._now().findall(text)

    def search(self, text: str) -> re.Match[str] | None:
        """As the compiled pattern's."""
        return self._now().search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """As the compiled pattern's."""
        return self._now().match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As the compiled pattern's."""
        return self._now().fullmatch(text)

    def sub(self, into: str | Callable[[re.Match[str]], str], text: str) -> str:
        """As the compiled pattern's."""
        return self._now().sub(into, text)

    def split(self, text: str) -> list[str]:
        """As the compiled pattern's; for patterns without groups."""
        return self._now().split(text)
