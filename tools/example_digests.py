"""Prints the sha256 of the report of every example in every format that holds figures; ``--check`` compares them.

The bytes are the same on every supported Python: CI runs this on each of them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

from rag_eval.api import Options, run
from rag_eval.rendering import render

ROOT = Path(__file__).parent.parent
EXPECTED = ROOT / "tests" / "expected" / "examples.sha256"
RUNS = (
    ("examples/quickstart", "good.jsonl", ""),
    ("examples/quickstart", "bad.jsonl", ""),
    ("examples/quickstart", "bad.jsonl", "good.jsonl"),
    ("examples/perspectives", "trace.jsonl", ""),
)
FORMATS = ("json", "markdown", "csv", "junit")


def digests() -> str:
    """A line for each report: digest, folder, traces, baseline and format."""
    lines = []
    for folder, trace, before in RUNS:
        os.chdir(ROOT / folder)
        baseline = "before.json" if before else ""
        if before:
            Path(baseline).write_text(render(run(Options("gold.jsonl", before, "eval-gates.yml")), "json"), "utf-8")
        try:
            report = run(Options("gold.jsonl", trace, "eval-gates.yml", baseline=baseline))
        finally:
            Path("before.json").unlink(missing_ok=True)
        for form in FORMATS:
            digest = hashlib.sha256(render(report, form).encode()).hexdigest()
            lines.append(f"{digest}  {folder} {trace} {before or '-'} {form}\n")
    return "".join(lines)


def main() -> int:
    """Print, write or compare the digests; 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with tests/expected/examples.sha256")
    parser.add_argument("--write", action="store_true", help="write that file")
    args = parser.parse_args()
    found = digests()
    if args.write:
        EXPECTED.write_text(found, encoding="utf-8")
    if args.check and found != EXPECTED.read_text(encoding="utf-8"):
        sys.stdout.write(found)
        print(
            f"differs from {EXPECTED}; if that is right, run: python tools/example_digests.py --write", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
