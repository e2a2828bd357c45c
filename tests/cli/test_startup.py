"""Which heavy packages a small run does not load: modules are counted, not milliseconds, which no machine repeats."""

import subprocess
import sys

import pytest

from project import GATES, GOLD, TRACE, gates, gold_of, json_lines, trace_of

HEAVY = ["jsonschema", "referencing", "yaml", "tabulate", "urllib3", "numpy", "dask", "distributed"]
HEAVY += ["concurrent.futures", "multiprocessing", "importlib.metadata", "socket", "statistics", "tempfile"]
OF_OTHER_COMMANDS = ["rag_eval.git", "rag_eval.importers"]
HELP = ["--help", "--version", "score --help", "compare --help", "gate --help", "gold --help", "demo --help"]


@pytest.fixture
def project(tmp_path):
    """A folder with six questions in the usual places."""
    for name, of in ((GOLD, gold_of), (TRACE, trace_of)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json_lines(map(of, range(1, 7))))
    return tmp_path


def loaded_by(words, cwd, modules=HEAVY):
    """The modules, of some, that a command loads in a fresh interpreter."""
    code = f"""
import contextlib, sys
sys.stdout = sys.stderr
from rag_eval import cli
with contextlib.suppress(SystemExit):
    cli.main({words!r})
sys.__stdout__.write(' '.join(name for name in {modules!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("words", HELP)
def test_to_show_help_nothing_heavy_is_loaded(words, tmp_path):
    assert loaded_by(words.split(), tmp_path) == []


@pytest.mark.parametrize("words", ["score --help", "score --format scores", "gold check --help"])
def test_without_metrics_their_modules_are_not_loaded(words, project):
    code = f"""
import contextlib, sys
from rag_eval import cli
with contextlib.suppress(SystemExit):
    cli.main({words.split()!r})
sys.exit('rag_eval.metrics' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["scores", "markdown", "html", "csv", "junit", "sarif", "json"])
def test_a_small_run_loads_nothing_heavy(form, project):
    assert loaded_by(["score", "--format", form], project, HEAVY + OF_OTHER_COMMANDS) == []


def test_a_gates_file_adds_only_yaml(project):
    (project / GATES).write_text(gates())
    assert loaded_by(["score", "--format", "markdown"], project) == ["yaml"]


def test_only_a_refused_row_loads_jsonschema(project):
    (project / TRACE).write_text('{"qid": "Q1"}\n')
    assert "jsonschema" in loaded_by(["score", "--format", "markdown"], project)


def test_a_run_without_chunk_texts_reads_no_lexicon(project):
    code = """
import sys
from rag_eval import cli
cli.main(['score', '--format', 'markdown', '--out', 'report'])
sys.exit('rag_eval.textual.words' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
