"""Abstention as a classifier: precision, recall and F1 of refusing are scikit-learn's, over files and gates."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from cases import gold_row, trace_row, write_rows
from rag_eval import api
from rag_eval.stats.aggregations import chance, difference
from rag_eval.stats.swap_units import Units
from seams import as_json, measure

REFUSAL = {"claim": "not in context", "citations": []}
ANSWER = {"claim": "They are kept for 30 days.", "citations": []}


def write(folder, rows, gates="", runs=("",)):
    """Files of (unanswerable, refused) rows, the traces once a run; the paths as app.score takes them."""
    named = [(f"A{place}", *row) for place, row in enumerate(rows)]
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
    report = api.score(*write(tmp_path, rows))
    oracles = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for name, oracle in oracles.items():
        value = report.metrics[f"abstention_{name}"]
        assert value.value == pytest.approx(oracle(*zip(*rows, strict=True)), abs=1e-12)
        assert value.low < value.value < value.high


def test_several_runs_of_the_same_answers_have_the_same_value_and_interval(tmp_path):
    one = api.score(*write(tmp_path / "one", some(1))).metrics["abstention_f1"]
    two = api.score(*write(tmp_path / "two", some(1), runs=("a", "b"))).metrics["abstention_f1"]
    assert (one.value, two.n) == (two.value, 2 * one.n)
    assert two.low == pytest.approx(one.low, abs=0.03)
    assert two.high == pytest.approx(one.high, abs=0.03)


def test_a_run_that_neither_refuses_nor_should_has_no_value(tmp_path):
    report = api.score(*write(tmp_path, [(False, False)] * 4, "gates:\n  abstention_f1: {min: 0.8}\n"))
    assert report.metrics["abstention_f1"].value is None
    assert [gate.outcome for gate in report.gates if gate.name == "abstention_f1"] == ["no_data"]


@pytest.mark.parametrize(("wrong", "outcome"), [(0, "passed"), (4, "passed"), (30, "failed")])
def test_a_gate_is_judged_by_its_value(tmp_path, wrong, outcome):
    rows = [(True, place >= wrong) for place in range(40)] + [(False, False)] * 40
    report = api.score(*write(tmp_path, rows, "gates:\n  abstention_f1: {min: 0.9}\n"))
    assert report.gates[0].outcome == outcome


@pytest.mark.parametrize(("lost", "outcome"), [(0, "passed"), (2, "inconclusive"), (20, "failed")])
def test_a_drop_against_the_baseline_is_tested(tmp_path, lost, outcome):
    rows = [(True, True)] * 40 + [(False, False)] * 40
    before = api.score(*write(tmp_path / "before", rows, "gates:\n  abstention_f1: {min: 0.5}\n"))
    (tmp_path / "baseline.json").write_text(json.dumps(as_json(before)), encoding="utf-8")
    gates = "baseline: {report: baseline.json}\ngates:\n  abstention_f1: {max_drop: 0.005}\n"
    over_refused = [*rows[: 80 - lost], *[(False, True)] * lost]  # scored in this run only
    report = api.score(*write(tmp_path, over_refused, gates))
    assert [gate.outcome for gate in report.gates if gate.name == "abstention_f1"] == [outcome]


PAIRS = st.lists(
    st.sampled_from([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0.0, None), (None, 0.0)]), min_size=1, max_size=9
)


def by_hand(scores):
    """F1 of scores of 1 (right refusals) and 0 (both errors)."""
    hits, errors = scores.count(1), scores.count(0)
    return 2 * hits / (2 * hits + errors) if hits + errors else None


@given(PAIRS)
def test_the_test_of_a_drop_swaps_cases(pairs):
    """Every way of swapping, against the draws of the test."""
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    assume(by_hand(first) is not None and by_hand(second) is not None)
    observed, hits, ways = by_hand(first) - by_hand(second), 0, 0
    for swapped in product([False, True], repeat=len(pairs)):
        sides = zip(*[pair[::-1] if swap else pair for pair, swap in zip(pairs, swapped, strict=True)], strict=True)
        figures = [by_hand(list(side)) for side in sides]
        hits += None in figures or figures[0] - figures[1] >= observed - 1e-12
        ways += 1
    assert chance("f1", Counter(pairs), b"seed") == pytest.approx(hits / ways, abs=0.06)


def test_the_interval_of_a_difference_holds_it():
    pairs = Counter({(1.0, 0.0): 9, (0.0, 1.0): 2, (1.0, 1.0): 20, (None, 0.0): 6})
    clusters = Units({(((1.0, 0.0), 2), ((1.0, 1.0), 1)): 4, (((None, 0.0), 1),): 6, (((1.0, 1.0), 3),): 5})
    for some, first, second in ((pairs, (29, 2), (22, 15)), (clusters, (27, 0), (19, 14))):
        found = difference(measure("abstention_f1"), some, 0.95)
        before, after = (2 * hits / (2 * hits + errors) for hits, errors in (first, second))
        assert found.low < before - after < found.high
