"""The paired test of any figure of a run: what swapping whole pairs between the two runs would do to its difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from rag_eval.stats.resampling import chance, enough, key_of, p_value
from rag_eval.stats.swap_units import units_of

if TYPE_CHECKING:
    from rag_eval.stats.swap_units import Unit, Units

    Pairs = list[tuple[Any, Any]]
    Statistic = Callable[[Sequence[Any]], float | None]

DRAWS = 1_999
"""Each draw takes the figure of both runs anew. The least p is 0.0005 where the level asks for no more."""
_LAST_BITS = 1e-12


def swap(
    pairs: Iterable[tuple[Any, Any]] | Units, statistic: Statistic, seed: bytes, draws: int = DRAWS, level: float = 1.0
) -> float:
    """The permutation test that the first run's figure is the greater one.

    As :func:`rag_eval.stats.paired.sign_flip`, with any ``statistic`` of a run's scores in place of the mean; a draw in
    which a run has no figure counts as a hit. ValueError where a run has none as observed.
    """
    ordered = [_listed(unit) for unit in sorted(units_of(pairs).elements(), key=repr)]
    observed = _difference(list(chain.from_iterable(ordered)), statistic)
    if observed is None:
        raise ValueError("one of the runs has no figure at all")
    least = observed - _LAST_BITS
    found = (_difference(drawn, statistic) for drawn in _drawn(ordered, key_of(seed), enough(draws, level)))
    return p_value((one is None or one >= least for one in found), draws)


def _listed(unit: Unit) -> Pairs:
    return [pair for pair, times in unit for _ in range(times)]


def _drawn(ordered: Sequence[Pairs], key: bytes, draws: int) -> Iterator[Pairs]:
    swapped = [[pair[::-1] for pair in unit] for unit in ordered]
    for number in range(draws):
        bits = int.from_bytes(chance(key, b"swap", number, (len(ordered) + 7) // 8), "big")
        units = (swapped[place] if bits >> place & 1 else unit for place, unit in enumerate(ordered))
        yield list(chain.from_iterable(units))


def _difference(pairs: Pairs, statistic: Statistic) -> float | None:
    first, second = (statistic([pair[side] for pair in pairs]) for side in (0, 1))
    return None if first is None or second is None else first - second
