"""Commits of a repository that others may have written into, by nothing but their ids."""

from __future__ import annotations

import os
import random

import pytest

from gitrepo import Repo
from rag_eval.git import parents
from seams import Git, GitError


@pytest.fixture
def repo(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    result = Repo.create(tmp_path / "repo", None)
    result.write("a/one.txt", "one\n")
    result.git("add", ".")
    return result


def commit(repo, *before):
    """A commit of the index on top of others."""
    tree = repo.git("write-tree")
    repo.made = getattr(repo, "made", 0) + 1
    over = [word for item in before for word in ("-p", item)]
    return repo.git("commit-tree", tree, "-m", f"commit {repo.made}", *over)


@pytest.mark.parametrize("seed", range(3))
def test_the_merge_base_is_one_that_git_names_too(repo, seed):
    chance, made = random.Random(seed), []
    for _ in range(14):
        made.append(commit(repo, *chance.sample(made[-5:], k=min(len(made), chance.choice([0, 1, 1, 2])))))
    git = Git(str(repo.path))
    for item, other in (chance.sample(made, 2) for _ in range(12)):
        code, output = repo.run("git", "merge-base", "--all", item, other)
        if code:
            with pytest.raises(GitError, match="no common ancestor"):
                git.verified_merge_base(item, other)
        else:
            assert git.verified_merge_base(item, other) in output.split()


@pytest.fixture
def forked(repo):
    """A commit, two that grew out of it, and where they lie."""
    root = commit(repo)
    repo.ids = root, commit(repo, root), commit(repo, root)
    return repo


def test_a_graft_changes_no_history(forked):
    root, remaining, right = forked.ids
    forked.write(".git/info/grafts", f"{remaining} {right}\n")
    assert forked.git("merge-base", remaining, right).startswith(right), "git itself believes it"
    git = Git(str(forked.path))
    assert git.verified_merge_base(remaining, right) == root
    assert parents(git.raw("commit", remaining)) == [root]


def test_other_bytes_in_the_place_of_a_commit_are_refused(forked):
    _, remaining, right = forked.ids
    files = [forked.path / ".git/objects" / item[:2] / item[2:] for item in (remaining, right)]
    files[0].chmod(0o644)
    files[0].write_bytes(files[1].read_bytes())
    git = Git(str(forked.path))
    for ask in (
        lambda: git.verified_merge_base(remaining, right),
        lambda: parents(git.raw("commit", remaining)),
        lambda: git.at(remaining),
    ):
        with pytest.raises(GitError):
            ask()


def test_a_history_that_the_clone_does_not_hold_is_an_error_with_a_way_out(forked, tmp_path):
    _, remaining, right = forked.ids
    clone = Repo.create(tmp_path / "clone", None)
    clone.git("fetch", "-q", "--depth=1", f"file://{forked.path}", remaining)
    clone.git("fetch", "-q", "--depth=1", f"file://{forked.path}", right)
    git = Git(str(clone.path))
    with pytest.raises(GitError, match="fetch-depth"):
        git.verified_merge_base(remaining, right)


def test_a_commit_is_read_folder_by_folder(repo):
    tree = Git(str(repo.path)).at(commit(repo))
    (name,) = tree.files("a/one.txt").values()
    assert tree.contents([name]) == {name: b"one\n"}
    assert tree.files("a/two.txt", "b/one.txt") == {}
