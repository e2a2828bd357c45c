"""Gates judge exactly, and what is shown never contradicts them."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import astuple

from depth import examples
from rag_eval.gates import REFERENCE_GATES, verdict
from rag_eval.rendering import gates_table
from seams import Completeness, Gate, Policy, RunEvidence, Value, judge, judge_all, mean, tally

NOTHING = Value(None, 0)


def rate(hits, n):
    return mean(tally([True] * hits + [False] * (n - hits)))


@pytest.mark.parametrize(
    ("outcome", "gate", "value"),
    [
        ("failed", Gate("precision", "min", "0.867"), rate(26, 30)),
        ("passed", Gate("precision", "min", "0.866"), rate(26, 30)),
        ("passed", Gate("precision", "min", "0.80"), rate(4, 5)),
        ("passed", Gate("precision", "min", ".8"), rate(4, 5)),
        ("passed", Gate("over_refusal", "max", "0.1"), rate(1, 10)),
        ("failed", Gate("over_refusal", "max", "0.1"), rate(11, 100)),
        ("failed", Gate("over_refusal", "max", "0"), rate(1, 1000)),
        ("passed", Gate("map", "min", "0.3"), mean(tally([0.1, 0.2, 0.6]))),
        ("failed", Gate("map", "min", "0.300000000001"), mean(tally([0.1, 0.2, 0.6]))),
        ("failed", Gate("mrr", "min", "0.33333333333333333334"), mean(tally([(1, 3)]))),
        ("passed", Gate("mrr", "min", "0.33333333333333333333"), mean(tally([(1, 3)]))),
        ("no_data", Gate("precision", "min", "0"), NOTHING),
    ],
)
def test_a_gate_compares_exactly(outcome, gate, value):
    assert judge(gate, value).outcome == outcome


@pytest.mark.parametrize(
    ("blocks", "gate", "value"),
    [
        (False, Gate("chr", "min", "0.5"), rate(1, 2)),
        (True, Gate("chr", "min", "0.6"), rate(1, 2)),
        (False, Gate("chr", "min", "0.6", severity="warning"), rate(1, 2)),
        (True, Gate("chr", "min", "0.6"), NOTHING),
        (False, Gate("chr", "min", "0.6", severity="warning"), NOTHING),
        (False, Gate("chr", "min", "0.6", when_no_data="skip"), NOTHING),
        (True, Gate("chr", "min", "0.6", when_no_data="skip"), rate(1, 2)),
    ],
)
def test_a_broken_gate_blocks_unless_it_only_warns(blocks, gate, value):
    judged = judge(gate, value)
    assert judged.blocks is blocks
    assert verdict([judge(Gate("precision", "min", "0"), rate(1, 1)), judged]) == ("failed" if blocks else "passed")


def test_a_warning_is_broken_though_it_does_not_block():
    judged = judge(Gate("chr", "min", "0.6", severity="warning"), rate(1, 2))
    assert (judged.broken, judged.blocks) == (True, False)


def test_a_judged_gate_knows_the_gate_that_it_came_from():
    gate = Gate("chr", "min", "0.6", "warning", "skip", 12)
    assert judge(gate, rate(1, 2)).gate == gate


def test_the_value_of_a_rate_is_kept_as_a_ratio():
    assert judge(Gate("chr", "min", "0.6"), rate(26, 30))[6:9] == (26 / 30, "13/15", 30)


def test_no_gates_give_no_failure():
    assert verdict([]) == "passed"


def test_the_defaults_are_those_of_the_reference_scorer():
    assert [astuple(gate)[:3] for gate in REFERENCE_GATES] == [
        ("precision", "min", "0.80"),
        ("chr", "min", "0.75"),
        ("under_refusal", "max", "0.05"),
        ("over_refusal", "max", "0.10"),
    ]


FOUND = Completeness(expected=10, scored=8, missing=2, duplicate=1, unknown=0, errored=3)


def completeness(**allowed):
    return judge_all(Policy(completeness=allowed), RunEvidence((), {}, FOUND, {}))


def test_completeness_is_gated_by_what_is_allowed():
    judged = completeness(missing=2, duplicate=0, unknown=0)
    assert [(item.name, item.outcome, item.value) for item in judged] == [
        ("completeness.missing", "passed", 2.0),
        ("completeness.duplicate", "failed", 1.0),
        ("completeness.unknown", "passed", 0.0),
    ]


def test_completeness_counts_are_shown_as_whole_numbers():
    assert [gates_table.format_value(item) for item in completeness(missing=0)] == ["2"]


@pytest.mark.parametrize(
    ("text", "gate", "value"),
    [
        ("0.7996", Gate("chr", "min", "0.80"), rate(1999, 2500)),
        ("0.800", Gate("chr", "min", "0.80"), rate(4, 5)),
        ("0.1004", Gate("over_refusal", "max", "0.10"), rate(251, 2500)),
        ("–", Gate("chr", "min", "0.80"), NOTHING),
    ],
)
def test_a_value_is_shown_with_as_many_decimals_as_the_outcome_asks(text, gate, value):
    assert gates_table.format_value(judge(gate, value)) == text


thresholds = st.one_of(
    st.decimals(0, 1, places=3),
    st.decimals(0, 1, places=15),
    st.fractions(0, 1, max_denominator=50).map(float).map(repr),
).map(lambda number: f"{Decimal(number):f}")
values = st.one_of(
    st.fractions(0, 1, max_denominator=10**4), st.fractions(0, 1), st.floats(0, 1).map(lambda number: round(number, 12))
)


@examples(300)
@given(st.sampled_from(["min", "max"]), thresholds, values)
@example("min", "0.33333333333333333333333333333333333333", Fraction(1, 3))
@example("max", "0.66666666666666666666666666666666666666", Fraction(2, 3))
@example("max", "0", 1e-12)
def test_a_shown_value_never_contradicts_its_verdict(direction, threshold, number):
    judged = judge(Gate("map", direction, threshold), Value(number, 1))
    seen = Fraction(gates_table.format_value(judged))
    assert judged.gate.keeps(seen) is (judged.outcome == "passed")
