"""run.json beside the traces: read strictly, shown, and held against the gold set in use."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from rag_eval import InputError, score
from seams import render

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart"


@pytest.fixture
def scored(tmp_path):
    """The report of the good run, with a run.json beside it."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)

    def scored(about):
        (tmp_path / "run.json").write_text(json.dumps(about), "utf-8")
        return score(tmp_path / "gold.jsonl", tmp_path / "good.jsonl")

    return scored


def test_what_it_says_is_in_the_report_and_in_its_provenance(scored):
    about = {"system_commit": "9f2c1ab", "models": {"generator": "small-1"}, "own": "<b>x</b>"}
    report = scored(about)
    assert report.run == about
    assert {item.role for item in report.inputs} == {"gold", "trace", "run"}
    shown = render(report, "markdown")
    assert "`9f2c1ab`" in shown.replace('"', "")
    assert '`"<b>x</b>"`' in shown


def test_without_one_the_report_says_none():
    assert score(EXAMPLE / "gold.jsonl", EXAMPLE / "good.jsonl").run is None


def test_a_run_that_answered_this_gold_set_is_not_stale(scored):
    digest = hashlib.sha256((EXAMPLE / "gold.jsonl").read_bytes()).hexdigest()
    assert scored({"gold_sha256": digest.upper()}).findings == ()


def test_a_run_that_answered_this_gold_set_in_a_check_out_with_other_line_ends_is_not_stale(scored):
    data = (EXAMPLE / "gold.jsonl").read_bytes().replace(b"\n", b"\r\n")
    assert scored({"gold_sha256": hashlib.sha256(data).hexdigest()}).findings == ()


@pytest.mark.parametrize("commit", ["9", "9f2c1a", "9f2c1a\n", " 9f2c1a ", "9f2c1a-dirty", "v1-2-g9f2c"])
def test_a_commit_of_fewer_than_seven_characters_is_refused(scored, commit):
    """Whoever may write one character of a commit is right about every sixteenth."""
    with pytest.raises(InputError) as refused:
        scored({"system_commit": commit})
    (problem,) = refused.value.problems
    assert "is shorter than 7 characters" in str(problem)
    assert "git rev-parse HEAD" in str(problem)


@pytest.mark.parametrize("commit", ["", "\n", "9f2c1ab", "9f2c1ab\n", "v1.2-5-g9f2c1ab-dirty"])
def test_a_commit_is_an_id_or_what_git_describe_prints(scored, commit):
    assert scored({"system_commit": commit}).passed


def test_a_run_that_answered_another_gold_set_is_found_out(scored):
    [finding] = scored({"gold_sha256": "0" * 64}).findings
    assert (finding.code, finding.level) == ("other-gold", "warning")
    assert finding.message.startswith("the traces ")
    assert finding.file.endswith("run.json")


def test_a_wrong_one_is_a_problem(scored):
    with pytest.raises(InputError) as caught:
        scored({"index": {"documents": "many"}})
    assert "/index/documents: 'many' is not a whole number" in str(caught.value.problems[0])
