"""What each command loads: modules are counted instead of milliseconds, which no machine repeats."""

import gc
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rag_eval
from project import GATES, GOLD, TRACE, gates, gold_of, json_lines, trace_of
from rag_eval import stats
from rag_eval.commands._shared import uncollected
from rag_eval.later import Later

SLOW = [
    "jsonschema",
    "jsonschema_rs",
    "orjson",
    "referencing",
    "tabulate",
    "importlib.metadata",
    "dataclasses",
    "inspect",
    "typing",
]
SLOW += ["inspect", "pathlib", "urllib.parse", "subprocess", "socket", "tempfile", "email.message", "random"]
SLOW += [
    "statistics",
    "difflib",
    "numpy",
    "dask",
    "urllib3",
    "rag_eval.textual.grounding",
    "rag_eval.textual.refusals",
]
JUDGING = ["yaml", "hashlib", "decimal"]
JUDGING += ["rag_eval.metrics", "rag_eval.judging.gates", "rag_eval.report", "rag_eval.stats"]
LIGHT = [*SLOW, *JUDGING]
HELP = ["--help", "--version", "score --help", "compare --help", "gate --help", "gold --help", "demo --help"]


@pytest.fixture
def project(tmp_path):
    """A folder with six questions in the usual places."""
    for name, of in ((GOLD, gold_of), (TRACE, trace_of)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json_lines(map(of, range(1, 7))))
    return tmp_path


def loaded_by(code, cwd, names):
    """Which of ``names`` a fresh interpreter has loaded by ``code``, beside what it had before."""
    ask = f"sys.__stdout__.write(' '.join(set({names!r}) & set(sys.modules) - before))"
    code = f"import sys; before = set(sys.modules); sys.stdout = sys.stderr; {code}; {ask}"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def by_command(words, cwd, names):
    """The same of a command; ``--help`` and ``--version`` leave by SystemExit."""
    code = f"import contextlib; from rag_eval import cli\nwith contextlib.suppress(SystemExit): cli.main({words!r})\n"
    return loaded_by(f"exec({code!r})", cwd, names)


def ours(*names):
    """Modules of ours; a name that none has any more would be no test."""
    found = [f"rag_eval.{name}" for name in names]
    assert all(map(importlib.util.find_spec, found))
    return found


def test_importing_the_package_loads_nothing_else(tmp_path):
    assert loaded_by("import rag_eval", tmp_path, LIGHT) == []


def test_format_scores_loads_only_what_it_needs(project):
    assert set(by_command(["score", "--format", "scores"], project, LIGHT)) <= {"decimal"}


def test_format_scores_loads_nothing_of_how_cases_are_scored(project):
    scoring = ours("case", "files.template", "metrics", "scoring", "text")
    assert by_command(["score", "--format", "scores"], project, scoring) == []


def test_a_small_run_loads_nothing_of_how_large_files_are_read(project):
    names = ours("files.bulk", "files.pattern", "files.template", "scoring.telling")
    assert by_command(["score", "--format", "markdown"], project, names) == []


@pytest.mark.parametrize("words", HELP)
def test_to_show_help_nothing_is_loaded_that_works(words, tmp_path):
    assert by_command(words.split(), tmp_path, LIGHT) == []


@pytest.mark.parametrize("form", ["markdown", "csv", "junit"])
def test_a_small_run_is_judged_and_rendered_without_what_is_slow_to_load(form, project):
    assert by_command(["score", "--format", form], project, SLOW) == []


def test_without_a_baseline_no_test_is_loaded(project):
    (project / GATES).write_text(gates())
    tests = ours("stats.paired", "stats.differences", "stats.paired_swap", "stats.power", "stats.draws")
    assert by_command(["score", "--format", "markdown"], project, tests) == []


def test_every_name_of_statistics_is_there_and_no_other():
    assert {name for names in stats._HOMES.values() for name in names} == set(stats.__all__)
    assert all(callable(getattr(stats, name)) for name in stats.__all__)
    with pytest.raises(AttributeError, match="no attribute 'medain'"):
        _ = stats.medain


def test_what_a_run_has_built_is_not_walked_when_it_ends():
    with uncollected():
        walked = [one["collections"] for one in gc.get_stats()]
        held = [[number] for number in range(10_000)]
    held.append([])
    assert (gc.isenabled(), len(held)) == (True, 10_001)
    assert [one["collections"] for one in gc.get_stats()] == walked


def test_a_gates_file_adds_yaml_alone(project):
    (project / GATES).write_text(gates())
    assert by_command(["score", "--format", "markdown"], project, SLOW) == []


INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where tests run

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "orjson":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
try:
    import rag_eval.quick_json
except KeyboardInterrupt:
    print("orjson" in sys.modules)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there, signals cannot be held back")
def test_ctrl_c_waits_until_orjson_is_loaded():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_orjson_is_loaded_in_that_way_alone():
    importing = re.compile("^ *(?:import|from) orjson", re.MULTILINE)
    files = (Path(rag_eval.__file__).parent).rglob("*.py")
    assert [file.name for file in files if importing.search(file.read_text("utf-8"))] == ["quick_json.py"]


@pytest.mark.parametrize("method", ["finditer", "findall", "search", "match", "fullmatch", "split"])
@pytest.mark.parametrize("text", ["", "ab", "xabyABz", "a b"])
def test_a_pattern_compiled_later_finds_the_same(method, text):
    later, now = Later("ab", re.IGNORECASE), re.compile("ab", re.IGNORECASE)
    found, wanted = (getattr(each, method)(text) for each in (later, now))
    if method == "finditer":
        found, wanted = [one.span() for one in found], [one.span() for one in wanted]
    elif method in ("search", "match", "fullmatch"):
        found, wanted = (one and one.span() for one in (found, wanted))
    assert found == wanted


def test_a_pattern_compiled_later_replaces_the_same():
    assert Later("a+").sub("-", "baab") == "b-b"
