"""Scores fold to the same number, exactly, in any order."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.stats.tally import as_float, as_fraction, round_for_display, weighted_counts
from seams import Value, mean, tally


def test_a_score_that_does_not_apply_is_in_neither_count_nor_sum():
    assert mean(tally([True, None, False, None])) == Value(Fraction(1, 2), 2, 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3))))
def test_what_was_found_counts_as_often_as_it_is_said_to(found):
    expected = Counter(key for key, count in found for _ in range(count))
    assert weighted_counts([key for key, _ in found], [count for _, count in found]) == expected


@pytest.mark.parametrize("column", [[], [None, None]])
def test_no_case_gives_no_value(column):
    assert mean(tally(column)) == Value(None, 0)


def test_rates_count_their_ones():
    assert mean(tally([True] * 26 + [False] * 4)) == Value(Fraction(13, 15), 30, 26)


def test_ratios_are_averaged_case_by_case_not_pooled():
    assert mean(tally([(1, 1), (1, 3)])) == Value(Fraction(2, 3), 2)


def test_thirds_add_up_to_one_exactly():
    assert mean(tally([(1, 3)] * 3 + [(2, 3)] * 3)).number == Fraction(1, 2)


def test_floats_are_rounded_to_twelve_decimals():
    assert mean(tally([0.1, 0.2, 0.3, 1 / 3])).number == 0.233333333333


def test_floats_add_without_loss():
    assert mean(tally([1e16, 1.0, -1e16])).number == round(1 / 3, 12)


@given(
    st.lists(st.floats(0, 1), min_size=1).flatmap(lambda column: st.tuples(st.just(column), st.permutations(column)))
)
def test_the_order_of_floats_does_not_show(columns):
    assert mean(tally(columns[0])) == mean(tally(columns[1]))


@pytest.mark.parametrize(("score", "number"), [(True, 1.0), (False, 0.0), ((2, 5), 0.4), (0.25, 0.25)])
def test_a_score_is_shown_as_a_number(score, number):
    assert as_float(score) == number


def test_a_float_is_compared_by_its_shortest_decimal():
    assert as_fraction(0.1) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("number", "limit", "text"),
    [
        (Fraction(1, 2), Fraction(4, 5), "0.500"),
        (Fraction(7996, 10000), Fraction(4, 5), "0.7996"),
        (Fraction(79999999, 100000000), Fraction(4, 5), "0.79999999"),
        (Fraction(8004, 10000), Fraction(4, 5), "0.800"),
        (Fraction(1, 3), Fraction("0.33333333333333333333"), "0.33333333333333333333"),
        (Fraction(12), Fraction(10), "12.000"),
    ],
)
def test_a_number_is_shown_with_as_many_decimals_as_it_takes(number, limit, text):
    assert round_for_display(number, lambda one: one >= limit) == text


def test_a_number_that_no_decimals_can_tell_from_its_limit_is_shown_as_a_ratio():
    number = Fraction(1, 3)
    assert round_for_display(number, lambda one: one == number) == "1/3"
