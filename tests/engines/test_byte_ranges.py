"""A trace file in any parts says what the whole file says: scores, problems, notes."""

import json
import pickle
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import gold_row, in_full
from depth import examples
from rag_eval.engines.file_scorer import (
    ByteRange,
    RangeSource,
    Task,
    Work,
    byte_ranges,
    merge,
    score_file,
    score_range,
)
from rag_eval.readers import source
from rag_eval.readers.source import DEFAULTS
from rag_eval.scoring import QuestionIndex
from rag_eval.scoring.case_scorer import CaseScorer
from rag_eval.scoring.reference import PackedGold, ReferenceScorer
from reading import gold, jsonl, trace
from seams import Gold, ProblemCollector, Reader, Settings, measures, metric_scorer
from strategies import gold_fields, trace_fields

NAME = "trace.jsonl"
MEASURES = measures((1, 3))
QIDS = ["A1", "A2", "A3", "B4"]
LONG = [[f"{kind}{number}" for number in range(25)] for kind in "xy"]


class Bytes:
    def __init__(self, data):
        self.data = data

    def at(self, place, size):
        return self.data[place : place + size]


def work_on(golds, asked=None, **limits):
    part = golds if asked is None else asked
    scorer = metric_scorer(part, MEASURES, Settings(), golds)
    return Work(scorer, QuestionIndex(golds), replace(DEFAULTS, **limits), is_complete=True)


def reference(golds):
    return ReferenceScorer({qid: PackedGold.of(gold) for qid, gold in golds.items()}, 2, "not in context")


def outcome(scorer, ledger):
    return in_full(scorer.close()), ledger.problems, ledger.more, ledger.notes


def whole(work, data, ledger=None):
    reader = Reader(ledger or ProblemCollector(), work.limits, contents={NAME: data})
    return outcome(score_file(Task(work, reader, NAME)), reader.ledger)


def in_parts(work, data, cuts, ledger=None, *, backward=False):
    reader, answered = Reader(ledger or ProblemCollector(), work.limits), bytearray(work.scorer.size)

    def score(item):
        sent = pickle.loads(pickle.dumps(work))
        result = score_range(sent, NAME, Bytes(data), item, answered if backward else b"")
        for slot in result.log.runs[""].slots:
            answered[slot] = True
        return pickle.loads(pickle.dumps(result))

    results = list(map(score, cuts[::-1]))[::-1] if backward else map(score, cuts)
    scorer = merge(Task(work, reader, NAME), results)
    return scorer and outcome(scorer, reader.ledger)


def without_problems(work, data):
    """The outcome of the whole file; None if it has a problem, which only reading it as a stream reports."""
    expected = whole(work, data)
    return None if expected[1] else expected


def between(*positions):
    return [ByteRange(*two) for two in pairwise(positions)]


golds_of_a_run = st.lists(gold_fields(), min_size=len(QIDS), max_size=len(QIDS)).map(
    lambda fields: {
        qid: Gold.from_row(gold_row(**{**item, "qid": qid, "question": f"What is {qid}?"}), line)
        for line, (qid, item) in enumerate(zip(QIDS, fields, strict=True), 1)
    }
)
identity = st.one_of(
    st.sampled_from([*QIDS, "unknown"]).map(lambda qid: {"qid": qid}),
    st.just({"q_id": "A1", "case_id": "A2"}),
    st.sampled_from(["What is A3?", "What is it?"]).map(lambda question: {"q": question}),
)
surplus = st.sampled_from([{}, {}, {}, {"retrieval_ids": 1}, {"zzz": 2, "answr": 3}])
inner = st.sampled_from([{}, {}, {"answer_json": {"claim": "kept", "note": 1}}])
runs = st.sampled_from([{}, {}, {"run": "one"}, {"run": "two"}, {"run": ""}])
lists = st.sampled_from([{}, {}, {"retrieved_ids": LONG[0]}, {"retrieved_ids": LONG[1]}])
good = st.tuples(trace_fields, inner, identity, runs, lists, surplus).map(
    lambda parts: json.dumps({key: value for part in parts for key, value in part.items()}).encode()
)
garbage = st.sampled_from([b"", b" ", b"{", b"[]", b"null", b'{"qid": "A1"}', b'{"qid": 1, "run": 2, "z": 3}', b"\xff"])
foreign = st.just(json.dumps(gold()).encode())
ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"])


def files(*lines):
    item = st.tuples(st.one_of(*lines), ends).map(b"".join)
    heads, tails = st.sampled_from([b"", b"", b"\xef\xbb\xbf"]), st.sampled_from([0, 1, 3])
    made = st.tuples(heads, st.lists(item, max_size=12).map(b"".join), tails)
    return made.map(lambda parts: (parts[0] + parts[1])[: len(parts[0]) + len(parts[1]) - parts[2]])


@st.composite
def cut(draw, result):
    """A file, and places at which it is cut."""
    data = draw(result)
    return data, between(0, *sorted(draw(st.lists(st.integers(0, len(data)), max_size=5))), len(data))


@examples(80)
@given(cut(files(good)), golds_of_a_run)
def test_good_rows_in_any_parts_come_to_the_same(found, golds):
    data, cuts = found
    work = work_on(golds)
    assert in_parts(work, data, cuts) == without_problems(work, data)


@examples(120)
@given(cut(files(good, good, garbage, foreign)), golds_of_a_run, st.sampled_from([2, 5, 10**6]))
def test_a_file_with_a_problem_has_no_result_in_any_parts(found, golds, lines):
    data, cuts = found
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        return  # not JSON Lines: no engine is asked
    work = work_on(golds, lines=lines)
    assert in_parts(work, data, cuts) == without_problems(work, data)


@examples(50)
@given(cut(files(good)), golds_of_a_run)
def test_a_suite_in_parts_is_the_same_suite(found, golds):
    data, cuts = found
    work = work_on(golds, asked={qid: golds[qid] for qid in QIDS[:2]})
    assert in_parts(work, data, cuts) == without_problems(work, data)


@examples(100)
@given(cut(files(good, good, st.just(b'{"q": "What is A3?", "answer": "no id"}'))), golds_of_a_run)
def test_what_the_reference_scorer_counts_is_the_same_in_any_parts(found, golds):
    data, cuts = found
    work = replace(work_on(golds), scorer=reference(golds))
    assert in_parts(work, data, cuts) == without_problems(work, data)


besides = st.fixed_dictionaries(
    {},
    optional={
        "chunks": st.just([{"id": "a", "text": "It was 1234567.", "doc_id": "d"}]),
        "latency_ms": st.just({"total": 12.5}),
        "usage": st.sampled_from(["m", "n"]).map(lambda model: {"model": model, "input_tokens": 3, "output_tokens": 5}),
        "run": st.sampled_from(["", "one"]),
        "ok": st.booleans(),
    },
)


@st.composite
def logs(draw):
    """A log: rows written alike, now and then in another way, and some that are no answer to what is asked."""
    ways = draw(st.lists(besides, min_size=1, max_size=2))
    rng = Random(draw(st.integers(0, 10**6)))
    lists = [["a", "b"], ["b"], LONG[0][:5], *rng.choice([[], [], LONG])]
    rows = []
    for _ in range(rng.randint(40, 160)):
        answer = {
            "claim": rng.choice(["It is 1234567.", "not in context"]),
            "citations": rng.choice([["a"], []]),
        }
        row = {"qid": rng.choice(QIDS), "answer_json": answer, "retrieved_ids": rng.choice(lists)}
        odd = rng.choice([{"qid": "other"}, {"error": "late"}]) if rng.random() < 0.01 else {}
        rows.append({**row, **ways[rng.random() < 0.1 and -1], **odd})
    return jsonl(*rows)


@examples(50)
@given(cut(logs()), golds_of_a_run)
def test_what_is_read_from_the_end_of_a_file_comes_to_the_same(found, golds):
    data, cuts = found
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "_BLOCK", 300)
        for scorer in (metric_scorer(golds, MEASURES, Settings()), reference(golds)):
            work = replace(work_on(golds), scorer=scorer)
            assert in_parts(work, data, cuts, backward=True) == whole(work, data)


def test_of_a_log_little_more_than_its_last_round_is_scored(monkeypatch):
    monkeypatch.setattr(source, "_BLOCK", 300)
    rounds = jsonl(*[trace(qid=QIDS[number % 4], chunks=[{"id": "a", "text": "b"}]) for number in range(400)])
    scored, score = [], CaseScorer.score
    monkeypatch.setattr(CaseScorer, "score", lambda *args: scored.append(args) or score(*args))
    cuts = byte_ranges(len(rounds), len(rounds) // 4)
    assert in_parts(work_on(GOLDS), rounds, cuts, backward=True)[0].completeness.duplicate == 396
    assert len(scored) < 150


def test_a_model_without_a_price_is_named_though_its_answers_were_replaced(monkeypatch):
    monkeypatch.setattr(source, "_BLOCK", 300)

    def round_of(model):
        usage = {"model": model, "input_tokens": 1, "output_tokens": 2}
        return jsonl(*[trace(qid=qid, usage=usage) for qid in QIDS * 10])

    data = round_of("old") + round_of("new")
    result = in_parts(work_on(GOLDS), data, byte_ranges(len(data), len(data) // 4), backward=True)
    assert result[0].unpriced == ("new", "old")
    assert result == whole(work_on(GOLDS), data)


GOLDS = {qid: Gold.from_row(gold_row(qid=qid), line) for line, qid in enumerate(QIDS, 1)}


@pytest.mark.parametrize("step", [1, 7, 100, 1000, 10**6])
def test_each_line_is_in_one_part(step):
    data = b"first\n\nthird line\r\n" + b"x" * 300 + b"\nlast"
    parts = [
        RangeSource(NAME, Reader(ProblemCollector()), Bytes(data), range_) for range_ in byte_ranges(len(data), step)
    ]
    assert b"".join(line for part in parts for _, lines in part.line_blocks() for line in lines) == data
    assert sum(part.count for part in parts) == 5


@pytest.mark.parametrize("kinds", [60, 99, 150, 1200])
def test_so_many_kinds_of_unknown_field_are_the_same_notes(kinds):
    rows = [trace(qid="A1", **{f"x{number % kinds}": 1, f"y{number // 9 % 20}": 2}) for number in range(1500)]
    data = jsonl(*rows, trace(qid="A2", q_id="A1"), trace(qid="A2", q_id="A1"))
    result = in_parts(work_on(GOLDS), data, byte_ranges(len(data), 20_000))
    assert result == whole(work_on(GOLDS), data)
    assert len(result[3]) == 101 if kinds > 100 else result[3]


def test_more_unknown_fields_than_are_named_are_said_to_be_there():
    ledger = ProblemCollector()
    whole(work_on(GOLDS), jsonl(*[trace(qid="A1", **{f"x{number}": 1}) for number in range(1200)]), ledger)
    assert any("more notes" in note.message for note in ledger.notes)


def test_a_long_line_is_a_problem_in_whichever_part_it_is():
    data = jsonl(trace(qid="A1"), trace(qid="A2", z="x" * (1 << 20)), trace(qid="A3"), b"{")
    work = work_on(GOLDS, line_mib=1)
    assert in_parts(work, data, byte_ranges(len(data), 300_000)) is None


class Broken(Bytes):
    """A disk that cannot be read from the middle on."""

    def at(self, place, size):
        if place + size > len(self.data) // 2:
            raise OSError(5, "Input/output error")
        return super().at(place, size)


def test_a_part_that_cannot_be_read_has_a_problem():
    data = jsonl(*[trace(qid="A1")] * 4000)
    for part in byte_ranges(len(data), len(data) // 2):
        assert score_range(work_on(GOLDS), NAME, Broken(data), part).has_problems
