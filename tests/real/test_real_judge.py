"""Recorded replies of judges on public answers, held against the votes of three people: the published agreement."""

import json
import os
import sys
from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

from cases import ROOT

DATA = Path(os.environ.get("RAG_EVAL_DATA") or ROOT.parent / "shared" / "data")
WHY = "the shared data sets are not here; RAG_EVAL_DATA names their folder"
pytestmark = [pytest.mark.real, pytest.mark.skipif(not DATA.is_dir(), reason=WHY)]


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(ROOT / "bench"))
    import judge as found

    yield found
    sys.path.remove(str(ROOT / "bench"))


@pytest.fixture
def measured(bench, tmp_path):
    def run(name, *options):
        return json.loads(bench.calibrated(DATA, name, tmp_path, "--format", "json", *options))["scores"]

    return run


def test_the_published_judge_of_mtrag_agrees_with_people_as_far_as_they_agree_with_one_another(bench, measured):
    result = measured("mtrag", "--cut", "3")["groundedness"]
    assert (result["n"], result["units"], result["votes"]) == (476, 159, 1416)
    assert result["kappa"]["value"] == pytest.approx(0.71, abs=0.01)
    assert result["kappa"]["low"] < result["people"]["value"] < result["kappa"]["value"]
    labels = [label for label in bench.rows(DATA / "mtrag" / "labels.jsonl") if label["published"]["rl_f"] >= 0]
    mean = [sum(label["faithfulness_votes"]) / len(label["faithfulness_votes"]) for label in labels]
    area = roc_auc_score([vote >= 2.8 for vote in mean], [round(5 * label["published"]["rl_f"]) for label in labels])
    assert result["auroc"]["value"] == pytest.approx(area, abs=0.003)


def test_shared_words_on_clapnq_mark_long_answers_down(measured):
    result = measured("clapnq")["groundedness"]
    assert (result["n"], result["units"], result["votes"]) == (400, 100, 1200)
    assert result["kappa"]["high"] < 0.6
    assert result["length"]["difference"]["high"] < 0
    assert result["position"] is None
