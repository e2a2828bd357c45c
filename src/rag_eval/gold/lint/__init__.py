"""The checks of ``rag-eval gold lint``. They need no git, clock or model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rag_eval.cases import Case
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.gates import Policy
from rag_eval.gold.lint import items, substrings, whole

LintNote = tuple[str, str, Gold | None]
"""Message and hint of a check about one item, or about the whole set without one."""


class Seen(NamedTuple):
    """Observations in traces: lower-cased answers by qid, and all retrieved ids."""

    answers: Mapping[str, frozenset[str]]
    ids: frozenset[str]


class GoldSample:
    """A gold set for the checks: no safety cases, sorted by qid, so that the order of lines does not matter.

    ``before`` are the items by qid as they were before a change under review.
    """

    def __init__(
        self,
        golds: Iterable[Gold],
        policy: Policy,
        seen: Seen | None = None,
        before: Mapping[str, Gold] | None = None,
    ) -> None:
        self.items = sorted((gold for gold in golds if gold.attack is None), key=lambda gold: gold.qid)
        self.policy, self.settings, self.seen, self.before = policy, policy.settings, seen, before or {}
        self.answerable = [gold for gold in self.items if gold.answerable]

    @cached_property
    def labels(self) -> list[tuple[Gold, str]]:
        """Return each item with each of its gold substrings, lower-cased as the scorer searches for them."""
        return [(gold, text) for gold in self.answerable for text in dict.fromkeys(gold.substrings)]

    def few_or_most(self, lacking: Sequence[Gold], note: tuple[str, str], summary: tuple[str, str]) -> list[LintNote]:
        """Return a note for each answerable item that lacks something, or one summary if more than half of them do."""
        if len(lacking) > 1 and 2 * len(lacking) > len(self.answerable):
            return [(*summary, None)]
        return [(*note, gold) for gold in lacking]


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


CHECKS: dict[str, Callable[[GoldSample], Iterable[LintNote]]] = {
    "no-substr": substrings.none,
    "substr-white-space": substrings.white_space,
    "substr-character": substrings.character,
    "substr-long": substrings.long,
    "substr-refusal": substrings.refusal,
    "substr-in-question": substrings.in_question,
    "substr-stop-words": substrings.stop_words,
    "substr-in-citation": substrings.in_citation,
    "substr-common": substrings.common,
    "substr-near-miss": substrings.near_miss,
    "no-citation": items.no_citation,
    "citation-variant": items.citation_variant,
    "citation-ungraded": items.citation_ungraded,
    "citation-unseen": items.citation_unseen,
    "expected-without-substr": substrings.missing_in_answer,
    "question-blank": items.blank,
    "question-contradiction": items.contradiction,
    "question-duplicate": items.duplicate,
    "question-near-duplicate": items.near_duplicate,
    "balance": whole.balance,
    "one-class": whole.one_class,
    "clustered-questions": whole.clustered,
    "gate-coarse": whole.coarse,
    "gate-without-items": whole.without_items,
    "gate-out-of-reach": whole.out_of_reach,
}
"""Every check by the code of its findings. Codes are stable: people filter by them."""


class GoldFinding(NamedTuple):
    """A weakness of a gold set; ``line`` 0 and an empty ``qid`` mean the whole set."""

    line: int
    code: str
    qid: str
    message: str
    hint: str


def lint(sample: GoldSample) -> list[GoldFinding]:
    """Return the findings of all checks, sorted by line."""
    findings = []
    for code, check in CHECKS.items():
        for message, hint, gold in check(sample):
            findings.append(GoldFinding(gold.line if gold else 0, code, gold.qid if gold else "", message, hint))
    return sorted(findings)
