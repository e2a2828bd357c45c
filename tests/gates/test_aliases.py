"""Gates and `explain` accept the names that other tools use for a metric; reports have the metric's own name."""

from __future__ import annotations

import json

import pytest

from rag_eval.metrics import ALIASES
from seams import METRICS, main

FILES = ("--gold", "examples/quickstart/gold.jsonl", "--trace", "examples/quickstart/good.jsonl")


def score(tmp_path, capsys, gates, *options):
    path = tmp_path / "eval-gates.yml"
    path.write_text(f"version: 1\n{gates}", "utf-8")
    code = main(["score", "--gates", str(path), *FILES, *options])
    return code, *capsys.readouterr()


def test_every_alias_leads_to_a_metric_and_is_none():
    wrong = [alias for alias, name in ALIASES.items() if name not in METRICS or alias in METRICS]
    assert wrong == []


def test_a_gate_under_an_alias_is_reported_under_the_name_of_its_metric(tmp_path, capsys):
    gates = "gates: {hit_rate@5: {min: 0.2}}\nslices: {gates: {tags=x: {citation_hit_rate: {min: 0.1}}}}\n"
    code, out, err = score(tmp_path, capsys, gates, "--format", "json")
    names = [(gate["name"], gate["slice"]) for gate in json.loads(out)["gates"] if "completeness" not in gate["name"]]
    assert (code, names) == (1, [("recall_any@5", ""), ("chr", "tags=x")])  # no item has the tag
    assert "hit_rate@5 is read as recall_any@5" in err


def test_names_of_the_rag_server_framework_explain_their_metrics(capsys):
    names = ("unanswerable_accuracy", "abstention_false_positive_rate", "abstention_false_negative_rate")
    shown = [(main(["explain", name]), capsys.readouterr().out.split(" ")[0]) for name in names]
    assert shown == [(0, "abstention_accuracy"), (0, "over_refusal"), (0, "under_refusal")]


def test_a_metric_under_two_names_is_refused_with_its_line(tmp_path, capsys):
    code, _, err = score(tmp_path, capsys, "gates:\n  chr: {min: 0}\n  citation_hit_rate: {min: 0.5}\n")
    assert (code, "eval-gates.yml:4" in err, "another name of chr" in err) == (2, True, True)


def test_two_aliases_of_one_metric_are_refused(tmp_path, capsys):
    code, _, err = score(tmp_path, capsys, "gates: {hit@5: {min: 0}, hit_rate@5: {min: 1}}\n")
    assert (code, "another name of recall_any@5" in err) == (2, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("answer_relevancy", "No metric without a model measures it"),
        ("context_recall", "recall@5"),
        ("context_precision", "precision@5"),
        ("accuracy", "Use precision"),
        ("exact_match", "Use precision"),
        ("hallucination_rate", "Use groundedness"),
        ("latency", "latency_total_ms.p95"),
        ("refusal_rate", "Use over_refusal"),
        ("hit_rte@5", "Did you mean 'recall_any@5'?"),
        ("faithfulnes", "Did you mean 'groundedness'?"),
    ],
)
def test_a_name_that_no_metric_answers_to_says_what_to_write(tmp_path, capsys, name, words):
    code, _, err = score(tmp_path, capsys, f"gates: {{{name}: {{min: 0.5}}}}\n")
    assert (code, words in err) == (2, True)


def test_a_fault_in_a_gate_under_an_alias_has_its_line(tmp_path, capsys):
    code, _, err = score(tmp_path, capsys, "gates:\n  mrr: {min: 0}\n  faithfulness:\n    max: 1\n")
    assert (code, "eval-gates.yml:5" in err) == (2, True)


def test_explain_knows_aliases(capsys):
    assert main(["explain", "faithfulness"]) == 0
    assert capsys.readouterr().out.startswith("groundedness (")
    assert main(["explain", "answer_relevancy"]) == 2
    assert "judge_relevancy" in capsys.readouterr().err
