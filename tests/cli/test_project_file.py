"""Where commands find their gates: upward from any folder, by pyproject.toml; stdin, help and completion."""

import io
import json
import subprocess
from pathlib import Path

import pytest

from project import GOLD, GOLDS, TRACE, Project, apart, gates, wrong

PLACES = "gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\n"
NAMED = '[tool.rag-eval]\ngates = "conf/strict.yml"\n'


@pytest.fixture
def rag(command):
    return command


@pytest.fixture
def project(tmp_path, monkeypatch):
    apart(monkeypatch)
    made = Project.made(tmp_path / "project", gates(mrr="{min: 0.5}"))
    (made.path / "src/deep").mkdir(parents=True)
    monkeypatch.chdir(made.path / "src/deep")
    return made


COMMANDS = [
    ("score",),
    ("metrics",),
    ("probe", "--quiet"),
    ("explain", "Q1"),
    ("gold", "lint"),
    ("gold", "stats"),
    ("gold", "check"),
    ("gold", "diff"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_finds_the_gates_upward(rag, project, words, monkeypatch):
    deep = rag(*words)
    monkeypatch.chdir(project.path)
    top = rag(*words)
    assert (deep[0], deep[2].replace("../", "")) == (top[0], top[2])
    assert deep[1].replace("../", "") == top[1]


def test_the_search_ends_at_the_top_of_the_repository(rag, project, tmp_path, monkeypatch):
    inner = tmp_path / "project/vendor"
    inner.mkdir()
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    monkeypatch.chdir(inner)
    code, _, err = rag("score")
    assert code == 2
    assert err.startswith("eval/gold.jsonl: no such file")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_pyproject_names_the_gates(rag, project, words):
    project.put(gates=None)
    project.write("pyproject.toml", NAMED)
    project.write("conf/strict.yml", gates(PLACES, precision="{min: 1}"))
    project.done("other gates")
    code, out, err = rag(*words)
    assert code == (words == ("gold", "check")), err  # no item is signed off
    assert "no such file" not in err
    if words == ("score",):
        assert out.startswith("PASSED  1 of 1 gate")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[tool.rag-eval]\ngates = 7\n",
            "[tool.rag-eval] takes only the path of a gates file. Write: ",
        ),
        ('[tool.rag-eval]\ngate = "x"\n', "[tool.rag-eval] takes only the path"),
        ("[tool.rag-eval\n", "is not valid TOML"),
        (NAMED, "conf/strict.yml: no such file"),
    ],
)
def test_a_wrong_entry_says_what_to_write(rag, project, monkeypatch, text, said):
    monkeypatch.chdir(project.path)
    project.write("pyproject.toml", text)
    code, _, err = rag("score")
    assert (code, said in err) == (2, True), err


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that nobody can read")
def test_a_pyproject_that_cannot_be_read_is_named(rag, project, monkeypatch):
    monkeypatch.chdir(project.path)
    (project.path / "pyproject.toml").symlink_to("/proc/self/mem")
    assert rag("score")[::2] == (2, "rag-eval: pyproject.toml: cannot be read: Input/output error. Make it readable.\n")


def test_a_change_of_pyproject_moves_no_goalposts(rag, project, monkeypatch):
    monkeypatch.chdir(project.path)
    project.put(gates=None)
    project.write("pyproject.toml", NAMED)
    project.write("conf/strict.yml", gates(PLACES, precision="{min: 0.9}"))
    project.write("conf/loose.yml", gates(PLACES, precision="{min: 0.1}"))
    project.done("two gates files")
    project.branch("pr")
    project.write("pyproject.toml", NAMED.replace("strict", "loose"))
    project.put(trace=wrong(1, 2))
    project.done("looser, by another name")
    assert rag("score")[0] == 0
    code, out, _ = rag("score", "--base", "main", "--format", "json")
    assert code == 1
    failed = [gate for gate in json.loads(out)["gates"] if gate["outcome"] == "failed"]
    assert [(gate["name"], gate["threshold"], gate["origin"]) for gate in failed] == [("precision", "0.9", "base")]
    assert rag("score", "--base", "main", "--gates", "conf/loose.yml")[0] == 0  # the caller names them


def test_nearer_gates_of_the_base_come_before_those_of_a_pyproject_above(rag, project):
    project.write("src/eval-gates.yml", gates(PLACES, precision="{min: 0.9}"))
    project.write("pyproject.toml", NAMED)
    project.write("conf/strict.yml", gates(PLACES, chr="{min: 1}"))
    project.done("two systems")
    report = json.loads(rag("score", "--base", "main", "--format", "json")[1])
    assert report["policy_changes"] == []
    assert {gate["origin"] for gate in report["gates"] if gate["name"] == "precision"} == {"both"}


@pytest.mark.parametrize(
    "words",
    [
        ("score", "--trace", "-"),
        ("score", "--trace", "-", "--format", "scores"),
        ("explain", "Q1", "--trace", "-"),
        ("metrics", "--trace", "-"),
    ],
)
def test_traces_come_from_stdin(rag, project, monkeypatch, words):
    text = (project.path / TRACE).read_bytes()
    (project.path / TRACE).unlink()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    code, out, err = rag(*words)
    assert code == 0, err
    assert out


def test_the_flat_scores_read_stdin_without_a_gates_file(rag, project, monkeypatch):
    (project.path / "eval-gates.yml").unlink()
    monkeypatch.chdir(project.path)
    text = (project.path / TRACE).read_bytes()
    expected = rag("score", "--format", "scores")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert rag("score", "--format", "scores", "--trace", "-") == expected


@pytest.mark.parametrize("name", [GOLD, TRACE])
def test_the_flat_scores_of_a_broken_file_are_not_printed(rag, project, name):
    lines = (project.path / name).read_text("utf-8").splitlines()
    (project.path / name).write_text("\n".join([*lines[:-1], "{"]) + "\n", "utf-8")
    code, out, err = rag("score", "--format", "scores")
    assert (code, out, f"{name}:{len(lines)}: " in err) == (2, "", True), err


def test_what_is_found_in_stdin_is_what_is_found_in_the_file(rag, project, monkeypatch):
    rows = [json.loads(line) for line in (project.path / TRACE).read_text().splitlines()]
    rows = [{**row, "retrieved_ids": ["another name"]} for row in rows]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (project.path / TRACE).write_text(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    findings = [json.loads(rag("score", *words, "--format", "json")[1])["findings"] for words in ((), ("--trace", "-"))]
    assert "unmatched-ids" in [item["code"] for item in findings[0]]
    assert [item["code"] for item in findings[0]] == [item["code"] for item in findings[1]]


def test_problems_of_stdin_have_lines(rag, project, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}\n")))
    assert rag("score", "--gold", "-")[2].startswith("<stdin>:1: ")


def test_a_closed_stdin_is_an_empty_file(rag, project, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = rag("score", "--gold", "-")
    assert (code, err.startswith("<stdin>: ")) == (2, True), err


def test_not_both_files_are_stdin(rag, project):
    assert rag("score", "--gold", "-", "--trace", "-")[::2] == (
        2,
        "rag-eval: --gold - and --trace - cannot both be read from stdin. Name a file for one of them.\n",
    )


def test_rag_eval_alone_prints_help_and_judges_nothing(rag):
    code, out, err = rag()
    assert (code, err) == (2, "")
    assert out.startswith("usage: rag-eval")
    assert "exit codes: " in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("scroe",), "unknown command 'scroe'. Did you mean 'score'?"),
        (("gold", "chek"), "unknown command 'chek'. Did you mean 'check'?"),
        (("score", "--format", "tabel"), "argument --format: unknown value 'tabel'. Did you mean 'table'?"),
        (("xyzzy",), "unknown command 'xyzzy'. Choose one of: demo, init, "),
    ],
)
def test_a_mistyped_word_suggests_one(rag, words, said):
    code, _, err = rag(*words)
    assert (code, said in err) == (2, True), err


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_commands_and_options(rag, shell):
    pytest.importorskip("shtab")
    code, out, _ = rag("completion", shell)
    assert code == 0
    assert "perspective" in out
    assert "signoff" in out
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=out, text=True, check=True)
        files = [f"_shtab_rag_eval_score___{option}_COMPGEN=_shtab_compgen_files" for option in ("gold", "trace")]
        assert set(files) <= set(out.splitlines())


def test_without_shtab_the_extra_is_named(rag, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    code, _, err = rag("completion", "bash")
    assert (code, 'pip install "rag-eval-action[completion]"' in err) == (2, True)


def test_a_check_that_passes_prints_one_line(rag, project):
    rag("gold", "signoff", "--baseline", "--reason", "reviewed")
    project.done("signed off")
    assert rag("gold", "check") == (0, "eval/gold.jsonl: every change is signed off.\n", "")


@pytest.mark.parametrize("nested", ["check", "diff"])
def test_edits_that_are_not_staged_are_named(rag, project, nested):
    project.put(gold=GOLDS[:-1])
    assert "eval/gold.jsonl has unstaged edits" in rag("gold", nested, "--base", "main")[2]
    _, out, err = rag("gold", nested, "--worktree", "--base", "main")
    assert "not staged" not in err
    assert "Q8" in out + err
