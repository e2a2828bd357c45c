"""What `gold diff` says of a change of the gold, with traces in the work tree."""

from __future__ import annotations

import pytest

from gitrepo import command_on_path
from project import GOLDS, Project, apart, gold_of, trace_of, wrong
from rag_eval.cli import gold_files
from seams import MissingExtra, main


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose traces answer question 2 wrongly."""
    apart(monkeypatch)
    monkeypatch.setenv("PATH", str(command_on_path(tmp_path / "bin")), prepend=":")
    project = Project.made(tmp_path / "repo")
    project.put(trace=wrong(2))
    project.git("add", "--all")
    assert project.gold("signoff", "--baseline", "--reason", "first")[0] == 0
    project.git("commit", "-q", "-m", "second")
    return project


def test_a_change_of_the_gold_names_the_cases_that_flip_and_the_gates_that_turn(project):
    wider = gold_of(2, gold_claim_substr=["a year"], gold_citations=["c9"])
    project.put(gold=[wider if row["qid"] == "Q2" else row for row in GOLDS])
    project.git("add", "--all")
    code, output = project.gold("diff")
    assert code == 0
    assert "this changes the result of 1 case:" in output
    assert "Q2: NOT_CITED → OK" in output
    assert "gate precision: failed → passed" in output


@pytest.mark.parametrize(("flipped", "rest"), [(10, ""), (12, "  … and 2 more.\n")])
def test_ten_cases_that_flip_are_named(project, flipped, rest):
    def golds(claim):
        return [gold_of(n % 4 + 1, qid=f"Q{n}", question=f"{n}?", gold_claim_substr=[claim]) for n in range(flipped)]

    traces = [{**trace_of(n % 4 + 1), "qid": f"Q{n}", "q": f"{n}?"} for n in range(flipped)]
    project.put(gold=golds(" days"), trace=traces)
    project.git("add", "--all")
    assert project.gold("signoff", "--mutates", "--reason", "more")[0] == 0
    project.git("commit", "-q", "-m", "third")
    project.put(gold=golds("another claim"))
    project.git("add", "--all")
    output = project.gold("diff")[1]
    assert f"this changes the result of {flipped} cases:" in output
    assert (output.count("OK → "), output.count("more.")) == (10, rest.count("more.")), output
    assert rest in output


def test_nothing_is_said_of_what_did_not_change(project):
    project.write("notes.txt", "x")
    project.git("add", "--all")
    assert project.gold("check") == (0, "eval/gold.jsonl: every change is signed off.\n")


def test_gates_that_cannot_be_read_leave_it_unsaid(project):
    project.put(gates="version: 1\ngates: {nonsense: {min: 1}}\n", gold=GOLDS[1:])
    project.git("add", "--all")
    code, output = project.gold("diff")
    assert (code, "The effect on the cases cannot be computed: eval-gates.yml:2" in output) == (0, True), output


def test_an_extra_that_is_not_installed_leaves_it_unsaid(project, monkeypatch, capsys):
    def missing(*_):
        raise MissingExtra("Reading .zst files", "zstd")

    monkeypatch.setattr(gold_files, "score_run", missing)
    project.put(gold=[gold_of(2, gold_citations=["c9"]) if row["qid"] == "Q2" else row for row in GOLDS])
    project.git("add", "--all")
    monkeypatch.chdir(project.path)
    assert main(["gold", "diff"]) == 0
    output = "".join(capsys.readouterr())
    assert "The effect on the cases cannot be computed: Reading .zst files needs an optional package" in output
    assert "changed 'Q2': gold_citations" in output
