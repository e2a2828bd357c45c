"""Groundedness against people's labels and against minimal pairs, on the shared data; floors, not the figures."""

import os
import sys
from pathlib import Path

import pytest

from cases import ROOT

DATA = Path(os.environ.get("RAG_EVAL_DATA") or ROOT.parent / "shared" / "data")
WHY = "the shared data sets are not here; RAG_EVAL_DATA names their folder"
pytestmark = [pytest.mark.real, pytest.mark.skipif(not DATA.is_dir(), reason=WHY)]


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(ROOT / "bench"))
    import groundedness as found

    yield found
    sys.path.remove(str(ROOT / "bench"))


@pytest.fixture(scope="module")
def pairs(bench):
    return bench.minimal.pairs(DATA)


# Set, published figure of token precision over the answers of models, floor of groundedness over them, over all.
AREAS = [("begin", 0.941, 0.935, 0.935), ("mtrag", 0.932, 0.935, 0.940), ("clapnq", 0.932, 0.915, 0.945)]
HELD_OUT = {"begin": 0.93, "mtrag": 0.94, "clapnq": 0.92}


@pytest.mark.parametrize(("folder", "published", "models", "everything"), AREAS)
def test_groundedness_agrees_with_people(bench, folder, published, models, everything):
    rows = bench.answers(DATA, folder)
    ours = [row for row in rows if row.model]
    assert bench.area(
        [(bench.token_precision(item.claim, item.chunks), item.faithful) for item in ours]
    ) == pytest.approx(published, abs=5e-4)
    scored = [(bench.engine(row.claim, row.chunks), row) for row in rows]
    scored = [(number, item) for number, item in scored if number is not None]
    assert bench.area([(number, item.faithful) for number, item in scored if item.model]) >= models
    assert bench.area([(number, item.faithful) for number, item in scored]) >= everything
    assert bench.area([(number, item.faithful) for number, item in scored if item.held_out]) >= HELD_OUT[folder]


def test_there_are_enough_pairs_of_every_kind(bench, pairs):
    kinds = {make.__name__: sum(pair.kind == make.__name__ for pair in pairs) for make in bench.minimal.WRONG}
    assert len(pairs) >= 600
    assert min(kinds.values()) >= 50


def test_wrong_twins_score_lower_and_kept_ones_are_not_flagged(bench, pairs):
    wrong = {make.__name__ for make in bench.minimal.WRONG}
    rows = bench.minimal.measured(pairs, bench.engine, bench.flagged)
    lower = {kind: row / count for kind, count, row, _ in rows if kind in wrong}
    assert min(lower.values()) >= 0.5, lower
    assert sum(row for kind, _, row, _ in rows if kind in wrong) >= 0.9 * sum(
        count for kind, count, *_ in rows if kind in wrong
    )
    assert sum(row for kind, _, _, row in rows if kind not in wrong) <= 0.05 * sum(
        count for kind, count, *_ in rows if kind not in wrong
    )


@pytest.mark.parametrize("folder", ["mtrag", "clapnq"])
def test_few_approved_answers_have_an_unsupported_sentence(bench, folder):
    rows = bench.answers(DATA, folder)
    some = [(bench.flagged(row.claim, row.chunks, row.question), row.faithful) for row in rows]
    approved, unfaithful = ([flag for flag, faithful in some if faithful == which] for which in (True, False))
    assert sum(approved) <= 0.30 * len(approved)
    assert sum(unfaithful) >= 0.85 * len(unfaithful)


@pytest.mark.parametrize(("folder", "most"), [("mtrag", 12), ("clapnq", 5)])
def test_few_approved_answers_have_a_made_up_number(bench, folder, most):
    approved = [answer for answer in bench.answers(DATA, folder) if answer.faithful]
    assert sum(bench.invents(item.claim, item.chunks, item.question) for item in approved) <= most
