"""What a threshold asks of n cases: "0.867 of 30 means 27 of 30"."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Literal, NamedTuple


class Asked(NamedTuple):
    """A threshold in cases: at least (``min``) or at most (``max``) ``cases`` of ``n``.

    ``exact`` says that the threshold is just that share; where it is not, n cases cannot express it.
    """

    cases: int
    n: int
    exact: bool


def expressible(threshold: Decimal | Fraction, n: int, direction: Literal["min", "max"]) -> Asked:
    """The count of n cases that a threshold on a rate asks for."""
    share = Fraction(threshold) * n
    return Asked(ceil(share) if direction == "min" else floor(share), n, share.denominator == 1)
