"""What scoring comes to: every score of every case, and what each metric makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import add, attrgetter, eq
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from rag_eval.stats.aggregations import FOLDS
from rag_eval.stats.tally import weighed

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.metrics import Measure
    from rag_eval.scoring.scorer import Outcome, RunOutcomes
    from rag_eval.stats.tally import Score, Tally, Value

    Item = tuple[Gold, str | None, Outcome, int]
    T = TypeVar("T")

NT = TypeVar("NT", bound=tuple[Any, ...])
_SCORES, _OWN, *_BESIDE = map(attrgetter, ("scores", "own", "label", "coarse_label", "level", "habits"))
_LABEL, _EXAMPLE, _LEVEL, _HABITS = _BESIDE
_QID, _LINE = map(attrgetter, ("qid", "line"))


def filled(kind: type[NT], columns: Iterable[Iterable[Any]]) -> Iterator[NT]:
    """Make named tuples of columns, without a call in Python for each: there may be millions."""
    return map(tuple.__new__, repeat(kind), zip(*columns, strict=True))


class Completeness(NamedTuple):
    """Whether everything asked was answered once.

    Counts of cases; ``duplicate`` and ``unknown`` count trace rows.
    """

    expected: int
    scored: int
    missing: int
    duplicate: int
    unknown: int
    errored: int


class Scored(NamedTuple):
    """What remains of one case: labels, lines, scores, and what :mod:`rag_eval.cases.integrity` asks of it.

    ``scores`` stand in the order of the scorecard's columns; None says that one does not apply.
    """

    qid: str
    run: str | None
    scores: tuple[Score | None, ...]
    label: str
    coarse_label: str
    level: str
    gold_line: int
    trace_line: int
    habits: int = 0


class Cases(Sequence[Scored]):
    """All cases of all runs, sorted by qid and run. Each is made when it is looked at: they may be many millions."""

    def __init__(self, golds: Sequence[Gold], runs: Mapping[str | None, RunOutcomes]) -> None:
        self._golds = golds
        self._order = sorted(range(len(self._golds)), key=lambda slot: self._golds[slot].qid)
        self._counted: list[tuple[Outcome, int]] | None = None
        self._kinds: list[tuple[Outcome, int]] | None = None
        self._runs = sorted(runs.items(), key=lambda one: one[0] or "")

    def __len__(self) -> int:
        return len(self._order) * len(self._runs)

    def __iter__(self) -> Iterator[Scored]:
        golds, came = self.golds, list(self.came_to())
        scores = map(add, map(_SCORES, came), map(_OWN, came))
        labels = [map(part, came) for part in (_LABEL, _EXAMPLE, _LEVEL)]
        runs = chain.from_iterable(repeat(self.runs, self.questions))
        places = self.of_each(map(_LINE, golds)), self.lines()
        own: list[Iterable[Any]] = [self.of_each(map(_QID, golds)), runs, scores, *labels, *places, map(_HABITS, came)]
        return filled(Scored, own)

    @property
    def golds(self) -> list[Gold]:
        """The gold items by qid: the cases of each stand together, one for each of the :attr:`runs`."""
        return [self._golds[slot] for slot in self._order]

    @property
    def runs(self) -> tuple[str | None, ...]:
        """The names of the runs, sorted."""
        return tuple([name for name, _ in self._runs])

    def of_each(self, column: Iterable[T]) -> Iterator[T]:
        """What there is of each gold item, once for each of its cases."""
        return chain.from_iterable(map(repeat, column, repeat(len(self._runs))))

    def came_to(self) -> Iterator[Outcome]:
        """The outcome of each case."""
        return self._in_order([held.outcomes for _, held in self._runs])

    def lines(self) -> Iterator[int]:
        """The line of the trace of each case, 0 where none came."""
        return self._in_order([held.lines for _, held in self._runs])

    def _in_order(self, columns: Sequence[Sequence[T]]) -> Iterator[T]:
        of_runs = [map(column.__getitem__, self._order) for column in columns]
        return chain.from_iterable(zip(*of_runs, strict=True))

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, place: int) -> Scored: ...
        @overload
        def __getitem__(self, place: slice) -> tuple[Scored, ...]: ...

    def __getitem__(self, place: int | slice) -> Scored | tuple[Scored, ...]:
        if isinstance(place, slice):
            return tuple(map(self.__getitem__, range(*place.indices(len(self)))))
        slot, run = divmod(range(len(self))[place], len(self._runs))
        (name, held), at = self._runs[run], self._order[slot]
        return _scored((self._golds[at], name, held.outcomes[at], held.lines[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cases) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def questions(self) -> int:
        """How many gold items there are."""
        return len(self._order)

    def outcomes(self) -> list[tuple[Outcome, int]]:
        """What cases came to, each with how many did."""
        if self._counted is None:
            self._counted = self._count()
        return self._counted

    def kinds(self) -> list[tuple[Outcome, int]]:
        """The same without the scores that each has of its own: mostly there are few."""
        if self._kinds is None:
            self._kinds = _without_own(self.outcomes())
        return self._kinds

    def _count(self) -> list[tuple[Outcome, int]]:
        found: dict[int, Outcome] = {}
        counts: Counter[int] = Counter()
        for _, held in self._runs:
            found.update(zip(map(id, held.outcomes), held.outcomes, strict=True))
            counts.update(map(id, held.outcomes))
        return [(found[own], count) for own, count in counts.items()]


def _without_own(outcomes: Sequence[tuple[Outcome, int]]) -> list[tuple[Outcome, int]]:
    found, counts = zip(*outcomes, strict=True) if outcomes else ((), ())
    # Scores are one object for most cases that have them: to tell these by it is quicker than to look at them.
    keys = list(zip(map(id, map(_SCORES, found)), *(map(part, found) for part in _BESIDE), strict=True))
    known = dict(zip(keys, found, strict=True))
    return [(known[key]._replace(own=()), count) for key, count in weighed(keys, counts).items()]


def _scored(item: Item) -> Scored:
    gold, run, (scores, label, coarse_label, level, habits, own), line = item
    return Scored(gold.qid, run, (*scores, *own), label, coarse_label, level, gold.line, line, habits)


class Scorecard(NamedTuple):
    """All scored cases, sorted by qid and run; ``columns`` names their scores, of which ``measures`` are folds.

    ``unpriced`` are the models, sorted, whose tokens are counted and have no price.
    """

    measures: tuple[Measure, ...]
    columns: tuple[str, ...]
    cases: Cases
    completeness: Completeness
    pool: int = 0  # length of the long list that the first such case retrieves
    unpriced: tuple[str, ...] = ()

    def tallies(self) -> dict[str, Tally]:
        """The multiset of the scores of each column."""
        alike = _counted([(kind.scores, count) for kind, count in self.cases.kinds()])
        own = _counted([(outcome.own, count) for outcome, count in self.cases.outcomes()])
        nothing: list[Counter[Any]] = [Counter() for _ in self.columns]
        return dict(zip(self.columns, [*alike, *own] or nothing, strict=True))

    def labels(self) -> dict[str, int]:
        """How many cases have each label."""
        found: Counter[str] = Counter()
        for kind, count in self.cases.kinds():
            found[kind.label] += count
        return dict(sorted(found.items()))

    def values(self) -> dict[str, Value]:
        """Each measure's value over the cases to which it applies."""
        tallies, own = self.tallies(), (one for one in self.measures if one.metric.level == "case")
        return {one.name: FOLDS[one.fold].value(tallies[one.column]) for one in own}


def _counted(scores: Sequence[tuple[tuple[Score | None, ...], int]]) -> list[Counter[Any]]:
    """The multiset of the scores of each column, of cases that may have them as one object."""
    all_scores, numbers = zip(*scores, strict=True) if scores else ((), ())
    known: dict[int, tuple[Score | None, ...]] = dict(zip(map(id, all_scores), all_scores, strict=True))
    counts = weighed(list(map(id, all_scores)), numbers)
    # Many may have come to something of their own: what one case came to each is counted at once.
    once = [known[key] for key, count in counts.items() if count == 1]
    found = list(map(_counter, zip(*once, strict=True)))
    for key, count in counts.items() if len(once) < len(counts) else ():
        found = found or [Counter() for _ in known[key]]
        if count > 1:
            for counted, score in zip(found, known[key], strict=True):
                counted[score] += count
    for counted in found:
        del counted[None]
    return found


def _counter(column: Sequence[Score | None]) -> Counter[Any]:
    """How often each score stands in a column; many are empty, which is quick to see."""
    return Counter() if column.count(None) == len(column) else Counter(column)
