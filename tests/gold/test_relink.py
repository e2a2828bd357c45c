"""Gold after a new chunking: ids that changed are found against a baseline, and `gold relink` proposes the new ones."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

import rag_eval
from cases import gold_row, write_rows
from seams import main, render

TEXT = "The notice period is thirty days for all staff. Part-time staff count hours. It begins on the first of a month."
PARTS = [TEXT[:47], TEXT[48:76], TEXT[77:]]


def old(number):
    return {"id": f"m#{number}", "doc_id": f"m{number}", "text": f"Article {number}. {TEXT} See form {number}."}


def new(number):
    """Three smaller chunks of the same text."""
    first, *others = PARTS
    texts = [f"Article {number}. {first}", *others[:-1], f"{others[-1]} See form {number}."]
    return [{"id": f"m{number}-{n}", "doc_id": f"m{number}", "text": text} for n, text in enumerate(texts)]


def trace(number, chunks):
    ids = [chunk["id"] for chunk in chunks]
    answer = {"claim": "It is thirty days.", "citations": ids[:1]}
    return {"qid": f"Q{number}", "retrieved_ids": ids, "chunks": chunks, "answer_json": answer}


def write(folder, size=8):
    items = [
        gold_row(qid=f"Q{n}", question=f"{n}?", gold_claim_substr=["thirty days"], gold_citations=[f"m#{n}"])
        for n in range(size)
    ]
    write_rows(folder / "gold.jsonl", items)
    write_rows(folder / "old.jsonl", [trace(n, [old(n)]) for n in range(size)])
    write_rows(folder / "new.jsonl", [trace(n, new(n)) for n in range(size)])


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path


def relink(*options):
    return main(["gold", "relink", "--gold", "gold.jsonl", "--old", "old.jsonl", "--new", "new.jsonl", *options])


def test_the_new_chunk_that_has_the_claim_is_proposed_and_written(files, capsys):
    before = (files / "gold.jsonl").read_bytes()
    assert relink() == 0
    shown = capsys.readouterr().out
    assert "| `Q3` | `m#3` | `m3-0` |" in shown
    assert (files / "gold.jsonl").read_bytes() == before  # nothing is written unasked
    assert relink("--write") == 0
    rows = [json.loads(line) for line in (files / "gold.jsonl").read_text().splitlines()]
    assert [row["gold_citations"] for row in rows] == [[f"m{n}-0"] for n in range(8)]
    assert relink() == 0  # and there is no more to change
    assert "Nothing to relink: " in capsys.readouterr().out


def test_only_the_lines_that_change_are_written_anew(files):
    lines = (files / "gold.jsonl").read_bytes().split(b"\n")
    remaining = b'{"gold_citations":  [ "other" ], "qid":"X","question":"?","answerable":true,"gold_claim_substr":[]}'
    (files / "gold.jsonl").write_bytes(b"\r\n".join([*lines[:-1], remaining]))
    assert relink("--write") == 1  # nobody knows "other"
    after = (files / "gold.jsonl").read_bytes().split(b"\r\n")
    assert after[-1] == remaining
    assert b"m0-0" in after[0]


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_letters_and_spaces_are_written_as_they_were(files, separators):
    item = gold_row(qid="Q1", question="K\u00fcndigung?", gold_claim_substr=["thirty days"], gold_citations=["m#1"])
    line = json.dumps(item, ensure_ascii=False, separators=separators)
    (files / "gold.jsonl").write_text(f"{line}\n", "utf-8")
    assert relink("--write") == 0
    assert (files / "gold.jsonl").read_text("utf-8") == line.replace('"m#1"', '"m1-0"') + "\n"


@pytest.mark.parametrize(("words", "code"), [(4, 0), (3, 1)])
def test_runs_of_four_words_are_text_that_two_chunks_share(files, capsys, words, code):
    """Half of the runs of the shorter text are enough."""
    text = [f"word{n}" for n in range(8)]
    changed = [*text[: words + 1], *(f"other{n}" for n in range(2))]
    (files / "gold.jsonl").write_text(json.dumps(gold_row(qid="Q1", gold_citations=["a"])) + "\n")
    write_rows(files / "old.jsonl", [{"id": "a", "text": " ".join(text)}])
    write_rows(files / "new.jsonl", [{"id": "b", "text": " ".join(changed)}])
    assert relink() == code, capsys.readouterr().out


def test_an_id_that_now_names_another_text_is_relinked_too(files):
    write_rows(files / "new.jsonl", [trace(n, [{**old((n + 1) % 8), "id": f"m#{n}"}]) for n in range(8)])
    assert relink("--write") == 0
    rows = [json.loads(line) for line in (files / "gold.jsonl").read_text().splitlines()]
    assert [row["gold_citations"] for row in rows] == [[f"m#{(n - 1) % 8}"] for n in range(8)]


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        ({"rel_path": "{}.md", "heading_path": "A > B"}, {"rel_path": "{}.md", "heading_path": "A >  B"}, "same place"),
        ({"doc_id": "d{}", "section": "2"}, {"doc_id": "d{}", "section": "2"}, "same place"),
        ({"doc_id": "d{}", "section": "2"}, {"doc_id": "d{}", "section": "3"}, "no similar chunk"),
        ({"doc_id": "d{}", "section": "2"}, {"doc_id": "e{}", "section": "2"}, "no similar chunk"),
        ({"doc_id": "d{}"}, {"doc_id": "d{}"}, "no similar chunk"),
        ({"section": "2"}, {"section": "2"}, "no similar chunk"),
        ({"rel_path": "{}.md"}, {"rel_path": "{}.md"}, "no similar chunk"),
    ],
)
def test_a_place_in_a_document_does_where_no_text_is_known(files, capsys, before, after, by):
    for name, fields, prefix in (("old", before, "m#"), ("new", after, "x")):
        chunks = [{"id": f"{prefix}{n}", **{key: text.format(n) for key, text in fields.items()}} for n in range(8)]
        write_rows(files / f"{name}.jsonl", chunks)
    same = by == "same place"
    assert relink() == (0 if same else 1)
    assert f"| `Q0` | `m#0` | `{'x0' if same else '–'}` | `{by}` |" in capsys.readouterr().out


def test_the_first_text_of_a_chunk_counts(files, capsys):
    known, *others = (trace(n, [old(n)]) for n in range(8))
    blank, other = {"id": "m#0"}, {**old(0), "text": "A page on snails, and nothing else on it."}
    write_rows(files / "old.jsonl", [trace(0, [blank]), known, trace(0, [other]), trace(0, [blank]), *others])
    assert relink() == 0
    assert "| `Q0` | `m#0` | `m0-0` |" in capsys.readouterr().out


def test_a_chunk_that_is_gone_is_named_and_stays(files, capsys):
    write_rows(files / "new.jsonl", [{"id": "z", "text": "Something else altogether is written here, on snails."}])
    assert relink("--write") == 1
    shown = capsys.readouterr().out
    assert "`no similar chunk`" in shown
    assert "New ids for 0 of 8 old chunk ids, in 0 items." in shown


def zstd(data):
    library = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return library.compress(data)


def an_array(data):
    items = [json.loads(line) for line in data.splitlines()]
    return json.dumps(
        [
            {"qid": row["qid"], "q": row["question"], "answerable": True, "gold_ids": row["gold_citations"]}
            for row in items
        ]
    ).encode()


@pytest.mark.parametrize(
    ("name", "convert"), [("g.jsonl.gz", gzip.compress), ("g.jsonl.zst", zstd), ("g.json", an_array)]
)
def test_only_plain_json_lines_are_written(files, capsys, name, convert):
    data = convert((files / "gold.jsonl").read_bytes())
    (files / name).write_bytes(data)
    assert relink("--gold", name) == 0
    assert relink("--gold", name, "--write") == 2
    assert f"{name} is not JSON Lines, which --write needs" in capsys.readouterr().err
    assert (files / name).read_bytes() == data


def test_bad_input_is_a_problem_with_its_line(files, capsys):
    (files / "new.jsonl").write_text('{"id": "a", "text": 3}\n')
    assert relink() == 2
    assert "new.jsonl:1: is not a chunk or a trace with chunks" in capsys.readouterr().err


# --- against a baseline -----------------------------------------------------------------------------------------------


def found(files, gates, trace="new.jsonl"):
    base = rag_eval.score("gold.jsonl", "old.jsonl")
    (files / "base.json").write_text(render(base, "json"))
    head = "version: 1\nbaseline: {report: base.json, trace: old.jsonl}\n"
    (files / "g.yml").write_text(head + gates)
    report = rag_eval.score("gold.jsonl", trace, "g.yml")
    return [(finding.level, finding.fix) for finding in report.findings if finding.code == "ids-changed"]


@pytest.mark.parametrize(
    ("gates", "level"),
    [
        ("gates: {recall@5: {max_drop: 0.02}}\n", "error"),
        ("gates: {answered_rate: {max_drop: 0.02}}\n", "warning"),
        ("gates: {recall@5: {max_drop: 0.02}}\nintegrity: {ids-changed: warning}\n", "warning"),
    ],
)
def test_changed_ids_are_found_against_the_baseline(files, gates, level):
    ((found_level, hint),) = found(files, gates)
    assert found_level == level
    assert "rag-eval gold relink" in hint


def test_after_the_relink_the_baseline_is_what_has_other_ids(files):
    gates = "gates: {recall@5: {max_drop: 0.02}}\n"
    found(files, gates)
    relink("--write")
    report = rag_eval.score("gold.jsonl", "new.jsonl", "g.yml")
    (item,) = [finding for finding in report.findings if finding.code == "ids-changed"]
    assert "The gold set has these ids" in item.fix
    assert not report.passed


def test_another_retriever_over_the_same_chunks_is_none(files):
    rows = [trace(n, [{"id": f"other#{n}"}, {"id": f"else#{n}"}, old(n)]) for n in range(8)]
    write_rows(files / "new.jsonl", rows)
    assert found(files, "gates: {recall@5: {max_drop: 0.02}}\n") == []
