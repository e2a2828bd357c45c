"""Damage does what its name says, to what its name says, and to nothing else."""

from __future__ import annotations

import copy
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import GOOD_ANSWER, GOOD_REFUSAL, gold_row, trace_row
from depth import DEEP, examples
from rag_eval.analysis.sensitivity import KINDS, TraceSample, cases_of, in_order
from seams import GOOD, Contract, Gold, Settings, Trace, label, measures
from strategies import gold_fields, trace_fields

DAMAGE = {kind.name: kind for kind in KINDS}
SETTINGS = Settings(k=2)
MEASURES = {measure.column: measure for measure in measures((1, 2, 5)) if measure.metric.level == "case"}
PERSPECTIVES = {
    "chunk-dropped": {"retrieval", "citations", "answers", "pipeline", "context", "groundedness", "safety"},
    "chunk-below-k": {"retrieval"},
    "wrong-citation": {"citations", "answers", "pipeline"},
    "refusal-answered": {"refusals", "answers", "citations", "groundedness", "pipeline", "operations", "safety"},
    "answer-refused": {"refusals", "answers", "citations", "groundedness", "pipeline", "operations", "safety"},
    "answer-blanked": {"answers", "citations", "groundedness", "pipeline", "operations", "safety"},
    "claim-swapped": {"answers", "citations", "groundedness", "operations", "safety"},
    "latency-added": {"operations", "pipeline"},
}
"""The perspectives whose metrics a kind of damage may move at all."""
EXPECTED = {
    "chunk-dropped": {"mrr": 0},
    "chunk-below-k": {"recall_any@2": 0},
    "wrong-citation": {"citation_precision": 0, "hit_precision": 0, "chr": 0},
    "refusal-answered": {"under_refusal": 1, "answered_rate": 1},
    "answer-refused": {"over_refusal": 1, "answered_rate": 0},
    "answer-blanked": {"precision": 0},
    "claim-swapped": {"precision": 0},
    "latency-added": {"latency_total_ms": 11_000, "latency_generate_ms": 10_900},
}
"""What a good case scores after the damage; before it each of these is the other way."""
ANSWERABLE = {"gold_claim_substr": ["30 days"], "gold_citations": ["a"]}


def sample(gold, trace, qid="Q1", donor="It is a week."):
    item = Gold.from_row(gold_row(qid=qid, **gold), 1)
    return TraceSample.of(trace_row(**{"qid": qid, **trace}), item, 1, SETTINGS)._replace(donor=donor)


def scores(case):
    return {name: measure.score(case) for name, measure in MEASURES.items()}


def damaged(kind, item):
    """The case that comes of the damage, None where it cannot be done."""
    row = DAMAGE[kind].perturb(item)
    return None if row is None else TraceSample.of(row, item.case.gold, 1, SETTINGS).case


def of_every_kind(test):
    return pytest.mark.parametrize("kind", DAMAGE)(test)


@of_every_kind
def test_a_good_case_becomes_a_bad_one_and_the_metric_shows_it(kind):
    refused = kind == "refusal-answered"
    item = sample({"answerable": False}, GOOD_REFUSAL) if refused else sample(ANSWERABLE, GOOD_ANSWER)
    before, after = scores(item.case), scores(damaged(kind, item))
    assert {name: after[name] if not isinstance(after[name], tuple) else after[name][0] for name in EXPECTED[kind]} == (
        EXPECTED[kind]
    )
    assert [name for name in EXPECTED[kind] if before[name] == after[name]] == []
    assert label(item.case) in GOOD


def test_the_damage_is_done_wherever_it_can_be_and_moves_no_metric_of_another_perspective():
    done = Counter()

    @examples(2000)
    @given(gold_fields(), trace_fields)
    def every_kind(gold, trace):
        item = sample(gold, {**trace, "latency_ms": {"total": 5}})
        before = scores(item.case)
        for kind in DAMAGE:
            case = damaged(kind, item)
            if case is not None:
                assert moved(before, scores(case)) <= PERSPECTIVES[kind], kind
                assert is_done(kind, case), kind
                done[kind] += 1

    every_kind()
    # Hypothesis also draws constants of the loaded modules, so the counts depend on which tests run beside this one.
    assert not DEEP or {kind: done[kind] for kind in DAMAGE if not done[kind]} == {}


def moved(before, after):
    return {measure.metric.perspective for name, measure in MEASURES.items() if before[name] != after[name]}


def is_done(kind, case):
    after = scores(case)
    return {
        "chunk-dropped": case.ranking is None or not case.ranking.first_ranks,
        "chunk-below-k": after["recall_any@2"] is not True,
        "wrong-citation": not case.gold.citations or not case.overlap,
        "refusal-answered": not case.refused and after["under_refusal"] is True,
        "answer-refused": case.refused and after["over_refusal"] is True,
        "answer-blanked": not case.refused and case.claim == "",
        "claim-swapped": case.claim == "It is a week.",
        "latency-added": True,
    }[kind]


@examples(200)
@given(gold_fields(), trace_fields)
def test_a_damaged_row_keeps_the_contract_and_the_whole_one_is_as_it_was(gold, trace):
    item = sample(gold, {**trace, "latency_ms": {"total": 5}})
    whole = copy.deepcopy(item.row)
    for kind in KINDS:
        row, again = kind.perturb(item), kind.perturb(item)
        assert item.row == whole
        assert row == again
        assert row is None or list(Contract("trace").faults(row)) == []


@of_every_kind
def test_nothing_is_done_to_a_system_that_failed_without_an_answer(kind):
    assert DAMAGE[kind].perturb(sample(ANSWERABLE, {"error": "timed out"})) is None


@of_every_kind
def test_safety_cases_are_left_alone(kind):
    attack = {"kind": "input", "positive": True, "category": "jailbreak"}
    trace = {**GOOD_ANSWER, "latency_ms": {}}
    assert DAMAGE[kind].perturb(sample({**ANSWERABLE, "attack": attack}, trace)) is None


def test_a_system_that_says_itself_whether_it_abstained_says_so_of_the_damage():
    item = sample(ANSWERABLE, {**GOOD_ANSWER, "abstained": False})
    assert damaged("answer-refused", item).refused
    other = sample({"answerable": False}, {**GOOD_REFUSAL, "abstained": True})
    assert not damaged("refusal-answered", other).refused


def test_citations_inside_a_free_text_stay_when_the_text_goes():
    item = sample(ANSWERABLE, {"retrieved_ids": ["a"], "answer": "Kept 30 days. citations: [a]"})
    assert damaged("answer-blanked", item).cites == ("a",)


def test_chunks_move_with_their_ids():
    chunks = [{"id": name, "text": f"text of {name}"} for name in "abc"]
    item = sample(ANSWERABLE, {**GOOD_ANSWER, "chunks": chunks})
    assert DAMAGE["chunk-below-k"].perturb(item)["chunks"] == [chunks[1], chunks[2], chunks[0]]
    assert DAMAGE["chunk-dropped"].perturb(item)["chunks"] == chunks[1:]


def test_a_list_shorter_than_k_is_filled_up():
    item = sample(ANSWERABLE, {**GOOD_ANSWER, "retrieved_ids": ["a"]})
    assert damaged("chunk-below-k", item).trace.retrieved == ("probe-filler-1", "probe-filler-2", "a")


def test_of_chunks_with_one_id_the_first_says_the_document_that_fills_up():
    chunks = [{"id": "a"}, {"id": "a", "doc_id": "d1"}, {"id": "b", "doc_id": "d2"}]
    item = sample({"relevant_docs": ["d2"]}, {"answer": "Kept 30 days.", "chunks": chunks})
    assert is_done("chunk-below-k", damaged("chunk-below-k", item))


def test_latency_grows_by_ten_seconds_where_the_answer_is_made():
    item = sample(ANSWERABLE, GOOD_ANSWER)
    row = DAMAGE["latency-added"].perturb(item)
    assert row["latency_ms"] == {"retrieve": 80, "generate": 10_900, "total": 11_000}
    assert DAMAGE["latency-added"].perturb(sample(ANSWERABLE, {**GOOD_ANSWER, "latency_ms": {"retrieve": 80}}))[
        "latency_ms"
    ] == {"retrieve": 10_080}
    assert Trace.from_row(row, "Q1", 1).latency == row["latency_ms"]


# Which cases


@examples(100)
@given(st.permutations([f"Q{number}" for number in range(12)]))
def test_the_order_of_damage_hangs_on_the_qids_alone(qids):
    def ordered(names):
        return in_order([sample(ANSWERABLE, {**GOOD_ANSWER}, qid=qid) for qid in names])

    expected = [(item.case.gold.qid, item.donor) for item in ordered(sorted(qids))]
    assert [(item.case.gold.qid, item.donor) for item in ordered(qids)] == expected


def test_the_order_of_damage_is_not_the_order_of_the_qids():
    qids = [f"Q{number:02}" for number in range(20)]
    assert [item.case.gold.qid for item in in_order(sample(ANSWERABLE, GOOD_ANSWER, qid=qid) for qid in qids)] != qids


@examples(200)
@given(st.lists(st.sampled_from(["x", "y", "z", "not in context", ""]), max_size=8))
def test_a_donor_is_another_answer_and_there_is_one_as_soon_as_two_differ(claims):
    rows = [{**GOOD_ANSWER, "answer_json": {"claim": claim}} for claim in claims]
    samples = in_order(sample(ANSWERABLE, row, qid=f"Q{index}") for index, row in enumerate(rows))
    spoken = {claim for claim in claims if claim not in ("", "not in context")}
    for item in samples:
        wanted = item.case.claim in spoken and len(spoken) > 1
        assert bool(item.donor) == wanted
        assert item.donor != item.case.claim or not item.donor
        assert not item.donor or item.donor in spoken


@examples(300)
@given(st.fractions(0, 100), st.fractions(0, 100), st.integers(0, 500))
def test_a_larger_dose_is_never_fewer_cases(one, other, applicable):
    less, more = sorted((one, other))
    assert 0 <= cases_of(less, applicable) <= cases_of(more, applicable) <= applicable
    assert cases_of(Fraction(0), applicable) == 0
    assert cases_of(Fraction(100), applicable) == applicable
    assert cases_of(less, applicable) > 0 or not less or not applicable
