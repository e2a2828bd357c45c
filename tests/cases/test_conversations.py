"""Conversations: turns as gold items, paired by conversation and turn, measured by turn and by conversation."""

from __future__ import annotations

import json

import pytest

import rag_eval
from cases import gold_row, write_rows
from seams import main, render


def item(name, turn, **fields):
    labels = {"gold_claim_substr": ["thirty days"], "gold_citations": ["m#1"]}
    return gold_row(qid=f"{name}-{turn}", question=f"{turn}?", conversation=name, turn=turn, **labels, **fields)


def trace(name, turn, right=True):
    claim = "It is thirty days." if right else "It is ten days."
    return {
        "conversation": name,
        "turn": turn,
        "retrieved_ids": ["m#1"],
        "answer_json": {"claim": claim, "citations": ["m#1"]},
    }


def files(folder, wrong=(), turns=3, names="ABCD"):
    golds = [item(name, turn) for name in names for turn in range(1, turns + 1)]
    traces = [trace(name, turn, (name, turn) not in wrong) for name in names for turn in range(1, turns + 1)]
    return write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces)


def test_turns_pair_without_a_qid_and_are_measured_by_turn_and_by_conversation(tmp_path):
    report = rag_eval.score(*files(tmp_path, [("A", 2), ("A", 3), ("B", 3)]))
    metrics = report.metrics
    assert (report.completeness.missing, report.completeness.unknown) == (0, 0)
    assert (metrics["conversation_pass"].exact, metrics["conversation_pass"].n) == ("1/2", 4)
    assert metrics["conversation_pass.turns"].value == pytest.approx(3 / 4)
    by_turn = {part.slice: part.metrics["precision"].exact for part in report.slices}
    assert by_turn == {"turn=1": "1", "turn=2": "3/4", "turn=3": "1/2"}
    assert report.statistics.cluster == "conversation"


def test_the_report_lists_conversations_with_their_first_wrong_turn(tmp_path):
    report = rag_eval.score(*files(tmp_path, [("A", 2), ("A", 3), ("B", 3)]))
    for form in ("markdown", "html"):
        shown = render(report, form)
        assert "2 of 4 conversations have a wrong turn" in shown
        assert shown.index("A-2") < shown.index("B-3")
    assert "1 of 3" in render(report, "markdown")


def test_a_gate_on_conversations_fails_and_its_regression_counts_them(tmp_path):
    gold, good = files(tmp_path, names="ABCDEFGHIJ")
    (tmp_path / "base.json").write_text(render(rag_eval.score(gold, good), "json"))
    files(tmp_path, [(name, 3) for name in "ABCDEFGH"], names="ABCDEFGHIJ")
    text = "version: 1\nbaseline: {report: base.json}\ngates: {conversation_pass: {min: 0.5, max_drop: 0.1}}\n"
    (tmp_path / "gates.yml").write_text(text)
    report = rag_eval.score(gold, good, tmp_path / "gates.yml")
    found = {gate.direction: (gate.outcome, gate.n) for gate in report.gates if gate.name == "conversation_pass"}
    assert found["min"] == ("failed", 10)
    assert found["max_drop"][0] == "failed"


def test_a_turn_that_no_item_has_is_a_problem(tmp_path, capsys):
    gold, traces = files(tmp_path)
    traces.write_text(traces.read_text() + json.dumps(trace("A", 9)) + "\n")
    assert main(["score", "--gold", str(gold), "--trace", str(traces)]) == 2
    assert "no gold item is turn 9 of 'A'" in capsys.readouterr().err
    traces.write_text(json.dumps({name: value for name, value in trace("A", 9).items() if name != "turn"}) + "\n")
    assert main(["score", "--gold", str(gold), "--trace", str(traces)]) == 2
    assert "'conversation' is there without 'turn'. Give the trace the qid" in capsys.readouterr().err


def test_a_turn_that_two_items_have_is_a_problem(tmp_path, capsys):
    gold, traces = files(tmp_path)
    gold.write_text(gold.read_text() + json.dumps({**item("A", 2), "qid": "other"}) + "\n")
    assert main(["score", "--gold", str(gold), "--trace", str(traces)]) == 2
    assert "turn 2 of 'A' is already on line 2" in capsys.readouterr().err


def test_explain_shows_the_history(tmp_path, capsys):
    gold, traces = files(tmp_path)
    said = [{"role": "user", "content": "Who may go?"}, {"role": "assistant", "content": "All staff."}]
    write_rows(gold, [item("A", 1, history=said)])
    write_rows(traces, [trace("A", 1)])
    assert main(["explain", "A-1", "--gold", str(gold), "--trace", str(traces)]) == 0
    assert "user         Who may go?\nassistant    All staff.\nquestion" in capsys.readouterr().out
