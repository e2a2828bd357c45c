"""The scorecard: all scores of all cases, and the value of each metric."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rag_eval.stats.tally import Score, Tally, weighted_counts

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.metrics import Measure

T = TypeVar("T")

Scores = tuple[Score | None, ...]
CITES_ALL, SAYS_ALL = 1, 2
"""Behaviours: a case cites all of a long list; its claim also contains the answers to other questions."""


class CaseOutcome(NamedTuple):
    """The outcome of a case, shared by all cases with the same one.

    ``scores`` are one object for the many cases that score alike. ``case_scores`` are scores that may differ in every
    case, such as measured times, in the order of the columns that follow; it is empty without such columns.
    """

    scores: Scores
    label: str
    coarse_label: str
    level: str
    behaviours: int
    case_scores: Scores = ()


class RunLog:
    """The outcomes of one run in the order of its traces.

    An entry of each list is a trace: the index of its gold item, its outcome and its line.
    """

    def __init__(self) -> None:
        self.slots, self.lines = array("Q"), array("Q")
        self.outcomes: list[CaseOutcome] = []


NO_OUTCOME = CaseOutcome((), "", "", "", 0)


class RunOutcomes:
    """The outcomes of one run by the indexes of the gold items, with the logged facts about their traces."""

    def __init__(self, size: int) -> None:
        self.outcomes: list[CaseOutcome] = [NO_OUTCOME] * size
        self.lines = array("Q", bytes(8 * size))

    def store(self, log: RunLog, lines_before: int) -> None:
        """Store the traces of a log, the last one for each case; their lines count from ``lines_before``."""
        # Millions of traces pass through this method, so it runs no Python code for each.
        deque(map(self.outcomes.__setitem__, log.slots, log.outcomes), maxlen=0)
        deque(map(self.lines.__setitem__, log.slots, map(lines_before.__add__, log.lines)), maxlen=0)


class Completeness(NamedTuple):
    """Counts of expected, scored and missing cases; ``duplicate`` and ``unknown`` count trace rows."""

    expected: int
    scored: int
    missing: int
    duplicate: int
    unknown: int
    errored: int


class Cases:
    """All cases of all runs, sorted by qid and run.

    ``golds`` are the gold items, sorted by qid, each with consecutive cases, one for each of the :attr:`runs`.
    """

    def __init__(self, golds: Sequence[Gold], runs: Mapping[str | None, RunOutcomes]) -> None:
        self.golds = golds
        self._runs = sorted(runs.items(), key=lambda one: one[0] or "")

    def __len__(self) -> int:
        return len(self.golds) * len(self._runs)

    def __iter__(self) -> Iterator[tuple[Gold, str | None, CaseOutcome, int]]:
        """Yield each case: its gold item, its run, its outcome, and the line of its trace."""
        runs = self.runs * len(self.golds)
        return zip(self.repeated(self.golds), runs, self.all_outcomes(), self.lines(), strict=True)

    @property
    def runs(self) -> tuple[str | None, ...]:
        """Return the names of the runs, sorted."""
        return tuple([name for name, _ in self._runs])

    def repeated(self, column: Iterable[T]) -> Iterator[T]:
        """Yield a column of the gold items, repeated for each of their cases."""
        return chain.from_iterable(map(repeat, column, repeat(len(self._runs))))

    def all_outcomes(self) -> Iterator[CaseOutcome]:
        """Return the outcome of each case."""
        return chain.from_iterable(zip(*[log.outcomes for _, log in self._runs], strict=True))

    def lines(self) -> Iterator[int]:
        """Yield the line of the trace of each case, 0 without a trace."""
        return chain.from_iterable(zip(*[log.lines for _, log in self._runs], strict=True))

    def labels(self) -> Counter[str]:
        """Return how many cases have each label."""
        labels: Counter[str] = Counter()
        for outcome, count in self.outcome_counts:
            labels[outcome.label] += count
        return labels

    @cached_property
    def outcome_counts(self) -> list[tuple[CaseOutcome, int]]:
        """Return the distinct outcomes with their counts."""
        outcomes: dict[int, CaseOutcome] = {}
        counts: Counter[int] = Counter()
        for _, log in self._runs:
            outcomes.update(zip(map(id, log.outcomes), log.outcomes, strict=True))
            counts.update(map(id, log.outcomes))
        return [(outcomes[key], count) for key, count in counts.items()]


class Scorecard(NamedTuple):
    """All scored cases, sorted by qid and run; ``columns`` names their scores, which ``measures`` aggregate.

    ``unpriced`` are the models, sorted, whose tokens are counted and have no price.
    """

    measures: tuple[Measure, ...]
    columns: tuple[str, ...]
    cases: Cases
    completeness: Completeness
    unpriced: tuple[str, ...] = ()

    def tallies(self) -> dict[str, Tally]:
        """Return the multiset of the scores of each column."""
        shared: Counter[tuple[Score | None, ...]] = Counter()
        individual: Counter[tuple[Score | None, ...]] = Counter()
        for outcome, count in self.cases.outcome_counts:
            shared[outcome.scores] += count
            individual[outcome.case_scores] += count
        counters: list[Counter[Any]] = []
        for counts in (shared, individual):
            for column in zip(*counts, strict=True):
                applies = column.count(None) < len(column)
                counters.append(weighted_counts(column, counts.values()) if applies else Counter())
                counters[-1].pop(None, None)
        return dict(zip(self.columns, counters or [Counter() for _ in self.columns], strict=True))
