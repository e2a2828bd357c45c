"""The progress of reading files, shown as a line on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, TextIO

_PATIENCE, _PAUSE = 1.0, 0.2  # seconds until the first line, and between two
_BAR = 24
_MB = 1_000_000


class Watch:
    """The progress of reading as a line that is rewritten: share, bar, rate and time left, as ``columns`` allow.

    Without ``out`` nothing is shown.
    """

    def __init__(self, out: TextIO | None, clock: Callable[[], float] = monotonic, columns: int = 79) -> None:
        self._out, self._clock, self._columns = out, clock, columns
        self._total = self._done = 0
        self._began = self._last = 0.0
        self._width = 0  # length of the shown line; blanks erase it on every terminal

    def begin(self, total: int) -> None:
        """Start with the number of bytes that will be read."""
        self._total, self._done = total, 0
        self._began = self._clock()
        self._last = self._began + _PATIENCE - _PAUSE

    def advance(self, size: int) -> None:
        """Add the number of bytes that were read; show the progress from time to time."""
        self._done += size
        now = self._clock()
        if self._out and self._total and now - self._last >= _PAUSE:
            self._last = now
            self._show(self._out, line(self._done, self._total, now - self._began)[: self._columns])

    def end(self) -> None:
        """Wipe the line."""
        if self._out and self._width:
            self._show(self._out, "")
            self._out.write("\r")
            self._out.flush()

    def _show(self, out: TextIO, text: str) -> None:
        out.write(f"\r{text:<{self._width}}")
        out.flush()
        self._width = len(text)


SILENT = Watch(None)  # shows nothing


class Watched:
    """A digest that reports its progress through ``total`` bytes; without a digest, only the progress."""

    def __init__(self, digest: Any | None, watch: Watch, total: int) -> None:
        self._digest, self._watch = digest, watch
        watch.begin(total)

    def update(self, data: bytes, /) -> None:
        """Take the next bytes."""
        if self._digest:
            self._digest.update(data)
        self._watch.advance(len(data))


def line(done: int, total: int, seconds: float) -> str:
    """Return the progress as text: ``42% [########## ] 250 of 600 MB, 96 MB/s, 4 s left``."""
    share = min(done / total, 1)
    rate = done / seconds if seconds else 0
    remaining = f", {_time((total - done) / rate)} left" if rate and done < total else ""
    bar = "#" * int(share * _BAR)
    size = f"{done / _MB:,.0f} of {total / _MB:,.0f} MB, {rate / _MB:,.0f} MB/s"
    return f"{share:4.0%} [{bar:<{_BAR}}] {size}{remaining}"


def watch(*, quiet: bool) -> Watch:
    """Return a watch that shows progress on a terminal; it is silent in logs, if ``quiet``, and in CI."""
    if quiet or os.environ.get("CI") or not sys.stderr.isatty():
        return SILENT
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns - 1
    except (OSError, ValueError):
        columns = 0
    return Watch(sys.stderr, columns=columns or 79)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
