"""What a report keeps of a run: the value of each metric, and the scores of each case."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeVar

from rag_eval.tally import Shown, Value, as_shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_eval.tally import Score

T = TypeVar("T")
_PLACES, _KEPT = attrgetter("places"), attrgetter("kept")


class MetricResult(NamedTuple):
    """A metric's value over ``n`` cases; ``value`` is None where it applies to none.

    ``exact`` is the value as a ratio of whole numbers where it is one; ``hits`` counts the ones of a 0/1 metric.
    ``low`` and ``high`` enclose the system's true value with 95 % confidence, as far as they are known; ``small`` says
    that there are too few cases for that.
    """

    value: float | None
    n: int
    exact: str | None
    hits: int | None
    better: str
    perspective: str
    low: float | None = None
    high: float | None = None
    small: bool = False

    def as_value(self) -> Value:
        """The value as gates compare it."""
        return Value(Fraction(self.exact) if self.exact is not None else self.value, self.n, self.hits)


class Scores(Mapping[str, Shown]):
    """A case's score by column, of those that apply: what the scorer keeps, made a number where it is asked for.

    As dicts the scores of many cases would take more room than all else that is known of them, and most are never
    looked at. ``places`` says where a column stands in ``kept``; all cases share one.
    """

    __slots__ = ("kept", "places")

    def __init__(self, places: Mapping[str, int], kept: Sequence[Score | None]) -> None:
        self.places, self.kept = places, kept

    def __getitem__(self, column: str) -> Shown:
        score = self.kept[self.places[column]]
        if score is None:
            raise KeyError(column)
        return as_shown(score)

    def get(self, column: str, default: T | None = None) -> Shown | T | None:  # type: ignore[override]
        """As a dict's; gates ask it of every case."""
        place = self.places.get(column)
        score = None if place is None else self.kept[place]
        return default if score is None else as_shown(score)

    def __iter__(self) -> Iterator[str]:
        return (column for column, place in self.places.items() if self.kept[place] is not None)

    def __len__(self) -> int:
        return sum(score is not None for score in self.kept)

    def __repr__(self) -> str:
        return repr(self.as_dict())

    def as_dict(self) -> dict[str, Shown]:
        """All of them at once."""
        kept = self.kept
        return {column: as_shown(score) for column, place in self.places.items() if (score := kept[place]) is not None}


def looked_up(cases: Sequence[Mapping[str, Shown]], column: str) -> list[Shown | None]:
    """The score of each case in a column, None where it does not apply; what many cases score alike is shown once."""
    if set(map(type, cases)) != {Scores} or len(set(map(id, map(_PLACES, cases)))) > 1:
        return [one.get(column) for one in cases]
    place = _PLACES(cases[0]).get(column)
    if place is None:
        return [None] * len(cases)
    kept = list(map(itemgetter(place), map(_KEPT, cases)))
    shown = {score: None if score is None else as_shown(score) for score in set(kept)}
    return [shown[score] for score in kept]


class Question(NamedTuple):
    """One case: its labels, and its score under each metric that applies.

    ``scores`` go by the name that all folds of a metric share. ``gold_sha256`` is the hash of the gold item's exact
    bytes, as sign-off has it; empty where it is not known. ``slices`` are those of the fields that the policy goes by.
    """

    qid: str
    run: str | None
    question: str
    answerable: bool
    label: str
    example08: str
    scores: Mapping[str, Shown]
    gold_line: int
    trace_line: int
    gold_sha256: str = ""
    slices: tuple[str, ...] = ()
