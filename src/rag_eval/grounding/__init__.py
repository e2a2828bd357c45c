"""Groundedness without a judge: how far the chunks that were retrieved bear an answer out, sentence by sentence."""

from __future__ import annotations

from typing import NamedTuple

from rag_eval.grounding.claims import parts
from rag_eval.grounding.evidence import Evidence, evidence
from rag_eval.grounding.places import Index
from rag_eval.grounding.support import support_of
from rag_eval.grounding.words import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.grounding.claims import Part
    from rag_eval.grounding.support import Support

__all__ = ["ASSERTION", "INFERENCE", "Checked", "Evidence", "evidence", "ground", "groundedness", "makes", "supported"]

ASSERTION, INFERENCE = 0.55, 0.45
"""The least support of an assertion and of an inference that count as supported, fitted on public data."""
MADE = 0.8
"""The least support by an answer of a sentence that counts as said in it: nearly all of its words."""


class Checked(NamedTuple):
    """A sentence of a claim with its support."""

    part: Part
    support: Support


def ground(claim: str, chunks: Sequence[str]) -> list[Checked]:
    """The sentences of ``claim``, each with its support by the texts of ``chunks``."""
    found = parts(claim)
    index = Index(found, [*map(keys, chunks)])
    return [Checked(part, support_of(part, index)) for part in found]


def groundedness(checked: Sequence[Checked]) -> float | None:
    """The mean support, 0 to 1, of the sentences that claim something, by their weight; None where none does."""
    supports = [one.support for one in checked if one.part.kind != "general"]
    weight = sum([one.weight for one in supports])
    return sum([one.number * one.weight for one in supports]) / weight if weight else None


def supported(one: Checked, assertion: float = ASSERTION, inference: float = INFERENCE) -> bool | None:
    """Whether a sentence is supported; None where it is not checked.

    It is when its support is enough for its kind, no number in it is made up, and the place that supports it best does
    not deny what it affirms or the other way round.
    """
    part, support = one
    if part.kind == "general":
        return None
    return _holds(support, assertion if part.kind == "assertion" else inference)


def makes(answer: str, claim: str) -> bool:
    """Whether ``answer`` says what ``claim`` says, each sentence of it."""
    checked = ground(claim, [answer])
    return bool(checked) and all(_holds(one.support, MADE) for one in checked)


def _holds(support: Support, least: float) -> bool:
    denied = any(wrong.reason == "negation" for wrong in support.mismatches)
    return support.number >= least and not support.fabricated and not denied
