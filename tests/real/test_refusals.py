"""Built-in refusals against what people say, on the halves of public sets that no pattern was written in sight of."""

import importlib.util
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
    spec = importlib.util.spec_from_file_location("bench_refusals", ROOT / "bench" / "refusals.py")
    module = sys.modules["bench_refusals"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def held_out(answers):
    return [answer for answer in answers if answer.half == "held out"]


def test_refusals_are_those_that_people_see(bench):
    result = bench.agreement(held_out(bench.completions(DATA)))
    assert (result.precision >= 0.97, result.recall >= 0.85) == (True, True), result


def test_whole_refusals_are_missed_more_seldom_than_partial_ones(bench):
    answers = held_out(bench.completions(DATA))
    whole = bench.agreement([answer for answer in answers if not answer.partial])
    assert whole.recall >= 0.92, whole


def test_abstentions_are_those_that_were_marked(bench):
    answers = held_out(bench.marked(DATA))
    assert bench.agreement(answers).agreement >= 0.95
    assert bench.agreement([answer for answer in answers if answer.claim.strip()]).agreement >= 0.95
