"""The profile of a case: a small value on which most of its scores hang, so that cases with the same one score alike.

It is read off a row without making a trace or a case of it. Metrics that look at nothing else say ``by_profile``; what
a profile comes to is worked out once, in the way that every other case takes.
"""

from __future__ import annotations

import sys
from itertools import islice

from rag_eval.case import ranks_of, refused_in_words
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

_NONE: frozenset[str] = frozenset()


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
    others = gold.supports, gold.sections, gold.expected_documents, gold.attack
    return by_ids and others == (None,) * len(others)


def seen(
    gold: Gold,
    given: str,
    cited: Collection[str] | None,
    ids: Sequence[str],
    terms: Terms,
    marks: Marks = (),
    *,
    unique: bool = False,
) -> Seen:
    """The profile of an answer as it was ``given``, for an item that has one, and what it was read off.

    That is the claim in lower case without space around it, the ids that were retrieved, and those that are cited.
    ``marks`` are the values of :data:`MARKS` if the system says any of them. ``unique`` says that no id is retrieved
    twice.
    """
    if not unique and len(set(ids)) != len(ids):
        ids = list(dict.fromkeys(ids))
    settings, token, worded, depth = terms
    claim = given.strip()
    lowered = claim.lower()
    refused = by_token = lowered == token
    if worded and not refused:
        refused = refused_in_words(claim, settings)
    own = (marks,) if marks else ()  # as one: no profile without marks is as one with them
    if marks and marks[0] is not None:
        refused = marks[0]
    exact = refused and not cited and given == settings.token
    cites = frozenset(cited) if cited else _NONE
    valid = len(cites.intersection(ids)) if cites else 0
    if not gold.answerable:
        return (*own, refused, by_token, exact, cited is not None, not claim, len(cites), valid), lowered, ids, cites
    substrings, wanted = gold.substrings, frozenset(gold.citations)
    right = refused or not substrings or holds_any(substrings, lowered)
    hits = len(wanted & cites) if cites else 0
    found = list(ranks_of(wanted, ids[:depth]))
    if not found and len(ids) > depth:
        found = list(islice(ranks_of(wanted, ids), 1))
    more = refused, by_token, exact, cited is not None, not claim, len(cites), valid, right, len(wanted), hits, *found
    return (*own, *more) if own else more, lowered, ids, cites


def is_citing(profile: Profile | None) -> bool:
    """Whether that is the profile of an answer that is no refusal and cites something."""
    if profile is None:
        return False
    own = profile[1:] if isinstance(profile[0], tuple) else profile  # without the marks
    return not own[0] and own[5] > 0


def within(found: list[int], depth: int) -> list[int]:
    """Those of the ranks, in order, that are asked for: the first, and all that lie within a depth."""
    return found if found[-1] <= depth else [rank for rank in found if rank <= depth] or found[:1]


def missing(gold: Gold) -> Profile:
    """The profile of an item that no trace answers."""
    return ("missing", len(gold.citations), not gold.substrings) if gold.answerable else ("missing",)
