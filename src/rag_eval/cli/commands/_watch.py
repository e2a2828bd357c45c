"""Scoring again whenever a file changes, until Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable

from rag_eval.cli.error_handling import guarded

_PAUSE = 0.5


def watch(score: Callable[[], int], files: Callable[[], Iterable[str]]) -> int:
    """Score, and again after each change of ``files``; Ctrl-C ends it with the last exit code."""
    code = 0
    try:
        while True:
            before = _states(files())
            code = guarded(score)
            sys.stdout.write("\nWatching for changes; Ctrl-C ends.\n")
            sys.stdout.flush()
            while _states(files()) == before:
                time.sleep(_PAUSE)
            sys.stdout.write("\n")
    except KeyboardInterrupt:
        return code


def _states(files: Iterable[str]) -> dict[str, tuple[int, int] | None]:
    """Return when each file was written, and how large it is; None for one that is not there."""
    found: dict[str, tuple[int, int] | None] = {}
    for path in files:
        try:
            state = os.stat(path)  # noqa: PTH116 - pathlib costs start-up time
            found[path] = state.st_mtime_ns, state.st_size
        except OSError:
            found[path] = None
    return found
