"""`rag-eval import`, and what it makes of each form beside what reading the form directly gives."""

from __future__ import annotations

import errno
import json
import os
import shutil

import pytest
from hypothesis import given
from msgspec.structs import replace

from cases import ROOT, read_rows, write_rows
from importing import CASES, HERE, LABELS, RUN, golds
from rag_eval import api
from rag_eval.contract import LABEL_FILES, item_hash
from rag_eval.importers import IMPORTERS, Account
from rag_eval.importers.frameworks import example08_trace as converted
from rag_eval.readers.gold_file import read_gold_set
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.jsonl import read_trace_rows
from rag_eval.readers.validation import check, file_kind
from reading import put, reader
from seams import Contract, Trace
from strategies import trace_fields
from table import each_row

GOLD, TRACE = Contract("gold"), Contract("trace")


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(LABELS, tmp_path / "labels")


@pytest.mark.parametrize("out", ["./", ".", "/"])
def test_a_folder_is_no_file_to_write(command, out):
    code, output, err = command("import", "example08", HERE / "qaset.json", "--out", out, "--force")
    assert (code, output, "is a folder. Name a file to write" in err) == (2, "", True)


def test_auto_refuses_a_kind_that_the_format_does_not_have(command, tmp_path):
    """Otherwise ``--as gold`` would write traces into the gold file."""
    path, out = tmp_path / "runs.jsonl", tmp_path / "gold.jsonl"
    path.write_text('{"id": "1", "trace_id": "1", "run_type": "chain", "inputs": {}, "outputs": {}}\n')
    code, _, err = command("import", "auto", path, "--as", "gold", "--out", out)
    fix = "Remove --as gold to make a trace file, or import a file of langsmith-dataset\n"
    assert (code, err.endswith(fix), out.exists()) == (2, True, False), err
    path.write_text('{"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}, "dataset_id": "1"}\n')
    code, _, err = command("import", "auto", path, "--as", "trace")
    assert (code, "langsmith-dataset, which has no traces" in err) == (2, True), err


@pytest.mark.parametrize("content", ["", " \n", "[]"])
def test_auto_says_that_a_file_is_empty(command, tmp_path, content):
    (tmp_path / "empty.json").write_text(content)
    code, _, err = command("import", "auto", tmp_path / "empty.json")
    assert (code, err) == (2, f"{tmp_path / 'empty.json'}: is empty. Export it again.\n")


def test_a_file_in_another_encoding_has_one_problem(command, tmp_path):
    (tmp_path / "answers.csv").write_bytes("frage,antwort\nWarum so groß?,So.\n".encode("cp1252"))
    code, _, err = command("import", "table", tmp_path / "answers.csv", "--suggest-map")
    assert (code, err.count("\n"), ":2: is not UTF-8" in err) == (2, 1, True), err


def test_the_number_of_rows_is_printed_after_they_are_written(command, tmp_path):
    path, out = tmp_path / "samples.jsonl", tmp_path / "out.jsonl"
    path.write_text('{"user_input": "Why?", "response": "So.", "reference": "Thus."}\n')
    assert command("import", "ragas-trace", path, "--out", out)[2].endswith(f"wrote {out}: 1 trace\n")
    assert command("import", "ragas", path, "--out", out, "--force")[2].endswith(f"wrote {out}: 1 gold item\n")
    assert command("import", "ragas", path, "--out", out, "--force", "--quiet")[2] == ""


@pytest.mark.parametrize(
    ("answer", "form"),
    [("So. [1]", "numbers"), ("So. [c1]", "brackets"), ("So. [3]", ""), ("So. [see below]", ""), ("So.", "")],
)
def test_citations_that_are_not_read_are_noted(command, tmp_path, answer, form):
    path = tmp_path / "samples.jsonl"
    sample = {"user_input": "Why?", "response": answer, "retrieved_contexts": ["a"], "retrieved_context_ids": ["c1"]}
    path.write_text(json.dumps(sample))
    err = command("import", "ragas-trace", path)[2]
    assert (f"add --citations {form}\n" in err) == bool(form), err
    assert "not read" not in command("import", "ragas-trace", path, "--citations", "numbers")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["mlflow", "x.json", "--as", "gold"],
            "mlflow only makes a trace file. Remove --as gold, or name another format.",
        ),
        (["beir", "x.jsonl", "--as", "trace"], "beir only makes a gold file. Remove --as trace"),
        (["rag-server-run", "x.json", "--as", "gold"], "rag-server-run only makes a report file. Remove --as gold"),
        (["ragas", "x.jsonl", "--as", "trace"], "ragas only makes a gold file. Remove --as trace"),
        (["my answers.csv"], "'my answers.csv' is not a format: the first word names the format"),
        (["my answers.csv"], "Write: rag-eval import auto 'my answers.csv'"),
        (["a.csv", "b.csv"], "Write: rag-eval import auto a.csv b.csv"),
        (["ragass"], "unknown format 'ragass'. Did you mean 'ragas'?"),
        (
            ["csv"],
            "unknown format 'csv'. Use auto, which recognises the file, or table or table-gold for a file of your own.",
        ),
        (
            ["ragas", "a.csv", "--map", "m.yml"],
            "tables, not for ragas. Remove them, or write: rag-eval import table a.csv --map m.yml",
        ),
        (["ragas", "a.csv", "--suggest-map"], "or write: rag-eval import table a.csv --suggest-map"),
        (["ragas", "a.csv", "--corpus", "c.jsonl"], "--answers and --corpus are only for TREC runs."),
    ],
)
def test_a_format_that_cannot_be_is_refused(command, words, message):
    code, out, err = command("import", *words)
    assert (code, out, message in err) == (2, "", True), err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "A1", "a": ', "FILE:1: ends in the middle of a JSON value. The file looks cut off"),
        ('{"id": "A1",\n "a": }', "FILE:2: is not valid JSON: invalid character."),
        ('[{"id": "A1"},\n{"a" 1}]', "FILE:2: is not valid JSON: expected ':'."),
        ('{"id": "A1"}\n{"id": "A2"}\n{"id": A3}\n', "FILE:3: is not valid JSON: invalid character."),
        ('{"id": "A1"}', "has no known format"),
    ],
)
def test_auto_names_the_line_of_invalid_json(command, tmp_path, text, message):
    path = tmp_path / "export.json"
    path.write_text(text)
    code, out, err = command("import", "auto", path)
    assert (code, out, message in err.replace(str(path), "FILE")) == (2, "", True), err


FIX = "Check the path, its permissions and the free space, or write to another place."


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EBUSY, errno.EISDIR, errno.EROFS])
def test_a_file_that_cannot_be_written_is_named_with_the_reason(command, tmp_path, monkeypatch, code):
    def fail(self, target):
        raise OSError(code, os.strerror(code), self)

    monkeypatch.setattr("pathlib.Path.replace", fail)
    out = tmp_path / "gold.jsonl"
    exit_code, _, err = command("import", "example08", HERE / "qaset.json", "--out", out)
    assert (exit_code, list(tmp_path.iterdir())) == (2, [])
    assert f"{out} cannot be written: {os.strerror(code).lower()}. {FIX}\n" in err


@pytest.mark.parametrize("name", ["file/gold.jsonl", "file/below/gold.jsonl", f"{'x' * 300}.jsonl"])
def test_an_impossible_path_is_refused(command, tmp_path, name):
    (tmp_path / "file").write_text("mine")
    code, _, err = command("import", "example08", HERE / "qaset.json", "--out", tmp_path / name)
    assert (code, FIX in err, (tmp_path / "file").read_text()) == (2, True, "mine"), err


# --- read directly and imported ---------------------------------------------------------------------------------------

GOLD_FORMS = [
    pytest.param("labels", LABELS, HERE / "labels-trace.jsonl", id="labels"),
    pytest.param("example08", HERE / "qaset.json", HERE / "qaset-trace.jsonl", id="example08"),
    pytest.param("rag-server-golden", HERE / "golden_qa.json", HERE / "golden-trace.jsonl", id="golden"),
]


@pytest.mark.parametrize(("form", "path", "trace"), GOLD_FORMS)
def test_the_form_scores_as_what_is_imported_from_it(command, tmp_path, form, path, trace):
    out = tmp_path / "gold.jsonl"
    assert command("import", form, path, "--out", out)[:2] == (0, "")
    item, other = api.score(path, trace), api.score(out, trace)
    assert item.metrics == other.metrics
    assert item.labels == other.labels
    cases = [[replace(case, gold_line=0, content_hash="") for case in report.questions] for report in (item, other)]
    assert cases[0] == cases[1]


@pytest.mark.parametrize(("form", "path", "trace"), GOLD_FORMS)
def test_what_is_imported_keeps_our_contract_and_is_the_same_each_time(command, tmp_path, form, path, trace):
    code, text, _ = command("import", form, path)
    content = [json.loads(line) for line in text.splitlines()]
    assert (code, [list(GOLD.faults(row)) for row in content]) == (0, [[] for _ in content])
    (tmp_path / "gold.jsonl").write_text(text, encoding="utf-8")
    assert command("validate", tmp_path / "gold.jsonl")[0] == 0
    assert command("import", form, path)[1] == text


def test_items_of_a_folder_have_the_hashes_of_the_lines_that_are_imported(command, tmp_path):
    out = tmp_path / "gold.jsonl"
    command("import", "labels", LABELS, "--out", out)
    hashes = [item_hash(line) for line in out.read_bytes().splitlines()]
    assert list(read_gold_set(reader(), str(LABELS)).hashes.values()) == hashes
    assert list(read_gold_set(reader(), str(out)).hashes.values()) == hashes


def test_items_of_a_golden_set_have_hashes_of_their_own_bytes():
    items = golds(HERE / "golden_qa.json")[0]
    hashes = read_gold_set(reader(), str(HERE / "golden_qa.json")).hashes
    assert list(hashes) == list(items)
    assert len(set(hashes.values())) == 3


@pytest.mark.parametrize(("form", "path", "trace"), GOLD_FORMS)
def test_it_is_valid_and_lint_and_stats_read_it(command, form, path, trace):
    result = reader()
    assert check(result, str(path)).endswith("not")
    assert result.ledger.problems == []
    for words in (["gold", "lint", "--gold", path, "--trace", trace], ["gold", "stats", "--gold", path]):
        assert command(*words)[0] == 0


# --- traces with free-text answers ------------------------------------------------------------------------------------


def test_free_text_traces_come_to_the_traces_that_they_are_read_as(command, tmp_path):
    out = tmp_path / "trace.jsonl"
    assert command("import", "example08-trace", HERE / "qaset.json", HERE / "qaset-trace.jsonl", "--out", out)[0] == 0
    result = list(read_trace_rows(reader(), str(out)))
    assert [trace.qid for trace, _ in result] == ["e1", "e2", "e3"]
    given = read_trace_rows(reader(), str(HERE / "qaset-trace.jsonl"))
    for (trace, row), (given_trace, _) in zip(result, given, strict=True):
        assert list(TRACE.faults(row)) == []
        for name in ("claim", "citations", "retrieved", "chunks", "line"):
            assert getattr(trace, name) == getattr(given_trace, name)
    assert result[0][1]["answer_json"]["citations"] == ["pump#3", "pump#1"]
    assert "citations" not in result[2][1]["answer_json"]
    direct = api.score(HERE / "qaset.json", HERE / "qaset-trace.jsonl")
    assert api.score(HERE / "qaset.json", out).metrics == direct.metrics


@given(trace_fields)
def test_a_trace_means_the_same_before_and_after(fields):
    row = {"q": "How long?", **fields}
    made = converted(row, "Q1", Account())
    assert list(TRACE.faults(made)) == []
    before, after = (Trace.from_row(item, "Q1", 1) for item in (row, made))
    for name in ("claim", "citations", "retrieved", "answered", "error", "abstained", "chunks", "flags", "latency"):
        assert getattr(after, name) == getattr(before, name)


def test_a_trace_whose_question_nobody_asked_is_a_problem(command, tmp_path):
    path = write_rows(tmp_path / "t.jsonl", [{"q": "What?", "answer": "x"}, {"q": "Who sells it?", "answer": "We."}])
    code, out, err = command("import", "example08-trace", HERE / "qaset.json", path)
    assert (code, out) == (2, "")
    assert err.startswith(f"{path}:1: no gold question is 'What?' to the letter. ")
    assert len(err.splitlines()) == 1


def test_an_id_that_a_trace_has_already_is_kept(command, tmp_path):
    path = write_rows(tmp_path / "t.jsonl", [{"case_id": "e2", "q": "other words", "answer": "We.", "citations": []}])
    row = json.loads(command("import", "example08-trace", HERE / "qaset.json", path)[1])
    assert row == {"qid": "e2", "q": "other words", "answer_json": {"claim": "We.", "citations": []}}


# --- the command ------------------------------------------------------------------------------------------------------


def test_every_format_is_in_the_help_and_has_its_own_module(command):
    help_text = command("import", "--help")[1]
    for name, importer in IMPORTERS.items():
        assert f"  {name} " in help_text
        assert (ROOT / "src" / "rag_eval" / "importers" / f"{importer.module}.py").exists()


def test_an_unknown_format_is_asked_back(command):
    assert command("import", "label", "x")[2] == "rag-eval: unknown format 'label'. Did you mean 'labels'?\n"
    assert "Known formats: otlp, " in command("import", "parquet", "x")[2]


def test_a_file_that_is_there_is_written_over_only_when_that_is_asked_for(command, tmp_path):
    out = tmp_path / "gold.jsonl"
    out.write_text("mine")
    code, _, err = command("import", "labels", LABELS, "--out", out)
    assert (code, out.read_text()) == (2, "mine")
    assert "already exists. Name another file" in err
    assert command("import", "labels", LABELS, "--out", out, "--force")[0] == 0
    assert len(read_rows(out)) == 5


def test_nothing_is_written_where_anything_is_wrong(command, folder, tmp_path):
    with (folder / CASES).open("a") as file:
        file.write('{"case_id": "k01", "query": "Again?"}\n')
    out = tmp_path / "gold.jsonl"
    code, text, err = command("import", "labels", folder, "--out", out)
    assert (code, text, out.exists()) == (2, "", False)
    assert err.startswith(f"{folder}/cases.jsonl:6: /case_id: ")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["labels", "a", "b"], "labels takes 1 path, not 2. Write: rag-eval import labels FOLDER"),
        (
            ["example08-trace", "a"],
            "example08-trace takes 2 paths, not 1. Write: rag-eval import example08-trace qaset.json trace.jsonl",
        ),
    ],
)
def test_the_number_of_files_is_that_of_the_form(command, words, hint):
    code, _, err = command("import", *words)
    assert (code, hint in err) == (2, True)


@pytest.mark.parametrize("content", [None, b"", b"[", b"{}", b"[]", b"\xff", b"null\n", b"[[[[", b'[{"a":1,"a":2}]'])
def test_garbage_of_every_form_is_refused_in_words(command, tmp_path, content):
    path, failed = tmp_path / "in.json", []
    if content is not None:
        path.write_bytes(content)
    for name, form in IMPORTERS.items():
        code, out, err = command("import", name, *[path] * (form.files or 1))
        if (code, out) != (2, "") or "Traceback" in err or "defect" in err or str(path) not in err:
            failed.append((name, code, out, err))
    assert failed == []


def test_quiet_says_nothing_of_the_fields(command):
    assert command("import", "labels", LABELS, "--quiet")[2] == ""


def test_what_became_of_every_field_is_said(command):
    _, _, err = command("import", "labels", LABELS)
    lines = err.splitlines()
    assert "read as doc_grades: relevance_grades of retrieval_labels.jsonl, 2 times" in lines
    assert "read as relevance_grades: chunk_relevance_grades of retrieval_labels.jsonl, 2 times" in lines
    assert "read as expected_documents: expected_citations of groundedness_labels.jsonl, 2 times" in lines
    assert "read as latency_budget_ms.total: latency_budget_ms.p95 of pipeline_labels.jsonl" in lines


def test_every_field_of_every_form_stands_in_the_docs():
    page = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("import.md", "sources.md"))
    forms = [*LABEL_FILES.values(), "rag-server-golden", "gold-array"]
    fields = {(form, field) for form in forms for field in Contract(form).schema["properties"]}
    passages = {("rag-server-golden", f"gold_passages[].{name}") for name in ("doc_id", "chunk_id", "text")}
    assert sorted(field for field in fields | passages if f"`{field[1]}" not in page) == []
    assert [name for name in IMPORTERS if f"| `{name}` |" not in page] == []


# --- validate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (LABELS, "labels"),
        *((LABELS / name, "labels") for name in LABEL_FILES),
        (HERE / "golden_qa.json", "gold"),
        (HERE / "qaset.json", "gold"),
        (RUN, "rag-server-run"),
        (HERE / "labels-trace.jsonl", "trace"),
    ],
)
def test_validate_knows_the_forms(command, path, kind):
    assert file_kind(reader(), str(path)) == kind
    assert command("validate", path)[0] == 0


def test_validate_refuses_a_label_without_a_case(command, tmp_path):
    path = tmp_path / "retrieval_labels.jsonl"
    path.write_text('{"relevant_chunks": ["c1"]}\n', "utf-8")
    code, _, err = command("validate", path)
    assert (code, "'case_id' is missing" in err) == (2, True)


def test_a_single_label_file_is_held_to_its_form(command, folder):
    path = folder / "pipeline_labels.jsonl"
    path.write_text('{"case_id": "k01", "min_citations": "one"}\n')
    code, _, err = command("validate", path)
    assert (code, err.startswith(f"{path}:1: /min_citations: 'one' is not")) == (2, True)
    code, _, err = command("validate", "--kind", "labels", HERE / "qaset.json")
    assert (code, "is not the name of a label file" in err) == (2, True)


def test_cases_of_somebody_else_are_not_taken_for_labels(tmp_path):
    path = write_rows(tmp_path / "cases.jsonl", [{"id": 1}])
    assert file_kind(reader(), str(path)) == "jsonl"


def test_a_folder_that_cannot_be_listed_is_a_problem():
    files = Files(reader(), [str(HERE / "nothing")])
    assert (files.names(str(HERE / "nothing")), files.problems) == ([], 1)


@pytest.mark.parametrize(("limit", "problems"), [(3, 0), (2, 1)])
def test_the_limit_of_lines_of_an_imported_file_is_inclusive(tmp_path, limit, problems):
    path = put(tmp_path, b"a\nb\nc\n")
    files = Files(reader(lines=limit), [path])
    assert b"".join(files.blocks(path)) == b"a\nb\nc\n"
    assert files.problems == problems


# --- a foreign file where ours is wanted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "file", "command_line"),
    [
        ("langfuse-api", "trace.json", "rag-eval import langfuse"),
        ("otlp-console-exporter", "spans.json", "rag-eval import otlp"),
        ("ragas-trace", "samples.jsonl", "rag-eval import ragas-trace"),
        ("promptfoo-trace", "results.json", "rag-eval import promptfoo-trace"),
        ("trec-run-ordered-by-score", "run.txt", "rag-eval import trec-run"),
    ],
)
def test_score_names_the_command_that_reads_the_export_of_another_tool(command, form, file, command_line):
    gold, path = ROOT / "examples" / "quickstart" / "gold.jsonl", ROOT / "tests" / "foreign" / form / file
    code, out, err = command("score", "--gold", gold, "--trace", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{command_line} {path} --out runs/trace.jsonl" in err


def test_a_broken_trace_file_of_ours_is_no_export_of_another_tool(command, tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"qid": "Q01", "answer_json": {"claim": 1}}\n')
    code, _, err = command("score", "--gold", ROOT / "examples" / "quickstart" / "gold.jsonl", "--trace", path)
    assert (code, "another tool" in err, "/answer_json/claim" in err) == (2, False, True)


def test_a_topic_without_anything_relevant_counts_0_if_asked_to(tmp_path, command):
    """The mean of trec_eval is over all judged topics, ours over those of which something is relevant."""
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 a 0\n3 0 b 1\n3 0 c -1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n2 Q0 a 1 1 x\n3 Q0 c 1 2 x\n3 Q0 b 2 1 x\n")
    for kind, source, made in (("trec-qrels", "qrels", "gold.jsonl"), ("trec-run", "run", "trace.jsonl")):
        assert command("import", kind, str(tmp_path / source), "--out", str(tmp_path / made))[0] == 0
    values = {}
    for terms in ("", "retrieval: {no_relevant: zero}\n"):
        (tmp_path / "gates.yml").write_text(f"version: 1\n{terms}gates: {{map: {{min: 0}}}}\n")
        files = (
            f"--{name}={tmp_path / name}.{kind}"
            for name, kind in (("gold", "jsonl"), ("trace", "jsonl"), ("gates", "yml"))
        )
        values[terms] = json.loads(command("score", *files, "--format", "json")[1])["metrics"]["map"]["value"]
    assert list(values.values()) == [0.75, 0.5]


def test_a_map_that_is_no_text_is_a_problem(command, tmp_path):
    (tmp_path / "map.yml").write_bytes(b"question: \xe9\n")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    code, out, err = command("import", "table", tmp_path / "rows.csv", "--map", tmp_path / "map.yml")
    message = f"{tmp_path / 'map.yml'}:1: column 11: byte 0xe9 is not valid UTF-8. Save the file as UTF-8.\n"
    assert (code, out, err) == (2, "", message)


def test_a_first_map_of_a_file_without_fields_is_refused(command, tmp_path):
    (tmp_path / "rows.csv").write_text("")
    code, out, err = command("import", "table", tmp_path / "rows.csv", "--suggest-map")
    assert (code, out, f"{tmp_path / 'rows.csv'}: has no fields. Name a file with" in err) == (2, "", True), err


def test_files_may_follow_options(command, tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"user_input": "Why?", "response": "So.", "reference": "So."}\n', "utf-8")
    before = command("import", "auto", path, "--as", "gold")
    assert before[0] == 0
    assert command("import", "auto", "--as", "gold", path) == before


@each_row(
    ("content", "said"),
    [
        ("<!doctype html><html></html>", " is HTML or XML. Export the data again as JSON, JSON Lines or CSV"),
        ('{"_id": "q1", "text": "Why?"}\n', ": has no judgements. Pass the judgements too: rag-eval import beir"),
    ],
)
def test_a_file_that_cannot_be_a_result_says_what_to_export(command, tmp_path, content, said):
    path = tmp_path / "export"
    path.write_text(content, "utf-8")
    code, out, err = command("import", "auto", path)
    assert (code, out, f"{path}{said}" in err) == (2, "", True)


def test_answers_of_a_log_are_not_the_expected_ones(command, tmp_path, monkeypatch):
    """Otherwise the gold set of ``init --from`` would expect what the system answered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.json").write_text('[{"input": "Why?", "context": [{"page_content": "T."}], "answer": "So."}]')
    code, _, err = command("init", "--from", "log.json")
    hint = "If they are expected, add --collect url, exec or python. "
    hint += "If they are the system's, write: rag-eval import table log.json --out runs/trace.jsonl, then: "
    assert (code, "log.json has only one field of answers, answer." in err, hint in err) == (2, True, True), err
    assert [file.name for file in tmp_path.iterdir()] == ["log.json"]
