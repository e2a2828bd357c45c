"""The real image, run as GitHub's runner runs it, over the quickstart example."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from e2e.pull import git
from e2e.runner import TOKEN, strangers
from fake_github import Fault
from rag_eval.github import BOT
from seams import parse_marker
from sshkeys import Keys

PULL = 2
INPUTS = {"gold": "gold.jsonl", "gates": "eval-gates.yml", "report_dir": "report"}
COMMANDS = ("error", "warning", "notice", "debug", "group", "endgroup", "add-mask")
REFUSAL = Fault("^(POST|PATCH)", 403, message="Resource not accessible by integration", times=99)


@pytest.fixture
def run_with():
    """Run the action; whatever it is given, it must keep the rules of the house it runs in."""

    def run(runner, number=1, **inputs):
        before = digests(runner.workspace)
        done = runner.run(number, **{**INPUTS, **inputs})
        assert (done.files["GITHUB_ENV"], done.files["GITHUB_PATH"]) == ("", "")
        assert TOKEN not in done.log + done.summary + "".join(done.files.values())
        assert all(line.startswith(tuple(f"::{name}" for name in COMMANDS)) for line in commands(done.log)), done.log
        assert "##[" not in done.log
        assert strangers(runner.workspace) == []
        assert digests(runner.workspace).items() >= before.items(), "files of the workspace were changed"
        assert not list(runner.workspace.rglob("__pycache__"))
        return done

    return run


@pytest.fixture
def run(runner, run_with):
    return partial(run_with, runner)


def digests(workspace):
    """What the action may not change: all but its own report, which the next run replaces."""
    files = [path for path in workspace.rglob("*") if path.is_file() and "report" not in path.parts]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def commands(log):
    return [line for line in log.splitlines() if line.startswith("::")]


def on_host(runner, output):
    """The file that an output names: the runner sees the workspace at another place than the container."""
    return runner.workspace / Path(output.removeprefix("/github/workspace/"))


def test_a_good_run_passes_and_says_so_everywhere(github, run, runner):
    done = run(trace="good.jsonl")
    assert done.code == 0, done.log
    [comment] = github.comments[PULL]
    assert (done.outputs["pass"], done.outputs["failed-gates"]) == ("true", "")
    assert done.outputs["verdict"]
    assert done.outputs["comment-url"] == comment["html_url"]
    report = json.loads(on_host(runner, done.outputs["report-json"]).read_text("utf-8"))
    markdown = on_host(runner, done.outputs["report-markdown"]).read_text("utf-8")
    assert report["pass"] is True
    first_line = markdown.strip().splitlines()[0]
    assert first_line in comment["body"]
    assert first_line in done.summary


def test_a_failed_gate_fails_the_job_and_is_named(github, run, runner):
    done = run(trace="bad.jsonl")
    assert done.code == 1, done.log
    assert done.outputs["pass"] == "false"
    failed = done.outputs["failed-gates"]
    report = json.loads(on_host(runner, done.outputs["report-json"]).read_text("utf-8"))
    assert report["pass"] is False
    first = re.split(r"[,\s]+", failed.strip())[0]
    assert first
    assert first in github.comments[PULL][0]["body"]
    assert first in done.summary


def test_fail_on_never_reports_and_passes(github, run):
    done = run(trace="bad.jsonl", fail_on="never")
    assert (done.code, done.outputs["pass"]) == (0, "false"), done.log
    assert len(github.comments[PULL]) == 1


def test_the_second_run_updates_the_comment_of_the_first(github, run):
    red, green = run(1, trace="bad.jsonl"), run(2, trace="good.jsonl")
    [comment] = github.comments[PULL]
    assert comment["user"]["login"] == BOT
    output = parse_marker(comment["body"])
    assert output is not None
    assert red.outputs["comment-url"] == green.outputs["comment-url"] == comment["html_url"]
    assert [write.split()[0] for write in github.writes] == ["POST", "PATCH"]


def test_a_late_older_run_leaves_the_comment_alone(github, run):
    run(8, trace="good.jsonl")
    newer = github.comments[PULL][0]["body"]
    assert run(7, trace="bad.jsonl").code == 1
    assert [comment["body"] for comment in github.comments[PULL]] == [newer]


@pytest.mark.parametrize(("trace", "code"), [("good.jsonl", 0), ("bad.jsonl", 1)])
def test_a_token_that_may_not_comment_does_not_change_the_verdict(github, run, trace, code):
    github.faults = [REFUSAL]
    done = run(trace=trace)
    assert done.code == code, done.log
    assert done.outputs["pass"] == ("true" if code == 0 else "false")
    assert done.outputs["comment-url"] == ""
    assert any(line.startswith("::notice") and "pull-requests: write" in line for line in commands(done.log)), done.log
    assert "|" in done.summary, "the report is not in the summary"


def test_a_lost_answer_makes_no_second_comment(github, run):
    github.faults = [Fault("POST", 502, done=True)]
    assert run(trace="good.jsonl").code == 0
    assert len(github.comments[PULL]) == 1


@pytest.mark.parametrize("content", ['{"qid": \n', "[]\n", '{"qid": "::error::x\\n##[add-mask]pass"}\n', "\x00"])
def test_an_input_that_cannot_be_judged_is_exit_2(run, runner, content):
    (runner.workspace / "broken.jsonl").write_text(content, encoding="utf-8")
    done = run(trace="broken.jsonl")
    assert done.code == 2, done.log
    assert "broken.jsonl" in done.log
    assert done.outputs.get("pass") != "true"


@pytest.mark.parametrize(
    "inputs",
    [
        {"trace": "gone.jsonl"},
        {"trace": "../../etc/passwd"},
        {"trace": "good.jsonl", "comment": "sometimes"},
        {"trace": "good.jsonl", "k": "many"},
        {"trace": "good.jsonl", "fail_on": "maybe"},
        {"trace": "good.jsonl", "comment_id": "a\nb"},
        {"trace": "link.jsonl"},
    ],
    ids=lambda inputs: " ".join(inputs.values()).strip(),
)
def test_a_wrong_input_of_the_action_is_exit_2(github, run, runner, inputs):
    (runner.workspace / "link.jsonl").symlink_to("/proc/self/environ")
    done = run(**inputs)
    assert done.code == 2, done.log
    assert done.outputs.get("pass") != "true"
    assert "not-for-you" not in done.log + done.summary + json.dumps(github.comments)


def test_with_comments_off_nothing_is_written(github, run):
    assert run(trace="bad.jsonl", comment="off").code == 1
    assert github.writes == []


def test_a_push_has_no_pull_request_to_comment_on(github, run, runner):
    runner.event = {key: value for key, value in runner.event.items() if key not in ("pull_request", "number")}
    runner.event_name, runner.event["before"] = "push", git(runner.workspace, "rev-parse", "HEAD")
    done = run(trace="good.jsonl")
    assert (done.code, done.outputs["comment-url"]) == (0, ""), done.log
    assert github.writes == []


def test_another_folder_is_worked_in(github, run, runner):
    (runner.workspace / "deep").mkdir()
    for path in [path for path in runner.workspace.iterdir() if path.is_file()]:
        path.rename(runner.workspace / "deep" / path.name)
    done = run(trace="good.jsonl", working_directory="deep")
    assert done.code == 0, done.log
    assert len(github.comments[PULL]) == 1


GATES = (Path(__file__).parents[2] / "examples/quickstart/eval-gates.yml").read_text("utf-8")
GOLD = (Path(__file__).parents[2] / "examples/quickstart/gold.jsonl").read_text("utf-8")
LOOSER = {"eval-gates.yml": GATES.replace("precision: {min: 0.80}", "precision: {min: 0.10}")}
NO_API = Fault("/git/", 403, message="Resource not accessible by integration", times=99)


def test_gates_that_the_change_loosens_still_hold(github, runner_of, run_with):
    runner = runner_of(changes=LOOSER)
    done = run_with(runner, trace="bad.jsonl")
    assert done.code == 1, done.log
    assert done.outputs["base-commit"] == runner.event["pull_request"]["base"]["sha"]
    assert "precision" in done.outputs["failed-gates"]
    assert "gates.precision.min" in github.comments[PULL][0]["body"]


def test_without_the_api_git_objects_of_the_checkout_decide(github, runner_of, run_with):
    github.faults = [NO_API]
    done = run_with(runner_of(changes=LOOSER, depth=2), trace="bad.jsonl")
    assert done.code == 1, done.log
    assert "read through git" in github.comments[PULL][0]["body"]


def test_without_the_api_a_checkout_of_depth_1_is_judged_by_nobody(github, runner_of, run_with):
    github.faults = [NO_API]
    done = run_with(runner_of(), trace="good.jsonl")
    assert done.code == 2, done.log
    assert "fetch-depth" in done.log


def test_a_merge_queue_is_held_against_what_it_merges_onto(github, runner_of, run_with):
    runner = runner_of(changes=LOOSER)
    base = runner.event["pull_request"]["base"]["sha"]
    runner.event = {"action": "checks_requested", "repository": runner.event["repository"]}
    runner.event["merge_group"] = {"base_sha": base, "base_ref": "refs/heads/main"}
    runner.event_name = "merge_group"
    runner.environ["GITHUB_REF"] = f"refs/heads/gh-readonly-queue/main/pr-{PULL}-{base}"
    done = run_with(runner, trace="bad.jsonl")
    assert (done.code, done.outputs["base-commit"]) == (1, base), done.log


@pytest.mark.parametrize(("signed_by", "findings"), [("ann", ""), ("eve", "bad-signature,unsigned-change")])
def test_signatures_are_verified_in_the_image(runner_of, run_with, tmp_path, signed_by, findings):
    (tmp_path / "keys").mkdir()
    keys = Keys(tmp_path / "keys")
    policy = "signoff: {require: signature, allowed_signers: signers, gold: gold.jsonl}\n"

    def sign(origin):
        command = [sys.executable, "-m", "rag_eval", "gold", "signoff", "--reason", "reviewed", "--base", "main"]
        command += ["--signer", "ann@example.org", "--key", str(keys.file(signed_by))]
        subprocess.run(command, cwd=origin, check=True, capture_output=True)

    runner = runner_of(
        base={"eval-gates.yml": GATES + policy, "signers": keys.allowed("ann").decode()},
        changes={"gold.jsonl": GOLD.replace('"gold_claim_substr": [', '"gold_claim_substr": ["never said", ', 1)},
        then=sign,
    )
    done = run_with(runner, trace="good.jsonl")
    ours = {"traces-overridden", "traces-tracked"}  # the traces are in git, and an input names them
    others = [code for code in done.outputs["findings"].split(",") if code not in ours]
    assert (done.code, ",".join(others)) == (1 if findings else 0, findings), done.log
