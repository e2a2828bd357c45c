"""The paired test of any figure of a run: what swapping whole pairs between the two runs would do to its difference."""

from __future__ import annotations

from rag_eval.stats.draws import chance, key_of, p_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    Statistic = Callable[[Sequence[Any]], float | None]

DRAWS = 1_999
"""Each draw takes the figure of both runs anew. The least p is 0.0005."""
_LAST_BITS = 1e-12


def swap(pairs: Iterable[tuple[Any, Any]], statistic: Statistic, seed: bytes, draws: int = DRAWS) -> float:
    """The permutation test that the first run's figure is the greater one.

    As :func:`rag_eval.stats.paired.sign_flip`, with any ``statistic`` of a run's scores in place of the mean; a draw in
    which a run has no figure counts as a hit. ValueError where a run has none as observed.
    """
    ordered = sorted(pairs, key=repr)
    first, second = (statistic([pair[side] for pair in ordered]) for side in (0, 1))
    if first is None or second is None:
        raise ValueError("one of the runs has no figure at all")
    least = first - second - _LAST_BITS
    found = (_difference(drawn, statistic) for drawn in _drawn(ordered, key_of(seed), draws))
    return p_value((one is None or one >= least for one in found), draws)


def _drawn(ordered: Sequence[tuple[Any, Any]], key: bytes, draws: int) -> Iterator[list[tuple[Any, Any]]]:
    for number in range(draws):
        bits = int.from_bytes(chance(key, b"swap", number, (len(ordered) + 7) // 8), "big")
        yield [pair[::-1] if bits >> place & 1 else pair for place, pair in enumerate(ordered)]


def _difference(pairs: Sequence[tuple[Any, Any]], statistic: Statistic) -> float | None:
    first, second = (statistic([pair[side] for pair in pairs]) for side in (0, 1))
    return None if first is None or second is None else first - second
