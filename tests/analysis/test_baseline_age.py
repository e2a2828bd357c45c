"""How old the baseline is: in commits and days of the base, by git and by the API alike, and never by the clock."""

from __future__ import annotations

import pytest

from fake_github import FakeGitHub, Fault
from project import Project, apart, gates
from rag_eval.action.base_commit import ApiHistory, GitHistory
from rag_eval.readers.work_tree import WorkTree
from rag_eval.run.authority import Written, authority_from_git
from seams import Git, GitHub, Network, render, score_files

BASELINE = "eval/baseline.json"
DAYS = ["2026-03-01T10:00:00Z", "2026-03-04T09:00:00Z", "2026-03-11T12:00:00Z"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A baseline in the first commit of main, two further ones, ten days in all; and a branch."""
    apart(monkeypatch)
    project = Project.made(tmp_path / "repo")
    monkeypatch.chdir(project.path)
    project.write(BASELINE, render(score_files(gates="eval-gates.yml"), "json"))
    project.put(gates=gates(f"baseline: {{report: {BASELINE}}}\n", precision="{min: 0.8, max_drop: 0.1}"))
    for index, day in enumerate(DAYS):
        project.write("other.txt", f"{index}\n")
        project.git("add", "--all")
        project.git("commit", "-q", "-m", "on", GIT_COMMITTER_DATE=day)
    project.git("checkout", "-q", "-b", "topic")
    return project


def by(through, project, served):
    tree, git = WorkTree(str(project.path)), Git(str(project.path))
    api = GitHub(served.url, "t0ken", "octo/hello", Network(sleep=lambda _: None))
    return {"api": ApiHistory(api, tree), "git": GitHistory(git)}[through]


@pytest.fixture
def served(project):
    with FakeGitHub().serving() as fake:
        fake.repository_at(project.path)
        yield fake


@pytest.mark.parametrize("through", ["api", "git"])
def test_commits_and_days_are_those_of_the_base(project, served, through):
    first, tip = project.git("rev-parse", "main~2", "main").split()
    assert by(through, project, served).written(BASELINE, tip) == Written(first, 2, 10)
    assert by(through, project, served).written("gone.json", tip) is None


@pytest.mark.parametrize("through", ["api", "git"])
@pytest.mark.parametrize(
    ("date", "commits", "days"),
    [
        ("2026-03-11T12:00:00Z", 1, 0),  # the same moment as the tip
        ("2026-03-11T23:59:59Z", 1, 0),  # later on the same day
        ("2026-03-12T11:59:59Z", 1, 0),  # a second less than a day
        ("2026-03-12T12:00:00Z", 1, 1),
        ("2026-03-01T10:00:00Z", 1, 0),  # the clock of the committer was behind
    ],
)
def test_a_baseline_of_the_same_day_is_no_day_old(project, served, through, date, commits, days):
    project.git("checkout", "-q", "main")
    project.write(BASELINE, "{}")
    project.git("add", "--all")
    project.git("commit", "-q", "-m", "baseline", GIT_COMMITTER_DATE=DAYS[-1])
    assert by(through, project, served).written(BASELINE, project.git("rev-parse", "main"))[1:] == (0, 0)
    project.git("commit", "-q", "--allow-empty", "-m", "on", GIT_COMMITTER_DATE=date)
    tip = project.git("rev-parse", "main")
    assert by(through, project, served).written(BASELINE, tip) == Written(
        project.git("rev-parse", "main~1"), commits, days
    )


def test_the_report_tells_it(project):
    report = score_files(gates="eval-gates.yml", authority=authority_from_git("main"))
    assert (report.baseline.commits_ago, report.baseline.days_ago) == (2, 10)
    assert report.baseline.written == project.git("rev-parse", "main~2")
    assert report.baseline.ref == "main"
    assert "`eval/baseline.json` of `main` (2 commits and 10 days old" in render(report, "markdown")


def test_a_clone_without_the_history_does_not_guess(project, tmp_path):
    project.git("clone", "-q", "--depth=1", f"file://{project.path}", str(tmp_path / "shallow"))
    git = Git(str(tmp_path / "shallow"))
    assert GitHistory(git).written(BASELINE, git.resolve("HEAD")) is None


def test_an_api_that_does_not_say_is_no_error(project, served):
    served.faults = [Fault("/commits", 403, times=9)]
    assert by("api", project, served).written(BASELINE, project.git("rev-parse", "main")) is None
