"""Paired tests agree with their oracles and with counting all ways; p is honest when nothing changed."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from depth import examples
from rag_eval.stats import paired as module
from rag_eval.stats.paired import (
    above_percentile,
    can_be_significant,
    holm,
    mcnemar,
    paired_p,
    permutation_p,
    sign_flip,
)
from seams import FOLDS
from swapping import by_swapping

SCORES = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0])
MAYBE = SCORES | st.none()
PAIRS = st.lists(st.tuples(MAYBE, MAYBE), min_size=1, max_size=9).filter(
    lambda pairs: all(any(score is not None for score in side) for side in zip(*pairs, strict=True))
)


@pytest.mark.parametrize(
    ("worse", "better"), [(0, 0), (1, 0), (0, 1), (9, 2), (30, 18), (400, 600), (600, 401), (5200, 5000)]
)
def test_mcnemar_is_the_binomial_test(worse, better):
    oracle = stats.binomtest(worse, worse + better, alternative="greater").pvalue if worse + better else 1.0
    assert mcnemar(worse, better) == pytest.approx(oracle, rel=1e-9)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_a_probability_above_zero_and_falls_with_every_case_for_the_worse(worse, better):
    assert 0 < mcnemar(worse + 1, better) <= mcnemar(worse, better) <= 1


def by_enumeration(pairs, fold=np.mean):
    """The same test, said as plainly as can be."""

    def difference(swapped):
        sides = zip(
            *[pair[::-1] if permutation_p else pair for pair, permutation_p in zip(pairs, swapped, strict=True)],
            strict=True,
        )
        first, second = ([score for score in side if score is not None] for side in sides)
        return fold(first) - fold(second) if first and second else float("inf")

    result = [difference(swapped) for swapped in product([False, True], repeat=len(pairs))]
    return sum(item >= result[0] - 1e-9 for item in result) / len(result)


@given(PAIRS)
def test_a_few_pairs_are_counted_exactly(pairs):
    assert sign_flip(pairs, b"") == pytest.approx(by_swapping(pairs))
    if not any(None in pair for pair in pairs):
        assert sign_flip(pairs, b"") == pytest.approx(by_enumeration(pairs))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_a_few_differences_have_the_oracles_p(differences):
    rounded = [float(item) for item in np.round(differences, 3)]
    oracle = stats.permutation_test(
        (rounded,), np.mean, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    assert sign_flip([(item, 0.0) for item in rounded], b"") == pytest.approx(oracle.pvalue)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 50))
def test_for_zeros_and_ones_it_is_mcnemars_test(worse, better, same):
    pairs = [(1.0, 0.0)] * worse + [(0.0, 1.0)] * better + [(1.0, 1.0)] * (same + 1)
    assert sign_flip(pairs, b"") == pytest.approx(mcnemar(worse, better), rel=1e-12)


def test_one_new_wrong_answer_beside_many_unchanged_ones_is_chance():
    assert sign_flip([(1.0, 1.0)] * 40 + [(None, 0.0)], b"") == 0.5
    assert sign_flip([(1.0, 1.0)] * 40 + [(None, 0.0)] * 6, b"") == 2**-6


def test_a_case_to_which_the_metric_no_longer_applies_still_counts():
    """Refusing the ten cases that were wrong makes the mean better; it is the pairs that show it."""
    refused = [(0.0, None)] * 10 + [(1.0, 1.0)] * 20
    assert sign_flip([(head, base) for base, head in refused], b"") < 0.01
    assert sign_flip(refused, b"") > 0.99


def test_many_cases_that_no_longer_apply_are_counted_exactly_too():
    pairs = [(1.0, None)] * 3 + [(0.0, None)] + [(1.0, 0.0)] * 2 + [(1.0, 1.0)] * 4
    assert sign_flip(pairs, b"") == pytest.approx(by_swapping(pairs))


@pytest.mark.deep
@pytest.mark.parametrize(("told", "most"), [(300, 0.09), (60, 0.09), (50, 0.09), (49, 0.09), (10, 0.09)])
def test_scores_that_one_run_does_not_tell_prove_nothing(told, most):
    """The same system, some of whose costs the second run leaves out: a mean of a few is no sure one."""
    chance, result = np.random.default_rng(told), 0
    n = max(100, told)
    for trial in range(200):
        cost = chance.lognormal(0, 1, n)
        before, after = (cost * chance.lognormal(0, 0.2, n) for _ in range(2))
        pairs = [(a, b if index < told else None) for index, (a, b) in enumerate(zip(before, after, strict=True))]
        result += sign_flip(pairs, b"%d" % trial, 199) <= 0.05
    assert result / 200 <= most


def test_what_is_worse_where_both_have_scores_is_seen_however_few_have():
    pairs = [(1.0, None)] * 60 + [(1.0, 0.0)] * 20 + [(1.0, 1.0)] * 20
    assert sign_flip(pairs, b"") < 1e-5


def test_equal_costs_told_for_the_cheapest_questions_alone_are_no_change():
    pairs = [(float(cost), float(cost) if cost <= 2 else None) for cost in range(1, 31)]
    assert sign_flip(pairs, b"") == 1


@pytest.mark.parametrize("pairs", [[], [(None, None)], [(0.5, None)], [(None, 1.0), (None, 0.0)]])
def test_a_run_without_any_score_has_no_test(pairs):
    with pytest.raises(ValueError, match="no score at all"):
        sign_flip(pairs, b"")


def test_runs_that_are_the_same_are_no_evidence():
    assert sign_flip([(0.25, 0.25)] * 40, b"") == 1.0


def shifted(n, shift, seed, spread=0.1):
    chance = random.Random(seed)
    return [(chance.betavariate(2, 1), chance.gauss(shift, spread)) for _ in range(n)]


def as_pairs(rows):
    return [(base, base - difference) for base, difference in rows]


@pytest.mark.parametrize("n", [40, 300, 2000])
def test_drawn_p_is_near_the_normal_one_for_many_continuous_differences(n):
    rows = shifted(n, 0.1 / n**0.5, n)
    differences = np.array([difference for _, difference in rows])
    expected = stats.norm.sf(differences.sum() / np.sqrt((differences**2).sum()))
    assert sign_flip(as_pairs(rows), b"seed") == pytest.approx(expected, rel=0.15)


def test_more_draws_converge_to_the_exact_p(monkeypatch):
    pairs = as_pairs(shifted(13, 0.03, 3))
    exact = sign_flip(pairs, b"")
    monkeypatch.setattr(module, "_MOST_STEPS", 0)
    monkeypatch.setattr(module, "ENOUGH_HITS", 10**9)
    few, many = (abs(sign_flip(pairs, b"seed", draws) - exact) for draws in (200, 50_000))
    assert 0.02 < exact < 0.5
    assert many < few
    assert many < 0.004


def test_drawn_p_of_pairs_with_gaps_is_near_the_exact_one(monkeypatch):
    pairs = [(1.0, None)] * 6 + [(0.0, None)] * 4 + [(1.0, 0.5)] * 12 + [(None, 0.5)]
    exact = sign_flip(pairs, b"")
    monkeypatch.setattr(module, "_MOST_STEPS", 0)
    assert sign_flip(pairs, b"seed") == pytest.approx(exact, rel=0.1)


def test_the_least_p_is_one_in_ten_thousand():
    assert sign_flip(as_pairs(shifted(100, 0.2, 1)), b"seed") == 1 / 10_000


def test_the_least_p_is_below_the_level_of_the_first_of_many_tests():
    """With 9,999 draws and a level below 0.0001 no test could fail, whatever happened."""
    pairs, level = as_pairs(shifted(100, 0.2, 1)), 0.05 / 1000
    assert sign_flip(pairs, b"seed", level=level) == level / 4
    assert permutation_p(
        [((0.9, True), (0.1, True)), ((0.1, False), (0.9, False))] * 5, area, b"seed", level=0.01 / 21
    ) == (pytest.approx(1 / 1024, abs=0.001))


def area(rows):
    return float(FOLDS["auc"].value(Counter(rows)).number)


@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_where_the_usual_draws_hit_there_are_no_more(shift):
    pairs = as_pairs(shifted(60, shift, 1))
    assert sign_flip(pairs, b"seed", level=1e-9) == sign_flip(pairs, b"seed") > 0.001


@pytest.mark.parametrize("level", [0.01, 0.02, 0.1])
def test_going_on_where_hits_are_few_keeps_the_level(monkeypatch, level):
    """Of 49 draws, and of up to 399 where no more than two of them hit."""
    monkeypatch.setattr(module, "FEW_HITS", 2)
    monkeypatch.setattr(module, "_MOST_STEPS", 0)
    trials = 600
    ps = [sign_flip(as_pairs(shifted(12, 0.0, trial)), str(trial).encode(), 49, level=0.01) for trial in range(trials)]
    assert sum(p <= level for p in ps) / trials <= level + 3 * (level * (1 - level) / trials) ** 0.5
    assert min(ps) < 1 / 50


def test_draws_have_a_bound_beyond_which_no_test_can_fail():
    assert module.draws_needed(9_999, 1e-12) == 199_999
    assert can_be_significant(5e-6)
    assert not can_be_significant(4e-6)


def test_hopeless_draws_end_early(monkeypatch):
    asked = []
    draws = module._draws
    monkeypatch.setattr(module, "_draws", lambda *args: (asked.append(1) or draw for draw in draws(*args)))
    assert sign_flip(as_pairs(shifted(100, -0.01, 1)), b"seed") > 0.5
    assert len(asked) < 1000


@given(st.lists(st.tuples(MAYBE, st.floats(0, 1)), min_size=18, max_size=40), st.binary(max_size=8), st.randoms())
def test_the_same_pairs_in_any_order_give_the_same_p(pairs, seed, chance):
    pairs = [(0.5, 0.25), *pairs]
    p = sign_flip(pairs, seed, 300)
    chance.shuffle(pairs)
    assert sign_flip(pairs, seed, 300) == p
    assert 0 < p <= 1


def test_another_seed_gives_other_draws():
    pairs = as_pairs(shifted(60, 0.01, 5))
    assert len({sign_flip(pairs, bytes([seed])) for seed in range(5)}) > 1


@pytest.mark.deep
@pytest.mark.parametrize(("n", "trials"), [(25, 600), (4500, 200)])
def test_without_a_change_the_test_errs_as_often_as_alpha_says(n, trials):
    """4,500 cases are swapped in bunches: that must not cost the level."""
    ps = [sign_flip(as_pairs(shifted(n, 0.0, trial)), str(trial).encode(), 99) for trial in range(trials)]
    assert sum(p <= 0.05 for p in ps) / trials <= 0.05 + 2 * (0.05 * 0.95 / trials) ** 0.5
    assert 0.45 < np.mean(ps) < 0.55


def test_bunches_do_not_cost_power():
    rows = shifted(4500, 0.1 * 2 / 67, 9)
    differences = np.array([difference for _, difference in rows])
    expected = stats.norm.sf(differences.sum() / np.sqrt((differences**2).sum()))
    assert sign_flip(as_pairs(rows), b"seed") == pytest.approx(expected, rel=0.25)


@examples(30)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_the_oracles(ps):
    oracle = multipletests(ps, method="holm")[1] if ps else []
    assert holm(ps) == pytest.approx(list(oracle))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_tests_that_could_not_reach_p_do_not_count(both):
    ps, smallest = [max(pair) for pair in both], [min(pair) for pair in both]
    adjusted = holm(ps, smallest)
    assert all(p <= a <= h for p, a, h in zip(ps, adjusted, holm(ps), strict=True))
    first = min(range(len(ps)), key=ps.__getitem__)
    rivals = sum(item <= ps[first] for item in smallest)
    assert adjusted[first] == pytest.approx(min(1.0, rivals * ps[first]))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_holm_keeps_the_order_of_ps_and_lowers_none(ps):
    adjusted = holm(ps)
    assert all(item >= p for item, p in zip(adjusted, ps, strict=True))
    assert sorted(zip(ps, adjusted, strict=True)) == list(zip(sorted(ps), sorted(adjusted), strict=True))


def percentile_p(pairs, percent=95):
    return paired_p(above_percentile(pairs, percent), b"")


@given(PAIRS, st.sampled_from([10, 50, 75, 95]))
def test_a_percentile_is_tested_as_the_rate_above_that_of_the_lower_scores(pairs, percent):
    lower = [min(present) for pair in pairs if (present := [score for score in pair if score is not None])]
    limit = np.percentile(lower, percent, method="inverted_cdf") if lower else 0.0
    rates = [tuple(None if score is None else float(score > limit) for score in pair) for pair in pairs]
    assert percentile_p(pairs, percent) == pytest.approx(by_swapping(rates))


@given(st.lists(st.tuples(MAYBE, st.floats(0, 1)), min_size=5, max_size=30), st.randoms())
def test_a_percentiles_p_does_not_depend_on_the_order(pairs, chance):
    pairs = [(0.5, 0.25), *pairs]
    p = percentile_p(pairs)
    chance.shuffle(pairs)
    assert percentile_p(pairs) == p
    assert 0 < p <= 1


def test_a_slower_tail_is_seen_by_the_percentile():
    chance = random.Random(4)
    base = [chance.lognormvariate(5, 0.3) for _ in range(300)]
    head = [wait * (3 if chance.random() < 0.12 else 1) for wait in base]
    assert percentile_p(list(zip(head, base, strict=True))) < 0.001
    assert percentile_p(list(zip(base, head, strict=True))) > 0.9
    assert percentile_p(list(zip(base, base, strict=True))) == 1.0


@pytest.mark.deep
def test_without_a_change_a_percentiles_test_errs_as_often_as_alpha_says():
    chance = random.Random(8)
    trials = [[(chance.lognormvariate(0, 1), chance.lognormvariate(0, 1)) for _ in range(40)] for _ in range(600)]
    assert sum(percentile_p(pairs) <= 0.05 for pairs in trials) / 600 <= 0.05 + 2 * (0.05 * 0.95 / 600) ** 0.5


@given(st.integers(0, 300))
def test_the_ways_to_choose_are_the_binomial_coefficients(n):
    assert module._choices(n) == [comb(n, chosen) for chosen in range(n + 1)]
