"""`rag-eval import` on one folder per form and trap: the arguments, the files, and what has to come of them.

A folder of tests/foreign holds ``args``, the input files and ``expected``: exit code, stdout and stderr. Accept new
output with RAG_EVAL_ACCEPT=1, then read the difference.
"""

from __future__ import annotations

import json
import os
import shlex

import pytest

from cases import ROOT, write_rows

FORMS = sorted(folder for folder in (ROOT / "tests" / "foreign").iterdir() if (folder / "args").exists())


@pytest.mark.parametrize("folder", FORMS, ids=lambda folder: folder.name)
def test_each_form_and_trap(command, monkeypatch, folder):
    monkeypatch.chdir(folder)
    code, out, err = command("import", *shlex.split((folder / "args").read_text("utf-8")))
    account = "".join(
        line for line in err.splitlines(True) if not line.startswith(("for more metrics ", "metrics that ", "wrote "))
    )
    shown = f"exit {code}\n--- stdout\n{out}--- stderr\n{account}"
    expected = folder / "expected"
    if os.environ.get("RAG_EVAL_ACCEPT"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text("utf-8")
    assert "Traceback" not in err
    assert code in (0, 2)
    assert (out == "") == (code == 2)


GOLD_OF = {  # the gold set that the tool itself exported; for the others the one of the traced system
    "real-deepeval-json-trace": "real-deepeval-json-gold",
    "real-deepeval-jsonl-trace": "real-deepeval-jsonl-gold",
    "real-deepeval-csv-trace": "real-deepeval-csv-gold",
    "real-deepeval-test-run": "real-deepeval-json-gold",
    "real-langfuse-observations": "real-langfuse-dataset",
    "real-ragas-dataset": "real-ragas-dataset-gold",
    "real-ragas-dataset-csv": "real-ragas-dataset-gold",
    "real-ragas-result": "real-ragas-dataset-gold",
    "real-ragas-result-csv": "real-ragas-dataset-gold",
    "real-ragas-result-json": "real-ragas-dataset-gold",
}
TRACED = [
    folder
    for folder in FORMS
    if (folder.name.startswith("real-") and not folder.name.endswith(("gold", "dataset", "columns", "evaluate")))
    or folder.name == "real-ragas-dataset"
]  # fmt: skip


@pytest.mark.parametrize("folder", TRACED, ids=lambda folder: folder.name)
def test_real_exports_of_one_system_get_the_same_labels(command, monkeypatch, tmp_path, folder):
    """Every tool traced the system of tests/foreign/make/system.py; flat samples have no row for its error."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "foreign" / "make"))
    import system

    gold = write_rows(tmp_path / "gold.jsonl", system.gold())
    paired = ["--gold", gold] if folder.name.startswith("real-langsmith") else []
    if other := GOLD_OF.get(folder.name):
        monkeypatch.chdir(folder.parent / other)
        words = shlex.split((folder.parent / other / "args").read_text("utf-8"))
        assert command("import", *words, "--out", gold, "--force")[0] == 0
    monkeypatch.chdir(folder)
    words = shlex.split((folder / "args").read_text("utf-8"))
    assert command("import", *words, *paired, "--out", tmp_path / "trace.jsonl")[0] == 0
    monkeypatch.chdir(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text("utf-8").splitlines()]
    write_rows(tmp_path / "trace.jsonl", [row for row in rows if row.get("run", "shop") == "shop"])
    (tmp_path / "eval-gates.yml").write_text("version: 1\nrefusal: {builtin: true}\ngates: {precision: {min: 0}}\n")
    out = command("score", "--gold", "gold.jsonl", "--trace", "trace.jsonl", "--format", "json")[1]
    by_question = {row["question"]: row["label"] for row in json.loads(out)["questions"]}
    labels = ["OK", "REFUSAL_OK", "NOT_CITED", "NOT_RETRIEVED", "ERROR"]
    expected = dict(zip((question for question, _, _ in system.QUESTIONS.values()), labels, strict=True))
    assert by_question == {question: label for question, label in expected.items() if question in by_question}
    assert len(by_question) == (4 if folder.name.startswith(("real-ragas", "real-deepeval")) else 5)
