"""A comparison without a figure is not called one that could show nothing."""

from __future__ import annotations

from rag_eval.gates.regression import is_underpowered, judge_regressions
from runs import questions
from seams import Baseline, Completeness, Gate, RunEvidence, Statistics


def blind(name, pairs, direction="max_drop"):
    before, after = (questions(name.partition(".")[0], side) for side in zip(*pairs, strict=True))
    now = RunEvidence(after, {}, Completeness(9, 9, 0, 0, 0, 0), {name: "c"}, Baseline(before, {name: "c"}))
    (result,) = judge_regressions([Gate(name, direction, "1")], now, Statistics())
    return is_underpowered(result)


def test_where_there_is_no_figure_none_is_not_said():
    slower = [(100.0 + n, 300.0 + n) for n in range(40)]
    assert not blind("latency_total_ms.p95", slower, "max_rise")
    assert not blind("latency_total_ms.mean", [(100.0, 100.0)] * 40, "max_rise")
    assert blind("mrr", [(0.5, 0.4), (0.5, 0.5)])
