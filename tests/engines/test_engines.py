"""Engines: the same report bytes, no process left, only as many as there are cores."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cases import ROOT
from rag_eval import api
from rag_eval.cli.score import reference_scores
from rag_eval.engines.file_scorer import processes, run_in_processes, usable_cores
from reading import gold, jsonl, trace
from seams import ExecutionOptions, InputError, UsageError, render

LONG = [f"p{number}#0" for number in range(30)]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks on Linux alone")


def row(number):
    ours = {"qid": f"A{number % 500:04}", "run": f"r{number // 2000}", "z": "x" * 600}
    if number % 3 == 0:
        ours["retrieved_ids"] = LONG[number % 2 :]
    if number % 1000 == 7:
        ours |= {"q_id": "other", f"unknown{number % 3}": 1}
    return trace(**ours, latency_ms={"total": number % 100 / 7})


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Some six megabytes of traces: several runs, duplicates, unknown questions, long lists, unknown fields."""
    folder = tmp_path_factory.mktemp("large")
    items = [gold(qid=f"A{number:04}", question=f"What is {number}?") for number in range(450)]
    (folder / "gold.jsonl").write_bytes(jsonl(*items))
    (folder / "trace.jsonl").write_bytes(jsonl(*map(row, range(8000))))
    return folder


def scores(folder, execution):
    return reference_scores(api.Options(str(folder / "gold.jsonl"), str(folder / "trace.jsonl"), execution=execution))


@linux
def test_the_reference_scores_of_processes_and_their_remarks_are_those_of_one(large):
    alone = scores(large, ExecutionOptions(jobs=1))
    assert scores(large, ExecutionOptions(jobs=2)) == alone
    assert any("duplicate" in line for line in alone[1])


def report(folder, execution, name="trace.jsonl"):
    return render(api.run(api.Options(str(folder / "gold.jsonl"), str(folder / name), execution=execution)), "json")


def problems(folder, execution, name):
    with pytest.raises(InputError) as caught:
        report(folder, execution, name)
    return caught.value.lines()


@linux
@pytest.mark.parametrize("jobs", [2, 3, 7])
def test_processes_give_the_report_of_one(large, jobs):
    assert report(large, ExecutionOptions(jobs=jobs)) == report(large, ExecutionOptions(jobs=1))


@linux
def test_processes_give_the_problems_of_one(large):
    lines = (large / "trace.jsonl").read_bytes().splitlines(keepends=True)
    for number in range(100, 8000, 57):
        lines[number] = b"{\n" if number % 2 else jsonl(trace(qid=3, retrieved_ids="none"))
    (large / "bad.jsonl").write_bytes(b"".join(lines))
    result = problems(large, ExecutionOptions(jobs=3), "bad.jsonl")
    assert result == problems(large, ExecutionOptions(jobs=1), "bad.jsonl")
    assert "not shown" in result[-1]


@linux
def test_a_packed_file_is_read_by_one_process(large):
    import gzip

    (large / "trace.jsonl.gz").write_bytes(gzip.compress((large / "trace.jsonl").read_bytes(), 0))
    item, other = (json.loads(report(large, ExecutionOptions(jobs=jobs), "trace.jsonl.gz")) for jobs in (1, 2))
    assert item == other


@linux
def test_a_process_with_threads_is_not_forked(large):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert processes(2) == 1
        assert report(large, ExecutionOptions(jobs=2)) == report(large, ExecutionOptions(jobs=1))
    finally:
        stop.set()
        thread.join()


def done_by(work, count, jobs):
    with run_in_processes(work, range(count)[::-1], jobs) as result:
        return dict(result)


@linux
def test_what_no_process_delivers_is_done_here():
    """A process that is killed, as for want of memory, leaves its range to the parent."""
    parent = os.getpid()

    def score(number):
        if number in (1, 4) and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * 10, os.getpid() == parent

    result = done_by(score, 6, 2)
    assert {number: value for number, (value, _) in result.items()} == {number: number * 10 for number in range(6)}
    assert {1, 4} <= {number for number, (_, here) in result.items() if here}


@linux
def test_a_defect_in_a_process_is_one_here():
    before = children_of(os.getpid())
    with pytest.raises(ZeroDivisionError):
        done_by(lambda number: number / 0, 3, 2)
    assert children_of(os.getpid()) == before


@linux
def test_results_that_nobody_asks_for_leave_no_process():
    before = children_of(os.getpid())
    with run_in_processes(lambda number: number, range(4), 2):
        assert len(children_of(os.getpid())) == len(before) + 2
    assert children_of(os.getpid()) == before


def test_one_core_does_one_thing(monkeypatch):
    monkeypatch.setattr("rag_eval.engines.file_scorer.usable_cores", lambda: 1)
    assert (processes(0), processes(1)) == (1, 1)


def children_of(pid):
    result = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, parent = stat.parent.name, stat.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        result += [int(name)] if int(parent) == pid else []
    return result


# What a shell starts in the background ignores interrupts, and so does what that starts.
HEEDING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@linux
@pytest.mark.parametrize("known", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_child_and_no_file(large, tmp_path, known):
    big = tmp_path / "trace.jsonl"
    with big.open("wb") as file:
        for _ in range(30):
            file.write((large / "trace.jsonl").read_bytes())
    command = [sys.executable, "-c", HEEDING, "-m", "rag_eval", "score", "--gold", str(large / "gold.jsonl")]
    command += ["--trace", str(big), "--jobs", "2", "--out", str(tmp_path / "out")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(command, env=env, cwd=tmp_path, **pipes)
    deadline = time.monotonic() + 60
    while len(ours := children_of(running.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ours) == 2
    running.send_signal(known)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130 if known == signal.SIGINT else -signal.SIGTERM, b"", b"")
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in ours) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in ours if Path(f"/proc/{pid}").exists()]
    assert not (tmp_path / "out").exists()


def test_small_files_load_nothing_that_only_large_ones_need():
    code = """
import sys
from rag_eval import api
from rag_eval.engines import ExecutionOptions
gold, trace = "examples/quickstart/gold.jsonl", "examples/quickstart/good.jsonl"
api.run(api.Options(gold, trace, execution=ExecutionOptions(jobs=8)))
late = {"selectors", "multiprocessing", "concurrent.futures", "pickle"}
print(sorted(late & set(sys.modules)))
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_engine_that_is_none_is_refused(large):
    with pytest.raises(UsageError, match=r"unknown engine 'spark'\. Choose from: process"):
        report(large, ExecutionOptions(engine="spark"))


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({}, 10**6),
        ({"cpu.max": "max 100000\n"}, 10**6),
        ({"cpu.max": "50000 100000\n"}, 1),
    ],
)
def test_no_more_processes_than_cores_that_may_be_used(tmp_path, files, count):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(str(tmp_path)) == min(ours, count)
