"""Every outcome of every kind of gate, and that a report judges itself again the same."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_eval.analysis.judging import judge_bound, rejudge_gate
from rag_eval.gates import merge_gates, verdict
from runs import evidence, question, questions
from seams import Completeness, Gate, Policy, RunEvidence, Slices, Statistics, judge_all


def bits(hits, n):
    return questions("precision", [i < hits for i in range(n)])


def outcome(gate, after):
    return judge_bound(gate, evidence(after)).outcome


# --- bounds, and bounds with a confidence -----------------------------------------------------------------------------

FLOOR = Gate("precision", "min", "0.80", confidence="0.95")


@pytest.mark.parametrize(
    ("expected", "hits", "n"),
    [
        ("passed", 95, 100),  # 0.887 to 0.984
        ("inconclusive", 85, 100),  # 0.765 to 0.914
        ("inconclusive", 75, 100),  # 0.653 to 0.831
        ("failed", 60, 100),  # 0.497 to 0.697
        ("inconclusive", 10, 10),  # 0.692 to 1
        ("no_data", 0, 0),
    ],
)
def test_a_floor_with_a_confidence_asks_all_of_the_interval(expected, hits, n):
    result = judge_bound(FLOOR, evidence(bits(hits, n)))
    assert result.outcome == expected
    assert (result.low is None) == (n == 0)


@pytest.mark.parametrize(("expected", "hits"), [("passed", 0), ("inconclusive", 3), ("failed", 20)])
def test_a_ceiling_with_a_confidence_does_so_too(expected, hits):
    after = questions("under_refusal", [i < hits for i in range(100)])
    assert outcome(Gate("under_refusal", "max", "0.05", confidence="0.95"), after) == expected


def latencies(n, milliseconds):
    cases = [replace(question(f"Q{i}"), scores={"latency_total_ms": milliseconds}) for i in range(n)]
    return RunEvidence(cases, {}, Completeness(n, n, 0, 0, 0, 0), {})


@pytest.mark.parametrize("n", [3, 60])
@pytest.mark.parametrize(
    ("direction", "threshold", "expected"),
    [("max", "99", "failed"), ("max", "100", "inconclusive"), ("min", "100", "passed"), ("min", "101", "inconclusive")],
)
def test_an_open_end_is_beyond_every_number(n, direction, threshold, expected):
    """So few latencies of 100 ms leave the upper end of their 95th percentile open."""
    result = judge_bound(Gate("latency_total_ms.p95", direction, threshold, confidence="0.95"), latencies(n, 100.0))
    assert (result.low, result.high, result.outcome) == (100.0, None, expected)
    base = result._replace(origin="base")
    assert rejudge_gate(base, latencies(n, 100.0)) == base


@pytest.mark.parametrize(("threshold", "expected"), [("100", "passed"), ("99", "failed")])
def test_a_value_without_an_interval_is_judged_by_itself_and_again_the_same(threshold, expected):
    result = judge_bound(Gate("latency_total_ms.max", "max", threshold, confidence="0.95"), latencies(9, 100.0))
    assert (result.low, result.high, result.outcome) == (None, None, expected)
    base = result._replace(origin="base")
    assert rejudge_gate(base, latencies(9, 100.0)) == base


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from(["0.5", "0.80", "0.9"]))
def test_an_interval_never_contradicts_the_value(hits, n, threshold):
    after, gate = bits(min(hits, n), n), Gate("precision", "min", threshold)
    plain, sure = outcome(gate, after), outcome(replace(gate, confidence="0.95"), after)
    assert sure in (plain, "inconclusive")


@given(st.integers(1, 30), st.integers(1, 30), st.integers(2, 6), st.sampled_from(["0.5", "0.80", "0.95"]))
def test_more_cases_of_the_same_rate_never_turn_what_is_settled(hits, n, times, threshold):
    gate, hits = Gate("precision", "min", threshold, confidence="0.95"), min(hits, n)
    few, many = outcome(gate, bits(hits, n)), outcome(gate, bits(hits * times, n * times))
    assert few in (many, "inconclusive")


@given(st.integers(1, 400), st.booleans())
def test_cases_that_are_all_alike_give_a_rate_no_certainty(n, all_right):
    result = judge_bound(FLOOR, evidence(bits(n if all_right else 0, n)))
    assert result.high - result.low > 0


@given(st.integers(0, 30), st.sampled_from(["0.5", "0.9"]))
def test_what_is_settled_at_a_high_confidence_is_settled_at_a_low_one(hits, threshold):
    after, gate = bits(hits, 30), Gate("precision", "min", threshold)
    sure, easy = (outcome(replace(gate, confidence=level), after) for level in ("0.99", "0.80"))
    assert sure in (easy, "inconclusive")


def test_without_a_confidence_the_value_decides_and_the_usual_interval_is_shown():
    result = judge_bound(Gate("precision", "min", "0.80"), evidence(bits(8, 10)))
    assert (result.outcome, result.low < 0.5, result.high > 0.97) == ("passed", True, True)


# --- what a threshold asks of n cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asks", "gate", "n"),
    [
        (27, Gate("precision", "min", "0.867"), 30),
        (None, Gate("precision", "min", "0.9"), 30),
        (1, Gate("precision", "max", "0.05"), 30),
        (None, Gate("precision", "max", "0.1"), 30),
    ],
)
def test_a_threshold_that_n_cannot_express_is_said_in_cases(asks, gate, n):
    assert judge_bound(gate, evidence(bits(27, n))).asks == asks


@given(st.integers(1, 60), st.integers(1, 999), st.integers(0, 60))
def test_it_takes_as_many_cases_as_are_asked_and_not_one_less(n, thousandths, hits):
    gate, hits = Gate("precision", "min", f"{thousandths / 1000:.3f}"), min(hits, n)
    result = judge_bound(gate, evidence(bits(hits, n)))
    least = result.asks if result.asks is not None else Fraction(thousandths, 1000) * n
    assert (result.outcome == "passed") == (hits >= least)


def test_means_are_not_counted_in_cases():
    assert judge_bound(Gate("map", "min", "0.867"), evidence(questions("map", [0.5] * 30))).asks is None


# --- a policy as a whole ----------------------------------------------------------------------------------------------

GATES = (
    Gate("precision", "min", "0.5"),
    Gate("precision", "max_drop", "0.02"),
    Gate("mrr", "max_drop", "0.02"),
    Gate("precision", "min", "0.5", slice="tags=*", confidence="0.9"),
    Gate("under_refusal", "max_rise", "0.1", when_no_data="skip"),
)


def case(qid, drawn):
    part, right, rank = drawn
    return question(qid, slices=[f"tags={part}"], precision=right, mrr=rank)


drawn = st.tuples(st.sampled_from("ab"), st.none() | st.booleans(), st.none() | st.sampled_from([0.0, 0.5, 1.0]))
runs = st.lists(drawn, max_size=40).map(lambda rows: [case(f"Q{i}", row) for i, row in enumerate(rows)])
policies = st.builds(
    lambda gates, least, alpha, means, test: Policy(
        gates=tuple(gates), slices=Slices(("tags",), least), statistics=Statistics(alpha, "holm", means, test)
    ),
    st.lists(st.sampled_from(GATES), unique=True),
    st.sampled_from([1, 10]),
    st.sampled_from(["0.05", "0.5"]),
    st.sampled_from(["warn", "fail", "pass"]),
    st.sampled_from(["paired", "none"]),
)


@given(policies, runs, st.none() | runs, st.integers(0, 1))
def test_a_policy_is_judged_in_its_order_and_completeness_last(policy, after, before, missing):
    result = judge_all(policy, evidence(after, before, missing=missing))
    names = list(dict.fromkeys((item.name, item.direction, item.slice.partition("=")[0]) for item in result))
    asked = list(dict.fromkeys((gate.name, gate.direction, gate.slice.partition("=")[0]) for gate in policy.gates))
    assert names == [*asked, *((f"completeness.{name}", "max", "") for name in ("missing", "duplicate", "unknown"))]
    assert (verdict(result) == "failed") == any(item.blocks for item in result)


@given(policies, runs, st.none() | runs)
def test_judged_again_everything_comes_out_the_same(policy, after, before):
    now = evidence(after, before)
    result = judge_all(policy, now)
    assert [rejudge_gate(item, evidence(after)) for item in result] == result
    both = merge_gates(result, judge_all(replace(policy, gates=GATES[:1]), now))
    assert [rejudge_gate(item, evidence(after)) for item in both] == both


@given(policies, runs, runs)
def test_outcomes_that_were_edited_are_not_believed(policy, after, before):
    result = judge_all(policy, evidence(after, before))
    edited = [item._replace(outcome="passed") for item in result]
    assert [rejudge_gate(item, evidence(after)).outcome for item in edited] == [item.outcome for item in result]


@given(runs, runs)
def test_the_gates_of_the_base_keep_the_level_of_the_base(after, before):
    """The change turns alpha down: what the base's level says of the base's gates is not forgotten."""
    now = evidence(after, before)
    strict, lax = (judge_all(Policy(gates=GATES, statistics=Statistics(alpha)), now) for alpha in ("0.5", "0.0001"))
    both = merge_gates(strict, lax)
    assert [rejudge_gate(item, evidence(after)).outcome for item in both] == [item.outcome for item in both]


@given(policies, runs, runs)
def test_the_order_of_cases_does_not_matter(policy, after, before):
    assert judge_all(policy, evidence(after, before)) == judge_all(policy, evidence(after[::-1], before[::-1]))
