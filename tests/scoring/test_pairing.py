"""Which gold item a trace answers."""

import pytest

from rag_eval.scoring import QuestionIndex
from seams import Gold, Trace

GOLDS = {
    qid: Gold(qid, question, True, (), ())
    for qid, question in (("Q1", "How long?"), ("Q2", "How far?"), ("Q3", "How far?"), ("Q4", ""))
}


def pair(row):
    """The qid, what is wrong, and the notes."""
    notes = []
    trace = Trace.from_row({**row, "answer": ""}, row.get("qid", ""), 7)
    qid, wrong = QuestionIndex(GOLDS).pair(trace, lambda line, message: notes.append((line, message)))
    return qid, wrong, notes


@pytest.mark.parametrize(
    ("row", "qid"),
    [
        ({"qid": "Q1"}, "Q1"),
        ({"q_id": "Q1"}, "Q1"),
        ({"case_id": "Q1"}, "Q1"),
        ({"qid": "", "q_id": "Q2"}, "Q2"),
        ({"qid": "", "q_id": "", "case_id": "Q2"}, "Q2"),
        ({"qid": "Q1", "q_id": "", "case_id": ""}, "Q1"),
        ({"qid": "Q1", "q_id": "Q1", "case_id": "Q1"}, "Q1"),
        ({"qid": "not in the gold", "q": "How long?"}, "not in the gold"),
        ({"q": "How long?"}, "Q1"),
        ({"question": "How long?"}, "Q1"),
        ({"qid": "", "q": "", "question": "How long?"}, "Q1"),
    ],
)
def test_the_first_id_that_is_there_wins_then_the_question(row, qid):
    assert pair(row) == (qid, "", [])


@pytest.mark.parametrize(
    ("row", "taken", "other"),
    [
        ({"qid": "Q1", "q_id": "Q2"}, "qid", "q_id"),
        ({"qid": "Q1", "case_id": "Q2"}, "qid", "case_id"),
        ({"q_id": "Q1", "case_id": "Q2"}, "q_id", "case_id"),
    ],
)
def test_an_id_that_differs_from_the_one_taken_is_a_note(row, taken, other):
    assert pair(row) == ("Q1", "", [(7, f"'{other}' differs from '{taken}'; '{taken}' is used")])


@pytest.mark.parametrize(
    ("row", "notes"),
    [
        ({"conversation": "C", "turn": 2}, 1),
        ({"conversation": "C", "turn": 1}, 0),
        ({"conversation": "C"}, 0),
        ({"conversation": "C", "turn": 3}, 0),
        ({"conversation": "a session of the system", "turn": 2}, 0),
    ],
)
def test_a_qid_wins_over_the_turn_of_another_gold_item_which_is_a_note(row, notes):
    golds = {f"Q{turn}": Gold(f"Q{turn}", "How?", True, (), (), conversation="C", turn=turn) for turn in (1, 2)}
    trace, seen = Trace.from_row({"qid": "Q1", **row, "answer": ""}, "Q1", 7), []
    assert QuestionIndex(golds).pair(trace, lambda line, message: seen.append((line, message))) == ("Q1", "")
    other = "'conversation' and 'turn' are those of another gold item than 'qid'; 'qid' is used"
    assert seen == [(7, other)] * notes


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({}, "the trace has neither an id nor a question"),
        ({"qid": "", "q": ""}, "the trace has neither an id nor a question"),
        ({"q": "how long?"}, "no gold question is 'how long?' to the letter"),
        ({"q": "How far?"}, "2 gold items ask 'How far?'"),
    ],
)
def test_a_question_that_names_no_single_item_is_a_problem(row, wrong):
    assert pair(row) == (None, wrong, [])


def test_a_long_question_is_cut_in_the_message():
    assert len(pair({"q": "x" * 1000})[1]) < 130
