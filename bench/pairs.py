"""Every pair of several runs over one gold set: the difference of a metric, and whether chance would do it.

    python bench/pairs.py FOLDER [--metric precision]

FOLDER holds gold.jsonl and a trace.NAME.jsonl for each run. Prints a Markdown table: a run in a row against the run of
its column, with the p of the paired test, uncorrected.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--metric", default="precision")
    parser.add_argument("--k", default="3")
    args = parser.parse_args()
    files = sorted(args.folder.glob("trace.*.jsonl"))
    names = [file.name.removeprefix("trace.").removesuffix(".jsonl") for file in files]
    print(f"| {args.metric} | | {' | '.join(names)} |")
    print("|---" * (len(names) + 2) + "|")
    for base, name in enumerate(names):
        cells = compared(args, files, base)
        value = f"{cells[base]['value']:.3f}"
        print(f"| {name} | {value} | {' | '.join(shown(cell['against']) for cell in cells)} |")


def compared(args: argparse.Namespace, files: list[Path], base: int) -> list[dict]:
    """The cells of the metric with one of the runs for the base."""
    command = [sys.executable, "-m", "rag_eval", "compare", *map(str, files), "--gold", str(args.folder / "gold.jsonl")]
    command += ["--k", args.k, "--metric", args.metric, "--base", str(files[base]), "--format", "json", "--quiet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["metrics"][0]["cells"]


def shown(against: dict | None) -> str:
    """How much the run of the row is ahead of the run of the column."""
    return "–" if against is None else f"{0 - against['difference']:+.3f} (p {against['p']:.2f})"


if __name__ == "__main__":
    main()
