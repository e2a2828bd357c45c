"""Compare the instructions of small runs with a base, counted by valgrind.

    python bench/watch.py [--base main] [--limit 3] [--repeat 1]

Counts the instructions of whole runs, of the checkout and of the base, which is a branch or a commit. The same files
give the same count on every run, even on a busy machine (--repeat shows the spread), so a change of one percent is
visible. Instructions are not time: they contain no waiting for memory or disk, and each run has one process; use
`make bench` for these. Both sides use the packages that are installed now. The exit code is 1 if a run takes --limit
percent more instructions than at the base. GitHub Actions also shows the table in the summary of the job.
"""

from __future__ import annotations

import argparse
import compileall
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PARTS = ("src", "schemas", "examples")  # the package, and the files that it reads
SIDES = ("base", "head")  # folders: names of equal length, because the length of paths changes the count
COUNTED = re.compile(r"I +refs: +([0-9,]+)")
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
GATES = "version: 1\ngates: {precision: {min: 0.8}, chr: {min: 0.75}, under_refusal: {max: 0.2}, mrr: {min: 0.1}}\n"
CORE = "answers,refusals,citations,retrieval"


class Work(NamedTuple):
    """Arguments of make_data.py, and the options of `rag-eval score` for that data."""

    name: str
    data: str
    options: str


WORKS = (
    Work("100 questions, --format scores", "100", "--format scores"),
    Work("100 questions, gates and Markdown", "100", "--gates gates.yml --format markdown"),
    Work("10,000 traces, --format scores", "1000 10000", "--jobs 1 --format scores"),
    Work("10,000 traces, core and retrieval metrics", "1000 10000", f"--jobs 1 --perspective {CORE} --format markdown"),
    Work("100 traces with chunk texts, every metric", "100 100 --chunks", "--jobs 1 --format markdown"),
)


class Counts(NamedTuple):
    """Instructions of each run at the base and at the head; empty for a side that failed."""

    name: str
    base: list[int]
    head: list[int]

    @property
    def change(self):
        """Return the change in percent; None without both sides."""
        return (min(self.head) / min(self.base) - 1) * 100 if self.base and self.head else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="main", help="a branch or commit (main)")
    parser.add_argument("--limit", type=float, default=3, help="the maximum increase in percent (3)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, to see the spread")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed. On Debian: apt-get install valgrind")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, args.base)
        results = [counts(folder, work, args.repeat) for work in WORKS]
    text = table(results, args.base, args.limit)
    print(text)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    sys.exit(0 if all(outcome(one, args.limit)[0] for one in results) else 1)


def prepare(folder, base):
    """Make both sides as they would be installed, with byte code, and the data."""
    archive = subprocess.run(["git", "archive", base, *PARTS], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"no base '{base}': {archive.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as file:
        file.extractall(folder / "base", filter="data")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / "head" / part, ignore=shutil.ignore_patterns("__pycache__"))
    for package in ("yaml", "msgspec"):  # uv installs them without byte code
        compileall.compile_dir(Path(find_spec(package).origin).parent, quiet=1)
    for side in SIDES:
        compileall.compile_dir(folder / side / "src", quiet=1)
        imported = run(folder, side, [sys.executable, "-c", "import rag_eval; print(rag_eval.__file__)"]).stdout
        if not Path(imported.strip()).is_relative_to(folder / side):
            raise SystemExit(f"another rag_eval comes before that of the {side}: {imported.strip()}")
    (folder / "gates.yml").write_text(GATES)
    for data in {work.data for work in WORKS}:
        maker = [sys.executable, ROOT / "bench" / "make_data.py", folder / place_of(data), *data.split()]
        subprocess.run(maker, check=True)


def place_of(data):
    return data.replace(" ", "-")


def run(folder, side, command):
    """Run a command with the code of a side in the folder of the data, without our environment variables."""
    environ = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environ["PYTHONPATH"] = str(folder / side / "src")
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def counts(folder, work, times):
    """Count a work on both sides at once."""
    sides = [side for side in SIDES for _ in range(times)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = list(pool.map(lambda side: count(folder, side, work), sides))
    print(f"{work.name}: {counted}", file=sys.stderr, flush=True)
    base, head = ([one for one in part if one is not None] for part in (counted[:times], counted[times:]))
    return Counts(work.name, base, head)


def count(folder, side, work):
    """Return the instructions of one run; None if it ends without a verdict."""
    files = [f"--{name}={place_of(work.data)}/{name}.jsonl" for name in ("gold", "trace")]
    score = [sys.executable, "-m", "rag_eval", "score", *work.options.split(), *files]
    done = run(folder, side, [*VALGRIND, *score])
    counted = COUNTED.search(done.stderr)
    if done.returncode not in (0, 1) or not counted:
        print(f"{work.name}, {side}: ended with {done.returncode}\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return int(counted[1].replace(",", ""))


def outcome(counts, limit):
    """Return whether a work is within the limit, and a remark."""
    if not counts.head:
        return False, "does not run"
    if not counts.base:
        return True, "does not run at the base"
    above = min(counts.head) * 100 > min(counts.base) * (100 + limit)
    return (False, f"above +{limit:g} %") if above else (True, "")


def table(results, base, limit):
    lines = [f"### Instructions against `{base}`", "", "| work | base | head | change | |", "|---|---|---|---|---|"]
    for one in results:
        change = "" if one.change is None else f"{one.change:+.2f} %"
        lines.append(
            f"| {one.name} | {millions(one.base)} | {millions(one.head)} | {change} | {outcome(one, limit)[1]} |"
        )
    return "\n".join([*lines, "", f"Millions of instructions; more than {limit:g} % above the base fail."])


def millions(counted):
    """Return the minimum of the counts, with the maximum if they differ."""
    if not counted:
        return "–"
    least, most = min(counted), max(counted)
    return f"{least / 1e6:,.2f}" + (f" to {most / 1e6:,.2f}" if most > least else "")


if __name__ == "__main__":
    main()
