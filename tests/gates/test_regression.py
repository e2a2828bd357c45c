"""Regression gates beside scipy and statsmodels: margin, paired test, correction, and what could have been seen."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats
from statsmodels.stats.multitest import multipletests

from depth import examples
from rag_eval.analysis.baseline import ungated_regressions
from rag_eval.gates.regression import judge_regressions
from rag_eval.stats.power import fail_probability, noise_bound
from runs import evidence, question, questions
from seams import Baseline, Completeness, Gate, Policy, RunEvidence, Slices, Statistics, judge_all, measure
from swapping import by_swapping

DROP = Gate("precision", "max_drop", "0.02")


def judged(after, before, *gates, contracts=None, **chance):
    policy = Policy(gates=gates, slices=Slices((), 1), completeness={}, statistics=Statistics(**chance))
    return judge_all(policy, evidence(after, before, contracts))


def one(name, pairs, gate=None, **chance):
    """The outcome of one gate on pairs (before, after) of a metric's scores."""
    before, after = (questions(name, side) for side in zip(*pairs, strict=True))
    (result,) = judged(after, before, gate or Gate(name, "max_drop", "0.02"), **chance)
    return result


def turned(regressed, better, same):
    return [(1, 0)] * regressed + [(0, 1)] * better + [(1, 1)] * same


# --- the test ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 40))
def test_p_of_a_rate_is_that_of_scipys_binomial_test(worse, better, same):
    if worse + better + same:
        result = one("precision", turned(worse, better, same)).comparison
        both = worse + better
        expected = stats.binomtest(worse, both, 0.5, alternative="greater").pvalue if both else 1.0
        assert result.p == pytest.approx(expected, rel=1e-9)
        assert result.regression == pytest.approx((worse - better) / (both + same), abs=1e-11)


shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@examples(30)
@given(st.lists(st.tuples(shares, shares), min_size=2, max_size=8))
def test_p_of_a_mean_is_that_of_scipys_permutation_test(pairs):
    before, after = map(np.array, zip(*pairs, strict=True))

    def difference(x, y, axis=-1):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    result = one("map", pairs).comparison
    expected = stats.permutation_test(
        (before, after), difference, permutation_type="samples", alternative="greater", n_resamples=np.inf
    ).pvalue
    assert result.p == pytest.approx(expected, rel=1e-9)


maybe = st.none() | st.integers(0, 1)


@examples(40)
@given(st.lists(st.tuples(maybe, maybe), min_size=2, max_size=8))
def test_a_case_to_which_the_metric_no_longer_applies_counts_by_what_it_moves(pairs):
    sides = [[score for score in side if score is not None] for side in zip(*pairs, strict=True)]
    if all(sides):
        assert one("precision", pairs).comparison.p == pytest.approx(by_swapping(pairs), rel=1e-9)


def test_to_refuse_what_was_wrong_is_a_gain_in_precision_and_counts():
    """Ten wrong answers become refusals, to which precision does not apply: nothing got worse."""
    result = one("precision", [(0, None)] * 10 + [(1, 1)] * 10)
    assert (result.outcome, result.comparison.regression, result.comparison.n) == ("passed", -0.5, 20)
    back = one("precision", [(None, 0)] * 10 + [(1, 1)] * 10)
    assert (back.outcome, back.comparison.regression) == ("failed", 0.5)
    assert back.comparison.p < 0.05


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_a_rise_of_what_should_be_low_is_the_mirror_image_of_a_drop(pairs):
    drop = one("precision", pairs).comparison
    rise = one(
        "under_refusal", [(not a, not b) for a, b in pairs], Gate("under_refusal", "max_rise", "0.02")
    ).comparison
    assert (rise.p, rise.adjusted, rise.mde, rise.needed) == (drop.p, drop.adjusted, drop.mde, drop.needed)
    assert rise.regression == pytest.approx(drop.regression, abs=1e-11)


def test_the_same_runs_give_the_same_p_in_any_order():
    chance = np.random.default_rng(1)
    pairs = [tuple(row) for row in chance.random((60, 2)).round(3).tolist()]
    assert one("map", pairs) == one("map", pairs[::-1])


# --- the outcome ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "worse", "better", "same"),
    [
        ("passed", 0, 0, 100),
        ("passed", 2, 0, 98),  # the margin to the letter
        ("passed", 0, 9, 91),
        ("inconclusive", 3, 0, 97),  # p = 1/8
        ("inconclusive", 4, 0, 96),  # p = 1/16
        ("failed", 5, 0, 95),  # p = 1/32
        ("inconclusive", 10, 5, 85),
    ],
)
def test_a_drop_fails_where_it_exceeds_the_margin_and_chance_does_not_explain_it(outcome, worse, better, same):
    assert one("precision", turned(worse, better, same)).outcome == outcome


def test_a_significant_drop_within_the_margin_passes():
    result = one("precision", turned(10, 0, 990))
    assert (result.outcome, result.comparison.p < 0.001) == ("passed", True)


@pytest.mark.parametrize(("gate", "chance"), [("none", "regression"), ("", "none")])
def test_without_a_test_the_margin_alone_decides(gate, chance):
    result = one("precision", turned(3, 0, 97), replace(DROP, test=gate), test=chance)
    assert (result.outcome, result.comparison.p, result.comparison.adjusted) == ("failed", None, None)
    assert one("precision", turned(2, 0, 98), replace(DROP, test=gate), test=chance).outcome == "passed"


def test_a_gate_may_ask_for_the_test_that_the_rest_goes_without():
    result = one("precision", turned(3, 0, 97), replace(DROP, test="regression"), test="none")
    assert (result.outcome, result.comparison.p) == ("inconclusive", 1 / 8)


@pytest.mark.parametrize(("alpha", "outcome"), [("0.05", "inconclusive"), ("0.0625", "failed")])
def test_alpha_is_the_level(alpha, outcome):
    result = one("precision", turned(4, 0, 96), alpha=alpha)
    assert (result.outcome, result.comparison.alpha) == (outcome, float(alpha))


@pytest.mark.parametrize(
    ("why", "before", "contracts"),
    [
        ("the gates file names no baseline", None, None),
        (
            "the baseline has no value of it, or defines it differently; with baseline.trace, it is scored again",
            questions("precision", [1]),
            {"precision": "x"},
        ),
        (
            "the baseline has no value of it, or defines it differently; with baseline.trace, it is scored again",
            questions("mrr", [1]),
            None,
        ),
        (
            "no case is in both runs with the same gold item; with baseline.trace, changed items are compared too",
            questions("precision", [1], gold="other"),
            None,
        ),
        (
            "no case is in both runs with the same gold item; with baseline.trace, changed items are compared too",
            [question("Q7", precision=1)],
            None,
        ),
    ],
)
def test_where_nothing_can_be_compared_the_gate_fails_and_says_why(why, before, contracts):
    (result,) = judged(questions("precision", [1]), before, DROP, contracts=contracts)
    assert (result.outcome, result.blocks, result.why, result.comparison) == ("no_data", True, why, None)
    (skipped,) = judged(questions("precision", [1]), before, replace(DROP, when_no_data="skip"), contracts=contracts)
    assert not skipped.blocks


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ((0.5, True), None, "it applies to no case of this run"),
        (None, (0.5, True), "it applies to no case of the baseline"),
        ((0.5, True), (0.5, True), "the baseline or the run has no value"),  # without a harmless text
    ],
)
def test_a_gate_without_a_value_says_which_run_lacks_it(before, after, why):
    name = "injection_auc"
    old, new = ([replace(question("Q0"), scores={name: score} if score else {})] for score in (before, after))
    fingerprints = {name: "c"}
    known = RunEvidence(new, {}, Completeness(1, 1, 0, 0, 0, 0), fingerprints, Baseline(old, fingerprints))
    policy = Policy(gates=(Gate(name, "max_drop", "0.02"),), slices=Slices((), 1), completeness={})
    assert [result.why for result in judge_all(policy, known)] == [why]


# --- several tests ----------------------------------------------------------------------------------------------------

NAMES = ("precision", "chr", "map", "under_refusal")
EVERY = (
    *(Gate(name, "max_drop", "0.02") for name in NAMES[:3]),
    Gate("under_refusal", "max_rise", "0.02"),
    Gate("precision", "max_drop", "0", slice="tags=*"),
    Gate("map", "max_drop", "0.1", slice="tags=a"),
    Gate("chr", "max_drop", "0.1", test="none"),
)
scores = st.fixed_dictionaries({name: st.booleans() for name in NAMES})
rows = st.lists(st.tuples(st.sampled_from("abc"), scores, scores), min_size=1, max_size=30)


def two_runs(rows):
    sides = ([(part, side) for part, *both in rows for side in [both[position]]] for position in (0, 1))
    return (
        [question(f"Q{i}", slices=[f"tags={part}"], **ours) for i, (part, ours) in enumerate(side)] for side in sides
    )


def stepped_down(tests):
    """Tarone's and Holm's adjustment of (p, smallest possible p), as plainly as it can be said."""
    result, remaining = {}, sorted(tests)
    while remaining:
        p = remaining[0][0]
        rivals = sum(smallest <= p for _, smallest in remaining)
        result[remaining.pop(0)] = max([*result.values(), min(1.0, rivals * p)])
    return result


@examples(25)
@given(rows)
def test_all_tests_of_a_run_are_corrected_together(rows):
    before, after = two_runs(rows)
    result = [(entry, entry.comparison) for entry in judged(after, before, *EVERY) if entry.comparison]
    made = [(gate, entry) for gate, entry in result if entry.p is not None]
    holms = multipletests([entry.p for _, entry in made], 0.05, "holm")[1]
    assert all(entry.p <= entry.adjusted <= limit + 1e-12 for (_, entry), limit in zip(made, holms, strict=True))
    assert sum(entry.p is None for _, entry in result) == 1  # the one that goes without

    def moves(gate):
        sign = -1 if gate.name == "under_refusal" else 1
        both = [(n, a, b) for n, (a, b) in enumerate(zip(before, after, strict=True)) if gate.slice in ("", *a.slices)]
        steps = ((n, sign * (a.scores[gate.name] - b.scores[gate.name])) for n, a, b in both)
        return frozenset(step for step in steps if step[1])

    distinct = {moves(gate): entry.p for gate, entry in made}
    expected = stepped_down([(p, 0.5 ** len(moved)) for moved, p in distinct.items()])
    for gate, item in made:
        assert item.adjusted == pytest.approx(expected[item.p, 0.5 ** len(moves(gate))], rel=1e-12)


@examples(30)
@given(rows)
def test_without_correction_each_stands_alone(rows):
    before, after = two_runs(rows)
    for item in judged(after, before, *EVERY, correction="none"):
        (alone,) = judged(after, before, item.gate, correction="none")
        assert alone == item


@examples(30)
@given(rows)
def test_a_further_gate_never_makes_another_one_fail(rows):
    before, after = two_runs(rows)
    few, more = judged(after, before, *EVERY[:2]), judged(after, before, *EVERY)
    assert not [a for a, b in zip(few, more, strict=False) if a.outcome != "failed" and b.outcome == "failed"]


# --- what could have been seen ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gates", [1, 10])
def test_the_minimum_detectable_effect_is_seen_four_times_in_five(gates):
    names = ["precision", *[f"recall_any@{k}" for k in range(1, gates)]]
    pairs = [(number in (0, 1, 2), number in (3, 4)) if number < 5 else (True, True) for number in range(200)]
    before, after = columns(names, lambda n, position, side: pairs[(n + 7 * position) % 200][side], 200)
    result = judged(after, before, *[Gate(name, "max_drop", "0.02") for name in names])[0].comparison
    at = [
        fail_probability(200, noise_bound(5, 200), drop, Fraction(2, 100), 0.05 / gates)
        for drop in (result.mde, result.mde - 0.001)
    ]
    assert at[0] >= 0.8 > at[1]


def columns(names, score, n):
    """Two runs of n cases; ``score`` gives that of a case, of a metric by its place, on a side."""
    return [
        [
            replace(
                question(f"Q{number}"),
                scores={name: float(score(number, index, side)) for index, name in enumerate(names)},
            )
            for number in range(n)
        ]
        for side in (0, 1)
    ]


def test_copies_of_a_gate_are_one_test():
    pairs = turned(6, 0, 94)
    before, after = (questions("precision", side) for side in zip(*pairs, strict=True))
    result = judged(after, before, *[replace(DROP, line=line) for line in range(10)])
    assert {(item.comparison.p, item.comparison.adjusted, item.outcome) for item in result} == {
        (1 / 64, 1 / 64, "failed")
    }


def test_identical_columns_have_identical_figures():
    """A rate, a share and a mean of the same scores of 0 and 1 are one column."""
    names, pairs = ["precision", "recall@5", "map"], turned(6, 2, 92)
    before, after = columns(names, lambda n, _, side: pairs[n][side], 100)
    result = judged(after, before, *[Gate(name, "max_drop", "0.02") for name in names])
    assert len({item.comparison for item in result}) == 1


def test_tests_that_cannot_be_significant_do_not_count():
    """Nine columns with two moved cases each, one for the worse: p cannot be below 1/4."""
    names = ["precision", *[f"recall_any@{k}" for k in range(1, 10)]]

    def score(n, place, side):
        if not place:
            return n >= 6 or side == 0
        return side == 0 if n == 10 * place else side == 1 if n == 10 * place + 1 else True

    before, after = columns(names, score, 100)
    result = judged(after, before, *[Gate(name, "max_drop", "0.02") for name in names])
    assert (result[0].comparison.p, result[0].comparison.adjusted, result[0].outcome) == (1 / 64, 1 / 64, "failed")
    assert [item.comparison.p for item in result[1:]] == [3 / 4] * 9


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 60))
def test_an_interval_leaves_out_0_exactly_if_the_exact_test_is_significant_on_that_side(worse, better, same):
    if worse + better + same:
        result = one("precision", turned(worse, better, same)).comparison
        assert (result.low > 0) == (result.p <= 0.025)
        assert result.low <= result.regression <= result.high


@pytest.mark.parametrize(
    ("outcome", "worse", "better", "same"),
    [("passed", 0, 0, 300), ("failed", 0, 0, 30), ("failed", 2, 2, 96), ("passed", 2, 2, 996), ("failed", 60, 2, 938)],
)
def test_non_inferiority_passes_only_if_the_drop_is_ruled_out(outcome, worse, better, same):
    result = one("precision", turned(worse, better, same), replace(DROP, test="non_inferiority"))
    assert result.outcome == outcome
    assert (result.comparison.high <= 0.02) == (outcome == "passed")
    assert (result.comparison.test, result.comparison.p, result.blocks) == (
        "non_inferiority",
        None,
        outcome == "failed",
    )
    assert one("precision", turned(worse, better, same), test="non_inferiority").outcome == outcome


@given(st.integers(0, 10), st.integers(0, 10), st.integers(1, 80))
def test_where_the_margin_is_out_of_sight_it_is_said_how_many_cases_would_show_it(worse, better, same):
    result = one("precision", turned(worse, better, same)).comparison
    if result.mde is None or result.mde > 0.05:  # twice the margin, or 0.05
        assert result.needed is None or result.needed > worse + better + same
    else:
        assert result.needed is None


def test_means_have_a_minimum_detectable_effect_too():
    pairs = [(0.5 + 0.1 * (i % 3), 0.5 + 0.1 * (i % 2)) for i in range(200)]
    result = one("map", pairs).comparison
    assert 0.04 < result.mde < 0.08


# --- what is not known is not none ------------------------------------------------------------------------------------


def test_what_never_moved_is_taken_for_a_rate_at_its_worst():
    """Thirty graded scores that stayed as they are could well have shown a drop: as those of 0 and 1 would."""
    graded, rates = one("mrr", [(0.5, 0.5)] * 30).comparison, one("precision", [(1, 1)] * 30).comparison
    assert (graded.mde, graded.needed) == (rates.mde, rates.needed)
    assert 0 < graded.mde < 0.3


def test_among_very_many_tests_a_guardrail_that_is_turned_round_still_fails():
    rows = [((0.9, True), (0.1, True)), ((0.1, False), (0.9, False))] * 30
    slices = [f"category=c{n}" for n in range(20)]
    gates = [Gate("injection_auc", "max_drop", "0.05"), *[replace(DROP, slice=name) for name in slices]]
    column = measure("injection_auc").column
    before, after = (
        [
            # Half of the answers become wrong, and half right: twenty tests that differ, each of which shows nothing.
            replace(
                question(f"Q{n}"),
                scores={"precision": float(n % 2 == side), column: row[side]},
                slices=(*slices[:n], *slices[n + 1 :]),
            )
            for n, row in enumerate(rows)
        ]
        for side in (0, 1)
    )
    contracts = {"injection_auc": "c", "precision": "c"}
    now = RunEvidence(after, {}, Completeness(9, 9, 0, 0, 0, 0), contracts, Baseline(before, contracts))
    result = next(judge_regressions(gates, now, Statistics(alpha="0.01")))
    assert (result.comparison.regression, result.outcome) == (1.0, "failed")


# --- metrics without a gate -------------------------------------------------------------------------------------------


def unguarded(columns, *gates):
    """What a report says of columns of (before, after)."""
    cases = len(next(iter(columns.values())))
    sides = [
        [
            replace(question(f"Q{n}"), scores={name: column[n][side] for name, column in columns.items()})
            for n in range(cases)
        ]
        for side in (0, 1)
    ]
    now = RunEvidence(sides[1], {}, Completeness(cases, cases, 0, 0, 0, 0), dict.fromkeys(WATCHED, "c"),
                   Baseline(sides[0], dict.fromkeys(WATCHED, "c")))  # fmt: skip
    return list(
        ungated_regressions([next(judge_regressions([gate], now, Statistics())) for gate in gates], WATCHED, now, 0.05)
    )


WATCHED = (
    "precision",
    "mrr",
    "recall@3",
    "recall@5",
    "latency_total_ms.p95",
    "latency_total_ms.max",
)


def test_a_latency_that_tripled_is_named_with_the_gate_that_would_have_seen_it():
    slower = {"latency_total_ms": [(100.0 + n, 300.0 + 3 * n) for n in range(60)], "mrr": [(0.5, 0.5)] * 60}
    (result,) = unguarded(slower)
    assert (result.code, result.level) == ("ungated-regression", "warning")
    assert "latency_total_ms" in result.message
    assert result.message.endswith(" ms")
    assert "max_rise: " in result.fix
    assert ".max" not in result.message  # a maximum estimates nothing


def test_cutoffs_of_one_metric_are_named_once_and_gated_metrics_never():
    fallen = [(1.0, 0.0)] * 12 + [(1.0, 1.0)] * 48
    columns = {"precision": fallen, "recall@3": fallen, "recall@5": [*fallen[:11], *[(1.0, 1.0)] * 49]}
    (result,) = unguarded(columns, Gate("precision", "max_drop", "0.5"))
    assert "recall@3 from 1 to 0.8" in result.message
    assert "recall@5" not in result.message
    assert "precision" not in result.message
    assert "recall@3: {max_drop: 0.02}" in result.fix


def test_what_chance_may_explain_is_not_named():
    assert unguarded({"precision": [(1.0, 0.0)] * 4 + [(1.0, 1.0)] * 56}) == []
    assert unguarded({"mrr": [(0.0, 1.0)] * 30 + [(1.0, 1.0)] * 30}) == []


@pytest.mark.parametrize("unchanged", [40, 280, 2_000])
def test_cases_that_did_not_change_hide_no_regression(unchanged):
    (result,) = unguarded({"precision": [(1.0, 0.0)] * 20 + [(1.0, 1.0)] * unchanged})
    assert "precision from 1 to 0." in result.message


@pytest.mark.parametrize(("worse", "better", "named"), [(1_100, 900, True), (1_020, 980, False)])
def test_of_thousands_of_changes_in_both_directions_only_significant_ones_are_named(worse, better, named):
    changed = [(1.0, 0.0)] * worse + [(0.0, 1.0)] * better + [(1.0, 1.0)] * 3_000
    assert bool(unguarded({"precision": changed})) is named


@pytest.mark.parametrize(("others", "named"), [([], True), (["mrr", "recall@5"], False)])
def test_a_metric_is_tested_more_strictly_among_others(others, named):
    unchanged = {name: [(0.5, 0.5)] * 60 for name in others}
    assert bool(unguarded({"precision": [(1.0, 0.0)] * 5 + [(1.0, 1.0)] * 55, **unchanged})) is named


def fallen(regressed, cases=200):
    return [(1.0, 0.0)] * regressed + [(1.0, 1.0)] * (cases - regressed)


def test_three_metrics_are_named_those_with_another_gate_first_then_the_most_significant():
    columns = {
        "precision": fallen(20),
        "mrr": fallen(40),
        "recall@3": fallen(30),
        "latency_total_ms": [(0.0, 9.0)] * 200,
    }
    (result,) = unguarded(columns, Gate("precision", "min", "0"))
    assert re.findall(r"(\S+) from", result.message) == ["precision", "latency_total_ms.p95", "mrr"]
    (result,) = unguarded(columns, Gate("precision", "min", "0", slice="tags=a"))
    assert re.findall(r"(\S+) from", result.message) == ["latency_total_ms.p95", "mrr", "recall@3"]


@pytest.mark.parametrize(
    ("name", "pairs", "moves", "margin"),
    [
        ("precision", fallen(10, 500), "precision from 1 to 0.98", "precision: {max_drop: 0.01}"),
        ("precision", fallen(11, 500), "precision from 1 to 0.978", "precision: {max_drop: 0.02}"),
        ("latency_total_ms", [(9.0, 99.96)] * 60, "from 9 to 100", "latency_total_ms.p95: {max_rise: 50}"),
        ("latency_total_ms", [(99.5, 131.5)] * 60, "from 99.5 to 132", "latency_total_ms.p95: {max_rise: 20}"),
        ("latency_total_ms", [(100.0, 100.01)] * 60, "from 100 to 100", "latency_total_ms.p95: {max_rise: 0.005}"),
    ],
)
def test_the_margin_advised_is_one_that_the_drop_exceeds(name, pairs, moves, margin):
    (result,) = unguarded({name: pairs})
    assert moves in result.message
    assert result.fix == f"To fail such a run, write under gates: {margin}."
