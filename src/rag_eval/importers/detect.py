"""Recognition of a foreign file by its content, for ``import auto`` and for the hints of ``score``."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from rag_eval.importers import unwrap
from rag_eval.importers.documents import csv_header, frame_rows
from rag_eval.importers.promptfoo import TOP_KEYS

Row = dict[str, Any]
_LONGEST = 1 << 20
_SAMPLES = ("ragas-trace", "deepeval-trace", "azure-eval")
_ANSWERS = {
    "response", "multi_responses", "answer", "actual_output", "inputs.response", "outputs.response", "rows",
    "conversation", "inputs.conversation", "testCases", "test_cases", "testRunData",
}  # fmt: skip
_PAGE = re.compile(rb'^\{\s*"(?:data|runs|items|traces)"\s*:\s*\[(?=\s*\{)')


class Recognised(NamedTuple):
    """The format for traces and for gold ('' for none), and the evidence for it."""

    trace: str
    gold: str
    why: str


def detect(head: bytes) -> Recognised | None:
    """Recognise a file by its first bytes; return None for an unknown one. ``head`` may end anywhere."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"{", b"["):
        return _of_json(text)
    fields = text.partition(b"\n")[0].decode("utf-8", "replace").split()
    columns = csv_header(text)
    for matches, form in (
        (_is_ranked(fields), Recognised("trec-run", "", "a rank and a score in columns four and five")),
        (_is_judgement(fields), Recognised("", "trec-qrels", "four columns, the last is an integer")),
        (fields[:2] == ["query-id", "corpus-id"], Recognised("", "beir", "the header query-id, corpus-id")),
        (TOP_KEYS.search(text) is None and len(columns) > 1, _of_keys(dict.fromkeys(columns), "columns")),
        (TOP_KEYS.search(text) is None and len(columns) > 1, Recognised("table", "table-gold", "a header of columns")),
    ):
        if matches and form:
            return form
    keys = {match[1].decode() for match in TOP_KEYS.finditer(text)}
    return _of_keys(dict.fromkeys(keys), "keys")


def _is_judgement(fields: list[str]) -> bool:
    return len(fields) == 4 and fields[1].replace("-", "").isalnum() and fields[3].lstrip("-").isdigit()


def _is_ranked(fields: list[str]) -> bool:
    return len(fields) in (5, 6) and fields[3].isdigit() and unwrap.number(fields[4]) is not None


def _of_json(text: bytes) -> Recognised | None:
    """Recognise JSON by the keys of the first record; in a cut file only complete keys count."""
    record = _first_record(text)
    if record is None:
        return None
    if form := _of_keys(record, "keys"):
        return form
    keys = set(record)
    context = record.get("context")
    cut = "context" in keys and context is None and b'"trace_id": "0x' in text[:_LONGEST]
    if cut or (isinstance(context, dict) and "trace_id" in context):
        console = cut or str(unwrap.as_dict(context).get("trace_id")).startswith("0x")
        return Recognised("otlp" if console else "phoenix", "", "spans with a context")
    if {"q", "gold_ids"} <= keys:
        return Recognised("", "example08", "the keys q and gold_ids")
    if any(word in text[:_LONGEST] for word in (b'"resourceSpans"', b'"scopeSpans"')):
        return Recognised("otlp", "", "spans by resource")
    return None


def _of_keys(record: Row, what: str) -> Recognised | None:
    """Recognise a record by the names of its fields; a file without answers is a gold set."""
    keys = set(record)
    for form, needed, why in (
        (("otlp", ""), {"resourceSpans"}, "resourceSpans"),
        (("otlp", ""), {"resourceLogs"}, "resourceLogs"),
        (("otlp", ""), {"traceID", "spans"}, "traceID and spans"),
        (("", "promptfoo"), {"prompts", "tests"}, "prompts and tests"),
        (("", "promptfoo"), {"providers", "tests"}, "providers and tests"),
        (("promptfoo-trace", "promptfoo"), {"Status", "Grader Reason"}, "Status and Grader Reason"),
        (("promptfoo-trace", "promptfoo"), {"evalId", "results"}, "evalId and results"),
        (("promptfoo-trace", "promptfoo"), {"results", "config"}, "results and config"),
        (("promptfoo-trace", "promptfoo"), {"promptIdx", "testIdx"}, "promptIdx and testIdx"),
        (("deepeval-trace", "deepeval"), {"testCases"}, "testCases"),
        (("deepeval-trace", "deepeval"), {"testRunData"}, "testRunData"),
        (("deepeval-trace", "deepeval"), {"test_cases"}, "test_cases"),
        (("deepeval-trace", "deepeval"), {"input", "actual_output"}, "input and actual_output"),
        (("deepeval-trace", "deepeval"), {"input", "retrieval_context"}, "input and retrieval_context"),
        (("", "deepeval"), {"input", "expected_output"}, "input and expected_output"),
        (("mlflow", ""), {"info", "data"}, "info and data"),
        (("mlflow", ""), {"trace_id", "trace"}, "trace_id and trace"),
        (("mlflow", ""), {"request_id", "trace"}, "request_id and trace"),
        (("phoenix", ""), {"start_time_unix_nano"}, "start_time_unix_nano"),
        (("phoenix", ""), {"context", "span_kind"}, "context and span_kind"),
        (("langfuse", ""), {"trace", "observations"}, "trace and observations"),
        (("langfuse", ""), {"observations"}, "observations"),
        (("langfuse", ""), {"traceId", "parentObservationId"}, "traceId and parentObservationId"),
        (("langfuse", ""), {"trace_id", "parent_observation_id"}, "trace_id and parent_observation_id"),
        (("langfuse", ""), {"id", "traceId", "startTime"}, "id, traceId and startTime"),
        (("langfuse", ""), {"timestamp", "input", "output", "sessionId"}, "timestamp, input, output and sessionId"),
        (("langfuse", ""), {"batch"}, "batch"),
        (("", "langfuse-dataset"), {"datasetId", "expectedOutput"}, "datasetId and expectedOutput"),
        (("", "langfuse-dataset"), {"input", "expectedOutput"}, "input and expectedOutput"),
        (("langsmith", ""), {"run_type"}, "run_type"),
        (("langsmith", ""), {"runs", "cursors"}, "runs and cursors"),
        (("langsmith", ""), {"items", "next_cursor"}, "items and next_cursor"),
        (("langsmith", ""), {"post"}, "post"),
        (("langsmith", ""), {"patch"}, "patch"),
        (("table", ""), {"inputs", "outputs", "ground_truth"}, "inputs, outputs and ground_truth"),
        (("table", ""), {"inputs", "outputs", "reference_outputs"}, "inputs, outputs and reference_outputs"),
        (("", "langsmith-dataset"), {"inputs", "outputs", "dataset_id"}, "inputs, outputs and dataset_id"),
        (("", "langsmith-dataset"), {"inputs", "outputs"}, "inputs and outputs"),
        (("ragas-trace", "ragas"), {"user_input"}, "user_input"),
        (("ragas-trace", "ragas"), {"question", "contexts"}, "question and contexts"),
        (("ragas-trace", "ragas"), {"question", "ground_truth"}, "question and ground_truth"),
        (("azure-eval", "azure-eval-gold"), {"rows", "metrics"}, "rows and metrics"),
        (("azure-eval", "azure-eval-gold"), {"question", "truth"}, "question and truth"),
        (("azure-eval", "azure-eval-gold"), {"inputs.query"}, "inputs.query"),
        (("azure-eval", "azure-eval-gold"), {"query", "response"}, "query and response"),
        (("azure-eval", ""), {"conversation"}, "conversation"),
        (("azure-eval", ""), {"inputs.conversation"}, "inputs.conversation"),
        (("phoenix", ""), {"context.trace_id"}, "context.trace_id"),
        (("", "beir"), {"_id", "text"}, "_id and text"),
        (("", "core-metrics"), {"gold_supports"}, "gold_supports"),
        (("", "core-metrics"), {"question", "expected_behavior"}, "question and expected_behavior"),
        (("core-metrics-trace", ""), {"references", "folder_mode"}, "references and folder_mode"),
    ):
        if not needed <= keys or (needed == {"conversation"} and isinstance(record["conversation"], str)):
            continue  # such a trace names its conversation
        if not (form[1] == "langsmith-dataset" and isinstance(record["inputs"], str)):
            whole = any(value is not None for value in record.values())
            answers = [record[name] for name in _ANSWERS & keys]
            unanswered = not answers or (whole and all(value is None for value in answers))
            trace = (
                "" if unanswered and form[0] in _SAMPLES and not isinstance(record.get("user_input"), list) else form[0]
            )
            return Recognised(
                trace, form[1], f"the {what} {why}" if " " in why else f"the {what.removesuffix('s')} {why}"
            )
    return None


def _first_record(text: bytes) -> Row | None:
    """Return the first object of a JSON text, which may be cut, be an array, or be a page of an API with a list."""
    text = _PAGE.sub(b"[", text, count=1)
    line = text.partition(b"\n")[0]
    for candidate in (text, line):
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
