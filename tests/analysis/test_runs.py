"""Runs side by side: oracles for the tests, laws over all runs, and what is refused."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import combinations
from math import fsum

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar as oracle_mcnemar
from statsmodels.stats.multitest import multipletests

from cases import ROOT
from depth import examples
from rag_eval.analysis.history import pass_hat_k, repeats
from rag_eval.analysis.runs import Column, front, shared, side_by_side, spread, weighted
from rag_eval.gates import QUALITY, WEIGHTS, Scoring
from seams import GOOD, Question, UsageError, measure
from swapping import by_swapping

CONTRACTS = {"precision": "a", "abstention_accuracy": "b", "under_refusal": "c", "recall@5": "d", "mrr": "e"}


def case(qid, label="OK", gold="g", **scores):
    named = {name.replace("_at_", "@"): score for name, score in scores.items()}
    return Question(qid, None, f"What is {qid}?", True, label, label, named, 1, 1, gold, ())


def column(name, cases, contracts=None):
    contracts = CONTRACTS if contracts is None else contracts
    return Column(name, f"{name}.jsonl", None, {case.qid: case for case in cases}, contracts)


def run_of(name, scores, metric="precision", **more):
    """A run with one score a case under one metric; None where it does not apply."""
    cases = [
        Question(f"Q{n:03}", None, "?", True, "OK" if score else "NOT_CITED", "OK", {metric: score}, 1, 1, "g", ())
        if score is not None
        else Question(f"Q{n:03}", None, "?", True, "OVER_REFUSAL_NOT_RETRIEVED", "OK", {}, 1, 1, "g", ())
        for n, score in enumerate(scores)
    ]
    return column(name, cases, **more)


def row(result, name):
    return next(metric for metric in result.metrics if metric.name == name)


def against(result, name, place=1):
    return row(result, name).cells[place].against


# --- oracles


@pytest.mark.parametrize(("worse", "better", "same"), [(0, 1, 3), (5, 1, 10), (2, 2, 0), (9, 0, 4), (3, 14, 20)])
def test_rates_are_tested_as_mcnemar_and_the_binomial_test_do(worse, better, same):
    base = [1.0] * worse + [0.0] * better + [1.0] * same
    ours = [0.0] * worse + [1.0] * better + [1.0] * same
    result = against(side_by_side([run_of("a", base), run_of("b", ours)]), "precision")
    table = [[same, worse], [better, 0]]
    assert result.p == pytest.approx(min(1.0, oracle_mcnemar(table, exact=True).pvalue))
    assert result.p == pytest.approx(binomtest(better, worse + better).pvalue)
    assert (result.wins, result.losses, result.ties) == (better, worse, same)
    assert result.difference == pytest.approx((better - worse) / (worse + better + same))


def by_all_swaps(pairs):
    """Twice the share of all ways of swapping that differ at least as far the same way; 1 at most."""
    sides = [[score for score in side if score is not None] for side in zip(*pairs, strict=True)]
    turned = fsum(sides[0]) / len(sides[0]) < fsum(sides[1]) / len(sides[1])
    return min(1.0, 2 * by_swapping([pair[::-1] for pair in pairs] if turned else pairs))


scored = st.sampled_from([None, 0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(scored, scored), min_size=1, max_size=8))
@examples(100)
def test_other_scores_are_tested_by_all_ways_of_swapping_pairs(pairs):
    remaining = [pair for pair in pairs if pair != (None, None)]
    assume(any(a is not None for a, _ in remaining) and any(b is not None for _, b in remaining))
    runs = [run_of(name, [pair[side] for pair in pairs], "mrr") for side, name in enumerate("ab")]
    result = against(side_by_side(runs), "mrr")
    assert result.p == (1.0 if result.difference == 0 else pytest.approx(by_all_swaps(remaining)))


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=12, max_size=12), min_size=3, max_size=5))
@examples(25)
def test_the_correction_is_holms_over_the_distinct_tests_of_all_metrics_and_runs(columns):
    def made(name, scores):
        cases = [
            case(f"Q{n}", precision=score, recall_at_5=scores[-n], under_refusal=scores[n - 3])
            for n, score in enumerate(scores)
        ]
        return column(name, cases)

    comparison = side_by_side([made(f"r{n}", scores) for n, scores in enumerate(columns)])
    tests = [cell.against for metric in comparison.metrics for cell in metric.cells if cell.against]
    assert len(tests) == 3 * (len(columns) - 1)
    holms = multipletests([test.p for test in tests], method="holm")[1]
    assert all(test.p <= test.adjusted <= limit + 1e-12 for test, limit in zip(tests, holms, strict=True))


# --- laws

numbers = st.lists(st.sampled_from([None, 0.0, 1.0]), min_size=6, max_size=6)


@given(st.lists(scored, min_size=1, max_size=20))
def test_a_run_beside_itself_differs_in_nothing(scores):
    comparison = side_by_side([run_of("a", scores, "mrr"), run_of("a again", scores, "mrr")])
    neighbour = against(comparison, "mrr")
    message = [score for score in scores if score is not None]
    if neighbour is None:
        assert message == []
    else:
        assert neighbour._replace(low=0, high=0) == (0.0, 0, 0, 1.0, 1.0, "no difference", 0, 0, len(message))
        assert neighbour.low <= 0 <= neighbour.high
    assert [run.flips for run in comparison.runs] == [(), ()]


@given(numbers, numbers, st.sampled_from(["precision", "under_refusal"]))
def test_the_base_and_the_other_run_see_the_same_difference_with_the_opposite_sign(one, other, metric):
    runs = [run_of("a", one, metric), run_of("b", other, metric)]
    there = against(side_by_side(runs, 0), metric, 1)
    back = against(side_by_side(runs, 1), metric, 0)
    if there is None:
        assert back is None
        return
    assert there.difference == -back.difference
    assert (there.p, there.adjusted) == (back.p, back.adjusted)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-9)
    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)


@given(numbers, numbers, numbers)
def test_the_order_of_runs_moves_columns_and_nothing_else(one, two, three):
    runs = [run_of(name, scores) for name, scores in zip("abc", (one, two, three), strict=True)]
    comparison = side_by_side(runs, 0)
    turned = side_by_side([runs[2], runs[0], runs[1]], 1)
    positions = [1, 2, 0]
    assert [turned.runs[position] for position in positions] == list(comparison.runs)
    cells = [[metric.cells[position] for position in positions] for metric in turned.metrics]
    assert cells == [list(metric.cells) for metric in comparison.metrics]
    assert turned.cases == comparison.cases


@given(numbers, numbers, st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing(one, other, chance):
    runs = [run_of("a", one), run_of("b", other)]
    shuffled = []
    for run in runs:
        items = list(run.cases.items())
        chance.shuffle(items)
        shuffled.append(run._replace(cases=dict(items)))
    assert side_by_side(shuffled) == side_by_side(runs)


def test_p_is_the_same_for_equal_numbers_of_other_types():
    pairs = [(0.3 + n / 100, 0.9 - n / 77) for n in range(30)] + [(1.0, 0.0)]
    runs = [run_of("a", [a for a, _ in pairs], "mrr"), run_of("b", [b for _, b in pairs], "mrr")]
    whole = [run_of("a", [*(a for a, _ in pairs[:-1]), 1], "mrr"), run_of("b", [*(b for _, b in pairs[:-1]), 0], "mrr")]
    assert side_by_side(runs).metrics == side_by_side(whole).metrics


def test_flips_are_the_cases_that_pass_in_one_of_the_two_runs():
    labels = [("OK", "OK"), ("OK", "WRONG_CLAIM"), ("NOT_CITED", "OK"), ("ERROR", "MISSING"), ("REFUSAL_OK", "OK")]
    a, b = (
        column(name, [case(f"Q{n}", pair[side]) for n, pair in enumerate(labels)]) for side, name in enumerate("ab")
    )
    result = side_by_side([a, b]).runs[1]
    assert [(flip.qid, flip.before, flip.after) for flip in result.flips] == [
        ("Q1", "OK", "WRONG_CLAIM"),
        ("Q2", "NOT_CITED", "OK"),
    ]
    assert (result.passing, result.missing, result.errored) == (3, 1, 0)
    assert side_by_side([a, b]).runs[0].errored == 1


# --- what is compared, and what is refused


def test_the_metrics_that_the_last_run_gates_are_tested_unless_all_are_asked_for():
    """From 1.0 to 0.5 is not to be hidden by two dozen cutoffs."""
    runs = [
        column(name, [case(f"Q{n}", precision=float(n < right), mrr=1.0) for n in range(12)])._replace(gated=gated)
        for name, right, gated in (("a", 12, ("mrr",)), ("b", 6, ("precision",)))
    ]
    assert [metric.name for metric in side_by_side(runs).metrics] == ["precision"]
    assert len(side_by_side(runs, every=True).metrics) == 5
    assert [metric.name for metric in side_by_side(runs, only=["mrr"], every=True).metrics] == ["mrr"]


def test_columns_that_are_copies_are_one_test():
    cases = [[case(f"Q{n}", precision=float(n < r), mrr=float(n < r)) for n in range(12)] for r in (12, 6)]
    comparison = side_by_side([column(name, case) for name, case in zip("ab", cases, strict=True)])
    both = [against(comparison, name) for name in ("precision", "mrr")]
    assert [(item.p, item.adjusted) for item in both] == [(1 / 32, 1 / 32)] * 2


def test_only_cases_under_the_same_gold_item_in_all_runs_are_compared():
    a = column(
        "a", [case("Q1", precision=1), case("Q2", precision=1), case("Q3", precision=1), case("Q4", precision=1)]
    )
    b = column("b", [case("Q1", precision=1), case("Q2", gold="other", precision=0), case("Q3", precision=0)])
    c = column(
        "c", [case("Q1", precision=0), case("Q2", precision=1), case("Q5", precision=1), case("Q4", precision=0)]
    )
    assert shared([a, b, c]) == ["Q1"]
    assert shared([a, c]) == ["Q1", "Q2", "Q4"]
    comparison = side_by_side([a, b, c])
    assert comparison.cases == 1
    assert [(run.cases, run.changed, run.gone, run.new) for run in comparison.runs] == [
        (4, 0, 0, 0),
        (3, 1, 1, 0),
        (4, 0, 1, 1),
    ]
    assert [cell.value for cell in row(comparison, "precision").cells] == [1.0, 1.0, 0.0]
    assert [cell.n for cell in row(comparison, "precision").cells] == [1, 1, 1]


@pytest.mark.parametrize(
    ("other", "why"),
    [([case("Q1", gold="other")], "1 has a different one"), ([case("Q2")], "no qid is in all of them")],
)
def test_runs_without_a_common_case_are_refused(other, why):
    with pytest.raises(UsageError, match=rf"no question has the same gold item in all 2 runs \({why}\)"):
        side_by_side([column("a", [case("Q1")]), column("b", other)])


def test_runs_that_share_cases_in_pairs_only_are_refused():
    a, b, c = ([case(first), case(second)] for first, second in ("12", "23", "31"))
    with pytest.raises(UsageError, match="in all 3 runs"):
        side_by_side([column("a", a), column("b", b), column("c", c)])


def test_metrics_under_other_contracts_are_refused_by_name_with_the_reason():
    a = column("a", [case("Q1", precision=1, mrr=1)], {**CONTRACTS, "made_up": "x", "f1@5": "f"})
    b = column("b", [case("Q1", precision=1, mrr=0)], {**CONTRACTS, "made_up": "x", "mrr": "another"})
    comparison = side_by_side([a, b])
    assert [(item.name, item.why) for item in comparison.refused] == [
        ("f1@5", "not measured in 'b'"),
        ("made_up", "unknown to this version of rag-eval"),
        ("mrr", "defined differently in 'b'"),
    ]
    assert [metric.name for metric in comparison.metrics] == [
        "precision",
        "under_refusal",
        "abstention_accuracy",
        "recall@5",
    ]
    with pytest.raises(UsageError, match="mrr cannot be compared: defined differently in 'b'"):
        side_by_side([a, b], only=["mrr"])


def test_flips_are_refused_where_refusals_are_told_in_different_ways():
    b = column("b", [case("Q1", "OK")], {**CONTRACTS, "precision": "other", "abstention_accuracy": "other"})
    comparison = side_by_side([column("a", [case("Q1", "NOT_CITED")]), b])
    assert comparison.runs[1].flips == ()
    assert [item.name for item in comparison.refused] == ["abstention_accuracy", "precision", "flips"]


def test_a_metric_that_nobody_knows_is_refused_with_what_it_may_have_meant():
    runs = [column("a", [case("Q1")]), column("b", [case("Q1")])]
    with pytest.raises(UsageError, match=r"Did you mean 'recall@5'"):
        side_by_side(runs, only=["recal@5"])


def test_fewer_metrics_are_corrected_for_fewer_tests_and_the_score_stays():
    cases = [
        [case(f"Q{n}", precision=n < w, mrr=float(0 < n < w + 1), recall_at_5=float(1 < n < w + 2)) for n in range(10)]
        for w in (6, 0)
    ]
    runs = [column("a", cases[0]), column("b", cases[1])]
    whole, item = side_by_side(runs), side_by_side(runs, only=["precision"])
    assert [metric.name for metric in item.metrics] == ["precision"]
    assert against(item, "precision").adjusted == against(item, "precision").p == against(whole, "precision").p
    assert against(whole, "precision").adjusted == 3 * against(item, "precision").p
    assert item.score == whole.score


# --- weighted score and front

values = st.floats(0, 1, allow_nan=False)
metric_names = [name for names in QUALITY.values() for name in names]


def test_objectives_are_those_of_the_docs_and_means_of_metrics_of_which_more_is_better():
    page = (ROOT / "docs" / "compare.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| (0\.\d+ \| .*) \|$", page, re.MULTILINE))
    assert {name: float(row[:4]) for name, row in rows.items()} == WEIGHTS
    assert {name: tuple(re.findall(r"`(\w+@?\w*)`", rows[name])) for name in QUALITY} == QUALITY
    assert {measure(name).metric.better for name in metric_names} == {"higher"}


def test_the_weighted_score_of_the_example_is_the_one_by_hand():
    metrics = {"precision": [0.8, 0.6], "abstention_accuracy": [1.0, 0.8], "mrr": [0.5, 1.0]}
    scoring = Scoring(budgets={"cost_usd": 0.01})
    score = weighted(scoring, metrics, {"cost": [0.01, 0.03], "latency": [100.0, 100.0]})
    total = 0.30 + 0.15 + 0.10
    by_hand = [(0.30 * 0.9 + 0.15 * 0.5 + 0.10 * 0.5) / total, (0.30 * 0.7 + 0.15 * 1.0 + 0.10 * 0.25) / total]
    assert score.scores == pytest.approx(by_hand)
    assert [(objective.name, objective.metrics) for objective in score.objectives] == [
        ("accuracy", ("precision", "abstention_accuracy")),
        ("retrieval", ("mrr",)),
        ("cost", ("cost_usd",)),
    ]
    assert {item.name: item.why.split(":")[0] for item in score.dropped} == {
        "faithfulness": "none of its metrics has a value in every run",
        "citation": "none of its metrics has a value in every run",
        "latency": "the gates file has no score.budgets.latency_total_ms",
    }


@given(
    st.dictionaries(st.sampled_from(metric_names), st.lists(st.none() | values, min_size=3, max_size=3)),
    st.dictionaries(st.sampled_from(list(WEIGHTS)), st.floats(0.01, 10), min_size=1),
    st.lists(st.none() | st.floats(0, 1e6), min_size=3, max_size=3),
)
def test_scores_lie_between_0_and_1_and_every_objective_counts_or_is_said_to_be_left_out(metrics, weights, spending):
    scoring = Scoring(weights, {"cost_usd": 0.01, "latency_total_ms": 2000.0})
    result = weighted(scoring, metrics, {"cost": spending, "latency": spending})
    assert {objective.name for objective in (*result.objectives, *result.dropped)} == set(weights)
    if result.scores is None:
        assert result.objectives == ()
    else:
        assert fsum(objective.share for objective in result.objectives) == pytest.approx(1)
        assert all(-1e-9 <= score <= 1 + 1e-9 for score in result.scores)
        ends = [[objective.values[index] for objective in result.objectives] for index in range(3)]
        assert all(min(end) - 1e-9 <= score <= max(end) + 1e-9 for end, score in zip(ends, result.scores, strict=True))


def test_a_metric_that_one_run_lacks_counts_in_no_run():
    score = weighted(Scoring(), {"precision": [0.5, None], "abstention_accuracy": [0.4, 0.6]}, {})
    assert score.scores == pytest.approx((0.4, 0.6))


points = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=6
)


@given(points)
def test_the_front_is_what_no_other_run_beats(runs):
    qualities, costs, times = (list(side) for side in zip(*runs, strict=True))
    pareto = front(Scoring(), {"precision": qualities}, {"cost": costs, "latency": times})
    for index, run in enumerate(runs):
        beaten = any(
            other[0] >= run[0] and other[1] <= run[1] and other[2] <= run[2] and other != run for other in runs
        )
        assert (pareto.beaten_by[index] is not None) == beaten
    assert None in pareto.beaten_by


def test_the_front_leaves_out_what_some_run_does_not_say_and_falls_back_on_precision():
    weights = Scoring({"retrieval": 1.0})
    pareto = front(weights, {"precision": [0.5, 0.6]}, {"cost": [1.0, None], "latency": [5.0, 9.0]})
    assert (pareto.quality, pareto.dimensions) == ("precision", ("quality", "latency"))
    assert [item.name for item in pareto.left_out] == ["cost"]
    assert pareto.beaten_by == (None, None)
    assert front(weights, {"precision": [0.5, None]}, {}) is None


# --- what was spent


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=40))
def test_a_spread_is_by_nearest_rank(numbers):
    result, there = spread(numbers), sorted(number for number in numbers if number is not None)
    if not there:
        assert result is None
        return
    assert (result.n, result.most) == (len(there), there[-1])
    assert result.total == pytest.approx(fsum(there))
    assert result.mean == pytest.approx(fsum(there) / len(there))
    for share, value in ((Fraction(1, 2), result.p50), (Fraction(95, 100), result.p95)):
        reach = [item for item in there if Fraction(sum(entry <= item for entry in there), len(there)) >= share]
        assert value == reach[0]


SPENDING = {"cost_usd": "f", "latency_total_ms.p95": "g", "latency_total_ms.mean": "g", "latency_total_ms.total": "h"}


def spending(name, costs, times, contracts=SPENDING):
    pairs = zip(costs, times, strict=True)
    cases = [case(f"Q{n}", precision=1, cost_usd=cost, latency_total_ms=time) for n, (cost, time) in enumerate(pairs)]
    return column(name, cases, {**CONTRACTS, **contracts})


def test_cost_and_latency_are_of_the_compared_cases():
    whole, part = spending("a", [0.5, 0.1, 9], [10, 30, 9]), column("b", [case("Q0"), case("Q1")])
    result = side_by_side([whole, part]).runs
    assert (result[0].cost.total, result[0].latency.p95) == (0.6, 30)
    assert (result[1].cost, result[1].latency) == (None, None)


def test_cost_and_latency_are_tested_in_pairs_sums_only_where_they_are_asked_for():
    runs = [spending("a", [0.1] * 9, [100] * 9), spending("b", [0.2] * 9, [300] * 9)]
    rows = {row.name: row.cells[1] for row in side_by_side(runs).metrics}
    assert "latency_total_ms.total" not in rows
    assert (rows["latency_total_ms.p95"].value, rows["latency_total_ms.p95"].against.difference) == (300, 200)
    assert rows["cost_usd"].against.p == pytest.approx(2 / 2**9, rel=0.2)
    asked = side_by_side(runs, only=["latency_total_ms.total"]).metrics
    assert [(row.name, row.cells[1].value) for row in asked] == [("latency_total_ms.total", 2700)]


def test_costs_at_other_prices_are_no_dimension_to_compare_by():
    runs = [spending("a", [0.1], [5]), spending("b", [0.2], [5], {**SPENDING, "cost_usd": "other"})]
    comparison = side_by_side(runs)
    assert comparison.front.dimensions == ("quality", "latency")
    assert "cost_usd" in [item.name for item in comparison.refused]


# --- repeats


@pytest.mark.parametrize("n", range(1, 7))
def test_the_estimates_are_the_shares_of_all_choices_of_k_tries(n):
    for c in range(n + 1):
        tries = [index < c for index in range(n)]
        for k in range(1, n + 1):
            choices = list(combinations(tries, k))
            assert pass_hat_k(n, c, k) == Fraction(sum(map(all, choices)), len(choices))


@pytest.mark.parametrize("share", [Fraction(1, 3), Fraction(9, 10)])
def test_the_estimates_are_unbiased(share):
    n, k = 6, 3
    weights = [Fraction(len(list(combinations(range(n), c)))) * share**c * (1 - share) ** (n - c) for c in range(n + 1)]
    assert sum(weight * pass_hat_k(n, c, k) for c, weight in enumerate(weights)) == share**k


def tries(*labels):
    """Runs of which each question has the given labels in turn."""
    return [
        (f"run {n}", {f"Q{q}": case(f"Q{q}", label[n]) for q, label in enumerate(labels)})
        for n in range(len(labels[0]))
    ]


def test_repeats_count_passes_and_name_what_is_flaky():
    runs = tries(("OK", "OK", "OK"), ("OK", "NOT_CITED", "OK"), ("ERROR",) * 3, ("REFUSAL_OK", "OK", "OK"))
    result = repeats("five", runs, ["Q3", "Q1", "Q0", "Q2"])
    assert [(question.qid, question.passes) for question in result.questions] == [
        ("Q0", 3),
        ("Q1", 2),
        ("Q2", 0),
        ("Q3", 3),
    ]
    assert [item.qid for item in result.flaky] == ["Q1"]
    assert [(item.k, item.value) for item in result.at] == [
        (1, pytest.approx(8 / 12)),
        (2, pytest.approx((1 + 1 / 3 + 1) / 4)),
        (3, 0.5),
    ]


labels = st.sampled_from(["OK", "REFUSAL_OK", "NOT_CITED", "ERROR"])


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(labels, min_size=n, max_size=n), min_size=1, max_size=12)))
def test_more_tries_are_harder_to_pass_all_of(rows):
    result = repeats("x", tries(*rows), [f"Q{n}" for n in range(len(rows))])
    for item, further in zip(result.at, result.at[1:], strict=False):
        assert further.value <= item.value + 1e-12
    for item in result.at:
        assert item.low - 1e-9 <= item.value <= item.high + 1e-9
    assert sum(question.passes for question in result.questions) == sum(label in GOOD for row in rows for label in row)


@given(st.lists(st.lists(labels, min_size=3, max_size=3), min_size=1, max_size=8), st.permutations([0, 1, 2]))
def test_the_order_of_tries_changes_no_estimate(rows, order):
    qids = [f"Q{n}" for n in range(len(rows))]
    turned = repeats("x", tries(*([row[position] for position in order] for row in rows)), qids)
    result = repeats("x", tries(*rows), qids)
    assert turned.at == result.at
    assert [item.qid for item in turned.flaky] == [item.qid for item in result.flaky]


def test_safety_cases_do_not_make_the_share_look_better():
    result = repeats("x", tries(("ATTACK", "ATTACK"), ("NOT_CITED", "NOT_CITED")), ["Q0", "Q1"])
    assert [question.qid for question in result.questions] == ["Q1"]
    assert result.at[0].value == 0


def test_safety_cases_alone_give_no_estimate():
    assert repeats("x", tries(("ATTACK", "ATTACK")), ["Q0"]).at == ()
