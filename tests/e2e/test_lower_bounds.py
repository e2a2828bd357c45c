"""The oldest packages that pyproject.toml allows, installed as a laptop may have them: they do what the newest do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from cases import gold_row, trace_row, write_rows

ROOT = Path(__file__).resolve().parents[2]
MANY = 2_000  # rows: few are read without the quick libraries

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def oldest(tmp_path_factory):
    """The command of an environment with the lower bounds of what is needed at run time."""
    if sys.version_info >= (3, 13):
        pytest.skip("the oldest packages have no builds for this Python")
    folder = tmp_path_factory.mktemp("oldest")
    venv.create(folder)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = [wanted.replace(">=", "==") for wanted in pyproject["project"]["dependencies"]]
    pip = [sys.executable, "-m", "pip", "--python", folder, "--disable-pip-version-check", "install", "--quiet"]
    environ = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    subprocess.run([*pip, *pins, ROOT], check=True, env=environ)
    return folder / "bin" / "rag-eval"


@pytest.fixture
def files(tmp_path):
    wanted = [f"exactly {i} metres" for i in range(MANY)]
    golds = [gold_row(qid=f"Q{i}", gold_claim_substr=[text]) for i, text in enumerate(wanted)]
    traces = [trace_row(qid=f"Q{i}", answer_json={"claim": text, "citations": []}) for i, text in enumerate(wanted)]
    return write_rows(tmp_path / "gold.jsonl", golds), write_rows(tmp_path / "trace.jsonl", traces)


def test_many_rows_give_the_same_report(oldest, files):
    words = "score", "--gold", files[0], "--trace", files[1], "--format", "json", "--quiet"
    reports = [
        subprocess.run([*command, *words], capture_output=True)
        for command in ([oldest], [sys.executable, "-m", "rag_eval"])
    ]
    assert [report.stderr for report in reports] == [b"", b""]
    assert reports[0].stdout == reports[1].stdout
    assert json.loads(reports[0].stdout)["run"] is None


def test_all_that_is_read_is_checked(oldest, files, tmp_path):
    gates = tmp_path / "eval-gates.yml"
    gates.write_text("version: 1\ngates: {precision: {min: 0.5}}\n", encoding="utf-8")
    done = subprocess.run([oldest, "validate", *files, gates], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
