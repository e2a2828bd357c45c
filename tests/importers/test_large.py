"""Memory and progress of `rag-eval import otlp`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from cases import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import otlp_memory

sys.path.remove(str(ROOT / "bench"))


@pytest.mark.parametrize("shape", ["one", "single", "pretty"])
def test_memory_is_that_of_the_texts_in_any_container(tmp_path, shape):
    path = tmp_path / "spans.json"
    traces = otlp_memory.write(path, shape, 25_000_000)
    memory, _ = otlp_memory.measured(path)
    assert memory < 90  # 250 MB for 100 MB; reading the file whole took 130
    assert path.with_suffix(".jsonl").read_bytes().count(b"\n") == traces


def test_containers_of_the_same_spans_give_the_same_rows(tmp_path, command):
    made = set()
    for shape in ("one", "single", "lines", "pretty"):
        path = tmp_path / "spans.json"
        otlp_memory.write(path, shape, 1)
        made.add(command("import", "otlp", path, "--quiet")[1])
    assert len(made) == 1


def test_a_terminal_sees_progress(tmp_path):
    path = tmp_path / "spans.json"
    otlp_memory.write(path, "short", 12_000_000)
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "rag_eval", "import", "otlp", path, "--out", tmp_path / "t.jsonl"]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    subprocess.run(command, stderr=terminal, check=True, env=environment)
    os.close(terminal)
    shown = b""
    while b"metrics that apply to these traces" not in shown:
        shown += os.read(controller, 65536)
    os.close(controller)
    assert b" of 12 MB" in shown
