"""The hook's short way: it may only say that nothing is touched where the whole check would say so too."""

from __future__ import annotations

import os
import posixpath

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitrepo import GOLD, Repo, codes, command_on_path, row
from rag_eval.commands._gold_quick import _may_matter, touches_nothing
from seams import InputError, signoff_policy

NAMES = st.text(st.sampled_from("abé -.\"'#:{}\\"), min_size=1, max_size=6).filter(lambda name: name.strip(". "))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STYLES = st.sampled_from([None, "'", '"', "|", ">"])


@given(gold=PATHS, records=st.none() | PATHS, style=STYLES, width=st.sampled_from([4, 80]), stated_top=st.booleans())
def test_whatever_a_gates_file_names_is_never_passed_over(gold, records, style, width, stated_top):
    """Gold and records of any name, written in any style of YAML, have to be seen in its text."""
    section = {"records": records} if records else {}
    document = {"gold": gold, "signoff": section} if stated_top else {"signoff": {"gold": gold, **section}}
    text = yaml.dump(document, default_style=style, width=width, allow_unicode=True).encode()
    try:
        policy = signoff_policy(text, "eval-gates.yml")
    except InputError:
        return  # the whole check refuses it
    if b"\\" in text:
        return  # then the whole check is asked
    for path in (policy.gold, posixpath.join(policy.records, "2026-11-21-0a1b2c3d.json")):
        assert _may_matter(path.encode(), text), (path, text)


@pytest.mark.parametrize("path", ["eval/gold.jsonl", "gold.jsonl", "eval/gold.signoff/x.json", "a/eval-gates.yml"])
def test_the_usual_names_matter_without_a_gates_file(path):
    assert _may_matter(path.encode(), b"")


@pytest.mark.parametrize("path", ["notes.txt", "src/system.py", "eval/notes.md"])
def test_other_files_do_not(path):
    assert not _may_matter(path.encode(), b"")


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


def test_a_commit_of_something_else_touches_nothing(repo):
    repo.write("notes.txt", "x")
    repo.git("add", "notes.txt")
    assert touches_nothing()


def test_a_commit_that_deletes_or_renames_the_gold_touches_it(repo):
    repo.git("mv", GOLD, "elsewhere.txt")
    assert not touches_nothing()
    code, said = repo.gold("check", "--staged")
    assert (code, set(codes(said))) == (1, {"unsigned-change"})


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
