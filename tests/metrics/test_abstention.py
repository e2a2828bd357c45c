"""Abstention as a classifier: precision, recall and F1 of refusing are scikit-learn's, over files and gates."""

from __future__ import annotations

import json
import random

import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from cases import gold_row, trace_row, write_rows
from rag_eval import score
from seams import as_json

REFUSAL = {"claim": "not in context", "citations": []}
ANSWER = {"claim": "They are kept for 30 days.", "citations": []}


def write(folder, rows, gates="", runs=("",)):
    """Files of (unanswerable, refused) rows, the traces once a run; the paths as app.score takes them."""
    named = [(f"A{index}", *row) for index, row in enumerate(rows)]
    golds = [gold_row(qid=qid, answerable=not unanswerable) for qid, unanswerable, _ in named]
    traces = [
        trace_row(qid=qid, answer_json=REFUSAL if refused else ANSWER, **({"run": run} if run else {}))
        for run in runs
        for qid, _, refused in named
    ]
    paths = [write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces)]
    if gates:
        (folder / "eval-gates.yml").write_text(f"version: 1\n{gates}", encoding="utf-8")
        paths.append(folder / "eval-gates.yml")
    return paths


def some(seed, cases=60):
    """A run that is right more often than not."""
    chance = random.Random(seed)
    rows = [chance.random() < 0.4 for _ in range(cases)]
    return [(unanswerable, unanswerable if chance.random() < 0.8 else not unanswerable) for unanswerable in rows]


@pytest.mark.parametrize("seed", range(3))
def test_the_values_are_those_of_scikit_learn(tmp_path, seed):
    rows = some(seed)
    report = score(*write(tmp_path, rows))
    oracles = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for name, oracle in oracles.items():
        value = report.metrics[f"abstention_{name}"]
        assert value.value == pytest.approx(oracle(*zip(*rows, strict=True)), abs=1e-12)
        assert value.low < value.value < value.high


def test_several_runs_of_the_same_answers_have_the_same_value_and_interval(tmp_path):
    item = score(*write(tmp_path / "one", some(1))).metrics["abstention_f1"]
    two = score(*write(tmp_path / "two", some(1), runs=("a", "b"))).metrics["abstention_f1"]
    assert (item.value, two.n) == (two.value, 2 * item.n)
    assert two.low == pytest.approx(item.low, abs=0.03)
    assert two.high == pytest.approx(item.high, abs=0.03)


def test_a_run_that_neither_refuses_nor_should_has_no_value(tmp_path):
    report = score(*write(tmp_path, [(False, False)] * 4, "gates:\n  abstention_f1: {min: 0.8}\n"))
    assert report.metrics["abstention_f1"].value is None
    assert [gate.outcome for gate in report.gates if gate.name == "abstention_f1"] == ["no_data"]


@pytest.mark.parametrize(("wrong", "outcome"), [(0, "passed"), (4, "passed"), (30, "failed")])
def test_a_gate_is_judged_by_its_value(tmp_path, wrong, outcome):
    rows = [(True, index >= wrong) for index in range(40)] + [(False, False)] * 40
    report = score(*write(tmp_path, rows, "gates:\n  abstention_f1: {min: 0.9}\n"))
    assert report.gates[0].outcome == outcome


@pytest.mark.parametrize(("lost", "outcome"), [(0, "passed"), (2, "inconclusive"), (20, "failed")])
def test_a_drop_against_the_baseline_is_tested(tmp_path, lost, outcome):
    rows = [(True, True)] * 40 + [(False, False)] * 40
    before = score(*write(tmp_path / "before", rows, "gates:\n  abstention_f1: {min: 0.5}\n"))
    (tmp_path / "baseline.json").write_text(json.dumps(as_json(before)), encoding="utf-8")
    gates = "baseline: {report: baseline.json}\ngates:\n  abstention_f1: {max_drop: 0.005}\n"
    over_refused = [*rows[: 80 - lost], *[(False, True)] * lost]  # scored in this run only
    report = score(*write(tmp_path, over_refused, gates))
    assert [gate.outcome for gate in report.gates if gate.name == "abstention_f1"] == [outcome]
