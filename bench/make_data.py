"""Makes gold and trace files of a given size, always the same for the same size.

    python bench/make_data.py FOLDER QUESTIONS [TRACES] [--chunks]

Writes gold.jsonl and trace.jsonl. More traces than questions repeat the questions: the last one of each counts.
"""

import argparse
import json
import random
from pathlib import Path

WORDS = "parcel depot courier shop label weight price claim damage insurance account link request limit key day".split()


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


def trace(i, item, chunks):
    rng = random.Random(f"trace {i}")
    pool = [f"doc{rng.randrange(997)}#{rng.randrange(9)}" for _ in range(10)]
    found = [one for one in item["gold_citations"] if rng.random() < 0.85]
    ids = list(dict.fromkeys(found + pool))[:10]
    rng.shuffle(ids)
    refuse = rng.random() < (0.05 if item["answerable"] else 0.9)
    claim = f"{sentence(rng, 20)} The answer number {i % 10**6 if rng.random() < 0.1 else int(item['qid'][1:])} it is."
    answer = (
        {"claim": "not in context", "citations": []} if refuse else {"claim": claim, "citations": found[:1] or ids[:1]}
    )
    row = {"qid": item["qid"], "q": item["question"], "retrieved_ids": ids, "answer_json": answer}
    row["latency_ms"] = {"retrieve": rng.randint(20, 90), "generate": rng.randint(300, 900)}
    if chunks:
        row["chunks"] = [{"id": one, "text": sentence(rng, 110)} for one in ids[:8]]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=int)
    parser.add_argument("traces", type=int, nargs="?")
    parser.add_argument("--chunks", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    items = [gold(i) for i in range(args.questions)]
    with (args.folder / "gold.jsonl").open("w") as file:
        file.writelines(json.dumps(item) + "\n" for item in items)
    with (args.folder / "trace.jsonl").open("w") as file:
        for i in range(args.traces or args.questions):
            file.write(json.dumps(trace(i, items[i % len(items)], args.chunks)) + "\n")


if __name__ == "__main__":
    main()
