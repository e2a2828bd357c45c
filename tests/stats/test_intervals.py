"""Intervals agree with their oracles, contain the value, and keep their promise."""

from __future__ import annotations

from decimal import Decimal
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from rag_eval.analysis.judging import cases_required
from rag_eval.stats.intervals import clopper_pearson, interval, mean_upper_bound, percentile_ranks, small_sample
from rag_eval.stats.probability import (
    beta_cdf,
    beta_quantile,
    binomial_tail,
    log_binomial,
    normal_quantile,
    student_upper,
)
from table import each_row

UNITS = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
OPEN = (0.0, None)


@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 1_000, 10_000, 100_000])
@each_row("confidence", [0.8, 0.95, 0.999])
def test_clopper_pearson_is_the_oracles(n, confidence):
    for hits in {0, 1, n // 10, n // 2, n * 19 // 20, n - 1, n}:
        ends = clopper_pearson(hits, n, confidence)
        assert ends == pytest.approx(proportion_confint(hits, n, 1 - confidence, "beta"), abs=1e-9)


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_what_is_no_rate_is_refused(hits, n):
    with pytest.raises(ValueError, match="is not a rate"):
        clopper_pearson(hits, n)


@pytest.mark.deep
@pytest.mark.parametrize("n", [10, 30, 100, 300])
@pytest.mark.parametrize("p", [0.5, 0.8, 0.95, 0.99])
def test_clopper_pearson_covers_every_rate_at_least_as_often_as_it_says(n, p):
    ends = [clopper_pearson(hits, n) for hits in range(n + 1)]
    assert sum(stats.binom.pmf(k, n, p) for k in range(n + 1) if ends[k][0] <= p <= ends[k][1]) >= 0.9565


@given(st.floats(0.001, 0.999), st.floats(0.3, 3000), st.floats(0.3, 3000))
def test_beta_probabilities_are_the_oracles(x, a, b):
    assert beta_cdf(x, a, b) == pytest.approx(special.betainc(a, b, x), abs=1e-10)


@given(st.floats(0.001, 0.999), st.floats(0.5, 3000), st.floats(0.5, 3000))
def test_beta_quantiles_are_the_oracles(p, a, b):
    assert beta_quantile(p, a, b) == pytest.approx(special.betaincinv(a, b, p), abs=1e-9)


@given(st.integers(0, 3000), st.integers(0, 3000), st.floats(0, 1))
def test_binomial_probabilities_are_the_oracles(k, n, p):
    assert binomial_tail(k, n, p) == pytest.approx(stats.binom.sf(k - 1, n, p), abs=1e-10)
    assert np.exp(log_binomial(k, n, p)) == pytest.approx(stats.binom.pmf(k, n, p), abs=1e-10)


@given(st.floats(1e-12, 1 - 1e-12))
def test_normal_quantiles_are_the_oracles(p):
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), abs=1e-9)
    assert NormalDist().cdf(normal_quantile(p)) == pytest.approx(p, abs=1e-14)


@pytest.mark.parametrize("degrees", [1, 2, 5, 29, 999, 99_999])
def test_student_uppers_are_the_oracles(degrees):
    assert student_upper(0.025, degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)


@pytest.mark.parametrize(
    "scores", [[0.3], [0.2, 0.7], [0.0, 0.5, 1.0, 1.0], [0.9, 0.95, *[1.0] * 28], [0.1, 0.5, 0.6, 0.8] * 5]
)
def test_the_bound_of_a_bounded_mean_is_the_quantile_of_randomly_weighted_means(scores):
    """The formula errs towards the wide side, if at all: by 0.002 with two scores, hardly with twenty."""
    spaces = np.random.default_rng(1).dirichlet([1] * (len(scores) + 1), 400_000)
    drawn = np.quantile(spaces @ [*scores, 1.0], 0.975)
    points = sorted((score, scores.count(score)) for score in set(scores))
    assert drawn - 4e-4 <= mean_upper_bound(points, 1.0, 0.025) <= drawn + 0.0025 / sqrt(len(scores) / 2)


@given(COUNTS)
def test_a_mean_of_zeros_and_ones_has_the_interval_of_a_rate(count):
    hits, n = count
    scores = [1] * hits + [0] * (n - hits)
    assert interval(scores, "mean")[:2] == pytest.approx(interval(scores, "rate")[:2], abs=1e-11)
    assert interval(scores, "rate")[:2] == clopper_pearson(hits, n)


def test_a_rate_takes_nothing_but_zeros_and_ones():
    with pytest.raises(ValueError, match="0 and 1"):
        interval([0.5], "rate")


def test_a_score_out_of_bounds_is_refused():
    with pytest.raises(ValueError, match="outside the bounds"):
        interval([0.5, 1.5])


def test_no_score_has_no_interval():
    assert interval([]) is None


def test_all_scores_perfect_is_not_certainty():
    assert interval([1.0] * 30) == (*clopper_pearson(30, 30), False)


@pytest.mark.parametrize("scores", [[200.0], [200.0] * 50])
def test_scores_that_do_not_vary_set_no_upper_limit_where_there_is_none(scores):
    low, high, small = interval(scores, "mean", OPEN)
    assert (high, small) == (None, True)
    assert low == pytest.approx(200 * 0.025 ** (1 / len(scores)))
    assert interval(scores, "mean", (None, None))[:2] == (None, None)


@given(st.lists(UNITS, min_size=1, max_size=60))
def test_a_bounded_interval_contains_the_mean_and_stays_in_bounds(scores):
    low, high, small = interval(scores)
    mean = sum(scores) / len(scores)
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1
    assert not small


@given(st.lists(st.floats(0, 1e5), min_size=2, max_size=60))
def test_an_open_interval_contains_the_mean_and_keeps_to_the_known_end(scores):
    low, high, small = interval(scores, "mean", OPEN)
    mean = sum(scores) / len(scores)
    assert 0 <= low <= mean + 1e-9
    assert high is None or mean - 1e-9 <= high
    assert small == (len(scores) < 100 or high is None)


@given(
    st.lists(UNITS, min_size=2, max_size=40),
    st.sampled_from(["mean", "p50", "p95"]),
    st.sampled_from([(0.0, 1.0), OPEN]),
)
def test_an_interval_widens_with_confidence(scores, kind, bounds):
    narrow, wide = (interval(scores, kind, bounds, confidence) for confidence in (0.8, 0.95))
    assert wide.low <= narrow.low + 1e-9
    assert wide.high is None or (narrow.high is not None and wide.high >= narrow.high - 1e-9)


@given(st.lists(UNITS, min_size=1).flatmap(lambda scores: st.tuples(st.just(scores), st.permutations(scores))))
@pytest.mark.parametrize("kind", ["mean", "p95"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), OPEN])
def test_the_order_of_scores_does_not_matter(kind, bounds, columns):
    assert interval(columns[0], kind, bounds) == interval(columns[1], kind, bounds)


@given(st.lists(st.integers(0, 8).map(lambda eighths: eighths / 8), min_size=1, max_size=30))
def test_a_bounded_interval_is_its_own_mirror_image(scores):
    low, high, *_ = interval(scores)
    mirrored = interval([1 - score for score in scores])
    assert mirrored[:2] == pytest.approx((1 - high, 1 - low), abs=1e-8)


def test_an_even_sample_without_an_upper_end_has_students_interval():
    scores = [10.0, 11.0, 12.0, 13.0, 14.0] * 20
    oracle = stats.t.interval(0.95, 99, np.mean(scores), stats.sem(scores))
    assert interval(scores, "mean", (None, None))[:2] == pytest.approx(oracle)


def test_a_long_tail_reaches_further_than_students_interval_on_its_own_side():
    scores = [100.0] * 20 + [900.0, 2500.0]
    low, high = stats.t.interval(0.95, 21, np.mean(scores), stats.sem(scores))
    result = interval(scores, "mean", (None, None))
    assert result.low == pytest.approx(low)
    assert result.high > high * 1.3


@pytest.mark.parametrize("n", [5, 30, 71, 72, 73, 500])
@each_row("share", [0.5, 0.9, 0.95, 0.99])
def test_percentile_ranks_are_the_narrowest_that_keep_each_tail(n, share):
    below, above = percentile_ranks(n, share)
    cumulated = stats.binom.cdf(np.arange(-1, n + 1), n, share)  # P(X <= rank - 1) at [rank]
    low = max((rank for rank in range(1, n + 1) if cumulated[rank] <= 0.025), default=None)
    high = min((rank for rank in range(1, n + 1) if 1 - cumulated[rank] <= 0.025), default=None)
    assert (below, above) == (low, high)


def test_a_percentile_so_far_out_that_no_score_can_be_beyond_it_has_no_upper_end():
    scores = [float(number) for number in range(1, 72)]
    assert interval(scores, "p95", OPEN).high is None
    assert interval(scores, "p95", OPEN).small
    assert interval([*scores, 72.0], "p95", OPEN) == (64.0, 72.0, False)
    assert interval(scores[:5], "p50") == (0.0, 1.0, True)


@given(st.integers(1, 200), st.sampled_from(["p1", "p50", "p90", "p95", "p99"]), st.sampled_from([0.8, 0.95]))
def test_a_small_sample_of_a_percentile_is_one_without_both_ends(n, kind, confidence):
    ends = interval(range(n), kind, (None, None), confidence)
    assert small_sample(n, kind, (None, None), confidence) == (None in ends[:2]) == ends.small


@pytest.mark.parametrize("kind", ["", "max", "p", "p0", "p100", "px", "q50"])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(ValueError, match="neither rate nor mean"):
        interval([0.5], kind)
    with pytest.raises(ValueError, match="neither rate nor mean"):
        small_sample(5, kind)


def covered(draw, mean, n, bounds, samples=1500):
    chance = np.random.default_rng(n)
    ends = [interval(draw(chance, n), "mean", bounds)[:2] for _ in range(samples)]
    return sum(low <= mean <= high for low, high in ends) / samples


@pytest.mark.parametrize("n", [10, 30])
def test_a_bounded_mean_is_covered_at_small_n(n):
    def ranks(chance, n):
        return chance.choice([1, 0.5, 0.2, 0], n, p=[0.6, 0.2, 0.1, 0.1])

    assert covered(ranks, 0.6 + 0.1 + 0.02, n, (0.0, 1.0)) >= 0.95


@pytest.mark.parametrize(("sigma", "n"), [(0.5, 10), (1.0, 30), (1.5, 100)])
def test_a_mean_of_latencies_is_covered_from_the_stated_sizes_on(sigma, n):
    """At least 92 %, less the one point that 1,500 samples may be off."""
    assert covered(lambda chance, n: chance.lognormal(0, sigma, n), np.exp(sigma**2 / 2), n, OPEN) >= 0.91


@pytest.mark.parametrize(
    ("threshold", "n", "direction", "asked"),
    [
        ("0.867", 30, "min", 27),
        ("0.80", 5, "min", None),
        ("0.05", 30, "max", 1),
        ("0.05", 10, "max", 0),
        ("0.05", 40, "max", None),
        ("1", 7, "min", None),
        ("0.1", 0, "min", None),
    ],
)
def test_a_threshold_asks_for_a_count(threshold, n, direction, asked):
    assert cases_required(Decimal(threshold), n, direction) == asked


@given(st.fractions(0, 1), st.integers(1, 500))
def test_the_count_asked_for_is_the_least_or_the_most_that_keeps_the_threshold(threshold, n):
    least, maximum = (cases_required(threshold, n, direction) for direction in ("min", "max"))
    if (threshold * n).denominator == 1:
        assert least is maximum is None
    else:
        assert maximum < threshold * n < least == maximum + 1
