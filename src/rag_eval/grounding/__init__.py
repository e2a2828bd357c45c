"""Groundedness without a judge: how far the chunks that were retrieved bear an answer out, sentence by sentence."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from rag_eval.grounding.alike import alike
from rag_eval.grounding.claims import UNCHECKED, parts
from rag_eval.grounding.evidence import Evidence, evidence
from rag_eval.grounding.mismatches import DENYING
from rag_eval.grounding.places import Index
from rag_eval.grounding.support import support_of
from rag_eval.grounding.words import remembered
from rag_eval.typed import NamedTuple

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


PRECISION = 0.35
"""The share of groundedness that hangs on the words that the chunks hold as often as the answer."""
BENEFIT = 2.0
"""The weight of two long words: so much supported text is added to every answer, which counts in short ones."""


class Checked(NamedTuple):
    """A sentence of a claim with its support.

    ``repeated`` are how many of its words, function words too, the chunks hold as often as the claim has used them up
    to here.
    """

    part: Part
    support: Support
    repeated: int


def ground(claim: str, chunks: Sequence[str]) -> list[Checked]:
    """The sentences of ``claim``, each with its support by the texts of ``chunks``."""
    found = parts(claim)
    sources = remembered(chunks)
    held = dict(Counter(chain.from_iterable(sources)))  # a plain one is quicker to change
    checked = _checked(found, sources, held)
    lacking = [(one.part, bits) for one in checked if (bits := _lacking(one))]
    if lacking and (otherwise := alike(found, lacking, sources, held)):
        return _checked(found, otherwise, dict(Counter(chain.from_iterable(otherwise))))
    return checked


def _checked(found: list[Part], sources: list[list[str]], left: dict[str, int]) -> list[Checked]:
    index = Index(found, sources)
    return [Checked(part, support_of(part, index), _repeated(part.keys, left)) for part in found]


def _lacking(one: Checked) -> list[int]:
    """Which content words are numbers that no chunk has, or that the best place has not."""
    part, support, _ = one
    if not (support.fabricated or support.mismatches):
        return []
    elsewhere = [wrong.key for wrong in support.mismatches if wrong.reason == "number"]
    return [bit for bit in part.numbers if bit in support.fabricated or part.keys[part.content[bit]] in elsewhere]


def _repeated(words: list[str], left: dict[str, int]) -> int:
    """How many of ``words`` are in ``left``; they are taken out of it."""
    held = 0
    for word in words:
        if count := left.get(word):
            left[word] = count - 1
            held += 1
    return held


def groundedness(checked: Sequence[Checked]) -> float | None:
    """How far the sentences that claim something are borne out, 0 to 1; None where none claims anything.

    It is made of the mean of their supports by weight, with :data:`BENEFIT`, and of the share of their words that the
    chunks hold as often, known as token precision: the two err in different answers.
    """
    claims = [one for one in checked if one.part.kind not in UNCHECKED]
    if not claims:
        return None
    if not any([one.support.found for one in claims]):
        return 0.0
    weight = sum([one.support.weight for one in claims])
    lacking = sum([(1 - one.support.number) * one.support.weight for one in claims])
    precision = sum([one.repeated for one in claims]) / sum([len(one.part.keys) for one in claims])
    return (1 - PRECISION) * (1 - lacking / (weight + BENEFIT)) + PRECISION * precision


def supported(one: Checked, assertion: float = ASSERTION, inference: float = INFERENCE) -> bool | None:
    """Whether a sentence is supported; None where it is not checked.

    It is when its support is enough for its kind, no number in it is made up, and a place that holds nearly all of its
    words does not deny what it affirms or the other way round, and has no other number or unit in the place of its own.
    """
    part, support, _ = one
    if part.kind in UNCHECKED:
        return None
    return _holds(support, assertion if part.kind == "assertion" else inference)


def makes(answer: str, claim: str) -> bool:
    """Whether ``answer`` says what ``claim`` says, each sentence of it."""
    checked = ground(claim, [answer])
    return bool(checked) and all(_holds(one.support, MADE) for one in checked)


def _holds(support: Support, least: float) -> bool:
    denied = any(wrong.reason in DENYING for wrong in support.mismatches)
    return support.number >= least and not support.fabricated and not denied
