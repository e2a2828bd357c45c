"""The hashes of gold items in a report are those that sign-off has, however the file is written."""

from __future__ import annotations

import gzip
import json

import pytest

from cases import gold_row, trace_row, write_rows
from rag_eval import api
from rag_eval.contract import item_hash
from rag_eval.readers.gold_file import sources

ROWS = [gold_row(qid=f"Q{i}", question=f"Wie groß ist {i}?") for i in range(3)]
LINES = [json.dumps(row, ensure_ascii=False).encode() for row in ROWS]
ARRAY = json.dumps(
    [{"qid": row["qid"], "q": row["question"], "answerable": True, "gold_ids": []} for row in ROWS], indent=1
)
FORMS = {
    "lines": b"\n".join(LINES) + b"\n",
    "no newline at the end": b"\n".join(LINES),
    "carriage returns": b"\r\n".join(LINES) + b"\r\n",
    "blank lines": b"\n\n" + b"\n \n".join(LINES) + b"\n\n",
    "a byte order mark": b"\xef\xbb\xbf" + b"\n".join(LINES),
    "space around": b"\n".join(b"  " + line + b" " for line in LINES),
    "an array": ARRAY.encode(),
    "an array with carriage returns": ARRAY.replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_each_item_has_the_hash_that_sign_off_gives_it(tmp_path, form, packed):
    blob = FORMS[form]
    gold = tmp_path / "gold.jsonl"
    gold.write_bytes(gzip.compress(blob) if packed else blob)
    trace = write_rows(tmp_path / "trace.jsonl", [trace_row(qid=row["qid"], answer="not in context") for row in ROWS])
    report = api.score(gold, trace)
    assert [case.qid for case in report.questions] == ["Q0", "Q1", "Q2"]
    assert [case.gold_sha256 for case in report.questions] == [item_hash(item) for _, item in sources(blob)]


@pytest.mark.parametrize("form", ["lines", "an array"])
def test_a_check_out_with_other_line_ends_has_the_same_hashes(form):
    def hashes(blob):
        return [item_hash(item) for _, item in sources(blob)]

    assert hashes(FORMS[form].replace(b"\n", b"\r\n")) == hashes(FORMS[form])
