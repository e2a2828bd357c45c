"""What a template tells of lines is what the exact way reads in them; what it is not sure of it leaves alone."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import gold_row
from depth import examples
from rag_eval.files import source
from rag_eval.files.lines import Lines
from rag_eval.files.pattern import way
from rag_eval.files.rows import read_told
from rag_eval.files.template import Golds, Traces
from rag_eval.reference import ReferenceScorer
from rag_eval.scoring import waiting
from rag_eval.scoring.profile import Terms, seen
from rag_eval.scoring.telling import Probing, Teller
from rag_eval.told import TOLD, Told
from seams import Contract, Gold, Ledger, Reader, Scorer, Settings, Trace, measures, read_traces
from seams import load_schema as load
from strategies import CLAIMS, chunk, flags, gold_fields, ids, milliseconds, trace_fields, usage

SCHEMA = load("trace")
GOLD_SCHEMA = load("gold")
EXACT = Contract("trace")
LAYOUTS = [(", ", ": "), (",", ":")]

odd = st.text(st.sampled_from('ab,: "\\/{}[]\n\té\u2028😀\x7f'), max_size=12)
texts = odd | st.sampled_from(CLAIMS)
names = st.text(st.sampled_from('ab,: "\\é'), min_size=1, max_size=4)
lists = ids | st.lists(names, max_size=4)
shares = st.floats(0, 1) | st.sampled_from([0, 1])
answers = st.one_of(
    st.fixed_dictionaries({"answer_json": st.fixed_dictionaries({"claim": texts}, optional={"citations": lists})}),
    st.fixed_dictionaries({"answer": texts | st.just('no. citations: [a, "b" c]')}, optional={"citations": lists}),
)
others = {
    "run": st.sampled_from(["", "one", "two"]),
    "retrieved_ids": lists,
    "chunks": st.lists(chunk, max_size=3),
    "ts": st.floats(-1e20, 1e20) | st.integers(-(10**17), 10**17),
    "confidence": shares,
    "policy_flags": flags | st.lists(odd, max_size=2),
    "latency_ms": milliseconds,
    "usage": usage,
    "ok": st.booleans(),
    "timed_out": st.booleans(),
    "scope": st.fixed_dictionaries({"mode": st.sampled_from(["on", "off"])}),
    "guardrail": st.fixed_dictionaries({"score": shares, "blocked": st.booleans(), "leaks": flags}),
    "model": st.none() | st.booleans() | odd | st.integers(0, 9) | st.floats(0, 9),
    "free": st.dictionaries(
        st.sampled_from(["a b", "c.d", "e"]), odd | st.lists(st.integers(), max_size=2), max_size=2
    ),
}
rows = st.builds(
    lambda qid, asked, answer, rest: {"qid": qid, "q": asked, **answer, **rest},
    st.sampled_from(["Q1", "Q2", "", 'Q"', "é"]),
    odd,
    answers,
    st.fixed_dictionaries({}, optional=others),
)


def written(row, layout=LAYOUTS[0], ascii_only=True):
    return json.dumps(row, separators=layout, ensure_ascii=ascii_only).encode()


def exactly(line, without=()):
    """What a line says, by the exact way; None where it says nothing, or is wrong."""
    row = EXACT.examine(line)[0]
    named = row and {name: value for name, value in row.items() if name not in without}
    return row and Trace.from_row(named, row.get("qid", ""), 1)


def batch_of(lines):
    return Lines(1, b"\n".join(lines))


def learned(*pairs, more=()):
    """How the lines of some rows are written."""
    made = Traces(SCHEMA, lambda _: more)
    for row, line in pairs:
        made.learn(row, line)
    return made


def told_of(made, lines):
    """What is told of lines: a trace each, or None."""
    told = made.read(batch_of(lines))
    if told is None:
        return [None] * len(lines)
    return [told.trace(entry)._replace(line=1) if entry[1] else None for entry in told.entries()]


def bare(trace, more):
    """As much of a trace as rows tell, and ``more``."""
    fields = {"policy_flags": "flags", "latency_ms": "latency"}
    return trace and (trace[:5], trace[6], [getattr(trace, fields.get(name, name)) for name in more])


def alike(row, other):
    """The row with what another one says in the fields that both have."""
    if isinstance(row, dict) and isinstance(other, dict):
        return {name: alike(value, other.get(name, value)) for name, value in row.items()}
    if isinstance(row, list) and isinstance(other, list) and row and isinstance(row[0], dict):
        return [alike(row[0], one) for one in other]
    return other if isinstance(other, type(row)) else row


@st.composite
def damaged(draw, line):
    """A line with some characters of its own or of JSON put in place of others."""
    data = bytearray(line)
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(data)))
        end = min(len(data), begin + draw(st.integers(0, 3)))
        data[begin:end] = draw(
            st.sampled_from(b'"\\,:{}[]01-.eE \t\r\x00\x1f\xff\xc3' + bytes(line[:40])).map(lambda one: bytes([one]))
            | st.just(b"")
        )
    return bytes(data).replace(b"\n", b" ")


@examples(350)
@given(st.data(), rows, rows, st.sampled_from(LAYOUTS), st.booleans(), st.sampled_from([(), ("chunks",), TOLD]))
def test_what_is_told_is_what_stands_there(data, row, other, layout, ascii_only, more):
    first, second = written(row, layout, ascii_only), written(other, layout, ascii_only)
    third = written(alike(row, other), layout, ascii_only)
    made = learned(*[(one, line) for one, line in ((row, first), (other, second)) if exactly(line)], more=more)
    lines = [first, second, third, data.draw(damaged(first)), data.draw(damaged(third)), b""]
    without = {"chunks"}.difference(more)  # who does not ask for them does not take what was retrieved from them
    for line, found in zip(lines, told_of(made, lines), strict=True):
        assert found is None or bare(found, more) == bare(exactly(line, without), more), line
    for line in lines:
        (found,) = told_of(made, [line])
        assert found is None or bare(found, more) == bare(exactly(line, without), more), line


PLAIN = {
    "qid": "Q1",
    "q": 'What is "it"?',
    "run": "one",
    "retrieved_ids": ["a#1", "b [2]", "é"],
    "answer_json": {"claim": 'It is "it".\n\tSo — 😀', "citations": ["a#1"]},
    "latency_ms": {"retrieve": 12, "generate": 30.25},
    "chunks": [{"id": "a#1", "text": "x", "score": 0.5}, {"id": "a#1", "text": "y", "score": -1}],
    "guardrail": {"score": 0.25, "blocked": False, "leaks": []},
    "trace_id": None,
}


def test_what_was_retrieved_may_stand_in_the_chunks_alone():
    row = {"qid": "Q1", "answer": "a", "chunks": [{"id": "a", "text": "x"}]}
    made = learned((row, written(row)), more=("chunks",))
    same = {**row, "chunks": [{"id": own, "text": "x"} for own in ("b [2]", "é, a", "b [2]")]}
    odd = [{**row, "chunks": [{"id": own, "text": "x"}]} for own in ('b"', "b\\c", "")]
    told = told_of(made, [written(same), *map(written, odd)])
    assert [one and one.retrieved for one in told] == [("b [2]", "é, a"), None, None, None]
    assert told_of(learned((row, written(row))), [written(row)])[0].retrieved == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_a_program_writes_alike_are_all_told(layout):
    more = {"answer_json": {"claim": "No.", "citations": []}, "retrieved_ids": [], "run": "", "trace_id": 7.5}
    lines = [
        written({**PLAIN, "qid": f"Q{number}", **changed}, layout, False) for number, changed in enumerate([{}, more])
    ]
    assert None not in told_of(learned((PLAIN, lines[0])), lines)


@pytest.mark.parametrize(
    "line",
    [
        rb'{"qid": "Q1", "answer": "a", "answer": "b"}',
        rb'{"answer": "a", "qid": "Q1"}',
        rb'{"qid": "Q1", "answer": "a"} ',
        rb'{"qid": "Q1",  "answer": "a"}',
        rb'{"qid": "Q1", "answer": "a\\"}',
        rb'{"qid": "Q1", "answer": "a\u00"}',
        rb'{"qid": "Q1", "answer": "\ud800"}',
        rb'{"qid": "Q1", "answer": "\udc00\ud800"}',
        rb'{"qid": "Q\u0031", "answer": "a"}',
        rb'{"qid": "", "answer": "a"}',
        b'{"qid": "Q1", "answer": "a\tb"}',
        b'{"qid": "Q1", "answer": "a\xffb"}',
        b'{"qid": "Q1", "answer": "a\x00b"}',
        b'\xef\xbb\xbf{"qid": "Q1", "answer": "a"}',
        b'{"qid": "' + b"Q" * 201 + b'", "answer": "a"}',
    ],
)
def test_what_is_written_otherwise_is_left_to_the_exact_way(line):
    good = b'{"qid": "Q1", "answer": "a"}'
    made = learned((json.loads(good), good))
    assert None not in told_of(made, [good])
    assert told_of(made, [line]) == [None]


def test_a_break_in_a_string_does_not_make_one_row_of_two_lines():
    good = b'{"qid": "Q1", "answer": "a"}'
    made = learned((json.loads(good), good))
    assert told_of(made, [b'{"qid": "Q1", "answer": "a', b'b"}']) == [None, None]


@pytest.mark.parametrize(
    "row",
    [
        {"q": "no id", "answer": "a"},
        {"qid": "Q1", "q_id": "Q2", "answer": "a"},
        {"qid": "Q1", "error": "down"},
        {"qid": "Q1", "answer": "a", 'k"ey': 1},
        {"qid": "Q1", "answer": "a", "free": [[1]]},
    ],
)
def test_there_is_no_template_where_more_is_to_be_known(row):
    assert told_of(learned((row, written(row))), [written(row)]) == [None]


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("", {"additionalProperties": False}),
        ("", {"if": {}}),
        ("", {"anyOf": [{"minProperties": 1}]}),
        ("qid", {"pattern": "^Q"}),
        ("q", {"pattern": "^Q"}),
        ("q", {"enum": ['"']}),
        ("ts", {"exclusiveMinimum": 0}),
        ("ts", {"maximum": 100}),
        ("ts", {"minimum": 1}),
        ("ts", {"type": ["number", "null"]}),
        ("retrieved_ids", {"minItems": 1}),
        ("retrieved_ids", {"items": {"type": "string", "minLength": 2}}),
    ],
)
def test_a_schema_that_says_more_than_is_known_has_no_template(field, more):
    row = {"qid": "Q1", "q": "Q", "answer": "a", "ts": 1, "retrieved_ids": ["a"]}
    assert way(SCHEMA, row, written(row), ())
    fields = SCHEMA["properties"]
    changed = {"properties": {**fields, field: {**fields[field], **more}}} if field else more
    assert way({**SCHEMA, **changed}, row, written(row), ()) is None


def test_rows_written_in_a_few_ways_are_told_each_in_its_own():
    given = [
        {"qid": "Q1", "answer_json": {"claim": "a", "citations": ["x"]}, "retrieved_ids": ["x"]},
        {"qid": "Q2", "answer_json": {"claim": "b"}, "run": "one"},
        {"qid": "Q3", "answer": "c citations: [x, y]", "chunks": [{"id": "x", "text": "t"}], "retrieved_ids": []},
    ]
    lines = [written(row) for row in given]
    told = told_of(learned(*zip(given, lines, strict=True), more=("chunks",)), lines[::-1])
    assert told == list(map(exactly, lines[::-1]))
    assert told_of(learned((given[1], lines[1])), lines)[::2] == [None, None]


# Gold items

gold_rows = st.builds(
    lambda qid, question, answerable, texts, cited, rest: gold_row(
        qid=qid,
        question=question,
        answerable=answerable,
        gold_claim_substr=texts if answerable else [],
        gold_citations=cited if answerable else [],
        **rest,
    ),
    st.sampled_from(["Q1", "é", "Q, 2"]),
    odd,
    st.booleans(),
    st.lists(st.sampled_from(["kept FOR", 'a "quoted" one', "Ünder", "a, b, c"]), max_size=2),
    st.lists(names, max_size=3),
    st.just({}) | st.just({"tags": ["smoke"]}),
)


def read_of(made, lines):
    """What is read of lines: an item each, or None."""
    stock = made.read(batch_of(lines))
    if stock is None:
        return [None] * len(lines)
    return [gold for _, gold in made.filled(batch_of(lines), stock, dict.fromkeys(made.others(stock)))]


@examples(250)
@given(st.data(), st.lists(gold_rows, min_size=1, max_size=6), st.sampled_from(LAYOUTS), st.booleans())
def test_the_items_read_are_those_that_stand_there(data, found, layout, ascii_only):
    lines = [written(row, layout, ascii_only) for row in found]
    made, exact = Golds(GOLD_SCHEMA), Contract("gold")
    for row, line in zip(found, lines, strict=True):
        made.learn(row, line)
    lines += [data.draw(damaged(line)) for line in lines]
    for line, gold in zip(lines, read_of(made, lines), strict=True):
        row = exact.examine(line)[0]
        assert gold is None or gold._replace(line=1) == Gold.from_row(row, 1), line


def test_items_without_an_answer_and_with_one_are_all_read():
    found = [
        gold_row(gold_claim_substr=["Thirty Days", "a month"], gold_citations=["a#1", "b", "b"]),
        gold_row(answerable=False),
        gold_row(question='Is it "30"?\n', gold_citations=["c"]),
    ]
    lines = [written(row) for row in found]
    made = Golds(GOLD_SCHEMA)
    for row, line in zip(found[:2], lines, strict=False):
        made.learn(row, line)
    assert read_of(made, lines) == [Gold.from_row(row, number) for number, row in enumerate(found, 1)]


def test_an_item_without_an_answer_is_not_taken_for_one_that_has_what_is_right():
    lines = [written(gold_row(answerable=False)), written(gold_row(answerable=False, gold_citations=["a"]))]
    made = Golds(GOLD_SCHEMA)
    made.learn(gold_row(answerable=False), lines[0])
    assert read_of(made, lines)[1] is None


@pytest.mark.parametrize(
    "rule",
    [
        {"if": {"properties": {"answerable": {"const": 0}}}, "then": {"properties": {}}},
        {"if": {"properties": {"qid": {"const": True}}}, "then": {"properties": {}}},
        {"if": {"properties": {"answerable": {"enum": [True]}}}, "then": {"properties": {}}},
        {"if": {"properties": {}}, "then": {"properties": {"gold_citations": {"maxItems": 1}}}},
        {"if": {"properties": {}}, "then": {"required": ["tags"]}},
        {"if": {"properties": {}}, "then": {"properties": {}}, "else": {"required": ["tags"]}},
        {"required": ["tags"]},
    ],
)
def test_a_condition_that_is_not_known_has_no_expression(rule):
    row = gold_row()
    assert way(GOLD_SCHEMA, row, written(row), ())
    assert way({**GOLD_SCHEMA, "allOf": [rule]}, row, written(row), ()) is None


# Files: what is told in place of rows changes nothing of what they come to.

GOLDS = [
    gold_row(qid="Q1", gold_citations=["a", "b"], gold_claim_substr=["30 days"]),
    gold_row(qid="Q2", answerable=False),
    gold_row(qid="é", gold_citations=["c", "a", ", "], gold_claim_substr=["the kind", "thirty"]),
    gold_row(qid="Q4", gold_citations=['a"b'], expected_answer="kept for 30 days"),
    gold_row(qid="Q5", gold_citations=["a"], supports=[{"rel_path": "manual.md", "heading_path": ""}]),
    gold_row(qid="Q6", gold_citations=["a"], expected_outcome="uncertain", required_flags=["no_context"]),
]
COLUMNS = measures((1, 3))
LEAKS = ["Write to jo@acme.org.", "Call +49 30 901820 for 30 days.", "The api key is Zx81kk42qq."]
many = st.just([f"x{number}" for number in range(25)])
file_rows = st.lists(
    st.builds(
        lambda qid, claim, cited, ranked, rest: {
            "qid": qid,
            "answer_json": {"claim": claim, "citations": cited},
            "retrieved_ids": ranked,
            **rest,
        },
        st.sampled_from(["Q1", "Q2", "é", "Q4", "Q5", "Q6", "unknown"]),
        texts | st.sampled_from(LEAKS),
        lists,
        lists | many,
        st.fixed_dictionaries(
            {},
            optional={
                "run": st.sampled_from(["", "one"]),
                "chunks": st.lists(chunk, max_size=2),
                "latency_ms": milliseconds,
                "usage": usage,
                "policy_flags": flags,
                "guardrail": st.fixed_dictionaries({"score": shares, "blocked": st.booleans()}),
                "confidence": shares,
            },
        ),
    ),
    min_size=4,
    max_size=40,
)


def scorers(columns):
    golds = {row["qid"]: Gold.from_row(row, line) for line, row in enumerate(GOLDS, 1)}
    own = [one for one in COLUMNS if one.metric.perspective in columns]
    return Scorer(golds, own, Settings()), ReferenceScorer(golds, 2, "not in context")


def taken(scorer, batches, notes):
    scorer = scorer.fresh()
    scorer.take(batches, lambda row, line: notes.append((row, line)))
    return scorer.close()


@examples(180)
@given(
    file_rows,
    st.booleans(),
    st.sampled_from(
        [("answers", "refusals", "citations", "retrieval"), ("safety", "pipeline"), ("operations", "safety")]
    ),
    st.integers(0, 300),
)
@example(
    [{"qid": "Q1", "answer_json": {"claim": "x", "citations": ["a"]}, "retrieved_ids": ["c", "c", "b"]}] * 40,
    True,
    ("retrieval",),
    100,
)
def test_a_file_comes_to_the_same_whether_rows_are_told_or_read(found, ascii_only, columns, largest):
    data = b"\n".join(written(row, ascii_only=ascii_only) for row in found)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "_BLOCK", 300)
        patched.setattr(source, "_SMALL", 0)
        patched.setattr(waiting, "_LARGEST", largest)
        patched.setattr(waiting, "_AT_ONCE", 3)
        for scorer in scorers(columns):
            reader, notes, others = Reader(Ledger(), held={"t": data}), [], []
            told = taken(scorer, read_told(reader, "t", scorer.enough), notes)
            read = taken(scorer, [read_traces(reader, "t")], others)
            assert (told, notes) == (read, others)


@examples(120)
@given(
    st.lists(gold_fields() | gold_fields(attacks=True), min_size=1, max_size=4),
    st.lists(trace_fields, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), trace_fields, st.integers(0, 4)), min_size=10, max_size=40),
)
def test_whatever_items_ask_and_traces_say_comes_to_the_same(items, ways, found):
    """Each row says what another does, in one of few ways of writing: with every metric, and every optional field."""
    golds = {
        f"Q{place}": Gold.from_row(gold_row(qid=f"Q{place}", **item), place + 1) for place, item in enumerate(items)
    }
    plain = [{name: value for name, value in way.items() if name not in ("error", "abstained")} for way in ways]
    rows = [{"qid": f"Q{place}", "q": "?", **alike(plain[at % len(plain)], other)} for at, other, place in found]
    data = b"\n".join(written(row) for row in rows if exactly(written(row)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source, "_BLOCK", 300)
        patched.setattr(source, "_SMALL", 0)
        for scorer in (Scorer(golds, COLUMNS, Settings()), ReferenceScorer(golds, 2, "not in context")):
            reader, notes, others = Reader(Ledger(), held={"t": data}), [], []
            told = taken(scorer, read_told(reader, "t", scorer.enough), notes)
            assert (told, notes) == (taken(scorer, [read_traces(reader, "t")], others), others)


def settled(monkeypatch, scorer, lines):
    """What a file comes to, with the traces that waited and those that were left, each time that they did not wait."""
    monkeypatch.setattr(source, "_SMALL", 0)
    monkeypatch.setattr(source, "_BLOCK", 1_000)
    times, leave = [], waiting.Waiting.leave

    def watched(self):
        before, left = self.replaced, [*leave(self)]
        count = sum(len(some.slots) for some in left)
        if left:
            times.append((self.replaced - before + count, count))
        yield from left

    monkeypatch.setattr(waiting.Waiting, "leave", watched)
    reader = Reader(Ledger(), held={"t": b"\n".join(lines)})
    return taken(scorer, read_told(reader, "t", scorer.enough), []), times


def of_two_questions(claim, rows=3000):
    own = {"answer_json": {"claim": claim, "citations": ["a"]}, "retrieved_ids": ["c", "b"]}
    return [written({"qid": f"Q{1 + number % 2}", **own}) for number in range(rows)]


plainly = pytest.mark.parametrize("scorer", scorers(("answers", "retrieval")))


@plainly
def test_of_the_traces_of_a_question_the_last_one_alone_is_scored(monkeypatch, scorer):
    found, times = settled(monkeypatch, scorer, of_two_questions("x"))
    ((came, left),) = times
    assert came > 2900
    assert left == 2
    assert getattr(found, "completeness", found).duplicate == 2998


@plainly
def test_long_texts_do_not_wait_for_long(monkeypatch, scorer):
    monkeypatch.setattr(waiting, "_LARGEST", 3_000)
    found, times = settled(monkeypatch, scorer, of_two_questions("x" * 900))
    assert len(times) > 100
    assert max(came for came, _ in times) < 10
    assert getattr(found, "completeness", found).duplicate == 2998


@plainly
def test_where_there_are_many_questions_no_trace_waits(monkeypatch, scorer):
    monkeypatch.setattr(waiting, "_MOST", 5)
    assert settled(monkeypatch, scorer, of_two_questions("x"))[1] == []


def test_most_of_a_file_written_alike_is_told(monkeypatch):
    monkeypatch.setattr(source, "_SMALL", 0)
    lines = [written({**PLAIN, "qid": f"Q{number}"}) for number in range(3000)]
    reader = Reader(Ledger(), held={"t": b"\n".join(lines)})
    batches = list(read_told(reader, "t", lambda _: ()))
    assert sum(len(one.qids) for one in batches if isinstance(one, Told)) > 2000
    assert all(isinstance(one, Told) for one in batches[1:])


# Profiles of batches are those of their answers.

TERMS = [Terms.of(Settings(), COLUMNS), Terms.of(Settings(phrases=("the kind",), k=1)), Terms.of(Settings(k=2))]


@examples(200)
@given(file_rows, st.sampled_from(TERMS))
def test_a_told_profile_is_that_of_the_answer(found, terms):
    golds = [Gold.from_row(row, 1) for row in GOLDS]
    slot_of = {gold.qid: slot for slot, gold in enumerate(golds)}
    same = [alike(found[0], row) for row in found]
    lines = [written(row, ascii_only=False) for row in same]
    told = learned((found[0], lines[0])).read(batch_of(lines))
    if not told:
        return
    slots = [slot_of.get(qid) for qid in told.qids]
    profiles = Teller(golds, terms, Probing(10**6, (), bool)).profiles(slots, told)
    for slot, profile, entry in zip(slots, profiles, told.entries(), strict=True):
        if profile is not None:
            trace = told.trace(entry)
            assert profile == seen(golds[slot], trace.claim, trace.citations, trace.retrieved, terms)[0]
        elif slot is not None:
            assert not golds[slot].plain or len(told.ids(entry[5])) > 20 or len(set(told.ids(entry[4] or ""))) >= 5
