"""Runs with verdicts of different judges are compared only if that is asked for."""

import json

import pytest

from cases import write_rows
from seams import UsageError
from verdicts import JUDGE, gold_of, trace_of, verdict_row

N = 12
GATES = "version: 1\nverdicts: verdicts.jsonl\ngates: {chr: {min: 0.1}, judge_groundedness: {min: 3}}\n"


@pytest.fixture
def reports(command, tmp_path, monkeypatch):
    """Score a run by one judge, another by a second one; return a function that compares them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval-gates.yml").write_text(GATES, "utf-8")
    golds, traces = gold_of(N), trace_of(N)
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    for name, grade in (("judge-1", 5), ("judge-2", 2)):
        judge = {**JUDGE, "model": name}
        rows = [verdict_row(*pair, judge, groundedness=grade) for pair in zip(golds, traces, strict=True)]
        write_rows(tmp_path / "verdicts.jsonl", rows)
        command("score", "--out", name)
    return lambda *words: command("compare", "judge-1/report.json", "judge-2/report.json", *words)


def test_a_gated_judge_refuses_the_comparison_with_the_fix(reports):
    for words in ([], ["--metric", "judge_groundedness"]):
        code, out, err = reports(*words)
        assert (code, out) == (2, "")
        assert "judge_groundedness cannot be compared: verdicts of another judge in 'judge-2" in err
        assert "or add --across-judges" in err


def test_other_metrics_are_compared_and_the_judges_are_named_as_refused(reports):
    for words in (["--metric", "chr"], ["--all"]):
        code, out, _ = reports("--format", "json", *words)
        content = json.loads(out)
        refused = {item["name"]: item["why"] for item in content["refused"]}
        assert code == 0
        assert "verdicts of another judge" in refused["judge_groundedness"]
        assert "chr" in {item["name"] for item in content["metrics"]}
        assert "judge_groundedness" not in {item["name"] for item in content["metrics"]}


def test_asked_for_by_name_they_are_compared(reports):
    code, out, _ = reports("--across-judges", "--format", "json")
    [row] = [load for load in json.loads(out)["metrics"] if load["name"] == "judge_groundedness"]
    assert (code, [cell["value"] for cell in row["cells"]]) == (0, [5, 2])
    assert row["cells"][1]["against"]["difference"] == -3


def test_the_library_refuses_too(reports):
    from rag_eval import compare

    paths = ("judge-1/report.json", "judge-2/report.json")
    with pytest.raises(UsageError, match="verdicts of another judge"):
        compare(*paths)
    comparison = compare(*paths, across_judges=True)
    assert "judge_groundedness" in {row.name for row in comparison.metrics}
