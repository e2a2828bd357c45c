"""Rows and gates that are given as objects: the bytes of the files that would say the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from rag_eval.errors import UsageError

Path = str | os.PathLike[str]
Rows = Path | Iterable[Mapping[str, Any]] | Any
"""A path, rows as mappings, or a data frame of pandas or polars."""


def rows_as_lines(stated: Rows, what: str) -> bytes:
    """Return rows as JSON Lines; a cell of a data frame without a value is a field that is not there."""
    rows = stated
    if hasattr(stated, "to_dicts"):  # polars
        rows = [_without_gaps(row) for row in stated.to_dicts()]
    elif hasattr(stated, "to_dict") and hasattr(stated, "columns"):  # pandas
        rows = [_without_gaps(row) for row in stated.to_dict("records")]
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise UsageError(f"{what}: takes a path, a list of dicts or a data frame, not {type(stated).__name__}")
    return b"".join(_dumped(row, f"{what}, row {number}") + b"\n" for number, row in enumerate(rows, 1))


def gates_as_file(stated: Mapping[str, Any]) -> bytes:
    """Return gates as a gates file: a mapping of metrics to bounds, or all that such a file says."""
    whole = stated if {"gates", "version"} & stated.keys() else {"gates": stated}
    return _dumped({"version": 1, **whole}, "gates")


def _without_gaps(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None and not _is_nan(value)}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _dumped(value: object, place: str) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{place}: cannot be written as JSON ({error}). Give texts, numbers, lists and dicts"
        ) from None


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as those of Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no value of JSON")
