"""The profiles of many traces at once, read off what their rows tell: lists of ids are looked at as the text they are.

Of a trace there is no more to be made than its profile, mostly, and a run may have millions of them. So this is one
loop with few calls, which would take a quarter of its time; :func:`rag_eval.profile.seen` says the same of one answer,
and tests hold the two together.
"""

from __future__ import annotations

from itertools import count, islice, repeat

from rag_eval.case import refused_in_words
from rag_eval.integrity import LEAST_CITED, LEAST_POOL
from rag_eval.profile import within
from rag_eval.text import holds_any
from rag_eval.told import searchable
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_eval.model import Gold
    from rag_eval.profile import Profile, Terms
    from rag_eval.told import Told

_LEAST_LONG = len('"a",') * LEAST_POOL  # characters of a list that may be a long one


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
        self._ids = [gold.citations if gold.plain and searchable(gold.citations) else None for gold in items]
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
            if slot is None:
                continue
            wanted = all_ids[slot]
            if wanted is None or (len(ranked) >= _LEAST_LONG and ranked.count('"') > 2 * LEAST_POOL):
                continue
            claim = given.strip()
            lowered = claim.lower()
            if len(lowered) >= shortest and holds_any(telltales, lowered) and tells(lowered):
                continue
            refused = by_token = lowered == token
            if worded and not refused:
                refused = refused_in_words(claim, settings)
            exact, cites, valid = False, 0, 0
            if not cited:
                exact = refused and given == exact_token
            elif apart not in cited:
                cites, valid = 1, cited in ranked
            else:
                cites, valid = _cited(cited, ranked, apart)
                if cites >= LEAST_CITED:
                    continue
            if not answerable[slot]:
                found[place] = refused, by_token, exact, cited is not None, not claim, cites, valid
                continue
            texts = all_texts[slot]
            right = refused or not texts or holds_any(texts, lowered)
            hits, begins = 0, []
            for one in wanted:
                quoted = f'"{one}"'
                if cited and quoted in cited:
                    hits += 1
                begin = ranked.find(quoted)
                if begin >= 0:
                    begins.append(begin)
            ranks = within(_ranks(begins, ranked, apart), depth) if begins else ()
            own = refused, by_token, exact, cited is not None, not claim, cites, valid, right, len(wanted), hits, *ranks
            found[place] = own
        return found


def any_long(told: Told) -> bool:
    """Whether a trace may have retrieved a list as long as those by which habits are told."""
    lists = islice(told.retrieved, len(told.qids))  # endless where no row has one
    return max(map(str.count, lists, repeat('"')), default=0) > 2 * LEAST_POOL


def _cited(cited: str, ranked: str, apart: str) -> tuple[int, int]:
    """How many ids are cited, and how many of them were retrieved."""
    among = set(cited[1:-1].split(apart))
    return len(among), len(among.intersection(ranked[1:-1].split(apart)))


def _ranks(begins: list[int], ranked: str, apart: str) -> list[int]:
    """The ranks of the ids that begin somewhere in a list, in order; an id that stands twice ranks once."""
    begins.sort()
    before = ranked[1 : begins[-1] + 1].split(apart)  # and nothing, which ends before the last one
    if len(set(before)) < len(before):
        return [len(set(ranked[1 : begin + 1].split(apart))) for begin in begins]
    if len(begins) == 1:
        return [len(before)]
    if len(begins) == 2:
        return [ranked.count('"', 0, begins[0]) // 2 + 1, len(before)]
    return [ranked.count('"', 0, begin) // 2 + 1 for begin in begins]
