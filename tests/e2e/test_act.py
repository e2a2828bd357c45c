"""The action in a workflow, as act reads and runs one."""

from __future__ import annotations

import re
import shutil

from e2e.act import run_workflow
from e2e.engine import ROOT
from seams import REPOSITORY

PULL = 2
WORKFLOW = """on: pull_request
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: ./
        id: gate
        continue-on-error: true
        with:
          working-directory: examples/quickstart
          gold: gold.jsonl
          trace: bad.jsonl
          gates: eval-gates.yml
      - run: echo "pass=$PASS failed=$FAILED"
        env:
          PASS: ${{ steps.gate.outputs.pass }}
          FAILED: ${{ steps.gate.outputs.failed-gates }}
"""


def test_an_output_reaches_the_next_step(engine, base, checkout, event, github, prism, tmp_path):
    path = checkout / ".github/workflows/e2e.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WORKFLOW, encoding="utf-8")
    done = run_workflow(engine, checkout, ".github/workflows/e2e.yml", event, prism[0], tmp_path, github)
    path.unlink()
    assert done.returncode == 0, done.stdout
    assert "| pass=false failed=" in done.stdout
    assert "| pass=false failed=\n" not in done.stdout
    assert len(github.comments[PULL]) == 1, done.stdout


def test_the_example_workflow_passes_and_comments(engine, base, checkout, event, github, prism, tmp_path):
    done = run_workflow(engine, checkout, ".github/workflows/example.yml", event, prism[0], tmp_path, github)
    assert done.returncode == 0, done.stdout
    assert "Job succeeded" in done.stdout
    assert len(github.comments[PULL]) == 1, done.stdout


OUTPUTS = """      - run: echo "verdict=$VERDICT report=$REPORT"
        env:
          VERDICT: ${{ steps.published.outputs.verdict }}
          REPORT: ${{ steps.published.outputs.report-json }}
"""


def test_the_workflow_that_init_writes_runs_the_published_action(
    engine, base, checkout, event, github, prism, tmp_path
):
    """A repository of somebody who uses it: the workflow as it is written for them, and a step that reads outputs.

    One job makes the traces, another one judges them.
    """
    project, example = tmp_path / "project", ROOT / "examples/quickstart"
    for name, target in {"gold.jsonl": "eval", "good.jsonl": "made", "eval-gates.yml": "."}.items():
        (project / target).mkdir(parents=True, exist_ok=True)
        shutil.copy(example / name, project / target / name.replace("good", "trace"))
    workflow = (ROOT / "src/rag_eval/templates/workflow.yml").read_text("utf-8").rstrip("\n")
    uses = f"      - uses: {REPOSITORY}@v1"
    assert workflow.endswith(uses)
    example = r"(?ms)^      - uses: actions/setup-python.*write_traces\.py$"
    assert len(re.findall(example, workflow)) == 1
    workflow = re.sub(example, "      - run: mkdir runs && cp made/trace.jsonl runs/", workflow)
    (project / ".github/workflows").mkdir(parents=True)
    named = f"{workflow.removesuffix(uses)}      - id: published\n        uses: {REPOSITORY}@v1\n{OUTPUTS}"
    (project / ".github/workflows/rag-eval.yml").write_text(named, encoding="utf-8")
    path = ".github/workflows/rag-eval.yml"
    done = run_workflow(engine, project, path, event, prism[0], tmp_path, github, published=checkout)
    assert done.returncode == 0, done.stdout
    assert "| verdict=passed report=rag-eval-report/report.json" in done.stdout
    assert len(github.comments[PULL]) == 1, done.stdout
