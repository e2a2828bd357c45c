"""Where the base is out of reach nothing is judged, and that stands wherever an older verdict may stand."""

from __future__ import annotations

import json
import shutil

import pytest

from cases import ROOT
from fake_github import FakeGitHub, Fault
from seams import GitHub, Network, action

SHA = "a" * 40


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """The action on a checkout that is no repository, with an API that knows no commit."""
    workspace = tmp_path / "workspace"
    shutil.copytree(ROOT / "examples/quickstart", workspace)
    monkeypatch.chdir(workspace)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 2, "head": {"sha": SHA}}}))

    def run(fake, **inputs):
        given = {"gold": "gold.jsonl", "trace": "good.jsonl", "github-token": "t0ken", **inputs}
        environ = {
            **{f"INPUT_{name.upper()}": value for name, value in given.items()},
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REF": "refs/pull/2/merge",
            "GITHUB_SHA": SHA,
            "GITHUB_REPOSITORY": fake.repository,
            "GITHUB_API_URL": fake.url,
            "GITHUB_RUN_NUMBER": "7",
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        }
        code = action(environ, lambda *where: GitHub(*where, Network(sleep=lambda _: None)))
        return code, capsys.readouterr().out, (tmp_path / "summary").read_text(), (tmp_path / "output").read_text()

    return run


@pytest.fixture
def fake():
    with FakeGitHub().serving() as fake:
        fake.comments[2] = []
        fake.faults = [Fault("/git/", 404, times=99)]
        yield fake


def test_it_is_said_in_log_summary_outputs_and_comment(run, fake):
    code, log, summary, outputs = run(fake)
    assert (code, log.count("::error title=rag-eval cannot run::The base cannot be read")) == (2, 1)
    assert summary.startswith("## 🚫 Cannot be judged\n\n`")
    assert "contents: read" in summary
    assert "\ninvalid\n" in outputs
    assert "Cannot be judged" in fake.comments[2][0]["body"]


def test_it_takes_the_place_of_an_older_green_comment(run, fake):
    run(fake, **{"gates-ref": "head"})
    assert "passed" in fake.comments[2][0]["body"]
    assert run(fake)[0] == 2
    assert [("Cannot be judged" in comment["body"], "passed" in comment["body"]) for comment in fake.comments[2]] == [
        (True, False)
    ]
