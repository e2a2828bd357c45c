"""Whether the scores of a report.json are such as their metrics give: one that somebody wrote by hand may hold any."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rag_eval.analysis.operations import MOST
from rag_eval.common.escaping import quoted
from rag_eval.gates.results import Scores
from rag_eval.metrics import of_column

if TYPE_CHECKING:
    from rag_eval.gates.results import Question

_SCORES, _KEPT, _OWN = map(attrgetter, ("scores", "kept", "own"))


def impossible(questions: Sequence[Question]) -> str:
    """What is wrong with the first score that its metric cannot give; empty where there is none."""
    wrong = {name for name, scores in _columns(list(map(_SCORES, questions))) if not _fit(_scale(name), scores)}
    for case in questions if wrong else ():
        for name, score in case.scores.items():
            if not _fits(_scale(name), score):
                what = f"a score of {quoted(score)} under {quoted(name, 40)}"
                return f"{quoted(case.qid, 40)} has {what}, which it cannot have"
    return ""


def _columns(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Collection[Any]]]:
    """The scores under each name, in parts: what cases share is looked at once, for there may be many cases."""
    alike: dict[int, list[Scores]] = {}
    others: dict[str, list[Any]] = {}
    for case in cases:
        if isinstance(case, Scores):
            alike.setdefault(id(case.places), []).append(case)
        else:
            for name, score in case.items():
                others.setdefault(name, []).append(score)
    for some in alike.values():
        yield from _laid_out(some)
    yield from others.items()


def _laid_out(cases: Sequence[Scores]) -> Iterator[tuple[str, Collection[Any]]]:
    """The scores of cases that are laid out alike."""
    kept = list(map(_KEPT, cases))
    shared = dict(zip(map(id, kept), kept, strict=True)).values()
    columns = [*zip(*shared, strict=True), *zip(*map(_OWN, cases), strict=True)]
    return ((name, columns[place]) for name, place in cases[0].places.items())


def _scale(name: str) -> str:
    metric = of_column(name)
    return metric.scale if metric else ""


def _fit(scale: str, scores: Collection[Any]) -> bool:
    # A list, which only a labelled score may be written as, cannot stand in a set.
    each = scores if list in set(map(type, scores)) else set(scores)
    return all(_fits(scale, score) for score in each)


def _fits(scale: str, score: Any) -> bool:
    if isinstance(score, (tuple, list)) or scale == "labelled":
        return scale == "labelled" and isinstance(score, tuple) and 0 <= score[0] <= 1
    if scale == "rate":
        return score in (0, 1)
    return 0 <= score <= (1 if scale in ("share", "real") else MOST) if scale else True
