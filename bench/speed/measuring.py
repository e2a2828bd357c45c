"""One measurement: the time and the memory of a command that runs as a whole process in the folder of the data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
LAUNCH = Path(__file__).with_name("launch.py")
PATIENCE = 1800  # seconds after which a command counts as hung
WORDS = {
    "python": sys.executable,
    "rag-eval": str(Path(sys.executable).with_name("rag-eval")),
    "plain": f"{sys.executable} {ROOT / 'tests' / 'plain_scorer.py'}",
    "peers": str(ROOT / "bench" / "speed" / "peers"),
    "root": str(ROOT),
}
SHOWN = {"python": "python", "rag-eval": "rag-eval", "plain": "python tests/plain_scorer.py"}
SHOWN |= {"peers": "bench/speed/peers", "root": "."}


class Failed(Exception):
    """A command without a figure, with the reason."""


class Took(NamedTuple):
    """Seconds (of the wall clock, or measured by the command), seconds of the processors, bytes, and the output."""

    wall: float
    cpu: float
    memory: int
    out: str


def shown(command):
    """Return a command as a person would type it in the root of the project."""
    return command.replace("{root}/", "").format(**SHOWN)


def run(command, folder, *, own=False):
    """Measure a command; raise Failed if it fails. With ``own`` it measures itself and prints JSON."""
    out, err = (folder / f".{name}" for name in ("out", "err"))
    words = ["sh", "-c", command.format(**WORDS)] if ";" in command else command.format(**WORDS).split()
    measured = json.loads(_launched([sys.executable, "-I", "-S", str(LAUNCH), str(out), str(err), *words], folder))
    text = out.read_text("utf-8", "replace")
    if measured["code"] not in (
        (0, 1) if "rag-eval}" in command or "-m rag_eval" in command else (0,)
    ):  # 1: a gate failed
        raise Failed(_last_line(err.read_text("utf-8", "replace")) or f"it ended with {measured['code']}")
    wall = _own_seconds(text, err.read_text("utf-8", "replace")) if own else measured["wall"]
    return Took(wall, measured["cpu"], measured["memory"], text)


def _own_seconds(text, said):
    try:
        return json.loads(text.splitlines()[-1])["seconds"]
    except (IndexError, KeyError, ValueError):
        raise Failed(_last_line(said) or "it printed no seconds") from None


def _last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""


def _launched(command, folder):
    """Return the output of the launcher. All processes that it started end with it."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            text, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"it did not end within {PATIENCE} seconds") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise Failed("it cannot be started")
    return text
