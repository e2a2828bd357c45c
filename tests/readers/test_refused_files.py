"""Every row of tests/tables/refused.jsonl is refused at its place, in its words, and with what to do.

A row has the kind of a file, its text (or its bytes as hex), the place that the problem begins with, and words in it.
"""

from __future__ import annotations

import json

import pytest

from cases import ROOT
from seams import read
from table import each_row

ROWS = [json.loads(line) for line in (ROOT / "tests/tables/refused.jsonl").read_text("utf-8").splitlines()]


@each_row("row", ROWS, ids=lambda row: f"{row['kind']} {row.get('text', row.get('hex'))[:60]!r}")
def test_a_bad_file_is_refused_at_its_place(row, tmp_path):
    data = bytes.fromhex(row["hex"]) if "hex" in row else row["text"].encode()
    value, problems = read(row["kind"], data, tmp_path)
    assert value is None
    assert [problem for problem in problems if problem.startswith(row["place"]) and row["words"] in problem], problems


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("yaml", "a: 1\n"),
        ("gates", "version: 1\n"),
        ("gold", '{"qid": "A", "question": "q", "answerable": false, "gold_claim_substr": [], "gold_citations": []}\n'),
        ("trace", '{"qid": "A", "answer": "x"}\n'),
    ],
)
def test_a_good_file_is_read(kind, text, tmp_path):
    value, problems = read(kind, text.encode(), tmp_path)
    assert value
    assert problems == []
