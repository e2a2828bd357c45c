"""A defect, too little memory, a signal and odd surroundings: the action says so everywhere, and never passes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import ROOT
from fake_github import FakeGitHub
from rag_eval.action import run as action_run
from rag_eval.common.guard import guarded
from seams import GitHub, Network, action, marker

pytest.importorskip("urllib3")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the action runs on Linux")

HEAD = "a" * 40


@pytest.fixture
def run(fake, tmp_path, monkeypatch, capsys):
    """The action on the quickstart in pull request 2, inside the error boundary."""
    workspace = tmp_path / "workspace"
    shutil.copytree(ROOT / "examples" / "quickstart", workspace)
    monkeypatch.chdir(workspace)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 2, "head": {"sha": HEAD}}}))

    def run(inputs=(), **environ):
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        given = {"gold": "gold.jsonl", "trace": "good.jsonl", "github-token": "t0ken", **dict(inputs)}
        surroundings = {
            **{f"INPUT_{name.upper()}": value for name, value in given.items()},
            **{name: str(file) for name, file in files.items()},
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "octo/hello",
            "GITHUB_RUN_NUMBER": "5",
            "GITHUB_API_URL": fake.url,
            **environ,
        }
        connect = lambda *where: GitHub(*where, Network(sleep=lambda _: None))  # noqa: E731
        code = guarded(lambda: action(surroundings, connect))
        run.log = "".join(capsys.readouterr())
        run.outputs, run.summary = (file.read_text("utf-8") for file in files.values())
        return code

    run.workspace, run.event, run.tmp = workspace, event, tmp_path
    return run


def breaks(error):
    def broken(*_, **__):
        raise error

    return broken


# --- what a defect leaves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["judge", "write_together", "_summarise", "put_outputs", "of_gates", "_comment"])
def test_a_defect_is_said_wherever_a_verdict_would_be(fake, run, monkeypatch, where):
    fake.add_comment(2, f"{marker('rag-eval', HEAD, 4)}\n## ✅ RAG evaluation passed")
    assert run() == 0
    report = run.workspace / "rag-eval-report" / "report.json"
    assert report.exists()
    monkeypatch.setattr(action_run, where, breaks(TypeError("a defect with t0ken in it")))
    assert run() == 3
    why = "rag-eval failed to judge this run: The log has the details. Please report them."
    assert f"::error title=rag-eval::{why}\n" in run.log
    assert "rag-eval has a bug" in run.log
    assert not report.exists()
    if where != "put_outputs":
        assert run.outputs.count("\ninvalid\n") == 1
    if where != "_summarise":
        assert "rag-eval failed to judge this run" in run.summary
    if where != "_comment":
        [comment] = fake.comments[2]
        assert "rag-eval failed to judge this run" in comment["body"]
        assert "passed" not in comment["body"]
    assert "t0ken" not in run.log + run.outputs + run.summary


def test_a_defect_of_the_second_half_is_said_too(fake, run, monkeypatch):
    fake.add_pull(3, HEAD, "b" * 40)
    fake.add_comment(3, f"{marker('rag-eval', HEAD, 4)}\n## ✅ RAG evaluation passed")
    run.event.write_text(json.dumps({"workflow_run": {"head_sha": HEAD, "run_number": 5}}))
    monkeypatch.setattr(action_run, "_handed_over", breaks(KeyError("x")))
    assert run({"report": "report.json"}) == 3
    assert "\ninvalid\n" in run.outputs
    [comment] = fake.comments[3]
    assert "rag-eval failed to judge this run" in comment["body"]


def test_a_refusal_of_the_second_half_has_outputs(run):
    assert run({"report": "report.json"}) == 2  # no workflow_run event
    assert "\ninvalid\n" in run.outputs
    assert "comment-written<<" in run.outputs
    assert "\ntrue\n" not in run.outputs


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_too_little_memory_is_no_defect(fake, run, monkeypatch, error):
    monkeypatch.setattr(action_run, "judge", breaks(error))
    assert run() == 2
    assert "::error title=rag-eval::rag-eval failed to judge this run: there is not enough memory" in run.log
    assert "there is not enough memory" in run.summary
    assert "there is not enough memory" in fake.comments[2][0]["body"]
    assert "\ninvalid\n" in run.outputs


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_signal_leaves_one_set_of_reports(run, after):
    """The set of the run before, or of this one."""
    assert run() == 0
    folder = run.workspace / "rag-eval-report"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    script = f"""
import os, pathlib, signal, sys
from rag_eval.common import files
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup leaves it ignored
count, replace = 0, pathlib.Path.replace
def counted(self, target):
    global count
    if count == {after}:
        os.kill(os.getpid(), signal.SIGHUP)
    count += 1
    return replace(self, target)
pathlib.Path.replace = counted
texts = [(path.name, "new") for path in pathlib.Path(sys.argv[1]).iterdir()]
files.write_together(pathlib.Path(sys.argv[1]), texts)
"""
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True)
    assert done.returncode == -signal.SIGHUP
    result = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert result in (before, dict.fromkeys(before, b"new"))


def test_reports_are_written_together_or_not_at_all(run):
    folder = run.workspace / "rag-eval-report"
    (folder / "report.md" / "x").mkdir(parents=True)
    assert run() == 2
    assert "cannot be written: is a directory" in run.log
    assert [path.name for path in folder.iterdir()] == ["report.md"]


# --- odd surroundings ------------------------------------------------------------------------------------------------


def linked_in_a_circle(run):
    (run.workspace / "loop").symlink_to("loop2")
    (run.workspace / "loop2").symlink_to("loop")


def invalid(run):
    assert "\ninvalid\n" in run.outputs
    assert "Cannot be judged" in run.summary


@pytest.mark.parametrize("name", ["report-dir", "working-directory", "gold", "trace", "gates", "baseline"])
@pytest.mark.parametrize("below", ["", "/x"])
def test_a_circle_of_links_is_an_error_of_the_input(run, name, below):
    linked_in_a_circle(run)
    assert run({name: f"loop{below}"}) == 2
    invalid(run)


@pytest.mark.parametrize("name", ["report-dir", "working-directory", "gold", "trace", "gates", "baseline"])
@pytest.mark.parametrize("value", ["\udcff\udcfe", "x" * 5_000, "a/" * 2_500, "/proc/self/mem", "/dev/zero"])
def test_paths_that_cannot_be_are_errors_of_the_input(run, name, value):
    code = run({name: value})
    if (name, value) == ("report-dir", "a/" * 2_500):
        assert code in (0, 2)
    else:
        assert code == 2
        invalid(run)


@pytest.mark.parametrize("folder", [".git", ".git/hooks", "./.GIT/x", "x/../.git", "sub/.git/objects"])
def test_no_report_is_written_where_git_writes(run, folder):
    (run.workspace / ".git").mkdir()
    (run.workspace / "x").mkdir()
    assert run({"report-dir": folder}) == 2
    assert "report-dir" in run.log
    assert list((run.workspace / ".git").iterdir()) == []


def test_no_report_is_written_into_git_through_a_link(run):
    (run.workspace / ".git").mkdir()
    (run.workspace / "out").symlink_to(".git")
    assert run({"report-dir": "out"}) == 2
    assert list((run.workspace / ".git").iterdir()) == []


def test_an_event_of_any_depth_is_read_or_not(run):
    run.event.write_text('{"pull_request": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert run() == 0
    assert "The event file cannot be read" in run.log


@pytest.mark.parametrize("path", ["/dev/zero", "/proc/self/mem", "fifo", "folder", "/nowhere", "large"])
def test_an_event_file_of_another_kind_is_not_read(run, path):
    os.mkfifo(run.tmp / "fifo")
    (run.tmp / "folder").mkdir()
    with (run.tmp / "large").open("wb") as large:
        large.truncate(1 << 32)
    began = time.monotonic()
    assert run(GITHUB_EVENT_PATH=str(run.tmp / path)) == 0
    assert "The event file cannot be read" in run.log
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("number", ["9" * 5_000, "²", "٣", "-1", "1e9", ""])
def test_a_run_number_of_another_kind_is_none(run, number):
    assert run(GITHUB_RUN_NUMBER=number) == 0


@pytest.mark.parametrize("url", ["http://[::1", "http://x:99999", "file:///etc", "https://", "\udcff"])
def test_an_address_that_cannot_be_one_costs_the_comment_and_no_verdict(run, url):
    assert run(GITHUB_API_URL=url) == 0
    assert "No comment: " in run.log


# --- nothing ends in a defect ----------------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=20),
    st.sampled_from(["", ".", "..", "/", "loop/x", "\udcff", "9" * 5_000, "x" * 5_000, "[" * 9_999, "::error::x"]),
    st.sampled_from(["gold.jsonl", "good.jsonl", "bad.jsonl", "head", "base", "refs/pull/2/merge", HEAD, "/dev/null"]),
    st.sampled_from(["pull_request", "push", "merge_group", "workflow_dispatch", "pull_request_target", "0" * 40]),
)
INPUTS = st.sampled_from(
    "gold trace gates gates-ref baseline report signoff k comment comment-id annotations summary report-dir fail-on "
    "github-token working-directory proxy ca-certificates".split()
)
RUNNER = st.sampled_from(
    "GITHUB_EVENT_NAME GITHUB_REF GITHUB_SHA GITHUB_BASE_REF GITHUB_REPOSITORY GITHUB_RUN_NUMBER GITHUB_RUN_ID "
    "GITHUB_RUN_ATTEMPT GITHUB_WORKFLOW_REF GITHUB_SERVER_URL GITHUB_EVENT_PATH".split()
)
EVENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "pull_request number head base sha ref workflow_run head_sha merge_group base_sha before".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.dictionaries(INPUTS, TEXTS, max_size=3), st.dictionaries(RUNNER, TEXTS, max_size=3), EVENTS)
@example({}, {"GITHUB_EVENT_NAME": "push", "GITHUB_SHA": HEAD}, {"before": "\ud800"})
@example({"report": "x"}, {}, {"workflow_run": {"head_sha": "\ud800", "run_number": 10**4_000}})
def test_no_input_event_or_surroundings_is_a_defect(tmp_path_factory, inputs, runner, event):
    folder = tmp_path_factory.mktemp("any")
    workspace = folder / "workspace"
    shutil.copytree(ROOT / "examples" / "quickstart", workspace)
    (workspace / "loop").symlink_to("loop")
    (folder / "event.json").write_text(json.dumps(event))
    with FakeGitHub().serving() as fake:
        environ = {
            "INPUT_GOLD": "gold.jsonl",
            "INPUT_TRACE": "good.jsonl",
            "INPUT_GITHUB-TOKEN": "t0ken",
            **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": "octo/hello",
            "GITHUB_API_URL": fake.url,
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            **runner,
        }
        connect = lambda *where: GitHub(*where, Network(sleep=lambda _: None))  # noqa: E731
        with chdir(workspace):
            code = guarded(lambda: action(environ, connect))
    assert code in (0, 1, 2)
    assert (folder / "output").read_text("utf-8").count("verdict<<") >= 1
