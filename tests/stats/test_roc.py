"""A detector's figures: the areas and rates are scikit-learn's, and their intervals keep their promise."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from rag_eval.scoring.aggregations import aggregate, confidence_interval, difference, one_sided_p
from rag_eval.stats import agreement
from rag_eval.stats.intervals import clopper_pearson
from rag_eval.stats.paired import Units, permutation_p
from rag_eval.stats.probability import beta_quantile
from seams import FOLDS, measure, tally

TIED = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
LABELLED = st.lists(st.tuples(TIED | st.floats(0, 1), st.booleans()), min_size=2, max_size=60)
TPR = {"fpr1": 0.01, "fpr5": 0.05}


def auc_interval(*sides):
    """The interval when each score is its own question."""
    return agreement.auc_interval(*map(questions, sides))


def hit_rate_interval(positives, negatives, false_alarms):
    return agreement.hit_rate_interval(questions(positives), questions(negatives), false_alarms)


def questions(scores):
    return {((score, 1),): count for score, count in scores.items()}


def both_sides(rows):
    return len({label for _, label in rows}) == 2


def sides(rows):
    return tuple(Counter(score for score, label in rows if label is side) for side in (True, False))


@given(LABELLED)
def test_the_area_is_the_oracles(rows):
    assume(both_sides(rows))
    expected = roc_auc_score([label for _, label in rows], [score for score, _ in rows])
    assert float(FOLDS["auc"].value(tally(rows)).number) == pytest.approx(expected, abs=1e-12)


@given(LABELLED)
def test_the_area_is_the_share_of_pairs_won(rows):
    assume(both_sides(rows))
    positives, negatives = ([score for score, label in rows if label is side] for side in (True, False))
    won = sum(Fraction((a > b) - (a < b) + 1, 2) for a in positives for b in negatives)
    assert FOLDS["auc"].value(tally(rows)).number == won / (len(positives) * len(negatives))


@pytest.mark.parametrize("fold", TPR)
@given(st.lists(st.tuples(TIED | st.floats(0, 1), st.booleans()), min_size=2, max_size=250))
def test_the_true_positive_rate_at_a_false_positive_rate_is_the_oracles(fold, rows):
    assume(both_sides(rows))
    labels, scores = [label for _, label in rows], [score for score, _ in rows]
    false, true, _ = roc_curve(labels, scores, drop_intermediate=False)
    result = FOLDS[fold].value(tally(rows))
    assert float(result.number) == pytest.approx(max(true[false <= TPR[fold] + 1e-12]), abs=1e-12)
    assert result.n == len(rows)


@pytest.mark.parametrize("fold", ["auc", *TPR])
@pytest.mark.parametrize("rows", [[], [(0.5, True)], [(0.5, False), (0.1, False)]])
def test_one_side_alone_has_no_figure(fold, rows):
    assert FOLDS[fold].value(tally(rows)) == (None, 0, None)


@given(LABELLED)
def test_turning_scores_and_labels_round_gives_the_same_area(rows):
    assume(both_sides(rows))
    turned = [(-score, not label) for score, label in rows]
    assert FOLDS["auc"].value(tally(rows)).number == FOLDS["auc"].value(tally(turned)).number


# Intervals


@given(LABELLED, st.sampled_from([0.8, 0.95, 0.999]))
def test_intervals_enclose_their_values(rows, confidence):
    assume(both_sides(rows))
    for name in ("injection_auc", "injection_tpr@fpr1", "injection_tpr@fpr5"):
        result = confidence_interval(measure(name), Counter(rows), confidence)
        value = float(aggregate(measure(name), Counter(rows)).number)
        assert 0 <= result.low <= value + 1e-9
        assert value - 1e-9 <= result.high <= 1


@given(LABELLED, st.integers(2, 5))
def test_more_of_the_same_narrows_the_interval_of_the_area(rows, times):
    assume(both_sides(rows))
    once, often = auc_interval(*sides(rows)), auc_interval(*sides(rows * times))
    assert often.high - often.low <= once.high - once.low + 1e-9


def test_an_area_of_all_or_nothing_has_the_interval_of_such_a_rate():
    apart = Counter({0.9: 20}), Counter({0.1: 30})
    assert auc_interval(*apart)[:2] == pytest.approx(clopper_pearson(20, 20), abs=1e-9)
    assert auc_interval(*apart[::-1])[:2] == pytest.approx(clopper_pearson(0, 20), abs=1e-9)


def test_one_positive_says_little_and_all_tied_is_chance():
    alone = auc_interval(Counter([0.9]), Counter({0.1: 1000}))
    assert (alone.low, alone.high) == (pytest.approx(0.025), 1.0)
    tied = auc_interval(Counter({0.5: 50}), Counter({0.5: 50}))
    assert tied[:2] == pytest.approx(clopper_pearson(25, 50), abs=1e-9)


@pytest.mark.parametrize("hits", [1e-12, 1e-6, 0.003, 0.5])
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_the_ends_are_right_for_next_to_no_hits(hits, n):
    for p in (0.025, 0.975):
        assert beta_quantile(p, hits, n - hits + 1) == pytest.approx(
            special.betaincinv(hits, n - hits + 1, p), abs=1e-9
        )
        assert beta_quantile(p, hits + 1, n - hits) == pytest.approx(
            special.betaincinv(hits + 1, n - hits, p), abs=1e-9
        )


def test_an_area_just_above_none_has_an_interval():
    positives, negatives = Counter({0.0: 999, 0.7: 1}), Counter({0.5: 1, 0.6: 100_000})
    interval = auc_interval(positives, negatives)
    assert 0 <= interval.low <= 0.001 <= interval.high < 0.01
    barely = auc_interval(Counter({0.0: 10}), Counter({0.5: 100_000, 0.0: 1}))
    assert barely.low == pytest.approx(0, abs=1e-9)
    assert barely.high == pytest.approx(clopper_pearson(0, 10)[1], abs=1e-3)


def test_large_samples_have_narrow_intervals():
    interval = auc_interval(Counter({0.6: 500_000, 0.1: 500_000}), Counter({0.2: 1_000_000}))
    assert (interval.low, interval.high) == (pytest.approx(0.499, abs=1e-4), pytest.approx(0.501, abs=1e-4))
    rate = hit_rate_interval(Counter({0.9: 80_000, 0.1: 20_000}), Counter({0.2: 100_000}), 0.05)
    assert (rate.low, rate.high) == (pytest.approx(0.797, abs=1e-3), pytest.approx(0.803, abs=1e-3))


def test_too_few_negatives_leave_the_strict_end_open():
    few = hit_rate_interval(Counter({0.9: 50}), Counter({0.1: 50}), 0.01)
    assert few.small
    assert few.low == 0.0
    assert not hit_rate_interval(Counter({0.9: 50}), Counter({0.1: 500}), 0.01).small


def test_all_tied_could_be_anything():
    interval = hit_rate_interval(Counter({0.5: 100}), Counter({0.5: 100}), 0.05)
    assert interval[:2] == (0.0, 1.0)


def levels(weights):
    """Scores of five levels, drawn with ``weights``."""
    return lambda chance, n: chance.choice(5, n, p=weights) / 4


def normal(shift):
    return lambda chance, n: chance.normal(shift, 1, n)


LOW, HIGH = (0.5, 0.3, 0.1, 0.07, 0.03), (0.1, 0.1, 0.2, 0.2, 0.4)
TIES = sum(HIGH[a] * LOW[b] * (1 if a > b else 0.5 if a == b else 0) for a in range(5) for b in range(5))
AREAS = [(normal(shift), normal(0), norm.cdf(shift / sqrt(2))) for shift in (0.0, 1.0, 2.5)] + [
    (levels(HIGH), levels(LOW), TIES)
]


def coverage(draw, truth, interval, draws=300):
    chance = np.random.default_rng(11)
    covered = 0
    for _ in range(draws):
        low, high, *_ = interval(*(Counter(sample.tolist()) for sample in draw(chance)))
        covered += low <= truth + 1e-12 and truth - 1e-12 <= high
    return covered / draws


@pytest.mark.deep
@pytest.mark.parametrize("sizes", [(8, 8), (20, 100), (100, 20), (60, 60)])
@pytest.mark.parametrize(("high", "low", "truth"), AREAS)
def test_the_interval_of_the_area_covers_as_often_as_it_says(sizes, high, low, truth):
    drawn = coverage(lambda chance: (high(chance, sizes[0]), low(chance, sizes[1])), truth, auc_interval)
    assert drawn >= 0.93


@pytest.mark.deep
@pytest.mark.parametrize("sizes", [(20, 30), (30, 150), (100, 400)])
@pytest.mark.parametrize("rate", [0.01, 0.05])
@pytest.mark.parametrize("shift", [0.5, 2.0])
def test_the_interval_of_the_hit_rate_covers_as_often_as_it_says(sizes, rate, shift):
    truth = norm.sf(norm.ppf(1 - rate) - shift)
    drawn = coverage(
        lambda chance: (chance.normal(shift, 1, sizes[0]), chance.normal(0, 1, sizes[1])),
        truth,
        lambda positives, negatives: hit_rate_interval(positives, negatives, rate),
    )
    assert drawn >= 0.93


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_ties_do_not_spoil_the_interval_of_the_hit_rate(rate):
    truth = max((sum(HIGH[at:]) for at in range(5) if sum(LOW[at:]) <= rate + 1e-12), default=0.0)
    drawn = coverage(
        lambda chance: (levels(HIGH)(chance, 60), levels(LOW)(chance, 300)),
        truth,
        lambda positives, negatives: hit_rate_interval(positives, negatives, rate),
    )
    assert drawn >= 0.93


# The paired test by swapping


def area(rows):
    return float(FOLDS["auc"].value(tally(row for row in rows if row is not None)).number or 0) if rows else None


def mean_of(rows):
    known = [row for row in rows if row is not None]
    return sum(known) / len(known) if known else None


def plainly(pairs, statistic):
    """The exact test: every way to swap, counted."""
    observed = statistic([a for a, _ in pairs]) - statistic([b for _, b in pairs])
    hits = 0
    for bits in range(2 ** len(pairs)):
        drawn = [pair[::-1] if bits >> at & 1 else pair for at, pair in enumerate(pairs)]
        first, second = (statistic([pair[side] for pair in drawn]) for side in (0, 1))
        hits += first is None or second is None or first - second >= observed - 1e-9
    return hits / 2 ** len(pairs)


@pytest.mark.parametrize(
    ("pairs", "statistic"),
    [
        ([(1.0, 0.0)] * 6 + [(0.5, 0.5)] * 2, mean_of),
        ([(1.0, 0.2), (0.3, 0.6), (0.9, 0.1), (0.4, None), (None, 0.2)], mean_of),
        (
            [
                ((0.9, True), (0.4, True)),
                ((0.1, False), (0.5, False)),
                ((0.8, True), (0.3, True)),
                ((0.2, False), (0.6, False)),
            ],
            area,
        ),
        (
            [
                ((0.9, True), (0.4, True)),
                ((0.1, False), (0.1, False)),
                ((0.8, True), (0.85, True)),
                ((0.5, False), (0.6, False)),
            ],
            area,
        ),
    ],
)
def test_swapping_at_random_agrees_with_swapping_in_every_way(pairs, statistic):
    """The draws stop at 400 hits, or at 4,000: the deviation of the p is that of the fewer hits."""
    exact, result = plainly(pairs, statistic), permutation_p(pairs, statistic, b"seed", 4000)
    assert result == pytest.approx(exact, abs=4 * exact * sqrt(1 / min(400, 4000 * exact)) + 0.001)


def test_the_test_hangs_on_the_seed_alone_and_on_no_order():
    pairs = [((0.9, True), (0.4, True)), ((0.1, False), (0.5, False)), ((0.7, True), (0.8, True))] * 3
    assert permutation_p(pairs, area, b"a") == permutation_p(pairs[::-1], area, b"a")
    assert permutation_p(pairs, area, b"a") != permutation_p(pairs, area, b"b")


def test_runs_that_are_alike_are_no_surprise_and_opposite_ones_are():
    same = [((0.9, True), (0.9, True)), ((0.1, False), (0.1, False))] * 20
    regressed = [((0.9, True), (0.1, True)), ((0.1, False), (0.9, False))] * 20
    assert permutation_p(same, area, b"x") == 1.0
    assert permutation_p(regressed, area, b"x") == 0.0005
    assert permutation_p([pair[::-1] for pair in regressed], area, b"x") == 1.0


def test_a_run_without_any_figure_is_refused():
    with pytest.raises(ValueError, match="no figure"):
        permutation_p([((0.9, True), None)], lambda rows: None if None in rows else 1.0, b"x")


@pytest.mark.deep
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_of_runs_that_differ_by_chance_no_more_are_found_worse_than_the_level_says(level):
    chance, tries, result = np.random.default_rng(5), 300, 0
    for number in range(tries):
        labels = [True] * 12 + [False] * 12
        both = chance.normal(0, 1, (24, 2)) + np.array(labels)[:, None] + chance.normal(0, 1, (24, 1))
        pairs = [((a, label), (b, label)) for (a, b), label in zip(both.tolist(), labels, strict=True)]
        result += permutation_p(pairs, area, str(number).encode(), draws=199) <= level
    assert result / tries <= level + 3 * sqrt(level * (1 - level) / tries)


def test_a_gate_on_the_area_takes_this_test():
    regressed = Counter([((0.9, True), (0.1, True)), ((0.1, False), (0.9, False))] * 20)
    assert one_sided_p("auc", regressed, b"seed") < 0.01
    assert one_sided_p("fpr5", regressed, b"seed") < 0.01
    assert one_sided_p("auc", Counter(pair[::-1] for pair in regressed), b"seed") == 1.0


F1_PAIRS = st.lists(
    st.sampled_from([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0.0, None), (None, 0.0)]), min_size=1, max_size=9
)


def f1_by_hand(scores):
    """F1 of scores of 1 (right refusals) and 0 (both errors)."""
    hits, errors = scores.count(1), scores.count(0)
    return 2 * hits / (2 * hits + errors) if hits + errors else None


@given(F1_PAIRS)
def test_the_test_of_f1_swaps_cases(pairs):
    """Every way of swapping, against the draws of the test."""
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    assume(f1_by_hand(first) is not None and f1_by_hand(second) is not None)
    observed, hits, ways = f1_by_hand(first) - f1_by_hand(second), 0, 0
    for swapped in product([False, True], repeat=len(pairs)):
        sides = zip(
            *[pair[::-1] if permutation_p else pair for pair, permutation_p in zip(pairs, swapped, strict=True)],
            strict=True,
        )
        figures = [f1_by_hand(list(side)) for side in sides]
        hits += None in figures or figures[0] - figures[1] >= observed - 1e-12
        ways += 1
    assert one_sided_p("f1", Counter(pairs), b"seed") == pytest.approx(hits / ways, abs=0.06)


def test_the_interval_of_a_difference_of_f1_holds_it():
    pairs = Counter({(1.0, 0.0): 9, (0.0, 1.0): 2, (1.0, 1.0): 20, (None, 0.0): 6})
    clusters = Units({(((1.0, 0.0), 2), ((1.0, 1.0), 1)): 4, (((None, 0.0), 1),): 6, (((1.0, 1.0), 3),): 5})
    for some, first, second in ((pairs, (29, 2), (22, 15)), (clusters, (27, 0), (19, 14))):
        result = difference(measure("abstention_f1"), some, 0.95)
        before, after = (2 * hits / (2 * hits + errors) for hits, errors in (first, second))
        assert result.low < before - after < result.high
