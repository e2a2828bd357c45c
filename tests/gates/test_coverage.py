"""``rag-eval metrics`` over files: what applies, what guards it, and what would switch the others on."""

from __future__ import annotations

import json

import pytest

from cases import gold_row, make_case, trace_row, write_rows
from rag_eval.contract import present_fields
from seams import METRICS, Contract, main

GATES = "version: 1\nk: 3\ngates:\n  precision: {min: 0.8, max_drop: 0.1}\n  recall_all@3: {min: 0.5}\n"
PLAIN = [
    gold_row(qid=f"Q{n}", question=f"How {n}?", gold_citations=["a"], gold_claim_substr=["30 days"]) for n in (1, 2)
]
ANSWER = {"claim": "30 days", "citations": ["a"]}
TRACES = [trace_row(qid=f"Q{n}", retrieved_ids=["a"], answer_json=ANSWER) for n in (1, 2)]
# One value of every optional field, as the contract has them.
FULL_GOLD = {
    "expected_answer": "30 days",
    "supports": [{"rel_path": "a.md", "heading_path": "A"}],
    "recency_conflict_rule": "cite_newer",
    "sections": [{"doc_id": "d", "section": "1"}],
    "gold_facts": [{"fact": "30 days"}],
    "expected_claims": ["30 days"],
    "forbidden_claims": ["a year"],
    "expected_outcome": "success",
    "required_flags": ["x"],
    "forbidden_flags": ["y"],
    "min_citations": 1,
    "latency_budget_ms": {"total": 100},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder, golds=PLAIN, traces=TRACES, gates=GATES):
    write_rows(folder / "eval" / "gold.jsonl", golds)
    write_rows(folder / "runs" / "trace.jsonl", traces)
    (folder / "eval-gates.yml").write_text(gates, "utf-8")


@pytest.fixture
def metrics(capsys):
    """``rag-eval metrics``: what it prints, as JSON where that was asked for."""

    def metrics(*words):
        metrics.code = main(["metrics", *words])
        out, metrics.said = capsys.readouterr()
        return json.loads(out) if "json" in words else out

    return metrics


def named(result):
    return {item["name"]: item for item in result["metrics"]}


def test_without_files_every_metric_is_listed(folder, metrics):
    content = metrics("--format", "json")
    assert list(named(content)) == list(METRICS)
    assert "unlock" not in content
    assert "cases" not in content["metrics"][0]


def test_the_files_in_the_usual_places_are_looked_at(folder, metrics):
    put(folder)
    ours = named(metrics("--format", "json"))
    assert ours["precision"]["cases"] == 2
    assert ours["precision"]["gates"] == ["precision min 0.8", "precision max_drop 0.1"]
    assert ours["recall_all@k"]["gates"] == ["recall_all@3 min 0.5"]
    assert ours["under_refusal"] | {"cases": 0, "missing": []} == ours["under_refusal"]
    assert ours["containment"]["missing"] == ["gold.expected_answer"]


def test_fields_are_ranked_by_how_many_metrics_they_switch_on(folder, metrics):
    put(folder)
    unlock = metrics("--format", "json")["unlock"]
    counts = [len(item["metrics"]) for item in unlock]
    assert counts == sorted(counts, reverse=True)
    named = [name for item in unlock for name in item["metrics"]]
    assert len(named) == len(set(named))
    assert {item["fields"][0] for item in unlock if item["metrics"] == ["containment"]} == {"gold.expected_answer"}


def test_adding_the_fields_named_switches_the_metric_on_that_was_promised(folder, metrics):
    put(folder)
    promised = {
        name
        for metric in metrics("--format", "json")["unlock"]
        for name in metric["metrics"]
        if metric["fields"] == ["gold.expected_answer"]
    }
    put(folder, golds=[{**row, "expected_answer": "30 days"} for row in PLAIN])
    ours = named(metrics("--format", "json"))
    assert promised == {name for name in promised if ours[name]["cases"] == 2} != set()


def test_a_field_in_a_row_alone_is_not_missing_but_said_to_be_rare(folder, metrics):
    put(folder, golds=[{**PLAIN[0], "expected_answer": "30 days"}, PLAIN[1]])
    content = metrics("--format", "json")
    assert named(content)["containment"]["missing"] == []
    assert {"name": "gold.expected_answer", "present": 1, "rows": 2} in content["fields"]
    assert "gold.expected_answer" in metrics().partition("Fields that only some rows have")[2]
    assert "1 of 2" in metrics()


def test_a_metric_with_its_fields_and_no_case_is_said_to_have_none(folder, metrics):
    put(folder)
    output = metrics().partition("Metrics without a case")[2]
    assert "under_refusal" in output
    assert "These metrics have all their fields, but no case to score" in output  # leakage_internal: names


def test_only_the_perspective_asked_for(folder, metrics):
    put(folder)
    content = metrics("--perspective", "refusals", "--format", "json")
    assert {item["perspective"] for item in content["metrics"]} == {"refusals"}
    assert "hit_precision" not in metrics("--perspective", "refusals")


def test_markdown_is_a_table_too(folder, metrics):
    put(folder)
    text = metrics("--format", "markdown")
    assert text.startswith("## Metrics that apply\n\n")
    assert "| precision " in text
    assert "`precision min 0.8`" in text


def test_a_file_that_was_named_has_to_be_there(folder, metrics):
    put(folder)
    assert metrics("--gold", "none.jsonl") == ""
    assert (metrics.code, "none.jsonl" in metrics.said) == (2, True)


def test_a_trace_that_cannot_be_read_is_a_problem_with_its_line(folder, metrics):
    put(folder, traces=[TRACES[0], {**TRACES[1], "retrieved_ids": 3}])
    assert metrics() == ""
    assert (metrics.code, "trace.jsonl:2" in metrics.said) == (2, True)


@pytest.mark.parametrize("name", [f"gold.{field}" for field in FULL_GOLD])
def test_a_gold_field_that_is_there_is_counted_and_no_other(name):
    field = name.partition(".")[2]
    row = gold_row(**{field: FULL_GOLD[field]})
    assert list(Contract("gold").faults(row)) == []
    assert list(present_fields(make_case(row, None).gold)) == [name]


def test_a_chunk_without_text_is_no_text():
    for chunks, names in (([{"id": "a"}], []), ([{"id": "a", "text": "t"}], ["trace.chunks.text"])):
        assert list(present_fields(make_case({}, {"answer": "x", "chunks": chunks}).trace)) == names
