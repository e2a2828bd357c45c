"""Pairs of scores that are counted say to the last bit what the same pairs say one by one."""

from collections import Counter
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from depth import examples
from rag_eval.gates import regression
from rag_eval.gates.questions import Scores, are_shared, distinct
from rag_eval.stats.paired import effects, mcnemar, sign_flip
from runs import question
from seams import Baseline, Completeness, Gate, RunEvidence, Statistics, folded

COMPLETE = Completeness(25, 25, 0, 0, 0, 0)
SHARES = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.7, 1.0])
OF_METRIC = {
    "precision": st.sampled_from([0.0, 1.0]),
    "mrr": SHARES,
    "latency_total_ms.p95": st.sampled_from([0.1, 12.5, 80.0, 81.0, 1e6 / 3]),
}


def rows_of(name):
    """Pairs of a metric, each side with a score at least once."""
    score = OF_METRIC[name] | st.none()
    usable = lambda pairs: all(any(item is not None for item in side) for side in zip(*pairs, strict=True))  # noqa: E731
    return st.lists(st.tuples(score, score), min_size=1, max_size=25).filter(usable)


def plainly_compared(name, pairs):
    """Both values and the number of cases with a score on either side."""
    both = [pair for pair in pairs if pair != (None, None)]
    sides = ([score for score in side if score is not None] for side in zip(*both, strict=True))
    return *(round(float(folded(name, Counter(side)).number), 12) for side in sides), len(both)


def plain_p(name, pairs):
    """The test over a list of pairs, drawn by all of them."""
    both = [pair for pair in pairs if pair != (None, None)]
    if name.startswith("latency"):
        whole = [pair for pair in both if None not in pair]
        scores = sorted(map(min, whole))
        limit = scores[-(-len(scores) * 95 // 100) - 1] if scores else 0
        both = [(float(b > limit), float(a > limit)) for a, b in whole]
        return mcnemar(both.count((1.0, 0.0)), both.count((0.0, 1.0)))
    if all(pair in ((0, 0), (0, 1), (1, 0), (1, 1)) for pair in both):
        return mcnemar(both.count((1.0, 0.0)), both.count((0.0, 1.0)))
    return sign_flip(both, regression._seed(Counter(both)))


def plain_effects(pairs):
    """What each pair adds to the difference of the two means, one pair after another."""
    sides = [[score for score in side if score is not None] for side in zip(*pairs, strict=True)]
    means = [fsum(side) / len(side) for side in sides]

    def effect(pair):
        terms = zip(pair, means, sides, (1, -1), strict=True)
        moved = sum(sign * (score - mean) / len(side) for score, mean, side, sign in terms if score is not None)
        return means[0] - means[1] + len(pairs) * moved

    return sorted(map(effect, pairs))


@pytest.mark.parametrize("name", OF_METRIC)
@given(st.data())
@examples(25)
def test_a_gate_on_worsening_is_judged_as_pair_by_pair(name, data):
    rows, column = data.draw(rows_of(name)), name.partition(".")[0]
    before, after = (
        [question(f"Q{n:02}", **({} if row[side] is None else {column: row[side]})) for n, row in enumerate(rows)]
        for side in (0, 1)
    )
    direction = "max_rise" if name.startswith("latency") else "max_drop"
    now = RunEvidence(after, {}, COMPLETE, {name: "c"}, Baseline(before, {name: "c"}))
    result = next(regression.judge_regressions([Gate(name, direction, "0")], now, Statistics())).comparison
    assert (result.baseline, result.value, result.n) == plainly_compared(name, rows)
    assert result.p == plain_p(name, rows)


@given(rows_of("mrr"))
def test_the_effects_of_counted_pairs_are_those_of_the_list(pairs):
    assert effects(Counter(pairs)) == effects(pairs)
    assert sorted(effects(pairs).counts.elements()) == pytest.approx(plain_effects(pairs), abs=1e-11)


@given(st.lists(st.tuples(st.none() | st.booleans(), st.sampled_from([None, 1.5, 2.5])), max_size=20))
def test_cases_are_told_apart_by_what_they_do_not_share(found):
    shared = {score: (score,) for score, *_ in found}
    layout = {"chr": 0, "latency_total_ms": 1}
    cases = [
        replace(question(f"Q{n}"), scores=Scores(layout, shared[score], (ours,)))
        for n, (score, ours) in enumerate(found)
    ]
    assert (are_shared(cases, "chr"), are_shared(cases, "other")) == (bool(cases), bool(cases))
    assert not are_shared(cases, "latency_total_ms")
    for column in ("chr", "latency_total_ms", "other"):
        known, positions = distinct(cases, are_shared(cases, column))
        assert [known[index].get(column) for index in positions] == [case.scores.get(column) for case in cases]
    assert not are_shared([question("Q1", chr=0.0)], "chr")
