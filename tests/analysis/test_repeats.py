"""Several tries at a question are one unit: copies make no interval narrower and no p smaller, and intervals hold."""

from __future__ import annotations

from collections import Counter
from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from depth import examples
from rag_eval.gates.evidence import GroupedCases
from rag_eval.gates.questions import Scores
from rag_eval.stats.intervals import interval_of_questions, interval_of_totals
from rag_eval.stats.paired import Units, above_percentile, effects, permutation_p, sign_flip
from runs import evidence, question, questions
from seams import Completeness, Gate, Policy, RunEvidence, Slices, Statistics, judge_all, measure

FLOOR = Gate("precision", "min", "0.80", confidence="0.95")
DROP = Gate("precision", "max_drop", "0.02")
SHARES = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0])


def copied(cases, times):
    """The same rows as so many runs."""
    return [replace(case, run=f"r{run}") for case in cases for run in range(times)]


def judged(after, before=None, *gates, min_n=1, **chance):
    policy = Policy(gates=gates, slices=Slices((), min_n), completeness={}, statistics=Statistics(**chance))
    return judge_all(policy, evidence(after, before, cluster=policy.statistics.cluster))


def interval_of(name, cases):
    """That of one of the values of a metric that has several."""
    return RunEvidence(cases, {}, Completeness(1, 1, 0, 0, 0, 0), {}).interval(name)


def of_scores(*rows):
    """The questions whose tries score so."""
    return Counter(tuple(sorted(Counter(row).items())) for row in rows)


# --- copies -----------------------------------------------------------------------------------------------------------


def test_copies_of_a_run_do_not_make_a_gate_pass():
    """85 of 100 could be 0.765: it could be that ten times over as well."""
    once = questions("precision", [1] * 85 + [0] * 15)
    (alone,), (ten,) = judged(once, None, FLOOR), judged(copied(once, 10), None, FLOOR)
    assert (alone.outcome, ten.outcome, ten.n) == ("inconclusive", "inconclusive", 1000)
    assert (ten.low, ten.high) == pytest.approx((alone.low, alone.high), abs=1e-9)


def test_copies_of_a_run_do_not_make_two_flips_significant():
    before, after = questions("precision", [1] * 100), questions("precision", [0] * 4 + [1] * 96)
    (alone,), (ten,) = judged(after, before, DROP), judged(copied(after, 10), copied(before, 10), DROP)
    assert alone.comparison.p == ten.comparison.p == 1 / 16
    assert (alone.outcome, ten.outcome, ten.n) == ("inconclusive", "inconclusive", 100)
    assert ten.comparison.regression == alone.comparison.regression


NAMES = {
    "precision": st.sampled_from([0.0, 1.0]),
    "mrr": SHARES,
    "latency_total_ms.mean": st.floats(1, 1e4).map(lambda x: round(x, 2)),
    "latency_total_ms.p50": st.sampled_from([1.0, 2.0, 3.5, 80.0]),
}


@pytest.mark.parametrize("name", NAMES)
@examples(20)
@given(st.data())
def test_copies_of_a_run_have_its_interval(name, data):
    scores = data.draw(st.lists(st.none() | NAMES[name], min_size=1, max_size=30))
    once = questions(name.partition(".")[0], scores)
    alone, thrice = (interval_of(name, cases) for cases in (once, copied(once, 3)))
    assert (alone is None) == (thrice is None)
    if alone:
        assert [end is None for end in thrice[:2]] == [end is None for end in alone[:2]]
        assert [end or 0 for end in thrice[:2]] == pytest.approx([end or 0 for end in alone[:2]], rel=1e-9, abs=1e-9)
        assert thrice.small == alone.small


@examples(20)
@given(st.lists(st.tuples(st.none() | SHARES, st.none() | SHARES), min_size=2, max_size=9))
def test_copies_of_a_run_have_its_test(pairs):
    if not all(any(score is not None for score in side) for side in zip(*pairs, strict=True)):
        return
    before, after = (questions("mrr", side) for side in zip(*pairs, strict=True))
    gate = Gate("mrr", "max_drop", "0.02")
    (alone,), (thrice,) = judged(after, before, gate), judged(copied(after, 3), copied(before, 3), gate)
    assert thrice.comparison.p == pytest.approx(alone.comparison.p, rel=1e-9)
    assert (thrice.comparison.mde or 0) == pytest.approx(alone.comparison.mde or 0, rel=1e-6)
    assert (thrice.comparison.needed, thrice.n) == (alone.comparison.needed, alone.n)


@pytest.mark.parametrize("name", ["injection_auc", "injection_tpr@fpr5"])
def test_copies_of_a_detectors_run_say_no_more(name):
    scores = [(0.9, True), (0.3, False), (0.8, True), (0.2, True), (0.4, False)] * 4
    column = measure(name).column
    once = [replace(question(f"Q{n}"), scores={column: score}) for n, score in enumerate(scores)]
    alone, thrice = (interval_of(name, cases) for cases in (once, copied(once, 3)))
    assert thrice[:2] == pytest.approx(alone[:2], abs=1e-9)


def test_runs_of_other_names_are_not_compared_and_the_gate_says_why():
    once = questions("precision", [1] * 20)
    (alone,) = judged(copied(once, 3), once, DROP)
    assert (alone.outcome, alone.comparison) == ("no_data", None)
    assert alone.why == "the baseline has no runs of these names; name runs as it does, or first renew it"
    both = copied(once, 2), copied(once, 3)
    assert judged(*both, DROP)[0].outcome == "passed"
    assert (evidence(*both).unpaired, evidence(copied(once, 3), once).unpaired, evidence(once).unpaired) == (0, 20, 0)


def test_a_run_behind_one_that_the_baseline_has_cannot_hide():
    """Of a log that is added to, the old run would be held against itself alone."""
    good, bad = copied(questions("precision", [1] * 20), 1), questions("precision", [0] * 20, run="new")
    now = evidence([*good, *bad], copied(good, 2))
    assert (now.new_runs, now.unpaired) == (("new",), 0)
    assert not now.pairs("precision")  # so that no movement of nothing is shown beside the new run's value
    (result,) = judged([*good, *bad], copied(good, 2), DROP)
    assert (result.outcome, result.comparison) == ("no_data", None)
    assert evidence(bad, good).new_runs == ()  # of one run on each side the name does not matter


def test_other_gold_is_no_other_run():
    before = [replace(case, content_hash="other") for case in copied(questions("precision", [1] * 20), 3)]
    (alone,) = judged(copied(questions("precision", [1] * 20), 2), before, DROP)
    assert (
        alone.why
        == "no case is in both runs with the same gold item; with baseline.trace, changed items are compared too"
    )


def test_a_slice_is_as_large_as_its_questions():
    cases = copied(questions("precision", [1] * 4, [["tags=a"]] * 4), 5)
    gate = Gate("precision", "min", "0.5", slice="tags=a")
    (result,) = judged(cases, None, gate, min_n=5)
    assert (evidence(cases).size("tags=a"), result.few, result.outcome) == (4, True, "inconclusive")


@examples(50)
@given(st.lists(st.lists(st.none() | SHARES | st.booleans(), min_size=1, max_size=6), min_size=1, max_size=9))
def test_totals_are_those_of_the_scores(rows):
    cases = [
        replace(question(f"Q{n}"), run=f"r{run}", scores={} if score is None else {"mrr": score})
        for n, row in enumerate(rows)
        for run, score in enumerate(row)
    ]
    scored = [[float(score) for score in row if score is not None] for row in rows]
    assert GroupedCases(cases).totals("mrr") == Counter((round(fsum(row), 12), len(row)) for row in scored if row)
    assert GroupedCases(cases).totals("no such") == Counter()


@examples(50)
@given(st.lists(st.lists(st.none() | SHARES | st.booleans(), min_size=1, max_size=6), min_size=1, max_size=9))
def test_sums_of_a_run_are_those_of_its_scores(rows):
    cases = [
        replace(question(f"Q{n}"), run=f"r{run}", scores={} if score is None else {"mrr": score})
        for n, row in enumerate(rows)
        for run, score in enumerate(row)
    ]
    by_run = {}
    for case in cases:
        by_run.setdefault(case.run, []).extend(map(float, case.scores.values()))
    expected = [(len(scores), sum(scores), sum(score**2 for score in scores)) for scores in by_run.values() if scores]
    result = GroupedCases(cases).runs("mrr")
    assert sorted(result) == [pytest.approx(row) for row in sorted(expected)]


GRIDS = st.integers(2, 4).flatmap(
    lambda runs: st.lists(
        st.lists(st.tuples(SHARES, SHARES), min_size=runs, max_size=runs),
        min_size=2,
        max_size=5,
    )
)


@examples(150)
@given(GRIDS)
def test_the_variance_between_runs_is_that_of_a_table_of_questions_by_runs(grid):
    """The mean square of runs less half of the residual's, of which two runs subtract nothing, over all scores."""
    sides = (
        [question(f"Q{n}", run=f"r{r}", mrr=pair[side]) for n, row in enumerate(grid) for r, pair in enumerate(row)]
        for side in (0, 1)
    )
    before, after = sides
    steps = np.array([[new - old for old, new in row] for row in grid])
    rows, runs = steps.shape
    of_runs = rows * np.sum((steps.mean(axis=0) - steps.mean()) ** 2) / (runs - 1)
    residual = steps - steps.mean(axis=0) - steps.mean(axis=1, keepdims=True) + steps.mean()
    excess = of_runs - (0.5 if runs > 2 else 0.0) * np.sum(residual**2) / ((rows - 1) * (runs - 1))
    result = evidence(after, before).between_runs("mrr")
    if abs(excess) > 1e-9:
        assert (result is None) == (excess < 0)
        assert result is None or astuple(result) == (pytest.approx(excess / steps.size), runs)


KEPT = st.none() | st.sampled_from([0.0, 1.0, 1 / 3, 2 / 3]) | st.integers(-3, 10**6).map(float)


@examples(100)
@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[KEPT] * n), min_size=1, max_size=4)), st.data())
def test_totals_of_what_cases_share_are_those_of_each_alone(kinds, data):
    columns = {f"column {n}": n for n in range(len(kinds[0]))}
    sizes = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=4))
    received = iter(data.draw(st.lists(st.sampled_from(kinds), min_size=sum(sizes), max_size=sum(sizes))))
    names = [(f"Q{n}", f"r{run}") for n, size in enumerate(sizes) for run in range(size)]
    sharing = [replace(question(qid, run=run), scores=Scores(columns, next(received), ())) for qid, run in names]
    alone = [replace(case, scores=case.scores.as_dict()) for case in data.draw(st.permutations(sharing))]
    for column in columns:
        assert GroupedCases(sharing).totals(column) == GroupedCases(alone).totals(column)


# --- tries that differ ------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=15))
def test_the_interval_encloses_the_value_over_all_tries(rows):
    scores = [float(score) for row in rows for score in row]
    interval = interval_of_totals(Counter((float(sum(row)), len(row)) for row in rows))
    assert 0 <= interval.low <= sum(scores) / len(scores) + 1e-9
    assert sum(scores) / len(scores) - 1e-9 <= interval.high <= 1


@given(st.lists(st.lists(SHARES, min_size=1, max_size=6), min_size=2, max_size=15), st.randoms())
def test_neither_the_order_of_questions_nor_that_of_their_tries_matters(rows, chance):
    cases = [question(f"Q{n}", run=f"r{run}", mrr=score) for n, row in enumerate(rows) for run, score in enumerate(row)]
    mixed = chance.sample(cases, len(cases))
    assert evidence(cases).interval("mrr") == evidence(mixed).interval("mrr")
    before = [replace(case, scores={"mrr": 1 - case.scores["mrr"]}) for case in cases]
    gate = Gate("mrr", "max_drop", "0.02")
    assert judged(cases, before, gate) == judged(mixed, before[::-1], gate)


def tries(chance, n, limit, spread):
    """Questions that are hard or easy, each asked up to ``limit`` times; the harder, the more often."""
    hard = chance.beta(spread, spread, n)
    sizes = 1 + chance.binomial(limit - 1, 1 - hard)
    return hard, [chance.random(size) < p for size, p in zip(sizes, hard, strict=True)]


@pytest.mark.deep
@pytest.mark.parametrize("most", [1, 5, 20])
@pytest.mark.parametrize(("n", "spread"), [(15, 0.2), (60, 0.5)])
def test_the_interval_covers_the_true_value_where_tries_hang_together(n, spread, most):
    chance, trials = np.random.default_rng(n + most), 400
    many = tries(chance, 200_000, most, spread)[1]
    truth = sum(row.sum() for row in many) / sum(map(len, many))
    covered = independent = 0
    for _ in range(trials):
        rows = tries(chance, n, most, spread)[1]
        interval = interval_of_totals(Counter((float(sum(row)), len(row)) for row in rows))
        covered += interval.low <= truth <= interval.high
        hits, size = sum(row.sum() for row in rows), sum(map(len, rows))
        independent += abs(hits / size - truth) <= 1.96 * sqrt(max(hits * (size - hits), 1) / size**3)
    assert covered / trials >= 0.95 - 3 * sqrt(0.05 * 0.95 / trials)
    if most == 20:
        assert independent / trials < 0.85  # what it was to count tries


@pytest.mark.deep
@pytest.mark.parametrize("percent", [50, 90])
def test_the_interval_of_a_percentile_covers_where_tries_hang_together(percent):
    chance, trials, covered = np.random.default_rng(percent), 300, 0
    slow = chance.normal(0, 1, 200_000)
    truth = np.percentile(slow + chance.normal(0, 0.3, slow.size), percent)
    for _ in range(trials):
        rows = chance.normal(0, 1, (50, 1)) + chance.normal(0, 0.3, (50, 8))
        interval = interval_of_questions(of_scores(*(rows + 10).tolist()), f"p{percent}", (0.0, None))
        covered += interval.low <= truth + 10 <= (np.inf if interval.high is None else interval.high)
    assert covered / trials >= 0.95 - 3 * sqrt(0.05 * 0.95 / trials)


def units(before, after):
    rows = [tuple(sorted(Counter(zip(*row, strict=True)).items(), key=repr)) for row in zip(before, after, strict=True)]
    return Units(Counter(rows))


def mean_of(scores):
    return sum(scores) / len(scores)


@pytest.mark.deep
@pytest.mark.parametrize(
    "test",
    [
        lambda pairs: sign_flip(pairs, b"seed", 199),
        lambda pairs: sign_flip(above_percentile(pairs, 90), b"seed", 199),
        lambda pairs: permutation_p(pairs, mean_of, b"seed", 199),
    ],
)
def test_without_a_change_the_tests_err_as_often_as_alpha_says_where_tries_hang_together(test):
    """A question is answered otherwise by the next version, in all its tries: worse as often as better."""
    chance, trials, result = np.random.default_rng(9), 200, 0
    for _ in range(trials):
        common = chance.random((20, 1))
        sides = [np.round(np.clip(common + chance.normal(0, 0.3, (20, 1)) + chance.normal(0, 0.05, (20, 6)), 0, 1), 3)]
        sides += [np.round(np.clip(common + chance.normal(0, 0.3, (20, 1)) + chance.normal(0, 0.05, (20, 6)), 0, 1), 3)]
        result += test(units(*[side.tolist() for side in sides])) <= 0.05
    assert result / trials <= 0.05 + 3 * sqrt(0.05 * 0.95 / trials)


def test_a_change_in_most_questions_is_seen():
    chance = np.random.default_rng(4)
    before = chance.random((40, 5)) < 0.9
    after = before & (chance.random((40, 5)) < 0.7)
    old, new = (
        [
            question(f"Q{n}", run=f"r{run}", precision=int(hit))
            for n, row in enumerate(side)
            for run, hit in enumerate(row)
        ]
        for side in (before, after)
    )
    (result,) = judged(new, old, DROP)
    assert (result.outcome, result.n) == ("failed", 40)
    assert 0 < result.comparison.mde < 0.3


def test_the_effects_of_questions_are_their_mean_differences():
    chance = np.random.default_rng(3)
    before, after = chance.random((30, 4)).round(3), chance.random((30, 4)).round(3)
    result = effects(units(before.tolist(), after.tolist()))
    assert sorted(result.counts.elements()) == pytest.approx(sorted((before - after).mean(axis=1)), abs=1e-9)
    assert (result.low, result.high) == pytest.approx((-1, 1))


# --- clusters ---------------------------------------------------------------------------------------------------------


def test_questions_of_one_page_count_together():
    pages = [[f"meta.page={n // 5}"] for n in range(100)]
    before, after = questions("precision", [1] * 100, pages), questions("precision", [0] * 5 + [1] * 95, pages)
    (alone,), (together,) = judged(after, before, DROP), judged(after, before, DROP, cluster="meta.page")
    assert (alone.comparison.p, alone.comparison.n, alone.outcome) == (1 / 32, 100, "failed")
    assert (together.comparison.p, together.comparison.n, together.outcome) == (1 / 2, 20, "inconclusive")
    assert together.comparison.low < alone.comparison.low
    assert together.comparison.high > alone.comparison.high


def test_items_without_the_field_stand_for_themselves():
    before, after = questions("precision", [1] * 100), questions("precision", [0] * 5 + [1] * 95)
    assert judged(after, before, DROP) == judged(after, before, DROP, cluster="meta.page")


def test_days_on_which_the_whole_system_is_worse_widen_the_interval_of_several_runs():
    steady = [case for run in "abc" for case in questions("precision", [1] * 40 + [0] * 20, run=run)]
    days = zip("abc", (55, 40, 25), strict=True)
    moody = [case for run, n in days for case in questions("precision", [1] * n + [0] * (60 - n), run=run)]
    (low, high), (least, maximum) = (interval_of("precision", cases)[:2] for cases in (steady, moody))
    assert least < low < high < maximum


def test_days_on_which_the_whole_system_is_worse_are_no_regression():
    """The same 18 answers less, on one bad day or spread over three: a bad day may come again."""
    before = [case for run in "abc" for case in questions("precision", [1] * 40 + [0] * 20, run=run)]
    result = []
    for lost in ((6, 6, 6), (18, 0, 0)):
        after = [case for run, n in zip("abc", lost, strict=True)
                 for case in questions("precision", [0] * n + [1] * (40 - n) + [0] * 20, run=run)]  # fmt: skip
        result.append(judged(after, before, DROP)[0].comparison)
    steady, moody = result
    assert moody.regression == steady.regression
    assert moody.p > 0.05 > steady.p
    assert moody.low < 0 < moody.mde
    assert moody.mde > steady.mde
    wide, narrow = (judged(after, before, DROP, alpha=alpha)[0].comparison.mde for alpha in ("0.5", "0.0001"))
    assert 0 < wide < moody.mde
    assert narrow is None
