"""The questions of a run, and the scores of each under the metrics that apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from rag_eval.cases import GOOD
from rag_eval.common.escaping import quoted
from rag_eval.contract.records import LARGEST
from rag_eval.metrics import Metric, of_column
from rag_eval.stats.tally import JsonScore

T = TypeVar("T")
CaseScores = Mapping[str, JsonScore]
"""The scores of a case by column."""
Row = Sequence[JsonScore | None]
"""Scores by position, None where a metric does not apply."""
MOST = 1e15
"""No dollars, milliseconds or tokens are greater; sums of so many questions stay finite below it."""


class Scores(CaseScores):
    """The scores of a case by column.

    Dicts of the scores of many cases would take more memory than everything else about them. ``positions`` has the
    index of a column in ``shared_scores``, which equal cases share, continued by ``case_scores``, in which they
    differ. All cases of a run share ``positions``.
    """

    __slots__ = ("case_scores", "positions", "shared_scores")

    def __init__(self, positions: Mapping[str, int], shared_scores: Row, case_scores: Row = ()) -> None:
        self.positions, self.shared_scores, self.case_scores = positions, shared_scores, case_scores

    def __getitem__(self, column: str) -> JsonScore:
        score = self.get(column)
        if score is None:
            raise KeyError(column)
        return score

    def get(self, column: str, default: T | None = None) -> JsonScore | T | None:  # type: ignore[override]
        """Return a score by column, like a dict's ``get``; gates call it for every case."""
        index, shared = self.positions.get(column), len(self.shared_scores)
        if index is None:
            return default
        score = self.shared_scores[index] if index < shared else self.case_scores[index - shared]
        return default if score is None else score

    def __iter__(self) -> Iterator[str]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return sum(score is not None for score in (*self.shared_scores, *self.case_scores))

    def __repr__(self) -> str:
        return repr(self.as_dict())

    def as_dict(self) -> dict[str, JsonScore]:
        """Return the scores of all columns that apply."""
        applying = zip(self.positions, (*self.shared_scores, *self.case_scores), strict=True)
        return {column: score for column, score in applying if score is not None}


def distinct(cases: Sequence[Question], shared: bool) -> tuple[list[CaseScores], list[int]]:
    """Return the distinct scores of cases, and the index among them for each case.

    Objects are compared by identity, because millions of cases share few. With ``shared``, cases with the same shared
    scores count as equal.
    """
    scores = [case.scores for case in cases]
    keys = [id(score.shared_scores) if shared else id(score) for score in scores]  # type: ignore[attr-defined]
    known = dict(zip(keys, scores, strict=True))
    positions = {key: index for index, key in enumerate(known)}
    return list(known.values()), list(map(positions.__getitem__, keys))


# Limits of the plain scores, too, would crash msgspec 0.22.
_Labelled = tuple[Annotated[float, Meta(ge=-LARGEST, le=LARGEST)], bool]
_Line = Annotated[int, Meta(ge=0, le=2**53 - 1)]  # as in the schema


class Question(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One case: its labels, and its score under each metric that applies.

    ``scores`` use the name that all folds of a metric share. ``content_hash`` is the hash of the gold item's
    content. ``slices`` are those of the policy's fields.
    """

    qid: str
    run: str | None
    question: str
    answerable: bool
    label: str
    coarse_label: str
    scores: Mapping[str, float | _Labelled]
    gold_line: _Line
    trace_line: _Line
    content_hash: str
    slices: tuple[str, ...]


def are_shared(cases: Sequence[Question], column: str) -> bool:
    """Return whether cases of a run with equal shared scores have equal scores in a column."""
    first = cases[0].scores if cases else None  # all cases of a run are stored alike
    return isinstance(first, Scores) and first.positions.get(column, -1) < len(first.shared_scores)


class QuestionList(tuple[Question, ...]):
    """The cases of a report, in its order."""

    __slots__ = ()

    @property
    def failing(self) -> QuestionList:
        """Return the cases whose answer is wrong, by their labels."""
        return QuestionList(question for question in self if question.label not in GOOD)


def impossible(questions: Sequence[Question]) -> str:
    """Describe the first score that its metric cannot produce; return an empty text if every score is possible."""
    for case in questions:
        for name, score in case.scores.items():
            if not _fits(of_column(name), score):
                return f"{quoted(case.qid, 40)} has an impossible score: {quoted(name, 40)} cannot be {quoted(score)}"
    return ""


def _fits(metric: Metric | None, score: Any) -> bool:
    scale = metric.scale if metric else ""
    if isinstance(score, (tuple, list)) or scale == "labelled":
        return scale == "labelled" and isinstance(score, tuple) and 0 <= score[0] <= 1
    if scale == "rate":
        return score in (0, 1)
    return metric is None or 0 <= score <= (MOST if metric.top is None else metric.top)
