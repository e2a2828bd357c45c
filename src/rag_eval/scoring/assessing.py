"""What a trace comes to: every score that is asked for, its labels, its habits.

Most rows are met with the profile of an earlier one, and come to what that came to. What hangs on more than a profile
is worked out for the case: the scores that need a field which its row or its gold item has, and those of its text.
"""

from __future__ import annotations

import sys
from copy import copy
from hashlib import sha256
from itertools import chain, repeat
from math import ceil

from rag_eval.case import Case, is_blocked
from rag_eval.integrity import CITES_ALL, LEAST_CITED, LEAST_POOL, LEAST_PROBES, PROBES, SAME_POOL, SAYS_ALL, drawn_at
from rag_eval.labels import example08, label
from rag_eval.metrics.operations import unpriced
from rag_eval.model import Trace, retrieved, said
from rag_eval.scoring.groups import asked_of, grouped
from rag_eval.scoring.partial import Outcome
from rag_eval.scoring.profile import MARKS, Terms, has_profile, is_citing, missing, seen
from rag_eval.told import TOLD
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from rag_eval.case import Ranking
    from rag_eval.metrics import Measure
    from rag_eval.model import Gold, Settings
    from rag_eval.scoring.groups import Asked
    from rag_eval.scoring.partial import Packed
    from rag_eval.scoring.profile import Profile, Seen
    from rag_eval.scoring.telling import Teller
    from rag_eval.tally import Score
    from rag_eval.told import Citing, Entry, Told

    Row = dict[str, Any]
    Scores = tuple[Score | None, ...]

    K = TypeVar("K")
    V = TypeVar("V")

_UNMARKED = (None,) * len(MARKS)
_BLOCKS = frozenset(("guardrail", "policy_flags"))
_LOUD = frozenset(("chunks", *_BLOCKS))
"""What is known of an answer besides its text by which it may leak, or be kept back."""
_REMEMBERED = 50_000
_SHAPES = 1_000
_DRAWN = 500  # items among which probes are looked for
_MOST_TOLD = 0.8  # of the probes: a claim that says as much says what everybody wants to hear


class Shape(NamedTuple):
    """What rows of the same fields have in common.

    ``failed``: an error may stand for an answer. ``marked``: the system says something of its answer. ``loud``: of what
    it retrieved, kept back or flagged. Then come what is asked of a plain item and an answer with nothing to find in
    it, of a plain item and any other answer, and of any other item.
    """

    failed: bool
    marked: bool
    loud: bool
    quiet: Asked
    plain: Asked
    wider: Asked


class Assessor:
    """Scores traces, one by one, under the columns asked for. Whatever it remembers changes no outcome."""

    def __init__(self, golds: Mapping[str, Gold], columns: Sequence[Measure], settings: Settings) -> None:
        self._settings, self._terms = settings, Terms.of(settings, columns)
        own = [one for one in columns if one.metric.by_profile]
        self._by_profile = [one for one in own if not one.metric.by_ranking]
        self._by_ranking = [one for one in own if one.metric.by_ranking]
        quietly = grouped([one for one in columns if one.metric.quietly], len(own))
        others = grouped([one for one in columns if not one.metric.quietly and not one.metric.by_profile])
        self._groups = [*quietly, *others]
        self._all, self._quietly, self._still = map(asked_of, (self._groups, quietly, others))
        self._wary = bool(quietly)
        in_groups = [[one for group in groups for one in group.columns] for groups in (quietly, others)]
        self._nothing, self._no_own = ((None,) * len(side) for side in in_groups)
        self.columns = tuple([one.column for one in chain(self._by_profile, self._by_ranking, *in_groups)])
        self._known: dict[Profile, Outcome] = {}
        self._loud: dict[Profile, Outcome] = {}  # of answers in which there may be something to find
        self._ranked: dict[tuple[bool, Ranking | None], Scores] = {}
        self._same: dict[tuple[Any, ...], Outcome] = {}
        self._alike: dict[Scores, Scores] = {}
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._bare, self._golds = self._shape({}), golds
        # One of each, made when it is needed, of all that are fresh from this one: there may be millions of items.
        self._teller: list[Teller] = []
        self._kinds: list[tuple[bool, bool]] = []
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
        if shape.failed or "abstained" in row:
            return None
        needed = {"usage", *MARKS, *_BLOCKS, *(_LOUD if self._wary else ())}
        if "retrieved_ids" not in row:
            needed.add("chunks")  # then these are what was retrieved
        needed.update(*[group.fields for group in shape.wider.groups])
        others = TOLD.intersection(row) - needed
        if others:
            plain, ranked = self._items_are()
            needed.update([name for name in others if not (plain or (name == "chunks" and ranked))])
        return tuple(sorted(needed.intersection(row, TOLD)))

    def _items_are(self) -> tuple[bool, bool]:
        """Whether all items are plain, and whether all have a profile."""
        if not self._kinds:
            golds = self._golds.values()
            self._kinds.append((all([gold.plain for gold in golds]), all(map(has_profile, golds))))
        return self._kinds[0]

    def told(self, slots: Sequence[int | None], told: Told) -> list[Outcome | None]:
        """What the traces of items come to, as far as it is known from others of their profiles."""
        teller = self._teller[0] if self._teller else self._make_teller()
        shape = self._shape(told.more)
        loud = shape.loud and self._wary
        profiles = teller.profiles(slots, told)
        profiles = list(_marked(profiles, told.more)) if shape.marked else profiles
        if not _BLOCKS.isdisjoint(told.more):
            profiles = list(_unless_blocked(profiles, told.more))
        known: Iterable[Outcome | None] = map((self._loud if loud else self._known).get, profiles)  # type: ignore[arg-type]
        if self._wary and not loud:
            known = list(known)
            for place in self._suspects(told.claims):
                known[place] = None
        asked = shape.plain if loud else shape.quiet
        if not asked.more:
            return list(known)
        if asked.by_column:
            return self._with_columns(list(known), asked, told, profiles)
        cases = zip(known, slots, told.entries(), strict=True)
        return [one and self._of_told(one, asked, slot, told, entry) for one, slot, entry in cases]

    def _of_told(self, found: Outcome, asked: Asked, slot: int | None, told: Told, entry: Entry) -> Outcome:
        gold = self._teller[0].items[slot]  # type: ignore[index]  # of those that have an outcome there is an item
        return self._with_more(found, asked, Case(gold, told.trace(entry), self._settings), 0)

    def _with_columns(
        self, known: list[Outcome | None], asked: Asked, told: Told, profiles: Sequence[Profile | None]
    ) -> list[Outcome | None]:
        """The outcomes with the scores that are numbers in fields, or look at what is cited: those of many at once."""
        columns: list[Iterable[Score | None]] = [repeat(None, len(known)) for _ in self._no_own]
        citing: Sequence[Citing] = ()
        if any([group.cited for group in asked.groups]):
            citing = told.citing([one is not None and is_citing(own) for one, own in zip(known, profiles, strict=True)])
        for group in asked.groups:
            found = group.of_citing(len(known), citing) if group.cited else group.of_values(told.more)
            columns[group.begin : group.end] = found
        owns = zip(*columns, strict=True) if columns else repeat(())
        return [one and self.owning(one, own) for one, own in zip(known, owns, strict=False)]

    def _suspects(self, claims: Sequence[str]) -> set[int]:
        from rag_eval.leaks import suspects  # only runs that ask for leaks load the detectors

        return suspects(claims, self._settings.safety)

    def _make_teller(self) -> Teller:
        from rag_eval.scoring.telling import Probing, Teller  # only large files need it: start-up time

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
        if shape.loud and is_blocked(row.get("guardrail"), row.get("policy_flags")):
            marks = (True, *(marks or _UNMARKED)[1:])  # as of one that abstained
        own = seen(gold, given, cited, retrieved(row) if ids is None else ids, self._terms, marks)
        known, asked = self._known, shape.quiet if plain else shape.wider
        if self._wary and (shape.loud or not plain or self._suspects((given,))):
            known, asked = self._loud, shape.plain if plain else shape.wider
        found = known.get(own[0])
        if found is None or asked.more or self._watched(own):
            return self._profiled(gold, own, known, asked, row)
        return found

    def trace(self, gold: Gold, trace: Trace) -> Outcome:
        """What a trace comes to under its gold item."""
        plain, bare = gold.plain, trace.plain
        failed = not bare and (trace.error is not None or not trace.answered)
        if failed or not (plain or has_profile(gold)):
            return self.exactly(gold, trace)
        marks = () if bare else _marks_of(trace)
        own = seen(gold, trace.claim, trace.citations, trace.retrieved, self._terms, marks, unique=True)
        known, asked = self._known, self._bare.quiet if plain and bare else self._still if plain else self._all
        if self._wary and (not plain or (not bare and _is_loud(trace)) or self._suspects((trace.claim,))):
            known, asked = self._loud, self._bare.plain if plain and bare else self._all
        found = known.get(own[0])
        if found is None or asked.more or self._watched(own):
            return self._profiled(gold, own, known, asked, trace)
        return found

    def exactly(self, gold: Gold, trace: Trace) -> Outcome:
        """The same, without regard to profiles."""
        case = Case(gold, trace, self._settings)
        habits = self._habits(case.claim.lower(), trace.retrieved, case.cites, case.cited_evidence)
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
        return self.owning(outcome, outcome.own)

    def owning(self, outcome: Outcome, own: Scores) -> Outcome:
        """The same with scores of its own."""
        scores, label, example08, level, habits, _ = outcome
        # Cases have their scores as one object already: to tell them by it saves looking at each of the scores.
        key = id(scores), label, example08, level, habits, own
        found = self._same.get(key)
        return found or _remember(self._same, key, Outcome(scores, label, example08, level, habits, own))

    def all_shared(self, packed: Packed) -> list[Outcome]:
        """Outcomes that come from elsewhere, with what they have alike."""
        kinds = [one._replace(scores=_remember(self._alike, one.scores, one.scores)) for one in packed.kinds]
        return [self.owning(kinds[kind], own) for kind, own in zip(packed.places, packed.own, strict=True)]

    def _profiled(
        self, gold: Gold, own: Seen, known: dict[Profile, Outcome], asked: Asked, said: Row | Trace
    ) -> Outcome:
        profile, lowered, retrieved, cited = own
        found = known.get(profile)
        if found is None:
            case = self._case(gold, said)
            found = self._outcome(case)
            if known is self._known and self._wary:
                found = self._with_more(found, self._quietly, case, 0)
            _remember(known, profile, self.shared(found))
        habits = self._habits(lowered, retrieved, cited, gold.citations)
        if asked.more:
            return self._with_more(found, asked, self._case(gold, said), habits)
        return self.shared(found._replace(habits=habits)) if habits else found

    def _case(self, gold: Gold, said: Row | Trace) -> Case:
        trace = said if isinstance(said, Trace) else Trace.from_row(said, gold.qid, 1)  # its line is in no score
        return Case(gold, trace, self._settings)

    def _outcome(self, case: Case) -> Outcome:
        """What hangs on the profile: the first scores, the labels. No group has a score yet."""
        scores = (*[one.score(case) for one in self._by_profile], *self._ranking_scores(case), *self._nothing)
        level = case.ranking.level if case.in_a and case.ranking else ""
        return Outcome(_remember(self._alike, scores, scores), label(case), example08(case), level, 0, self._no_own)

    def _with_more(self, found: Outcome, asked: Asked, case: Case, habits: int) -> Outcome:
        """The outcome of a profile with the scores of the groups that are asked for."""
        if case.trace.usage and (model := unpriced(case)):
            self.unpriced.add(model)
        alike, own = list(found.scores), list(found.own)
        for group in asked.groups:
            (alike if group.quietly else own)[group.begin : group.end] = group.scores(case)
        scores = tuple(alike)
        return self.shared(found._replace(scores=_remember(self._alike, scores, scores), own=tuple(own), habits=habits))

    def _ranking_scores(self, case: Case) -> Scores:
        """The scores that hang on the ranking alone: computed once for all cases that rank alike."""
        key = case.in_a, case.ranking if case.in_a else None
        scores = self._ranked.get(key)
        if scores is None:
            scores = _remember(self._ranked, key, tuple([one.score(case) for one in self._by_ranking]))
        return scores

    def _shape(self, row: Mapping[str, Any]) -> Shape:
        names = row.keys()
        wider = [group for group in self._groups if group.fields <= names]
        plain = [group for group in wider if not group.of_gold]
        quiet = [group for group in plain if not group.quietly]
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        counts = "usage" in names  # what it cost may be open
        asked = asked_of(quiet, counts), asked_of(plain, counts), asked_of(wider, counts=True)
        marks = "error" in names, not names.isdisjoint(MARKS), not names.isdisjoint(_LOUD)
        return self._shapes.setdefault(tuple(row), Shape(*marks, *asked))

    def _habits(self, said: str, retrieved: Sequence[str], cited: Collection[str], right: Collection[str]) -> int:
        found, count = 0, len(retrieved)
        if LEAST_CITED <= count <= len(cited) and set(retrieved) <= set(cited) and not set(retrieved) <= set(right):
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


def _marked(profiles: Iterable[Profile | None], more: Mapping[str, Sequence[bool | None]]) -> Iterator[Profile | None]:
    """The profiles with what the system says of its answers, none of which says whether it abstained."""
    says = [more.get(name) or repeat(None) for name in MARKS]
    for profile, *marks in zip(profiles, *says):  # noqa: B905 - endless ones among them
        own = tuple(marks)
        yield profile and (profile if own == _UNMARKED else (own, *profile))


def _unless_blocked(profiles: Iterable[Profile | None], more: Mapping[str, Sequence[Any]]) -> Iterator[Profile | None]:
    """The profiles of answers that no guardrail blocked; None for the others."""
    for profile, guardrail, flags in zip(profiles, *[more.get(name) or repeat(None) for name in sorted(_BLOCKS)]):  # noqa: B905 - endless ones among them
        yield None if is_blocked(guardrail, flags) else profile


def _marks_of(trace: Trace) -> tuple[bool | None, ...]:
    blocked = is_blocked(trace.guardrail, trace.flags)
    marks = blocked or trace.abstained, trace.ok, trace.timed_out
    return () if marks == _UNMARKED else marks


def _is_loud(trace: Trace) -> bool:
    return trace.chunks is not None or trace.guardrail is not None or trace.flags is not None


def _probes(golds: Mapping[str, Gold]) -> list[tuple[str, ...]]:
    """The substrings of some questions that want different things, drawn by all qids; none where there are too few."""
    found: dict[tuple[str, ...], None] = {}
    names = sorted(golds)
    seed = sha256("\n".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    for place in drawn_at(len(names), _DRAWN, seed, in_order=False):
        gold = golds[names[place]]
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
