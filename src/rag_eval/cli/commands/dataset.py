"""Turn a local copy of a public question answering data set into a gold set, its chunks and traces."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from msgspec import convert

from rag_eval.cli.commands._shared import add_option, refuse_existing, whole, write, write_rows
from rag_eval.common.escaping import quantity
from rag_eval.contract import Gold
from rag_eval.errors import MissingExtra, UsageError
from rag_eval.importers.datasets import DATASETS, Dataset, DatasetItem
from rag_eval.importers.documents import objects
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader

EXAMPLES = """\
  rag-eval dataset squad_v2 dev-v2.0.json --out eval/gold.jsonl --sample 200
  rag-eval dataset ragbench covidqa-test.parquet --out eval/gold.jsonl --traces runs/trace.jsonl
  rag-eval dataset hotpotqa --download --out eval/gold.jsonl --chunks corpus.jsonl --sample 100
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    width = max(map(len, DATASETS))
    known = "".join(f"  {name:<{width}}  {dataset.licence}; {dataset.homepage}\n" for name, dataset in DATASETS.items())
    parser.description = f"{parser.description}\ndata sets and their licences:\n{known}"
    parser.add_argument("name", metavar="NAME", help="one of the data sets above")
    parser.add_argument("files", metavar="FILE", nargs="*", help="local copies: JSON, JSON Lines, Parquet")
    add_option(parser, "--out", "FILE", "gold set (default: eval/gold.jsonl)", default="eval/gold.jsonl")
    add_option(parser, "--chunks", "FILE", "write the passages: JSON Lines of id and text")
    add_option(parser, "--traces", "FILE", "write the answers of the data set as traces")
    add_option(
        parser,
        "--sample",
        "N",
        "sample of N questions with the same share of answerable ones (default: all)",
        default=0,
        type=whole(0),
    )
    add_option(parser, "--seed", "N", "seed of the sample (default: 0)", default=0, type=whole(0))
    parser.add_argument("--download", action="store_true", help="fetch the files from the Hugging Face hub")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def run(args: argparse.Namespace) -> int:
    """Convert and write; raise InputError with every problem if a file is unreadable."""
    if args.name not in DATASETS:
        raise UsageError(
            f"unknown data set '{args.name[:80]}'. Choose one of: {', '.join(DATASETS)}. For BEIR: rag-eval import beir"
        )
    form = DATASETS[args.name]
    if args.download and not args.files:
        args.files = _downloaded(form)
    if not args.files:
        raise UsageError("no files are named. Name the files of the data set, or fetch them with --download")
    for path in filter(None, (args.out, args.chunks, args.traces)):
        refuse_existing(path, force=args.force, other="file")
    items = _sampled(list(_items(form, args.files)), args.sample, args.seed)
    if not items:
        raise UsageError(
            f"{', '.join(args.files)}: no question of {args.name} was found. Check that the files are complete."
        )
    traces = [item.trace for item in items if item.trace] if args.traces else []
    if args.traces and not traces:
        raise UsageError(f"{args.name} has no answers of a system. Remove --traces, and run: rag-eval collect")
    write_rows(Path(args.out), [item.gold for item in items])
    if args.chunks:
        chunks = {identity: text for item in items for identity, text in item.chunks.items()}
        write_rows(Path(args.chunks), [{"id": identity, "text": text} for identity, text in chunks.items()])
    if args.traces:
        write_rows(Path(args.traces), traces)
    about = {
        "dataset": args.name,
        "licence": form.licence,
        "source": form.homepage,
        "files": {Path(path).name: _digest(path) for path in args.files},
        "sample": args.sample or None,
        "seed": args.seed,
        "questions": len(items),
    }
    write(Path(f"{args.out}.source.json"), json.dumps(about, ensure_ascii=False, indent=2) + "\n")
    unanswerable = sum(not item.gold["answerable"] for item in items)
    print(
        f"wrote {args.out}: {quantity(len(items), 'question')}, {unanswerable} unanswerable. Licence: {form.licence}",
        file=sys.stderr,
    )
    return 0


def _items(form: Dataset, paths: list[str]) -> Iterator[DatasetItem]:
    """Yield the items of all files, each question once; a record of another shape is a problem with file and line."""
    reader, seen = Reader(ProblemCollector()), set()
    for path in paths:
        records = _parquet(path) if path.endswith(".parquet") else objects(Files(reader, [path]), path, "a record")
        for line, record in records:
            try:
                items = list(form.convert(record))
                convert([item.gold for item in items], list[Gold])
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                hint = "Use the files as the data set publishes them."
                reader.ledger.problem(
                    path, line, "", f"is not a record of this data set: {type(error).__name__}: {error}", hint
                )
                continue
            yield from (item for item in items if not (item.gold["qid"] in seen or seen.add(item.gold["qid"])))  # type: ignore[func-returns-value]
    reader.ledger.stop_on_problems()


def _parquet(path: str) -> Iterator[tuple[int, Any]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("a Parquet file", "parquet") from None
    number = 0
    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=1000):
            for record in batch.to_pylist():
                number += 1
                yield number, record


def _sampled(items: list[DatasetItem], size: int, seed: int) -> list[DatasetItem]:
    """Draw ``size`` items with the same share of answerable ones, by a hash of seed and qid; all items for 0."""
    if not size or size >= len(items):
        return items
    kinds: dict[bool, list[DatasetItem]] = {}
    for item in items:
        kinds.setdefault(item.gold["answerable"], []).append(item)
    chosen: set[str] = set()
    for kind in sorted(kinds, key=lambda answerable: len(kinds[answerable])):
        share = min(len(kinds[kind]), max(1, round(size * len(kinds[kind]) / len(items))), size - len(chosen))
        ranked = sorted(kinds[kind], key=lambda item: sha256(f"{seed}:{item.gold['qid']}".encode()).digest())
        chosen |= {item.gold["qid"] for item in ranked[:share]}
    return [item for item in items if item.gold["qid"] in chosen]


def _downloaded(form: Dataset) -> list[str]:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MissingExtra("rag-eval dataset --download", "datasets") from None
    for name in form.files:
        print(f"fetching {name} of {form.repository} ({form.licence})", file=sys.stderr)
    return [hf_hub_download(form.repository, name, repo_type="dataset") for name in form.files]


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
