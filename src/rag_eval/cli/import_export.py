"""The commands ``rag-eval import`` and ``rag-eval export``: files of other tools."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_eval.cli._shared import CITATIONS, file_bytes, option_words, print_notes, refuse, refuse_existing
from rag_eval.cli.parser import Parser, whole
from rag_eval.common.escaping import quantity
from rag_eval.common.files import write_data, write_together
from rag_eval.common.paths import shell_line
from rag_eval.common.progress import watch
from rag_eval.contract import Trace, present_fields
from rag_eval.errors import PASSED, InputError, Problem, UsageError
from rag_eval.exporters import EXPORTERS, Contents
from rag_eval.importers import IMPORTERS, Account, Recognised, importer, report_of
from rag_eval.importers.columns import FORMS, is_sufficient, suggested
from rag_eval.importers.conversion import ConversionOptions
from rag_eval.importers.datasets import dataset_of
from rag_eval.importers.documents import documents
from rag_eval.importers.table import header
from rag_eval.importers.unwrap import first_keys, nanoseconds
from rag_eval.metrics import METRICS
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.import_inputs import Files, imported, recognised
from rag_eval.readers.packed_tables import converted
from rag_eval.readers.problems import Contract, ProblemCollector
from rag_eval.readers.report_file import read_report
from rag_eval.readers.source import Reader, checked_reader
from rag_eval.readers.yaml_file import read_mapping
from rag_eval.rendering import render

_ROW = "a row"
_RETRIEVED, _ANSWERED = "a row with chunks", "a row with more than chunks"
_POINTERS = {
    "qid": "where the id of the gold item is, from the record or the root span",
    "question": "where the question is",
    "answer": "where the answer is",
    "chunks": "where the list of retrieved chunks is (promptfoo)",
    "chunk-id": "where the id of a chunk is, from the chunk: /metadata/chunk_id",
    "doc-id": "where the id of its document is, from the chunk; for gold sets that name documents",
}


def add_import_arguments(parser: Parser) -> None:
    known = {name: f"{form.gives}: {form.summary} ({form.takes})" for name, form in IMPORTERS.items()}
    parser.list_values("\nformats:", {"auto": "recognises the format of the file", **known})
    parser.add_argument("format", metavar="FORMAT", help="one of the formats above, or auto")
    parser.add_argument("files", metavar="FILE", nargs="*", help="the files to read")
    parser.add_option("--out", "FILE", "output file (default: stdout)", default="-")
    parser.add_flag("--force", "overwrite an existing file")
    parser.add_flag("--quiet", "do not list renamed and dropped fields")
    kinds, what = ("trace", "gold"), "with auto: what to write, if the format has both (default: trace)"
    parser.add_argument("--as", dest="kind", choices=kinds, default="", help=what)
    parser.add_option("--gold", "FILE", "pair traces with the questions of this gold set")
    for name, text in _POINTERS.items():
        parser.add_option(f"--{name}", "POINTER", f"JSON Pointer: {text}", default=None, type=_pointer)
    parser.add_flag("--by-text", "identify chunks by their text, as gold sets of texts do (Ragas, LangSmith)")
    cites = "how answers cite: brackets ([id]), numbers ([1]) or none (default)"
    parser.add_option("--citations", "FORM", cites, default="none", choices=CITATIONS)
    parser.add_option("--run", "NAME", "name of the run in every row")
    parser.add_option("--retriever", "NAME", "the span whose output is the retrieved chunks")
    unanswerable = "an expected answer that means: not answerable (gold; repeatable)"
    parser.add_option("--unanswerable", "TEXT", unanswerable, action="append", default=[])
    parser.add_option("--since", "TIME", "only traces from this time (ISO 8601), or today", default=None, type=_time)
    parser.add_option("--until", "TIME", "only traces before this time", default=None, type=_time)
    parser.add_flag("--last-only", "only the last trace of each question; a run with repeated ones fails by default")
    parser.add_argument("--turns", choices=("last",), default="", help="read the last turn of each conversation")
    parser.add_option("--answers", "FILE", "answers of a TREC run: JSON Lines of qid and answer")
    parser.add_option("--corpus", "FILE", "chunk texts of a TREC run: BEIR's corpus.jsonl")
    parser.add_option("--sheet", "NAME", "the sheet of a workbook (.xlsx), if several have data")
    parser.add_option("--map", "FILE", "table, table-gold: YAML file that maps fields")
    parser.add_flag("--suggest-map", "table, table-gold: print a first map of the file")
    live = parser.add_argument_group("live sources (langfuse, langsmith, phoenix)")
    parser.add_flag("--from-api", "fetch the traces; keys come from the environment", group=live)
    parser.add_option("--project", "NAME", "LangSmith, Phoenix: name or id of the project", group=live)
    replies = "save the replies of the API (default: OUT.FORMAT.jsonl next to --out)"
    parser.add_option("--save", "FILE", replies, group=live)
    most = "maximum number of spans to fetch (default: 100000)"
    parser.add_option("--max-records", "N", most, default=100_000, type=whole(1), group=live)
    limit, attempts = "time limit of each page (default: 60)", "attempts after status 429 or 5xx (default: 5)"
    parser.add_option("--timeout", "SECONDS", limit, default=60, type=whole(1), group=live)
    parser.add_option("--retries", "N", attempts, default=5, type=whole(1), group=live)


def run_import(args: argparse.Namespace) -> int:
    """Convert gold sets, traces and saved runs of other tools into files of rag-eval.

    Fields that are renamed or left out are printed on stderr. If anything is wrong, no file is written.

    Examples:
      rag-eval import auto export.json --out runs/trace.jsonl
      rag-eval import langfuse traces.jsonl --gold eval/gold.jsonl --out runs/trace.jsonl
      rag-eval import ragas samples.jsonl --out eval/gold.jsonl
      rag-eval import langfuse --from-api --since 2026-11-01 --out runs/trace.jsonl
      rag-eval import table answers.csv --suggest-map > map.yml
      rag-eval import table answers.csv --map map.yml --out runs/trace.jsonl
    """
    reader, account = Reader(ProblemCollector()), Account()
    if args.format != "auto":
        _check_format(args)
    _check_source(args)
    reader = converted(reader, [] if args.from_api else args.files, args.sheet)
    name = _recognised(reader, args.files[0], args.kind) if args.format == "auto" else args.format
    form = importer(name)
    takes = f"{name} takes {quantity(form.files, 'path')}, not {len(args.files)}"
    table = shell_line("rag-eval", "import", "table", *args.files, *(option_words(args, "map") or ["--suggest-map"]))
    maps = f"--map and --suggest-map are for tables, not for {name}. Remove them, or write: {table}"
    refuse(
        (form.files and len(args.files) != form.files, f"{takes}. Write: rag-eval import {name} {form.takes}"),
        ((args.map or args.suggest_map) and form.module != "table", maps),
        ((args.answers or args.corpus) and form.module != "trec", "--answers and --corpus are only for TREC runs."),
    )
    for path in sorted({args.out, args.save} - {"", "-"}):
        refuse_existing(path, force=args.force, other="file")
    if args.from_api:
        _fetch(args)
    if form.module == "table" and args.suggest_map:
        return _suggest(reader, name, args.files[0])
    columns = _columns(reader, name, args) if form.module == "table" else {}
    fields: Counter[str] = Counter()
    lines = _lines(reader, name, args, account, fields, columns)
    if args.out == "-":
        sys.stdout.write(b"".join(lines).decode())
    else:
        write_data(args.out, lines)
    coverage = _coverage(fields) if form.gives == "trace" else []
    print_notes(*account.lines(), *reader.ledger.notes, *coverage, quiet=args.quiet)
    if args.out != "-":
        rows = {"trace": "trace", "gold": "gold item"}.get(form.gives, "")
        print_notes(f"wrote {args.out}{f': {quantity(fields[_ROW], rows)}' if rows else ''}", quiet=args.quiet)
    return PASSED


def _check_format(args: argparse.Namespace) -> None:
    """Raise UsageError if a named format is none, or does not write what ``--as`` asks for."""
    name: str = args.format
    looks_like_path = "." in name or os.sep in name or Path(name).exists()
    if name not in IMPORTERS and looks_like_path:
        fix = f"Write: {shell_line('rag-eval', 'import', 'auto', name, *args.files)}"
        raise UsageError(f"'{name[:80]}' is not a format: the first word names the format, the others the files. {fix}")
    gives = importer(name).gives
    if args.kind not in ("", gives):
        raise UsageError(f"{name} only makes a {gives} file. Remove --as {args.kind}, or name another format.")


def _check_source(args: argparse.Namespace) -> None:
    """Check that there are files or a live source, and name the file for its replies."""
    if args.files and not args.from_api:
        return
    from rag_eval.collecting.live import SOURCES  # loads asyncio and ssl, as below

    if not args.from_api:
        or_fetch = f", or fetch it: rag-eval import {args.format} --from-api --since TIME"
        raise UsageError(f"no file is named. Name the FILE to import{or_fetch if args.format in SOURCES else ''}")
    out = Path(args.out)
    args.save = args.save or str(out.parent / f"{out.stem}.{args.format}.jsonl")
    same = out.absolute() == Path(args.save).absolute()
    refuse(
        (args.format not in SOURCES, f"{args.format} has no --from-api. Use it with one of: {', '.join(SOURCES)}"),
        (args.files, "--from-api and FILE cannot be used together. Remove one of them."),
        (args.since is None, "--from-api needs a start time. Write: --since 2026-01-31"),
        (args.out == "-", "--from-api saves the replies of the API next to the result. Add --out FILE"),
        (same, "--save and --out name the same file. Name another file for --save."),
    )
    args.files = [args.save]


def _fetch(args: argparse.Namespace) -> None:
    """Write the pages of a live source to ``args.save``."""
    from rag_eval.collecting.live import FetchRequest, fetch

    since = datetime.fromtimestamp((nanoseconds(args.since) or 0) / 1e9, UTC)
    until = datetime.fromtimestamp((nanoseconds(args.until) or 0) / 1e9, UTC) if args.until else None
    request = FetchRequest(args.project, since, until, args.max_records, args.timeout, args.retries - 1)
    shown = ""

    def report(text: str) -> None:
        nonlocal shown
        if sys.stderr.isatty() and not args.quiet:
            shown = text
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    write_data(Path(args.save), fetch(args.format, request, report, lambda line: print_notes(line, quiet=args.quiet)))
    if shown:
        sys.stderr.write("\n")
    options = option_words(args, "since", "until", "gold", "run", "retriever", "turns", *_POINTERS)
    options += ["--citations", args.citations] if args.citations != "none" else []
    options += [flag for flag, is_set in (("--by-text", args.by_text), ("--last-only", args.last_only)) if is_set]
    repeat = shell_line("rag-eval", "import", args.format, args.save, *options)
    print_notes(f"saved the replies in {args.save}. To repeat this import: {repeat}", quiet=args.quiet)


def _lines(
    reader: Reader, name: str, args: argparse.Namespace, account: Account, fields: Counter[str], columns: dict[str, str]
) -> Iterator[bytes]:
    """Yield the lines of the file to write, and count its rows and their fields; InputError ends it."""
    form = IMPORTERS[name]
    if form.gives == "report":
        report = report_of(name, Files(reader, args.files), account)
        text = render(report, "json") if report else ""
        for fault in Contract("report", reader.limits.depth).faults(json.loads(text)) if text else ():
            reader.ledger.problem(args.files[-1], 0, f"as report: {fault.where}", fault.message, fault.hint)
        reader.ledger.stop_on_problems()
        yield text.encode()
        return
    options: list[Any] = [] if form.direct else [_options(reader, args)]
    options += [columns] if form.module == "table" else []
    reader.ledger.stop_on_problems()
    progress = watch(quiet=args.quiet)
    progress.begin(sum(path.stat().st_size for path in map(Path, args.files) if path.is_file()))
    try:
        for row, line in imported(reader, name, args.files, account, options, progress):
            fields[_ROW] += 1
            if form.gives == "trace":
                fields[_RETRIEVED] += "retrieved_ids" in row or "chunks" in row
                fields[_ANSWERED] += row.get("answer_json") != {"claim": ""}
                fields.update(present_fields(Trace.from_row(row, "", 0)))
            yield line
    except InputError as error:
        raise InputError([*_other_tools(reader, name, args.files), *error.problems], error.more) from None
    finally:
        progress.end()


def _other_tools(reader: Reader, name: str, paths: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each file that looks like the export of another tool than the named one."""
    for path in () if IMPORTERS[name].direct else paths:
        form = recognised(reader, path)
        other = form.trace or form.gold if form else ""
        if form and IMPORTERS[other].tool not in (IMPORTERS[name].tool, "table"):
            hint = f"Import it with: {shell_line('rag-eval', 'import', other, path)}"
            yield Problem(path, 0, "", f"looks like the export of another tool: it has {form.why}", hint)


def _options(reader: Reader, args: argparse.Namespace) -> ConversionOptions:
    questions: dict[str, list[str]] = {}
    turns: dict[tuple[str, int], str] = {}
    for qid, item in read_gold(reader, args.gold).items() if args.gold else ():
        questions.setdefault(item.question, []).append(qid)
        if item.conversation is not None and item.turn is not None:
            turns[item.conversation, int(item.turn)] = qid
    stated = ((name, getattr(args, name, None)) for name in ConversionOptions.__dataclass_fields__)
    given: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in stated if item}
    qids = frozenset(qid for same in questions.values() for qid in same)
    return ConversionOptions(questions if args.gold else None, qids, turns, **given)


def _recognised(reader: Reader, path: str, kind: str) -> str:
    """Return the name of the format of a file, and print it on stderr.

    ``kind`` is trace or gold; '' means traces if the format has both.
    """
    form = recognise(reader, path)
    name = getattr(form, kind or "trace") or ("" if kind else form.gold)
    other = form.gold if name == form.trace else form.trace
    if not name:
        lacks, gives = ("gold items" if kind == "gold" else "traces"), IMPORTERS[other].gives
        forms = IMPORTERS.items()
        same_kind = [named for named, given in forms if (given.tool, given.gives) == (IMPORTERS[other].tool, kind)]
        also = f", or import a file of {same_kind[0]}" if same_kind else ""
        why = f"{path} is read as {other}, which has no {lacks}: it has {form.why}"
        raise UsageError(f"{why}. Remove --as {kind} to make a {gives} file{also}")
    also = f" (--as {IMPORTERS[other].gives} reads it as {other})" if other else ""
    print_notes(f"{path} is read as {name}: it has {form.why}{also}")
    return name


def recognise(reader: Reader, path: str) -> Recognised:
    """Return the format of a file, found by its content; raise UsageError if it is unknown."""
    form = _recognised_or_table(recognised(reader, path), reader, path)
    reader.ledger.stop_on_problems()
    if form and (form.trace or form.gold):
        return form
    first = next(Files(reader, [path]).blocks(path), b"").lstrip()[:1]
    if first == b"<":
        raise UsageError(f"{path} is HTML or XML. Export the data again as JSON, JSON Lines or CSV")
    if first in (b"{", b"["):
        deque(documents(Files(reader, [path]), path), maxlen=0)  # reads all, to name invalid JSON
        reader.ledger.stop_on_problems()
    hint = f"Map its fields: {shell_line('rag-eval', 'import', 'table', path)} --suggest-map"
    names = header(Files(reader.silent(), [path]), path)
    if not names and first not in (b"{", b"["):
        fix = "Export the data again as one of them"
        raise UsageError(f"{path} has no known format: it is neither JSON, CSV nor YAML. {fix}")
    fields = f": its fields are {first_keys(dict.fromkeys(names))}" if names else ""
    raise UsageError(f"{path} has no known format{fields}. {hint}. Or name the format: rag-eval import --help")


def _recognised_or_table(form: Recognised | None, reader: Reader, path: str) -> Recognised | None:
    """Return the format of a file, or of a table the kinds for which its columns are sufficient."""
    if form is not None and (form.trace, form.gold) != ("table", "table-gold"):
        return form
    names = header(Files(reader.silent(), [path]), path)
    is_answered = suggested(names, "table").get("answer") not in (None, "answer", "answers")
    if (dataset := dataset_of(names)) and not is_answered:
        convert = shell_line("rag-eval", "dataset", dataset, path)
        raise UsageError(f"{path} is the public data set {dataset}. Convert it: {convert}")
    kinds = [kind for kind in FORMS if is_sufficient(suggested(names, kind), kind)]
    if not kinds:
        return form
    why = form.why if form else "the fields of a table"
    return Recognised("table" if "table" in kinds else "", "table-gold" if "table-gold" in kinds else "", why)


def _suggest(reader: Reader, name: str, path: str) -> int:
    names = header(Files(reader, [path]), path)
    if not names and not reader.ledger.problems:
        reader.ledger.problem(path, 0, "", "has no fields", "Name a file with a row of column names, or with records.")
    reader.ledger.stop_on_problems()
    known = suggested(names, name)
    # A JSON string is a YAML string.
    quoted = {field: name if name.replace("_", "").isalnum() else json.dumps(name) for field, name in known.items()}
    lines = [f"{field}: {quoted[field]}" if field in known else f"# {field}:" for field in FORMS[name]]
    about = [f"# Fields of {path}: {', '.join(names[:40])}"]
    about += ["# A value is one of these names, or a JSON Pointer such as /metadata/id."]
    sys.stdout.write("\n".join([*about, *lines]) + "\n")
    return PASSED


def _columns(reader: Reader, name: str, args: argparse.Namespace) -> dict[str, str]:
    """Return the map of the fields of a table: the one of the user, otherwise the suggested one if it is sufficient."""
    if not args.map:
        known = suggested(header(Files(reader, args.files), *args.files), name)
        reader.ledger.stop_on_problems()
        write_map = f"{shell_line('rag-eval', 'import', name, args.files[0], '--suggest-map')} > map.yml"
        if not is_sufficient(known, name):
            raise UsageError(f"{name} needs a map of the fields. Write a first one: {write_map}")
        shown = ", ".join(f"{field}: {column}" for field, column in known.items())
        print_notes(f"fields by their names: {shown}. To change that, edit a map: {write_map}", quiet=args.quiet)
        return known
    fields = read_mapping(reader, args.map)
    reader.ledger.stop_on_problems()
    for field, value in fields.items():
        if field not in FORMS[name]:
            hint = f"Known fields: {', '.join(FORMS[name])}."
            reader.ledger.problem(args.map, 0, f"/{field}", "is not a field of the map", hint)
        elif not isinstance(value, str):
            hint = "Write the name of a column, or a JSON Pointer."
            reader.ledger.problem(args.map, 0, f"/{field}", "is not a name", hint)
    needed = ("answer", "error") if name == "table" else ("question",)
    if not any(field in fields for field in needed):
        message, hint = f"does not map the {needed[0]}", f"Add the field that has it: {needed[0]}: NAME"
        reader.ledger.problem(args.map, 0, "", message, hint)
    return fields


def _coverage(fields: Mapping[str, int]) -> list[str]:
    """Return the metric groups that the traces allow, and the fields that would add more metrics."""
    lacking: dict[str, None] = {}
    given: dict[str, None] = {}
    for metric in METRICS.values():
        missing = [field for field in metric.needs if field.startswith("trace.") and field not in fields]
        lacking.update(dict.fromkeys(missing))
        needed = _RETRIEVED if metric.perspective == "retrieval" else _ANSWERED
        if not missing and fields[needed] and metric.level == "case" and metric.perspective != "judge":
            given[metric.perspective] = None
    names = ", ".join(field.removeprefix("trace.") for field in lacking)
    lines = [f"metrics that apply to these traces: {', '.join(given)}"]
    return [*lines, f"for more metrics record {names}: see rag-eval metrics"] if names else lines


def _pointer(text: str) -> str:
    if not text.startswith("/"):
        fix = f"It begins with /, such as /metadata/{text}"
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is not a JSON Pointer. {fix}")
    return text


def _time(text: str) -> str:
    if text == "today":
        return datetime.now(UTC).astimezone().replace(hour=0, minute=0, second=0, microsecond=0).isoformat()
    if nanoseconds(text) is None and nanoseconds(f"{text}T00:00:00") is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time. Write ISO 8601: 2026-01-31 or 2026-01-31T12:00:00Z")
    return text if nanoseconds(text) is not None else f"{text}T00:00:00"


def add_export_arguments(parser: Parser) -> None:
    known = {name: f"{form.summary} (of {', '.join(form.needs)})" for name, form in EXPORTERS.items()}
    parser.list_values("formats:", known)
    parser.add_argument("format", metavar="FORMAT", help="one of the formats above")
    parser.add_option("--gold", "FILE", "gold set (default: eval/gold.jsonl)", default="eval/gold.jsonl")
    parser.add_option("--trace", "FILE", "traces (default: runs/trace.jsonl)", default="runs/trace.jsonl")
    report = "rag-eval-report/report.json"
    parser.add_option("--report", "FILE", f"report.json (default: {report})", default=report)
    parser.add_option("--out", "DIR", "folder to write the files to (default: the current one)", default=".")
    parser.add_flag("--force", "overwrite existing files")


def run_export(args: argparse.Namespace) -> int:
    """Write gold, traces and verdicts in the formats of other tools.

    Examples:
      rag-eval export trec --out trec
      rag-eval export ragas --gold eval/gold.jsonl --trace runs/trace.jsonl --out .
      rag-eval export langfuse-scores --report rag-eval-report/report.json --out .
    """
    if args.format not in EXPORTERS:
        table = "A row for each question: rag-eval score --format csv"
        raise UsageError(f"unknown format '{args.format[:80]}'. Choose one of: {', '.join(EXPORTERS)}. {table}")
    form = EXPORTERS[args.format]
    with checked_reader() as reader:
        gold = _export_rows(reader, args.gold, "gold") if {"gold", "trace"} & {*form.needs} else []
        traces = _export_rows(reader, args.trace, "trace") if "trace" in form.needs else []
        if "report" in form.needs:
            read_report(reader, args.report)  # problems of the output are errors of the command
    report = json.loads(file_bytes(args.report)) if "report" in form.needs else {}
    texts = form.write(Contents(gold, traces, report))
    for name, text in texts.items():
        refuse_existing(Path(args.out, name), force=args.force, other="folder with --out")
        if not text:
            reason = "the traces have no ids of their source, or the format fits no item"
            raise UsageError(f"{args.format}: nothing to export: {reason}")
    write_together(Path(args.out), texts.items())
    for name, text in texts.items():
        print_notes(f"wrote {Path(args.out, name)}: {quantity(text.count(chr(10)), 'line')}")
    return PASSED


def _export_rows(reader: Reader, path: str, kind: str) -> list[dict[str, object]]:
    return [row for _, row in Files(reader, [path]).rows(path, kind)]
