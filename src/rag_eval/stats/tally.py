"""Scores that add, and the folds that make one number of them.

A tally is a multiset of scores. Tallies add in any order and grouping, so that any distribution of the work gives the
same number. A score is ``True`` or ``False``, a ratio ``(numerator, denominator)`` of whole numbers, a count, or a
float. All except floats are folded exactly; floats are summed by ``math.fsum`` and rounded to twelve decimals, so that
the last bits of a platform's arithmetic decide no verdict. A labelled score is ``(score, whether it should be high)``,
without a mean: see :mod:`rag_eval.scoring.aggregations`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import fsum, lcm
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

Ratio = tuple[int, int]
Labelled = tuple[float, bool]
Score = bool | Ratio | int | float | Labelled
JsonScore = float | Labelled
Tally = Counter[Score]
DECIMALS = 12
_FEWEST_DECIMALS, _MOST_DECIMALS = 3, 60


class Value(NamedTuple):
    """A metric's value over ``n`` cases; ``number`` is None if it applies to none.

    ``hits`` counts the ones of a 0/1 metric.
    """

    number: Fraction | float | None
    n: int
    hits: int | None = None

    @property
    def as_float(self) -> float | None:
        """Return the number as a float."""
        return None if self.number is None else float(self.number)

    @property
    def exact(self) -> str | None:
        """Return the number as a ratio of whole numbers, if it is one."""
        return str(self.number) if isinstance(self.number, Fraction) else None


def tally(scores: Iterable[Score | None]) -> Tally:
    """Return the multiset of the scores that apply."""
    counted = Counter(scores)
    counted.pop(None, None)
    return counted  # type: ignore[return-value]


def weighted_counts(items: Sequence[T], counts: Iterable[int]) -> Counter[T]:
    """Return the multiset of items with counts, in which an item may occur several times."""
    counted = Counter(items)  # most items usually have the count 1: they are counted at once
    for item, count in zip(items, counts, strict=True):
        if count != 1:
            counted[item] += count - 1
    return counted


def mean(scores: Tally) -> Value:
    """Return the mean: exact for 0/1 and ratios, rounded to :data:`DECIMALS` if a score is a float."""
    n = scores.total()
    if not n:
        return Value(None, 0)
    if any(type(score) is float for score in scores):
        return Value(round(fsum(as_float(score) * count for score, count in scores.items()) / n, DECIMALS), n)
    by_denominator: Counter[int] = Counter()
    numerator: Any
    denominator: Any
    for score, count in scores.items():
        numerator, denominator = score if isinstance(score, tuple) else (int(score), 1)
        by_denominator[denominator] += numerator * count
    common = lcm(*by_denominator)
    total = sum([part * (common // denominator) for denominator, part in by_denominator.items()])
    hits = scores[True] if all(type(score) is bool for score in scores) else None
    return Value(Fraction(total, common * n), n, hits)


def as_float(score: Score) -> float:
    """Return a score as a number; not for labelled ones."""
    return score[0] / score[1] if isinstance(score, tuple) else float(score)


def json_score(score: Score) -> JsonScore:
    """Return a score as in reports: a number, or a labelled score unchanged."""
    if isinstance(score, tuple) and isinstance(score[1], bool):
        return score[0], score[1]
    return as_float(score)


def json_scores(tally: Tally) -> Counter[JsonScore]:
    """Return a multiset of scores as in reports: 1/1 and 2/2 are 1."""
    scores: Counter[JsonScore] = Counter()
    for score, count in tally.items():
        scores[json_score(score)] += count
    return scores


def as_fraction(number: Fraction | float) -> Fraction:
    """Return the number for comparisons: fractions unchanged, floats by their shortest decimal."""
    return number if isinstance(number, Fraction) else Fraction(repr(number))


def round_for_display(number: Fraction, condition: Callable[[Fraction], object], least: int = _FEWEST_DECIMALS) -> str:
    """Return a number with at least ``least`` decimals, and enough of them for the same result of ``condition``."""
    for decimals in range(least, _MOST_DECIMALS):
        rounded = round(number, decimals)
        if condition(rounded) == condition(number):
            whole, rest = divmod(int(rounded * 10**decimals), 10**decimals)
            return f"{whole}.{rest:0{decimals}d}" if decimals else str(whole)
    return str(number)
