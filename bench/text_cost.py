"""Measures the processor time of the text metrics: of one answer, and of a run of 2,000 questions with every metric.

    python bench/text_cost.py [--data ../shared/data] [--fresh] [--profile]

Answers of 600 characters with five chunks of 700 are cut from the public sets of DATA: three or four systems answer a
question from the same chunks. With ``--fresh`` no chunk occurs twice. ``--profile``
prints where the time of one answer goes.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, getrusage

from rag_eval.cases import Case
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.metrics import METRICS

ROOT = Path(__file__).parent.parent
ANSWER, CHUNK, CHUNKS, QUESTIONS, ROUNDS = 600, 700, 5, 2000, 5
GROUPS = ("answers", "refusals", "citations", "context", "groundedness", "safety")


def texts(data: Path) -> list[tuple[str, list[str]]]:
    """Answers of the sets with their own chunks, all cut to size."""
    found = []
    for file in sorted([*data.glob("mtrag/trace.*.jsonl"), *data.glob("clapnq/trace.*.jsonl")]):
        for row in map(json.loads, file.read_text("utf-8").splitlines()):
            claim, whole = row["answer_json"]["claim"], " ".join(chunk["text"] for chunk in row.get("chunks") or ())
            if len(claim) >= ANSWER and len(whole) >= CHUNK:
                pieces = [whole[place : place + CHUNK] for place in range(0, CHUNKS * CHUNK, CHUNK)]
                found.append((claim[:ANSWER], [piece for piece in pieces if piece.strip()]))
    return found


def rows(data: Path, count: int, fresh: bool) -> list[tuple[dict, dict]]:
    """Gold and trace rows. An answer with fewer chunks than :data:`CHUNKS` gets some of others."""
    known, found = texts(data), []
    pool = list(dict.fromkeys(piece for _, pieces in known for piece in pieces))
    draw = Random(5)
    for number in range(count):
        claim, pieces = known[number % len(known)]
        mark = f" {number}" if fresh else ""
        pieces = list(dict.fromkeys([*pieces, *draw.sample(pool, CHUNKS)]))[:CHUNKS]
        chunks = [{"id": f"c{pool.index(text)}{mark}", "text": text + mark, "doc_id": "d"} for text in pieces]
        question = f"What does the document say about item {number}?"
        gold = {
            "qid": f"Q{number}",
            "question": question,
            "answerable": number % 8 > 0,
            "gold_claim_substr": [claim[:9]] if number % 8 else [],
            "gold_citations": [chunks[0]["id"]] if number % 8 else [],
            "expected_answer": claim[:120],
        }
        trace = {
            "qid": f"Q{number}",
            "q": question,
            "answer_json": {"claim": claim, "citations": [chunks[0]["id"]]},
            "retrieved_ids": [chunk["id"] for chunk in chunks],
            "chunks": chunks,
        }
        found.append((gold, trace))
    return found


def cases(data: Path, count: int, fresh: bool) -> list[Case]:
    """The same as cases."""
    return [
        Case(Gold.from_row(gold, 1), Trace.from_row(trace, gold["qid"], 1), Settings())
        for gold, trace in rows(data, count, fresh)
    ]


def scored(some: list[Case], groups: tuple[str, ...]) -> None:
    """Compute every metric of some groups."""
    metrics = [one for one in METRICS.values() if one.perspective in groups and not one.cutoff and one.level == "case"]
    for case in some:
        for one in metrics:
            one.score(case)


def of_an_answer(data: Path, fresh: bool) -> None:
    """Print the least of some rounds, for each group alone and for all together."""
    gc.disable()  # as rag-eval score does
    scored(cases(data, 200, fresh), GROUPS)  # compiles patterns
    print("| metrics | µs an answer |\n|---|---:|")
    for name, groups in [*((group, (group,)) for group in GROUPS), ("all of them", GROUPS)]:
        best = float("inf")
        for _ in range(ROUNDS):
            some = cases(data, 400, fresh)
            gc.collect()
            began = time.process_time()
            scored(some, groups)
            best = min(best, (time.process_time() - began) / len(some))
        print(f"| {name} | {best * 1e6:.0f} |")


def of_a_run(data: Path, fresh: bool) -> None:
    """Print the processor time of the command line, with the start of the interpreter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, column in zip(("gold", "trace"), zip(*rows(data, QUESTIONS, fresh), strict=True), strict=True):
            (folder / f"{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in column), "utf-8")
        # As pip installs it, with compiled modules.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": name, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-m", "rag_eval", "score", "--gold", "gold.jsonl", "--trace", "trace.jsonl"]
        best = float("inf")
        for _ in range(ROUNDS):
            before = getrusage(RUSAGE_CHILDREN)
            done = subprocess.run(
                [*command, "--jobs", "1", "--quiet"], cwd=folder, env=environment, capture_output=True, check=False
            )
            after = getrusage(RUSAGE_CHILDREN)
            if done.returncode > 1:
                sys.exit(done.stderr.decode())
            best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"\n{QUESTIONS} questions, every metric, with the start: {best:.2f} s")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    if args.profile:
        some = cases(args.data, 400, args.fresh)
        scored(some[:100], GROUPS)
        profile = cProfile.Profile()
        profile.runcall(scored, some[100:], GROUPS)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        return
    of_an_answer(args.data, args.fresh)
    of_a_run(args.data, args.fresh)


if __name__ == "__main__":
    main()
