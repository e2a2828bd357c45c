"""Reports pair gold items by their content, however they are written; sign-off signs their bytes."""

from __future__ import annotations

import gzip
import json

import pytest

from cases import gold_row, trace_row, write_rows
from rag_eval import api
from rag_eval.contract import item_hash
from rag_eval.readers.gold_file import sources
from table import each_row

GRADES = {"b": 2, "a": 1}
MORE = {"relevance_grades": GRADES, "meta": {"x": 5, "y": "v1.0"}, "min_citations": 1, "latency_budget_ms": {"e2e": 9}}
ROWS = [gold_row(qid=f"Q{i}", question=f"Wie groß ist {i}?", **MORE) for i in range(3)]
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
    "compressed": gzip.compress(b"\n".join(LINES)),
    "space inside": b"\n".join(LINES).replace(b'", "', b'" ,\t"'),
    "escapes": "\n".join(json.dumps(row) for row in ROWS).encode(),
    "another order of keys": "\n".join(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in ROWS).encode(),
    "other numbers": b"\n".join(LINES).replace(b": 5,", b": 5.0,").replace(b": 2", b": 2e0").replace(b": 1", b": 1.0"),
    "an unknown field": b"\n".join(LINES).replace(b'{"qid"', b'{"seen_by": "ann", "qid"'),
}


def content_hashes(folder, blob):
    """The hashes of the gold items in the report of a run."""
    (folder / "gold.jsonl").write_bytes(blob)
    trace = write_rows(folder / "trace.jsonl", [trace_row(qid=row["qid"], answer="not in context") for row in ROWS])
    return [case.content_hash for case in api.score(folder / "gold.jsonl", trace).questions]


@each_row("form, blob", FORMS.items())
def test_the_same_content_has_the_same_hash_in_a_report(tmp_path_factory, form, blob):
    first, now = (content_hashes(tmp_path_factory.mktemp("run"), data) for data in (FORMS["lines"], blob))
    assert now == first, form
    assert len(set(now)) == 3


@each_row(
    "old, new",
    [
        (b'"Wie gro', b'"Wie  gro'),
        (b'"x": 5', b'"x": 5.5'),
        (b'"x": 5', b'"x": "5"'),
        (b'"v1.0"', b'"v1"'),
        (b'"min_citations": 1', b'"min_citations": 2'),
        (b'"b": 2', b'"b": 1'),
    ],
)
def test_other_content_has_another_hash(tmp_path_factory, old, new):
    lines = FORMS["lines"]
    assert old in lines
    first, now = (content_hashes(tmp_path_factory.mktemp("run"), data) for data in (lines, lines.replace(old, new)))
    assert set(now).isdisjoint(first), new


@pytest.mark.parametrize("blob", [FORMS["lines"], ARRAY.encode()], ids=["lines", "an array"])
def test_a_check_out_with_other_line_ends_has_the_same_hashes(blob):
    def hashes(data):
        return [item_hash(item) for _, item in sources(data)]

    assert hashes(blob.replace(b"\n", b"\r\n")) == hashes(blob)
