"""What a test may swap: the pairs of scores of a case, or all those of a question that was asked several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

Unit = tuple[tuple[tuple[Any, Any], int], ...]
"""Pairs of scores, in order, each with how many tries at the question have it."""


class Units(Counter["Unit"]):
    """How many units are alike. A Counter of pairs says instead that each case is of a question of its own."""

    def reversed(self) -> Units:
        """Return the units with the runs in the other order."""
        found = Units()
        for unit, count in self.items():
            found[tuple(sorted((((b, a), times) for (a, b), times in unit), key=repr))] += count
        return found


def units_of(pairs: Iterable[tuple[Any, Any]] | Units) -> Units:
    """The units of pairs: themselves, or each pair alone."""
    if isinstance(pairs, Units):
        return pairs
    counted = pairs if isinstance(pairs, Counter) else Counter(pairs)
    return Units({((pair, 1),): count for pair, count in counted.items()})  # type: ignore[misc]
