"""What the real image leaves behind in each place that it can run in, beside what it is expected to, byte for byte."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from e2e.engine import ROOT
from e2e.front import front
from e2e.runner import TOKEN, strangers
from fake_github import Fault
from hostile import complaints, foreign_commands

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.runner import Run, Runner
    from fake_github import FakeGitHub

PULL = 2
EXPECTED = ROOT / "tests" / "expected" / "container"
AS_SAID = "(what the comment says)"
INPUTS = {"gold": "gold.jsonl", "gates": "eval-gates.yml"}
REFUSED = "Resource not accessible by integration"


def good(runner: Runner, _: FakeGitHub) -> list[Run]:
    return [runner.run(1, **INPUTS, trace="good.jsonl")]


def bad(runner: Runner, _: FakeGitHub) -> list[Run]:
    return [runner.run(1, **INPUTS, trace="bad.jsonl")]


def invalid(runner: Runner, _: FakeGitHub) -> list[Run]:
    lines = [
        '{"qid": "Q01"}',
        '{"qid": "::error::x\\n##[add-mask]x", "retrieved_ids": 7}',
        "{",
        '{"qid": "<b>@octocat|`"}',
    ]
    (runner.workspace / "broken.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [runner.run(1, **INPUTS, trace="broken.jsonl")]


def _read_only(github: FakeGitHub) -> None:
    github.faults = [Fault("^(POST|PATCH)", 403, message=REFUSED, times=99)]


def fork(runner: Runner, github: FakeGitHub) -> list[Run]:
    head = runner.event["pull_request"]["head"]
    head["repo"] = {**head["repo"], "fork": True, "full_name": "mallory/hello", "owner": {"login": "mallory"}}
    _read_only(github)
    return bad(runner, github)


def deleted_fork(runner: Runner, github: FakeGitHub) -> list[Run]:
    runner.event["pull_request"]["head"]["repo"] = None
    _read_only(github)
    return good(runner, github)


def dependabot(runner: Runner, github: FakeGitHub) -> list[Run]:
    runner.environ["GITHUB_ACTOR"] = "dependabot[bot]"
    runner.event["pull_request"]["user"]["login"] = runner.event["sender"]["login"] = "dependabot[bot]"
    _read_only(github)
    return good(runner, github)


def no_token(runner: Runner, _: FakeGitHub) -> list[Run]:
    return [runner.run(1, **INPUTS, trace="good.jsonl", github_token="")]


def enterprise_server(runner: Runner, _: FakeGitHub) -> list[Run]:
    with front(runner.api_url) as asked:
        runner.api_url, runner.environ["GITHUB_SERVER_URL"] = asked.url, "https://ghe.example.test"
        done = runner.run(1, **INPUTS, trace="bad.jsonl")
        assert asked.objections == []
    return [done]


def merge_group(runner: Runner, _: FakeGitHub) -> list[Run]:
    base = runner.event["pull_request"]["base"]["sha"]
    group = {"base_sha": base, "base_ref": "refs/heads/main"}
    runner.event = {"action": "checks_requested", "repository": runner.event["repository"], "merge_group": group}
    runner.event_name = "merge_group"
    runner.environ["GITHUB_REF"] = f"refs/heads/gh-readonly-queue/main/pr-{PULL}-{base}"
    return [runner.run(1, **INPUTS, trace="bad.jsonl")]


def _without_a_pull_request(runner: Runner, name: str) -> None:
    runner.event = {key: part for key, part in runner.event.items() if key not in ("pull_request", "number")}
    runner.event_name = name


def push(runner: Runner, _: FakeGitHub) -> list[Run]:
    runner.event["before"] = runner.event["pull_request"]["base"]["sha"]
    _without_a_pull_request(runner, "push")
    return [runner.run(1, **INPUTS, trace="good.jsonl")]


def schedule(runner: Runner, _: FakeGitHub) -> list[Run]:
    _without_a_pull_request(runner, "schedule")
    return [runner.run(1, **INPUTS, trace="bad.jsonl")]


def comment_off(runner: Runner, _: FakeGitHub) -> list[Run]:
    return [runner.run(1, **INPUTS, trace="bad.jsonl", comment="off", summary="false", annotations="false")]


def two_instances(runner: Runner, _: FakeGitHub) -> list[Run]:
    runs = [(1, "good", "one"), (1, "bad", "two"), (2, "bad", "one")]
    return [
        runner.run(number, **INPUTS, trace=f"{trace}.jsonl", comment_id=name, report_dir=f"report-{name}")
        for number, trace, name in runs
    ]


def second_half(runner: Runner, github: FakeGitHub) -> list[Run]:
    """The workflow of the default branch that comments with what the one of a fork has handed over."""
    pull = github.add_pull(3, runner.event["pull_request"]["head"]["sha"], "b" * 40, fork="mallory/hello")
    github.pulls.pop(PULL)
    text = (ROOT / "tests/expected/bad/report.json").read_text("utf-8").replace("How long", "@octocat <b> How long")
    (runner.workspace / "handed").mkdir()
    (runner.workspace / "handed/report.json").write_text(text, encoding="utf-8")
    about = {"head_sha": pull["head"]["sha"], "head_branch": "change", "run_number": 4, "event": "pull_request"}
    about |= {"id": 9_000_000_004, "head_repository": {"owner": {"login": "mallory"}}}
    runner.event = {"action": "completed", "workflow_run": about, "repository": runner.event["repository"]}
    runner.event_name = "workflow_run"
    return [runner.run(9, report="handed/report.json")]


CASES = (good, bad, invalid, fork, deleted_fork, dependabot, no_token, enterprise_server, merge_group, push, schedule)
CASES += (comment_off, two_instances, second_half)


def told(runs: list[Run], runner: Runner, github: FakeGitHub) -> str:
    """Everything that can be seen of the runs from outside, with one name for what differs from day to day."""
    output = [text_of(row["body"]).strip() for rows in github.comments.values() for row in rows]
    parts = []
    for done in runs:
        commands = [line for line in done.log.splitlines() if line.startswith("::")]
        outputs = [f"{name}={value}" for name, value in sorted(done.outputs.items())]
        parts += [f"=== exit code\n{done.code}", "=== outputs", *outputs, "=== annotations", *commands]
        parts += ["=== summary", *([AS_SAID] if done.summary.strip() in output else [done.summary])]
    for number, rows in sorted(github.comments.items()):
        parts += [f"=== comment of #{number} by {row['user']['login']}\n{row['body']}" for row in rows]
    text = "\n".join(parts).rstrip() + "\n"
    named = {runner.environ["GITHUB_SHA"]: "MERGE"}
    named |= {match: "HEAD" for match in re.findall(r"head=([0-9a-f]{40})", text) if match not in named}
    for commit, name in named.items():
        text = text.replace(commit, name).replace(f"\nCommit `{commit[:7]}`", f"\nCommit `{name}`")
    return re.sub(r"(?<=base-commit=)[0-9a-f]{40}|(?<=\(`)[0-9a-f]{12}(?=`, read through)", "BASE", text)


def text_of(body: str) -> str:
    """A comment without its first line and without its last, which is a link of ours."""
    return re.sub(r"\n\nCommit `[0-9a-f]{7}` · .*\s*\Z", "\n", body.partition("\n")[2])


def compared(text: str, expected: Path) -> None:
    if os.environ.get("RAG_EVAL_ACCEPT") == "1":
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text("utf-8"), f"RAG_EVAL_ACCEPT=1 make e2e takes it: {expected.name}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_it_leaves_behind_what_is_expected(case: Callable[..., list[Run]], runner, github):
    runs = case(runner, github)
    for done in runs:
        assert (done.files["GITHUB_ENV"], done.files["GITHUB_PATH"]) == ("", "")
        assert TOKEN not in done.log + done.summary + json.dumps(done.files)
        assert foreign_commands(done.log) == []
        assert complaints(done.summary) == []
    for row in (row for rows in github.comments.values() for row in rows):
        assert complaints(text_of(row["body"])) == []
    assert strangers(runner.workspace) == []
    compared(told(runs, runner, github), EXPECTED / f"{case.__name__}.txt")
