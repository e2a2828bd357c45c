"""The kind of a file and its validation, for ``rag-eval validate`` and the hooks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.paths import shell_line
from rag_eval.contract import LABEL_FILES
from rag_eval.gates import REFERENCE_GATES
from rag_eval.readers import strict_json
from rag_eval.readers.gates_file import read_policy
from rag_eval.readers.gold_file import is_folder, read_gold
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.jsonl import NO_QID, is_golden, kind_of_row, looks_like, read_json, read_sidecar, read_traces
from rag_eval.readers.report_file import read_report
from rag_eval.readers.signoff_record import Record
from rag_eval.readers.source import Reader
from rag_eval.scoring import UNNAMED, is_named

_NAMED = {
    "gold": re.compile(r"(^|[/._-])(gold|qaset)|[.]csv$", re.IGNORECASE),
    "trace": re.compile(r"(^|[/._-])(trace|run)s?[./_-]", re.IGNORECASE),
}
_OBJECTS = {
    "report": {"verdict", "gates", "metrics"},
    "signoff": {"changes", "signer"},
    "freeze": {"tag", "digest", "items"},
    "rag-server-run": {"scorecard", "question_count"},
}

_KNOWN_FILE = "Name a file of gold items or traces, a gates file or a report."


def check(reader: Reader, path: str, kind: str | None = None) -> str:
    """Check a file as ``kind``, or as the kind that is recognised; return a description of its content."""
    kind = kind or file_kind(reader, path)
    return KINDS[kind](reader, path) if kind else ""


def file_kind(reader: Reader, path: str) -> str:
    """Return the kind by ending, then by the first row's fields, then by name; empty if it cannot be opened."""
    if path.endswith((".yml", ".yaml")):
        return "gates"
    if is_folder(reader, path):
        return "labels"
    with reader.open(path) as source:
        if not source.is_open:
            return ""
        if unpacked(path).endswith(".json"):
            return json_kind(source.whole() or b"", path)
        if source.is_array:
            return _array_kind(source.head, path)
        first = next((line for _, line in source.lines()), b"")
    name = os.path.basename(path)  # noqa: PTH119 - Path drops a slash at the end
    # Other tools have files of the name cases.jsonl, too.
    is_labels = bool(first) and name in LABEL_FILES and (name != "cases.jsonl" or b'"case_id"' in first)
    named = (kind for kind, pattern in _NAMED.items() if pattern.search(path.replace(os.sep, "/")))
    return "labels" if is_labels else looks_like(first) or next(named, "jsonl")


def unpacked(path: str) -> str:
    """Return the name of a file without the ending of its compression."""
    return path.removesuffix(".gz").removesuffix(".zst")


def json_kind(data: bytes, path: str) -> str:
    """Return the kind of a file that is one JSON value, by its fields and its name."""
    if data.lstrip()[:1] == b"[":
        return _array_kind(data, path)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = {}
    fields = value.keys() if isinstance(value, dict) else set()
    named = "run" if path.endswith("run.json") else "json"
    return next((kind for kind, required in _OBJECTS.items() if required <= fields), named)


def _array_kind(head: bytes, path: str) -> str:
    """Return the kind of a file that begins as a JSON array, by its first element, then by its name.

    Traces may not be in an array: reading them reports that.
    """
    if is_golden(head):
        return "gold"
    try:
        first, _ = json.JSONDecoder().raw_decode(head.decode("utf-8", "ignore").lstrip()[1:].lstrip())
    except (ValueError, RecursionError):
        first = None
    named = not isinstance(first, dict) and _NAMED["trace"].search(path.replace(os.sep, "/"))
    return kind_of_row(first) or ("trace" if named else "gold")


def _labels(reader: Reader, path: str) -> str:
    if is_folder(reader, path):
        names = Files(reader, [path]).names(path)
        if names and LABEL_FILES.keys().isdisjoint(names):
            hint = f"Name files to check: {shell_line('rag-eval', 'validate', path.rstrip('/'))}/*"
            reader.ledger.problem(path, 0, "", "is a folder without label files", hint)
            return ""
        return _gold(reader, path)
    name = os.path.basename(path)  # noqa: PTH119 - Path drops a slash at the end
    if name not in LABEL_FILES:
        hint = f"Known names: {', '.join(LABEL_FILES)}."
        reader.ledger.problem(path, 0, "", "is not the name of a label file", hint)
        return ""
    rows = Files(reader, [path]).rows(path, LABEL_FILES[name])  # without comparison with other files of the folder
    return f"{quantity(sum(1 for _ in rows), 'row')} of labels"


def _gold(reader: Reader, path: str) -> str:
    golds = read_gold(reader, path)
    answerable = sum(gold.answerable for gold in golds.values())
    return f"{quantity(len(golds), 'gold item')}, {answerable} answerable and {len(golds) - answerable} not"


def _trace(reader: Reader, path: str) -> str:
    count, problems = 0, reader.ledger.count
    for trace in chain.from_iterable(read_traces(reader, path)):
        count += 1
        if not is_named(trace):
            reader.ledger.problem(path, trace.line, "", UNNAMED, NO_QID)
    if not count and reader.ledger.count == problems:
        reader.ledger.problem(path, 0, "", "has no traces", "Write one row for each question.")
    return quantity(count, "trace")


def _gates(reader: Reader, path: str) -> str:
    policy = read_policy(reader, path)
    if policy is None:
        return ""
    if policy.gates == REFERENCE_GATES:
        return "without gates: the default gates apply"
    return quantity(len(policy.gates), "gate")


def _unknown(reader: Reader, path: str, *, is_one: bool) -> str:
    """Validate JSON of no known kind, one value or JSON Lines: each value must be strict JSON, and an object."""
    count, problems = 0, reader.ledger.count
    with reader.open(path) as source:
        values: Iterable[tuple[int, bytes]] = source.lines()
        if is_one:
            data = source.whole() or b""
            values = [(0, data)] if data.strip() else []
        for number, data in values:
            count += 1
            try:
                value = strict_json.parse(data, reader.limits.depth)
            except strict_json.JsonError as error:
                reader.ledger.problem(path, number or error.line, error.where, error.message, error.hint)
                continue
            if not isinstance(value, dict) or not value:
                message = f"is {quoted(value)}, which is no data of rag-eval"
                reader.ledger.problem(path, number, "", message, _KNOWN_FILE)
    if not count and reader.ledger.count == problems:
        reader.ledger.problem(path, 0, "", "is empty", _KNOWN_FILE)
    if is_one:
        return "strict JSON, neither gold nor a report"
    return f"{quantity(count, 'line')} of JSON, neither gold nor traces"


def _signoff(reader: Reader, path: str) -> str:
    """Validate a sign-off record by its schema and by the reader of sign-off."""
    value = read_json(reader, path, "signoff")
    record = None if value is None else Record.read(value)
    if isinstance(record, str):
        hint = "Sign again: rag-eval gold signoff --reason TEXT"
        reader.ledger.problem(path, 0, "", f"is not a sign-off record: {record}", hint)
    return "a signoff file" if isinstance(record, Record) else ""


def _object(kind: str, read: Callable[[Reader, str], Any]) -> Callable[[Reader, str], str]:
    return lambda reader, path: f"a {kind} file" if read(reader, path) is not None else ""


KINDS: dict[str, Callable[[Reader, str], str]] = {
    "gold": _gold,
    "trace": _trace,
    "labels": _labels,
    "gates": _gates,
    "report": _object("report", read_report),
    "run": _object("run", read_sidecar),
    "signoff": _signoff,
    "freeze": _object("freeze", partial(read_json, schema="freeze")),
    "rag-server-run": _object("rag-server-run", partial(read_json, schema="rag-server-run")),
    "jsonl": partial(_unknown, is_one=False),
    "json": partial(_unknown, is_one=True),
}
