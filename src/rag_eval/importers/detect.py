"""Recognition of a foreign file by its content, for ``import auto`` and for the hints of ``score``."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from rag_eval.importers import Row, unwrap
from rag_eval.importers.documents import csv_header, frame_rows
from rag_eval.importers.promptfoo import TOP_KEYS

_LONGEST = 1 << 20
_SAMPLES = ("ragas-trace", "deepeval-trace", "azure-eval")
_ANSWERS = {
    "response", "multi_responses", "answer", "actual_output", "inputs.response", "outputs.response", "rows",
    "conversation", "inputs.conversation", "testCases", "test_cases", "testRunData",
}  # fmt: skip
# Formats for traces and for gold, and the alternative sets of keys that show them; the first line that matches counts.
_KEYS = """
otlp . | resourceSpans | resourceLogs | traceID spans
. promptfoo | vars assert | __expected | __expected1 | prompts tests | providers tests
promptfoo-trace promptfoo | Status Grader_Reason | evalId results | results config | promptIdx testIdx
deepeval-trace deepeval | testCases | testRunData | test_cases | input actual_output | input retrieval_context
. deepeval | input expected_output
mlflow . | info data | trace_id trace | request_id trace
opik . | trace spans | trace_id parent_span_id error_info
braintrust . | root_span_id span_attributes
. braintrust-dataset | dataset_id expected
phoenix . | start_time_unix_nano | context span_kind
langfuse langfuse-dataset | experimentItemId traceId
langfuse . | datasetRunItems | datasetItemId traceId
langfuse . | trace observations | observations | traceId parentObservationId | trace_id parent_observation_id
langfuse . | id traceId startTime | timestamp input output sessionId | batch
. langfuse-dataset | datasetId expectedOutput | input expectedOutput
langsmith . | run_type | runs cursors | items next_cursor | post | patch
table . | inputs outputs ground_truth | inputs outputs reference_outputs
. langsmith-dataset | inputs outputs dataset_id | inputs outputs
ragas-trace ragas | user_input | question contexts | question ground_truth
azure-eval azure-eval-gold | rows metrics | question truth | inputs.query | query response
azure-eval . | conversation | inputs.conversation
phoenix . | context.trace_id
. beir | _id text
. core-metrics | gold_supports | question expected_behavior
core-metrics-trace . | references folder_mode
. example08 | q gold_ids
"""
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
    if len(fields) in (5, 6) and fields[3].isdigit() and unwrap.number(fields[4]) is not None:
        return Recognised("trec-run", "", "a rank and a score in columns four and five")
    if len(fields) == 4 and fields[1].replace("-", "").isalnum() and fields[3].lstrip("-").isdigit():
        return Recognised("", "trec-qrels", "four columns, the last is an integer")
    if fields[:2] == ["query-id", "corpus-id"]:
        return Recognised("", "beir", "the header query-id, corpus-id")
    keys, columns = [match[1].decode() for match in TOP_KEYS.finditer(text)], csv_header(text)  # keys of YAML
    if keys or len(columns) < 2:
        return _of_keys(dict.fromkeys(keys), "keys")
    return _of_keys(dict.fromkeys(columns), "columns") or Recognised("table", "table-gold", "a header of columns")


def _of_json(text: bytes) -> Recognised | None:
    """Recognise JSON by the keys of the first record; in a cut file only complete keys count."""
    record = _first_record(text)
    if record is None:
        return None
    if form := _of_keys(record, "keys"):
        return form
    context = record.get("context")
    cut = "context" in record and context is None and b'"trace_id": "0x' in text[:_LONGEST]
    if cut or (isinstance(context, dict) and "trace_id" in context):
        console = cut or str(unwrap.as_dict(context).get("trace_id")).startswith("0x")
        return Recognised("otlp" if console else "phoenix", "", "spans with a context")
    if any(word in text[:_LONGEST] for word in (b'"resourceSpans"', b'"scopeSpans"')):
        return Recognised("otlp", "", "spans by resource")
    return None


def _of_keys(record: Row, what: str) -> Recognised | None:
    """Recognise a record by the names of its fields; a file without answers is a gold set."""
    names = {name.replace(" ", "_") for name in record}
    for line in _KEYS.strip().splitlines():
        form, *alternatives = line.split(" | ")
        trace, gold = form.replace(".", "").split(" ")
        needed = next((keys.split() for keys in alternatives if names.issuperset(keys.split())), None)
        if needed is None or (needed == ["conversation"] and isinstance(record["conversation"], str)):
            continue  # such a trace names its conversation
        if gold == "langsmith-dataset" and isinstance(record["inputs"], str):
            return None
        answers = [record[name] for name in _ANSWERS & record.keys()]
        is_cut = all(value is None for value in record.values())
        unanswered = not answers or (not is_cut and all(value is None for value in answers))
        if unanswered and trace in _SAMPLES and not isinstance(record.get("user_input"), list):
            trace = ""
        why = " and ".join(part for part in (", ".join(needed[:-1]), needed[-1]) if part).replace("_R", " R")
        return Recognised(trace, gold, f"the {what if len(needed) > 1 else what.removesuffix('s')} {why}")
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
