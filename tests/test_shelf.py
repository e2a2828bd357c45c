"""A gold set by the column is the set that reading item by item gives; what it cannot hold is left to that."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import gold_row
from depth import examples
from rag_eval.files import rows, source
from rag_eval.files.rows import read_shelf, read_told
from rag_eval.reference import ReferenceScorer
from rag_eval.shelf import Shelf
from seams import Ledger, Reader, read_gold

IDS = st.sampled_from(["a", "b", "a b", ",", ", ", ",a", "a, b", 'q"', "back\\\\", "é"])
TEXTS = st.sampled_from(["Thirty DAYS", "a month", "ÜBER fünf", 'so "called"', "ΟΔΟΣ ΟΔΟΣ", ", , , "])
items = st.lists(
    st.builds(
        lambda answerable, texts, ids, question: {
            "answerable": answerable,
            "question": question,
            "gold_claim_substr": texts if answerable else [],
            "gold_citations": ids if answerable else [],
        },
        st.booleans(),
        st.lists(TEXTS, max_size=2),
        st.lists(IDS, max_size=3),
        st.sampled_from(["How long?", "Wie lange\nist das „genau“?", "Q"]),
    ),
    min_size=12,
    max_size=30,
)
answers = st.lists(
    st.builds(
        lambda at, claim, cited, ranked: (at, {"claim": claim, "citations": cited}, ranked),
        st.integers(0, 31),
        st.sampled_from(["not in context", "it is thirty days", "über fünf: a month", "οδος οδος", "x"]),
        st.lists(IDS, max_size=2),
        st.lists(IDS, max_size=5),
    ),
    min_size=8,
    max_size=30,
)


def written(found, separators=(", ", ": "), ascii_only=False):
    lines = [json.dumps(row, separators=separators, ensure_ascii=ascii_only) for row in found]
    return "\n".join(lines).encode() + b"\n"


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(source, "_BLOCK", 400)
    monkeypatch.setattr(source, "_SMALL", 0)
    monkeypatch.setattr(rows, "LARGE", 0)


@pytest.fixture
def gold(tmp_path):
    return tmp_path / "gold.jsonl"


def read(path):
    """The set with what there is to say of it, both ways; whether it is kept by the column."""
    ledgers = Ledger(), Ledger()
    shelf, golds = read_shelf(Reader(ledgers[0]), str(path)), read_gold(Reader(ledgers[1]), str(path))
    said, expected = ((own.problems, own.notes) for own in ledgers)
    assert (dict(shelf), list(shelf), said) == (golds, list(golds), expected)
    return shelf, golds, isinstance(shelf, Shelf)


def nobody_asks(row, line):
    raise AssertionError(f"line {line} has a qid: {row}")


LAYOUTS = st.sampled_from([(", ", ": "), (",", ":")])


@examples(100)
@given(items, LAYOUTS, st.booleans(), answers)
def test_the_items_and_what_traces_score_against_them_are_the_same(tmp_path_factory, found, layout, escaped, traces):
    path = tmp_path_factory.mktemp("shelf") / "gold.jsonl"
    path.write_bytes(written([gold_row(qid=f"Q{at}", **one) for at, one in enumerate(found)], layout, escaped))
    shelf, golds, kept = read(path)
    assert kept
    told = [{"qid": f"Q{at}", "answer_json": answer, "retrieved_ids": ranked} for at, answer, ranked in traces]
    data = written(told)
    counts = []
    for own in (shelf, golds):
        scorer = ReferenceScorer(own, 2, "not in context")
        scorer.take(read_told(Reader(Ledger(), held={"t": data}), "t", scorer.enough), nobody_asks)
        counts.append(scorer.close())
    assert counts[0] == counts[1]


def some(count=20):
    return [gold_row(qid=f"Q{at}", gold_citations=["a", "b"]) for at in range(count)]


def test_a_plain_set_is_kept_by_the_column(gold):
    gold.write_bytes(written(some()))
    shelf, golds, kept = read(gold)
    assert kept
    assert shelf.at(3) == golds["Q3"]
    assert shelf["Q19"].line == 20


@pytest.mark.parametrize(
    "spoilt",
    [
        some()[4],  # its qid is another's
        gold_row(qid="Q90", tags=["smoke"]),
        gold_row(qid="Q90", colour="red"),  # something to say of it
        {"qid": "Q90"},
        gold_row(qid="Q90", gold_claim_substr=["x"]),
    ],
)
@pytest.mark.parametrize("place", [0, 10, 20])
def test_a_set_with_more_to_say_of_it_is_read_item_by_item(gold, spoilt, place):
    found = some()
    gold.write_bytes(written([*found[:place], spoilt, *found[place:]]))
    assert not read(gold)[2]


def test_lists_that_are_parted_in_two_ways_are_read_item_by_item(gold):
    found = some()
    gold.write_bytes(written(found[:10]) + written([{**row, "qid": f"R{row['qid']}"} for row in found], (",", ":")))
    assert not read(gold)[2]


def test_blank_lines_and_items_written_otherwise_stand_among_the_others(gold):
    odd = [gold_row(qid="R1"), {"answerable": True, **gold_row(qid="R2", gold_citations=["c"])}]
    gold.write_bytes(
        written(some(8)) + b"\n  \n" + written(odd) + b"\r\n" + written([gold_row(qid="R3", answerable=False)])
    )
    shelf, _, kept = read(gold)
    assert kept
    assert [shelf[qid].line for qid in ("R1", "R2", "R3")] == [11, 12, 14]


@pytest.mark.parametrize("data", [b"", b"[]", b"\n\n"])
def test_what_is_no_set_of_items_a_line_is_said_as_ever(gold, data):
    gold.write_bytes(data)
    assert not read(gold)[2]


def test_a_file_that_is_not_there_is_said_once(tmp_path):
    assert not read(Path(tmp_path) / "none.jsonl")[2]
