"""The tries at each question, where several runs ask the same ones: no independent cases, so that they count together.

What a question came to is a unit: what its tries came to, in order, each with how many of them did.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from math import fsum
from operator import attrgetter, itemgetter, mul

from rag_eval.judging.results import Layouts, apart, looked_up
from rag_eval.tally import DECIMALS
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any

    from rag_eval.judging.results import Question
    from rag_eval.stats.units import Units
    from rag_eval.tally import Shown

    Unit = tuple[tuple[Any, int], ...]
    Total = tuple[float, int]
    Scored = tuple[Shown | None, ...]

_QID, _RUN, _SCORES = map(attrgetter, ("qid", "run", "scores"))


def several(cases: Iterable[Question]) -> bool:
    """Whether there are several runs, so that a question may have several cases."""
    return len(set(map(_RUN, cases))) > 1


def number(cases: Iterable[Question]) -> int:
    """How many questions cases are of."""
    return len(set(map(_QID, cases)))


class Tries:
    """The cases of several runs, by question."""

    def __init__(self, cases: Sequence[Question]) -> None:
        self._cases = cases
        self._layouts = Layouts(map(_SCORES, cases))
        self._in_terms: dict[tuple[bool, Scored], Counter[Unit]] = {}
        self._in_totals: dict[tuple[bool, Scored], Counter[Total]] = {}
        self._places: dict[bool, _Places] = {}

    def scores(self, column: str) -> tuple[bool, tuple[Shown | None, ...]]:
        """What a column comes to hangs on this alone, as long as the cases are the same."""
        shared = self._layouts.shares(column)
        return shared, tuple(looked_up(self._units(shared).scores, column))

    def column(self, column: str) -> Counter[Unit]:
        """The scores of each question in a column; of those to which it applies in no try there are none."""
        key = self.scores(column)
        if key not in self._in_terms:
            self._in_terms[key] = _in_terms(self._units(key[0]), key[1])
        return self._in_terms[key]

    def totals(self, column: str) -> Counter[Total]:
        """The sum of the scores of each question in a column, to twelve decimals, and their number where there are any.

        That is all that a mean asks, and takes a tenth of the time.
        """
        key = self.scores(column)
        if key not in self._in_totals:
            self._in_totals[key] = _in_totals(self._units(key[0]), key[1])
        return self._in_totals[key]

    def _units(self, shared: bool) -> _Places:
        if shared not in self._places:
            scores = list(map(_SCORES, self._cases))
            keys = list(apart(scores, shared))
            known = dict(zip(keys, scores, strict=True))
            places = {key: place for place, key in enumerate(known)}
            units = by_question(self._cases, map(places.__getitem__, keys))
            self._places[shared] = _Places(list(known.values()), [_split(*one) for one in units.items()])
        return self._places[shared]


class _Unit(NamedTuple):
    """What the tries at a question came to.

    ``at`` takes what stands at the places of their scores out of a list, as a tuple, ``times`` says how many tries have
    each, and ``alike`` how many questions are so.
    """

    at: Callable[[Sequence[Any]], tuple[Any, ...]]
    times: tuple[int, ...]
    alike: int


class _Places(NamedTuple):
    """The scores of cases, each once, and the questions in terms of their places."""

    scores: Sequence[Mapping[str, Shown]]
    units: Sequence[_Unit]


def by_question(
    cases: Iterable[Question], came_to: Iterable[Hashable], key: Callable[[Any], Any] | None = None
) -> Counter[Unit]:
    """What the tries at each question came to; ``key`` is what it is sorted by."""
    qids, came = list(map(_QID, cases)), list(came_to)
    order = sorted(range(len(qids)), key=qids.__getitem__)  # mostly they stand in order, which is quick to see
    rest = map(came.__getitem__, order)
    groups = [Counter(islice(rest, size)) for _, size in sorted(Counter(qids).items())]
    return Counter([tuple(sorted(own.items(), key=key)) for own in groups])


def units(cases: Iterable[Question], pairs: Iterable[tuple[Shown | None, Shown | None]]) -> Units | None:
    """The pairs of cases as tests swap them; None where each is of a question of its own."""
    from rag_eval.stats.units import Units

    known = [(case, pair) for case, pair in zip(cases, pairs, strict=True) if pair != (None, None)]
    found = by_question([case for case, _ in known], [pair for _, pair in known], repr)
    return Units(found) if any(sum([times for _, times in unit]) > 1 for unit in found) else None


def _split(unit: Unit, alike: int) -> _Unit:
    places, times = zip(*unit, strict=True)
    at = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
    return _Unit(at, times, alike)


def _in_terms(found: _Places, scores: Scored) -> Counter[Unit]:
    """Units of places as units of the scores that stand there."""
    units: Counter[Unit] = Counter()
    for unit in found.units:
        own: dict[Shown | None, int] = {}
        for score, times in zip(unit.at(scores), unit.times, strict=True):
            own[score] = own.get(score, 0) + times
        own.pop(None, None)
        if own:
            units[tuple(sorted(own.items()))] += unit.alike
    return units


def _in_totals(found: _Places, scores: Scored) -> Counter[Total]:
    numbers = [score or 0 for score in scores]
    applies = [score is not None for score in scores]
    always = all(applies)
    totals: Counter[Total] = Counter()
    for at, times, alike in found.units:
        size = sum(times if always else map(mul, at(applies), times))
        if size:
            totals[round(fsum(map(mul, at(numbers), times)), DECIMALS), size] += alike
    return totals
