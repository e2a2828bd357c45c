"""Sums of scores over groups of cases, of many columns in one pass.

Cases may be millions, of which most share their scores with others. What such a case scores in all columns is written
as one whole number, with so many digits for each column that no sum overflows them: to add these is to add all columns.
Scores are taken to fifteen decimals, and their sums are exact, so that no order of them changes any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.stats.tally import DECIMALS, weighed

if TYPE_CHECKING:
    from rag_eval.stats.tally import Shown

    Scored = Sequence[Shown | None]
    Total = tuple[float, int]

_ONE = 10**15


def totals(scores: Scored, sizes: Sequence[int]) -> Counter[Total]:
    """How many groups have which sum, to twelve decimals, of how many scores; groups of none are left out.

    ``scores`` are those of one group after another, None where there is none; ``sizes`` say how many each group has.
    """
    applies = [score is not None for score in scores]
    return _counted(_summed(_whole(scores), sizes), _summed(applies, sizes), [1] * len(sizes))


class Sums:
    """The same of many columns. Columns that hold anything but numbers are left out.

    ``columns`` hold what cases score, each set of scores once; ``cases`` says at which place of them that of each case
    stands, one group after another.
    """

    def __init__(self, columns: Mapping[str, Scored], cases: Iterable[int], sizes: Sequence[int]) -> None:
        self._digits: dict[str, _Digits] = {}
        most, width, written = max(sizes, default=0), 0, []
        for name, scores in columns.items():
            if not any(isinstance(score, tuple) for score in scores):
                self._digits[name], own = _digits(scores, most, width)
                width = self._digits[name].end
                written.append(own)
        packed = [int.from_bytes(b"".join(row)) for row in zip(*written, strict=True)]
        found = Counter(_summed(map(packed.__getitem__, cases), sizes) if packed else ())
        self._found, self._counts = [one.to_bytes(width) for one in found], list(found.values())

    def totals(self, name: str) -> Counter[Total]:
        """Those of a column."""
        if name not in self._digits:
            return Counter()
        least, begin, middle, end = self._digits[name]
        sizes = [int.from_bytes(one[middle:end]) for one in self._found]
        above = [int.from_bytes(one[begin:middle]) for one in self._found]
        return _counted([own + least * size for own, size in zip(above, sizes, strict=True)], sizes, self._counts)


class _Digits(NamedTuple):
    """The bytes of a column: from ``begin`` how much scores are above the least, from ``middle`` how many there are."""

    least: int
    begin: int
    middle: int
    end: int


def _digits(scores: Scored, most: int, begin: int) -> tuple[_Digits, list[bytes]]:
    """A column after ``begin``, with room for the sums of ``most`` scores, and what stands there for each of them."""
    numbers = _whole(scores)
    least = min(0, min(numbers, default=0))
    above = [0 if score is None else number - least for number, score in zip(numbers, scores, strict=True)]
    middle = begin + _width(max(above, default=0) * most)
    end = middle + _width(most)
    written = [
        number.to_bytes(middle - begin) + (score is not None).to_bytes(end - middle)
        for number, score in zip(above, scores, strict=True)
    ]
    return _Digits(least, begin, middle, end), written


def _width(most: int) -> int:
    return (most.bit_length() + 7) // 8


def _whole(scores: Scored) -> list[int]:
    return [0 if score is None else round(score * _ONE) for score in scores]  # type: ignore[arg-type]


def _summed(numbers: Iterable[int], sizes: Iterable[int]) -> list[int]:
    rest = iter(numbers)
    return [sum(islice(rest, size)) for size in sizes]


def _counted(sums: Sequence[int], sizes: Sequence[int], counts: Iterable[int]) -> Counter[Total]:
    found: Counter[Total] = Counter()
    for (total, size), count in weighed(list(zip(sums, sizes, strict=True)), counts).items():
        if size:
            found[round(total / _ONE, DECIMALS), size] += count
    return found
