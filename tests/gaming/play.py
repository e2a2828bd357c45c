"""Plays a scenario: a real repository with a base, a pull request and its merge commit, and the real action on it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from fake_github import FakeGitHub, Fault
from gaming.honest import PEOPLE, RUN, TRACE, Repository
from gaming.moves import Stage, run_traces
from seams import GitHub, Network, action

HERE = Path(__file__).parent
REPOSITORY, PULL = "octo/hello", 2


@dataclass(frozen=True)
class Scenario:
    """One scenario.yml; the README of this folder says what its words mean."""

    name: str
    because: str
    attack: list
    expect: dict
    base: list = field(default_factory=list)
    pull_request: list = field(default_factory=list)
    control: list = field(default_factory=list)
    unguarded: dict | None = None
    needs: str = ""
    asks: bool = False

    @property
    def finding(self):
        """What the attack ends in: a code, ``gate:NAME``, ``note:TEXT`` or ``says:TEXT``."""
        return self.expect["finding"]

    @property
    def stops(self):
        """Everything that fails the run."""
        return {self.finding, *self.expect.get("also", ())}


@dataclass(frozen=True)
class Ending:
    """The outcome of a run: the exit code, what failed it, what else was found, its output, its report.

    ``asked`` says whether the run asked GitHub for anything besides comments.
    """

    code: int
    stops: set
    warnings: set
    said: str
    report: dict
    asked: bool

    def shows(self, finding):
        """Whether a finding of any level, a broken gate, a change that loosens, a note or a text is there."""
        kind, _, rest = finding.partition(":")
        if kind == "note":
            return any(rest in note["message"] for note in self.report.get("notes", ()))
        if kind == "change":
            return (self.change(rest) or {}).get("kind") == "looser"
        return rest in self.said if kind == "says" else finding in self.stops | self.warnings

    def change(self, key):
        """How the report tells the change of a key of the gates file; None where it tells of none."""
        return next((item for item in self.report.get("policy_changes", ()) if item["key"] == key), None)


def scenarios():
    """All of them, by the name of their folder."""
    files = sorted(HERE.glob("*/scenario.yml"))
    return [Scenario(file.parent.name, **yaml.safe_load(file.read_text("utf-8"))) for file in files]


def play(scenario, steps, folder, base, keys=None, inputs=None, through=None):
    """Run the action on the scenario's pull request with ``steps`` in place of the attack; the ending.

    ``through`` is an address that leads to the GitHub served at a port: (address, port).
    """
    stage = _staged(scenario, steps, folder / "origin", base, keys)
    commits = _merged(stage)
    origin, stage.repository = stage.repository, _checked_out(stage, folder / "checkout" / stage.below, commits)
    _work(stage, commits)
    stage.inputs |= inputs or {}
    fake, (url, port) = _served(stage, origin, commits), through or ("", 0)
    if through:
        fake.raw_type = "application/vnd.github.raw; charset=utf-8"  # Prism takes what ends in +json for JSON
    with fake.serving(port):
        ending = _acted(stage, url or fake.url, commits, folder)
    asked = [seen.target for seen in fake.seen if seen.target.startswith("/repos/")]
    return replace(ending, asked=any("/issues/" not in target for target in asked))


def _staged(scenario, steps, folder, base, keys):
    shutil.copytree(base.path, folder, symlinks=True)
    stage = Stage(Repository(folder), scenario.name, keys=keys)
    stage.before = (folder / stage.gold).read_bytes()
    if scenario.base:
        stage.play(scenario.base)
        stage.repository.commit("the base of this scenario")
    stage.before = (folder / stage.gold).read_bytes()
    stage.repository.git("checkout", "--quiet", "-b", "topic")
    stage.play(scenario.pull_request)
    stage.play(steps)
    stage.repository.commit("the pull request", who="eve")
    return stage


def _merged(stage):
    """The commits of a pull request by name, with the merge that GitHub makes of it checked out."""
    git, tree = stage.repository.git, "topic^{tree}"
    if stage.on_main:
        git("checkout", "--quiet", "main")
        stage.play(stage.on_main)
        stage.repository.commit("a change on main")
        tree = git("merge-tree", "--write-tree", "main", "topic")
    base, head = git("rev-parse", "main", "topic").split()
    first = git("rev-list", "--reverse", "main..topic").split("\n")[0]
    merge = git("commit-tree", tree, "-p", base, "-p", head, "-m", "merge")
    if stage.on_main:
        git("checkout", "--quiet", "--detach", merge)
    else:  # the folder already has the files of the merge, which are those of the branch
        stage.repository.write(".git/HEAD", f"{merge}\n")
    return {"base": base, "head": head, "first": first, "merge": merge}


def _checked_out(stage, folder, commits):
    which, _, shallow = stage.checkout.partition(" ")
    if not shallow:
        shutil.copytree(stage.repository.path, folder, symlinks=True)
        repository = Repository(folder)
        if which != "merge":
            repository.git("checkout", "--quiet", "--detach", commits[which])
        return repository
    folder.mkdir(parents=True)
    repository = Repository(folder)
    repository.git("init", "--quiet", "--template=")
    repository.git("fetch", "--quiet", "--depth=1", f"file://{stage.repository.path}", commits[which])
    repository.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    return repository


def _work(stage, commits):
    """The job before the action: the system answers, and whatever else its steps do."""
    data = run_traces(stage)
    stage.repository.write(TRACE, data)
    if stage.about is not None:
        gold = stage.repository.path / stage.gold
        changed = {f"{name}-dirty": f"{commit}-dirty" for name, commit in commits.items()}
        words = {**commits, **changed, "gold": hashlib.sha256(gold.read_bytes()).hexdigest()}
        about = {
            name: words.get(value, value) if isinstance(value, str) else value for name, value in stage.about.items()
        }
        stage.repository.write(RUN, json.dumps(about))
    stage.play(stage.job)


def _served(stage, origin, commits):
    fake = FakeGitHub(REPOSITORY)
    repository = fake.repository_at(origin.path)
    repository.accounts |= {email: name for name, email in PEOPLE.items() if name != "nobody"}
    pull = fake.add_pull(PULL, commits["head"], commits["base"])
    pull["user"]["login"] = "eve"
    for login, commit in stage.reviews:
        fake.add_review(PULL, login, commits[commit])
    fake.faults = [Fault(match, status, times=99) for match, status in stage.faults]
    return fake


def _acted(stage, url, commits, folder):
    environ = _environ(stage, url, commits, folder)
    output = io.StringIO()

    def connect(api_url, token, repository):
        return GitHub(api_url, token, repository, Network(sleep=lambda _: None))

    workspace = _workspace(stage)
    with chdir(workspace), redirect_stdout(output), redirect_stderr(output), _no_git_variables():
        code = action(environ, connect)
    written = workspace / stage.inputs.get("working-directory", ".") / "rag-eval-report/report.json"
    report = json.loads(written.read_bytes()) if written.exists() else {}
    return Ending(code, *_found(report), output.getvalue(), report, asked=False)


def _workspace(stage):
    """The workspace of the job, in which the workflow may check out into a folder."""
    return stage.repository.path.parent if stage.below else stage.repository.path


def _no_git_variables():
    """Apart from the configuration of this machine, as the container is."""
    from unittest.mock import patch

    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    remaining = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return patch.dict(os.environ, {**remaining, **alone}, clear=True)


def _found(report):
    """What failed a run, and what was only said."""
    broken = [gate for gate in report.get("gates", ()) if gate["outcome"] != "passed"]
    broken = [gate for gate in broken if gate["outcome"] != "no_data" or gate["when_no_data"] == "fail"]
    stops = {f"gate:{gate['name']}" for gate in broken if gate["severity"] == "error"}
    stops |= {item["code"] for item in report.get("findings", ()) if item["level"] == "error"}
    message = {f"gate:{gate['name']}" for gate in broken} | {item["code"] for item in report.get("findings", ())}
    return stops, message - stops


def _environ(stage, url, commits, folder):
    message = {"name": "pull_request", **stage.event}
    events = {
        "pull_request": ("refs/pull/2/merge", "merge", "main"),
        "push": ("refs/heads/topic", "head", ""),
        "workflow_run": ("refs/heads/main", "base", ""),
        "pull_request_target": ("refs/heads/main", "base", "main"),
        "merge_group": (f"refs/heads/gh-readonly-queue/main/pr-2-{commits['base']}", "merge", ""),
    }
    ref, sha, base_ref = events[message["name"]]
    file = folder / "event.json"
    file.write_text(json.dumps(_event(message, commits)))
    given = {"github-token": "t0ken", "comment": "off", **stage.inputs}
    named = {"first": commits["first"]}
    return {
        **{f"INPUT_{name.upper()}": named.get(value, str(value)) for name, value in given.items()},
        "GITHUB_WORKSPACE": str(_workspace(stage)),
        "GITHUB_EVENT_PATH": str(file),
        "GITHUB_EVENT_NAME": message["name"],
        "GITHUB_REF": ref,
        "GITHUB_SHA": commits[sha],
        "GITHUB_BASE_REF": base_ref,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_API_URL": url,
        "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/.github/workflows/eval.yml@{ref}",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }


def _event(message, commits):
    """The event file as GitHub writes it, with what the scenario says was changed in it."""
    base, head = commits["base"], commits["head"]
    pull = {"number": PULL, "user": {"login": "eve"}, "head": {"sha": head}, "base": {"ref": "main", "sha": base}}
    usual = {
        "pull_request": {"pull_request": pull},
        "pull_request_target": {"pull_request": pull},
        "push": {"ref": "refs/heads/topic", "before": commits["first"], "after": head},
        "workflow_run": {"workflow_run": {"head_sha": head, "head_branch": "topic"}},
        "merge_group": {"merge_group": {"base_sha": base, "base_ref": "refs/heads/main", "head_sha": commits["merge"]}},
    }
    file = {**usual[message["name"]], "repository": {"default_branch": "main"}}
    for name, value in message.get("file", {}).items():
        *path, last = name.split(".")
        inside = file
        for part in path:
            inside = inside.setdefault(part, {})
        inside[last] = commits.get(value, value) if isinstance(value, str) else value
    return file
