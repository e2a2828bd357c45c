"""Traces into a scorecard: each is scored as it comes, and of each case the last one counts."""

from __future__ import annotations

from collections import Counter
from copy import copy

from rag_eval.scoring.assessing import Assessor
from rag_eval.scoring.held import Held
from rag_eval.scoring.partial import Aside, Log, packed
from rag_eval.scoring.scorecard import Cases, Completeness, Scorecard
from rag_eval.told import Told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from typing import Any

    from rag_eval.metrics import Measure
    from rag_eval.model import Gold, Settings, Trace
    from rag_eval.scoring.partial import Outcome, Partial
    from rag_eval.scoring.waiting import Waiting
    from rag_eval.told import Batch, QidOf

    Row = dict[str, Any]

_SETTLE = 1 << 16  # traces, until they are let take the places of earlier ones


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

    def _hold_nothing(self, *, apart: bool = False, behind: set[int] | None = None) -> None:
        self._logs: dict[str | None, Log] = {}
        self._held: dict[str | None, Held] = {}
        self._duplicate = self._unknown = self._unsettled = 0
        self._waiting: Waiting | None = None  # made for the first that may wait: start-up time
        self._apart, self._behind = apart, behind

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
                self._take_left()
                self._take_rows(batch, qid_of)
            if self._unsettled >= _SETTLE and not self._apart:
                self._settle()

    def _take_told(self, told: Told, qid_of: QidOf) -> None:
        slots = list(map(self._slots.get, told.qids))
        if None in slots:
            self._take_left()
            self._take_slots(slots, told, qid_of)
            return
        for due in self._room().due(slots, told):  # type: ignore[arg-type]  # each has a place
            self._take_slots(*due, qid_of)

    def _take_slots(self, slots: Sequence[int | None], told: Told, qid_of: QidOf) -> None:
        self._unsettled += len(slots)
        outcomes = self._assessor.told(slots, told)
        if not all(outcomes) or (told.runs and told.runs.count(told.runs[0]) < len(slots)):
            self._take_apart(told, slots, outcomes, qid_of)
            return
        log = self._log(told.runs[0] or None if told.runs else None)
        log.slots.extend(slots)  # type: ignore[arg-type]  # where there is an outcome there is an item
        log.outcomes.extend(outcomes)  # type: ignore[arg-type]
        log.lines.extend(told.lines)

    def _room(self) -> Waiting:
        """Where traces wait: not those of runs, nor where the first long list of a file or an unknown price may be."""
        if self._waiting is None:
            from rag_eval.scoring.telling import any_long
            from rag_eval.scoring.waiting import Waiting  # only large files need it: start-up time

            def barred(told: Told) -> bool:
                return bool(told.runs) or "usage" in told.more or any_long(told)

            self._waiting = Waiting(len(self._in_order), self._behind or frozenset(), barred)
        return self._waiting

    def _take_left(self) -> None:
        """Take those of the traces that wait which no other one of them replaces."""
        for slots, told in self._waiting.leave() if self._waiting else ():
            self._take_slots(slots, told, _no_qid)

    def _take_apart(
        self, told: Told, slots: Sequence[int | None], outcomes: list[Outcome | None], qid_of: QidOf
    ) -> None:
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
            self._unsettled += 1

    def add(self, *traces: Trace) -> None:
        """Score traces, each in place of an earlier one of the same run and qid."""
        self._take_left()
        slot_of, golds, outcome_of = self._slots.get, self._in_order, self._assessor.trace
        of: str | None = None
        log = self._log(of)
        for trace in traces:
            slot = slot_of(trace.qid)
            if slot is None:
                self._unknown += trace.qid not in self._beyond
                continue
            if trace.run != of:
                of, log = trace.run, self._log(trace.run)
            log.add(slot, outcome_of(golds[slot], trace), trace.line)
            self._unsettled += 1
            if self._unsettled >= _SETTLE and not self._apart:
                self._settle()
                of, log = None, self._log(None)

    def close(self) -> Scorecard:
        """The scorecard, with every gold item that no trace answered as an empty, shipped answer."""
        self._settle()
        for held in (self._held or self._nothing_came()).values():
            for slot, gold in held.missing(self._in_order):
                held.outcomes[slot] = self._assessor.missing(gold)
        cases = Cases(self._in_order, self._held)
        aside = len(self._assessor.pool or ()), tuple(sorted(self._assessor.unpriced))
        return Scorecard(self._measures, self._assessor.columns, cases, self._completeness(cases), *aside)

    def fresh(
        self, pool: frozenset[str] | None = None, *, apart: bool = False, behind: set[int] | None = None
    ) -> Scorer:
        """A scorer of the same kind that holds no case yet; ``pool`` is the long list to compare others with.

        One that is ``apart`` is to be asked for its :meth:`partial`, and keeps the traces as they came. ``behind`` are
        the places of items that a trace further behind answers, and will be those of its own as well.
        """
        other = copy(self)
        other._assessor = self._assessor.fresh(pool)
        other._hold_nothing(apart=apart, behind=behind)
        return other

    def partial(self) -> Partial:
        """What it holds, without the gold; of a scorer that is apart."""
        if not self._apart:
            raise ValueError("this scorer has let traces take the places of others")
        self._take_left()
        if self._behind is not None and None in self._logs:
            self._behind.update(self._logs[None].slots)
        aside = Aside(self._unknown, self._replaced, self._assessor.pool, frozenset(self._assessor.unpriced))
        return packed(self._logs, aside)

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
        self._duplicate += partial.aside.duplicate
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
        self._take_left()
        for run, log in self._logs.items():
            if not log.slots:
                continue
            self._duplicate += self._of_run(run).put(log.slots, log.outcomes, log.lines)
        self._logs.clear()
        self._unsettled = 0

    def _of_run(self, run: str | None) -> Held:
        return self._held.get(run) or self._held.setdefault(run, Held(len(self._in_order)))

    def _nothing_came(self) -> dict[str | None, Held]:
        self._of_run(None)
        return self._held

    def _completeness(self, cases: Cases) -> Completeness:
        labels: Counter[str] = Counter()
        for kind, count in cases.kinds():
            labels[kind.label] += count
        expected, missing = len(cases), labels["MISSING"]
        return Completeness(expected, expected - missing, missing, self._replaced, self._unknown, labels["ERROR"])

    @property
    def _replaced(self) -> int:
        """Traces that others took the place of."""
        return self._duplicate + (self._waiting.replaced if self._waiting else 0)


def _no_qid(_row: Row, _line: int) -> None:
    """Of traces that waited every one has its item."""


def score(cases: Iterable[tuple[Gold, Trace]], measures: Sequence[Measure], settings: Settings) -> Scorecard:
    """Score pairs at hand: the pure core, for tests and for engines that bring their own reading."""
    pairs = list(cases)
    scorer = Scorer({gold.qid: gold for gold, _ in pairs}, measures, settings)
    scorer.add(*[trace for _, trace in pairs if trace.line])
    return scorer.close()
