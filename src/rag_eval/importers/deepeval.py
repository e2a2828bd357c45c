"""DeepEval datasets and saved test runs as gold rows and as trace rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from rag_eval.importers import FIELDS, Row, retrieved, unwrap
from rag_eval.importers.conversion import Conversion, Draft

_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_READ = FIELDS["deepeval"]["read"]
_JUDGED = ("metrics_data", "success", "evaluation_cost")
_JOINED = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each test case that has an answer."""
    cases = [(conversion.place, case) for case in _cases(conversion)]
    if any("actual_output" in case for _, case in cases):  # if none has one, the file is no run
        run = [item for item in cases if item[1].keys() & {"actual_output", "trace"}]
        why = "they were not run"
        conversion.account.dropped("goldens without actual_output", why, len(cases) - len(run))
        cases = run
    for conversion.place, case in cases:
        yield _draft(conversion, case)


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each golden or test case."""
    for case in _cases(conversion):
        metadata = unwrap.as_dict(case.get("additional_metadata") or case.get("metadata"))
        yield conversion.gold_row(
            _qid(conversion, case),
            case["input"],
            unwrap.as_id(case.get("expected_output")),
            conversion.reference_ids(document["text"] for document in _documents(case.get("context"))),
            relevant_docs=[case["source_file"]] if isinstance(case.get("source_file"), str) else [],
            meta=unwrap.scalars({**metadata, **unwrap.as_dict(case.get("custom_column_key_values"))}),
            tags=[item for item in case.get("tags") or () if isinstance(item, str)],
        )


def _cases(conversion: Conversion) -> Iterator[Row]:
    """Yield the fields of each single-turn case, in snake case, with lists and objects decoded."""
    for value in conversion.records("a golden or a test run"):
        conversations = value.get("conversationalTestCases") or ([value] if value.get("turns") else None)
        if conversations and not conversion.takes_last_turn():
            continue
        run = {**unwrap.as_dict(value.get("testRunData")), **value}
        lists = (run.get(name) for name in ("testCases", "test_cases", "test_results", "goldens"))
        cached = unwrap.as_dict(value.get("test_cases_lookup_map"))  # by its cases, written as JSON
        cases = [unwrap.as_dict(unwrap.decoded(key)) for key in cached]
        for fields in conversations or next((item for item in lists if isinstance(item, list)), cases or [value]):
            case = _last_turn(fields) if conversations else {}
            for name, item in fields.items():
                snake = _CAPITAL.sub(lambda match: f"_{match[1].lower()}", name)  # test runs write camel case
                if item is not None:
                    case[snake if snake in (*_READ, *_JUDGED) else name] = item
            question = conversion.question(case.get("input"), case)
            if question is None:
                hint = "DeepEval calls the question 'input'. Or name it: --question POINTER."
                conversion.problem("/input", "has no input", hint)
                continue
            case["input"] = question
            for name, separator in (("context", "|"), ("retrieval_context", "|"), ("tags", ";")):
                if isinstance(case.get(name), str):  # of CSV and JSON Lines, even if a text contains the separator
                    case[name] = case[name].split(separator)
                    what = f"texts of {name} were split at {separator}; file_type='json' keeps lists"
                    conversion.account.lacking(what)
            for name in ("additional_metadata", "custom_column_key_values", "metadata"):
                case[name] = unwrap.decoded(case.get(name))
            conversion.drop_unread(case, _READ, "", _JUDGED)
            yield case


def _last_turn(conversation: Row) -> Row:
    """Return the last question of a conversation, its answer and the texts that were retrieved for it, as a case."""
    turns = [turn for turn in conversation["turns"] if isinstance(turn, dict)]
    answers = [turn for turn in turns if turn.get("role") == "assistant"]
    contexts = answers[-1].get("retrieval_context", answers[-1].get("retrievalContext")) if answers else None
    return {"input": turns, "actual_output": turns if answers else None, "retrieval_context": contexts}


def _draft(conversion: Conversion, case: Row) -> Draft:
    trace = unwrap.as_dict(case.get("trace"))
    output = trace.get("output") if isinstance(trace.get("output"), dict) else unwrap.decoded(case.get("actual_output"))
    answer = conversion.answer(output, case) or unwrap.as_id(case.get("actual_output"))
    source, qid = unwrap.as_id(trace.get("uuid")) or "", _qid(conversion, case)
    draft = Draft(conversion.place, source, case["input"], answer, qid=qid)
    lists = (trace.get(name) or () for name in ("retrieverSpans", "llmSpans"))
    retrievers, models = ([span for span in spans if isinstance(span, dict)] for spans in lists)
    outputs = (span.get("retrievalContext") or retrieved.documents_in(span.get("output")) for span in retrievers)
    documents = _documents(case.get("retrieval_context")) or list(chain.from_iterable(map(_documents, outputs)))
    if documents or case.get("retrieval_context") is not None or retrievers:
        draft.chunks = conversion.chunks(documents)
    draft.citations = retrieved.stated_citations(output)
    draft.start_ns = unwrap.nanoseconds(trace.get("startTime"))
    total = _milliseconds(trace) or (unwrap.number(case.get("completion_time")) or 0) * 1000
    retrieve = round(sum(map(_milliseconds, retrievers)), 3)
    draft.latency_ms = {name: value for name, value in (("total", total), ("retrieve", retrieve)) if value}
    draft.usage = unwrap.usage(cost=case.get("token_cost"))
    for counts in map(unwrap.usage, models):
        draft.usage |= {name: draft.usage.get(name, 0) + count for name, count in counts.items()}
    if models and isinstance(models[-1].get("model"), str):
        draft.usage["model"] = models[-1]["model"]
    if trace.get("status") == "ERRORED":
        draft.ok = False
        draft.error = None if answer is not None else "errored"
    return draft


def _milliseconds(span: Row) -> float:
    return unwrap.milliseconds(*(unwrap.nanoseconds(span.get(name)) for name in ("startTime", "endTime"))) or 0


def _qid(conversion: Conversion, case: Row) -> str:
    stated = conversion.qid(case, case.get("additional_metadata"), case.get("metadata"))
    return stated or unwrap.as_id(case.get("test_case_id")) or unwrap.question_id("deepeval", case["input"])


def _documents(texts: Any) -> list[Row]:
    """Return retrieved texts with their sources, from the forms that DeepEval writes."""
    documents = []
    for item in texts if isinstance(texts, list) else ():
        if isinstance(item, dict):
            source, text = item.get("source"), str(item.get("context") or item.get("text") or "")
        elif isinstance(item, str):
            joined = _JOINED.fullmatch(item)
            source, text = joined.groups() if joined else (None, item)
        else:
            continue
        documents.append({"text": text, **({"doc_id": source} if source else {})})
    return documents
