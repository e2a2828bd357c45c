"""Makes gold and trace files of a given size, always the same for the same options.

    python bench/make_data.py FOLDER QUESTIONS [TRACES] [--chunks] [--words 20] [--runs] [--seed WORD]

Writes gold.jsonl and trace.jsonl. More traces than questions repeat the questions: the last one of each counts, or each
of them with --runs, where every pass over the questions is a run of its own. --words is the length of an answer;
--seed gives other traces for the same gold. Rows are made on all cores: 100 microseconds each, 300 with chunk texts.
"""

import argparse
import json
import random
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

WORDS = "parcel depot courier shop label weight price claim damage insurance account link request limit key day".split()
BLOCK = 2_000  # rows that a process makes at once


class Shape(NamedTuple):
    """What trace rows are like: the questions that they go round, and what they hold."""

    questions: int
    chunks: bool = False
    words: int = 20
    runs: bool = False
    seed: str = "trace"


def sentence(rng, n):
    return " ".join(rng.choices(WORDS, k=n)).capitalize() + "."


def gold(i):
    rng = random.Random(f"gold {i}")
    answerable = rng.random() < 0.8
    return {
        "qid": f"Q{i:07d}",
        "question": sentence(rng, 12),
        "answerable": answerable,
        "gold_claim_substr": [f"answer number {i}"] if answerable else [],
        "gold_citations": [f"doc{i % 997}#{j}" for j in range(rng.randint(1, 3))] if answerable else [],
    }


def trace(i, item, shape):
    rng = random.Random(f"{shape.seed} {i}")
    pool = [f"doc{rng.randrange(997)}#{rng.randrange(9)}" for _ in range(10)]
    found = [one for one in item["gold_citations"] if rng.random() < 0.85]
    ids = list(dict.fromkeys(found + pool))[:10]
    rng.shuffle(ids)
    refuse = rng.random() < (0.05 if item["answerable"] else 0.9)
    said = sentence(rng, shape.words)
    number = i % 10**6 if rng.random() < 0.1 else int(item["qid"][1:])
    claim = f"{said} The answer number {number} it is."
    answer = (
        {"claim": "not in context", "citations": []} if refuse else {"claim": claim, "citations": found[:1] or ids[:1]}
    )
    row = {"qid": item["qid"], "q": item["question"], "retrieved_ids": ids, "answer_json": answer}
    row["latency_ms"] = {"retrieve": rng.randint(20, 90), "generate": rng.randint(300, 900)}
    if shape.chunks:
        row["chunks"] = [{"id": one, "text": sentence(rng, 110)} for one in ids[:8]]
    return {"run": f"run-{i // shape.questions:03d}", **row} if shape.runs else row


def gold_line(i):
    return json.dumps(gold(i)) + "\n"


def trace_line(shape, i):
    return json.dumps(trace(i, gold(i % shape.questions), shape)) + "\n"


def block(line, count, begin):
    return "".join(map(line, range(begin, min(begin + BLOCK, count))))


def write(path, line, count):
    """The lines 0 to ``count``, made by as many processes as there are cores where that pays."""
    begins = range(0, count, BLOCK)
    make = partial(block, line, count)
    with path.open("w") as file:
        if len(begins) == 1:
            file.write(make(0))
            return
        with ProcessPoolExecutor() as pool:
            file.writelines(pool.map(make, begins))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=int)
    parser.add_argument("traces", type=int, nargs="?")
    parser.add_argument("--chunks", action="store_true")
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--runs", action="store_true")
    parser.add_argument("--seed", default="trace")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    shape = Shape(args.questions, args.chunks, args.words, args.runs, args.seed)
    write(args.folder / "gold.jsonl", gold_line, args.questions)
    write(args.folder / "trace.jsonl", partial(trace_line, shape), args.traces or args.questions)


if __name__ == "__main__":
    main()
