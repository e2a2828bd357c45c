"""What is made when it is first needed: patterns, and properties."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


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


if TYPE_CHECKING:
    from functools import cached_property

    lazy = cached_property
else:

    class lazy:  # noqa: N801 - used as a decorator, like property
        """A property computed at its first use; ``functools.cached_property`` takes a lock for that before 3.12."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, owned: object | None, owner: type) -> Any:
            if owned is None:
                return self
            value = owned.__dict__[self._name] = self._compute(owned)
            return value
