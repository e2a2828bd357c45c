"""Options of a run, which every command and the action give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rag_eval.engines.options import DEFAULT_EXECUTION, ExecutionOptions


class Options(NamedTuple):
    """What to score. An empty path falls back on the gates file, then on the usual places."""

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
    is_found: bool = False
    """The gates file was found, not named by the caller: the base branch's pyproject.toml may name another."""
    held: Mapping[str, bytes] = {}
    """What is read in place of the files of these names: stdin, and rows that are given as objects."""


def headline(cutoffs: Sequence[int], own: int) -> int:
    """Return the k of labels and diagnosis: the policy's, unless other cutoffs are asked for."""
    return own if not cutoffs or own in cutoffs else max(cutoffs)
