"""What a scorer holds of a part of the traces, small enough to be sent from where they were scored.

Most cases of a run come to one of few outcomes: each is sent once, and of a case where it stands and what it came to.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_eval.tally import Score

    Scores = tuple[Score | None, ...]


class Outcome(NamedTuple):
    """What a case came to, whichever it is."""

    scores: Scores
    label: str
    example08: str
    level: str
    habits: int


class Answered(NamedTuple):
    """A scored case: which, what it came to, and the line of its trace in the part, from 1."""

    run: str | None
    qid: str
    outcome: Outcome
    line: int


class Aside(NamedTuple):
    """What a scorer found besides scores.

    ``duplicate`` and ``unknown`` count traces. ``pool`` is the long list that habits refer to; ``unpriced`` are models.
    """

    duplicate: int
    unknown: int
    pool: frozenset[str] | None
    unpriced: frozenset[str]


class Partial(NamedTuple):
    """The scored cases of a part in the order in which they were first answered, as columns; the last trace counts.

    ``run``, ``outcome`` and ``line`` have an entry a case; the first two are places in ``runs`` and ``outcomes``.
    """

    qids: list[str]
    run: array[int]
    outcome: array[int]
    line: array[int]
    runs: list[str | None]
    outcomes: list[Outcome]
    aside: Aside

    def cases(self) -> Iterator[Answered]:
        """The cases one by one."""
        for qid, run, outcome, line in zip(self.qids, self.run, self.outcome, self.line, strict=True):
            yield Answered(self.runs[run], qid, self.outcomes[outcome], line)


def packed(cases: Iterable[Answered], aside: Aside) -> Partial:
    """The partial of scored cases. Equal scores are told by being one object: to compare them takes longer."""
    qids: list[str] = []
    columns = array("Q"), array("Q"), array("Q")
    runs: dict[str | None, int] = {}
    outcomes: dict[tuple[int, str, str, str, int], tuple[int, Outcome]] = {}
    for run, qid, outcome, line in cases:
        qids.append(qid)
        columns[0].append(runs.setdefault(run, len(runs)))
        known = outcomes.setdefault((id(outcome.scores), *outcome[1:]), (len(outcomes), outcome))
        columns[1].append(known[0])
        columns[2].append(line)
    return Partial(qids, *columns, list(runs), [one for _, one in outcomes.values()], aside)
