"""Support by meaning: what a sentence encoder, where one is asked for, adds to the support by words.

    support = words + SHARE * (1 - words) * near

``near`` is the greatest cosine between the sentence and a sentence of a chunk, cut to between FAR and 1 and spread from
0 to 1. Nearness fills what the words leave open and takes nothing away. To an encoder 25 kg and 20 kg are nearly the
same, so made-up numbers and denials decide as they do without it.
"""

from __future__ import annotations

from itertools import islice

from rag_eval.grounding.sentences import sentences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.grounding import Checked
    from rag_eval.model import Similarity

SHARE = 0.5
FAR = 0.6
MOST = 300  # sentences of chunks that are compared; each takes milliseconds


def blended(checked: list[Checked], claim: str, chunks: Sequence[str], model: Similarity) -> list[Checked]:
    """The sentences of ``claim`` with their support by words and by meaning."""
    if not checked:
        return checked
    own = [claim[one.part.start : one.part.end] for one in checked]
    found = model.similar(own, compared(chunks))
    return [_blend(one, cosine) for one, cosine in zip(checked, found, strict=True)]


def compared(chunks: Sequence[str]) -> list[str]:
    """The sentences of ``chunks`` without repeats, the first :data:`MOST`."""
    cut = (chunk[start:end] for chunk in chunks for start, end in sentences(chunk))
    return [*islice(dict.fromkeys(cut), MOST)]


def _blend(one: Checked, cosine: float) -> Checked:
    near = min(1.0, max(0.0, (cosine - FAR) / (1 - FAR)))
    support = one.support
    number = support.number + SHARE * (1 - support.number) * near
    return one._replace(support=support._replace(number=number))
