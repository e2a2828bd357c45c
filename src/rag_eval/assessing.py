"""What a trace comes to: every score that is asked for, its labels, its habits.

Most rows are met with the profile of an earlier one, and come to what that came to. What hangs on more than a profile
is worked out for the case: the scores that need a field which its row or its gold item has, and those of its text.
"""

from __future__ import annotations

import sys
from copy import copy
from math import ceil
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from rag_eval.case import Case
from rag_eval.integrity import CITES_ALL, LEAST_CITED, LEAST_POOL, LEAST_PROBES, PROBES, SAME_POOL, SAYS_ALL
from rag_eval.labels import example08, label
from rag_eval.metrics.operations import unpriced
from rag_eval.model import OPTIONAL, Trace, retrieved, said
from rag_eval.partial import Outcome
from rag_eval.profile import MARKS, Terms, has_profile, missing, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rag_eval.case import Ranking
    from rag_eval.metrics import Measure
    from rag_eval.model import Gold, Settings
    from rag_eval.profile import Seen
    from rag_eval.tally import Score
    from rag_eval.telling import Teller
    from rag_eval.told import Told

    Row = dict[str, Any]
    Scores = tuple[Score | None, ...]

K = TypeVar("K")
V = TypeVar("V")
_UNMARKED = (None,) * len(MARKS)
_REMEMBERED = 50_000
_SHAPES = 1_000
_MOST_TOLD = 0.8  # of the probes: a claim that says as much says what everybody wants to hear


class Group(NamedTuple):
    """Columns that need the same optional fields.

    ``fields`` are those of a trace row without which none of them applies, ``has`` are where a case has them all.
    """

    fields: frozenset[str]
    has: tuple[Callable[[Case], object], ...]
    of_gold: bool
    columns: list[Measure]
    nothing: Scores

    def scores(self, case: Case) -> Scores:
        """The scores of a case; where it lacks a field they are not even asked for."""
        for has in self.has:
            if has(case) is None:
                return self.nothing
        return tuple([one.score(case) for one in self.columns])


class Shape(NamedTuple):
    """What rows of the same fields have in common.

    ``failed``: an error may stand for an answer. ``marked``: the system says something of its answer. ``plain`` and
    ``wider`` say for each group whether it may apply to a plain item, and to any other; ``more`` whether there is
    anything to do for a plain item beyond its profile.
    """

    failed: bool
    marked: bool
    plain: tuple[bool, ...]
    wider: tuple[bool, ...]
    more: bool


class Assessor:
    """Scores traces, one by one, under the columns asked for. Whatever it remembers changes no outcome."""

    def __init__(self, golds: Mapping[str, Gold], columns: Sequence[Measure], settings: Settings) -> None:
        self._settings, self._terms = settings, Terms.of(settings)
        own = [one for one in columns if one.metric.by_profile]
        self._by_profile = [one for one in own if not one.metric.by_ranking]
        self._by_ranking = [one for one in own if one.metric.by_ranking]
        self._groups = _grouped([one for one in columns if not one.metric.by_profile])
        self._all = (True,) * len(self._groups)
        grouped = [one for group in self._groups for one in group.columns]
        self.columns = tuple([one.column for one in (*self._by_profile, *self._by_ranking, *grouped)])
        self._known: dict[tuple[Any, ...], Outcome] = {}
        self._ranked: dict[tuple[bool, Ranking | None], Scores] = {}
        self._same: dict[Outcome, Outcome] = {}
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._bare, self._with_chunks = self._shape({}), self._shape({"chunks": []})
        self._golds = golds
        self._teller: list[Teller] = []  # one, made when it is needed, of all that are fresh from this one
        self._probes = _probes(golds)
        # A claim that is shorter than what it would have to hold need not be searched; honest ones mostly are.
        self._shortest = sum(min(map(len, texts)) for texts in self._probes) * 4 // 5 if self._probes else sys.maxsize
        self._untold = len(self._probes) - ceil(len(self._probes) * _MOST_TOLD)
        self.pool: frozenset[str] | None = None
        """The first long list that a case retrieved."""
        self.unpriced: set[str] = set()
        """Models whose tokens are counted and have no price."""

    def fresh(self, pool: frozenset[str] | None) -> Assessor:
        """One of the same kind that has seen no trace; ``pool`` is the long list to compare others with."""
        other = copy(self)
        other.pool, other.unpriced = pool, set()
        return other

    def enough(self, row: Row) -> tuple[str, ...] | None:
        """What rows of the same fields have to tell besides what all do; None where they come to more than they tell.

        Then what they tell is all that they come to, whatever the item.
        """
        shape = self._shape(row)
        asked = {
            name for group, wanted in zip(self._groups, shape.wider, strict=True) if wanted for name in group.fields
        }
        if shape.failed or shape.marked or "usage" in row or asked - {"chunks"}:
            return None
        needed = asked or ("chunks" in row and not all(map(has_profile, self._golds.values())))
        return ("chunks",) if needed else ()

    def told(self, slots: Sequence[int | None], told: Told) -> list[Outcome | None]:
        """What the traces of items come to, as far as it is known from others of their profiles."""
        teller = self._teller[0] if self._teller else self._make_teller()
        known: Iterable[Outcome | None] = map(self._known.get, teller.profiles(slots, told))  # type: ignore[arg-type]
        shape = self._with_chunks if told.chunks else self._bare
        if not shape.more:
            return list(known)
        entries, items = told.entries(), teller.items
        return [
            one and self._with_more(one, shape.plain, Case(items[slot], told.trace(entry), self._settings), 0)  # type: ignore[index]
            for one, slot, entry in zip(known, slots, entries, strict=True)
        ]

    def _make_teller(self) -> Teller:
        from rag_eval.telling import Probing, Teller  # only large files need it: start-up time

        telltales = [text for texts in self._probes[: self._untold + 1] for text in texts]
        self._teller.append(Teller(self._golds.values(), self._terms, Probing(self._shortest, telltales, self._tells)))
        return self._teller[0]

    def row(self, gold: Gold, row: Row, line: int) -> Outcome:
        """What a valid trace row comes to under its gold item."""
        shape = self._shapes.get(tuple(row)) or self._shape(row)
        plain = gold.plain
        if shape.failed or not (plain or has_profile(gold)):
            return self.exactly(gold, Trace.from_row(row, gold.qid, line))
        answer, ids = row.get("answer_json"), row.get("retrieved_ids")
        given, cited = said(row) if answer is None else (answer["claim"], answer.get("citations"))
        marks = tuple(map(row.get, MARKS)) if shape.marked else ()
        own = seen(gold, given, cited, retrieved(row) if ids is None else ids, self._terms, marks)
        found = self._known.get(own[0])
        more = shape.more or not plain
        if found is None or more or self._watched(own):
            return self._profiled(gold, own, more, shape.plain if plain else shape.wider, row)
        return found

    def trace(self, gold: Gold, trace: Trace) -> Outcome:
        """What a trace comes to under its gold item."""
        plain, bare = gold.plain, trace.plain
        if trace.error is not None or not trace.answered or not (plain or has_profile(gold)):
            return self.exactly(gold, trace)
        marks = trace.abstained, trace.ok, trace.timed_out
        answer = trace.claim, trace.citations, trace.retrieved
        found = seen(gold, *answer, self._terms, () if marks == _UNMARKED else marks)
        return self._profiled(gold, found, self._bare.more or not plain or not bare, self._all, trace)

    def exactly(self, gold: Gold, trace: Trace) -> Outcome:
        """The same, without regard to profiles."""
        case = Case(gold, trace, self._settings)
        habits = self._habits(case.claim.lower(), trace.retrieved, case.cites)
        return self._with_more(self._outcome(case), self._all, case, habits)

    def missing(self, gold: Gold) -> Outcome:
        """What an item comes to that no trace answers: an empty, shipped answer."""
        if not gold.plain:
            return self.exactly(gold, Trace.missing(gold.qid, None))
        profile = missing(gold)
        found = self._known.get(profile)
        return found or _remember(self._known, profile, self.exactly(gold, Trace.missing(gold.qid, None)))

    def shared(self, outcome: Outcome) -> Outcome:
        """The outcome, as one object for all cases that come to it: most come to few."""
        return _remember(self._same, outcome, outcome)

    def _profiled(self, gold: Gold, own: Seen, more: bool, asked: Sequence[bool], said: Row | Trace) -> Outcome:
        profile, lowered, retrieved, cited = own
        found = self._known.get(profile)
        if found is None:
            found = self._of_profile(profile, self._case(gold, said))
        habits = self._habits(lowered, retrieved, cited)
        if more:
            return self._with_more(found, asked, self._case(gold, said), habits)
        return self.shared(found._replace(habits=habits)) if habits else found

    def _case(self, gold: Gold, said: Row | Trace) -> Case:
        trace = said if isinstance(said, Trace) else Trace.from_row(said, gold.qid, 1)  # its line is in no score
        return Case(gold, trace, self._settings)

    def _of_profile(self, profile: tuple[Any, ...], case: Case) -> Outcome:
        found = self._outcome(case)
        nothing = tuple([one for group in self._groups for one in group.nothing])
        return _remember(self._known, profile, self.shared(found._replace(scores=(*found.scores, *nothing))))

    def _outcome(self, case: Case) -> Outcome:
        """What hangs on the profile: the first scores, the labels."""
        scores = (*[one.score(case) for one in self._by_profile], *self._ranking_scores(case))
        level = case.ranking.level if case.in_a and case.ranking else ""
        return Outcome(scores, label(case), example08(case), level, 0)

    def _with_more(self, found: Outcome, asked: Sequence[bool], case: Case, habits: int) -> Outcome:
        """The outcome of a profile with the scores of the groups that are asked for."""
        if case.trace.usage and (model := unpriced(case)):
            self.unpriced.add(model)
        scores = list(found.scores[: len(self._by_profile) + len(self._by_ranking)])
        for group, wanted in zip(self._groups, asked, strict=True):
            scores += group.scores(case) if wanted else group.nothing
        return self.shared(found._replace(scores=tuple(scores), habits=habits))

    def _ranking_scores(self, case: Case) -> Scores:
        """The scores that hang on the ranking alone: computed once for all cases that rank alike."""
        key = case.in_a, case.ranking if case.in_a else None
        scores = self._ranked.get(key)
        if scores is None:
            scores = _remember(self._ranked, key, tuple([one.score(case) for one in self._by_ranking]))
        return scores

    def _shape(self, row: Row) -> Shape:
        names = row.keys()
        wider = tuple([group.fields <= names for group in self._groups])
        plain = tuple([wanted and not group.of_gold for group, wanted in zip(self._groups, wider, strict=True)])
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        marked = not names.isdisjoint(MARKS)
        shape = Shape("error" in names, marked, plain, wider, any(plain) or "usage" in row)
        return self._shapes.setdefault(tuple(row), shape)

    def _habits(self, said: str, retrieved: Sequence[str], cited: Collection[str]) -> int:
        found, count = 0, len(retrieved)
        if LEAST_CITED <= count <= len(cited) and set(retrieved).issubset(cited):
            found |= CITES_ALL
        if count > LEAST_POOL:
            pool = frozenset(retrieved)
            self.pool = self.pool or pool
            found |= SAME_POOL if pool == self.pool else 0
        if len(said) >= self._shortest and self._tells(said):
            found |= SAYS_ALL
        return found

    def _watched(self, own: Seen) -> bool:
        """Whether an answer may have a habit."""
        _, lowered, retrieved, cited = own
        if len(cited) >= LEAST_CITED or len(retrieved) > LEAST_POOL:
            return True
        return len(lowered) >= self._shortest and self._tells(lowered)

    def _tells(self, said: str) -> bool:
        """Whether a claim tells so many probes what they want to hear that few of them are left."""
        left = self._untold
        for texts in self._probes:
            for text in texts:
                if text in said:
                    break
            else:
                left -= 1
                if left < 0:
                    return False
        return True


def _probes(golds: Mapping[str, Gold]) -> list[tuple[str, ...]]:
    """The substrings of the first questions, by qid, that want different things; none where there are too few."""
    found: dict[tuple[str, ...], None] = {}
    for qid in sorted(golds):
        gold = golds[qid]
        if gold.substrings and not any(set(gold.substrings) & set(one) for one in found):
            found[gold.substrings] = None
        if len(found) == PROBES:
            break
    return list(found) if len(found) >= LEAST_PROBES else []


def _remember(known: dict[K, V], key: K, value: V) -> V:
    """``known[key]``, which is ``value`` if it is new. Bounded: what is remembered must not grow with the traces."""
    if len(known) >= _REMEMBERED and key not in known:  # to look a long key up is to hash all of it
        known.clear()
    return known.setdefault(key, value)


def _grouped(columns: Iterable[Measure]) -> list[Group]:
    """The columns by the optional fields that they need, so that those of absent ones are not even asked."""
    found: dict[tuple[str, ...], list[Measure]] = {}
    for one in columns:
        found.setdefault(tuple([name for name in one.metric.needs if name in OPTIONAL]), []).append(one)
    return [_group(needs, group) for needs, group in found.items()]


def _group(needs: Sequence[str], columns: list[Measure]) -> Group:
    # What is cited may stand in the answer's text: no field says that there is nothing.
    fields = frozenset(name.split(".")[1] for name in needs if name.startswith("trace.") and name != "trace.citations")
    has = tuple(attrgetter(name) for name in dict.fromkeys(OPTIONAL[name] for name in needs))
    of_gold = any(name.startswith("gold.") for name in needs)
    return Group(fields, has, of_gold, columns, (None,) * len(columns))
