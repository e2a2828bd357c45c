"""Measures how often the look for instructions to a model finds attacks, and how often it takes ordinary text for some.

    python bench/instructions.py [--data ../shared/data] [--write]

DATA holds ``injection/deepset.jsonl`` and the traces of four sets with chunk texts. ``--write`` puts the table into the
marked block of bench/SAFETY.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rag_eval.textual.instructions import instruction

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "bench" / "SAFETY.md"
BEGIN, END = "<!-- measured: bench/instructions.py -->\n", "<!-- end -->"
SETS = ("azure-nw50", "begin", "clapnq", "mtrag")


def rows(file):
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def texts(data):
    """The texts by name of the set and what they are."""
    prompts = rows(data / "injection" / "deepset.jsonl")
    found = {}
    for split in ("train", "test"):
        for attack, what in ((1, "attacks"), (0, "benign prompts")):
            found[f"deepset, {split}", what] = [
                one["text"] for one in prompts if one["split"] == split and one["attack"] == attack
            ]
    for name in SETS:
        chunks = [row.get("chunks") or () for file in sorted((data / name).glob("trace*.jsonl")) for row in rows(file)]
        found[name, "chunks"] = list(dict.fromkeys(one["text"] for some in chunks for one in some if one.get("text")))
    return found


def table(data):
    """The lines of the table."""
    yield "| set | texts | found | share | µs a 1,000 characters |"
    yield "|---|---:|---:|---:|---:|"
    for (name, what), some in texts(data).items():
        began = time.process_time()
        found = sum(instruction(text) is not None for text in some)
        cost = (time.process_time() - began) / sum(map(len, some)) * 1e9
        yield f"| {name} | {len(some)} {what} | {found} | {found / len(some):.3f} | {cost:.0f} |"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    text = "\n".join(table(args.data))
    print(text)
    if args.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
