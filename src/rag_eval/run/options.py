"""Options of a run, from commands, the library and the action: every command loads them, but not the metrics."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.engines import DEFAULT_EXECUTION, ExecutionOptions
from rag_eval.errors import UsageError

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Rows = PathLike | Iterable[Mapping[str, Any]] | Any
"""A path, rows as mappings, or a data frame of pandas or polars."""
_MOST = 999_999


class Options(NamedTuple):
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


def as_lines(stated: Any, what: str) -> bytes:
    """Return rows as JSON Lines; an empty cell of a data frame is an absent field."""
    rows: Any = stated
    if hasattr(stated, "to_dicts"):  # polars
        rows = stated.to_dicts()
    elif hasattr(stated, "to_dict") and hasattr(stated, "columns"):  # pandas
        rows = stated.to_dict("records")
    if rows is not stated:
        rows = [{name: value for name, value in row.items() if not _is_missing(value)} for row in rows]
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise UsageError(f"{what}: expected a path, a list of dicts or a data frame, but got {type(stated).__name__}")
    return b"".join(as_json(row, f"{what}, row {number}") + b"\n" for number, row in enumerate(rows, 1))


def _is_missing(value: Any) -> bool:
    """Return whether a cell has no value: None, or NaN, NaT and NA, which do not equal themselves."""
    if value is None or hasattr(value, "__len__"):  # arrays are compared element by element
        return value is None
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA is neither true nor false
        return True


def as_json(value: object, where: str) -> bytes:
    """Return a value as JSON; raise UsageError if it has another type than JSON knows."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{where}: cannot be written as JSON ({error}). Give texts, numbers, lists and dicts"
        ) from None


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as plain Python values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


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


def as_path(stated: PathLike, what: str) -> str:
    """Return a path; refuse another type, and an empty path, which would mean the default file."""
    if not isinstance(stated, (str, bytes, os.PathLike)):
        raise UsageError(f"{what}: expected a path, but got {type(stated).__name__}. Name a file")
    text = os.fsdecode(stated)
    if not text:
        raise UsageError(f"{what}: the path is empty. Name a file")
    return text


def as_names(stated: object, what: str) -> tuple[str, ...]:
    """Return one or several names; raise UsageError for another type."""
    several = tuple(stated) if isinstance(stated, Iterable) and not isinstance(stated, str) else (stated,)
    for item in several:
        if not isinstance(item, str):
            raise UsageError(f"{what}: {quoted(item, 40)} is not a name")
    return several
