"""The main loop: traces paired with gold items, scored, the last trace of each case; and its result, the scorecard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold, Trace, Usage
from rag_eval.stats.tally import Score, Tally, weighted_counts

if TYPE_CHECKING:
    from rag_eval.metrics import Measure

PairTrace = Callable[[Trace], str | None]
"""Finds the qid of the gold item that a trace answers if its own qid does not tell."""
_IDS = ("qid", "q_id", "case_id")
UNNAMED = "the trace has neither an id nor a question"

Scores = tuple[Score | None, ...]
CITES_ALL, SAYS_ALL = 1, 2
"""Behaviours: a case cites all of a long list; its claim also contains the answers to other questions."""


class CaseOutcome(Struct, frozen=True):
    """The outcome of a case, shared by all cases with the same one.

    ``scores`` are one object for the many cases that score alike. ``case_scores`` are scores that may differ in every
    case, such as measured times, in the order of the columns that follow; it is empty without such columns.
    ``search_label`` is the label in a run of a search engine, empty if the case has an answer.
    """

    scores: Scores
    label: str
    coarse_label: str
    level: str
    behaviours: int
    case_scores: Scores = ()
    search_label: str = ""


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

    ``golds`` are the gold items, sorted by qid, each with consecutive cases, one for each run.
    """

    def __init__(self, golds: Sequence[Gold], runs: Mapping[str | None, RunOutcomes]) -> None:
        self.golds = golds
        self._runs = sorted(runs.items(), key=lambda one: one[0] or "")

    def __len__(self) -> int:
        return len(self.golds) * len(self._runs)

    def __iter__(self) -> Iterator[tuple[Gold, str | None, CaseOutcome, int]]:
        """Yield each case: its gold item, its run, its outcome, and the line of its trace, 0 without a trace."""
        for slot, gold in enumerate(self.golds):
            for run, log in self._runs:
                yield gold, run, log.outcomes[slot], log.lines[slot]

    def labels(self) -> Counter[str]:
        """Return how many cases have each label."""
        labels: Counter[str] = Counter()
        for outcome, count in self.outcome_counts:
            labels[outcome.label] += count
        return labels

    def of_search(self) -> Cases:
        """Return the cases with the labels of a search engine."""
        new = {id(old): replace(old, label=old.search_label) for old, _ in self.outcome_counts}
        runs = {}
        for name, run in self._runs:
            runs[name] = copy(run)
            runs[name].outcomes = [new[id(outcome)] for outcome in run.outcomes]
        return Cases(self.golds, runs)

    @cached_property
    def outcome_counts(self) -> list[tuple[CaseOutcome, int]]:
        """Return the distinct outcomes with their counts."""
        outcomes: dict[int, CaseOutcome] = {}
        counts: Counter[int] = Counter()
        for _, log in self._runs:
            outcomes.update(zip(map(id, log.outcomes), log.outcomes, strict=True))
            counts.update(map(id, log.outcomes))
        return [(outcomes[key], count) for key, count in counts.items()]


class Scorecard(Struct, frozen=True):
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


class QuestionIndex:
    """The qids of each question of a gold set, collected when the first trace without an id appears.

    ``golds`` has ``items()``, like a dict of gold items by qid. ``fallback`` finds what they do not have.
    """

    def __init__(self, golds: Any, fallback: QuestionIndex | None = None) -> None:
        self._golds, self._fallback = golds, fallback
        self._qids: dict[str, list[str]] | None = None
        self._turns: dict[tuple[str | None, int | None], str] | None = None

    def pair(self, trace: Trace, note: Callable[[int, str], None]) -> tuple[str | None, str]:
        """Return the qid of the gold item that a trace answers, or None and what is wrong; differing ids are notes."""
        (name, qid), *others = [(name, qid) for name in _IDS if (qid := getattr(trace, name))] or [("", "")]
        for other, value in others:
            if value != qid:
                note(trace.line, f"'{other}' differs from '{name}'; '{name}' is used")
        if qid:
            if trace.conversation and self._at_turn(trace) not in (None, qid):
                text = f"'conversation' and 'turn' are those of another gold item than '{name}'"
                note(trace.line, f"{text}; '{name}' is used")
            return qid, ""
        qid, wrong = self._match(trace)
        return self._fallback._match(trace) if qid is None and self._fallback else (qid, wrong)

    def _match(self, trace: Trace) -> tuple[str | None, str]:
        """Return the qid of the gold item with the turn or the question of a trace."""
        if trace.conversation:
            if trace.turn is None:
                return None, "'conversation' is there without 'turn'"
            match = self._at_turn(trace)
            return match, "" if match else f"no gold item is turn {trace.turn} of {quoted(trace.conversation)}"
        question = trace.q or trace.question
        if not question:
            return None, UNNAMED
        if self._qids is None:
            self._qids = {}
            for qid, gold in self._golds.items():
                self._qids.setdefault(gold.question, []).append(qid)
        qids = self._qids.get(question, [])
        if not qids:
            return None, f"no gold question is {quoted(question)} to the letter"
        return (qids[0], "") if len(qids) == 1 else (None, f"{len(qids)} gold items ask {quoted(question)}")

    def _at_turn(self, trace: Trace) -> str | None:
        """Return the qid of the gold item with the conversation and the turn of a trace."""
        if trace.turn is None:
            return None
        if self._turns is None:
            self._turns = {(gold.conversation, gold.turn): qid for qid, gold in self._golds.items()}
        return self._turns.get((trace.conversation, trace.turn))


def is_named(trace: Trace) -> bool:
    """Return whether a trace has an id or a question, whatever the gold set."""
    return bool(trace.qid or trace.q_id or trace.case_id or trace.q or trace.question or trace.conversation)


def plain_question(text: str) -> str:
    """Return a question without case, punctuation and repeated blanks, for comparison; C++ and C# are not C."""
    letters = (letter if letter.isalnum() or letter in "#%&@" or category(letter)[0] == "S" else " " for letter in text)
    return " ".join("".join(letters).casefold().split())


def is_other_question(trace: Trace, gold: Gold) -> bool:
    """Return whether a trace has another question than its gold item."""
    asked = {text for text in (trace.q, trace.question) if text} - {gold.question}
    return any(plain_question(text) != plain_question(gold.question) for text in asked)


class OutcomeLog:
    """The scored traces of a part of a file, by run.

    ``unknown`` counts traces of no gold item, ``replaced`` those that later ones replace unscored, and ``unread`` those
    without the fields of the reference scorer. ``unpriced`` are models without a price.
    """

    def __init__(self) -> None:
        self.runs = defaultdict[str, RunLog](RunLog)
        self.unknown = self.replaced = self.unread = 0
        self.unpriced: set[str] = set()

    def __len__(self) -> int:
        return sum([len(run.slots) for run in self.runs.values()])


class BaseCaseScorer(ABC):
    """Scores single cases; a gold item is a :class:`Gold` or a reduced form of one.

    ``columns`` name the scores of an outcome.
    """

    columns: tuple[str, ...]

    @abstractmethod
    def score(self, gold: Any, trace: Trace, is_suspect: bool) -> CaseOutcome:
        """Return the outcome of a trace under its gold item; with ``is_suspect`` its claim may contain a leak."""

    @abstractmethod
    def score_missing(self, gold: Any) -> CaseOutcome:
        """Return the outcome of an item without a trace."""

    def suspects(self, traces: Sequence[Trace]) -> Collection[int]:  # noqa: ARG002
        """Return the indexes of traces in whose claims a leak detector may find something, many at once."""
        return ()

    def intern(self, outcome: CaseOutcome) -> CaseOutcome:
        """Return the outcome of another process with objects of this one for what cases share."""
        return outcome

    def unpriced(self, usage: Usage) -> str:  # noqa: ARG002
        """Return the model whose tokens are counted and have no price; empty if there is none."""
        return ""


class Scorer:
    """Scores traces in the order of their file; the last trace of a run and a question counts.

    Memory grows with the gold set and the runs, not with the trace file. Traces of the items ``ignored`` are
    recognised, but not scored.
    """

    def __init__(
        self,
        golds: Mapping[str, Any],
        cases: BaseCaseScorer,
        measures: Sequence[Measure] = (),
        ignored: Container[str] = (),
    ) -> None:
        self._cases, self._measures, self._ignored = cases, tuple(measures), ignored
        self._slots = {qid: slot for slot, qid in enumerate(sorted(golds))}
        self._golds = [golds[qid] for qid in self._slots]
        self._reset()

    def _reset(self) -> None:
        self.log = OutcomeLog()
        self._runs: dict[str, RunOutcomes] = {}
        self._seen = self._unknown = self.unread = 0
        self._unpriced: set[str] = set()

    @property
    def size(self) -> int:
        """Return the number of gold items."""
        return len(self._golds)

    def empty_copy(self) -> Scorer:
        """Return a scorer of the same kind that has seen no trace."""
        other = copy(self)
        other._reset()
        return other

    def add_traces(self, traces: Sequence[Trace], pair: PairTrace | None = None, answered: Sequence[int] = b"") -> None:
        """Score traces into the log.

        ``answered`` tells for each item whether a later trace answers it, which replaces traces of this log without a
        run.
        """
        golds, slots, log, cases = self._golds, self._slots, self.log, self._cases
        suspects = cases.suspects(traces)
        name, run = "", log.runs[""]
        for index, trace in enumerate(traces):
            slot = slots.get(trace.qid)
            if slot is None or trace.q_id or trace.case_id or trace.conversation:
                qid = pair(trace) if pair else trace.qid
                slot = None if qid is None else slots.get(qid)
                if slot is None:
                    log.unknown += qid is not None and qid not in self._ignored
                    continue
            if trace.usage is not None and (model := cases.unpriced(trace.usage)):
                log.unpriced.add(model)
            if trace.run != name:
                name, run = trace.run, log.runs[trace.run]
            if answered and answered[slot] and not name:
                log.replaced += 1
                continue
            run.slots.append(slot)
            run.outcomes.append(cases.score(golds[slot], trace, index in suspects))
            run.lines.append(trace.line)

    def settle(self) -> None:
        """Replace earlier traces by the traces of the log."""
        self.merge(self.log, 0)
        self.log = OutcomeLog()

    def intern(self, log: OutcomeLog) -> None:
        """Replace the outcomes in the log of another process by this scorer's equal ones, which need no memory."""
        for run in log.runs.values():
            distinct = {id(outcome): outcome for outcome in run.outcomes}
            known = {key: self._cases.intern(outcome) for key, outcome in distinct.items()}
            run.outcomes = [known[id(outcome)] for outcome in run.outcomes]

    def merge(self, log: OutcomeLog, lines_before: int) -> None:
        """Add the log of another scorer, whose traces are after all others; its lines count from ``lines_before``."""
        self._seen += log.replaced
        self._unknown += log.unknown
        self.unread += log.unread
        self._unpriced |= log.unpriced
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
            for slot, outcome in enumerate(run.outcomes):
                if outcome is NO_OUTCOME:
                    run.outcomes[slot] = self._cases.score_missing(self._golds[slot])
        cases = Cases(self._golds, {name or None: run for name, run in self._runs.items()})
        expected, labels = len(cases), cases.labels()
        missing = labels["MISSING"]
        scored = expected - missing
        counts = Completeness(expected, scored, missing, self._seen - scored, self._unknown, labels["ERROR"])
        unpriced = tuple(sorted(self._unpriced))
        return Scorecard(self._measures, self._cases.columns, cases, counts, unpriced)
