"""The loop: traces into outcomes, of each case the last one, and the outcomes into a scorecard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from rag_eval.cases.integrity import LEAST_POOL
from rag_eval.cases.labels import ABSENT
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.metrics import Measure
from rag_eval.metrics.operations import unpriced
from rag_eval.scoring.case_scorer import CaseScorer
from rag_eval.scoring.outcomes import OutcomeLog, RunOutcomes
from rag_eval.scoring.scorecard import Cases, Completeness, Scorecard

PairTrace = Callable[[Trace], str | None]
"""Finds the qid of the gold item that a trace answers if its own qid does not tell."""


class Scorer:
    """Scores traces in the order of their file; the last trace of a run and a question counts.

    Memory grows with the gold set and the runs, not with the trace file. Traces of the items ``ignored`` are known and
    not scored.
    """

    def __init__(
        self,
        golds: Mapping[str, Gold],
        measures: Sequence[Measure],
        settings: Settings,
        ignored: Container[str] = (),
    ) -> None:
        self._measures, self._settings, self._ignored = tuple(measures), settings, ignored
        # Aggregations of a metric share its scores.
        columns = {one.column: one for one in measures if one.metric.level == "case"}.values()
        self._cases = CaseScorer(golds, list(columns), settings)
        self._golds = list(golds.values())
        self._slots = {qid: slot for slot, qid in enumerate(golds)}
        self._is_plain: dict[int, bool] = {}
        self._reset()

    def _reset(self) -> None:
        self.log = OutcomeLog()
        self._runs: dict[str, RunOutcomes] = {}
        self._seen = self._unknown = self.unread = 0
        self._unpriced: set[str] = set()
        self._pool_sizes: dict[int, int] = {}

    def empty_copy(self) -> Scorer:
        """Return a scorer of the same kind that has seen no trace."""
        other = object.__new__(type(self))  # copy.copy would make a ReferenceScorer anew, gold and all
        other.__dict__.update(self.__dict__)
        other._reset()
        return other

    def add(
        self, traces: Sequence[Trace], pair: PairTrace | None = None, answered: Container[int] = frozenset()
    ) -> None:
        """Score traces into the log. Those without a run to items in ``answered`` only count: others replace them."""
        golds, slots, log, score = self._golds, self._slots, self.log, self._cases.score
        suspects = self._cases.suspects(traces)
        name, run = "", log.run("")
        for place, trace in enumerate(traces):
            slot = slots.get(trace.qid)
            if slot is None or trace.q_id or trace.case_id:
                qid = pair(trace) if pair else trace.qid
                slot = None if qid is None else slots.get(qid)
                if slot is None:
                    log.unknown += qid is not None and qid not in self._ignored
                    continue
            if trace.usage is not None and (model := unpriced(trace.usage, self._settings)):
                log.unpriced.add(model)
            if trace.run != name:
                name, run = trace.run, log.run(trace.run)
            if slot in answered and not name:
                log.replaced += 1
                continue
            is_plain = self._is_plain.get(slot)
            if is_plain is None:
                is_plain = self._is_plain[slot] = golds[slot].is_plain
            run.slots.append(slot)
            run.outcomes.append(score(golds[slot], trace, is_plain, place in suspects))
            run.lines.append(trace.line)
            ids = trace.chunks if trace.retrieved_ids is None else trace.retrieved_ids
            run.pools.append(log.pool(trace.retrieved) if ids is not None and len(ids) > LEAST_POOL else 0)

    def settle(self) -> None:
        """Let the traces of the log replace earlier ones."""
        self._store(self.log, 0)
        self.log = OutcomeLog()

    def merge(self, log: OutcomeLog, lines_before: int) -> None:
        """Add the log of another scorer, whose traces follow all others; its lines count from ``lines_before``."""
        log.replace_outcomes(self._cases.intern)
        self._store(log, lines_before)

    def _store(self, log: OutcomeLog, lines_before: int) -> None:
        self._seen += log.replaced
        self._unknown += log.unknown
        self.unread += log.unread
        self._unpriced |= log.unpriced
        self._pool_sizes.update(log.pool_sizes)
        for name, run in log.runs.items():
            if run.slots:
                self._seen += len(run.slots)
                if name not in self._runs:
                    self._runs[name] = RunOutcomes(len(self._golds))
                self._runs[name].store(run, lines_before)

    def close(self) -> Scorecard:
        """Return the scorecard. A gold item that no trace answered is scored as an empty answer."""
        self.settle()
        if not self._runs:
            self._runs[""] = RunOutcomes(len(self._golds))
        for run in self._runs.values():
            for slot in run.missing():
                run.outcomes[slot] = self._cases.score_missing(self._golds[slot], self._golds[slot].is_plain)
        cases = Cases(self._golds, {name or None: run for name, run in self._runs.items()})
        return Scorecard(
            self._measures,
            self._cases.columns,
            cases,
            self._completeness(cases),
            self._shared_pool(),
            tuple(sorted(self._unpriced)),
        )

    def _completeness(self, cases: Cases) -> Completeness:
        labels: Counter[str] = Counter()
        for outcome, count in cases.kinds():
            labels[outcome.label] += count
        expected, missing = len(cases), labels["MISSING"]
        scored = expected - missing
        return Completeness(expected, scored, missing, self._seen - scored, self._unknown, labels["ERROR"])

    def _shared_pool(self) -> int:
        """The length of the long list of ids that every case retrieved; 0 if there is no such list."""
        if not self._pool_sizes:
            return 0
        pools = {
            pool
            for run in self._runs.values()
            for outcome, pool in zip(run.outcomes, run.pools, strict=True)
            if outcome.label not in ABSENT
        }
        return self._pool_sizes.get(pools.pop(), 0) if len(pools) == 1 else 0


def score(cases: Iterable[tuple[Gold, Trace]], measures: Sequence[Measure], settings: Settings) -> Scorecard:
    """Score pairs in memory."""
    pairs = list(cases)
    scorer = Scorer({gold.qid: gold for gold, _ in pairs}, measures, settings)
    scorer.add([trace for _, trace in pairs if trace.line])
    return scorer.close()
