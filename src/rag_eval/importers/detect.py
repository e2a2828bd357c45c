"""Recognise the form of a foreign file by its content, for ``import auto`` and for the hints of ``score``."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from rag_eval.importers import unwrap

Row = dict[str, Any]
_LONGEST = 1 << 20


class Recognised(NamedTuple):
    """The format for traces and for gold ('' for none), and by what it was recognised."""

    trace: str
    gold: str
    why: str


def detect(head: bytes) -> Recognised | None:
    """The form of a file by its first bytes; None if no form is recognised. ``head`` may end in the middle."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"{", b"["):
        return _of_json(text)
    first = text.partition(b"\n")[0].decode("utf-8", "replace").strip()
    fields, columns = first.split(), {cell.strip('"') for cell in first.split(",")}
    for matches, form in (
        (len(fields) == 6 and fields[1] == "Q0", Recognised("trec-run", "", "six columns, the second is Q0")),
        (_is_judgement(fields), Recognised("", "trec-qrels", "four columns, the last is an integer")),
        (fields[:2] == ["query-id", "corpus-id"], Recognised("", "beir", "the header query-id, corpus-id")),
        (bool(columns & {"user_input", "ground_truth"}), Recognised("ragas-trace", "ragas", "columns of Ragas")),
        (
            bool(columns & {"actual_output", "expected_output"}),
            Recognised("deepeval-trace", "deepeval", "columns of DeepEval"),
        ),
        (len(columns) > 1, Recognised("table", "", "a header with commas")),
    ):
        if matches:
            return form
    return None


def _is_judgement(fields: list[str]) -> bool:
    return len(fields) == 4 and fields[1].isalnum() and fields[3].lstrip("-").isdigit()


def _of_json(text: bytes) -> Recognised | None:
    """By the keys of the first record; of a file that is cut the keys that are whole count."""
    record = _first_record(text)
    if record is None:
        return None
    keys = set(record)
    if (
        isinstance(record.get("data"), list)
        and record["data"]
        and isinstance(record["data"][0], dict)
        and "info" not in keys
    ):
        keys |= set(record["data"][0])
    context = record.get("context")
    for form, needed, why in (
        (("otlp", ""), {"resourceSpans"}, "resourceSpans"),
        (("otlp", ""), {"resourceLogs"}, "resourceLogs"),
        (("promptfoo-trace", "promptfoo"), {"evalId", "results"}, "evalId and results"),
        (("promptfoo-trace", "promptfoo"), {"results", "config"}, "results and config"),
        (("promptfoo-trace", "promptfoo"), {"promptIdx", "testIdx"}, "promptIdx and testIdx"),
        (("deepeval-trace", "deepeval"), {"testCases"}, "testCases"),
        (("deepeval-trace", "deepeval"), {"test_cases"}, "test_cases"),
        (("deepeval-trace", "deepeval"), {"input", "actual_output"}, "input and actual_output"),
        (("deepeval-trace", "deepeval"), {"input", "retrieval_context"}, "input and retrieval_context"),
        (("", "deepeval"), {"input", "expected_output"}, "input and expected_output"),
        (("mlflow", ""), {"info", "data"}, "info and data"),
        (("langfuse", ""), {"trace", "observations"}, "trace and observations"),
        (("langfuse", ""), {"observations"}, "observations"),
        (("langfuse", ""), {"traceId", "parentObservationId"}, "traceId and parentObservationId"),
        (("langfuse", ""), {"trace_id", "parent_observation_id"}, "trace_id and parent_observation_id"),
        (("", "langfuse-dataset"), {"datasetId", "expectedOutput"}, "datasetId and expectedOutput"),
        (("", "langfuse-dataset"), {"input", "expectedOutput"}, "input and expectedOutput"),
        (("langsmith", ""), {"run_type"}, "run_type"),
        (("langsmith", ""), {"post"}, "post"),
        (("langsmith", ""), {"patch"}, "patch"),
        (("", "langsmith-dataset"), {"inputs", "outputs", "dataset_id"}, "inputs, outputs and dataset_id"),
        (("", "langsmith-dataset"), {"inputs", "outputs"}, "inputs and outputs"),
        (("ragas-trace", "ragas"), {"user_input"}, "user_input"),
        (("ragas-trace", "ragas"), {"question", "contexts"}, "question and contexts"),
        (("ragas-trace", "ragas"), {"question", "ground_truth"}, "question and ground_truth"),
        (("azure-eval", "azure-eval-gold"), {"rows", "metrics"}, "rows and metrics"),
        (("azure-eval", "azure-eval-gold"), {"question", "truth"}, "question and truth"),
        (("azure-eval", "azure-eval-gold"), {"inputs.query"}, "inputs.query"),
        (("azure-eval", "azure-eval-gold"), {"query", "response"}, "query and response"),
        (("phoenix", ""), {"context.trace_id"}, "context.trace_id"),
        (("", "beir"), {"_id", "text"}, "_id and text"),
        (("", "core-metrics"), {"gold_supports"}, "gold_supports"),
        (("", "core-metrics"), {"question", "expected_behavior"}, "question and expected_behavior"),
        (("core-metrics-trace", ""), {"references", "folder_mode"}, "references and folder_mode"),
    ):
        if needed <= keys:
            return Recognised(*form, f"the keys {why}" if " " in why else f"the key {why}")
    cut = "context" in keys and context is None and b'"trace_id": "0x' in text[:_LONGEST]
    if cut or (isinstance(context, dict) and "trace_id" in context):
        console = cut or str(unwrap.as_dict(context).get("trace_id")).startswith("0x")
        return Recognised("otlp" if console else "phoenix", "", "spans with a context")
    if isinstance(record.get("data"), list) and "span_kind" in keys:
        return Recognised("phoenix", "", "spans in data")
    if {"q", "gold_ids"} <= keys:
        return Recognised("", "example08", "the keys q and gold_ids")
    return None


def _first_record(text: bytes) -> Row | None:
    """The first object of a JSON text that may be cut, or be an array."""
    line = text.partition(b"\n")[0]
    for candidate in (text, line):
        try:
            value = msgspec.json.decode(candidate)
        except (ValueError, RecursionError):
            continue
        value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, dict) else None
    return _keys_of_cut(text)


def _keys_of_cut(text: bytes) -> Row | None:
    """The top-level keys of an object that is cut, each with None; keys inside are not looked at."""
    depth, place = 0, 0
    found: Row = {}
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
            found[token[1:-1].decode("utf-8", "replace")] = None
        place = match.end()
    return found if place and found else None
