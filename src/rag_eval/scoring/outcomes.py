"""Outcomes: what each case scored, kept in a few bytes a case, and merged from parts of a trace file."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from rag_eval.cases.integrity import LEAST_POOL
from rag_eval.stats.tally import Score

Scores = tuple[Score | None, ...]


class Outcome(NamedTuple):
    """The outcome of a case, shared by all cases with the same one.

    ``scores`` are one object for the many cases that score alike. ``own`` are scores that may differ in every case,
    such as measured times, in the order of the columns that follow; it is empty if no column does.
    """

    scores: Scores
    label: str
    example08: str
    level: str
    habits: int
    own: Scores = ()


class RunLog:
    """The outcomes of one run in the order of its traces.

    An entry of each list is a trace: the place of its gold item in the set, its outcome, its line, and the fingerprint
    of the ids that it retrieved if they are a long list, else 0.
    """

    def __init__(self) -> None:
        self.slots, self.lines, self.pools = array("Q"), array("Q"), array("Q")
        self.outcomes: list[Outcome] = []


class OutcomeLog:
    """The scored traces of a part of a file, by run.

    ``unknown`` counts traces of no gold item, ``replaced`` those that were not scored as others replace them, and
    ``unread`` those without what the reference scorer reads. ``pool_sizes`` are the lengths of long lists of ids by
    their fingerprint, ``unpriced`` models without a price.
    """

    def __init__(self) -> None:
        self.runs: dict[str, RunLog] = {}
        self.unknown = self.replaced = self.unread = 0
        self.unpriced: set[str] = set()
        self.pool_sizes: dict[int, int] = {}

    def __len__(self) -> int:
        return sum([len(run.slots) for run in self.runs.values()])

    def run(self, name: str) -> RunLog:
        """Return the log of a run."""
        return self.runs.get(name) or self.runs.setdefault(name, RunLog())

    def pool(self, ids: Sequence[str]) -> int:
        """Return the fingerprint of the set of ids in a long list, which is the same in every process; 0 for others."""
        if len(ids) <= LEAST_POOL:
            return 0
        fingerprint = int.from_bytes(blake2b("\0".join(sorted(ids)).encode(), digest_size=7).digest()) + 1
        self.pool_sizes[fingerprint] = len(ids)
        return fingerprint

    def replace_outcomes(self, replacement: Callable[[Outcome], Outcome]) -> None:
        """Replace every outcome, each distinct object once."""
        known: dict[int, Outcome] = {}
        for run in self.runs.values():
            for outcome in run.outcomes:
                if id(outcome) not in known:
                    known[id(outcome)] = replacement(outcome)
            run.outcomes = [known[id(outcome)] for outcome in run.outcomes]


_NOTHING = Outcome((), "", "", "", 0)


class RunOutcomes:
    """The outcomes of one run by the places of the gold items, and what its log knows of their traces."""

    def __init__(self, size: int) -> None:
        self.outcomes: list[Outcome] = [_NOTHING] * size
        self.lines, self.pools = array("Q", bytes(8 * size)), array("Q", bytes(8 * size))

    def store(self, log: RunLog, lines_before: int) -> None:
        """Store the traces of a log, of each case the last; their lines count from ``lines_before``."""
        # Millions pass here: no step of it is Python's for each of them.
        deque(map(self.outcomes.__setitem__, log.slots, log.outcomes), maxlen=0)
        deque(map(self.lines.__setitem__, log.slots, map(lines_before.__add__, log.lines)), maxlen=0)
        deque(map(self.pools.__setitem__, log.slots, log.pools), maxlen=0)

    def missing(self) -> list[int]:
        """Return the places without a trace."""
        return [slot for slot, outcome in enumerate(self.outcomes) if outcome is _NOTHING]
