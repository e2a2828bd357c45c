"""Options of a run, from commands, the library and the action: every command loads them, but not the metrics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from msgspec import Struct

from rag_eval.common.escaping import quoted
from rag_eval.engines import DEFAULT_EXECUTION, ExecutionOptions
from rag_eval.errors import UsageError

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_MOST = 999_999


class Options(Struct, frozen=True):
    """The inputs of a run. An empty path means the one in the gates file, otherwise the default path."""

    gold: str = ""
    trace: str = ""
    gates: str = ""
    cutoffs: tuple[int, ...] = ()
    root: str | None = None
    """No link may lead out of this folder; None means the folder of the named file."""
    folder: str = ""
    """The folder of the usual places if there is no gates file."""
    baseline: str = ""
    """Replaces the baseline of the gates file."""
    perspectives: tuple[str, ...] = ()
    """Measure and judge only these; empty means all."""
    suite: str = "full"
    """``full``, or ``smoke`` or ``smoke:N`` for a part of the questions."""
    execution: ExecutionOptions = DEFAULT_EXECUTION
    by: tuple[str, ...] = ()
    """Gold fields to cut the metrics by, besides those of the gates file."""
    verdicts: str = ""
    """Replaces the verdicts of the gates file."""
    is_discovered: bool = False
    """The gates file was found, not named by the caller: the base branch's pyproject.toml may name another."""
    contents: Mapping[str, bytes] = {}
    """What is read in place of the files of these names: stdin, and rows that are given as objects."""


def headline(cutoffs: Sequence[int], default: int) -> int:
    """Return the k of labels and diagnosis: the policy's, unless other cutoffs are requested."""
    return default if not cutoffs or default in cutoffs else max(cutoffs)


def as_cutoffs(stated: object) -> tuple[int, ...]:
    """Return one or several whole numbers from 1, ascending, each once; none for None."""
    several: Iterable[Any] = stated if isinstance(stated, Iterable) and not isinstance(stated, str) else [stated]
    numbers = set()
    for item in several if stated is not None else ():
        try:
            number = 0 if isinstance(item, bool) else index(item)
        except TypeError:
            number = 0
        if not 1 <= number <= _MOST:
            raise UsageError(f"k: {quoted(item, 40)} is not a whole number from 1 to {_MOST}. Write 5 or [1, 3, 5]")
        numbers.add(number)
    return tuple(sorted(numbers))


def as_path(stated: PathLike, what: str, default: str | None = None) -> str:
    """Return a path, or ``default`` for an empty one; without a default it is refused, as is another type."""
    if not isinstance(stated, (str, bytes, os.PathLike)):
        raise UsageError(f"{what}: expected a path, but got {type(stated).__name__}. Name a file")
    text = os.fsdecode(stated)
    if not text and default is None:
        raise UsageError(f"{what}: the path is empty. Name a file")
    return text or default or ""
