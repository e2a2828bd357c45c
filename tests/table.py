"""Tests over tables: one test runs every row and lists the rows that failed."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_PARAM = type(pytest.param())
SHOWN_LINES = 12
"""Lines shown of the failure of one row."""


def each_row(
    names: str | Sequence[str],
    rows: Iterable[object],
    ids: Sequence[str] | Callable[[object], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each row of a table, in place of `pytest.mark.parametrize` for tables of hundreds of rows.

    Takes the same arguments as `parametrize`. Fails once, with the name and the failure of every row that failed.
    All rows share the test's fixtures, so a test that changes a fixture needs `parametrize`.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table, labels = [], []
    for index, row in enumerate(rows):
        named = isinstance(row, _PARAM)
        values = row.values if named else (row,) if len(columns) == 1 else tuple(row)  # type: ignore[attr-defined, arg-type]
        table.append(values)
        labels.append(row.id if named and row.id else _label(values, index, ids))  # type: ignore[attr-defined]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(*args: object, **fixtures: object) -> None:
            failures = []
            for label, row in zip(labels, table, strict=True):
                try:
                    test(*args, **fixtures, **dict(zip(columns, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the failures of all rows are listed
                    failures.append(f"[{label}] {_short(error)}")
            assert table, "the table has no rows"
            if failures:
                pytest.fail(f"{len(failures)} of {len(table)} rows failed:\n" + "\n".join(failures), pytrace=False)

        fixtures = [parameter for parameter in signature.parameters.values() if parameter.name not in columns]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _label(row: tuple[object, ...], place: int, ids: Sequence[str] | Callable[[object], object] | None) -> str:
    if ids is None:
        return "-".join(repr(value) for value in row)[:120]
    return "-".join(str(ids(value)) for value in row) if callable(ids) else str(ids[place])


def _short(error: BaseException) -> str:
    lines = f"{type(error).__name__}: {error}".splitlines()
    return "\n    ".join(lines[:SHOWN_LINES])
