"""The action in a workflow, as act reads and runs one."""

from __future__ import annotations

from e2e.act import run_workflow

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
