"""The plug-in of pytest, as a project of its own has it: found by itself, in a process of its own."""

import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from project import GATES, GOLD, GOLDS, TRACE, TRACES, gates, json_lines, wrong

GATE = "def test_answers_are_good_enough(rag_eval_report):\n    assert rag_eval_report.passed\n"
INI = "[pytest]\n"  # where it stands is the root
LATER = "def test_a_question(rag_eval_report):\n    assert rag_eval_report.metrics['precision'].n == 4\n"


@pytest.fixture
def folder(tmp_path):
    for path, text in {
        GATES: gates(),
        GOLD: json_lines(GOLDS),
        TRACE: json_lines(TRACES),
        "test_gate.py": GATE + LATER,
        "pytest.ini": INI,
    }.items():
        put(tmp_path / path, text)
    return tmp_path


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def outcome(folder, *words, alone=True):
    """Exit code and output of pytest in a folder, with no other plug-in where it is ``alone``: they take seconds."""
    env = {**os.environ, "PYTHONUTF8": "1"}
    if alone:
        words, env = ("-p", "rag_eval.pytest_plugin", *words), {**env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *words]
    done = subprocess.run(line, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout + done.stderr


def test_gates_that_hold_are_a_test_that_passes_and_pytest_finds_the_fixture_by_itself(folder):
    code, output = outcome(folder, alone=False)
    assert code == 0, output
    assert "2 passed" in output


def test_a_failed_gate_is_a_failed_test_with_the_report_below(folder):
    put(folder / TRACE, json_lines(wrong(1, 2)))
    code, output = outcome(folder)
    assert code == 1
    assert "1 failed, 1 passed" in output
    assert re.search("precision +0.500 .*≥ 0.8", output)
    assert "How long is number 1?" in output


def test_options_name_other_files(folder):
    put(folder / "runs/other.jsonl", json_lines(wrong(1, 2)))
    assert outcome(folder, "--rag-eval-trace", "runs/other.jsonl")[0] == 1
    put(folder / "loose.yml", gates(precision="{min: 0.1}"))
    assert outcome(folder, "--rag-eval-trace", "runs/other.jsonl", "--rag-eval-gates", "loose.yml")[0] == 0


def test_the_gates_are_those_of_the_root_wherever_pytest_is_started(folder):
    put(folder / TRACE, json_lines(wrong(1, 2)))
    put(folder / "pytest.ini", "[pytest]\n")
    put(folder / "sub/test_gate.py", GATE)
    code, output = outcome(folder / "sub")
    assert code == 1
    assert re.search("precision +0.500 .*≥ 0", output)


def test_a_suite_is_a_part(folder):
    put(
        folder / "test_gate.py",
        "def test_part(rag_eval_report):\n    assert rag_eval_report.scope.suite == 'smoke:3'\n",
    )
    code, output = outcome(folder, "--rag-eval-suite", "smoke:3")
    assert code == 0, output


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        ({TRACE: "{"}, (), "runs/trace.jsonl:1"),
        ({}, ("--rag-eval-trace", "runs/none.jsonl"), "no such file"),
        ({}, ("--rag-eval-suite", "tiny"), "tiny"),
    ],
)
def test_what_cannot_be_judged_is_an_error_that_says_why(folder, spoil, words, message):
    for path, text in spoil.items():
        put(folder / path, text)
    code, output = outcome(folder, *words)
    assert code == 1
    assert "2 errors" in output
    assert message in output
    assert "Traceback" not in output


@pytest.mark.parametrize("name", ["gold", "trace", "gates", "baseline", "suite"])
def test_an_empty_option_is_refused(folder, name):
    code, output = outcome(folder, f"--rag-eval-{name}", "")
    assert (code, output.strip()) == (4, f"ERROR: --rag-eval-{name} is empty. Give it a value, or remove the option.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("tests", "--rag-eval"),
            "because eval-gates.yml is not in 'tests'. Name the file, too: pytest tests eval-gates",
        ),
        (
            ("tests", "--rag-eval", "--rag-eval-gates", "none.yml"),
            "because none.yml is not in 'tests'. There is no such file.",
        ),
        (("tests/test_one.py", "--rag-eval", "--rag-eval-gates", "none.yml"), "none.yml is not in 'tests/test_one.py'"),
        (("--rag-eval", "--rag-eval-gates", "none.yml"), "because none.yml is not in '.'. There"),
        (("tests", "eval-gates.yml", "--rag-eval"), ""),
        (("tests/test_one.py::test_one", "--rag-eval"), ""),
    ],
)
def test_a_run_that_would_test_no_gate_is_refused(folder, words, message):
    put(folder / "tests/test_one.py", "def test_one():\n    assert True\n")
    code, output = outcome(folder, *words)
    assert (code, message in output) == (4 if message else 0, True), output


def test_who_asks_for_no_report_gets_none(folder):
    put(folder / "test_gate.py", "def test_else():\n    assert True\n")
    put(folder / TRACE, "{")
    assert outcome(folder)[0] == 0


def junit_of(folder):
    return {case.get("name"): case for case in ET.parse(folder / "junit.xml").iter("testcase")}


def test_a_test_a_gate_is_collected_with_its_line(folder):
    (folder / "test_gate.py").unlink()
    put(folder / TRACE, json_lines(wrong(1, 2, 3, 4)))
    code, output = outcome(folder, "--rag-eval", "--junitxml=junit.xml", "-o", "junit_family=xunit1")
    assert code == 1, output
    assert re.search(r"FAILED .*eval-gates\.yml::precision ≥ 0\.8 - Failed: precision 0\.", output)
    assert "Traceback" not in output
    assert re.search(r"precision 0\.[0-9]+ is below 0\.8", output)
    cases = junit_of(folder)
    text = (folder / GATES).read_text("utf-8").splitlines()
    for name, case in cases.items():
        metric = name.split()[0]
        if "completeness" not in name and metric in "".join(text):
            assert metric in text[int(case.get("line"))], name
    assert {"completeness.missing ≤ 0", "completeness.unknown ≤ 0"} <= cases.keys()
    assert next(name for name, case in cases.items() if case.find("failure") is not None) == "precision ≥ 0.8"


def test_a_folder_below_the_gates_file_names_it_as_pytest_needs_it(folder):
    put(folder / "tests/test_one.py", "def test_one():\n    assert True\n")
    put(folder / "tests/pytest.ini", "[pytest]\n")
    words = ("--rag-eval", "--rootdir=tests", "-c", "tests/pytest.ini")
    command = re.search(r"pytest (tests \S+) --rag-eval", outcome(folder, "tests", *words)[1])
    assert command[1] == "tests eval-gates.yml"
    assert outcome(folder, *command[1].split(), *words)[0] == 0


def test_the_names_of_gates_keep_their_dots(folder):
    (folder / "test_gate.py").unlink()
    assert "eval-gates.yml::precision ≥ 0.8 PASSED" in outcome(folder, "--rag-eval", "-vv")[1]


def test_gates_are_collected_only_if_asked_for(folder):
    (folder / "test_gate.py").unlink()
    assert "no tests ran" in outcome(folder)[1]
    code, output = outcome(folder, "--rag-eval")
    assert code == 0, output


def test_questions_are_tests_on_request(folder):
    put(folder / TRACE, json_lines(wrong(1)))
    code, output = outcome(folder, "--rag-eval", "--rag-eval-questions", "eval-gates.yml")
    assert code == 1
    assert re.search(r"FAILED .*::Q1 - Failed: [A-Z_]+: ", output)
    assert f"{len(GOLDS)} passed" not in output
    assert "::Q2" not in output


def test_invalid_input_is_one_collection_error(folder):
    (folder / "test_gate.py").unlink()
    put(folder / GOLD, "{}\n")
    code, output = outcome(folder, "--rag-eval")
    assert code == 2
    assert "rag-eval: eval/gold.jsonl:1: " in output
    assert "During handling" not in output
    assert "Traceback" not in output


def test_a_folder_below_the_gates_finds_them_without_a_pytest_file(folder):
    (folder / "pytest.ini").unlink()
    put(folder / "sub/test_gate.py", GATE)
    code, output = outcome(folder / "sub", "--rootdir", ".")
    assert (code, "1 passed" in output) == (0, True), output
