"""The paired test of a percentile, such as the 95th of the latencies, by nearest rank."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from rag_eval.stats.draws import DRAWS, chance, enough, key_of, p_value
from rag_eval.stats.units import units_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_eval.stats.paired import Pair
    from rag_eval.stats.units import Unit, Units

_HUNDRED = 100
_LAST_BITS = 1e-12
_DIGITS = b"01".ljust(256, b"1")
_REMEMBERED = 1_024


def percentile_flip(
    pairs: Iterable[Pair] | Units, percent: int, seed: bytes, draws: int = DRAWS, level: float = 1.0
) -> float:
    """The permutation test that the first run's percentile is the greater one.

    As :func:`rag_eval.stats.paired.sign_flip`, with the difference of two percentiles in place of that of two means.
    """
    runs = _Runs(units_of(pairs), percent)
    observed = runs.difference(0)
    if observed is None:
        raise ValueError("one of the runs has no score at all")
    least = observed - _LAST_BITS * max(map(abs, runs.scores))
    found = map(runs.difference, runs.swaps(key_of(seed), enough(draws, level)))
    return p_value((one is None or one >= least for one in found), draws)


class _Runs:
    """All scores of both runs, the greatest first, and for each run the place of every case's score among them.

    Each unit has room for as many cases as the largest, which stand side by side: they are swapped together. Cases are
    the bits of a whole number, so that cases are counted by counting bits: of the scores down to some place, the first
    run has those of its own where the case stayed and those of the second where it was swapped.
    """

    def __init__(self, units: Units, percent: int) -> None:
        self.units, self.percent = units.total(), percent
        self.room = max((sum(times for _, times in unit) for unit in units), default=1)
        ordered = [pair for unit in sorted(units.elements(), key=_order) for pair in self._padded(unit)]
        self.cases = len(ordered)
        runs = [(score, case, run) for case, pair in enumerate(ordered) for run, score in enumerate(pair)]
        found = sorted((-score, case, run) for score, case, run in runs if score is not None)
        self.scores = [-score for score, _, _ in found]
        self._places = [len(found)] * self.cases, [len(found)] * self.cases
        for place, (_, case, run) in enumerate(found):
            self._places[run][case] = place
        self._among = lru_cache(_REMEMBERED)(self._bits)

    def difference(self, swapped: int) -> float | None:
        """The first run's percentile less the second's, the cases of the bits in ``swapped`` being swapped."""
        stayed = swapped ^ ((1 << self.cases) - 1)
        first, second = self._percentile(stayed, swapped), self._percentile(swapped, stayed)
        return None if first is None or second is None else first - second

    def swaps(self, key: bytes, draws: int) -> Iterator[int]:
        """For each draw the cases that are swapped, as bits."""
        size, room = (self.units + 7) // 8, self.room
        widths = [sum(((1 << room) - 1) << bit * room for bit in range(8) if byte >> bit & 1) for byte in range(256)]
        widened = [number.to_bytes(room, "big") for number in widths]  # eight units take as many bytes as one has cases
        for number in range(draws):
            drawn = chance(key, b"percentile", number, size)
            wide = b"".join(map(widened.__getitem__, drawn)) if room > 1 else drawn
            yield int.from_bytes(wide, "big") >> (8 * size - self.units) * room

    def _padded(self, unit: Unit) -> list[Pair]:
        pairs = [pair for pair, times in unit for _ in range(times)]
        return pairs + [(None, None)] * (self.room - len(pairs))

    def _percentile(self, own: int, others: int) -> float | None:
        """Of a run that has the first scores of the cases in ``own`` and the second ones of those in ``others``."""

        def count(places: int) -> int:
            first, second = self._among(places)
            return (first & own).bit_count() + (second & others).bit_count()

        n = count(len(self.scores))
        from_top = n + -self.percent * n // _HUNDRED + 1
        return self.scores[bisect_left(range(len(self.scores)), from_top, key=count) - 1] if n else None

    def _bits(self, places: int) -> tuple[int, int]:
        """For each run, the cases whose score is at one of so many first places."""
        first, second = (_number(bytes(map(places.__gt__, run))) for run in self._places)
        return first, second


def _number(bits: bytes) -> int:
    return int(bits.translate(_DIGITS), 2)


def _order(unit: Unit) -> list[list[tuple[bool, float]]]:
    return [[(score is None, score or 0.0) for score in pair] for pair, times in unit for _ in range(times)]
