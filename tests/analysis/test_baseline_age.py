"""How old the baseline is: in commits and days of the base, and never by the clock."""

from __future__ import annotations

import pytest

from project import Project, apart, gates
from rag_eval.git.plumbing import LastWrite
from seams import Git, authority_from_git, render, score_files

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


def test_commits_and_days_are_those_of_the_base(project):
    first, tip = project.git("rev-parse", "main~2", "main").split()
    assert Git().last_write(BASELINE, tip) == LastWrite(first, 2, 10)
    assert Git().last_write("gone.json", tip) is None


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
def test_a_baseline_of_the_same_day_is_no_day_old(project, date, commits, days):
    project.git("checkout", "-q", "main")
    project.write(BASELINE, "{}")
    project.git("add", "--all")
    project.git("commit", "-q", "-m", "baseline", GIT_COMMITTER_DATE=DAYS[-1])
    assert Git().last_write(BASELINE, project.git("rev-parse", "main"))[1:] == (0, 0)
    project.git("commit", "-q", "--allow-empty", "-m", "on", GIT_COMMITTER_DATE=date)
    tip = project.git("rev-parse", "main")
    assert Git().last_write(BASELINE, tip) == LastWrite(project.git("rev-parse", "main~1"), commits, days)


def test_the_report_tells_it(project):
    report = score_files(gates="eval-gates.yml", authority=authority_from_git("main"))
    assert (report.baseline.commits_ago, report.baseline.days_ago) == (2, 10)
    assert report.baseline.written == project.git("rev-parse", "main~2")
    assert report.baseline.ref == "main"
    assert "`eval/baseline.json` of `main` (2 commits and 10 days old" in render(report, "markdown")


def test_a_clone_without_the_history_does_not_guess(project, tmp_path):
    project.git("clone", "-q", "--depth=1", f"file://{project.path}", str(tmp_path / "shallow"))
    git = Git(str(tmp_path / "shallow"))
    assert git.last_write(BASELINE, git.resolve("HEAD")) is None
