"""What a scorer holds of a part of the traces, small enough to be sent from where they were scored.

Most cases of a run come to one of few outcomes: each is sent once, and of a case where it stands and what it came to.
"""

from __future__ import annotations

from array import array

from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rag_eval.tally import Score

    Scores = tuple[Score | None, ...]


class Outcome(NamedTuple):
    """What a case came to, whichever it is.

    ``scores`` are what most cases have alike, as one object; ``own`` those that may differ in every case, such as what
    hangs on texts or was measured, in the order of the columns that follow. It is empty where no column does.
    """

    scores: Scores
    label: str
    example08: str
    level: str
    habits: int
    own: Scores = ()


class Log:
    """The scored traces of a run in the order in which they came: an entry of each list for each of them.

    ``slots`` are places of gold items in their set, from 0; ``lines`` are those of the traces, from 1.
    """

    def __init__(self) -> None:
        self.slots, self.lines = array("Q"), array("Q")
        self.outcomes: list[Outcome] = []

    def add(self, slot: int, outcome: Outcome, line: int) -> None:
        """Note what the trace of a line came to."""
        self.slots.append(slot)
        self.outcomes.append(outcome)
        self.lines.append(line)


class Aside(NamedTuple):
    """What a scorer found besides scores.

    ``unknown`` counts traces, ``duplicate`` those that another one replaced before anything was made of them. ``pool``
    is the long list that habits refer to; ``unpriced`` are models.
    """

    unknown: int
    duplicate: int
    pool: frozenset[str] | None
    unpriced: frozenset[str]


class Logged(NamedTuple):
    """The log of a run, packed: its outcomes are places in a list."""

    run: str | None
    slots: array[int]
    outcomes: array[int]
    lines: array[int]


class Packed(NamedTuple):
    """Outcomes by the column: those there are without what each has of its own, and for each its place and its own."""

    kinds: list[Outcome]
    places: array[int]
    own: list[Scores]


class Partial(NamedTuple):
    """The logs of a part of the traces, by run in the order in which these came up, and the outcomes in them."""

    runs: tuple[Logged, ...]
    outcomes: Packed
    aside: Aside


def packed(logs: Mapping[str | None, Log], aside: Aside) -> Partial:
    """The partial of logs. Equal outcomes are told by being one object: to compare them takes longer."""
    places: dict[int, int] = {}
    known: list[Outcome] = []
    runs = [
        Logged(run, log.slots, array("Q", _places(log.outcomes, places, known)), log.lines)
        for run, log in logs.items()
        if log.slots
    ]
    return Partial(tuple(runs), _by_kind(known), aside)


def _by_kind(outcomes: Iterable[Outcome]) -> Packed:
    places: dict[tuple[object, ...], int] = {}
    found = Packed([], array("Q"), [])
    for scores, label, example08, level, habits, own in outcomes:
        key = id(scores), label, example08, level, habits
        place = places.get(key)
        if place is None:
            place = places[key] = len(found.kinds)
            found.kinds.append(Outcome(scores, *key[1:]))
        found.places.append(place)
        found.own.append(own)
    return found


def _places(outcomes: Iterable[Outcome], places: dict[int, int], known: list[Outcome]) -> Iterator[int]:
    for one in outcomes:
        place = places.get(id(one))
        if place is None:
            place = places[id(one)] = len(known)
            known.append(one)
        yield place
