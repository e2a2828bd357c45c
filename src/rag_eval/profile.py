"""The profile of a case: a small value on which most of its scores hang, so that cases with the same one score alike.

It is read off a row without making a trace or a case of it. Metrics that look at nothing else say ``by_profile``; what
a profile comes to is worked out once, in the way that every other case takes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rag_eval.case import refused_in_words
from rag_eval.model import retrieved, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rag_eval.model import Gold, Settings

    Row = dict[str, Any]

ELSEWHERE = frozenset(("q_id", "case_id", "error", "abstained", "ok", "timed_out"))
"""Fields of a trace that say what no profile knows."""

_FEW = 8


class Terms(NamedTuple):
    """What is asked of every row: the token in lower case, and whether other words refuse too."""

    settings: Settings
    token: str
    worded: bool

    @classmethod
    def of(cls, settings: Settings) -> Terms:
        """The terms of a run."""
        return cls(settings, settings.token.lower(), bool(settings.phrases or settings.builtin))


class Seen(NamedTuple):
    """A profile, and what it was read off: the claim without space around it, the retrieved ids and the cited ones."""

    profile: tuple[Any, ...]
    claim: str
    retrieved: Sequence[str]
    cited: Collection[str]


def has_profile(gold: Gold) -> bool:
    """Whether gold citations, or nothing, say what is relevant to an item, and it is no attack."""
    by_ids = gold.relevance_grades is None and gold.doc_grades is None and gold.relevant_docs is None
    return by_ids and gold.supports is None and gold.attack is None


def seen(gold: Gold, row: Row, terms: Terms) -> Seen:
    """The profile of a row without fields of :data:`ELSEWHERE`, for an item that has one."""
    given, cited = said(row)
    claim, ids = given.strip(), retrieved(row)
    among = set(ids)
    if len(among) != len(ids):
        ids = list(dict.fromkeys(ids))
    lowered = claim.lower()
    by_token = lowered == terms.token
    refused = by_token or (terms.worded and refused_in_words(claim, terms.settings))
    exact = refused and not cited and given == terms.settings.token
    cites: Collection[str] = set(cited) if cited and len(cited) > 1 else cited or ()
    valid = len(among.intersection(cites)) if cites else 0
    form = refused, by_token, exact, cited is not None, not claim, len(cites), valid
    if not gold.answerable:
        return Seen(form, claim, ids, cites)
    right = refused or _holds(lowered, gold.substrings)
    wanted = gold.citations
    profile = (*form, right, len(wanted), _among(cites, wanted), *_ranks(wanted, ids, among))
    return Seen(profile, claim, ids, cites)


def missing(gold: Gold) -> tuple[Any, ...]:
    """The profile of an item that no trace answers."""
    return ("missing", len(gold.citations), not gold.substrings) if gold.answerable else ("missing",)


# Plain loops: for the one to three ids and texts that these mostly see, any() and sum() cost more than the looking.


def _among(cites: Collection[str], ids: Collection[str]) -> int:
    if len(ids) > _FEW:
        return len(set(ids).intersection(cites))
    count = 0
    for one in cites:
        if one in ids:
            count += 1
    return count


def _holds(claim: str, texts: Sequence[str]) -> bool:
    for text in texts:
        if text in claim:
            return True
    return not texts


def _ranks(wanted: Sequence[str], ids: Sequence[str], among: set[str]) -> list[int]:
    if len(wanted) > _FEW:
        relevant = among.intersection(wanted)
        return [rank for rank, one in enumerate(ids, 1) if one in relevant]
    found = [ids.index(one) + 1 for one in wanted if one in among]
    if len(found) > 1:
        found.sort()
    return found
