"""Columns by what they need of a case, so that those of fields which it lacks are not even asked."""

from __future__ import annotations

from operator import attrgetter

from rag_eval.model import OPTIONAL
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from rag_eval.case import Case
    from rag_eval.metrics import Measure
    from rag_eval.metrics._metric import Cited
    from rag_eval.tally import Score
    from rag_eval.told import Citing

    Scores = tuple[Score | None, ...]
    Column = Sequence[Score | None]


class Group(NamedTuple):
    """Columns that need the same optional fields.

    ``fields`` are those of a trace row without which none of them applies, ``has`` are where a case has them all.
    ``quietly`` says that they hang on the profile where there is nothing to find in an answer. ``members`` are the
    names of what they are, where each is a member of the one field; ``cited`` what scores them, where that looks at
    what is cited alone. ``begin`` and ``end`` are their places, among what cases have alike where they hang on the
    profile, else among what may differ in every case.
    """

    fields: frozenset[str]
    has: tuple[Callable[[Case], object], ...]
    of_gold: bool
    quietly: bool
    members: tuple[str, ...]
    cited: tuple[Cited, ...]
    columns: list[Measure]
    begin: int
    end: int

    def scores(self, case: Case) -> Scores:
        """The scores of a case; where it lacks a field they are not even asked for."""
        for has in self.has:
            if has(case) is None:
                return (None,) * len(self.columns)
        return tuple([one.score(case) for one in self.columns])

    def of_values(self, more: Mapping[str, Sequence[Mapping[str, float] | None]]) -> list[Column]:
        """The columns of many cases by what stands in their one field."""
        (field,) = self.fields
        values = more[field]
        known: set[str] = set().union(*[one for one in values if one])
        nothing = [None] * len(values)
        return [_floats(name, values) if name in known else nothing for name in self.members]

    def of_citing(self, count: int, citing: Sequence[Citing]) -> list[Column]:
        """The columns of so many cases, of which some are shipped and cite something."""
        columns: list[list[Score | None]] = [[None] * count for _ in self.cited]
        for place, claim, cites, chunks, retrieved in citing:
            for column, score in zip(columns, self.cited, strict=True):
                column[place] = score(claim, cites, chunks, retrieved)
        return list(columns)


class Asked(NamedTuple):
    """Which groups may apply to a case, and whether there is anything to do for it beyond its profile.

    ``by_column`` says that this can be done for many cases at once.
    """

    groups: tuple[Group, ...]
    more: bool
    by_column: bool


def asked_of(groups: Sequence[Group], counts: bool = False) -> Asked:
    """``counts`` says that a case counts its tokens, which may have no price."""
    return Asked(
        tuple(groups), counts or bool(groups), not counts and all([group.members or group.cited for group in groups])
    )


def grouped(columns: Iterable[Measure], begin: int = 0) -> list[Group]:
    """The columns by the optional fields that they need, so that those of absent ones are not even asked."""
    found: dict[tuple[Any, ...], list[Measure]] = {}
    for one in columns:
        needs = tuple([name for name in one.metric.needs if name in OPTIONAL])
        found.setdefault((needs, bool(one.metric.member)), []).append(one)
    groups: list[Group] = []
    for (needs, *_), own in found.items():
        groups.append(_group(needs, own, groups[-1].end if groups else begin))
    return groups


def _group(needs: Sequence[str], columns: list[Measure], begin: int) -> Group:
    # What is cited may stand in the answer's text: no field says that there is nothing.
    fields = frozenset(name.split(".")[1] for name in needs if name.startswith("trace.") and name != "trace.citations")
    has = tuple(attrgetter(name) for name in dict.fromkeys(OPTIONAL[name] for name in needs))
    of_gold = any(name.startswith("gold.") for name in needs)
    members = tuple([one.metric.member for one in columns])
    alone = members if all(members) and len(fields) == 1 and not of_gold else ()
    cited = tuple([one.metric.cited for one in columns if one.metric.cited])
    cited = cited if len(cited) == len(columns) and not of_gold else ()
    own = columns[0].metric.quietly, alone, cited, columns
    return Group(fields, has, of_gold, *own, begin, begin + len(columns))


def _floats(name: str, values: Iterable[Mapping[str, float] | None]) -> list[float | None]:
    return [float(one[name]) if one and name in one else None for one in values]
