"""The worked examples of a metric, as docs and ``explain`` show them: read off tests/examples by tools/generate.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Example(NamedTuple):
    """What a case does under a metric, and why: ``scores``, ``1/2 at k = 3``, ``one of two gold ids is retrieved``.

    ``case`` is the case itself (gold and trace, or run), kept for the first one that has a score.
    """

    verb: str
    score: str
    because: str
    case: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.score} when {self.because}" if self.score else f"{self.verb} when {self.because}"


def examples_of(rows: Iterable[Mapping[str, Any]]) -> list[Example]:
    """The examples of a metric's rows, in their order."""
    found: list[Example] = []
    for row in rows:
        shows = row["score"] is not None and not any(one.case for one in found)
        found.append(_example(row)._replace(case=_case(row) if shows else None))
    return found


def _example(row: Mapping[str, Any]) -> Example:
    if row["score"] is None:
        return Example("does not apply", "", row["because"])
    cut = f" at k = {row['k']}" if "k" in row else ""
    return Example("scores", _score(row["score"]) + cut, row["because"])


def _case(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("gold", "trace", "run", "settings") if name in row}


def _score(score: bool | float | list[Any]) -> str:
    if not isinstance(score, list):
        return f"{float(score):.5g}"
    if isinstance(score[1], bool):
        return f"{score[0]:.5g}, to be {'high' if score[1] else 'low'},"
    numerator, denominator = score
    return f"{numerator}/{denominator}" if 0 < numerator < denominator else str(numerator // denominator)
