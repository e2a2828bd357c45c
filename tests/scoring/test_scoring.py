"""Traces become cases, whatever order they come in, and what is missing is counted and scored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import gold_row, in_full, trace_row
from depth import examples
from rag_eval.scoring import case_scorer
from seams import Completeness, Gold, Settings, Trace, UsageError, mean, measure, measures, metric_scorer
from seams import score_rows as score
from strategies import gold_fields, trace_fields

GOLDS = {
    qid: Gold.from_row(gold_row(qid=qid, gold_claim_substr=["30 days"]), line)
    for line, qid in enumerate(("Q2", "Q1", "Q3"), 1)
}
PRECISION = [measure("precision")]


def trace(qid, line, claim="30 days", **fields):
    return Trace.from_row(trace_row(answer_json={"claim": claim}, **fields), qid, line)


def card(*traces, wanted=PRECISION):
    scorer = metric_scorer(GOLDS, wanted, Settings())
    scorer.add_traces(traces)
    return scorer.close()


ALL = [trace("Q1", 1), trace("Q2", 2), trace("Q3", 3)]


def test_cases_stand_in_the_order_of_their_qids():
    assert [gold.qid for gold, *_ in card(*ALL).cases] == ["Q1", "Q2", "Q3"]


def test_a_complete_run_is_counted_as_such():
    assert card(*ALL).completeness == Completeness(3, 3, 0, 0, 0, 0)


def test_the_last_trace_of_a_qid_wins():
    _, _, outcome, line = next(iter(card(*ALL, trace("Q1", 4, "a week")).cases))
    assert (outcome.label, line) == ("WRONG_CLAIM", 4)


def test_superseded_traces_are_counted():
    assert card(*ALL, trace("Q1", 4), trace("Q1", 5)).completeness.duplicate == 2


def test_a_trace_without_a_gold_item_is_counted_and_not_scored():
    found = card(*ALL, trace("Q9", 4), trace("Q9", 5))
    assert (found.completeness.unknown, len(found.cases)) == (2, 3)


def test_a_missing_trace_is_scored_as_an_empty_answer():
    found = card(*ALL[:2])
    gold, run, outcome, _ = list(found.cases)[2]
    assert (gold.qid, run, outcome.scores, outcome.label) == ("Q3", None, (False,), "MISSING")
    assert found.completeness == Completeness(3, 2, 1, 0, 0, 0)


def test_an_error_without_an_answer_is_counted_and_scored_as_wrong():
    failed = Trace.from_row(trace_row(error="down"), "Q3", 3)
    found = card(*ALL[:2], failed)
    outcome = list(found.cases)[2][2]
    assert (outcome.scores, outcome.label) == ((False,), "ERROR")
    assert found.completeness == Completeness(3, 3, 0, 0, 0, 1)


def test_no_traces_at_all_leave_every_item_missing():
    assert card().completeness == Completeness(3, 0, 3, 0, 0, 0)


def test_each_run_of_a_file_is_scored_against_the_whole_gold_set():
    found = card(trace("Q1", 1, run="new"), trace("Q1", 2, run="old"), trace("Q2", 3, run="old"))
    assert [(gold.qid, run, outcome.label) for gold, run, outcome, _ in found.cases] == [
        ("Q1", "new", "OK"),
        ("Q1", "old", "OK"),
        ("Q2", "new", "MISSING"),
        ("Q2", "old", "OK"),
        ("Q3", "new", "MISSING"),
        ("Q3", "old", "MISSING"),
    ]
    assert found.completeness == Completeness(6, 3, 3, 0, 0, 0)


def test_the_same_qid_in_two_runs_is_no_duplicate():
    assert card(trace("Q1", 1, run="new"), trace("Q1", 2, run="old")).completeness.duplicate == 0


def test_a_value_is_the_mean_over_the_cases_where_the_metric_applies():
    found = card(trace("Q1", 1), trace("Q2", 2, "a week"), trace("Q3", 3, "not in context"))
    assert mean(found.tallies()["precision"])[1:] == (2, 1)


def test_a_scorecard_without_cases_has_no_values():
    empty = metric_scorer({}, PRECISION, Settings()).close()
    assert mean(empty.tallies()["precision"]) == (None, 0, None)


def test_each_measure_has_its_score_in_its_place():
    wanted = measures((1, 3))
    columns = {one.column for one in wanted if one.metric.level == "case"}  # values of one metric share its scores
    assert [len(one.scores + one.case_scores) for _, _, one, _ in card(*ALL, wanted=wanted).cases] == [len(columns)] * 3


@examples(60)
@given(
    st.lists(gold_fields(), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["Q0", "Q1", "unknown"]), st.sampled_from(["", "one"]), trace_fields), max_size=9
    ),
    st.integers(1, 4),
)
def test_traces_together_come_to_what_they_come_to_one_by_one(items, found, often):
    golds = {f"Q{place}": Gold.from_row(gold_row(qid=f"Q{place}", **item), 1) for place, item in enumerate(items)}
    traces = [Trace.from_row(trace_row(run=run, **row), qid, at) for at, (qid, run, row) in enumerate(found, 1)]
    scorers = [metric_scorer(golds, measures((1, 3)), Settings()) for _ in range(2)]
    scorers[0].add_traces(traces)
    for number, one in enumerate(traces):
        scorers[1].add_traces([one])
        if number % often == 0:
            scorers[1].settle()
    assert in_full(scorers[0].close()) == in_full(scorers[1].close())


def test_pairs_at_hand_are_scored_as_a_file_is():
    pairs = [(GOLDS[one.qid], one) for one in ALL[:2]] + [(GOLDS["Q3"], Trace.missing("Q3"))]
    assert in_full(score(pairs, PRECISION, Settings())) == in_full(card(*ALL[:2]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("presicion", "Did you mean 'precision'?"),
        ("recall@0", "recall@5"),
        ("mrr@5", "unknown metric 'mrr@5'"),
        ("recall", "unknown metric 'recall'"),
    ],
)
def test_an_unknown_measure_is_refused_with_what_it_may_have_meant(name, message):
    with pytest.raises(UsageError) as error:
        measure(name)
    assert message in str(error.value)


def test_measures_stand_in_the_order_of_the_table_and_of_k():
    names = [one.name for one in measures((10, 1), ["recall_all@4"]) if one.metric.name == "recall_all@k"]
    assert names == ["recall_all@1", "recall_all@4", "recall_all@10"]


def test_what_the_scorer_remembers_does_not_grow_with_the_traces_and_changes_no_score(monkeypatch):
    known = {}
    monkeypatch.setattr(case_scorer, "_REMEMBERED", 3)
    values = [case_scorer._remember(known, key, [key]) for key in (1, 2, 1, 3, 4, 1)]
    assert values == [[1], [2], [1], [3], [4], [1]]
    assert len(known) <= 3
