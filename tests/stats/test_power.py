"""What a gate says it could have seen, it sees."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_eval.stats.paired import mcnemar, mean_difference
from rag_eval.stats.power import POWER, cases_needed, fail_probability, fail_rates, minimum_effect, noise_bound
from table import each_row

TWO = Fraction(2, 100)
SHARES = st.floats(0.01, 0.6)
SIZES = st.sampled_from([10, 30, 100, 300, 1000])


def by_summing(n, noise, drop, margin, level):
    """The power, said as plainly as can be: over every number of cases for the worse and for the better."""
    drop = min(drop, 1 - noise / 2)
    share = min(1, noise + drop)
    probabilities = share - max(0, share - noise / 2 - drop), max(0, share - noise / 2 - drop)
    power = 0.0
    for number in range(n + 1):
        for better in range(n - number + 1):
            if Fraction(number - better, n) > margin and mcnemar(number, better) <= level:
                counts = number, better, n - number - better
                power += stats.multinomial.pmf(counts, n, [*probabilities, 1 - share])
    return power


@pytest.mark.parametrize("n", [1, 8, 25, 60])
@pytest.mark.parametrize(("noise", "drop"), [(0, 0.1), (0.1, 0.1), (0.3, 0.1), (0.1, 0.3), (0, 1.0), (0.2, 0.0)])
@each_row(("margin", "level"), [(Fraction(0), 0.05), (TWO, 0.01), (Fraction(1, 4), 0.05)])
def test_power_is_the_sum_over_all_outcomes(n, noise, drop, margin, level):
    assert fail_probability(n, noise, drop, margin, level) == pytest.approx(
        by_summing(n, noise, drop, margin, level), abs=1e-9
    )


def test_no_change_at_all_has_no_power():
    assert fail_probability(100, 0.0, 0.0, TWO, 0.05) == 0.0


@given(SIZES, SHARES, st.floats(0.01, 0.3), st.sampled_from([0.05, 0.01]))
def test_a_greater_drop_is_seen_more_often(n, noise, drop, level):
    powers = [fail_probability(n, noise, drop * more, TWO, level) for more in (1, 1.2, 1.8)]
    assert all(0 <= power <= 1 + 1e-9 for power in powers)
    assert all(more > less - 1e-9 for less, more in pairwise(powers))  # the bits that are carried along differ


@given(SIZES, SHARES, st.integers(1, 50))
def test_the_minimum_detectable_effect_is_detected_and_the_next_smaller_is_not(n, noise, tests):
    least = minimum_effect(n, noise, TWO, 0.05 / tests)
    if least is None:
        assert fail_probability(n, noise, 1.0, TWO, 0.05 / tests) < POWER
    else:
        assert least > TWO
        assert fail_probability(n, noise, float(least), TWO, 0.05 / tests) >= POWER
        assert fail_probability(n, noise, float(least) - 0.001, TWO, 0.05 / tests) < POWER


@pytest.mark.deep
@given(SHARES, st.sampled_from([Fraction(0), TWO]))
def test_four_times_the_cases_see_smaller_drops(noise, margin):
    drops = [minimum_effect(n, noise, margin, 0.05) for n in (25, 100, 400, 1600)]
    assert drops == sorted(drops, reverse=True)


@given(SIZES, SHARES)
def test_more_tests_and_wider_margins_hide_more(n, noise):
    def least(margin, tests):
        return minimum_effect(n, noise, margin, 0.05 / tests) or 2

    assert least(TWO, 1) <= least(TWO, 10)
    assert least(TWO, 1) <= least(Fraction(1, 10), 1)


def test_three_cases_see_nothing():
    """The least p of three pairs is 1/8."""
    assert minimum_effect(3, 0.1, TWO, 0.05) is None
    assert minimum_effect(5, 0.0, TWO, 0.05) is not None


@given(st.floats(0.03, 0.3), SHARES, st.integers(1, 20))
def test_the_cases_needed_are_enough(drop, noise, tests):
    n = cases_needed(drop, noise, TWO, 0.05 / tests)
    assert fail_probability(n, noise, drop, TWO, 0.05 / tests) >= POWER
    assert fail_probability(n - 1, noise, drop, TWO, 0.05 / tests) < POWER


def test_a_drop_within_the_margin_is_never_detected():
    assert cases_needed(TWO, 0.1, TWO, 0.05) is None


def test_more_cases_than_anyone_has_are_not_named():
    assert cases_needed(0.0201, 0.5, TWO, 0.05) is None


@given(st.integers(1, 300), st.floats(0, 1))
def test_the_bound_of_the_noise_is_the_exact_one_at_80_percent(n, share):
    moves = min(n, round(share * n))
    expected = stats.beta.ppf(0.8, moves + 1, n - moves) if moves < n else 1.0
    assert noise_bound(moves, n) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("test", "level"), [("none", 1.0), ("regression", 0.05 / 2), ("non_inferiority", 0.05)])
def test_the_rates_at_which_a_gate_fails_are_those_of_the_outcomes_themselves(test, level):
    chance, n, noise, drops = np.random.default_rng(4), 120, 0.1, (0.0, 0.015, 0.05)
    rates = fail_rates(n, noise, drops, TWO, level, test)
    for drop, rate in zip(drops, rates, strict=True):
        rows = chance.multinomial(n, [noise / 2 + drop, noise / 2, 1 - noise - drop], 3000)
        counts = Counter(map(tuple, rows.tolist()))
        failed = sum(
            times for (regressed, better, same), times in counts.items() if fails(test, regressed, better, same)
        )
        assert rate == pytest.approx(failed / 3000, abs=0.03)


def fails(test, regressed, better, same):
    if test == "non_inferiority":
        pairs = Counter({(1.0, 0.0): regressed, (0.0, 1.0): better, (1.0, 1.0): same})
        return mean_difference(+pairs).high > TWO
    beyond = Fraction(regressed - better, regressed + better + same) > TWO
    return beyond and (test == "none" or mcnemar(regressed, better) <= 0.05 / 2)
