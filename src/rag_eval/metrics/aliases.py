"""Names that other evaluation tools use for metrics of this package, and names that no metric here answers to."""

from __future__ import annotations

import re

ALIASES = {
    "faithfulness": "groundedness",
    "citation_hit_rate": "chr",
    "correct_answer_rate": "precision",
    "hit_rate@k": "recall_any@k",
    "hit@k": "recall_any@k",
    "success@k": "recall_any@k",
    "context_recall@k": "recall@k",
    "context_precision@k": "precision@k",
}
"""Names that gates and ``explain`` accept; reports have the metric's own name."""
_HINTS = {
    "hit_rate": "Write it with a cutoff: recall_any@5.",
    "context_recall": "Write it with a cutoff: recall@5. It goes by labelled evidence and asks no model.",
    "context_precision": "Write it with a cutoff: precision@5, the share of the first 5 that is evidence. "
    "For a value that weighs ranks, use map or ndcg@5.",
    "answer_relevancy": "No metric without a model measures it; judge_relevancy replays recorded verdicts of one.",
    "answer_correctness": "Use precision, which compares with the gold, or judge_correctness for recorded verdicts.",
    "answer_similarity": "No metric here compares meanings; precision and containment compare with the gold.",
    "hallucination": "Use groundedness, unsupported_claims or under_refusal.",
}
CUTOFF = re.compile(r"(.+)@([1-9][0-9]{0,5})", re.ASCII)
"""A name with its cutoff: ``recall@5``."""


def canonical(name: str) -> str:
    """Return the metric's own name for an alias, any other name as it is.

    >>> canonical("hit_rate@5"), canonical("faithfulness"), canonical("mrr")
    ('recall_any@5', 'groundedness', 'mrr')
    """
    cut = CUTOFF.fullmatch(name)
    if cut is None:
        return ALIASES.get(name, name)
    known = ALIASES.get(f"{cut[1]}@k")
    return known.replace("@k", f"@{cut[2]}") if known else name


def hint(name: str) -> str:
    """Return what to write in place of a name that no metric answers to; empty if nothing is known of it."""
    return _HINTS.get(name.partition("@")[0], "")
