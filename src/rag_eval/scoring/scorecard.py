"""The scorecard: all scores of all cases, and the value of each metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from operator import add, attrgetter, eq
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from rag_eval.scoring.aggregations import FOLDS
from rag_eval.stats.tally import weighed

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.metrics import Measure
    from rag_eval.scoring.scorer import Outcome, RunOutcomes
    from rag_eval.stats.tally import Score, Tally, Value

    Item = tuple[Gold, str | None, Outcome, int]
    T = TypeVar("T")

NT = TypeVar("NT", bound=tuple[Any, ...])
_SCORES, _CASE_SCORES, *_OTHER_FIELDS = map(
    attrgetter, ("scores", "case_scores", "label", "coarse_label", "level", "behaviours")
)
_LABEL, _EXAMPLE, _LEVEL, _BEHAVIOURS = _OTHER_FIELDS
_QID, _LINE = map(attrgetter, ("qid", "line"))


def filled(kind: type[NT], columns: Iterable[Iterable[Any]]) -> Iterator[NT]:
    """Make named tuples from columns without a Python call for each: there may be millions."""
    return map(tuple.__new__, repeat(kind), zip(*columns, strict=True))


class Completeness(NamedTuple):
    """Counts of expected, scored and missing cases; ``duplicate`` and ``unknown`` count trace rows."""

    expected: int
    scored: int
    missing: int
    duplicate: int
    unknown: int
    errored: int


class Scored(NamedTuple):
    """The result of one case: labels, lines, scores, and its degenerate behaviours.

    ``scores`` are in the order of the scorecard's columns; None if the column does not apply.
    """

    qid: str
    run: str | None
    scores: tuple[Score | None, ...]
    label: str
    coarse_label: str
    level: str
    gold_line: int
    trace_line: int
    behaviours: int = 0


class Cases(Sequence[Scored]):
    """All cases of all runs, sorted by qid and run. Each is made on access: there may be many millions."""

    def __init__(self, golds: Sequence[Gold], runs: Mapping[str | None, RunOutcomes]) -> None:
        self._golds = golds
        self._counted: list[tuple[Outcome, int]] | None = None
        self._kinds: list[tuple[Outcome, int]] | None = None
        self._runs = sorted(runs.items(), key=lambda one: one[0] or "")

    @cached_property
    def _order(self) -> list[int]:
        return sorted(range(len(self._golds)), key=lambda slot: self._golds[slot].qid)

    def __len__(self) -> int:
        return len(self._golds) * len(self._runs)

    def __iter__(self) -> Iterator[Scored]:
        golds, outcomes = self.golds, list(self.all_outcomes())
        scores = map(add, map(_SCORES, outcomes), map(_CASE_SCORES, outcomes))
        labels = [map(part, outcomes) for part in (_LABEL, _EXAMPLE, _LEVEL)]
        runs = chain.from_iterable(repeat(self.runs, self.questions))
        lines = self.repeated(map(_LINE, golds)), self.lines()
        columns: list[Iterable[Any]] = [
            self.repeated(map(_QID, golds)),
            runs,
            scores,
            *labels,
            *lines,
            map(_BEHAVIOURS, outcomes),
        ]
        return filled(Scored, columns)

    @property
    def golds(self) -> list[Gold]:
        """Return the gold items by qid, each with consecutive cases, one for each of the :attr:`runs`."""
        return [self._golds[slot] for slot in self._order]

    @property
    def runs(self) -> tuple[str | None, ...]:
        """Return the names of the runs, sorted."""
        return tuple([name for name, _ in self._runs])

    def repeated(self, column: Iterable[T]) -> Iterator[T]:
        """Yield a column of the gold items, repeated for each of their cases."""
        return chain.from_iterable(map(repeat, column, repeat(len(self._runs))))

    def all_outcomes(self) -> Iterator[Outcome]:
        """Return the outcome of each case."""
        return self._in_order([log.outcomes for _, log in self._runs])

    def lines(self) -> Iterator[int]:
        """Yield the line of the trace of each case, 0 without a trace."""
        return self._in_order([log.lines for _, log in self._runs])

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
        (name, log), at = self._runs[run], self._order[slot]
        return _scored((self._golds[at], name, log.outcomes[at], log.lines[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cases) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def questions(self) -> int:
        """Return the number of gold items."""
        return len(self._order)

    def outcome_counts(self) -> list[tuple[Outcome, int]]:
        """Return the distinct outcomes with their counts."""
        if self._counted is None:
            self._counted = self._count()
        return self._counted

    def shared_outcomes(self) -> list[tuple[Outcome, int]]:
        """Return the distinct outcomes without measured scores, with their counts."""
        if self._kinds is None:
            self._kinds = _merge_shared(self.outcome_counts())
        return self._kinds

    def _count(self) -> list[tuple[Outcome, int]]:
        outcomes: dict[int, Outcome] = {}
        counts: Counter[int] = Counter()
        for _, log in self._runs:
            outcomes.update(zip(map(id, log.outcomes), log.outcomes, strict=True))
            counts.update(map(id, log.outcomes))
        return [(outcomes[key], count) for key, count in counts.items()]


def _merge_shared(outcomes: Sequence[tuple[Outcome, int]]) -> list[tuple[Outcome, int]]:
    distinct, counts = zip(*outcomes, strict=True) if outcomes else ((), ())
    # Most cases share one object of scores: distinguishing them by identity is faster than by value.
    keys = list(zip(map(id, map(_SCORES, distinct)), *(map(part, distinct) for part in _OTHER_FIELDS), strict=True))
    known = dict(zip(keys, distinct, strict=True))
    return [(known[key]._replace(case_scores=()), count) for key, count in weighed(keys, counts).items()]


def _scored(item: Item) -> Scored:
    gold, run, (scores, label, coarse_label, level, behaviours, case_scores), line = item
    return Scored(gold.qid, run, (*scores, *case_scores), label, coarse_label, level, gold.line, line, behaviours)


class Scorecard(NamedTuple):
    """All scored cases, sorted by qid and run; ``columns`` names their scores, which ``measures`` aggregate.

    ``unpriced`` are the models, sorted, whose tokens are counted and have no price.
    """

    measures: tuple[Measure, ...]
    columns: tuple[str, ...]
    cases: Cases
    completeness: Completeness
    pool: int = 0  # length of the long list that the first such case retrieves
    unpriced: tuple[str, ...] = ()

    def tallies(self) -> dict[str, Tally]:
        """Return the multiset of the scores of each column."""
        shared = _counted([(kind.scores, count) for kind, count in self.cases.shared_outcomes()])
        individual = _counted([(outcome.case_scores, count) for outcome, count in self.cases.outcome_counts()])
        nothing: list[Counter[Any]] = [Counter() for _ in self.columns]
        return dict(zip(self.columns, [*shared, *individual] or nothing, strict=True))

    def labels(self) -> dict[str, int]:
        """Return how many cases have each label."""
        counts: Counter[str] = Counter()
        for kind, count in self.cases.shared_outcomes():
            counts[kind.label] += count
        return dict(sorted(counts.items()))

    def values(self) -> dict[str, Value]:
        """Return each measure's value over the cases to which it applies."""
        tallies, measures = self.tallies(), (one for one in self.measures if one.metric.level == "case")
        return {one.name: FOLDS[one.fold].value(tallies[one.column]) for one in measures}


def _counted(scores: Sequence[tuple[tuple[Score | None, ...], int]]) -> list[Counter[Any]]:
    """Return the multiset of the scores of each column, from cases that may share them as one object."""
    all_scores, numbers = zip(*scores, strict=True) if scores else ((), ())
    known: dict[int, tuple[Score | None, ...]] = dict(zip(map(id, all_scores), all_scores, strict=True))
    counts = weighed(list(map(id, all_scores)), numbers)
    # Many cases may have their own object: objects of single cases are counted at once.
    once = [known[key] for key, count in counts.items() if count == 1]
    counters = list(map(_counter, zip(*once, strict=True)))
    for key, count in counts.items() if len(once) < len(counts) else ():
        counters = counters or [Counter() for _ in known[key]]
        if count > 1:
            for counted, score in zip(counters, known[key], strict=True):
                counted[score] += count
    for counted in counters:
        del counted[None]
    return counters


def _counter(column: Sequence[Score | None]) -> Counter[Any]:
    """Return how often a column has each score."""
    return Counter() if column.count(None) == len(column) else Counter(column)
