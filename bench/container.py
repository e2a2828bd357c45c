"""Measures the image of the action: its size, and the time from the start of a container to its verdict.

    python bench/container.py [--write] [--runs N]

Needs what tests/e2e/install.sh installs, as root. The container runs as GitHub's runner starts it, and posts its
comment to a small GitHub on this machine. --write puts the figures into bench/CONTAINER.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from e2e import engine as engines  # noqa: E402
from e2e.runner import Runner  # noqa: E402
from fake_github import FakeGitHub  # noqa: E402

GATES = "version: 1\nk: 5\ngates: {precision: {min: 0.5}, chr: {min: 0.5}, under_refusal: {max: 0.2}}\n"
SIZES = (100, 10_000)
EVENT = {
    "number": 2,
    "pull_request": {"number": 2, "head": {"sha": "a" * 40}},
    "repository": {"full_name": "octo/hello"},
}
MIB = 1 << 20


def image_of(engine, folder):
    """The image, built from what git would hand out, and its base."""
    base = engines.base_image(engine)
    context = folder / "context"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        (context / name).write_bytes((ROOT / name).read_bytes())
    return engine.build(context, "localhost/rag-eval-action:bench"), base


def bytes_of(engine, image):
    return int(engine.must("image", "inspect", "--format", "{{.Size}}", image))


def workspace_of(folder, questions):
    work = folder / f"work-{questions}"
    subprocess.run([sys.executable, ROOT / "bench/make_data.py", work, str(questions)], check=True)
    (work / "eval-gates.yml").write_text(GATES)
    return work


def seconds_of(runner, times):
    """How long each of several runs took, the first one left out: it fills the caches."""
    found = []
    for number in range(times + 1):
        began = time.perf_counter()
        done = runner.run(number + 1, gold="gold.jsonl", trace="trace.jsonl")
        found.append(time.perf_counter() - began)
        assert done.outputs["comment-written"] == "true", done.log
        assert done.outputs["verdict"] in ("passed", "failed"), done.log
    return found[1:]


def bare(engine, image, times):
    """How long a container takes that does nothing."""
    found = []
    for _ in range(times + 1):
        began = time.perf_counter()
        engine.must("run", "--rm", "--entrypoint", "/usr/local/bin/python", image, "-c", "pass")
        found.append(time.perf_counter() - began)
    return found[1:]


def row(what, seconds):
    return f"| {what} | {median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} |"


def measured(times):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = engines.start(folder)
        image, base = image_of(engine, folder)
        whole, below = bytes_of(engine, image), bytes_of(engine, base)
        rows = [row("a container that does nothing", bare(engine, image, times))]
        for questions in SIZES:
            with FakeGitHub().serving() as github:
                github.add_pull(2, "a" * 40, "b" * 40)
                work = workspace_of(folder, questions)
                runner = Runner(engine, image, ROOT, work, json.loads(json.dumps(EVENT)), github.url, event_name="")
                rows.append(row(f"{questions:,} questions, comment posted", seconds_of(runner, times)))
    return whole, below, rows


def page(times):
    whole, below, rows = measured(times)
    machine = f"{os.cpu_count()} cores, {platform.system()}, podman with runc"
    return f"""# The image, measured

Written by `python bench/container.py --write` ({machine}; {times} runs each, after one not counted). The base is a
stand-in of this machine's parts where no registry answers, so only what is added to it says something of the image
that users get.

| | MiB |
|---|---|
| added to the base: Git, ssh-keygen, the packages, rag-eval | {(whole - below) / MIB:.0f} |
| with the base | {whole / MIB:.0f} |

| from the start of the container to its end | median s | least | most |
|---|---|---|---|
{chr(10).join(rows)}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    text = page(args.runs)
    if args.write:
        (ROOT / "bench/CONTAINER.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
