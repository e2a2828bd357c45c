"""Bad input of every kind: exit code 2 and a clear line, never a traceback, never a flood."""

import io
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout

import pytest

from depth import DEEP
from garbage.kinds import KINDS
from reading import gold, jsonl, trace
from seams import main
from table import each_row

FILES = {"gold": "gold.jsonl", "trace": "trace.jsonl", "gates": "gates.yml"}
GOOD = {"gold": jsonl(gold()), "trace": jsonl(trace()), "gates": b"version: 1\n"}
SECONDS = 60


OPTIONS = [word for role, name in FILES.items() for word in (f"--{role}", name)]


def score(folder):
    """Score in a process of its own, which may take a minute."""
    command = [sys.executable, "-m", "rag_eval", "score", *OPTIONS]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=SECONDS)


def score_here(folder):
    """Score in this process."""
    with chdir(folder), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(["score", *OPTIONS])
    return subprocess.CompletedProcess(OPTIONS, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The outcome of each kind, run once: in this process, or in a deep run in a process each."""
    folders = [tmp_path_factory.mktemp("garbage") / "in" for _ in KINDS]
    if not DEEP:
        return {kind.name: _outcome(kind, folder, score_here) for kind, folder in zip(KINDS, folders, strict=True)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(_outcome, KINDS, folders, [score] * len(KINDS))
        return dict(zip((kind.name for kind in KINDS), runs, strict=True))


def _outcome(kind, folder, score):
    folder.mkdir()
    for role, name in FILES.items():
        content = kind.content if role == kind.role else GOOD[role]
        if callable(content):
            content(folder / name)
        else:
            (folder / name).write_bytes(content)
    return score(folder)


def of_every_kind(test):
    return each_row("kind", KINDS, ids=lambda kind: f"{kind.role}: {kind.name}")(test)


def test_the_files_around_the_bad_one_are_good(tmp_path):
    for role, name in FILES.items():
        (tmp_path / name).write_bytes(GOOD[role])
    assert score(tmp_path).returncode in (0, 1)


def test_there_are_at_least_45_kinds_each_with_a_name_of_its_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS) >= 45


@of_every_kind
def test_it_ends_with_exit_code_2_and_prints_no_scores(outcomes, kind):
    assert (outcomes[kind.name].returncode, outcomes[kind.name].stdout) == (2, "")


@of_every_kind
def test_there_is_no_traceback(outcomes, kind):
    assert "Traceback" not in outcomes[kind.name].stderr
    assert "defect" not in outcomes[kind.name].stderr


@of_every_kind
def test_it_says_what_is_wrong(outcomes, kind):
    assert [word for word in kind.words if word not in outcomes[kind.name].stderr] == []


@of_every_kind
def test_it_says_where(outcomes, kind):
    assert outcomes[kind.name].stderr.startswith(FILES[kind.role] + kind.place)


@of_every_kind
def test_each_line_begins_with_the_name_of_the_bad_file(outcomes, kind):
    lines = outcomes[kind.name].stderr.splitlines()
    assert [line for line in lines if not line.startswith((f"{FILES[kind.role]}:", "… and "))] == []


@of_every_kind
def test_there_are_as_many_lines_as_there_are_problems_and_no_flood(outcomes, kind):
    assert len(outcomes[kind.name].stderr.splitlines()) == kind.lines <= 101


@of_every_kind
def test_no_line_is_long(outcomes, kind):
    assert max(map(len, outcomes[kind.name].stderr.splitlines())) <= 400


@of_every_kind
def test_it_shows_little_of_the_data(outcomes, kind):
    output = outcomes[kind.name].stderr
    content = kind.content if isinstance(kind.content, bytes) else b""
    text = content[: 1 << 16].decode("utf-8", "replace")
    assert not any(text[start : start + 81] in output for start in range(0, len(text) - 80, 7))
    assert "SECRET" not in output


@of_every_kind
def test_no_line_is_a_command_to_the_runner(outcomes, kind):
    assert not re.search(r"(?m)^\s*::|##\[", outcomes[kind.name].stderr)
