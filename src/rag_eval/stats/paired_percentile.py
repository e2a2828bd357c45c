"""The paired test of a percentile, such as the 95th of the latencies, by nearest rank."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from rag_eval.stats.draws import DRAWS, chance, key_of, p_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_eval.stats.paired import Pair

_HUNDRED = 100
_LAST_BITS = 1e-12
_DIGITS = b"01".ljust(256, b"1")
_REMEMBERED = 1_024


def percentile_flip(pairs: Iterable[Pair], percent: int, seed: bytes, draws: int = DRAWS) -> float:
    """The permutation test that the first run's percentile is the greater one.

    As :func:`rag_eval.stats.paired.sign_flip`, with the difference of two percentiles in place of that of two means.
    """
    runs = _Runs(pairs, percent)
    observed = runs.difference(0)
    if observed is None:
        raise ValueError("one of the runs has no score at all")
    least = observed - _LAST_BITS * max(map(abs, runs.scores))
    found = map(runs.difference, _swaps(key_of(seed), runs.cases, draws))
    return p_value((one is None or one >= least for one in found), draws)


class _Runs:
    """All scores of both runs, the greatest first, and for each run the place of every case's score among them.

    Cases are the bits of a whole number, so that cases are counted by counting bits: of the scores down to some place,
    the first run has those of its own where the case stayed and those of the second where it was swapped.
    """

    def __init__(self, pairs: Iterable[Pair], percent: int) -> None:
        ordered = sorted(pairs, key=lambda pair: [(score is None, score or 0.0) for score in pair])
        self.cases, self.percent = len(ordered), percent
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


def _swaps(key: bytes, cases: int, draws: int) -> Iterator[int]:
    """For each draw the cases that are swapped, as bits."""
    size = (cases + 7) // 8
    for number in range(draws):
        yield int.from_bytes(chance(key, b"percentile", number, size), "big") >> (8 * size - cases)
