"""`rag-eval dataset`: each data set in the shapes that it is published in, samples, licences, and what is refused."""

from __future__ import annotations

import contextlib
import json
import sys
import types

import pytest

SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Normans",
            "paragraphs": [
                {
                    "context": "The Normans gave their name to Normandy, a region in France.",
                    "qas": [
                        {
                            "id": "s1",
                            "question": "Where is Normandy?",
                            "is_impossible": False,
                            "answers": [{"text": "France"}, {"text": "in France"}],
                        },
                        {
                            "id": "s2",
                            "question": "Who found Normandy?",
                            "is_impossible": True,
                            "answers": [],
                            "plausible_answers": [{"text": "x"}],
                        },
                    ],
                }
            ],
        }
    ],
}
SQUAD_ROW = {
    "id": "s1",
    "title": "Normans",
    "context": "A text.",
    "question": "Where?",
    "answers": {"text": ["France"], "answer_start": [1]},
}
HOTPOT = {
    "_id": "h1",
    "question": "Who?",
    "answer": "Arthur's Magazine",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": [["A", 0], ["B", 1]],
    "context": [["A", ["One. ", "Two."]], ["B", ["Three."]], ["C", ["Four."]]],
}
HOTPOT_ROW = {
    **HOTPOT,
    "id": "h1",
    "supporting_facts": {"title": ["A", "B"], "sent_id": [0, 1]},
    "context": {"title": ["A", "B", "C"], "sentences": [["One. ", "Two."], ["Three."], ["Four."]]},
}
MSMARCO = {
    "query_id": 7,
    "query": "how far",
    "query_type": "NUMERIC",
    "answers": ["ten miles"],
    "passages": {"is_selected": [0, 1], "passage_text": ["a", "b"], "url": ["u", "v"]},
}
QASPER = {
    "1911.1": {
        "title": "T",
        "abstract": "A",
        "full_text": [{"section_name": "I", "paragraphs": ["first one", "second one"]}],
        "qas": [
            {
                "question_id": "p1",
                "question": "Which corpus?",
                "answers": [
                    {
                        "answer": {
                            "unanswerable": False,
                            "extractive_spans": ["the corpus"],
                            "yes_no": None,
                            "free_form_answer": "",
                            "evidence": ["second one"],
                        }
                    }
                ],
            },
            {
                "question_id": "p2",
                "question": "Why?",
                "answers": [
                    {
                        "answer": {
                            "unanswerable": True,
                            "extractive_spans": [],
                            "yes_no": None,
                            "free_form_answer": "",
                            "evidence": [],
                        }
                    }
                ],
            },
        ],
    }
}
RAGBENCH = {
    "id": "r1",
    "question": "What?",
    "documents": ["one", "two"],
    "response": "It is two.",
    "all_relevant_sentence_keys": ["1a", "1b"],
    "dataset_name": "covidqa",
}
NQ_OPEN = {"question": "who sang it", "answer": ["Abba", "ABBA Band"]}
NQ = {
    "example_id": 9,
    "question_text": "when",
    "document_text": "It was in May 1970 .",
    "annotations": [
        {"long_answer": {"start_token": 0, "end_token": 6}, "short_answers": [{"start_token": 3, "end_token": 5}]}
    ],
}


def converted(command, tmp_path, name, *records, **more):
    path = tmp_path / f"{name}.json"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    out = tmp_path / "gold.jsonl"
    words = [word for option, value in more.items() for word in (f"--{option}", value)]
    code, _, err = command("dataset", name, path, "--out", out, "--force", *words)
    assert code == 0, err
    assert command("validate", out)[0] == 0
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "record", "qid", "substrings", "citations", "answerable"),
    [
        ("squad_v2", SQUAD, "s1", ["France", "in France"], ["Normans#0"], True),
        ("squad_v2", SQUAD_ROW, "s1", ["France"], None, True),
        ("hotpotqa", HOTPOT, "h1", ["Arthur's Magazine"], ["A", "B"], True),
        ("hotpotqa", HOTPOT_ROW, "h1", ["Arthur's Magazine"], ["A", "B"], True),
        ("msmarco", MSMARCO, "7", ["ten miles"], ["7#1"], True),
        ("msmarco", {**MSMARCO, "answers": ["No Answer Present."]}, "7", [], [], False),
        ("qasper", QASPER, "p1", ["the corpus"], ["1911.1#1"], True),
        ("ragbench", RAGBENCH, "r1", [], ["r1#1"], True),
        ("natural-questions", NQ_OPEN, None, ["ABBA Band"], [], True),
        ("natural-questions", NQ, "9", ["May 1970"], ["9#long"], True),
    ],
)
def test_each_data_set_in_each_of_its_shapes(command, tmp_path, name, record, qid, substrings, citations, answerable):
    row = converted(command, tmp_path, name, record)[0]
    assert qid in (None, row["qid"])
    assert (row["gold_claim_substr"], row["answerable"]) == (substrings, answerable)
    assert citations in (None, row["gold_citations"])


def test_questions_without_an_answer_are_unanswerable(command, tmp_path):
    for name, record in (("squad_v2", SQUAD), ("qasper", QASPER)):
        row = converted(command, tmp_path, name, record)[1]
        assert (row["answerable"], row["gold_citations"], "expected_answer" in row) == (False, [], False)


def test_chunks_and_traces_pair_with_the_gold(command, tmp_path):
    chunks, traces = tmp_path / "corpus.jsonl", tmp_path / "trace.jsonl"
    converted(command, tmp_path, "ragbench", RAGBENCH, chunks=chunks, traces=traces)
    assert [json.loads(line) for line in chunks.read_text().splitlines()] == [
        {"id": "r1#0", "text": "one"},
        {"id": "r1#1", "text": "two"},
    ]
    _, out, _ = command("score", "--gold", tmp_path / "gold.jsonl", "--trace", traces, "--format", "json")
    assert json.loads(out)["metrics"]["recall_all@3"]["value"] == 1.0
    about = json.loads((tmp_path / "gold.jsonl.source.json").read_text())
    assert (about["dataset"], about["licence"], about["questions"]) == ("ragbench", "CC BY 4.0", 1)


def test_the_file_of_the_source_is_not_overwritten_without_force(command, tmp_path):
    converted(command, tmp_path, "msmarco", MSMARCO)
    out, source = tmp_path / "gold.jsonl", tmp_path / "gold.jsonl.source.json"
    out.unlink()
    before = source.read_bytes()
    code, _, err = command("dataset", "msmarco", tmp_path / "msmarco.json", "--out", out, "--seed", "1")
    assert (code, out.exists(), source.read_bytes() == before) == (2, False, True)
    assert f"{source} already exists." in err


def test_a_sample_keeps_the_shares_and_hangs_on_the_seed(command, tmp_path):
    records = [{**MSMARCO, "query_id": n, "answers": ["ten miles"] if n % 4 else []} for n in range(100)]
    item = converted(command, tmp_path, "msmarco", *records, sample="20")
    assert (len(item), sum(not row["answerable"] for row in item)) == (20, 5)
    assert item == converted(command, tmp_path, "msmarco", *reversed(records), sample="20")[::-1]
    assert item != converted(command, tmp_path, "msmarco", *records, sample="20", seed="1")


@pytest.fixture
def write_parquet(tmp_path, monkeypatch):
    """Write a Parquet file; without pyarrow, put a double of its reader in place that gives the same rows."""
    path = tmp_path / "rows.parquet"

    def write(rows):
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            path.write_text(json.dumps(rows), "utf-8")
            double = types.SimpleNamespace(ParquetFile=lambda _: contextlib.nullcontext(_Batches(rows)))
            monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace(parquet=double, ArrowException=OSError))
            monkeypatch.setitem(sys.modules, "pyarrow.parquet", double)
        else:
            parquet.write_table(pa.Table.from_pylist(rows), path)
        return path

    return write


class _Batches:
    def __init__(self, rows):
        self.rows = rows

    def iter_batches(self, batch_size):
        for start in range(0, len(self.rows), batch_size):
            yield types.SimpleNamespace(to_pylist=lambda at=start: self.rows[at : at + batch_size])


def test_parquet_is_read(command, tmp_path, write_parquet):
    code, _, err = command("dataset", "squad_v2", write_parquet([SQUAD_ROW]), "--out", tmp_path / "gold.jsonl")
    assert (code, "1 question, 0 unanswerable" in err) == (0, True)


def test_a_problem_in_parquet_has_the_number_of_its_row(command, tmp_path, write_parquet):
    rows = [{**SQUAD_ROW, "id": f"s{number}"} for number in range(1, 1005)]
    path = write_parquet([*rows[:1002], {**rows[1002], "question": None}, rows[1003]])
    code, _, err = command("dataset", "squad_v2", path, "--out", tmp_path / "gold.jsonl")
    assert (code, err.count("rows.parquet:")) == (2, 1)
    assert "rows.parquet:1003: is not a record of this data set" in err


def test_parquet_that_cannot_be_read_is_a_problem(command, tmp_path, monkeypatch):
    class ArrowError(Exception):
        pass

    def broken(_):
        raise ArrowError("Magic bytes not found.")

    path = tmp_path / "rows.parquet"
    path.write_bytes(b"garbage")
    double = types.SimpleNamespace(ParquetFile=broken)
    monkeypatch.setitem(sys.modules, "pyarrow", types.SimpleNamespace(parquet=double, ArrowException=ArrowError))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", double)
    code, _, err = command("dataset", "squad_v2", path, "--out", tmp_path / "gold.jsonl")
    why = "cannot be read as Parquet: Magic bytes not found. Check the path, or fetch the file again."
    assert (code, err, (tmp_path / "gold.jsonl").exists()) == (2, f"{path}: {why}\n", False)


def test_a_download_says_what_it_fetches(command, tmp_path, monkeypatch):
    asked = []

    def hf_hub_download(repository, name, *, repo_type):
        asked.append((repository, name, repo_type))
        path = tmp_path / "fetched.json"
        path.write_text(json.dumps(QASPER))
        return str(path)

    hub = types.ModuleType("huggingface_hub")
    hub.hf_hub_download = hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    code, _, err = command("dataset", "qasper", "--download", "--out", tmp_path / "gold.jsonl")
    assert (code, "fetching qasper-dev-v0.3.json of allenai/qasper (CC BY 4.0)" in err) == (0, True)
    assert asked == [("allenai/qasper", "qasper-dev-v0.3.json", "dataset")]

    def offline(*_, **__):
        raise OSError("The hub cannot be reached.")

    hub.hf_hub_download = offline
    code, _, err = command("dataset", "qasper", "--download", "--out", tmp_path / "other.jsonl")
    why = "allenai/qasper cannot be fetched: The hub cannot be reached. Try again, or name local files.\n"
    assert (code, err.endswith(f"\nrag-eval: {why}")) == (2, True), err


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"data": [1]}', '{"context": 1}', "{", '{"id": NaN}'])
def test_what_is_no_data_set_is_refused(command, tmp_path, text):
    path = tmp_path / "in.json"
    path.write_text(text)
    for name in ("squad_v2", "hotpotqa", "msmarco", "qasper", "ragbench", "natural-questions"):
        code, out, err = command("dataset", name, path, "--out", tmp_path / "gold.jsonl")
        assert (code, out, "Traceback" in err, str(path) in err) == (2, "", False, True), (name, err)


def test_a_record_of_another_shape_is_named_by_its_line(command, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"context": 1}\n\n{"qas": 2}\n')
    code, _, err = command("dataset", "hotpotqa", path, "--out", tmp_path / "gold.jsonl")
    assert code == 2
    for line in (1, 3):
        assert f"{path}:{line}: is not a record of this data set: " in err
    assert err.count("Use the files as the data set publishes them.") == 2


def test_names_and_files_are_asked_for(command, tmp_path):
    assert "unknown data set" in command("dataset", "squad", "x")[2]
    assert "Name the files" in command("dataset", "squad_v2")[2]


def test_outputs_of_one_name_are_refused(command, tmp_path):
    path, gold = tmp_path / "in.json", tmp_path / "gold.jsonl"
    path.write_text(json.dumps(SQUAD))
    code, _, err = command("dataset", "squad_v2", path, "--out", gold, "--chunks", f"{tmp_path}/./gold.jsonl")
    assert (code, "two of --out, --chunks and --traces name the same file" in err, gold.exists()) == (2, True, False)


def test_outputs_are_written_together_or_not_at_all(command, tmp_path):
    path, gold = tmp_path / "in.json", tmp_path / "gold.jsonl"
    path.write_text(json.dumps(SQUAD))
    code, _, err = command("dataset", "squad_v2", path, "--out", gold, "--chunks", path / "chunks.jsonl")
    assert (code, "chunks.jsonl cannot be written" in err, gold.exists()) == (2, True, False)


def test_traces_of_a_set_without_answers_are_refused_before_anything_is_written(command, tmp_path):
    path, gold, chunks = (tmp_path / name for name in ("in.json", "gold.jsonl", "corpus.jsonl"))
    path.write_text(json.dumps(SQUAD))
    words = ("--out", gold, "--chunks", chunks, "--traces", tmp_path / "trace.jsonl")
    code, _, err = command("dataset", "squad_v2", path, *words)
    assert (code, "squad_v2 has no answers of a system" in err) == (2, True)
    assert [file.name for file in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(("count", "unanswerable"), [(9, 1), (9, 3), (9, 6), (9, 8), (10, 3), (10, 5)])
def test_a_sample_has_its_size_and_the_share_of_each_kind(command, tmp_path, count, unanswerable):
    """A kind has at least one question in it, however rare it is."""
    records = [squad(f"s{n}", is_impossible=n < unanswerable) for n in range(count)]
    everything = converted(command, tmp_path, "squad_v2", *records)
    for size in range(1, count + 2):
        drawn = converted(command, tmp_path, "squad_v2", *records, sample=size)
        kinds = [row["answerable"] for row in drawn].count(False)
        assert len(drawn) == min(size, count)
        assert [row for row in everything if row in drawn] == drawn, "in the order of the data set"
        assert abs(kinds - min(size, count) * unanswerable / count) <= 1
        assert size == 1 or 0 < kinds < len(drawn)


def squad(qid, *, is_impossible):
    answers = [] if is_impossible else [{"text": "ten miles", "answer_start": 0}]
    asked = {"id": qid, "question": f"How far is {qid}?", "is_impossible": is_impossible, "answers": answers}
    return {"data": [{"title": "T", "paragraphs": [{"context": "ten miles", "qas": [asked]}]}]}
