"""The command ``rag-eval dataset``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import convert

from rag_eval.cli._shared import print_notes, refuse_existing
from rag_eval.cli.parser import Parser, whole
from rag_eval.common.escaping import one_line, quantity
from rag_eval.common.writing import json_line, write_files, write_json
from rag_eval.contract import Gold
from rag_eval.errors import PASSED, MissingExtra, UsageError
from rag_eval.importers.datasets import DATASETS, Dataset, DatasetItem
from rag_eval.importers.documents import objects
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.packed_tables import parquet_records
from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import Reader, checked_reader
from rag_eval.stats.sampling import hash_order, proportional_counts


def add_arguments(parser: Parser) -> None:
    known = {name: f"{dataset.licence}; {dataset.homepage}" for name, dataset in DATASETS.items()}
    parser.list_values("data sets and their licences:", known)
    parser.add_argument("name", metavar="NAME", help="one of the data sets above")
    parser.add_argument("files", metavar="FILE", nargs="*", help="local copies: JSON, JSON Lines, Parquet")
    parser.add_option("--out", "FILE", "gold set (default: eval/gold.jsonl)", default="eval/gold.jsonl")
    parser.add_option("--chunks", "FILE", "write the passages: JSON Lines of id and text")
    parser.add_option("--traces", "FILE", "write the answers of the data set as traces")
    sample = "sample of N questions with the same share of answerable ones (default: all)"
    parser.add_option("--sample", "N", sample, default=0, type=whole(0))
    parser.add_option("--seed", "N", "seed of the sample (default: 0)", default=0, type=whole(0))
    parser.add_flag("--download", "fetch the files from the Hugging Face hub")
    parser.add_flag("--force", "overwrite existing files")


def run(args: argparse.Namespace) -> int:
    """Turn a local copy of a public question answering data set into a gold set, its chunks and traces.

    Examples:
      rag-eval dataset squad_v2 dev-v2.0.json --out eval/gold.jsonl --sample 200
      rag-eval dataset ragbench covidqa-test.parquet --out eval/gold.jsonl --traces runs/trace.jsonl
      rag-eval dataset hotpotqa --download --out eval/gold.jsonl --chunks corpus.jsonl --sample 100
    """
    if args.name not in DATASETS:
        known = f"Choose one of: {', '.join(DATASETS)}. For BEIR: rag-eval import beir"
        raise UsageError(f"unknown data set '{args.name[:80]}'. {known}")
    form = DATASETS[args.name]
    if args.download and not args.files:
        args.files = _downloaded(form)
    if not args.files:
        raise UsageError("no files are named. Name the files of the data set, or fetch them with --download")
    source = f"{args.out}.source.json"
    paths = [Path(path) for path in (args.out, source, args.chunks, args.traces) if path]
    for path in paths:
        refuse_existing(path, force=args.force, other="file")
    if len({path.absolute() for path in paths}) < len(paths):
        raise UsageError("two of --out, --chunks and --traces name the same file. Name another file for one of them.")
    items = _sampled(list(_items(form, args.files)), args.sample, args.seed)
    if not items:
        fix = "Check that the files are complete."
        raise UsageError(f"{', '.join(args.files)}: no question of {args.name} was found. {fix}")
    traces = [item.trace for item in items if item.trace] if args.traces else []
    if args.traces and not traces:
        raise UsageError(f"{args.name} has no answers of a system. Remove --traces, and run: rag-eval collect")
    chunks = {identity: text for item in items for identity, text in item.chunks.items()}
    rows = {
        args.out: [item.gold for item in items],
        args.chunks: [{"id": identity, "text": text} for identity, text in chunks.items()],
        args.traces: traces,
    }
    about = {
        "dataset": args.name,
        "licence": form.licence,
        "source": form.homepage,
        "files": {Path(path).name: sha256(Path(path).read_bytes()).hexdigest() for path in args.files},
        "sample": args.sample or None,
        "seed": args.seed,
        "questions": len(items),
    }
    write_files((Path(path), map(json_line, rows[path])) for path in rows if path)
    write_json(source, about)
    unanswerable = sum(not item.gold["answerable"] for item in items)
    counted = f"{quantity(len(items), 'question')}, {unanswerable} unanswerable"
    print_notes(f"wrote {args.out}: {counted}. Licence: {form.licence}")
    return PASSED


def _items(form: Dataset, paths: list[str]) -> Iterator[DatasetItem]:
    """Yield the items of all files, each question once; a record of another shape is a problem with file and line."""
    seen: set[str] = set()
    with checked_reader() as reader:
        for path in paths:
            packed = path.endswith(".parquet")
            records = _parquet(reader, path) if packed else objects(Files(reader, [path]), path, "a record")
            for line, record in records:
                try:
                    items = list(form.convert(record))
                    convert([item.gold for item in items], list[Gold])
                except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                    message = f"is not a record of this data set: {type(error).__name__}: {error}"
                    hint = "Use the files as the data set publishes them."
                    reader.ledger.problem(path, line, "", message, hint)
                    continue
                for item in items:
                    if item.gold["qid"] not in seen:
                        seen.add(item.gold["qid"])
                        yield item


def _parquet(reader: Reader, path: str) -> Iterator[tuple[int, Any]]:
    try:
        yield from enumerate(parquet_records(path), 1)
    except Unreadable as error:
        reader.ledger.problem(path, 0, "", error.message, error.hint)


def _sampled(items: list[DatasetItem], size: int, seed: int) -> list[DatasetItem]:
    """Draw ``size`` items with the same share of answerable ones, at least one of each kind; all items for 0."""
    if not size or size >= len(items):
        return items
    kinds: dict[str, list[str]] = {}
    for item in items:
        kinds.setdefault(f"{item.gold['answerable']}", []).append(item.gold["qid"])
    counts = proportional_counts(kinds, size)
    chosen = {qid for kind, qids in kinds.items() for qid in hash_order(qids, seed=f"{seed}:")[: counts[kind]]}
    return [item for item in items if item.gold["qid"] in chosen][:size]


def _downloaded(form: Dataset) -> list[str]:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MissingExtra("rag-eval dataset --download", "datasets") from None
    for name in form.files:
        print_notes(f"fetching {name} of {form.repository} ({form.licence})")
    try:
        return [hf_hub_download(form.repository, name, repo_type="dataset") for name in form.files]
    except (OSError, ValueError) as error:
        why = one_line(str(error), 200).rstrip(".")
        raise UsageError(f"{form.repository} cannot be fetched: {why}. Try again, or name local files.") from None
