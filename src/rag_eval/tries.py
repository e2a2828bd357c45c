"""The tries at each question, where several runs ask the same ones: no independent cases, so that they count together.

What a question came to is a unit: what its tries came to, in order, each with how many of them did.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from operator import attrgetter

from rag_eval.results import Layouts, apart, looked_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any

    from rag_eval.results import Question
    from rag_eval.stats.units import Units
    from rag_eval.tally import Shown

    Unit = tuple[tuple[Any, int], ...]

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
        self._known: dict[tuple[bool, tuple[Shown | None, ...]], Counter[Unit]] = {}
        self._places: dict[bool, tuple[list[Mapping[str, Shown]], Counter[Unit]]] = {}

    def column(self, column: str) -> Counter[Unit]:
        """The scores of each question in a column; of those to which it applies in no try there are none."""
        shared = self._layouts.shares(column)
        cases, units = self._units(shared)
        scores = tuple(looked_up(cases, column))
        if (shared, scores) not in self._known:
            self._known[shared, scores] = _in_terms(units, scores)
        return self._known[shared, scores]

    def _units(self, shared: bool) -> tuple[list[Mapping[str, Shown]], Counter[Unit]]:
        """The scores of cases, each once, and the questions in terms of their places: looked out once."""
        if shared not in self._places:
            scores = list(map(_SCORES, self._cases))
            keys = list(apart(scores, shared))
            known = dict(zip(keys, scores, strict=True))
            places = {key: place for place, key in enumerate(known)}
            self._places[shared] = list(known.values()), by_question(self._cases, map(places.__getitem__, keys))
        return self._places[shared]


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


def _in_terms(units: Mapping[Unit, int], scores: Sequence[Shown | None]) -> Counter[Unit]:
    """Units of places as units of the scores that stand there."""
    found: Counter[Unit] = Counter()
    for unit, count in units.items():
        own: dict[Shown | None, int] = {}
        for place, times in unit:
            own[scores[place]] = own.get(scores[place], 0) + times
        own.pop(None, None)
        if own:
            found[tuple(sorted(own.items()))] += count
    return found
