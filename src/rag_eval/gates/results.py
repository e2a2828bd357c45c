"""What a report keeps of a run: the value of each metric, and the scores of each case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from msgspec import Meta, Struct

from rag_eval.cases.labels import GOOD
from rag_eval.contract.fields import LARGEST, Count
from rag_eval.stats.tally import Shown, Value, as_shown

if TYPE_CHECKING:
    from rag_eval.stats.tally import Score

    T = TypeVar("T")

_PLACES, _KEPT, _OWN = map(attrgetter, ("places", "kept", "own"))
_SHOWN = {float, type(None)}


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
    looked at. ``places`` says where a column stands in ``kept``, which cases share that score alike, or after that in
    ``own``, which differ; all cases of a run share it, and it says how many there are of either.
    """

    __slots__ = ("kept", "own", "places")

    def __init__(
        self, places: Mapping[str, int], kept: Sequence[Score | None], own: Sequence[Score | None] = ()
    ) -> None:
        self.places, self.kept, self.own = places, kept, own

    def _at(self, place: int) -> Score | None:
        shared = len(self.kept)
        return self.kept[place] if place < shared else self.own[place - shared]

    def __getitem__(self, column: str) -> Shown:
        score = self._at(self.places[column])
        if score is None:
            raise KeyError(column)
        return as_shown(score)

    def get(self, column: str, default: T | None = None) -> Shown | T | None:  # type: ignore[override]
        """As a dict's; gates ask it of every case."""
        place = self.places.get(column)
        score = None if place is None else self._at(place)
        return default if score is None else as_shown(score)

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return sum(score is not None for score in (*self.kept, *self.own))

    def __repr__(self) -> str:
        return repr(self.as_dict())

    def as_dict(self) -> dict[str, Shown]:
        """All of them at once."""
        kept = (*self.kept, *self.own)
        return {column: as_shown(score) for column, place in self.places.items() if (score := kept[place]) is not None}


class Layouts:
    """How the scores of some cases are laid out."""

    def __init__(self, cases: Iterable[Mapping[str, Shown]]) -> None:
        scores = _distinct(cases)
        self._plain = not set(map(type, scores)) <= {Scores}
        # Cases of one layout share their places: one of them says how many scores are shared.
        self._known = [] if self._plain else list({id(_PLACES(one)): one for one in scores}.values())

    def shares(self, column: str) -> bool:
        """Whether all cases with the same shared scores have the same one in a column."""
        return not self._plain and all(_PLACES(one).get(column, -1) < len(_KEPT(one)) for one in self._known)

    def shared(self) -> list[str]:
        """The columns of which that is so."""
        columns = dict.fromkeys(chain.from_iterable(map(_PLACES, self._known)))
        return list(filter(self.shares, columns))


def _distinct(found: Iterable[T]) -> list[T]:
    """Each object once."""
    found = list(found)
    return list(dict(zip(map(id, found), found, strict=True)).values())


def apart(cases: Sequence[Mapping[str, Shown]], shared: bool) -> Iterator[int]:
    """For each of the cases what tells it from others, as long as they are held.

    ``shared`` says that it is enough to tell them apart by the scores that cases share.
    """
    return map(id, map(_KEPT, cases) if shared else cases)


def looked_up(cases: Sequence[Mapping[str, Shown]], column: str) -> list[Shown | None]:
    """The score of each case in a column, None where it does not apply; what many cases score alike is shown once."""
    if set(map(type, cases)) != {Scores}:
        return [one.get(column) for one in cases]
    laid_out: dict[int, list[int]] = {}
    for at, layout in enumerate(map(id, map(_PLACES, cases))):
        laid_out.setdefault(layout, []).append(at)
    if len(laid_out) == 1:
        return _in_column(cases, column)
    found: list[Shown | None] = [None] * len(cases)
    for places in laid_out.values():
        for at, score in zip(places, _in_column([cases[at] for at in places], column), strict=True):
            found[at] = score
    return found


def _in_column(cases: Sequence[Mapping[str, Shown]], column: str) -> list[Shown | None]:
    """The same of cases that are laid out alike."""
    place, shared = _PLACES(cases[0]).get(column), len(_KEPT(cases[0]))
    if place is None:
        return [None] * len(cases)
    kept = (
        map(itemgetter(place), map(_KEPT, cases))
        if place < shared
        else map(itemgetter(place - shared), map(_OWN, cases))
    )
    found = list(kept)
    if set(map(type, found)) <= _SHOWN:
        return found
    shown = {score: None if score is None else as_shown(score) for score in set(found)}
    return [shown[score] for score in found]


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
    coarse_label: str
    scores: Mapping[str, Shown]
    gold_line: int
    trace_line: int
    gold_sha256: str = ""
    slices: tuple[str, ...] = ()


class QuestionList(tuple[Question, ...]):
    """The cases of a report, in its order."""

    __slots__ = ()

    @property
    def failing(self) -> QuestionList:
        """The cases whose answer is wrong, by their labels."""
        return QuestionList(question for question in self if question.label not in GOOD)


_Labelled = tuple[Annotated[float, Meta(ge=-LARGEST, le=LARGEST)], bool]


class QuestionRow(Struct, gc=False, forbid_unknown_fields=True):
    """A question as report.json has it."""

    qid: str
    run: str | None
    question: str
    answerable: bool
    label: str
    coarse_label: str
    scores: dict[str, float | _Labelled]
    gold_line: Count
    trace_line: Count
    gold_sha256: str
    slices: tuple[str, ...]
