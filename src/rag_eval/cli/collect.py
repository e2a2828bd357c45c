"""The commands that get questions and answers: ``collect`` from a system, ``dataset`` from a public data set."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import convert

from rag_eval import __version__
from rag_eval.cli._shared import file_bytes, is_sample, now, option_words, print_notes, refuse, refuse_existing
from rag_eval.cli.parser import Parser, whole
from rag_eval.collecting import Journal, Pace, collect
from rag_eval.collecting.request_map import PRESETS, request_map
from rag_eval.collecting.systems import CommandSystem, FunctionSystem, HttpSystem, System
from rag_eval.common.escaping import one_line, quantity
from rag_eval.common.files import json_line, write_files, write_json, write_rows
from rag_eval.common.paths import shell_line
from rag_eval.contract import Gold
from rag_eval.errors import CANNOT_JUDGE, PASSED, MissingExtra, UsageError
from rag_eval.gates.selection import in_suite, suite_named
from rag_eval.git.plumbing import Git, GitError
from rag_eval.importers.datasets import DATASETS, Dataset, DatasetItem
from rag_eval.importers.documents import objects
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.packed_tables import parquet_records
from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import Reader, checked_reader
from rag_eval.readers.yaml_file import read_mapping
from rag_eval.stats.sampling import hash_order, proportional_counts

Row = dict[str, Any]

_GOLD = "eval/gold.jsonl"
_WARM_UP, _BAR, _RUN_JSON = "Hello?", 24, "run.json"
_IDENTITY = ("url", "exec", "python", "preset", "request", "suite", "repeats", "matrix", "run")


def add_arguments(parser: Parser) -> None:
    system = parser.add_mutually_exclusive_group(required=True)
    parser.add_option("--url", "URL", "ask a server over HTTP", group=system)
    parser.add_option("--exec", "COMMAND", "ask a command: a JSON line in, a JSON line out", group=system)
    parser.add_option("--python", "MODULE:FUNCTION", "ask a Python function, plain or async", group=system)
    parser.add_option("--gold", "FILE", f"gold set (default: {_GOLD})", default=_GOLD)
    parser.add_option("--out", "FILE", "traces (default: runs/trace.jsonl)", default="runs/trace.jsonl")
    parser.add_flag("--force", "overwrite a finished file of traces")
    preset = "shape of a common server (default: plain)"
    parser.add_argument("--preset", choices=list(PRESETS), default="plain", help=preset)
    parser.add_option("--request", "FILE", "YAML map of request and reply, such as answer: /result/text")
    parser.add_option("--suite", "SUITE", "full, smoke, or smoke:N for a sample", default="full")
    parser.add_option("--repeats", "N", "ask every question N times (default: 1)", default=1, type=whole(1, 1000))
    parser.add_option("--matrix", "FILE", "YAML file of named configurations, each of them a run")
    parser.add_option("--run", "NAME", "name of the run in every row")
    add_pace(parser)
    warm_up = "warm-up calls before the first question (default: 0)"
    parser.add_option("--warm-up", "N", warm_up, default=0, type=whole(0, 1000))
    parser.add_option("--config-file", "FILE", "JSON file of the system's settings, for run.json")


def add_pace(parser: Parser) -> None:
    """Add ``--concurrency``, ``--rate``, ``--timeout`` and ``--retries``."""
    parser.add_option("--concurrency", "N", "questions at a time (default: 4)", default=4, type=whole(1, 1000))
    parser.add_option("--rate", "N", "at most N questions a second", default=0.0, type=_number)
    parser.add_option("--timeout", "SECONDS", "time limit of each question (default: 60)", default=60.0, type=_number)
    parser.add_option("--retries", "N", "retries after status 429 or 5xx (default: 3)", default=3, type=whole(0, 1000))


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.001 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a number from 0.001 to 1000000")
    return value


def pace(args: argparse.Namespace) -> Pace:
    """Return the limits that the options of :func:`add_pace` set."""
    return Pace(args.concurrency, args.rate, args.timeout, args.retries)


def run(args: argparse.Namespace) -> int:
    """Ask a system the questions of the gold set and write its answers as traces.

    Collecting calls the system; scoring reads the file and calls nothing. A failed question is a row with an error.

    Examples:
      rag-eval collect --url http://localhost:8000/ask
      rag-eval collect --url http://localhost:8000/v1 --preset openai --rate 2 --repeats 3
      rag-eval collect --exec 'python answer.py' --concurrency 2
      rag-eval collect --python app.rag:answer --suite smoke
    """
    out = Path(args.out)
    is_replaceable = not os.path.lexists(out) or _is_interrupted(out) or is_sample(out)
    _check_options(args)
    refuse_existing(out, force=args.force or is_replaceable)
    digest = sha256()
    with checked_reader() as reader:
        golds = read_gold(reader, args.gold, digest)
        request = read_mapping(reader, args.request) if args.request else {}
        matrix = read_mapping(reader, args.matrix) if args.matrix else {}
    questions = [(qid, gold.question) for qid, gold in in_suite(golds, suite_named(args.suite)).items()]
    configurations = _checked_matrix(args, matrix) if args.matrix else {args.run: {}}
    numbers = [f"-{number}" for number in range(1, args.repeats + 1)] if args.repeats > 1 else [""]
    runs = {name: [f"{name or 'try'}{number}" if number else name for number in numbers] for name in configurations}
    keys = [(run, qid) for names in runs.values() for run in names for qid, _ in questions]  # in the order of the file
    settings = {name: str(value) for name, value in vars(args).items() if name in _IDENTITY}
    about = _about(digest.hexdigest())
    with Journal(out, {**settings, "gold": digest.hexdigest(), "maps": [request, configurations]}) as journal:
        if journal.rows:
            print_notes(f"continuing after {quantity(len(journal.rows), 'answer')} in {out}.partial")
        try:
            for name, more in configurations.items():
                with closing(_system(args, request, more)) as system:
                    system.check()
                    about |= _configuration(args, system)
                    _warm_up(system, args.warm_up, args.timeout)
                    for run_name in runs[name]:
                        collect(system, questions, run_name, pace(args), journal, progress(run_name, len(questions)))
        except KeyboardInterrupt:
            rows = [journal.rows[key] for key in keys if key in journal.rows]
            if is_replaceable and rows:
                write_rows(out, rows)
            note_interruption(len(rows), out if is_replaceable else f"{out}.partial")
            raise
        rows = [journal.rows[key] for key in keys]
        write_rows(out, rows)
        write_json(out.with_name(_RUN_JSON), about)
        journal.remove()
    return _finished(args, rows)


def _check_options(args: argparse.Namespace) -> None:
    out = Path(args.out)
    facts = f"--out {out} is for the facts of the run. Name another file: --out runs/trace.jsonl"
    server = "--request and --preset describe a server. Use them with --url, or remove them."
    refuse(
        (out.name == _RUN_JSON, facts),
        (not args.url and (args.request or args.preset != "plain"), server),
        (args.matrix and args.run, "--matrix names the runs. Remove --run, or --matrix."),
    )


def _finished(args: argparse.Namespace, rows: Sequence[Row]) -> int:
    failed = [row for row in rows if "error" in row]
    gold = option_words(args, "gold") if args.gold != _GOLD else []
    score = shell_line("rag-eval", "score", *gold, "--trace", args.out)
    following = f" Next: {score}" if failed != rows else ""
    print_notes(f"wrote {args.out}: {quantity(len(rows), 'trace')}, {len(failed)} with an error.{following}")
    if args.url and failed != rows and not any("retrieved_ids" in row for row in rows):
        print_notes("no reply has chunks. If it has them under another name, map it with --request: chunks: /NAME")
    if failed:
        some = "every question failed" if failed == rows else f"{quantity(len(failed), 'question')} failed"
        again = " Correct it, and run the same command with --force." if failed == rows else ""
        print_notes(f"{some}. The first error: {failed[0]['qid']}: {failed[0]['error'].rstrip('.')}.{again}")
    return CANNOT_JUDGE if rows and failed == rows else PASSED


def note_interruption(answers: int, path: str | Path) -> None:
    """Say how many answers an interruption leaves, and where."""
    where = f" in {path}" if answers else ""
    print_notes("", f"interrupted after {quantity(answers, 'answer')}{where}. To continue, run the same command again.")


def _is_interrupted(out: Path) -> bool:
    """Return whether a file of traces is left from an interruption: all of its rows are in OUT.partial, too."""
    try:
        partial = (out.parent / f"{out.name}.partial").read_bytes().splitlines()
        return set(out.read_bytes().splitlines()) <= set(partial)
    except OSError:
        return False


def _system(args: argparse.Namespace, request: Mapping[str, Any], more: Mapping[str, Any]) -> System:
    if args.exec:
        return CommandSystem(args.exec, more)
    if args.python:
        return FunctionSystem(args.python)
    return HttpSystem(args.url, request_map(args.preset, request), more)


def _checked_matrix(args: argparse.Namespace, content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the named configurations of a matrix: body and headers of a server, or env of a command."""
    if args.python:
        raise UsageError("--matrix needs --url or --exec. A Python function has no request to change.")
    keys, example = (("env",), "env: {TOP_K: 5}") if args.exec else (("body", "headers"), "body: {top_k: 5}")
    for name, more in content.items():
        if not isinstance(more, dict) or any(k not in keys or not isinstance(more[k], dict) for k in more):
            option = "--exec" if args.exec else "--url"
            what = f"must be a mapping that has only mappings named {' or '.join(keys)} with {option}"
            raise UsageError(f"{args.matrix}: '{name}' {what}. Write: {name}: {{{example}}}")
    if not content:
        raise UsageError(f"{args.matrix} has no configurations. Write: small: {{{example}}}")
    return content


def _configuration(args: argparse.Namespace, system: System) -> dict[str, Any]:
    """Return the system's settings and their digest: from a file, or from the server."""
    config = None
    if not args.config_file:
        config = system.configuration()
    elif text := file_bytes(args.config_file):
        try:
            config = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{args.config_file} is not JSON: {error}. Correct the file.") from None
    if config is None:
        return {}
    digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    return {"config": config if isinstance(config, dict) else {"value": config}, "config_sha256": digest}


def _about(gold_sha256: str) -> dict[str, Any]:
    """Return the facts for run.json; the commit of this checkout, if there is one, is taken for the system's."""
    about: dict[str, Any] = {"gold_sha256": gold_sha256}
    with suppress(GitError):
        if commit := Git().last():
            about["system_commit"] = commit
    about["collected_at"] = now()
    about["versions"] = {"rag-eval": __version__, "python": platform.python_version()}
    return about


def _warm_up(system: System, calls: int, timeout: float) -> None:
    for _ in range(calls):
        try:
            system.ask("", _WARM_UP, timeout)
        except Exception as error:  # noqa: BLE001 - the questions will show whether it matters
            print_notes(f"a warm-up call failed: {type(error).__name__}: {str(error)[:120]}")


def progress(run: str, total: int) -> Callable[[int, int], None]:
    """Return a function that shows how far a run is: on a terminal a bar with rate, errors and time left.

    ``12 of 40 [#######                 ] 1.5 a second, 1 error, 19 s left``
    """
    began, is_terminal = time.monotonic(), sys.stderr.isatty()
    width, before = 0, -1

    def show(done: int, errors: int) -> None:
        nonlocal width, before
        before = done - 1 if before < 0 else before  # answers of an earlier run do not count for the rate
        if not is_terminal:
            return
        rate = (done - before) / max(time.monotonic() - began, 0.001)
        bar = "#" * (_BAR * done // total)
        remaining = f", {round((total - done) / rate)} s left" if done < total else ""
        line = f"{run}: " if run else ""
        line += f"{done} of {total} [{bar:<{_BAR}}] {rate:.1f} a second, {quantity(errors, 'error')}{remaining}"
        sys.stderr.write(f"\r{line:<{width}}" + ("\n" if done == total else ""))
        sys.stderr.flush()
        width = len(line)

    return show


def add_dataset_arguments(parser: Parser) -> None:
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


def run_dataset(args: argparse.Namespace) -> int:
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
