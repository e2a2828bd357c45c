"""The hook's short way: it may only say that nothing is touched where the whole check would say so too."""

from __future__ import annotations

import os

import pytest

from gitrepo import GOLD, Repo, codes, command_on_path, row
from rag_eval.cli import touches_nothing


@pytest.fixture
def repo(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("GIT_", "PRE_COMMIT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("PATH", f"{command_on_path(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    repo = Repo.create(tmp_path / "repo", None)
    repo.signed(row("A1"), row("A2", "How wide is it?"))
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    return repo


def test_a_commit_of_something_else_touches_nothing(command, repo):
    repo.write("notes.txt", "x")
    repo.git("add", "notes.txt")
    assert touches_nothing()
    assert command("gold", "check", "--staged") == (0, "", "")
    code, _, err = command("validate", "notes.txt")
    assert (code, err.startswith("notes.txt:1:")) == (2, True), "only the hook may take the short way"


def test_a_project_file_that_names_rag_eval_asks_for_the_whole_check(repo):
    repo.write("notes.txt", "x")
    repo.write("pyproject.toml", "[project]\nname = 'x'\n")
    repo.git("add", "--all")
    assert touches_nothing()
    repo.write("pyproject.toml", "[tool.rag-eval]\ngates = 'eval/gates.yml'\n")
    repo.git("add", "--all")
    assert not touches_nothing()
    repo.git("commit", "-q", "--no-verify", "-m", "gates")
    repo.write("notes.txt", "y")
    repo.git("add", "--all")
    assert not touches_nothing(), "whether the commit changes it or not"


def test_a_commit_that_deletes_or_renames_the_gold_touches_it(repo):
    repo.git("mv", GOLD, "elsewhere.txt")
    assert not touches_nothing()
    code, output = repo.gold("check", "--staged")
    assert (code, set(codes(output))) == (1, {"unsigned-change"})


def test_by_hand_and_in_a_push_the_whole_check_is_asked(repo, monkeypatch):
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD")
    assert not touches_nothing()
    monkeypatch.delenv("PRE_COMMIT_FROM_REF")
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert not touches_nothing()


def test_before_the_first_commit_the_whole_check_is_asked(tmp_path, monkeypatch):
    fresh = Repo.create(tmp_path / "fresh", None)
    monkeypatch.chdir(fresh.path)
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    assert not touches_nothing()
