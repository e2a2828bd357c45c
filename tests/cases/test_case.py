"""What metrics share: when a case is refused, and how a trace is read."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import gold_row, make_case, trace_row
from depth import examples
from rag_eval.contract import inline_citations
from rag_eval.metrics.answers import exact_refusal
from seams import Case, Gold, Settings, Trace, measures
from seams import read as read_file
from table import each_row


def says(claim, **more):
    return {"answer_json": {"claim": claim}, **more}


PHRASES = Settings(phrases=("cannot answer",))


@pytest.mark.parametrize(
    ("refused", "trace", "settings"),
    [
        (True, says("not in context"), Settings()),
        (True, says("\tNOT IN CONTEXT \n"), Settings()),
        (False, says("not in context."), Settings()),
        (False, says(""), Settings()),
        (False, says("I cannot answer that."), Settings()),
        (True, says("I Cannot Answer that."), PHRASES),
        (True, says("cannot answer".ljust(250)), PHRASES),
        (True, says("cannot answer" + "x" * 187), PHRASES),
        (False, says("cannot answer" + "x" * 188), PHRASES),
        (True, says("not in context"), PHRASES),
        (False, says("not in context", abstained=False), PHRASES),
        (True, says("The answer is 30 days.", abstained=True), Settings()),
        (True, says("weiß nicht"), Settings(token="Weiß nicht")),
        (False, says("not in context"), Settings(token="Weiß nicht")),
    ],
)
def test_refusal_is_the_mark_then_the_token_then_a_phrase_in_a_short_claim(refused, trace, settings):
    assert make_case({}, trace, settings).refused is refused


def test_an_exact_refusal_keeps_the_letter_case_of_the_configured_token():
    token = Settings(token="Not in the files.")
    assert exact_refusal.score(make_case({}, says("Not in the files."), token)) is True
    assert exact_refusal.score(make_case({}, says("not in the files."), token)) is False


@pytest.mark.parametrize(
    ("errored", "trace"),
    [(True, {"error": "down"}), (False, {"error": "down", "answer": ""}), (False, says("x")), (False, None)],
)
def test_a_case_is_errored_when_there_is_an_error_and_no_answer(errored, trace):
    assert make_case({}, trace).errored is errored


CITED = (
    "[2]", "[2, 3]", "[1–3]", "[^2]", "[^2^]", "【4】", "【4:0†source】", "<sup>2</sup>", "[Doc 3]", "[Document 3]",
    "[Source 2]", "(Document 3)", "(Source: 2)", "(sources 2 and 3)", "[citation:3]", "[ref. 2]", "[b#2]",
    "citations: [b#2]",
)  # fmt: skip


@each_row("citation", CITED)
def test_citations_are_no_prose(citation):
    case = make_case({}, says(f"It weighs 25 kg {citation}.", retrieved_ids=["b#2"]))
    assert case.prose == f"It weighs 25 kg {' ' * len(citation)}."


@pytest.mark.parametrize("said", ["(2)", "(2 kg)", "[sic]", "(the source of 2 rivers)", "<b>2</b>", "(page 17)"])
def test_other_brackets_are_prose(said):
    claim = f"It weighs 25 kg {said}."
    assert make_case({}, says(claim)).prose == claim


def read(**fields):
    return Trace.from_row(trace_row(**fields), "Q1", 1)


@pytest.mark.parametrize(
    ("claim", "citations", "fields"),
    [
        ("x", ("a",), {"answer_json": {"claim": "x", "citations": ["a", "a"]}, "answer": "y", "citations": ["b"]}),
        ("x", None, {"answer_json": {"claim": "x"}, "answer": "citations: [b]", "citations": ["b"]}),
        ("y", ("b",), {"answer": "y", "citations": ["b"]}),
        ("y", (), {"answer": "y", "citations": []}),
        ("y\ncitations: [b]", ("b",), {"answer": "y\ncitations: [b]"}),
        ("citations: [b]", ("c",), {"answer": "citations: [b]", "citations": ["c"]}),
        ("y", None, {"answer": "y"}),
        ("", None, {"error": "down"}),
    ],
)
def test_claim_and_citations_come_from_the_first_form_that_is_there(claim, citations, fields):
    trace = read(**fields)
    assert (trace.claim, trace.citations) == (claim, citations)


@pytest.mark.parametrize(
    ("retrieved", "fields"),
    [
        (("b", "a"), {"retrieved_ids": ["b", "a", "b"]}),
        (("b",), {"retrieved_ids": ["b"], "chunks": [{"id": "a"}]}),
        (("a", "b"), {"chunks": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}),
        ((), {"retrieved_ids": [], "chunks": [{"id": "a"}]}),
        ((), {}),
    ],
)
def test_what_was_retrieved_is_the_list_or_else_the_chunks(retrieved, fields):
    assert read(**says("x"), **fields).retrieved == retrieved


def test_an_empty_run_is_no_run():
    assert read(**says("x"), run="").run == ""


def test_an_item_of_a_json_array_has_no_substrings_and_keeps_its_claim_for_containment(tmp_path):
    row = {"qid": "Q1", "q": "How long?", "answerable": True, "gold_ids": ["a", "a"], "gold_claim": "30 days"}
    item = Gold("Q1", "How long?", True, (), ("a",), expected_answer="30 days", line=3)
    assert read_file("gold", b"[\n\n%s]" % json.dumps(row).encode(), tmp_path).value == {"Q1": item}


def test_an_item_keeps_the_difference_between_an_absent_list_and_an_empty_one():
    assert Gold.from_row(gold_row(), 1).supports is None
    assert Gold.from_row(gold_row(supports=[]), 1).supports == ()


def test_one_chunk_with_several_supports_is_no_better_than_the_ideal():
    """Both supports stand in the first chunk: everything is found at once, and no score exceeds 1."""
    supports = [{"rel_path": "m.md", "heading_path": ""}, {"rel_path": "m.md", "heading_path": "Data"}]
    gold = Gold.from_row({**gold_row(), "gold_citations": [], "supports": supports}, 1)
    chunk = {"id": "e", "rel_path": "m.md", "heading_path": "Data"}
    trace = Trace.from_row({"qid": gold.qid, "answer": "yes", "chunks": [chunk]}, gold.qid, 1)
    case = Case(gold, trace, Settings())
    scores = {one.name: one.score(case) for one in measures((1, 2)) if one.metric.level == "case"}
    assert [scores[name] for name in ("map", "ndcg@1", "ndcg@2")] == [1.0, 1.0, 1.0]
    assert scores["recall@1"] == (2, 2)


@examples(300)
@given(st.lists(st.sampled_from(["Citations :[", "citations", ":", "[", "]", "a", "b", ",", "\t"]), max_size=12))
@example(["citations: [] then citations: [a]"])
@example(["CITATIONS :[a b\tc,,d]"])
def test_inline_citations_are_what_the_plain_pattern_finds(parts):
    text = "".join(parts)
    found = re.search(r"citations\s*:\s*\[([^\]]*)\]", text, re.IGNORECASE)
    assert inline_citations(text) == ([one for one in re.split(r"[,\s]+", found[1]) if one] if found else None)
