"""Cases into a scorecard: every score of every case, and what each metric makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from itertools import chain, product
from operator import eq
from typing import NamedTuple, overload

from rag_eval.assessing import Assessor
from rag_eval.folds import FOLDS
from rag_eval.held import Held
from rag_eval.partial import Aside, Log, packed
from rag_eval.told import Told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from typing import Any

    from rag_eval.metrics import Measure
    from rag_eval.model import Gold, Settings, Trace
    from rag_eval.partial import Outcome, Partial
    from rag_eval.tally import Score, Tally, Value
    from rag_eval.told import Batch, QidOf

    Row = dict[str, Any]
    Item = tuple[Gold, str | None, Outcome, int]

_SETTLE = 1 << 16  # traces, until they are let take the places of earlier ones
_AT_ONCE = 200  # of those at hand: what one comes to is known for those after these


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


class Cases(Sequence[Scored]):
    """All cases of all runs, sorted by qid and run. Each is made when it is looked at: they may be many millions."""

    def __init__(self, golds: Sequence[Gold], runs: Mapping[str | None, Held]) -> None:
        self._golds = golds
        self._order = sorted(range(len(self._golds)), key=lambda slot: self._golds[slot].qid)
        self._counted: list[tuple[Outcome, int]] | None = None
        self._runs = sorted(runs.items(), key=lambda one: one[0] or "")

    def __len__(self) -> int:
        return len(self._order) * len(self._runs)

    def __iter__(self) -> Iterator[Scored]:
        return map(_scored, self.items())

    def items(self) -> Iterator[Item]:
        """Gold item, run, outcome and line of each case: for those who make something else of them."""
        for slot, (run, held) in product(self._order, self._runs):
            yield self._golds[slot], run, held.outcomes[slot], held.lines[slot]

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

    def _count(self) -> list[tuple[Outcome, int]]:
        found = {id(one): one for _, held in self._runs for one in held.outcomes}
        counts = Counter(chain.from_iterable(map(id, held.outcomes) for _, held in self._runs))
        return [(found[own], count) for own, count in counts.items()]


def _scored(item: Item) -> Scored:
    gold, run, (scores, label, example08, level, habits, own), line = item
    return Scored(gold.qid, run, (*scores, *own), label, example08, level, gold.line, line, habits)


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
        outcomes = self.cases.outcomes()
        alike = _counted([(outcome.scores, count) for outcome, count in outcomes])
        own = _counted([(outcome.own, count) for outcome, count in outcomes])
        nothing: list[Counter[Any]] = [Counter() for _ in self.columns]
        return dict(zip(self.columns, [*alike, *own] or nothing, strict=True))

    def labels(self) -> dict[str, int]:
        """How many cases have each label."""
        found: Counter[str] = Counter()
        for outcome, count in self.cases.outcomes():
            found[outcome.label] += count
        return dict(sorted(found.items()))

    def values(self) -> dict[str, Value]:
        """Each measure's value over the cases to which it applies."""
        tallies, own = self.tallies(), (one for one in self.measures if one.metric.level == "case")
        return {one.name: FOLDS[one.fold].value(tallies[one.column]) for one in own}


def _counted(scores: Iterable[tuple[tuple[Score | None, ...], int]]) -> list[Counter[Any]]:
    """The multiset of the scores of each column, of cases that may have them as one object."""
    known: dict[int, tuple[Score | None, ...]] = {}
    counts: Counter[int] = Counter()
    for one, count in scores:
        known[id(one)] = one
        counts[id(one)] += count
    # Many may have come to something of their own: what one case came to each is counted at once.
    once = [own for own, count in zip(known.values(), map(counts.__getitem__, known), strict=True) if count == 1]
    found: list[Counter[Any]] = [Counter(column) for column in zip(*once, strict=True)]
    for key, own in known.items():
        found = found or [Counter() for _ in own]
        if counts[key] > 1:
            for counted, score in zip(found, own, strict=True):
                counted[score] += counts[key]
    for counted in found:
        del counted[None]
    return found


class Scorer:
    """Takes traces as they come, keeps of each case what it came to, and closes with those that never came.

    The last trace of a (run, qid) wins. Memory grows with the gold set and the runs, not with the trace file. Traces of
    items ``beyond`` those asked are read and left alone.
    """

    least_shared = 4 << 20
    """Bytes of a file from which it is shared out."""

    def __init__(
        self,
        golds: Mapping[str, Gold],
        measures: Sequence[Measure],
        settings: Settings,
        beyond: Container[str] = (),
    ) -> None:
        self._measures, self._beyond = tuple(measures), beyond
        # Folds of a metric share its scores.
        columns = {one.column: one for one in measures if one.metric.level == "case"}.values()
        self._assessor = Assessor(golds, list(columns), settings)
        self._in_order = list(golds.values())
        self._slots = {qid: slot for slot, qid in enumerate(golds)}
        self._hold_nothing()

    def _hold_nothing(self, *, apart: bool = False) -> None:
        self._logs: dict[str | None, Log] = {}
        self._held: dict[str | None, Held] = {}
        self._duplicate = self._unknown = self._waiting = 0
        self._apart = apart

    def enough(self, row: Row) -> tuple[str, ...] | None:
        """What rows of the same fields have to tell besides what all do; None where they come to more than that."""
        return self._assessor.enough(row)

    def take(self, batches: Iterable[Batch], qid_of: QidOf) -> None:
        """Score valid trace rows with their lines, each in place of an earlier one of the same run and qid.

        ``qid_of`` finds the qid of a row that does not simply say it, or says what is wrong.
        """
        for batch in batches:
            if isinstance(batch, Told):
                self._take_told(batch, qid_of)
            else:
                self._take_rows(batch, qid_of)
            if self._waiting >= _SETTLE and not self._apart:
                self._settle()

    def _take_told(self, told: Told, qid_of: QidOf) -> None:
        slots = list(map(self._slots.get, told.qids))
        self._waiting += len(slots)
        outcomes = self._assessor.told(slots, told)
        if not all(outcomes) or (told.runs and told.runs.count(told.runs[0]) < len(slots)):
            self._take_apart(told, slots, outcomes, qid_of)
            return
        log = self._log(told.runs[0] or None if told.runs else None)
        log.slots.extend(slots)  # type: ignore[arg-type]  # where there is an outcome there is an item
        log.outcomes.extend(outcomes)  # type: ignore[arg-type]
        log.lines.extend(range(told.first, told.first + len(slots)))

    def _take_apart(self, told: Told, slots: list[int | None], outcomes: list[Outcome | None], qid_of: QidOf) -> None:
        """Take traces one by one: some are of other profiles, items or runs, or written otherwise."""
        for slot, known, entry in zip(slots, outcomes, told.entries(), strict=True):
            line, qid, run = entry[:3]
            if slot is not None:
                outcome = known or self._assessor.trace(self._in_order[slot], told.trace(entry))
                self._log(run or None).add(slot, outcome, line)
            elif qid:
                self._unknown += qid not in self._beyond
            elif line in told.rows:
                self._take_rows([(line, told.rows[line])], qid_of)

    def _take_rows(self, rows: Iterable[tuple[int, Row]], qid_of: QidOf) -> None:
        slot_of, golds, outcome_of = self._slots.get, self._in_order, self._assessor.row
        of: str | None = None
        log = self._log(of)
        for line, row in rows:
            qid = row.get("qid")
            if not qid or "q_id" in row or "case_id" in row:
                qid = qid_of(row, line)
            slot = slot_of(qid)  # type: ignore[arg-type]  # a row whose problem is said has none
            if slot is None:
                self._unknown += qid is not None and qid not in self._beyond
                continue
            run = row.get("run") or None
            if run != of:
                of, log = run, self._log(run)
            log.add(slot, outcome_of(golds[slot], row, line), line)
            self._waiting += 1

    def add(self, trace: Trace) -> None:
        """Score a trace, in place of an earlier one of the same run and qid."""
        slot = self._slots.get(trace.qid)
        if slot is None:
            self._unknown += trace.qid not in self._beyond
        else:
            log = self._log(trace.run)
            log.add(slot, self._assessor.trace(self._in_order[slot], trace), trace.line)
            self._waiting += 1
            if self._waiting >= _SETTLE and not self._apart:
                self._settle()

    def add_all(self, traces: Sequence[Trace]) -> None:
        """As :meth:`add` for each of them, which takes longer."""
        for begin in range(0, len(traces), _AT_ONCE):
            some = traces[begin : begin + _AT_ONCE]
            told = Told.of(some)
            slots = list(map(self._slots.get, told.qids))
            for trace, slot, outcome in zip(some, slots, self._assessor.told(slots, told), strict=True):
                if slot is None or outcome is None:
                    self.add(trace)
                else:
                    self._log(trace.run).add(slot, outcome, trace.line)
                    self._waiting += 1

    def close(self) -> Scorecard:
        """The scorecard, with every gold item that no trace answered as an empty, shipped answer."""
        self._settle()
        for held in (self._held or self._nothing_came()).values():
            for slot, gold in held.missing(self._in_order):
                held.outcomes[slot] = self._assessor.missing(gold)
        cases = Cases(self._in_order, self._held)
        aside = len(self._assessor.pool or ()), tuple(sorted(self._assessor.unpriced))
        return Scorecard(self._measures, self._assessor.columns, cases, self._completeness(cases), *aside)

    def fresh(self, pool: frozenset[str] | None = None, *, apart: bool = False) -> Scorer:
        """A scorer of the same kind that holds no case yet; ``pool`` is the long list to compare others with.

        One that is ``apart`` is to be asked for its :meth:`partial`, and keeps the traces as they came.
        """
        other = copy(self)
        other._assessor = self._assessor.fresh(pool)
        other._hold_nothing(apart=apart)
        return other

    def partial(self) -> Partial:
        """What it holds, without the gold; of a scorer that is apart."""
        if not self._apart:
            raise ValueError("this scorer has let traces take the places of others")
        return packed(self._logs, Aside(self._unknown, self._assessor.pool, frozenset(self._assessor.unpriced)))

    def agrees(self, partial: Partial) -> bool:
        """Whether the habits of a later part refer to the long list that they would refer to here."""
        return None in (self.pool, partial.aside.pool) or self.pool == partial.aside.pool

    def absorb(self, partial: Partial, before: int) -> None:
        """Take what another scorer held of the traces that follow, the first of which is ``before`` lines on.

        Then it holds what it would if it had scored them itself; the other one has to agree.
        """
        self._assessor.pool = self.pool or partial.aside.pool
        self._assessor.unpriced |= partial.aside.unpriced
        self._unknown += partial.aside.unknown
        outcomes = self._assessor.all_shared(partial.outcomes)
        for run, slots, places, lines in partial.runs:
            came = list(map(outcomes.__getitem__, places))
            self._duplicate += self._of_run(run).put(slots, came, lines, before)

    @property
    def pool(self) -> frozenset[str] | None:
        """The first long list that a case retrieved."""
        return self._assessor.pool

    def _log(self, run: str | None) -> Log:
        return self._logs.get(run) or self._logs.setdefault(run, Log())

    def _settle(self) -> None:
        for run, log in self._logs.items():
            if not log.slots:
                continue
            self._duplicate += self._of_run(run).put(log.slots, log.outcomes, log.lines)
        self._logs.clear()
        self._waiting = 0

    def _of_run(self, run: str | None) -> Held:
        return self._held.get(run) or self._held.setdefault(run, Held(len(self._in_order)))

    def _nothing_came(self) -> dict[str | None, Held]:
        self._of_run(None)
        return self._held

    def _completeness(self, cases: Cases) -> Completeness:
        labels: Counter[str] = Counter()
        for outcome, count in cases.outcomes():
            labels[outcome.label] += count
        expected, missing = len(cases), labels["MISSING"]
        return Completeness(expected, expected - missing, missing, self._duplicate, self._unknown, labels["ERROR"])


def score(cases: Iterable[tuple[Gold, Trace]], measures: Sequence[Measure], settings: Settings) -> Scorecard:
    """Score pairs at hand: the pure core, for tests and for engines that bring their own reading."""
    pairs = list(cases)
    scorer = Scorer({gold.qid: gold for gold, _ in pairs}, measures, settings)
    scorer.add_all([trace for _, trace in pairs if trace.line])
    return scorer.close()
