"""DeepEval datasets and saved test runs as gold rows and as trace rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag_eval.importers import Account, ImportInputs, Numbered, unwrap
from rag_eval.importers.conversion import Conversion, ConversionOptions, Draft
from rag_eval.importers.documents import samples

Row = dict[str, Any]
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_READ = """
    input actual_output expected_output context retrieval_context name source_file additional_metadata metadata
    custom_column_key_values tags token_cost completion_time trace id test_case_id qid
""".split()
_JUDGED = ("metrics_data", "success", "evaluation_cost")
_MARK = "deepeval_source=", ",deepeval_context="


def rows(inputs: ImportInputs, account: Account, options: ConversionOptions) -> Numbered:
    """Yield line and trace row of each test case that has an answer."""
    conversion = Conversion(inputs, options, account)
    cases = list(_cases(conversion))
    if any("actual_output" in case for *_, case in cases):  # if none has one, the file is no run
        run = [case for case in cases if "actual_output" in case[2] or "trace" in case[2]]
        account.dropped("goldens without actual_output", "they were not run", len(cases) - len(run))
        cases = run
    drafts = [_draft(conversion, path, line, case) for path, line, case in cases]
    yield from conversion.rows("deepeval", drafts)


def gold_rows(inputs: ImportInputs, account: Account, options: ConversionOptions) -> Numbered:
    """Yield line and gold row of each golden or test case."""
    conversion = Conversion(inputs, options, account)
    for _, line, case in _cases(conversion):
        texts = [_source_and_text(text) for text in _texts(case.get("context"))]
        metadata = unwrap.as_dict(case.get("additional_metadata") or case.get("metadata"))
        row = conversion.gold_row(
            _qid(conversion, case),
            case["input"],
            unwrap.as_id(case.get("expected_output")),
            conversion.reference_ids(text["text"] for text in texts),
            relevant_docs=[case["source_file"]] if isinstance(case.get("source_file"), str) else [],
            meta=unwrap.scalars({**metadata, **unwrap.as_dict(case.get("custom_column_key_values"))}),
            tags=[item for item in case.get("tags") or () if isinstance(item, str)],
        )
        yield line, row
    conversion.finish()


def _cases(conversion: Conversion) -> Iterator[tuple[str, int, Row]]:
    """Yield path, line and fields of each single-turn case, in snake case."""
    inputs, account = conversion.inputs, conversion.account
    for path in inputs.paths:
        for line, value in samples(inputs, path, "a golden or a test run"):
            positions = (value, unwrap.as_dict(value.get("testRunData")))
            lists = (mapping.get(name) for mapping in positions for name in ("testCases", "test_cases", "goldens"))
            cases = next((item for item in lists if isinstance(item, list)), [value])
            if value.get("conversationalTestCases") or "turns" in value:
                hint = "Only single turns are scored: export test cases with input and actual_output."
                inputs.problem(path, line, "", "is a conversation", hint)
                continue
            for case in cases:
                case = {_snake(name): item for name, item in case.items() if item is not None}
                question = conversion.question(case.get("input"), case)
                if question is None:
                    hint = "DeepEval calls the question 'input'. Or name it: --question POINTER."
                    inputs.problem(path, line, "/input", "has no input", hint)
                    continue
                case["input"] = question
                _split(account, case)
                conversion.left_out(case, _READ, "", _JUDGED)
                yield path, line, case


def _snake(name: str) -> str:
    """Return the name of a field as datasets write it; test runs write it in camel case."""
    snake = _CAPITAL.sub(lambda match: f"_{match[1].lower()}", name)
    return snake if snake in (*_READ, *_JUDGED) else name


def _split(account: Account, case: Row) -> None:
    """Split joined values of CSV and JSON Lines: lists at ``|``, even if a text contains one, and objects."""
    for name, separator in (("context", "|"), ("retrieval_context", "|"), ("tags", ";")):
        if isinstance(case.get(name), str):
            case[name] = case[name].split(separator)
            account.lacking(f"texts of {name} were split at {separator}; file_type='json' keeps lists")
    for name in ("additional_metadata", "custom_column_key_values", "metadata"):
        case[name] = unwrap.decoded(case.get(name))


def _draft(conversion: Conversion, path: str, line: int, case: Row) -> Draft:
    trace = unwrap.as_dict(case.get("trace"))
    output = trace.get("output") if isinstance(trace.get("output"), dict) else unwrap.decoded(case.get("actual_output"))
    answer = conversion.answer(output, case) or unwrap.as_id(case.get("actual_output"))
    draft = Draft(path, line, unwrap.as_id(trace.get("uuid")) or "", case["input"], answer, qid=_qid(conversion, case))
    documents = [_source_and_text(text) for text in _texts(case.get("retrieval_context"))]
    retrievers = [span for span in trace.get("retrieverSpans") or () if isinstance(span, dict)]
    if not documents:
        documents = [
            _source_and_text(text)
            for span in retrievers
            for text in _texts(span.get("retrievalContext") or unwrap.documents_in(span.get("output")))
        ]
    if documents or case.get("retrieval_context") is not None or retrievers:
        draft.chunks = conversion.chunks(documents, path, line)
    draft.citations = unwrap.stated_citations(output)
    if isinstance(case.get("token_cost"), (int, float)):
        draft.usage["cost_usd"] = case["token_cost"]
    times = [
        (unwrap.nanoseconds(span.get("startTime")), unwrap.nanoseconds(span.get("endTime")))
        for span in (trace, *retrievers)
    ]
    draft.start_ns = times[0][0]
    seconds = case.get("completion_time")
    total = unwrap.milliseconds(*times[0]) or (seconds * 1000 if isinstance(seconds, (int, float)) else None)
    spent = round(sum(unwrap.milliseconds(*time) or 0 for time in times[1:]), 3)
    draft.latency_ms = {name: value for name, value in (("total", total), ("retrieve", spent)) if value}
    models = [span for span in trace.get("llmSpans") or () if isinstance(span, dict)]
    for field, name in (("input_tokens", "inputTokenCount"), ("output_tokens", "outputTokenCount")):
        counts = [int(span[name]) for span in models if isinstance(span.get(name), (int, float))]
        if counts:
            draft.usage[field] = sum(counts)
    if models and isinstance(models[-1].get("model"), str):
        draft.usage["model"] = models[-1]["model"]
    if trace.get("status") == "ERRORED":
        draft.ok = False
        draft.error = None if answer is not None else "errored"
    return draft


def _qid(conversion: Conversion, case: Row) -> str:
    stated = conversion.qid(case, case.get("additional_metadata"), case.get("metadata"))
    return stated or unwrap.as_id(case.get("test_case_id")) or unwrap.question_id("deepeval", case["input"])


def _source_and_text(value: Any) -> Row:
    """Return a retrieved text with its source, in the forms that DeepEval writes."""
    if isinstance(value, dict):
        text = str(value.get("context") or value.get("text") or "")
        return {"text": text, **({"doc_id": value["source"]} if value.get("source") else {})}
    text = str(value)
    if text.startswith(_MARK[0]) and _MARK[1] in text:
        source, _, rest = text[len(_MARK[0]) :].partition(_MARK[1])
        return {"text": rest, "doc_id": source}
    return {"text": text}


def _texts(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, (str, dict))] if isinstance(value, list) else []
