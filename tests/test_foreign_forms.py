"""`rag-eval import` on one folder per form and trap: the arguments, the files, and what has to come of them.

A folder of tests/foreign holds ``args``, the input files and ``expected``: exit code, stdout and stderr. Accept new
output with RAG_EVAL_ACCEPT=1, then read the difference.
"""

from __future__ import annotations

import os
import shlex

import pytest

from cases import ROOT

FORMS = sorted(folder for folder in (ROOT / "tests" / "foreign").iterdir() if folder.is_dir())


@pytest.mark.parametrize("folder", FORMS, ids=lambda folder: folder.name)
def test_each_form_and_trap(command, monkeypatch, folder):
    monkeypatch.chdir(folder)
    code, out, err = command("import", *shlex.split((folder / "args").read_text("utf-8")))
    account = "".join(line for line in err.splitlines(True) if not line.startswith(("to get ", "metrics that ")))
    shown = f"exit {code}\n--- stdout\n{out}--- stderr\n{account}"
    expected = folder / "expected"
    if os.environ.get("RAG_EVAL_ACCEPT"):
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text("utf-8")
    assert "Traceback" not in err
    assert code in (0, 2)
    assert (out == "") == (code == 2)
