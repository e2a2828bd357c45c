"""The profile of a case: a small value on which most of its scores hang, so that cases with the same one score alike.

It is read off a row without making a trace or a case of it. Metrics that look at nothing else say ``by_profile``; what
a profile comes to is worked out once, in the way that every other case takes.
"""

from __future__ import annotations

import sys

from rag_eval.case import refused_in_words
from rag_eval.text import holds_any
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from rag_eval.metrics import Measure
    from rag_eval.model import Gold, Settings

    Profile = tuple[Any, ...]
    Marks = tuple[bool | None, ...]
    Seen = tuple[Profile, str, Sequence[str], Collection[str]]

MARKS = ("abstained", "ok", "timed_out")
"""What the system says of its own answer; the first decides over the text whether it refused."""

_FEW = 8


class Terms(NamedTuple):
    """What is asked of every row: the token in lower case, and whether other words refuse too.

    Of what is found behind rank ``depth`` nothing is asked, unless it is the first.
    """

    settings: Settings
    token: str
    worded: bool
    depth: int = sys.maxsize

    @classmethod
    def of(cls, settings: Settings, columns: Iterable[Measure] = ()) -> Terms:
        """The terms of a run that asks for ``columns``."""
        ranked = [one for one in columns if one.metric.by_ranking and not one.metric.leading]
        cuts = [sys.maxsize if one.k is None else one.k for one in ranked]
        return cls(
            settings, settings.token.lower(), bool(settings.phrases or settings.builtin), max([settings.k, *cuts])
        )


def has_profile(gold: Gold) -> bool:
    """Whether gold citations, or nothing, say what is relevant to an item, and it is no attack."""
    by_ids = gold.relevance_grades is None and gold.doc_grades is None and gold.relevant_docs is None
    return by_ids and gold.supports is None and gold.attack is None


def seen(
    gold: Gold, given: str, cited: Collection[str] | None, ids: Sequence[str], terms: Terms, marks: Marks = ()
) -> Seen:
    """The profile of an answer as it was ``given``, for an item that has one, and what it was read off.

    That is the claim in lower case without space around it, the ids that were retrieved, and those that are cited.
    ``marks`` are the values of :data:`MARKS` if the system says any of them.
    """
    among = set(ids)
    if len(among) != len(ids):
        ids = list(dict.fromkeys(ids))
    claim = given.strip()
    lowered = claim.lower()
    refused = by_token = lowered == terms.token
    if terms.worded and not refused:
        refused = refused_in_words(claim, terms.settings)
    own = (marks,) if marks else ()  # as one: no profile without marks is as one with them
    if marks and marks[0] is not None:
        refused = marks[0]
    exact = refused and not cited and given == terms.settings.token
    cites = cited or ()
    if len(cites) > 1:
        cites = set(cites)
    valid = len(among.intersection(cites)) if cites else 0
    if not gold.answerable:
        return (*own, refused, by_token, exact, cited is not None, not claim, len(cites), valid), lowered, ids, cites
    wanted = gold.citations
    right = refused or not gold.substrings or holds_any(gold.substrings, lowered)
    rank_of = ids.index if len(wanted) <= _FEW else {one: place for place, one in enumerate(ids)}.__getitem__
    hits, found = 0, []
    for one in wanted:
        if one in cites:
            hits += 1
        if one in among:
            found.append(rank_of(one) + 1)
    if len(found) > 1:
        found = within(sorted(found), terms.depth)
    more = refused, by_token, exact, cited is not None, not claim, len(cites), valid, right, len(wanted), hits, *found
    return (*own, *more), lowered, ids, cites


def within(found: list[int], depth: int) -> list[int]:
    """Those of the ranks, in order, that are asked for: the first, and all that lie within a depth."""
    return found if found[-1] <= depth else [rank for rank in found if rank <= depth] or found[:1]


def missing(gold: Gold) -> Profile:
    """The profile of an item that no trace answers."""
    return ("missing", len(gold.citations), not gold.substrings) if gold.answerable else ("missing",)
