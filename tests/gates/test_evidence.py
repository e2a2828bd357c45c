"""What gates are judged by: columns of scores, their folds, and the pairs of two runs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace
from statsmodels.stats.proportion import proportion_confint

from rag_eval.gates.evidence import pair_cases
from runs import evidence, question, questions
from seams import Question, enclosed, folded, measure

BITS = st.lists(st.booleans(), min_size=1, max_size=60)
SHARES = st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=1, max_size=60)


@given(BITS)
def test_a_rate_is_folded_exactly_and_enclosed_as_statsmodels_has_it(bits):
    result = evidence(questions("precision", bits))
    assert result.value("precision").number == Fraction(sum(bits), len(bits))
    low, high = proportion_confint(sum(bits), len(bits), 0.05, "beta")
    ours = result.interval("precision")
    assert ours[:2] == pytest.approx((low, high), abs=1e-9)


@given(SHARES)
def test_a_mean_lies_in_its_interval(scores):
    result = evidence(questions("map", scores))
    value, ours = result.value("map").number, result.interval("map")
    assert value == pytest.approx(sum(scores) / len(scores), abs=1e-12)
    assert 0 <= ours.low <= value <= ours.high <= 1


@given(BITS, st.sampled_from(["0.80", "0.95", "0.99"]))
def test_more_confidence_is_a_wider_interval(bits, confidence):
    counts = Counter(map(float, bits))
    usual, ours = enclosed("chr", counts, "0.5"), enclosed("chr", counts, confidence)
    assert ours.low <= usual.low <= usual.high <= ours.high


def test_nothing_has_no_value_and_no_interval():
    result = evidence([question("Q1", mrr=1)])
    for part in ("", "category=a"):
        assert result.value("precision", part)[:2] == (None, 0)
        assert result.interval("precision", part) is None
    assert (folded("chr", Counter()).number, enclosed("chr", Counter())) == (None, None)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.booleans()), min_size=1))
def test_the_value_over_a_slice_is_that_of_its_cases_alone(rows):
    after = [question(f"Q{i}", slices=[f"tags={part}"], chr=right) for i, (part, right) in enumerate(rows)]
    for part in "ab":
        alone = [case for case in after if f"tags={part}" in case.slices]
        result = evidence(after)
        assert result.size(f"tags={part}") == len(alone)
        assert result.value("chr", f"tags={part}") == evidence(alone).value("chr")
        assert result.interval("chr", f"tags={part}") == evidence(alone).interval("chr")


def test_slices_of_either_run_are_present():
    result = evidence([question("Q1", slices=["tags=a"])], [question("Q2", slices=["tags=b"])])
    assert result.present() == {"tags=a", "tags=b"}


def test_rates_are_known_from_means():
    assert [measure(name).is_rate for name in ("precision", "recall_all@5", "recall@5", "mrr")] == [
        True,
        True,
        False,
        False,
    ]


# --- pairs ------------------------------------------------------------------------------------------------------------


def pairs(before, after):
    return [(old.qid, old.run, new.run) for old, new in pair_cases(before, after)]


def test_cases_pair_under_the_same_gold_bytes_alone():
    before = [question("Q1", gold="one", chr=1), question("Q2", gold="two", chr=1), question("Q3", gold="three", chr=1)]
    after = [
        question("Q1", gold="one", chr=0),
        question("Q2", gold="other", chr=0),
        question("Q4", gold="three", chr=0),
    ]
    assert pairs(before, after) == [("Q1", None, None)]
    assert evidence(after, before).pairs("chr") == {(1.0, 0.0): 1}


def test_a_case_without_a_score_on_either_side_is_no_pair():
    before, after = [question("Q1"), question("Q2", chr=1)], [question("Q1"), question("Q2")]
    assert evidence(after, before).pairs("chr") == {(1.0, None): 1}


@pytest.mark.parametrize(("old", "new"), [("nightly", "pr-7"), (None, "pr-7"), ("nightly", None)])
def test_one_run_pairs_with_one_run_whatever_they_are_called(old, new):
    before = [question(qid, run=old) for qid in ("Q1", "Q2")]
    after = [question(qid, run=new) for qid in ("Q1", "Q2")]
    assert pairs(before, after) == [("Q1", old, new), ("Q2", old, new)]


def test_of_several_runs_each_pairs_with_its_namesake():
    before = [question("Q1", run="a"), question("Q1", run="b")]
    after = [question("Q1", run="b"), question("Q1", run="c")]
    assert pairs(before, after) == [("Q1", "b", "b")]
    assert pairs(before, after[:1]) == [("Q1", "b", "b")]


def test_pairs_of_a_slice_are_those_that_are_in_it_now():
    before = [question("Q1", slices=["tags=a"], chr=1), question("Q2", chr=1)]
    after = [question("Q1", chr=0), question("Q2", slices=["tags=a"], chr=0)]
    assert evidence(after, before).pairs("chr", "tags=a") == {(1.0, 0.0): 1}
    assert evidence(after, before).pairs("chr").total() == 2


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("gh")), unique_by=lambda r: r[:2])
)
def test_the_order_of_cases_does_not_matter(rows):
    cases = [question(qid, run=run, gold=gold) for qid, run, gold in rows]
    before, after = cases[::2], [*cases[1::2], *cases[::4]]
    there, back = pairs(before, after), pairs(before[::-1], after[::-1])
    assert Counter(there) == Counter(back)


NAMES = ["precision", "over_refusal", "under_refusal", "mrr"]


def read_back(cases):
    """The same cases as they are read of a report.json."""
    rows = [{**asdict(case), "scores": dict(case.scores)} for case in cases]
    return msgspec.convert(rows, list[Question])


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.0, 1.0])), min_size=1, max_size=8), st.data()
)
def test_scores_count_under_their_own_names_in_whatever_order_a_report_has_them(rows, data):
    order = [data.draw(st.permutations(list(row))) for row in rows]
    cases = [
        replace(question(f"Q{at}"), scores={name: row[name] for name in names})
        for at, (row, names) in enumerate(zip(rows, order, strict=True))
    ]
    plain, read = evidence(cases, cases), evidence(read_back(cases), read_back(cases))
    for name in NAMES:
        assert read.pairs(name) == plain.pairs(name)
        assert read.interval(name) == plain.interval(name)


def test_only_the_same_contract_is_comparable():
    after, before = questions("chr", [1]), questions("chr", [0])
    assert evidence(after, before).comparable("chr")
    assert not evidence(after, before, {"chr": "other"}).comparable("chr")
    assert not evidence(after, before, {}).comparable("chr")
    assert not evidence(after).comparable("chr")
    assert not evidence(after, before).comparable("mrr")
