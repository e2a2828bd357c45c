"""What the sign-off hook costs a commit that touches no gold: against `git diff --cached --quiet` and a bare Python.

    python bench/hook.py [--rounds 21]

A repository with 1,000 signed gold items and another file staged; both sides are timed in turn, so that the ratio holds
on a noisy machine.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import rag_eval

ITEMS = 1_000
HOOK = [str(Path(sys.executable).with_name("rag-eval")), "gold", "check", "--staged"]
GATES = "version: 1\ngold: eval/gold.jsonl\ngates: {precision: {min: 0.8}}\nsignoff: {require: record}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    compileall.compile_dir(str(Path(rag_eval.__file__).parent), quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        repository(Path(folder))
        pairs = [(floor(folder), timed(folder, *HOOK)) for _ in range(rounds + 1)][1:]
    ratio = median(hook / least for least, hook in pairs)
    least, hook = (1e3 * median(side) for side in zip(*pairs, strict=True))
    print(f"sign-off hook, {ITEMS:,} items, none touched: {hook:.0f} ms")
    print(f"git diff --cached --quiet, and a bare Python: {least:.0f} ms; ratio {ratio:.2f}")


def repository(folder: Path) -> None:
    """A first commit with signed gold, and a change of something else staged."""
    (folder / "eval").mkdir()
    rows = (json.dumps(item(number)) + "\n" for number in range(ITEMS))
    (folder / "eval/gold.jsonl").write_text("".join(rows))
    (folder / "eval-gates.yml").write_text(GATES)
    for words in ("init -q", "config user.email bench@example.org", "config user.name bench", "add -A"):
        run(folder, "git", *words.split())
    run(folder, HOOK[0], "gold", "signoff", "--reason", "bench")
    run(folder, "git", "commit", "-q", "-m", "signed")
    (folder / "notes.txt").write_text("a change\n")
    run(folder, "git", "add", "-A")


def item(number: int) -> dict[str, object]:
    question = f"What stands on line {number} of the list?"
    own = {"qid": f"Q{number:04}", "question": question, "answerable": True}
    return {**own, "gold_claim_substr": [f"value {number} of"], "gold_citations": [f"list#{number}"]}


def floor(folder: str) -> float:
    return timed(folder, "git", "diff", "--cached", "--quiet") + timed(folder, sys.executable, "-c", "pass")


def timed(folder: str, *command: str) -> float:
    start = time.perf_counter()
    run(folder, *command, ok=(0, 1))
    return time.perf_counter() - start


def run(folder: str | Path, *command: str, ok: tuple[int, ...] = (0,)) -> None:
    # As git runs a hook: it names the index of the commit that is being made.
    environ = {**os.environ, "GIT_INDEX_FILE": ".git/index"}
    done = subprocess.run(command, check=False, cwd=folder, env=environ, stdout=subprocess.DEVNULL)
    assert done.returncode in ok, command


if __name__ == "__main__":
    main()
