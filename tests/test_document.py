"""Large documents: what is accepted quickly is what the slow way accepts, with the same value."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import ROOT
from rag_eval.files import report_file, strict_json
from rag_eval.files.contract import Contract
from rag_eval.files.document import accept
from rag_eval.files.ledger import Ledger
from rag_eval.files.source import Reader

REPORT = (ROOT / "tests" / "gold" / "compared" / "report.json").read_bytes()
CONTRACT = Contract("report")
DEPTH = 64


def slowly(data, depth=DEPTH):
    try:
        value = strict_json.parse(data, depth)
    except strict_json.JsonError:
        return None
    return None if list(CONTRACT.findings(value)) else value


def test_a_report_of_ours_is_accepted_quickly():
    assert accept(CONTRACT.schema, REPORT, DEPTH) == slowly(REPORT) is not None


spoiled = st.tuples(
    st.integers(0, len(REPORT) - 1), st.sampled_from(['"', "{", "]", ",", "1", "-", "e9", "\\u0022", "\n", "NaN"])
)


@settings(max_examples=300, derandomize=True, deadline=None, database=None)
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
