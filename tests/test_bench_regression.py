"""What bench/regression.py promises of 2,000 simulated pull requests, on a hundred of them."""

from __future__ import annotations

import importlib.util

import pytest
from scipy import stats

from cases import ROOT

spec = importlib.util.spec_from_file_location("bench_regression", ROOT / "bench" / "regression.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
RUNS = 100


@pytest.mark.deep
@pytest.mark.parametrize(("n", "share", "margin"), [(100, 0.10, "0"), (100, 0.30, "0"), (100, 0.30, "0.02")])
def test_gates_rarely_fail_a_change_that_changes_nothing(n, share, margin):
    failed = sum(bench.failing(bench.noise(n, share, seed), bench.gates(margin), "holm") for seed in range(RUNS))
    assert stats.binomtest(failed, RUNS, 0.05, alternative="greater").pvalue > 0.01


def test_that_is_the_doing_of_the_correction():
    runs = [bench.noise(300, 0.30, seed) for seed in range(RUNS)]
    failed = sum(bench.failing(run, bench.gates("0"), "none") for run in runs)
    assert failed > RUNS / 4


@pytest.mark.parametrize("others", [0, 19])
def test_the_smallest_visible_drop_is_seen_four_times_in_five(others):
    gates = (bench.WATCHED, *bench.gates(bench.MARGIN)[1 : others + 1])
    drop = bench.visible(100, 0.10, gates)
    failed = sum(bench.watched(bench.drops(100, 0.10, drop, seed), gates) for seed in range(RUNS))
    assert stats.binomtest(failed, RUNS, 0.8, alternative="less").pvalue > 0.01


def test_noise_is_no_change_of_the_system():
    before, after = zip(*(bench.noise(300, 0.30, seed) for seed in range(RUNS)), strict=True)
    for name in bench.RATES:
        means = [sum(case[name] for run in side for case in run) / 300 / RUNS for side in (before, after)]
        assert means == pytest.approx([0.8, 0.8], abs=0.01)
        turned = sum(
            a[name] != b[name] for old, new in zip(before, after, strict=True) for a, b in zip(old, new, strict=True)
        )
        assert turned / 300 / RUNS == pytest.approx(0.30, abs=0.01)
