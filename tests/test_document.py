"""Large documents: what is accepted quickly is what the slow way accepts, with the same value."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import ROOT
from depth import examples
from rag_eval.files import document, report_file, strict_json
from rag_eval.files.document import accept, accept_apart
from rag_eval.listed import Halves, Listed
from rag_eval.renderers.json_file import Questions, alike
from seams import Contract, Ledger, Reader, from_json

REPORT = (ROOT / "tests" / "gold" / "compared" / "report.json").read_bytes()
CONTRACT = Contract("report")
DEPTH = 64


def slowly(data, depth=DEPTH):
    try:
        value = strict_json.parse(data, depth)
    except strict_json.JsonError:
        return None
    return None if list(CONTRACT.faults(value)) else value


def test_a_report_of_ours_is_accepted_quickly():
    assert accept(CONTRACT.schema, REPORT, DEPTH) == slowly(REPORT) is not None


spoiled = st.tuples(
    st.integers(0, len(REPORT) - 1), st.sampled_from(['"', "{", "]", ",", "1", "-", "e9", "\\u0022", "\n", "NaN"])
)


@examples(300)
@given(st.lists(spoiled, min_size=1, max_size=2), st.integers(0, 9))
def test_what_is_accepted_quickly_is_accepted_slowly_with_the_same_value(edits, cut):
    data = REPORT
    for place, text in edits:
        data = data[:place] + text.encode() + data[place + cut :]
    found = accept(CONTRACT.schema, data, DEPTH)
    assert found is None or found == slowly(data)


def with_run(run):
    data = REPORT.replace(b'\n  "run": null', b'\n  "run": ' + run, 1)
    assert data != REPORT
    return data


@pytest.mark.parametrize(
    "run",
    [
        b'{"k": 123456789012345678901234567890}',
        b'{"a": 1, "a": 2}',
        b'{"a": {"b": 1, "b": 2}}',
        b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b"[]",
    ],
)
def test_what_strict_json_refuses_is_not_accepted_quickly(run):
    data = with_run(run)
    assert accept(CONTRACT.schema, data, DEPTH) is None
    assert slowly(data) is None


@pytest.mark.parametrize("levels", [1, 3, 8])
def test_nesting_counts_as_strict_json_counts_it(levels):
    data = with_run(b'{"a": ' + b"[" * levels + b"]" * levels + b"}")
    for depth in range(1, 14):
        assert accept(CONTRACT.schema, data, depth) == slowly(data, depth)


@example(b"")
@example(b"{}")
@given(st.binary(max_size=40))
def test_bytes_that_are_no_document_are_left_to_the_slow_way(data):
    assert accept(CONTRACT.schema, data, DEPTH) is None


@pytest.mark.parametrize("least", [0, 1 << 40])
def test_a_file_reads_the_same_either_way_and_its_problems_are_the_same(tmp_path, monkeypatch, least):
    monkeypatch.setattr(report_file, "_LARGE", least)
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(REPORT)
    bad.write_bytes(REPORT.replace(b'"verdict": "', b'"verdict": "un', 1))
    ledger = Ledger()
    assert report_file.read_report(Reader(ledger), str(good)) == json.loads(REPORT)
    assert report_file.read_report(Reader(ledger), str(bad)) is None
    assert [problem.where for problem in ledger.problems] == ["/verdict"]


# Lists read a few entries at a time.


def whole(entry):
    """An entry as it stands there."""
    scores = entry["scores"]
    return {**entry, "scores": {**scores.shared, **scores.own} if isinstance(scores, Halves) else scores}


def apart(data, depth=DEPTH, made=whole):
    """A few at a time, whichever that are."""
    found = []
    for window in (1, 3_000, document._WINDOW):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(document, "_WINDOW", window)
            listed = Listed("questions", "scores", alike, lambda entries: [made(one) for one in entries])
            found.append(accept_apart(CONTRACT.schema, data, depth, listed))
    assert found[0] == found[1] == found[2]
    return found[0]


BEGIN, END = REPORT.index(b'\n  "questions"'), REPORT.index(b'\n  "notes"')
inside = st.tuples(
    st.integers(BEGIN, END),
    st.sampled_from(
        [
            '"',
            "{",
            "}",
            "]",
            ",",
            "1",
            "-",
            "e9",
            "e30",
            "\\u0022",
            "\n",
            "\n      }",
            "\n    }\n  ]",
            "},{",
            '1}, {"mrr": 1',
        ]
    )
    | st.sampled_from(
        ['"mrr": 1.0,\n        ', '"latency_total_ms": 5.5', "[0.5, true]", "true", '"chr": 1.0, "chr": 1.0']
    ),
)


def test_the_entries_of_a_report_of_ours_are_those_that_stand_there():
    assert apart(REPORT) == slowly(REPORT)
    halves = apart(REPORT, made=lambda entry: entry["scores"])["questions"]
    assert all(isinstance(one, Halves) for one in halves)
    assert any(one.own for one in halves)
    assert len({id(one.shared) for one in halves}) < len(halves)


@pytest.mark.parametrize("written", [b'\n"redundancy_ngram":', b'\n        "redundancy_n\\u0067ram":'])
def test_a_member_that_is_written_otherwise_is_left_to_the_slow_way(written):
    """Where to cut is told by the names that were read, and looked for in the bytes."""
    other = REPORT.replace(b'\n        "redundancy_ngram":', written)
    assert other != REPORT
    assert apart(other) == slowly(other)


@examples(250)
@given(st.lists(inside, min_size=1, max_size=2), st.integers(0, 9))
def test_an_entry_that_is_accepted_apart_is_accepted_slowly_with_the_same_value(edits, cut):
    data = REPORT
    for place, text in edits:
        data = data[:place] + text.encode() + data[place + cut :]
    found = apart(data)
    assert found is None or found == slowly(data)


@pytest.mark.parametrize("layout", [{"indent": 2}, {"indent": 1}, {}, {"separators": (",", ":")}])
def test_another_layout_comes_to_the_same(layout):
    data = json.dumps(json.loads(REPORT), **layout).encode()
    assert apart(data) == slowly(data) == json.loads(REPORT)


@pytest.mark.parametrize("depth", range(1, 7))
def test_nesting_counts_in_entries_too(depth):
    assert apart(REPORT, depth) in (None, slowly(REPORT, depth))


def test_a_list_of_the_same_name_elsewhere_is_not_taken_for_it():
    """Nor is the number of questions that a narrowed run tells."""
    inner = b'{\n  "questions": [\n    {\n      "a": 1\n    }\n  ]}'
    for other in (with_run(inner), with_run(b'{"questions": 3}'), with_run(b'{"questions": []}')):
        assert apart(other) == slowly(other) is not None
    moved = REPORT[:BEGIN] + REPORT[END:].replace(b'"run": null', b'"run": ' + inner + b', "questions": []', 1)
    assert apart(moved) == slowly(moved)


@pytest.mark.parametrize("inserted", ['}, {"mrr": 1', '"a": 1}, {"b": 2', '"x": 1}], "y": [{'])
def test_an_object_that_ends_early_is_not_taken_for_two(inserted):
    for cut in (b'"map": ', b'"latency_total_ms": ', b'"qid": '):
        place = REPORT.index(cut, BEGIN)
        data = REPORT[:place] + inserted.encode() + b", " + REPORT[place:]
        assert apart(data) is None
        assert slowly(data) is None


def test_a_report_is_the_same_whether_its_questions_are_read_apart_or_not():
    made = Questions()
    read = accept_apart(CONTRACT.schema, REPORT, DEPTH, made.listed)
    assert from_json(read) == from_json(json.loads(REPORT))


def test_members_that_hang_on_one_another_are_not_read_apart():
    schema = {"properties": {"list": {"items": {"properties": {"inner": {"type": "object", "required": ["a"]}}}}}}
    data = b'{\n  "list": [\n    {\n      "inner": {\n        "a": 1\n      }\n    }\n  ]\n}'
    with pytest.raises(ValueError, match="are not free of one another"):
        accept_apart(schema, data, DEPTH, Listed("list", "inner", str.isalpha, list))
