"""What a gate says it could have seen, it sees."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_eval.stats import (
    cases_needed,
    cases_needed_for_shift,
    mcnemar,
    paired_spread,
    sign_flip,
    smallest_visible_drop,
    smallest_visible_shift,
)
from rag_eval.stats.power import POWER, _significant, mcnemar_power
from table import each_row

TWO = Fraction(2, 100)
SHARES = st.floats(0.01, 0.6)
SIZES = st.sampled_from([10, 30, 100, 300, 1000])


def by_summing(n, drop, discordance, margin, level):
    """The power, said as plainly as can be: over every number of cases for the worse and for the better."""
    share = max(discordance, drop)
    probabilities = (share + drop) / 2, (share - drop) / 2
    power = 0.0
    for worse in range(n + 1):
        for better in range(n - worse + 1):
            if Fraction(worse - better, n) > margin and mcnemar(worse, better) <= level:
                counts = worse, better, n - worse - better
                power += stats.multinomial.pmf(counts, n, [*probabilities, 1 - share])
    return power


@pytest.mark.parametrize("n", [1, 8, 25, 60])
@pytest.mark.parametrize(
    ("drop", "discordance"), [(0.1, 0.1), (0.1, 0.3), (0.3, 0.1), (0.9, 0.9), (1.0, 0.2), (0.0, 0.2)]
)
@each_row(("margin", "level"), [(Fraction(0), 0.05), (TWO, 0.01), (Fraction(1, 4), 0.05)])
def test_power_is_the_sum_over_all_outcomes(n, drop, discordance, margin, level):
    assert mcnemar_power(n, drop, discordance, margin, level) == pytest.approx(
        by_summing(n, drop, discordance, margin, level), abs=1e-9
    )


def test_no_change_at_all_has_no_power():
    assert mcnemar_power(100, 0.0, 0.0, TWO, 0.05) == 0.0


@pytest.mark.parametrize("level", [1.0, 0.2, 0.05, 0.0625, 0.01, 0.0005])
def test_the_numbers_that_are_significant_are_those_of_the_test(level):
    for k, least in list(enumerate(_significant(512, level)))[::7]:
        assert least == k + 1 or mcnemar(least, k - least) <= level
        assert least == 0 or mcnemar(least - 1, k - least + 1) > level


def normal_power(n, drop, discordance, margin, level):
    share = max(drop, discordance)
    limit = max(float(margin), stats.norm.isf(level) * sqrt(share / n))
    return stats.norm.sf((limit - drop) / sqrt((share - drop**2) / n))


@pytest.mark.parametrize("n", [3_000, 10_000, 100_000])
@pytest.mark.parametrize("discordance", [0.1, 0.5])
def test_power_at_large_n_is_near_the_normal_one(n, discordance):
    for drop in (0.021, 0.025, 0.03):
        args = n, drop, discordance, TWO, 0.01
        assert mcnemar_power(*args) == pytest.approx(normal_power(*args), abs=0.03)


@given(SIZES, SHARES, st.floats(0.01, 0.5), st.sampled_from([0.05, 0.01]))
def test_a_greater_drop_is_seen_more_often(n, discordance, drop, level):
    powers = [mcnemar_power(n, drop * more, discordance, TWO, level) for more in (1, 1.2, 1.8)]
    assert all(0 <= power <= 1 + 1e-9 for power in powers)
    assert all(more > less - 1e-9 for less, more in pairwise(powers))  # the bits that are carried along differ


@given(SIZES, SHARES, st.integers(1, 50))
def test_the_smallest_visible_drop_is_visible_and_the_next_smaller_is_not(n, discordance, tests):
    least = smallest_visible_drop(n, discordance, TWO, 0.05, tests)
    if least is None:
        assert mcnemar_power(n, 1.0, discordance, TWO, 0.05 / tests) < POWER
    else:
        assert least > TWO
        assert mcnemar_power(n, float(least), discordance, TWO, 0.05 / tests) >= POWER
        assert mcnemar_power(n, float(least) - 0.001, discordance, TWO, 0.05 / tests) < POWER


@pytest.mark.deep
@given(SHARES, st.sampled_from([Fraction(0), TWO]))
def test_four_times_the_cases_see_smaller_drops(discordance, margin):
    drops = [smallest_visible_drop(n, discordance, margin, 0.05) for n in (25, 100, 400, 1600)]
    assert drops == sorted(drops, reverse=True)


@given(SIZES, SHARES)
def test_more_tests_and_wider_margins_hide_more(n, discordance):
    def least(margin, tests):
        return smallest_visible_drop(n, discordance, margin, 0.05, tests) or 2

    assert least(TWO, 1) <= least(TWO, 10)
    assert least(TWO, 1) <= least(Fraction(1, 10), 1)


def test_three_cases_see_nothing():
    """The least p of three pairs is 1/8."""
    assert smallest_visible_drop(3, 0.1, TWO, 0.05) is None
    assert smallest_visible_drop(5, 0.1, TWO, 0.05) is not None


@given(st.floats(0.03, 0.3), SHARES, st.integers(1, 20))
def test_the_cases_needed_are_enough(drop, discordance, tests):
    n = cases_needed(drop, discordance, TWO, 0.05, tests)
    assert mcnemar_power(n, drop, discordance, TWO, 0.05 / tests) >= POWER
    assert mcnemar_power(n - 1, drop, discordance, TWO, 0.05 / tests) < POWER


def test_a_drop_within_the_margin_is_never_visible():
    assert cases_needed(TWO, 0.1, TWO, 0.05) is None
    assert cases_needed_for_shift(0.02, 0.1, 0.02, 0.05) is None


def test_more_cases_than_anyone_has_are_not_named():
    assert cases_needed(0.0201, 0.5, TWO, 0.05) is None


@pytest.mark.parametrize(("n", "discordance", "tests"), [(30, 0.1, 1), (100, 0.1, 3), (300, 0.3, 10)])
def test_a_gate_fails_at_the_drop_that_it_says_is_visible_and_not_without_one(n, discordance, tests):
    drop = float(smallest_visible_drop(n, discordance, TWO, 0.05, tests))

    def failures(drop):
        share = max(discordance, drop)
        odds = [(share + drop) / 2, (share - drop) / 2, 1 - share]
        drawn = np.random.default_rng(n).multinomial(n, odds, 400)
        return np.mean([(w - b) / n > 0.02 and mcnemar(w, b) <= 0.05 / tests for w, b, _ in drawn.tolist()])

    assert failures(drop) >= 0.77
    assert failures(0.0) <= 0.05 / tests


@pytest.mark.deep
@pytest.mark.parametrize("n", [60, 200])
def test_a_mean_falls_at_the_shift_that_it_says_is_visible_and_not_without_one(n):
    shift = smallest_visible_shift(n, 0.2, 0.02, 0.05, 2)
    chance = np.random.default_rng(n)

    def fails(shift):
        differences = chance.normal(shift, 0.2, n)
        return (
            differences.mean() > 0.02 and sign_flip([(one, 0.0) for one in differences.tolist()], b"seed", 999) <= 0.025
        )

    assert np.mean([fails(shift) for _ in range(400)]) >= 0.77
    assert np.mean([fails(0.0) for _ in range(400)]) <= 0.025 + 0.01


@given(st.integers(10, 5000), st.floats(0.01, 0.5), st.floats(0, 0.1), st.integers(1, 20))
def test_the_smallest_visible_shift_solves_its_equations(n, spread, margin, tests):
    shift = smallest_visible_shift(n, spread, margin, 0.05, tests)
    if shift is None:
        assert stats.norm.isf(0.05 / tests) >= sqrt(n)
    else:
        significant = stats.norm.isf(0.05 / tests) * sqrt((spread**2 + shift**2) / n)
        assert shift == pytest.approx(max(margin, significant) + stats.norm.ppf(0.8) * spread / sqrt(n))


@given(st.floats(0.03, 0.3), st.floats(0.05, 0.5), st.integers(1, 20))
def test_the_cases_needed_for_a_shift_are_the_least(drop, spread, tests):
    n = cases_needed_for_shift(drop, spread, 0.02, 0.05, tests)
    assert smallest_visible_shift(n, spread, 0.02, 0.05, tests) <= drop
    fewer = smallest_visible_shift(n - 1, spread, 0.02, 0.05, tests)
    assert fewer is None or fewer > drop


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_spread_of_full_pairs_is_that_of_their_differences(pairs):
    assert paired_spread(pairs) == pytest.approx(np.std([base - head for base, head in pairs]), abs=1e-9)


def test_the_spread_of_pairs_with_gaps_gives_the_standard_error_of_the_difference():
    chance = np.random.default_rng(1)

    def drawn(n=200):
        base = chance.normal(0.7, 0.2, n)
        head = base + chance.normal(0, 0.1, n)
        gaps = chance.random((2, n)) < 0.2
        return [(None if a else x, None if b else y) for x, y, (a, b) in zip(base, head, gaps.T, strict=True)]

    def difference(pairs):
        base, head = ([score for score in side if score is not None] for side in zip(*pairs, strict=True))
        return np.mean(base) - np.mean(head)

    errors = [paired_spread(drawn()) / sqrt(200) for _ in range(200)]
    assert np.mean(errors) == pytest.approx(np.std([difference(drawn()) for _ in range(3000)]), rel=0.06)
