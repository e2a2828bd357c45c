"""Features of a case: a small value on which most of its scores depend, so that cases with equal features score alike.

They are read off the records directly, which is much cheaper than to compute the scores.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from rag_eval.cases.case import is_blocked, ranks_of, refused_in_words
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.metrics import Measure
from rag_eval.textual.tokens import holds_any

Features = tuple[Any, ...]
_NONE: frozenset[str] = frozenset()


class FeatureConfig(NamedTuple):
    """What of a trace matters: the refusal token in lower case, whether other words refuse, how deep ranks are read.

    Behind rank ``depth`` only the first relevant rank matters.
    """

    settings: Settings
    token: str
    has_phrases: bool
    depth: int

    @classmethod
    def of(cls, settings: Settings, columns: Iterable[Measure]) -> FeatureConfig:
        """Return the configuration of a run that asks for ``columns``."""
        cutoffs = [sys.maxsize if one.k is None else one.k for one in columns if one.metric.depends_on == "ranking"]
        phrases = bool(settings.phrases or settings.builtin)
        return cls(settings, settings.token.lower(), phrases, max([settings.k, *cutoffs]))


class Answered(NamedTuple):
    """The features of a case, and what they were read from: the claim in lower case, retrieved and cited ids."""

    features: Features
    claim: str
    retrieved: Sequence[str]
    cited: frozenset[str]


def has_features(gold: Gold) -> bool:
    """Whether only gold citations say what is relevant to an item, and it is no attack."""
    return (
        gold.relevance_grades is None
        and gold.doc_grades is None
        and gold.relevant_docs is None
        and gold.supports is None
        and gold.sections is None
        and gold.expected_documents is None
        and gold.attack is None
    )


def extract_features(gold: Gold, trace: Trace, config: FeatureConfig) -> Answered:
    """Return the features of an answer without an error to an item that has features."""
    given, citations, ids = trace.claim, trace.given_citations(), trace.given_retrieved()
    if len(set(ids)) != len(ids):
        ids = tuple(dict.fromkeys(ids))
    claim = given.strip()
    lowered = claim.lower()
    by_token = lowered == config.token
    refused = by_token or (config.has_phrases and refused_in_words(claim, config.settings))
    abstained = True if is_blocked(trace.guardrail, trace.flags) else trace.abstained
    marks = None
    if abstained is not None or trace.ok is not None or trace.timed_out is not None:
        marks = abstained, trace.ok, trace.timed_out
        if abstained is not None:
            refused = abstained
    cited = frozenset(citations) if citations else _NONE
    retrieved = len(cited.intersection(ids)) if cited else 0
    exact = refused and not cited and given == config.settings.token
    features: Features = marks, refused, by_token, exact, citations is None, not claim, len(cited), retrieved
    if not gold.answerable:
        return Answered(features, lowered, ids, cited)
    relevant = frozenset(gold.citations)
    contained = refused or not gold.substrings or holds_any(gold.substrings, lowered)
    ranks = list(ranks_of(relevant, ids[: config.depth]))
    if not ranks and len(ids) > config.depth:
        ranks = list(islice(ranks_of(relevant, ids), 1))
    features += (contained, len(relevant), len(relevant & cited), *ranks)
    return Answered(features, lowered, ids, cited)
