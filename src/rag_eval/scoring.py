"""Cases into a scorecard: every score of every case, and what each metric makes of them."""

from __future__ import annotations

from copy import copy
from operator import attrgetter
from typing import NamedTuple, TypeVar

from rag_eval.case import Case
from rag_eval.folds import FOLDS
from rag_eval.integrity import CITES_ALL, LEAST_CITED, LEAST_POOL, LEAST_PROBES, PROBES, SAME_POOL, SAYS_ALL
from rag_eval.labels import example08, label
from rag_eval.metrics.operations import unpriced
from rag_eval.model import OPTIONAL, Trace
from rag_eval.partial import Answered, Aside, Outcome, packed
from rag_eval.tally import Value, tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rag_eval.case import Ranking
    from rag_eval.metrics import Measure
    from rag_eval.model import Gold, Settings
    from rag_eval.partial import Partial
    from rag_eval.tally import Score, Tally

    _Group = tuple[Callable[[Case], object] | None, list[Measure], list[Score | None]]

K = TypeVar("K")
V = TypeVar("V")
_REMEMBERED = 50_000


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
    """What remains of one case: its labels, its lines, its scores, and its habits as :mod:`rag_eval.integrity` asks.

    ``scores`` stand in the order of the scorecard's columns; None says that one does not apply.
    """

    qid: str
    run: str | None
    scores: tuple[Score | None, ...]
    label: str
    example08: str
    level: str
    gold_line: int
    trace_line: int
    habits: int = 0

    def rank(self) -> tuple[str, str]:
        """The order of cases in a report, which no order of lines can change."""
        return self.qid, self.run or ""


class Scorecard(NamedTuple):
    """All scored cases, sorted by qid and run; ``columns`` names their scores, of which ``measures`` are folds.

    ``unpriced`` are the models, sorted, whose tokens are counted and have no price.
    """

    measures: tuple[Measure, ...]
    columns: tuple[str, ...]
    cases: tuple[Scored, ...]
    completeness: Completeness
    pool: int = 0  # length of the long list that the first such case retrieves
    unpriced: tuple[str, ...] = ()

    def tallies(self) -> dict[str, Tally]:
        """The multiset of the scores of each column."""
        columns = zip(*(case.scores for case in self.cases), strict=True) if self.cases else ((),) * len(self.columns)
        return {name: tally(column) for name, column in zip(self.columns, columns, strict=True)}

    def values(self) -> dict[str, Value]:
        """Each measure's value over the cases to which it applies."""
        tallies, own = self.tallies(), (one for one in self.measures if one.metric.level == "case")
        return {one.name: FOLDS[one.fold].value(tallies[one.column]) for one in own}


class Scorer:
    """Takes traces as they come, keeps of each case only its scores, and closes with those that never came.

    The last trace of a (run, qid) wins. Memory grows with the gold set, not with the trace file.
    """

    def __init__(self, golds: Mapping[str, Gold], measures: Sequence[Measure], settings: Settings) -> None:
        self._golds, self._settings = golds, settings
        self._measures = tuple(measures)
        # Folds of a metric share its scores.
        columns = {one.column: one for one in measures if one.metric.level == "case"}.values()
        self._groups = _by_field([one for one in columns if not one.metric.by_ranking])
        self._of_ranking = [one for one in columns if one.metric.by_ranking]
        self._columns = tuple(one.column for _, group, _ in self._groups for one in group)
        self._columns += tuple(one.column for one in self._of_ranking)
        self._ranked: dict[tuple[bool, Ranking | None], tuple[Score | None, ...]] = {}
        self._same: dict[tuple[Score | None, ...], tuple[Score | None, ...]] = {}
        self._hold_nothing()
        self._probes = _probes(golds)
        # A claim that is shorter than what it would have to hold need not be searched; honest ones mostly are.
        self._shortest = sum(min(map(len, texts)) for texts in self._probes) * 4 // 5 if self._probes else 0

    def _hold_nothing(self, pool: frozenset[str] | None = None) -> None:
        self._scored: dict[tuple[str | None, str], Scored] = {}
        self._duplicate = self._unknown = 0
        self._pool = pool
        self._unpriced: set[str] = set()

    def add(self, trace: Trace) -> None:
        """Score a trace, in place of an earlier one of the same run and qid."""
        gold = self._golds.get(trace.qid)
        if gold is None:
            self._unknown += 1
            return
        key = trace.run, trace.qid
        self._duplicate += key in self._scored
        self._scored[key] = self._score(gold, trace)

    def close(self) -> Scorecard:
        """The scorecard, with every gold item that no trace answered as an empty, shipped answer."""
        runs = sorted({run for run, _ in self._scored}, key=lambda run: run or "") or [None]
        for run in runs:
            for qid, gold in self._golds.items():
                if (run, qid) not in self._scored:
                    self._scored[run, qid] = self._score(gold, Trace.missing(qid, run))
        cases = tuple(sorted(self._scored.values(), key=Scored.rank))
        own = self._completeness(cases), len(self._pool or ()), tuple(sorted(self._unpriced))
        return Scorecard(self._measures, self._columns, cases, *own)

    def fresh(self, pool: frozenset[str] | None = None) -> Scorer:
        """A scorer of the same kind that holds no case yet; ``pool`` is the long list to compare others with."""
        other = copy(self)
        other._hold_nothing(pool)
        return other

    def partial(self) -> Partial:
        """What it holds, without the gold."""
        cases = (
            Answered(
                one.run, one.qid, Outcome(one.scores, one.label, one.example08, one.level, one.habits), one.trace_line
            )
            for one in self._scored.values()
        )
        return packed(cases, Aside(self._duplicate, self._unknown, self._pool, frozenset(self._unpriced)))

    def agrees(self, partial: Partial) -> bool:
        """Whether the habits of a later part refer to the long list that they would refer to here."""
        return None in (self._pool, partial.aside.pool) or self._pool == partial.aside.pool

    def absorb(self, partial: Partial, before: int) -> None:
        """Take what another scorer held of the traces that follow, the first of which is ``before`` lines on.

        Then it holds what it would if it had scored them itself; the other one has to agree.
        """
        duplicate, unknown, pool, unpriced = partial.aside
        self._pool = self._pool or pool
        self._duplicate += duplicate
        self._unknown += unknown
        self._unpriced |= unpriced
        for run, qid, found, line in partial.cases():
            gold, scores = self._golds[qid], found.scores
            self._duplicate += (run, gold.qid) in self._scored
            own = _remember(self._same, scores, scores), found.label, found.example08, found.level
            self._scored[run, gold.qid] = Scored(gold.qid, run, *own, gold.line, line + before, found.habits)

    @property
    def pool(self) -> frozenset[str] | None:
        """The first long list that a case retrieved."""
        return self._pool

    def _score(self, gold: Gold, trace: Trace) -> Scored:
        case = Case(gold, trace, self._settings)
        if trace.usage and (model := unpriced(case)):
            self._unpriced.add(model)
        found: list[Score | None] = []
        for has, group, nothing in self._groups:
            found += nothing if has is not None and has(case) is None else [one.score(case) for one in group]
        scores = (*found, *self._ranking_scores(case))
        # Most cases of a run score alike: they share one tuple.
        scores = _remember(self._same, scores, scores)
        level = case.ranking.level if case.in_a and case.ranking else ""
        lines = gold.line, trace.line
        return Scored(gold.qid, trace.run, scores, label(case), example08(case), level, *lines, self._habits(case))

    def _habits(self, case: Case) -> int:
        retrieved, found = case.trace.retrieved, 0
        if LEAST_CITED <= len(retrieved) <= len(case.cites) and set(retrieved).issubset(case.cites):
            found |= CITES_ALL
        if len(retrieved) > LEAST_POOL:
            pool = frozenset(retrieved)
            self._pool = self._pool or pool
            found |= SAME_POOL if pool == self._pool else 0
        if self._probes and len(case.claim) >= self._shortest:
            said = case.claim.lower()
            told = sum(any(text in said for text in texts) for texts in self._probes)
            found |= SAYS_ALL if told >= len(self._probes) * 0.8 else 0
        return found

    def _ranking_scores(self, case: Case) -> tuple[Score | None, ...]:
        """The scores that hang on the ranking alone: computed once for all cases that rank alike."""
        key = case.in_a, case.ranking if case.in_a else None
        scores = self._ranked.get(key)
        if scores is None:
            scores = _remember(self._ranked, key, tuple([one.score(case) for one in self._of_ranking]))
        return scores

    def _completeness(self, cases: Sequence[Scored]) -> Completeness:
        missing = sum(case.label == "MISSING" for case in cases)
        errored = sum(case.label == "ERROR" for case in cases)
        return Completeness(len(cases), len(cases) - missing, missing, self._duplicate, self._unknown, errored)


def _probes(golds: Mapping[str, Gold]) -> list[tuple[str, ...]]:
    """The substrings of the first questions, by qid, that want different things; none where there are too few."""
    found: dict[tuple[str, ...], None] = {}
    for qid in sorted(golds):
        gold = golds[qid]
        if gold.substrings and not any(set(gold.substrings) & set(one) for one in found):
            found[gold.substrings] = None
        if len(found) == PROBES:
            break
    return list(found) if len(found) >= LEAST_PROBES else []


def _remember(known: dict[K, V], key: K, value: V) -> V:
    """``known[key]``, which is ``value`` if it is new. Bounded: what is remembered must not grow with the traces."""
    if key not in known and len(known) >= _REMEMBERED:
        known.clear()
    return known.setdefault(key, value)


def _by_field(columns: Sequence[Measure]) -> list[_Group]:
    """The columns by the optional field that they need, so that those of an absent one are not even asked."""
    fields: dict[str, list[Measure]] = {}
    for one in columns:
        fields.setdefault(next((OPTIONAL[name] for name in one.metric.needs if name in OPTIONAL), ""), []).append(one)
    return [(attrgetter(name) if name else None, group, [None] * len(group)) for name, group in fields.items()]


def score(cases: Iterable[tuple[Gold, Trace]], measures: Sequence[Measure], settings: Settings) -> Scorecard:
    """Score pairs at hand: the pure core, for tests and for engines that bring their own reading."""
    pairs = list(cases)
    scorer = Scorer({gold.qid: gold for gold, _ in pairs}, measures, settings)
    for _, trace in pairs:
        if trace.line:
            scorer.add(trace)
    return scorer.close()
