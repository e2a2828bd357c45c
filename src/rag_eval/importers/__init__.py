"""IMPORTERS: the formats of other tools that are converted to rows, and the recognition of their files.

To add one, describe it and the keys of its files in ``data/formats.toml``, and write its function:
``drafts(conversion)`` yields traces, ``golds(conversion)`` gold rows; one of another name yields lines and rows.
Converters are pure: files are read through :class:`ImportInputs`, which is strict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from rag_eval.common.escaping import json_source, one_line
from rag_eval.errors import UsageError
from rag_eval.textual import read_table

if TYPE_CHECKING:
    from rag_eval.analysis import Report

Row = dict[str, Any]
Numbered = Iterator[tuple[int, Row]]
_LONGEST_FIELD, _LONGEST_TARGET = 80, 200
_RENAMED, _DROPPED, _LACKING = "read as {1}: {0}", "left out: {0} ({1})", "{0}"  # lines of an account
_LONGEST = 1 << 20
_SAMPLES = ("ragas-trace", "deepeval-trace", "azure-eval")
_TABLE = read_table("formats.toml", "rag_eval.importers")
_KEYS, _OF_TABLES, _ANSWERS = (_TABLE["recognition"][name] for name in ("keys", "of_tables", "answers"))
_OF_TABLES, _ANSWERS = set(_OF_TABLES.split()), set(_ANSWERS.split())


class Recognised(NamedTuple):
    """The format for traces and for gold ('' for none), and the evidence for it."""

    trace: str
    gold: str
    why: str


_RANKS = re.compile(rb'\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?\d')
_PAIRS = re.compile(rb'\{\s*"queries"\s*:\s*\{')
_PAGE = re.compile(  # of an API, with its number and size before its list
    rb'\A\{(?:\s*"(?:page|size|total|limit|has_more|cursor|next_cursor)"\s*:\s*(?:\w+|"[^"]*")\s*,)*'
    rb'\s*"(?:data|runs|items|traces|events|content|calls|records)"\s*:\s*\[(?=\s*\{)'
)
VERDICT = re.compile(rb"\[(?:PASS|FAIL|ERROR)\] \(-?\d+\.\d\d")  # how older versions of promptfoo write outputs in CSV
_OF_TEXT = tuple((re.compile(pattern), form) for pattern, form in (
    (rb"\A(?:#.*\n|---\s)*- ", Recognised("table", "table-gold", "records in YAML")),
    (rb"\A(?:\S+[ \t]+){3}\d+[ \t]+-?[\d.]+(?:[eE][-+]?\d+)?(?:[ \t]+\S+)?\s*?(?:\n|\Z)",
     Recognised("trec-run", "", "a rank and a score in columns four and five")),
    (rb"\A\S+[ \t]+[\w-]+[ \t]+\S+[ \t]+-?\d+\s*?(?:\n|\Z)",
     Recognised("", "trec-qrels", "four columns, the last is an integer")),
    (rb"\Aquery-id\s+corpus-id\s", Recognised("", "beir", "the header query-id, corpus-id")),
    (VERDICT.pattern, Recognised("promptfoo-trace", "promptfoo", "outputs with verdicts")),
))  # fmt: skip
"""Texts other than JSON, CSV and objects in YAML."""
_DATASET = re.compile(rb'\A\{\s*"data"\s*:\s*(?=\{\s*"dataset_id")')
_NAME = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*(:?)')


class Importer(NamedTuple):
    """A format: the rows of gold or traces, or the baseline report, that it ``gives``, and its files."""

    gives: Literal["gold", "trace", "report"]
    takes: str
    summary: str
    module: str
    tool: str
    function: str = "drafts"
    files: int = 0  # number of files; 0 for one or more
    direct: bool = False  # no other tool writes it: it has no options, and gates files may name its files
    capture: str = ""  # how the tool records texts


IMPORTERS = {name: Importer(**{"tool": form["module"], **form}) for name, form in _TABLE["formats"].items()}
SPANS: dict[str, dict[str, str]] = _TABLE["spans"]
FIELDS: dict[str, dict[str, Any]] = read_table("fields.toml", "rag_eval.importers")


class ImportInputs(Protocol):
    """The files of an importer.

    Reading is strict: the reader records problems, and leaves out invalid parts. Rows have the line on which they
    begin. ``schema`` names the file of ``schemas/`` under which each row must be valid.
    """

    paths: Sequence[str]
    place: tuple[str, int]
    """File and line of the value that was decoded last."""

    @property
    def problems(self) -> int:
        """Return the number of problems so far."""

    def lines(self, path: str) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of each line that is not blank, however long it is."""

    def blocks(self, path: str, *, shown: bool = True) -> Iterator[bytes]:
        """Yield the bytes of a file, decompressed, as they are read; ``shown`` if they count as progress."""

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file, decompressed; None with a problem if it is unreadable."""

    def rows(self, path: str, schema: str) -> Numbered:
        """Yield the rows of a JSON Lines file."""

    def elements(self, path: str, schema: str) -> Numbered:
        """Yield the elements of a file that is one JSON array."""

    def value(self, path: str, schema: str) -> Row | None:
        """Return the value of a file that is one JSON object."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted, without hidden files."""

    def digest(self, path: str) -> str:
        """Return the sha256, in hex, of a file that was read."""

    def problem(self, path: str, line: int, where: str, message: str, hint: str) -> None:
        """Record a problem of the files together."""


class Account:
    """The account of a conversion: fields that were renamed or left out, by their names in the source, with counts."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()  # of a form of a line and its two parts

    def renamed(self, field: str, to: str) -> None:
        """Record that a field of a row is kept under another name, or in another form."""
        if field != to:
            self._count(_RENAMED, one_line(field, _LONGEST_FIELD), one_line(to, _LONGEST_TARGET))

    def dropped(self, field: str, why: str, count: int = 1) -> None:
        """Record that a field of a row is left out."""
        self._count(_DROPPED, one_line(field, _LONGEST_FIELD) or "a column without a name", why, count)

    def lacking(self, what: str, count: int = 1) -> None:
        """Record something that converted rows lack."""
        self._count(_LACKING, one_line(what, _LONGEST_TARGET), "", count)

    def _count(self, form: str, field: str, other: str, count: int = 1) -> None:
        if count:
            self._counts[form, field, other] += count

    def lines(self, *forms: str) -> list[str]:
        """Return a line for each entry."""
        return [
            form.format(field, other) + (f", {count} times" if count > 1 else "")
            for wanted in forms or (_RENAMED, _DROPPED, _LACKING)
            for (form, field, other), count in sorted(self._counts.items())
            if form == wanted
        ]

    @property
    def dropped_lines(self) -> list[str]:
        """Return a line for each field that is left out."""
        return self.lines(_DROPPED)


def importer(name: str) -> Importer:
    """Return the importer of a name on the command line; raise UsageError if there is none."""
    if name in IMPORTERS:
        return IMPORTERS[name]
    from difflib import get_close_matches

    close = get_close_matches(name, IMPORTERS, n=1, cutoff=0.6)
    fix = f"Did you mean '{close[0]}'?" if close else f"Known formats: {', '.join(IMPORTERS)}."
    if name.lower() in ("csv", "tsv", "json", "jsonl"):
        fix = "Use auto, which recognises the file, or table or table-gold for a file of your own."
    raise UsageError(f"unknown format '{name[:80]}'. {fix}")


def rows_of(name: str, inputs: ImportInputs, account: Account, *options: Any) -> Numbered:
    """Yield line and row of each gold item or trace of a format; ``options`` are further arguments of its function."""
    form = IMPORTERS[name]
    convert = getattr(import_module(f"rag_eval.importers.{form.module}"), form.function)
    if form.direct:
        yield from convert(inputs, account)
        return
    from rag_eval.importers.conversion import Conversion

    conversion = Conversion(inputs, options[0], account, form.capture)
    results = convert(conversion, *options[1:])
    if form.function.endswith("drafts"):
        yield from conversion.rows(form.tool, results)
    else:
        yield from conversion.gold_rows(results) if form.function.endswith("golds") else results


def report_of(name: str, inputs: ImportInputs, account: Account) -> Report | None:
    """Return the report of a format; None if it is unreadable."""
    report: Report | None = import_module(f"rag_eval.importers.{IMPORTERS[name].module}").report(inputs, account)
    return report


def gold_row(
    qid: str, question: str, *, answerable: bool, citations: Iterable[str], expected: str | None = None, **more: Any
) -> Row:
    """Return a gold row. An unanswerable question has no citations and substrings; ``more`` are other fields."""
    substrings = list(more.pop("substrings", ()))
    row: Row = {
        "qid": qid,
        "question": question,
        "answerable": answerable,
        "gold_claim_substr": substrings if answerable else [],
        "gold_citations": list(dict.fromkeys(citations)) if answerable else [],
    }
    if expected is not None:
        row["expected_answer"] = expected
    return row | {name: value for name, value in more.items() if value not in (None, [], {})}


def written(row: Row) -> str:
    """Return a row as one line of JSON, from which the hash of an item is computed."""
    return json_source(json.dumps(row, ensure_ascii=False))


def detect(head: bytes) -> Recognised | None:
    """Recognise a file by its first bytes; return None for an unknown one. ``head`` may end anywhere."""
    from rag_eval.importers.documents import BLANK, YAML, csv_header

    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(BLANK)
    if text[:1] in (b"{", b"["):
        record = _first_record(text)
        by_keys = None if record is None else _of_keys(record, "keys") or _of_spans(record, text[:_LONGEST])
        return by_keys or _of_ranks(text[:_LONGEST])
    if form := next((form for pattern, form in _OF_TEXT if pattern.search(text)), None):
        return form
    columns = csv_header(text)
    keys = re.findall(r"(?m)^(evalId|results|prompts|providers|tests):", text.decode("latin-1"))  # promptfoo's YAML
    if keys or len(columns) < 2:
        of_yaml = Recognised("table", "table-gold", "records in YAML") if YAML.match(text) else None
        return _of_keys(dict.fromkeys(keys), "keys") or of_yaml
    return _of_keys(dict.fromkeys(columns), "columns") or Recognised("table", "table-gold", "a header of columns")


def _of_ranks(text: bytes) -> Recognised | None:
    """Recognise an object of grades or scores by question and document, whose names are ids, or of queries by id."""
    if _PAIRS.match(text):  # the judgements may be far behind the queries
        return Recognised("", "beir", "queries by id")
    names = _NAME.findall(text)[:-1] if _RANKS.match(text) else []  # the last one may be cut
    if not names or not all(colon and re.search(rb"\d", name) for name, colon in names):
        return None
    is_run = re.search(rb":\s*-?\d+[.eE]", text)
    forms = ("trec-run", "", "scores by question") if is_run else ("", "trec-qrels", "grades by question")
    return Recognised(*forms)


def _of_spans(record: Row, text: bytes) -> Recognised | None:
    """Recognise spans of the console exporter, of Phoenix and of OTLP whose first keys say nothing."""
    context = record.get("context", {})
    cut = context is None and b'"trace_id": "0x' in text
    if cut or (isinstance(context, dict) and "trace_id" in context):
        is_console = cut or str(context["trace_id"]).startswith("0x")
        return Recognised("otlp" if is_console else "phoenix", "", "spans with a context")
    if b'"resourceSpans"' in text or b'"scopeSpans"' in text:
        return Recognised("otlp", "", "spans by resource")
    are_plain = all(f'"{name}"'.encode() in text for name in ("trace_id", "span_id"))
    if are_plain and (b'"attributes"' in text or b'"start_ns"' in text):
        return Recognised("phoenix", "", "spans with trace_id and span_id")
    return None


def _of_keys(record: Row, what: str) -> Recognised | None:
    """Recognise a record by the names of its fields; a file without answers is a gold set."""
    from rag_eval.importers.columns import PREDICTED

    names, predicted = {name.replace(" ", "_") for name in record}, set(PREDICTED) - _ANSWERS
    if all(name == "example_id" or name.startswith(("input_", "output_", "metadata_")) for name in record):
        names.add("input_*")  # the columns of Phoenix
    paths = [name.split(".") for name in record]
    names |= {f"{path[0]}{'.*' * depth}" for path in paths for depth in range(1, min(len(path), 3))}
    for line in _KEYS.strip().splitlines():
        form, *alternatives = line.split(" | ")
        trace, gold = form.replace(".", "").split(" ")
        needed = next((keys.split() for keys in alternatives if names.issuperset(keys.split())), None)
        if needed is None or (needed == ["conversation"] and isinstance(record["conversation"], str)):
            continue  # such a trace names its conversation
        if gold == "langsmith-dataset" and isinstance(record.get("inputs"), str):
            return None
        if needed == ["results", "config"] and not _of_promptfoo(record["results"]):
            continue
        is_table = not _OF_TABLES.isdisjoint(names) or (trace == "ragas-trace" and "context" in names)
        if trace in _SAMPLES and (is_table or _has_documents(record)):
            trace, gold = "table", "table-gold"  # those tools have no such columns
        answers = [record[name] for name in _ANSWERS & record.keys()]
        is_cut = all(value is None for value in record.values())
        is_null = not is_cut and not record.get("error") and all(value is None for value in answers)
        unanswered = not answers or is_null
        if unanswered and trace in _SAMPLES and not predicted.isdisjoint(names):
            trace, gold = "table", "table-gold"
        elif unanswered and trace in _SAMPLES and not isinstance(record.get("user_input", record.get("turns")), list):
            trace = ""
        why = " and ".join(part for part in (", ".join(needed[:-1]), needed[-1]) if part).replace("_R", " R")
        return Recognised(trace, gold, f"the {what if len(needed) > 1 else what.removesuffix('s')} {why}")
    return None


def _of_promptfoo(results: Any) -> bool:
    """Return whether results are those of promptfoo, whose records have variables; other tools list their answers."""
    if isinstance(results, dict):
        return not {"results", "version", "table", "stats"}.isdisjoint(results)
    first = results[0] if isinstance(results, list) and results else None
    return not isinstance(first, dict) or not {"vars", "testCase", "promptIdx"}.isdisjoint(first)


def _has_documents(record: Row) -> bool:
    """Return whether the contexts of a sample are documents or the reply of a search, not texts."""
    values = [record.get(name) for name in ("contexts", "retrieved_contexts")]
    return any(isinstance(value[0] if isinstance(value, list) and value else value, dict) for value in values)


def _first_record(text: bytes) -> Row | None:
    """Return the first object of a JSON text, which may be cut, be an array, or be a page of an API with a list."""
    from rag_eval.importers.documents import frame_rows

    text = _DATASET.sub(b"", _PAGE.sub(b"[", text))
    for candidate in (text, text.partition(b"\n")[0]):
        try:
            value = msgspec.json.decode(candidate)
        except (ValueError, RecursionError):
            continue
        value = value[0] if isinstance(value, list) and value else value
        return next(frame_rows(value), None) if isinstance(value, dict) else None
    return _keys_of_cut(text)


def _keys_of_cut(text: bytes) -> Row | None:
    """Return the top-level keys of a cut object, each with None; nested keys are ignored."""
    depth, position = 0, 0
    keys: Row = {}
    start = 1 if text[:1] == b"{" else 2
    for match in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', text[:_LONGEST]):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth < start:
                break
        elif depth == start and text[match.end() : match.end() + 8].lstrip()[:1] == b":":
            keys[token[1:-1].decode("utf-8", "replace")] = None
        position = match.end()
    return keys if position and keys else None
