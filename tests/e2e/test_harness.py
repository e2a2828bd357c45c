"""The harness is proved on an action of ten lines, so that what it says of the real one can be believed."""

from __future__ import annotations

import pytest

from e2e.act import run_workflow
from e2e.runner import Runner, parse_outputs, strangers

DOCKERFILE = """FROM python:3.12-slim
COPY main.py /main.py
ENTRYPOINT ["/usr/local/bin/python", "/main.py"]
"""
ACTION = """name: probe
description: Says hello
inputs:
  who: {description: whom to greet, default: world}
  fail-on: {description: nothing}
  github-token: {description: the token, default: "${{ github.token }}"}
outputs:
  url: {description: the comment}
runs: {using: docker, image: Dockerfile}
"""
MAIN = """import json, os, pathlib, sys, urllib.request
env = os.environ
event = json.load(open(env["GITHUB_EVENT_PATH"]))
url = f"{env['GITHUB_API_URL']}/repos/{event['repository']['full_name']}/issues/{event['number']}/comments"
headers = {"Authorization": "Bearer " + env["INPUT_GITHUB-TOKEN"], "Content-Type": "application/json"}
body = json.dumps({"body": f"hello {env['INPUT_WHO']} {env['INPUT_FAIL-ON']!r} {sorted(os.listdir())} {os.getuid()}"})
made = json.load(urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)))
open(env["GITHUB_OUTPUT"], "a").write(f"url={made['html_url']}\\ntext<<END\\na=1\\nb\\nEND\\n")
open(env["GITHUB_STEP_SUMMARY"], "a").write("# summary\\n")
open(env["GITHUB_ENV"], "a").write("A=1\\n")
pathlib.Path("mine.txt").write_text("x")
print("::notice::out"); print("err", file=sys.stderr)
sys.exit(7)
"""
WORKFLOW = """on: pull_request
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: ./
        id: probe
        continue-on-error: true
        with: {who: act}
      - run: echo "next step got $URL"
        env: {URL: "${{ steps.probe.outputs.url }}"}
"""


@pytest.fixture
def action(tmp_path):
    folder = tmp_path / "action"
    (folder / ".github/workflows").mkdir(parents=True)
    for name, text in {"Dockerfile": DOCKERFILE, "action.yml": ACTION, "main.py": MAIN}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / ".github/workflows/greet.yml").write_text(WORKFLOW, encoding="utf-8")
    return folder


def test_an_image_is_run_as_the_runner_does(engine, base, action, event, github, prism, tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/gold.jsonl").touch()
    tag = engine.build(action, "localhost/rag-eval-probe:e2e")
    done = Runner(engine, tag, action, tmp_path / "workspace", event, prism[0]).run(who="you")
    assert [row["body"] for row in github.comments[2]] == ["hello you '' ['gold.jsonl'] 0"]
    assert done.code == 7
    assert "::notice::out\n" in done.log
    assert "err\n" in done.log
    assert done.outputs == {"url": github.comments[2][0]["html_url"], "text": "a=1\nb"}
    assert (done.summary, done.files["GITHUB_ENV"], done.files["GITHUB_PATH"]) == ("# summary\n", "A=1\n", "")
    assert strangers(tmp_path / "workspace") == ["mine.txt"]


def test_a_workflow_is_run_by_act(engine, base, action, event, github, prism, tmp_path):
    done = run_workflow(engine, action, ".github/workflows/greet.yml", event, prism[0], tmp_path, github)
    assert done.returncode == 0, done.stdout
    assert [row["body"].split()[:2] for row in github.comments[2]] == [["hello", "act"]], done.stdout
    assert f"next step got {github.comments[2][0]['html_url']}" in done.stdout


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("a=1\nb=\n", {"a": "1", "b": ""}),
        ("a<<E\nE\n", {"a": ""}),
        ("a<<E\nx=1\ny<<F\nE\nb=2=3\n", {"a": "x=1\ny<<F", "b": "2=3"}),
        ("a=1\na=2\n", {"a": "2"}),
    ],
)
def test_outputs_are_read_as_the_runner_reads_them(text, values):
    assert parse_outputs(text) == values


@pytest.mark.parametrize("text", ["a\n", "a<<E\nx\n"])
def test_outputs_that_the_runner_would_refuse_fail(text):
    with pytest.raises(AssertionError, match="refuse"):
        parse_outputs(text)


def test_a_missing_tool_is_skipped_at_home_and_fails_in_ci(monkeypatch):
    from e2e.engine import tool

    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception, match=r"no-such-tool is not installed. Run tests/e2e/install\.sh"):
        tool("no-such-tool")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="With CI=true"):
        tool("no-such-tool")
