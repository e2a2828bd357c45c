"""Input of the checks: the items of a gold set, its policy, and retrieved ids and answers of traces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rag_eval.cases import Case
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.gates.policy import Policy

# Zero-width and bidirectional signs, soft hyphens, byte order marks; not the joiners, which some scripts need.
INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_TYPED = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "..."}
TYPOGRAPHIC = re.compile(f"[{''.join(_TYPED)}\ufb00-\ufb06]")
_PLAIN = str.maketrans({**_TYPED, **dict.fromkeys("*_`", "")})


class LintNote(NamedTuple):
    """A message of a check on one item, or on the whole set if ``gold`` is None."""

    message: str
    hint: str
    gold: Gold | None = None


class Seen(NamedTuple):
    """Observations in traces: lower-cased answers by qid, and all retrieved ids."""

    answers: Mapping[str, frozenset[str]]
    ids: frozenset[str]


class GoldSample:
    """A gold set for the checks: no safety cases, sorted by qid, so that the order of lines does not matter."""

    def __init__(self, golds: Iterable[Gold], policy: Policy, seen: Seen | None = None) -> None:
        self.items = sorted((gold for gold in golds if gold.attack is None), key=lambda gold: gold.qid)
        self.policy, self.seen = policy, seen

    @cached_property
    def settings(self) -> Settings:
        """Return the scorer's settings."""
        return self.policy.settings

    @cached_property
    def answerable(self) -> list[Gold]:
        """Return the items that have an answer."""
        return [gold for gold in self.items if gold.answerable]

    @cached_property
    def labels(self) -> list[tuple[Gold, str]]:
        """Return each item with each of its gold substrings, lower-cased as the scorer searches for them."""
        return [(gold, text) for gold in self.answerable for text in dict.fromkeys(gold.substrings)]


def watch(golds: Mapping[str, Gold], traces: Iterable[Trace], settings: Settings) -> Seen:
    """Collect answers and retrieved ids from traces, without refusals and failures."""
    answers: dict[str, set[str]] = {}
    ids: set[str] = set()
    for trace in traces:
        ids.update(trace.retrieved, [chunk.id for chunk in trace.chunks or ()])
        gold = golds.get(trace.qid)
        if gold and trace.claim.strip() and not Case(gold, trace, settings).refused:
            answers.setdefault(trace.qid, set()).add(trace.claim.strip().lower())
    return Seen({qid: frozenset(claims) for qid, claims in answers.items()}, frozenset(ids))


def tidy(text: str) -> str:
    """Return a text as typed on a keyboard: NFC, plain quotes and dashes, single spaces, no invisible characters."""
    plain = TYPOGRAPHIC.sub(lambda sign: _TYPED.get(sign[0]) or unicodedata.normalize("NFKC", sign[0]), text)
    return " ".join(INVISIBLE.sub("", unicodedata.normalize("NFC", plain)).split())


def fold(text: str) -> str:
    """Return a text without differences of form: NFKC, case, kinds of quotes and dashes, white space, Markdown."""
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_PLAIN)
    return " ".join(plain.casefold().split())


def few_or_most(lacking: Sequence[Gold], of: Sequence[Gold], note: LintNote, summary: LintNote) -> list[LintNote]:
    """Return ``each`` for every item that lacks something, or ``summary`` once if that is more than half of them."""
    if len(lacking) > 1 and 2 * len(lacking) > len(of):
        return [summary]
    return [note._replace(gold=gold) for gold in lacking]
