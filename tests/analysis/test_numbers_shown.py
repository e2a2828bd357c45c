"""The numbers shown never say another thing than the outcome beside them."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_eval.analysis.judging import judge_bound
from rag_eval.gates import Comparison, GateResult
from rag_eval.gates.regression import by_comparison
from rag_eval.rendering import document, gates_table
from seams import Gate, MetricResult, Value, judge

NUMBER = re.compile(r"[+−]?[0-9]+(?:\.[0-9]+)?")


def numbers(text):
    return [Fraction(number.replace("−", "-")) for number in NUMBER.findall(text)]


class Held:
    """Evidence of one value and one interval, whatever is asked for."""

    def __init__(self, value, low, high):
        self._value, self._ends = value, (low, high)

    def value(self, name, part):
        return self._value

    def interval(self, name, part, confidence):
        from rag_eval.stats.intervals import Interval

        return Interval(*self._ends, small=False)


thresholds = st.decimals(0, 1, places=4).map(str)
shares = st.integers(1, 5000).flatmap(lambda n: st.integers(0, n).map(lambda hits: (Fraction(hits, n), n)))


@st.composite
def bounds(draw):
    """A floor or ceiling with its outcome, its threshold close to the value or to an end of the interval."""
    number, n = draw(shares)
    below, above = (draw(st.floats(0, 1)) for _ in range(2))
    low = round(min(below, float(number) * 0.999), 12)  # no interval is a point
    high = round(max(above, float(number) * 1.001, 1e-6), 12)
    start, step = draw(st.sampled_from([float(number), low, high])), draw(st.integers(-2, 2))
    text = f"{max(round(Decimal(repr(start)), draw(st.integers(1, 6))) + Decimal(step) / 10_000, Decimal(0)):f}"
    gate = Gate("precision", draw(st.sampled_from(["min", "max"])), text)
    gate = replace(gate, confidence=draw(st.sampled_from(["", "0.95"])))
    ends = [draw(st.sampled_from([end, end, end, None])) for end in (low, high)]
    return judge_bound(gate, Held(Value(number, n), *ends))


def exactly_bound(number, threshold, direction="min"):
    return judge(Gate("precision", direction, threshold), Value(Fraction(number), 10_000))


@given(bounds())
@example(exactly_bound("0.7996", "0.80"))
@example(exactly_bound("0.79999999", "0.80"))
@example(exactly_bound("0.05004", "0.05", "max"))
def test_a_value_shown_is_on_the_side_of_the_threshold_that_it_is_on(gate):
    shown = numbers(gates_table.format_value(gate))[0]
    assert gate.gate.keeps(shown) == gate.gate.keeps(Fraction(gate.exact))
    if not gate.confidence:
        assert gate.gate.keeps(shown) == (gate.outcome == "passed")


@given(bounds())
def test_an_interval_shown_encloses_the_value_and_says_what_the_outcome_says(gate):
    ends = numbers(gates_table.format_estimate(gate).partition(" (")[2])
    known = [end for end in (gate.low, gate.high) if end is not None]
    assert len(ends) == len(known)
    number = Fraction(gate.exact)
    if gate.low is not None:
        assert ends[0] <= number
    if gate.high is not None:
        assert ends[-1] >= number
    if gate.confidence:
        remaining = {gate.gate.keeps(end) for end in ends}
        remaining |= {gate.direction == "max"} if gate.low is None else set()  # an open end is beyond every number
        remaining |= {gate.direction == "min"} if gate.high is None else set()
        assert gate.outcome == {(True,): "passed", (False,): "failed"}.get(tuple(remaining), "inconclusive")


regressions = st.floats(-1, 1).map(lambda number: round(number, 12))


@given(regressions, st.one_of(thresholds, st.just("0")), st.sampled_from(["max_drop", "max_rise"]), st.booleans())
@example(0.0200000001, "0.02", "max_drop", False)
@example(1e-12, "0", "max_drop", False)
@example(-1e-12, "0", "max_rise", False)
def test_a_movement_shown_is_within_the_margin_exactly_where_the_gate_is(worse, threshold, direction, tested):
    gate = Gate("precision", direction, threshold)
    result = (
        Comparison(0.5, 0.5, worse, 10, p=0.01, adjusted=0.01, alpha=0.05)
        if tested
        else Comparison(0.5, 0.5, worse, 10)
    )
    outcome = by_comparison(gate, result)
    judged = GateResult("precision", direction, threshold, "error", "fail", outcome, 0.5, None, 10, comparison=result)
    moved = numbers(gates_table.format_change(judged))[0]
    shown = -moved if direction == "max_drop" else moved
    assert gate.keeps(shown) == (outcome == "passed")
    assert (shown > 0) == (worse > 0)
    assert (shown < 0) == (worse < 0)


@given(st.floats(0, 1), st.sampled_from(["0.05", "0.01", "0.001", "0.2"]))
@example(0.0500000001, "0.05")
@example(0.05, "0.05")
def test_a_probability_shown_is_on_its_side_of_alpha(p, alpha):
    shown = document.format_probability(p, alpha)
    if shown.startswith("<"):
        assert p < float(shown[1:]) <= float(alpha)
    else:
        assert (Fraction(shown) <= Fraction(alpha)) == (Fraction(repr(p)) <= Fraction(alpha))


@given(st.floats(1e-6, 1))
def test_what_would_be_seen_is_rounded_up(size):
    shown = Decimal(document.format_minimum(size))
    assert Decimal(repr(size)) <= shown <= Decimal(repr(size)) * Decimal("1.1")


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.6925, 0.9624, " (0.69–0.96)"),
        (None, 0.9, " (≤ 0.90)"),
        (0.7, None, " (≥ 0.70)"),
        (None, None, ""),
        (0.8501, 0.8702, " (0.850–0.870)"),
        (0.86664, 0.86672, " (0.8666–0.867)"),
    ],
)
def test_an_interval_is_as_short_as_it_can_be(low, high, shown):
    assert document.format_interval(low, high, Fraction(13, 15)) == shown


def test_an_interval_of_an_amount_has_the_decimals_of_the_amount():
    assert document.format_interval(1.49, 1.52, Fraction(3, 2)) == " (1.49–1.52)"
    assert document.format_interval(14.9, 15.2, Fraction(15)) == " (14.9–15.2)"


def test_a_value_without_cases_has_no_interval():
    empty = MetricResult(None, 0, None, None, "higher", "answers")
    assert (document.format_number(empty.value), document.format_metric_interval(empty)) == ("–", "")


def test_a_value_of_a_small_sample_is_marked():
    few = MetricResult(0.5, 2, "1/2", 1, "higher", "answers", low=0.1, high=None, small=True)
    assert document.format_metric_interval(few) == " (≥ 0.10)†"


def test_a_threshold_that_the_cases_cannot_express_is_named_in_cases():
    gate = judge(Gate("precision", "min", "0.867"), Value(Fraction(26, 30), 30))._replace(asks=27)
    assert gates_table.format_threshold(gate) == "≥ 0.867 (means 27 of 30)"
    assert gates_table.format_bound(gate) == "≥ 0.867"


# Amounts: milliseconds and dollars, from fractions of a cent to hours


@st.composite
def amounts(draw):
    """A ceiling on an amount with its outcome, its threshold close to the value or to an end of the interval."""
    name = draw(st.sampled_from(["latency_total_ms.p95", "cost_usd", "cost_usd.total", "latency_total_ms.mean"]))
    number = round(draw(st.floats(0, 1e7) | st.floats(0, 0.01) | st.integers(0, 5000).map(float)), 12)
    # Values and ends come rounded to twelve decimals.
    low = round(number * draw(st.floats(0, 0.999)), 12)
    high = round(number * draw(st.floats(1.001, 9)) + 1e-9, 12)
    start = draw(st.sampled_from([number, low, high]))
    text = (
        f"{max(round(Decimal(repr(start)), draw(st.integers(0, 6))) + Decimal(draw(st.integers(-2, 2))) / 10**4, 0):f}"
    )
    gate = Gate(name, "max", text, confidence=draw(st.sampled_from(["", "0.95"])))
    return judge_bound(gate, Held(Value(number, 40), *(draw(st.sampled_from([end, end, None])) for end in (low, high))))


@given(amounts())
def test_an_amount_shown_is_on_the_side_of_the_threshold_that_it_is_on_and_has_its_unit(gate):
    text = gates_table.format_value(gate)
    assert text.endswith(" ms" if gate.name.startswith("latency") else " USD")
    [shown] = numbers(text)
    assert gate.gate.keeps(shown) == gate.gate.keeps(Fraction(repr(gate.value)))


@given(amounts())
def test_the_interval_of_an_amount_shown_encloses_it_and_says_what_the_outcome_says(gate):
    _, *ends = numbers(gates_table.format_estimate(gate))
    true = [end for end in (gate.low, gate.high) if end is not None]
    assert len(ends) == len(true)
    for shown, end in zip(ends, true, strict=True):
        assert (shown <= Fraction(repr(gate.value))) == (end <= gate.value)
        assert not gate.confidence or gate.gate.keeps(shown) == gate.gate.keeps(Fraction(repr(end)))


@given(st.floats(-1e6, 1e6).filter(bool) | st.floats(-0.01, 0.01).filter(bool), st.sampled_from(["0", "0.0005", "50"]))
def test_a_rise_of_an_amount_shown_is_within_the_margin_exactly_where_the_gate_is(worse, threshold):
    worse = round(worse, 12)
    if not worse:
        return
    comparison = Comparison(1e6, 1e6 + worse, worse, 40)
    gate = Gate("cost_usd.total", "max_rise", threshold)
    judged = GateResult(
        gate.name, "max_rise", threshold, "error", "fail", by_comparison(gate, comparison), 1.0, None, 40
    )
    [shown] = numbers(gates_table.format_change(judged._replace(comparison=comparison)))
    assert gate.keeps(shown) == gate.keeps(worse)
    assert (shown > 0) == (worse > 0)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("latency_total_ms.p95", 812.0, "812 ms"),
        ("latency_total_ms.p50", 81.25, "81.2 ms"),
        ("latency_total_ms.p50", 10.25, "10.2 ms"),
        ("latency_total_ms.p50", 100.5, "100 ms"),
        ("latency_retrieve_ms.mean", 0.25, "0.250 ms"),
        ("cost_usd", 0.00312, "0.00312 USD"),
        ("cost_usd.total", 12.5, "12.5 USD"),
        ("error_rate", 0.25, "0.250"),
    ],
)
def test_an_amount_has_its_unit_and_as_many_decimals_as_it_takes(name, value, shown):
    assert document.format_number(value, name) == shown


def test_the_open_interval_of_an_amount_has_the_decimals_of_the_amount():
    gate = judge_bound(Gate("latency_total_ms.p95", "max", "2000"), Held(Value(1010.0, 14), 810.0, None))
    assert gates_table.format_estimate(gate).startswith("1010 ms (≥ 810)")


@pytest.mark.parametrize(
    ("change", "name", "shown"),
    [
        (-1 / 30, "precision", "−0.033"),
        (0.25, "precision", "+0.250"),
        (-0.0002, "precision", "−0.0002"),
        (0.0, "precision", "0.000"),
        (-0.0, "precision", "0.000"),
        (0.0, "latency_total_ms.p50", "0 ms"),
        (-0.0, "cost_usd", "0 USD"),
        (-780.4, "latency_total_ms.p50", "−780 ms"),
        (0.00312, "cost_usd", "+0.00312 USD"),
    ],
)
def test_a_change_has_a_sign_and_is_zero_only_if_nothing_changed(change, name, shown):
    assert document.format_signed(change, name) == shown


@pytest.mark.parametrize(
    ("name", "low", "high", "shown"),
    [
        ("cost_usd", -0.0005, 0.0123, "−0.000500 to 0.0123"),
        ("latency_total_ms.p50", -0.5, 120.4, "−0.500 to 120"),
        ("first_evidence_hop", -0.25, 2.25, "−0.250 to 2.25"),
        ("precision", -0.01, None, "≥ −0.010"),
    ],
)
def test_the_ends_of_a_regression_have_the_decimals_of_their_size(name, low, high, shown):
    comparison = Comparison(1.0, 2.0, 1.0, 40, low=low, high=high)
    gate = GateResult(name, "max_rise", "50", "error", "fail", "passed", 1.0, None, 40)
    assert gates_table.format_regression_interval(gate._replace(comparison=comparison)) == shown
