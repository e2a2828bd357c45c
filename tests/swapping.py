"""The paired test of two means by all ways of swapping, in fractions: as plainly as it can be said."""

from __future__ import annotations

from fractions import Fraction
from itertools import product


def by_swapping(pairs):
    """The share of all ways of swapping that make the first mean as much the greater one as it is.

    Of pairs that have one score alone what is swapped is what they move the difference: their score less the mean of
    all, over the number of their run's. p is the greater one with and without pairs of two equal scores. Where fewer
    than half of the pairs have both, they alone are swapped.
    """
    either, both = ([pair for pair in pairs if has(score is not None for score in pair)] for has in (any, all))
    if 2 * len(both) < len(either):
        pairs = both
    if not pairs:
        return 1
    sides = [[Fraction(score) for score in side if score is not None] for side in zip(*pairs, strict=True)]
    middle = sum(map(sum, sides)) / sum(map(len, sides))
    moves = [_moved(first, middle, sides[0]) - _moved(second, middle, sides[1]) for first, second in pairs]
    assert sum(moves) == sum(sides[0]) / len(sides[0]) - sum(sides[1]) / len(sides[1])
    changed = [move for (first, second), move in zip(pairs, moves, strict=True) if first != second]
    return max(map(_share, [moves, changed] if len(both) < len(pairs) else [moves]))


def _share(moves):
    ways = [
        sum(sign * move for sign, move in zip(signs, moves, strict=True))
        for signs in product([1, -1], repeat=len(moves))
    ]
    return sum(variant >= ways[0] for variant in ways) / len(ways)


def _moved(score, middle, side):
    return 0 if score is None else (Fraction(score) - middle) / len(side)
