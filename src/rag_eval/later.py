"""Patterns that are compiled when they are first needed."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Later:
    """A regular expression that is compiled at its first use.

    Few texts get past the cheap looks before it, and to compile all of them takes longer than to read a small run.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled: re.Pattern[str] | None = None

    def _now(self) -> re.Pattern[str]:
        self._compiled = self._compiled or re.compile(self.pattern)
        return self._compiled

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As the compiled pattern's."""
        return self._now().finditer(text)

    def search(self, text: str) -> re.Match[str] | None:
        """As the compiled pattern's."""
        return self._now().search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """As the compiled pattern's."""
        return self._now().match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As the compiled pattern's."""
        return self._now().fullmatch(text)
