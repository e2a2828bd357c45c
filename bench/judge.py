"""Measure how far people agree with judges on public answers: an endpoint replays published scores of an LLM judge.

    python bench/judge.py [--data ../shared/data] [--keep FOLDER]

Runs ``rag-eval judge`` and ``rag-eval judge calibrate`` and prints what the latter prints. mtrag has the published
faithfulness of an LLM judge for each answer; clapnq has none, and is graded by the shared words of
examples/rag-server/judge.py. Three people voted on the faithfulness of each answer, from 1 to 4.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SETS = {"mtrag": "published-faithfulness-1", "clapnq": "shared-words-1"}


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def prepare(data: Path, name: str, folder: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Write gold, the traces of all systems and the votes into a folder; return how its judge replies."""
    labels, answers = rows(data / name / "labels.jsonl"), {}
    with (folder / "trace.jsonl").open("w", encoding="utf-8") as out:
        for system in sorted({label["system"] for label in labels}):
            for trace in rows(data / name / f"trace.{system}.jsonl"):
                answers[trace["qid"], system] = trace["answer_json"]["claim"]
                out.write(json.dumps({**trace, "run": system}) + "\n")
    (folder / "gold.jsonl").write_bytes((data / name / "gold.jsonl").read_bytes())
    with (folder / "votes.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(["qid", "run", "rater", "groundedness"])
        for label in labels:
            votes = enumerate(label["faithfulness_votes"])
            table.writerows([label["qid"], label["system"], number, vote] for number, vote in votes)
    grade: Callable[[dict[str, Any]], dict[str, Any]] = _example().grade
    if name != "mtrag":
        return grade
    questions = {item["qid"]: item["question"] for item in rows(folder / "gold.jsonl")}
    published = {
        (questions[label["qid"]], answers[label["qid"], label["system"]].strip()): label["published"]["rl_f"]
        for label in labels
    }

    def reply(shown: dict[str, Any]) -> dict[str, Any]:
        faithfulness = published[shown["question"], shown["answer"].strip()]
        return {**grade(shown), "groundedness": round(5 * max(0, faithfulness))}

    return reply


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("example_judge", ROOT / "examples" / "rag-server" / "judge.py")
    if spec is None or spec.loader is None:
        raise ImportError("examples/rag-server/judge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def serving(grade: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[str]:
    """Serve a judge that grades by a function; yield its address."""
    module = _example()
    module.grade = grade
    server = module.serve(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def calibrated(data: Path, name: str, folder: Path, *options: str) -> str:
    """Record verdicts on a set, hold them against the votes, and return what that prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "rag_eval", "judge"]
    with serving(prepare(data, name, folder)) as url:
        asked = ["--base-url", url, "--model", SETS[name], "--gold", "gold.jsonl", "--trace", "trace.jsonl"]
        words = [*command, *asked, "--out", "verdicts.jsonl"]
        subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    words = [*command, "calibrate", "--verdicts", "verdicts.jsonl", "--labels", "votes.csv", "--scale", "1-4", *options]
    return subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print the agreement on each set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--keep", type=Path, help="keep the files in this folder")
    args = parser.parse_args()
    for name in SETS:
        with tempfile.TemporaryDirectory() as made:
            folder = args.keep / name if args.keep else Path(made)
            folder.mkdir(parents=True, exist_ok=True)
            print(f"## {name}\n\n{calibrated(args.data, name, folder)}")


if __name__ == "__main__":
    main()
