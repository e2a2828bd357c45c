"""Cases that depend on one another and count together: those of a question in several runs, or of a cluster.

What the cases of a question (or cluster) came to is a unit: what its tries came to, in order, each with how many of
them did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice, repeat
from math import fsum
from operator import attrgetter, itemgetter, ne
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.gates.results import Layouts, apart, looked_up
from rag_eval.gates.slices import clusters
from rag_eval.stats.tally import DECIMALS, weighed

if TYPE_CHECKING:
    from rag_eval.gates.results import Question
    from rag_eval.stats.swap_units import Units
    from rag_eval.stats.tally import Shown

    Unit = tuple[tuple[Any, int], ...]
    Total = tuple[float, int]
    RunSums = tuple[int, float, float]
    Scored = tuple[Shown | None, ...]

_QID, _RUN, _SCORES = map(attrgetter, ("qid", "run", "scores"))
_ONE = 10**15


def several(cases: Iterable[Question]) -> bool:
    """Whether there are several runs, so that a question may have several cases."""
    runs = map(_RUN, cases)
    return any(map(ne, repeat(next(runs, None)), runs))


def number(cases: Iterable[Question]) -> int:
    """How many questions cases are of."""
    return len(set(map(_QID, cases)))


class Tries:
    """The cases of several runs by question, or of one run by the cluster that a gold field names."""

    def __init__(self, cases: Sequence[Question], cluster: str = "") -> None:
        self._cases, self._cluster = cases, cluster
        self._layouts = Layouts(map(_SCORES, cases))
        self._in_terms: dict[tuple[bool, Scored], Counter[Unit]] = {}
        self._in_totals: dict[tuple[bool, Scored], Counter[Total]] = {}
        self._kept: dict[bool, _Kept] = {}
        self._by_run: dict[bool, Counter[tuple[str | None, int]]] = {}
        self._units: dict[bool, list[_Unit]] = {}

    @cached_property
    def by_question(self) -> Tries:
        """The same cases without clusters."""
        return Tries(self._cases) if self._cluster else self

    def scores(self, column: str) -> tuple[bool, Scored]:
        """What a column comes to hangs on this alone, as long as the cases are the same."""
        shared = self._layouts.shares(column)
        return shared, tuple(looked_up(self._kept_of(shared).scores, column))

    def column(self, column: str) -> Counter[Unit]:
        """The scores of each question in a column; of those to which it applies in no try there are none."""
        key = shared, scores = self.scores(column)
        if key not in self._in_terms:
            self._in_terms[key] = _in_terms(self._units_of(shared), scores)
        return self._in_terms[key]

    def totals(self, column: str) -> Counter[Total]:
        """The sum of the scores of each question in a column, to twelve decimals, and their number where there are any.

        That is all that a mean asks.
        """
        key = shared, scores = self.scores(column)
        if key not in self._in_totals:
            self._in_totals[key] = self._sums.totals(column) if shared else self._own_totals(scores)
        return self._in_totals[key]

    def runs(self, column: str) -> list[RunSums]:
        """The number of scores of each run in a column, their sum and the sum of their squares; none of one run."""
        shared, scores = self.scores(column)
        if shared not in self._by_run:
            names = map(list(map(_RUN, self._cases)).__getitem__, self._order.places)
            self._by_run[shared] = Counter(zip(names, self._kept_of(shared).cases, strict=True))
        found: dict[str | None, list[tuple[float, int]]] = {}
        for (run, place), count in self._by_run[shared].items():
            score = scores[place]
            if score is not None:
                found.setdefault(run, []).append((float(score), count))  # type: ignore[arg-type]  # no labelled one
        return [
            (sum(n for _, n in own), fsum(score * n for score, n in own), fsum(score * score * n for score, n in own))
            for own in found.values()
        ]

    def _own_totals(self, scores: Scored) -> Counter[Total]:
        return totals(list(map(scores.__getitem__, self._kept_of(shared=False).cases)), self._order.sizes)

    @cached_property
    def _order(self) -> _Order:
        return _Order.of(names(self._cases, self._cluster))

    @cached_property
    def _sums(self) -> Sums:
        kept = self._kept_of(shared=True)
        columns = {column: looked_up(kept.scores, column) for column in self._layouts.shared()}
        return Sums(columns, kept.cases, self._order.sizes)

    def _kept_of(self, shared: bool) -> _Kept:
        if shared not in self._kept:
            scores = list(map(_SCORES, self._cases))
            keys = list(apart(scores, shared))
            known = dict(zip(keys, scores, strict=True))
            places = {key: place for place, key in enumerate(known)}
            cases = map(places.__getitem__, map(keys.__getitem__, self._order.places))
            self._kept[shared] = _Kept(list(known.values()), list(cases))
        return self._kept[shared]

    def _units_of(self, shared: bool) -> list[_Unit]:
        if shared not in self._units:
            units = _units(self._kept_of(shared).cases, self._order.sizes)
            self._units[shared] = [_split(*one) for one in units.items()]
        return self._units[shared]


class _Order(NamedTuple):
    """The places of cases, those of a question together, and how many each question has."""

    places: Sequence[int]
    sizes: Sequence[int]

    @classmethod
    def of(cls, named: Sequence[str]) -> _Order:
        """Those of cases, by the name of each."""
        places = sorted(range(len(named)), key=named.__getitem__)  # mostly they stand in order, which is quick to see
        return cls(places, [size for _, size in sorted(Counter(named).items())])


class _Kept(NamedTuple):
    """The scores of cases, each once, and at which place of them those of each case stand, question by question."""

    scores: Sequence[Mapping[str, Shown]]
    cases: Sequence[int]


class _Unit(NamedTuple):
    """What the tries at a question came to.

    ``at`` takes what stands at the places of their scores out of a list, as a tuple, ``times`` says how many tries have
    each, and ``alike`` how many questions are so.
    """

    at: Callable[[Sequence[Any]], tuple[Any, ...]]
    times: tuple[int, ...]
    alike: int


def _units(came_to: Iterable[Any], sizes: Iterable[int], key: Callable[[Any], Any] | None = None) -> Counter[Unit]:
    """What the tries at each question came to, of which there are so many; ``key`` is what it is sorted by."""
    rest = iter(came_to)
    groups = [Counter(islice(rest, size)) for size in sizes]
    return Counter([tuple(sorted(own.items(), key=key)) for own in groups])


def names(cases: Iterable[Question], cluster: str = "") -> list[str]:
    """What cases are grouped by: their cluster if one is named, else their question."""
    return clusters(cases, cluster) if cluster else list(map(_QID, cases))


def units(
    cases: Iterable[Question], pairs: Iterable[tuple[Shown | None, Shown | None]], cluster: str = ""
) -> Units | None:
    """The pairs of cases as tests swap them; None where each is of a question or cluster of its own."""
    from rag_eval.stats.swap_units import Units

    known = [(case, pair) for case, pair in zip(cases, pairs, strict=True) if pair != (None, None)]
    order = _Order.of(names([case for case, _ in known], cluster))
    found = _units([known[place][1] for place in order.places], order.sizes, repr)
    return Units(found) if any(sum([times for _, times in unit]) > 1 for unit in found) else None


def _split(unit: Unit, alike: int) -> _Unit:
    places, times = zip(*unit, strict=True)
    at = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
    return _Unit(at, times, alike)


def _in_terms(found: Iterable[_Unit], scores: Scored) -> Counter[Unit]:
    """Units of places as units of the scores that stand there."""
    units: Counter[Unit] = Counter()
    for at, times, alike in found:
        own: dict[Shown | None, int] = {}
        for score, count in zip(at(scores), times, strict=True):
            own[score] = own.get(score, 0) + count
        own.pop(None, None)
        if own:
            units[tuple(sorted(own.items()))] += alike
    return units


def totals(scores: Sequence[Shown | None], sizes: Sequence[int]) -> Counter[Total]:
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

    def __init__(
        self, columns: Mapping[str, Sequence[Shown | None]], cases: Iterable[int], sizes: Sequence[int]
    ) -> None:
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


def _digits(scores: Sequence[Shown | None], most: int, begin: int) -> tuple[_Digits, list[bytes]]:
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


def _whole(scores: Sequence[Shown | None]) -> list[int]:
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
