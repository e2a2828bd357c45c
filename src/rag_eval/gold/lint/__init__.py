"""The checks of ``rag-eval gold lint``. They need no git, clock or model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from rag_eval.gold.lint import items, substrings, whole
from rag_eval.gold.lint.sample import GoldSample, LintNote, Seen, watch

__all__ = ["CHECKS", "GoldFinding", "GoldSample", "Seen", "lint", "watch"]

CHECKS: dict[str, Callable[[GoldSample], Iterable[LintNote]]] = {
    "no-substr": substrings.none,
    "substr-white-space": substrings.white_space,
    "substr-character": substrings.character,
    "substr-long": substrings.long,
    "substr-refusal": substrings.refusal,
    "substr-in-question": substrings.in_question,
    "substr-stop-words": substrings.stop_words,
    "substr-in-citation": substrings.in_citation,
    "substr-redundant": substrings.redundant,
    "substr-common": substrings.common,
    "substr-near-miss": substrings.near_miss,
    "no-citation": items.no_citation,
    "citation-variant": items.citation_variant,
    "citation-ungraded": items.citation_ungraded,
    "citation-unseen": items.citation_unseen,
    "expected-without-substr": items.without_substring,
    "expected-without-phrase": items.without_phrase,
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
    return sorted(_finding(code, remark) for code, check in CHECKS.items() for remark in check(sample))


def _finding(code: str, remark: LintNote) -> GoldFinding:
    gold = remark.gold
    return GoldFinding(gold.line if gold else 0, code, gold.qid if gold else "", remark.message, remark.hint)
