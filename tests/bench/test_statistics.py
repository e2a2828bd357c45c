"""The claims of docs/statistics.md, on few samples; `make check-deep` simulates every one with more."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from cases import ROOT
from rag_eval.stats import power

spec = importlib.util.spec_from_file_location("simulate", ROOT / "bench" / "statistics" / "simulate.py")
bench = importlib.util.module_from_spec(spec)
sys.modules["simulate"] = bench
spec.loader.exec_module(bench)


@pytest.mark.parametrize("claim", ["effects-of-rates", "clusters"])
def test_the_claims_hold_on_a_few_samples(claim):
    assert bench.CLAIMS[claim](50, 5).broken == []


@pytest.mark.deep
@pytest.mark.parametrize("claim", bench.CLAIMS)
def test_the_claims_hold(claim, monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (50, 200))  # exact tests, and those that draw permutations
    samples = {"clusters": 400, "families": 80, "figures": 100, "repeats": 100}  # as many as their shares need
    assert bench.CLAIMS[claim](samples.get(claim, 200), 6).broken == []


def test_a_simulation_fails_if_the_promise_is_too_good(monkeypatch):
    """The noise as it was observed, and the drop within it: what reports said before."""
    real = power.tail_probability

    def old(n, noise, drop, margin, level):
        noise = max(0.0, noise - drop)
        lead = int(margin * n) + 1

        def needed(first, last):
            limits = power._significant(1 << last.bit_length(), level)[first : last + 1]
            return [max(least, (lead + k + 1) // 2) for k, least in enumerate(limits, first)]

        return real(n, noise, drop, needed)

    monkeypatch.setattr(power, "fail_probability", old)
    monkeypatch.setattr("rag_eval.stats.power.noise_bound", lambda moves, n: moves / n)
    power.minimum_effect.cache_clear()
    try:
        assert bench.effects_of_rates(200, 5).broken
    finally:
        power.minimum_effect.cache_clear()


def test_the_generator_makes_noise_that_changes_nothing():
    chance = np.random.default_rng(1)
    before = chance.random((500, 300)) < 0.8
    after = bench.rerun(chance, before, 0.1)
    assert after.mean() == pytest.approx(before.mean(), abs=0.003)
    assert (before ^ after).mean() == pytest.approx(0.1, abs=0.003)
