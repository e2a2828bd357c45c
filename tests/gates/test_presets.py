"""The gates that rag-eval init writes: valid, as they are promised, and no failure for want of a field."""

from pathlib import Path

import pytest

import rag_eval
from cases import gold_row, trace_row, write_rows
from seams import PRESETS, ProblemCollector, measure, policy_of

TEMPLATES = Path(rag_eval.__file__).parent / "templates"
PROMISED = {
    "reference": "precision min 0.80, chr min 0.75, under_refusal max 0.05, over_refusal max 0.10, "
    "recall_all@5 min 0.70",
    "starter": "precision min 0.80, under_refusal max 0.05, over_refusal max 0.25, chr_answerable min 0.75, "
    "compliance min 0.98",
    "no-citations": "precision min 0.80, under_refusal max 0.05, over_refusal max 0.10, groundedness min 0.50",
    "enterprise": "ndcg@5 min 0.60, recall@5 min 0.70, redundancy_ngram max 0.20, redundancy_tfidf max 0.20, "
    "unique_token_ratio min 0.70, fact_dispersion max 3, claim_support max_drop 0.05, "
    "numeric_fabrication max 0, citation_validity min 0.95, citation_support min 0.85, injection_auc min 0.85, "
    "injection_tpr@fpr1 min 0.70, injection_tpr@fpr5 min 0.85, leak_detection min 0.95, leak_false_positive max 0.05, "
    "pipeline_pass min 0.90",
}
ALWAYS_THERE = {"trace.citations"}  # a system that never cites is to fail


def policy(preset):
    ledger = ProblemCollector()
    result = policy_of((TEMPLATES / f"gates-{preset}.yml").read_bytes(), "eval-gates.yml", ledger)
    assert ledger.problems == []
    return result


def test_every_preset_is_promised():
    assert set(PRESETS) == set(PROMISED)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_holds_the_gates_that_are_promised(preset):
    stated = [f"{gate.name} {gate.direction} {gate.threshold}" for gate in policy(preset).gates]
    assert stated == PROMISED[preset].split(", ")


@pytest.mark.parametrize("preset", PRESETS)
def test_what_needs_a_field_that_may_be_absent_is_skipped_until_it_is_there(preset):
    asks = {gate.name: set(measure(gate.name).metric.needs) - ALWAYS_THERE for gate in policy(preset).gates}
    asks["pipeline_pass"] = {"one of five fields"}
    skipped = {gate.name: gate.when_no_data == "skip" for gate in policy(preset).gates}
    assert skipped == {name: bool(asks[name]) for name in skipped}


@pytest.mark.parametrize(("claim", "verdict"), [("Kept 30 days.", "passed"), ("Kept a week.", "failed")])
def test_a_system_that_does_not_cite_passes_the_no_citations_preset_if_it_is_right(tmp_path, claim, verdict):
    (tmp_path / "eval-gates.yml").write_bytes((TEMPLATES / "gates-no-citations.yml").read_bytes())
    right = gold_row(qid="Q1", gold_claim_substr=["30 days"], gold_citations=[])
    write_rows(tmp_path / "eval" / "gold.jsonl", [right, gold_row(qid="Q2", answerable=False)])
    answers = [trace_row(qid="Q1", answer=claim), trace_row(qid="Q2", answer="not in context")]
    write_rows(tmp_path / "runs" / "trace.jsonl", answers)
    report = rag_eval.score(*(tmp_path / name for name in ("eval/gold.jsonl", "runs/trace.jsonl", "eval-gates.yml")))
    assert report.verdict == verdict


def test_the_enterprise_preset_judges_what_the_files_have(tmp_path):
    (tmp_path / "eval-gates.yml").write_bytes((TEMPLATES / "gates-enterprise.yml").read_bytes())
    write_rows(tmp_path / "eval" / "gold.jsonl", [gold_row(gold_citations=["a"])])
    chunks = [{"id": name, "text": "The very same words stand in both of these."} for name in "ab"]
    answer = {"claim": "The same words.", "citations": ["a"]}
    write_rows(tmp_path / "runs" / "trace.jsonl", [trace_row(chunks=chunks, answer_json=answer)])
    report = rag_eval.score(*(tmp_path / name for name in ("eval/gold.jsonl", "runs/trace.jsonl", "eval-gates.yml")))
    outcomes = {gate.name: gate.outcome for gate in report.gates}
    assert (outcomes["redundancy_ngram"], outcomes["redundancy_tfidf"]) == ("failed", "failed")
    assert (outcomes["ndcg@5"], outcomes["fact_dispersion"], outcomes["injection_auc"]) == (
        "passed",
        "no_data",
        "no_data",
    )
