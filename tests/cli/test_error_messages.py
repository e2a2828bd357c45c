"""Messages name what is wrong and the fix for the mistakes of a first-time user."""

from __future__ import annotations

import json

import pytest

from cases import write_rows
from reading import gold, trace

GATES = "version: 1\ngates: {precision: {min: 0.5}}\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "eval/gold.jsonl", [gold()])
    write_rows(tmp_path / "runs/trace.jsonl", [trace()])
    (tmp_path / "eval-gates.yml").write_text(GATES, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ('gates: {"precision ": {min: 0.5}}', "unknown metric 'precision '. Did you mean 'precision'?"),
        ('gates: {" precision": {min: 0.5}}', "unknown metric ' precision'. Did you mean 'precision'?"),
        (
            "gates: {completeness: {missing: 1}}",
            "unknown metric 'completeness'. If you mean the key of the file,",
        ),
        ('gates: {"precision\\u200b": {min: 0.5}}', "unknown metric 'precision\\u200b'. Did you mean 'precision'?"),
        ('gates: {precision: {"min ": 0.5}}', "unknown key 'min '. Did you mean 'min'?"),
        ("gates: {precision: {min: 0,8}}", "unknown key '8'. Write a decimal point: 0.8"),
        ('"gates ": {}', "unknown key 'gates '. Did you mean 'gates'?"),
        ("gates: {precision: {min: 0.5, severity: 'error '}}", "'error ' is not one of 'error', 'warning'"),
        ('slices: {gates: {category=a: {"chr ": {min: 0.5}}}}', "unknown metric 'chr '. Did you mean 'chr'?"),
    ],
)
def test_a_name_with_blanks_differs_from_the_name_that_is_meant(command, project, gates, message):
    (project / "eval-gates.yml").write_text(f"version: 1\n{gates}\n", "utf-8")
    code, _, err = command("score")
    assert (code, message in err) == (2, True), err


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["gold", "trace"])
def test_gold_and_traces_in_place_of_the_gates_file_are_named(command, project, kind, count):
    row = {"gold": gold(), "trace": trace()}[kind]
    write_rows(project / "rows.jsonl", [row] * count)
    code, _, err = command("score", "--gates", "rows.jsonl")
    fix = f"Name an eval-gates.yml. A {kind} file ends in .jsonl, and --{kind} names it."
    assert (code, err) == (2, f"rows.jsonl:1: looks like a {kind} file, but a gates file is expected here. {fix}\n")


def test_a_field_of_meta_needs_a_name(command, project):
    code, _, err = command("score", "--by", "meta.")
    assert (code, err) == (
        2,
        "rag-eval: 'meta.' lacks the name of a field. Write meta.NAME, such as meta.team\n",
    )


@pytest.mark.parametrize("form", ["ragas", "auto"])
def test_json_that_is_not_utf_8_has_its_line_and_the_conversion(command, project, form):
    rows = [json.dumps({"user_input": text}, ensure_ascii=False) for text in ("Why?", "Warum so groß?")]
    (project / "my samples.jsonl").write_text("\n".join(rows), "latin-1")
    code, out, err = command("import", form, "my samples.jsonl")
    fix = "Save the file as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8 'my samples.jsonl' > utf8.json"
    assert (code, out, f"my samples.jsonl:2: is not UTF-8. {fix}\n" in err) == (2, "", True), err


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".txt"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("null", "is null, which is no data"),
        ("3\n", "is 3, which is no data"),
        ('"x"', "is 'x', which is no data"),
        ("{}", "is an empty object, which is no data"),
    ],
)
def test_a_file_without_rows_is_not_valid(command, project, ending, content, message):
    path = project / f"file{ending}"
    path.write_text(content, "utf-8")
    code, out, err = command("validate", path)
    assert (code, out) == (2, "")
    assert message in err
    assert err.endswith("Name a file of gold items or traces, a gates file or a report.\n")


def test_an_empty_file_of_traces_is_not_valid(command, project):
    (project / "runs/trace.jsonl").write_text("", "utf-8")
    code, out, err = command("validate", "runs/trace.jsonl")
    assert (code, out, err) == (2, "", "runs/trace.jsonl: has no traces. Write one row for each question.\n")
    (project / "runs/trace.jsonl").write_text('{"qid": 3}\n', "utf-8")
    assert "has no traces" not in command("validate", "runs/trace.jsonl")[2]


def test_the_limit_of_nesting_is_the_same_in_lines_arrays_and_fields(command, project):
    deep = json.loads("[" * 70 + "]" * 70)
    for file, rows in (("gold.jsonl", [gold(meta={"x": deep})]), ("trace.jsonl", [trace(x=deep)])):
        write_rows(project / file, rows)
    (project / "gold.json").write_text(json.dumps([gold(meta={"x": deep})]), "utf-8")
    for file in ("gold.jsonl", "gold.json", "trace.jsonl"):
        assert "nested deeper than 64 levels" in command("validate", file)[2], file


def test_a_missing_field_of_a_file_that_people_write_has_an_example(command, project):
    """Someone who writes the first gold set does not know what each field holds."""
    (project / "no-version.yml").write_text("gates: {precision: {min: 0.5}}\n", "utf-8")
    (project / "few.jsonl").write_text('{"qid": "A", "question": "Why?", "gold_citations": []}\n', "utf-8")
    assert command("score", "--gates", "no-version.yml")[2].endswith("Add the field, such as version: 1\n")
    err = command("score", "--gold", "few.jsonl")[2]
    assert 'Add the field, such as "answerable": true\n' in err
    assert 'Add the field, such as "gold_claim_substr": ["rejects null keys"]\n' in err
    (project / "report.json").write_text('{"format": 1}', "utf-8")
    assert "'verdict' is missing. Add the field.\n" in command("gate", "report.json")[2], "no person writes a report"


def test_an_export_of_another_tool_hides_no_problems_of_the_file_before_it(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "gold.jsonl", [{"qid": f"Q{index}"} for index in range(103)])
    write_rows(tmp_path / "samples.jsonl", [{"user_input": "q", "response": "a", "retrieved_contexts": ["x"]}])
    code, _, err = command("validate", "--kind", "gold", "gold.jsonl", "samples.jsonl")
    assert (code, "samples.jsonl: is an export of another tool" in err) == (2, True), err
    assert err.splitlines()[-1] == "… and 78 more problems not shown.", err
