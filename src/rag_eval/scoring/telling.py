"""The profiles of many traces at once, read off what their rows tell.

Of a trace there is no more to be made than its profile, mostly, and a run may have millions of them. So this is one
loop with few calls, which would take a third of its time; :func:`rag_eval.scoring.profile.seen` says the same of one
answer, and tests hold the two together.
"""

from __future__ import annotations

from itertools import count, islice, repeat

from rag_eval.case import refused_in_words
from rag_eval.integrity import LEAST_CITED, LEAST_POOL
from rag_eval.scoring.profile import within
from rag_eval.text import holds_any
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_eval.model import Gold
    from rag_eval.scoring.profile import Profile, Terms
    from rag_eval.told import Told


class Probing(NamedTuple):
    """When to look at an answer more closely: it may ``tell`` what everybody wants to hear.

    It has to be of ``shortest`` characters or more for that, and to hold one of the ``telltales`` at least.
    """

    shortest: int
    telltales: Sequence[str]
    tells: Callable[[str], bool]


class Teller:
    """Tells profiles under the items of a gold set. What items want is held in columns, where it lies close.

    ``terms`` are what is asked of every row, ``probing`` finds answers that say everything.
    """

    def __init__(self, golds: Iterable[Gold], terms: Terms, probing: Probing) -> None:
        self.items = items = list(golds)
        self._answerable = [gold.answerable for gold in items]
        self._ids = [gold.citations if gold.plain else None for gold in items]
        self._texts = [gold.substrings for gold in items]
        self._terms, self._probing = terms, probing

    def profiles(self, slots: Sequence[int | None], told: Told) -> list[Profile | None]:  # noqa: C901, PLR0912
        """The profiles of traces of the items at ``slots``; None where there is no item, or where more is to be seen.

        That is so of items that are not plain, and of answers that may have a habit.
        """
        answerable, all_ids, all_texts = self._answerable, self._ids, self._texts
        settings, token, worded, depth = self._terms
        exact_token, shortest, telltales, tells = settings.token, *self._probing
        apart = f'"{told.between}"'
        found: list[Profile | None] = [None] * len(slots)
        entries = zip(count(), slots, told.claims, told.cited, told.retrieved)
        for place, slot, given, cited, ranked in entries:
            wanted = None if slot is None else all_ids[slot]
            if slot is None or wanted is None:
                continue
            ids = ranked[1:-1].split(apart) if ranked else ()
            cites = cited[1:-1].split(apart) if cited else ()
            if len(cites) > 1:
                cites = list(set(cites))
            if len(ids) > LEAST_POOL or len(cites) >= LEAST_CITED:
                continue
            claim = given.strip()
            lowered = claim.lower()
            if len(lowered) >= shortest and holds_any(telltales, lowered) and tells(lowered):
                continue
            refused = by_token = lowered == token
            if worded and not refused:
                refused = refused_in_words(claim, settings)
            exact = refused and not cites and given == exact_token
            valid = sum([one in ids for one in cites]) if cites else 0
            own = refused, by_token, exact, cited is not None, not claim, len(cites), valid
            if not answerable[slot]:
                found[place] = own
                continue
            texts = all_texts[slot]
            right = refused or not texts or holds_any(texts, lowered)
            hits, ranks = 0, []
            for one in wanted:
                if one in cites:
                    hits += 1
                if one in ids:
                    ranks.append(ids.index(one) + 1)
            if len(ranks) > 1:
                ranks.sort()
            if ranks and len(set(ids[: ranks[-1]])) < ranks[-1]:
                ranks = [len(set(ids[:rank])) for rank in ranks]  # an id that stands twice ranks once
            if ranks and ranks[-1] > depth:
                ranks = within(ranks, depth)
            found[place] = (*own, right, len(wanted), hits, *ranks)
        return found


def any_long(told: Told) -> bool:
    """Whether a trace may have retrieved a list as long as those by which habits are told."""
    lists = islice(told.retrieved, len(told.qids))  # endless where no row has one
    return max(map(str.count, lists, repeat('"')), default=0) > 2 * LEAST_POOL
