"""The action without Docker: in a workflow that act runs on this machine, and its launcher by itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from e2e.act import run_on_host
from e2e.engine import ROOT
from seams import REPOSITORY

PULL = 2
EXAMPLE = ROOT / "examples" / "quickstart"
WORKFLOW = f"""on: pull_request
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: |
          cat hostile.env >> "$GITHUB_ENV"
      - uses: {REPOSITORY}/python@v1
        id: gate
        continue-on-error: true
        with:
          gold: gold.jsonl
          trace: trace.jsonl
          comment-id: '"$(touch used)" && exit 0 #'
      - run: echo "pass=$PASS failed=$FAILED report=$REPORT outcome=$OUTCOME"
        env:
          PASS: ${{{{ steps.gate.outputs.pass }}}}
          FAILED: ${{{{ steps.gate.outputs.failed-gates }}}}
          REPORT: ${{{{ steps.gate.outputs.report-json }}}}
          OUTCOME: ${{{{ steps.gate.outcome }}}}
"""
TRAP = "import os\nos.write(1, b'the trap ran')\nos._exit(0)\n"
TRAPS = {
    **dict.fromkeys(("sitecustomize.py", "usercustomize.py", "rag_eval/__init__.py", "rag_eval/action.py"), TRAP),
    **dict.fromkeys(("json.py", "msgspec.py", "pip/__init__.py", "venv.py", "launch.py", "python/launch.py"), TRAP),
    "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/\nno-deps = false\n",
    "setup.cfg": "[install]\nprefix = /nowhere\n",
    "requirements/action.txt": "",
    "pyvenv.cfg": "include-system-site-packages = true\n",
    ".env": "INPUT_FAIL-ON=never\nINPUT_GATES-REF=head\n",
}
ENVIRONMENT = """INPUTS={"fail-on": "never"}
ACTION_PATH=.
PYTHONPATH=.
PIP_CONFIG_FILE=pip.conf
PIP_TARGET=elsewhere
INPUT_FAIL_ON=never
INPUT_FAIL-ON=never
GIT_DIR=nowhere
HTTPS_PROXY=http://127.0.0.1:9
"""


def project(folder, trace, traps):
    shutil.copytree(EXAMPLE, folder)
    shutil.copy(folder / trace, folder / "trace.jsonl")
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / ".github/workflows/gate.yml").write_text(WORKFLOW, "utf-8")
    for name, text in traps.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    lines = ENVIRONMENT.splitlines(keepends=True) if traps else []
    # A proxy that is not there keeps pip from its index, which is no change of the verdict.
    (folder / "hostile.env").write_text("".join(line for line in lines if "PROXY" not in line), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("trace", "traps", "printed"),
    [
        ("good.jsonl", {}, "| pass=true failed= report=rag-eval-report/report.json outcome=success"),
        ("bad.jsonl", TRAPS, "| pass=false failed=precision,chr,under_refusal,citation_validity report="),
    ],
    ids=["good", "hostile"],
)
def test_a_workflow_runs_it_on_the_runner_itself(trace, traps, printed, checkout, event, github, tmp_path):
    source = project(tmp_path / "source", trace, traps)
    done = run_on_host(source, ".github/workflows/gate.yml", event, github.url, tmp_path, github, checkout)
    assert done.returncode == 0, done.stdout
    assert printed in done.stdout
    assert "the trap ran" not in done.stdout
    assert [path.name for path in tmp_path.rglob("used")] == []
    [comment] = github.comments[PULL]
    assert ("RAG evaluation passed" in comment["body"]) is (trace == "good.jsonl")


def launched(action, folder, **environ):
    """Run the launcher in a workspace, as the step does."""
    shutil.copytree(EXAMPLE, folder)
    temporary = folder.parent / "temporary"
    temporary.mkdir()
    given = {"gold": "gold.jsonl", "trace": "bad.jsonl", "gates-ref": "head", "comment": "off"}
    given |= dict.fromkeys(("report-dir", "fail-on", "k", "proxy"), "")
    environ = {
        "PATH": "/usr/bin:/bin",
        "INPUTS": json.dumps(given),
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_OUTPUT": str(folder.parent / "output"),
        "RUNNER_TEMP": str(temporary),
        **environ,
    }
    done = subprocess.run(
        [sys.executable, "-I", str(action / "python/launch.py")],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert list(temporary.iterdir()) == []
    return done.returncode, done.stdout + done.stderr


def test_the_launcher_ends_with_the_exit_code_and_leaves_nothing(checkout, tmp_path):
    code, out = launched(checkout, tmp_path / "workspace")
    assert (code, "FAILED  3 of 4 gates" in out or "FAILED  4 of 8 gates" in out) == (1, True), out
    assert "pass<<" in (tmp_path / "output").read_text()


def test_a_package_with_other_bytes_is_not_installed(checkout, tmp_path):
    action = tmp_path / "action"
    shutil.copytree(checkout, action)
    requirements = action / "requirements/action.txt"
    lines = [
        f"{line[:-66]}{'0' * 64} \\" if "--hash=sha256:" in line else line
        for line in requirements.read_text().split("\n")
    ]
    requirements.write_text("\n".join(lines))
    code, out = launched(action, tmp_path / "workspace")
    assert code == 2
    assert "::error title=rag-eval cannot run::rag-eval cannot be installed: " in out
