"""Turn gold sets, traces and runs of other tools into files of rag-eval's own.

What is kept under another name and what is left out is printed on stderr. Nothing is written if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import remark, write
from rag_eval.errors import UsageError
from rag_eval.importers import IMPORTERS, Importer, importer

if TYPE_CHECKING:
    from rag_eval.importers._account import Account
    from rag_eval.importers.conversion import Options
    from rag_eval.readers.source import Reader

EXAMPLES = """\
  rag-eval import auto export.json --out runs/trace.jsonl
  rag-eval import langfuse traces.jsonl --gold eval/gold.jsonl --out runs/trace.jsonl
  rag-eval import ragas samples.jsonl --out eval/gold.jsonl
  rag-eval import table answers.csv --suggest-map > map.yml
  rag-eval import table answers.csv --map map.yml --out runs/trace.jsonl
"""
_POINTERS = {
    "qid": "where the id of the gold item is, from the record or the root span",
    "question": "where the question is",
    "answer": "where the answer is",
    "chunks": "where the list of retrieved chunks is (promptfoo)",
    "chunk-id": "where the id of a chunk is, from the chunk: /metadata/chunk_id",
    "doc-id": "where the id of its document is, from the chunk",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    width = max(map(len, IMPORTERS))
    known = "".join(f"  {name:<{width}}  {one.gives}: {one.summary} ({one.takes})\n" for name, one in IMPORTERS.items())
    parser.description = (
        f"{parser.description}\nformats:\n  {'auto':<{width}}  recognises the format of the file\n{known}"
    )
    parser.add_argument("format", metavar="FORMAT", help="one of the formats above, or auto")
    parser.add_argument("files", metavar="FILE", nargs="+", help="the files to read")
    parser.add_argument("--out", metavar="FILE", default="-", help="where to write it (default: stdout)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    parser.add_argument("--quiet", action="store_true", help="do not print what became of the fields")
    parser.add_argument(
        "--as", dest="kind", choices=("trace", "gold"), default="trace", help="with auto: what to make of it"
    )
    parser.add_argument("--gold", metavar="FILE", default="", help="pair traces with the questions of this gold set")
    for name, text in _POINTERS.items():
        parser.add_argument(f"--{name}", metavar="POINTER", type=_pointer, default=None, help=f"JSON Pointer: {text}")
    parser.add_argument(
        "--citations", metavar="FORM", choices=("none", "brackets", "numbers"), default="none",
        help="how answers cite: brackets ([id]), numbers ([1]) or none (default)",
    )  # fmt: skip
    parser.add_argument("--run", metavar="NAME", default="", help="the name of the run, in every row")
    parser.add_argument("--retriever", metavar="NAME", default="", help="the span whose output is what was retrieved")
    parser.add_argument(
        "--unanswerable", metavar="TEXT", action="append", default=[],
        help="an expected answer that means: not answerable (gold; repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--since", metavar="TIME", type=_time, default=None, help="only traces from this time (ISO 8601)"
    )
    parser.add_argument("--last-only", action="store_true", help="only the last trace of each question")
    parser.add_argument("--turns", choices=("last",), default="", help="read the last turn of each conversation")
    parser.add_argument("--keep-empty", action="store_true", help=argparse.SUPPRESS)  # which is now the only way
    parser.add_argument(
        "--answers", metavar="FILE", default="", help="answers of a TREC run: JSON Lines of qid and answer"
    )
    parser.add_argument("--corpus", metavar="FILE", default="", help="chunk texts of a TREC run: BEIR's corpus.jsonl")
    parser.add_argument("--map", metavar="FILE", default="", help="table: YAML file that maps fields")
    parser.add_argument("--suggest-map", action="store_true", help="table: print a first map of the file")


def run(args: argparse.Namespace) -> int:
    """Write what was made of the files. InputError with every problem if they cannot be read."""
    from rag_eval.importers._account import Account
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.source import Reader

    reader, account = Reader(Ledger()), Account()
    name = _recognised(reader, args.files[0], args.kind) if args.format == "auto" else args.format
    form = importer(name)
    if form.files and len(args.files) != form.files:
        raise UsageError(f"{name} takes {form.takes}: {form.files} FILE, not {len(args.files)}")
    if args.out != "-" and os.path.lexists(args.out) and not args.force:
        raise UsageError(f"{args.out} exists. Name another file, or overwrite it with --force")
    if name == "table" and (args.suggest_map or not args.map):
        return _suggest(reader, args.files[0], asked=args.suggest_map)
    text, rows = _converted(reader, name, form, args, account)
    reader.ledger.stop_on_problems()
    if args.out == "-":
        sys.stdout.write(text)
    else:
        write(Path(args.out), text)
    coverage = _coverage(rows) if form.gives == "trace" else []
    remark([*account.lines(), *reader.ledger.notes, *coverage], quiet=args.quiet)
    return 0


def _converted(
    reader: Reader, name: str, form: Importer, args: argparse.Namespace, account: Account
) -> tuple[str, list[dict[str, Any]]]:
    """The text of the file to write, and its rows."""
    import json

    if form.gives == "report":
        from rag_eval.importers import report_of
        from rag_eval.readers.import_inputs import Files
        from rag_eval.rendering import render

        report = report_of(name, Files(reader, args.files), account)
        text = render(report, "json") if report else ""
        _validate_report(reader, args.files[-1], text)
        return text, []
    from rag_eval.readers.imported_rows import imported

    options = (_options(reader, args),) if form.function else ()
    more = (_field_map(reader, args.map),) if name == "table" else ()
    reader.ledger.stop_on_problems()
    text = imported(reader, name, args.files, account, *options, *more)
    return text, [json.loads(line) for line in text.splitlines()] if form.gives == "trace" else []


def _options(reader: Reader, args: argparse.Namespace) -> Options:
    from rag_eval.importers.conversion import Options
    from rag_eval.readers.gold_file import read_gold

    questions: dict[str, list[str]] = {}
    if args.gold:
        for qid, item in read_gold(reader, args.gold).items():
            questions.setdefault(item.question, []).append(qid)
    stated = ((name, getattr(args, name, None)) for name in Options.__dataclass_fields__)
    given: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in stated if one}
    qids = frozenset(qid for same in questions.values() for qid in same)
    return Options(questions if args.gold else None, qids, **given)


def _recognised(reader: Reader, path: str, kind: str) -> str:
    """The format of a file by its content, said on stderr; UsageError if there is none."""
    from rag_eval.importers.detect import detect

    source = reader.open(path)
    reader.ledger.stop_on_problems()
    if source is None:
        raise UsageError(f"{path} cannot be read")
    with source:
        form = detect(source.head)
    name = (getattr(form, kind) or form.gold or form.trace) if form else ""
    if form is None or not name:
        hint = (
            f"Name the format ({', '.join(IMPORTERS)}), or map its fields: rag-eval import table {path} --suggest-map"
        )
        raise UsageError(f"{path} is in no format that is recognised. {hint}")
    other = form.gold if name == form.trace else form.trace
    also = f" (--as {IMPORTERS[other].gives} reads it as {other})" if other else ""
    print(f"{path} is read as {name}: it has {form.why}{also}", file=sys.stderr)
    return name


def _suggest(reader: Reader, path: str, *, asked: bool) -> int:
    """Print a first map of a table; without ``--suggest-map`` that is the fix of an error."""
    from rag_eval.importers.table import FIELDS, header, suggested
    from rag_eval.readers.import_inputs import Files

    if not asked:
        raise UsageError(
            f"table needs a map of the fields. Write a first one: rag-eval import table {path} --suggest-map > map.yml"
        )
    names = header(Files(reader, [path]), path)
    reader.ledger.stop_on_problems()
    known = suggested(names)
    lines = [f"{field}: {_yaml(known[field])}" if field in known else f"# {field}:" for field in FIELDS]
    columns = ", ".join(names[:40])
    sys.stdout.write(
        f"# Fields of {path}: {columns}\n# A value is a name of those, or a JSON Pointer such as /metadata/id.\n"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _yaml(name: str) -> str:
    import json

    return name if name.replace("_", "").isalnum() else json.dumps(name)


def _field_map(reader: Reader, path: str) -> dict[str, str]:
    """A map of fields from a YAML file; InputError with every problem of it."""
    from rag_eval.importers.table import FIELDS
    from rag_eval.readers.import_inputs import Files
    from rag_eval.readers.yaml_file import YamlError, parse

    fields: dict[str, Any] = {}
    try:
        found = parse((Files(reader, [path]).data(path) or b"").decode()).value
        fields = found if isinstance(found, dict) else {}
    except YamlError as error:
        reader.ledger.problem(path, error.line, f"column {error.column}", error.message, error.hint)
    except UnicodeDecodeError:
        reader.ledger.problem(path, 0, "", "is not UTF-8", "Save the file as UTF-8.")
    reader.ledger.stop_on_problems()
    for field, value in fields.items():
        if field not in FIELDS:
            reader.ledger.problem(path, 0, f"/{field}", "is no field of a map", f"Known fields: {', '.join(FIELDS)}.")
        elif not isinstance(value, str):
            reader.ledger.problem(path, 0, f"/{field}", "is no name", "Write the name of a column, or a JSON Pointer.")
    if "answer" not in fields and "error" not in fields:
        reader.ledger.problem(path, 0, "", "maps no answer", "Say which field holds it: answer: NAME")
    reader.ledger.stop_on_problems()
    return fields


def _coverage(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Which metrics the traces give, and which fields would give more."""
    from rag_eval.metrics import METRICS

    if not rows:
        return []
    fields = {f"trace.{name}" for row in rows for name in row}
    fields |= {f"trace.chunks.{name}" for row in rows for chunk in row.get("chunks", ()) for name in chunk}
    fields |= {"trace.citations" for row in rows if "citations" in row.get("answer_json", row)}
    lacking: dict[str, list[str]] = {}
    given: dict[str, None] = {}
    for metric in METRICS.values():
        missing = [field for field in metric.needs if field.startswith("trace.") and field not in fields]
        if missing:
            lacking.setdefault(" and ".join(missing), []).append(metric.name)
        elif metric.level == "case" and metric.perspective != "judge":
            given[metric.perspective] = None
    lines = [f"metrics that these traces give: {', '.join(given)}"]
    for field, metrics in lacking.items():
        named = ", ".join(metrics[:3]) + (f" and {len(metrics) - 3} more" if len(metrics) > 3 else "")
        lines.append(f"to get {named}: record {field.replace('trace.', '')}")
    return lines


def _validate_report(reader: Reader, path: str, text: str) -> None:
    """Validate a report that is to be written against our own schema, as rows are."""
    import json

    from rag_eval.readers.schema_validation import Contract

    for fault in Contract("report", reader.limits.depth).faults(json.loads(text)) if text else ():
        reader.ledger.problem(path, 0, f"as report: {fault.where}", fault.message, fault.hint)


def _pointer(text: str) -> str:
    if not text.startswith("/"):
        raise argparse.ArgumentTypeError(
            f"'{text[:40]}' is no JSON Pointer: it begins with /, such as /metadata/{text}"
        )
    return text


def _time(text: str) -> str:
    from rag_eval.importers.conversion import nanoseconds

    if nanoseconds(text) is None and nanoseconds(f"{text}T00:00:00") is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no time. Write ISO 8601: 2026-01-31 or 2026-01-31T12:00:00Z")
    return text if nanoseconds(text) is not None else f"{text}T00:00:00"
