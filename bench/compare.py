"""Times rag-eval against the plain scorer of the tests, in turn, and prints ratios of wall time.

    python bench/compare.py [--rounds 15] [--write]

Both are whole processes of the same Python; rag-eval validates everything, the plain scorer nothing. The ratio is taken
round by round, so that it holds when the machine's speed drifts. ``--write`` puts the table into bench/RESULTS.md.
"""

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLAIN = [sys.executable, str(ROOT / "tests" / "plain_scorer.py")]
OURS = [str(Path(sys.executable).parent / "rag-eval"), "score"]
GATES = ROOT / "src" / "rag_eval" / "templates" / "gates-reference.yml"
# name, questions, traces, our options, rounds divided by
WORK = [
    ("100 questions, --format scores", 100, 100, ["--format", "scores"], 1),
    ("100 questions, gates file and Markdown", 100, 100, ["--gates", str(GATES), "--format", "markdown"], 1),
    ("10,000 questions, --format scores", 10_000, 10_000, ["--format", "scores"], 2),
    ("100,000 traces of 100,000 questions, --format scores", 100_000, 100_000, ["--format", "scores"], 3),
    ("100,000 traces of 10,000 questions, --format scores", 10_000, 100_000, ["--format", "scores"], 3),
    ("100,000 traces of 100,000 questions, all metrics, Markdown", 100_000, 100_000, ["--format", "markdown"], 5),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    # As an installed package is; an editable checkout may hold stale byte code, or none.
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "src"), str(ROOT / "tests")], check=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), *work, args.rounds) for work in WORK]
    text = table(rows)
    print(text)
    if args.write:
        (ROOT / "bench" / "RESULTS.md").write_text(HEAD.format(machine=machine()) + text + "\n", encoding="utf-8")


def measure(folder, name, questions, traces, options, divisor, rounds):
    data = folder / f"{questions}-{traces}"
    if not data.exists():
        maker = [sys.executable, str(ROOT / "bench" / "make_data.py"), str(data), str(questions), str(traces)]
        subprocess.run(maker, check=True)
    files = ["--gold", str(data / "gold.jsonl"), "--trace", str(data / "trace.jsonl")]
    pairs = [(run(OURS + options + files), run(PLAIN + files)) for _ in range(max(3, rounds // divisor) + 1)][1:]
    ours, plain = ([pair[side] for pair in pairs] for side in (0, 1))
    ratios = [mine[0] / other[0] for mine, other in pairs]
    return name, ours, plain, ratios


def run(command):
    """Wall seconds and peak MiB of a command."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/") as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024


def table(rows):
    lines = [
        "| work | rag-eval s | plain s | ratio: median (least to most) | rag-eval MiB | plain MiB |",
        "|---|---|---|---|---|---|",
    ]
    for name, ours, plain, ratios in rows:
        seconds = [statistics.median(one[0] for one in side) for side in (ours, plain)]
        memory = [statistics.median(one[1] for one in side) for side in (ours, plain)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(f"| {name} | {seconds[0]:.3f} | {seconds[1]:.3f} | {spread} | {memory[0]:.0f} | {memory[1]:.0f} |")
    return "\n".join(lines)


def machine():
    system = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    return f"{system}, {resource.getpagesize() * os.sysconf('SC_PHYS_PAGES') >> 30} GiB"


HEAD = """\
# Measured

Written by `python bench/compare.py --write` ({machine}). Whole processes in turn; a ratio below 1 means that
rag-eval is faster. The plain scorer (`tests/plain_scorer.py`) computes five numbers and validates nothing; rag-eval
validates every row against its schema, refuses what is not strict JSON, and in the last row scores every metric.

"""


if __name__ == "__main__":
    main()
