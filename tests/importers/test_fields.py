"""The fields of each tool's records, one at a time: where each value of a row comes from, by every usual name."""

from __future__ import annotations

import json

from table import each_row

SECOND = 1_000_000_000
START = 1_795_404_763 * SECOND


def imported(command, path, form, *records, words=()):
    """The rows of records, and stderr."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    code, out, err = command("import", form, path, *words)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()], err


def picked(row, pointer):
    """The value that a path of names and numbers leads to; None for none."""
    for name in pointer.split("."):
        row = row.get(name) if isinstance(row, dict) else row[int(name)]
    return row


def otlp_span(attributes, number=1, parent=0, name="step", **more):
    values = [{"key": key, "value": any_value(value)} for key, value in attributes.items()]
    ids = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{number:016x}"}
    times = {
        f"{side}TimeUnixNano": str(START + number + length * SECOND) for side, length in (("start", 0), ("end", 2))
    }
    parents = {"parentSpanId": f"{parent:016x}"} if parent else {}
    return {**ids, **parents, "name": name, **times, "attributes": values, **more}


def any_value(value):
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": name, "value": any_value(item)} for name, item in value.items()]}}
    return {kinds[type(value)]: str(value) if type(value) is int else value}


def otlp(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


ROOT = {"openinference.span.kind": "CHAIN", "input.value": "Why?", "output.value": "So."}
MESSAGE = {"role": "assistant", "parts": [{"type": "text", "content": "So."}]}
ASKED = {"role": "user", "parts": [{"type": "text", "content": "Why?"}]}
TEXTS = '[{"id": "c1", "content": "T.", "score": 0.5}]'
REPLY = '{"replies": ["So."], "meta": [{"model": "m", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}]}'


@each_row(
    ("attributes", "pointer", "value"),
    [
        *(({name: "c7"}, "conversation", None) for name in ("session.id", "gen_ai.conversation.id")),
        *(({"openinference.span.kind": "LLM", name: "m"}, "usage.model", "m") for name in (
            "llm.model_name", "gen_ai.response.model", "gen_ai.request.model", "ai.observability.cost.model")),
        *(({"openinference.span.kind": kind, name: 7}, f"usage.{field}", 7) for kind, field, names in (
            ("LLM", "input_tokens", ("llm.token_count.prompt", "gen_ai.usage.input_tokens",
                                     "gen_ai.usage.prompt_tokens", "ai.observability.cost.num_prompt_tokens")),
            ("LLM", "output_tokens", ("llm.token_count.completion", "gen_ai.usage.output_tokens",
                                      "gen_ai.usage.completion_tokens", "ai.observability.cost.num_completion_tokens")),
        ) for name in names),
        *(({"openinference.span.kind": "LLM", **cost}, "usage.cost_usd", 0.25) for cost in (
            {"llm.cost.total": 0.25}, {"ai.observability.cost.cost": 0.25},
            {"ai.observability.cost.cost": 0.25, "ai.observability.cost.cost_currency": "USD"})),
        *(({"gen_ai.operation.name": name, "gen_ai.usage.input_tokens": 3}, "usage.input_tokens", 3) for name in (
            "chat", "text_completion", "generate_content", "completion", "generate")),
        *(({"traceloop.span.kind": "task", f"{name}.content": "x", "gen_ai.usage.input_tokens": 3},
           "usage.input_tokens", 3) for name in ("gen_ai.prompt.0", "gen_ai.completion.0", "llm.input_messages.0")),
        *(({**kind, "gen_ai.retrieval.documents": TEXTS}, "retrieved_ids.0", "c1") for kind in (
            {"openinference.span.kind": "RETRIEVER"}, {"gen_ai.operation.name": "retrieval"}, {},
            {"gen_ai.operation.name": "vector_db_retrieve"}, {"traceloop.entity.name": "vector_db_retrieve"},
            {"ai.observability.span_type": "retrieval"}, {"haystack.component.type": "BM25Retriever"},
            *({"traceloop.entity.name": f"{name}.task"} for name in ("VectorIndexRetriever", "LLMRerank")))),
        *(({**kind, "reranker.output_documents.0.document.id": "c1"}, "retrieved_ids.0", "c1") for kind in (
            {"openinference.span.kind": "RERANKER"}, {})),
        ({"openinference.span.kind": "RETRIEVER", "output.value": TEXTS}, "chunks.0.text", "T."),
        ({"openinference.span.kind": "RETRIEVER", "traceloop.entity.output": TEXTS}, "chunks.0.score", 0.5),
        ({"openinference.span.kind": "RETRIEVER", "retrieval.documents": [{"document.id": "c1"}]},
         "retrieved_ids.0", "c1"),
        ({"retrieval": {"documents": [{"document": {"id": "c1", "content": "T."}}]}}, "chunks.0.text", "T."),
        ({"retrieval.documents.0.document.id": "c1", "retrieval.documents.0.document.metadata": '{"source": "d"}'},
         "chunks.0.doc_id", "d"),
        ({"retrieval.documents.0.document.id": "c1", "retrieval.documents.0.document.metadata.source": "d"},
         "chunks.0.doc_id", "d"),
        ({"openinference.span.kind": "LLM", "gen_ai.response.finish_reasons": ["content_filter"]},
         "policy_flags.0", "guardrail_blocked"),
        ({"openinference.span.kind": "CHAIN", "metadata": '{"qid": "Q7"}'}, "qid", "Q7"),
        ({"openinference.span.kind": "CHAIN", "qid": "Q7"}, "qid", "Q7"),
        ({"traceloop.association.properties.qid": "Q7"}, "qid", "Q7"),
        *(({"haystack.component.type": "OpenAIGenerator", "haystack.component.output": REPLY}, pointer, value)
          for pointer, value in (("usage.output_tokens", 2), ("usage.model", "m"))),
    ],
)  # fmt: skip
def test_attributes_of_a_step_below_the_root(command, tmp_path, attributes, pointer, value):
    spans = otlp(otlp_span(ROOT), otlp_span(attributes, 2, 1))
    [row], err = imported(command, tmp_path / "spans.jsonl", "otlp", spans)
    assert picked(row, pointer) == value, err


@each_row(
    ("attributes", "asked", "answer"),
    [
        (ROOT, "Why?", "So."),
        ({**ROOT, "input.value": '{"question": "Why?"}', "output.value": '{"answer": "So."}',
          "input.mime_type": "application/json", "output.mime_type": "application/json"}, "Why?", "So."),
        ({"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASKED]),
          "gen_ai.output.messages": json.dumps([MESSAGE, {**MESSAGE, "parts": []}])}, "Why?", "So."),
        ({"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Why?",
          "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "So."},
         "Why?", "So."),
        ({"llm.input_messages.0.message.contents.0.message_content.text": "Why?",
          "llm.output_messages.0.message.contents.0.message_content.text": "So."}, "Why?", "So."),
        ({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Why?", "gen_ai.completion.0.role": "assistant",
          "gen_ai.completion.0.content": "So."}, "Why?", "So."),
        ({"gen_ai.prompt.0.content": "Why?", "gen_ai.completion.0.content": "So."}, "Why?", "So."),
        ({"traceloop.span.kind": "workflow", "traceloop.entity.input": '{"kwargs": {"question": "Why?"}}',
          "traceloop.entity.output": '"So."'}, "Why?", "So."),
        ({"openinference.span.kind": "CHAIN", "input.value": '{"messages": [["system", "s"], ["human", "Why?"]]}',
          "input.mime_type": "application/json", "output.value": '{"messages": [["ai", "So."]]}',
          "output.mime_type": "application/json"}, "Why?", "So."),
        ({"haystack.pipeline.input_data": '{"retriever": {"query": "Why?"}}',
          "haystack.pipeline.output_data": '{"llm": {"replies": ["So."]}}'}, "Why?", "So."),
        ({"ai.observability.record_root.input": "Why?", "ai.observability.record_root.output": "So."}, "Why?", "So."),
        ({"openinference.span.kind": "LLM", "input.value": "prompt", "output.value": "raw",
          "llm.input_messages.0.message.content": "Why?", "llm.output_messages.0.message.content": "So."},
         "Why?", "So."),
    ],
)  # fmt: skip
def test_question_and_answer_of_a_root(command, tmp_path, attributes, asked, answer):
    [row], _ = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(otlp_span(attributes)))
    assert (row["q"], row["answer_json"]["claim"]) == (asked, answer)


@each_row(
    ("more", "row"),
    [
        ({"status": {"code": 2, "message": "boom"}}, {"error": "boom", "ok": False}),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, {"error": "error", "ok": False}),
        ({"status": {"code": "2"}, "events": [{"name": "exception", "attributes": [
            {"key": "exception.message", "value": {"stringValue": "deadline exceeded"}}]}]},
         {"error": "deadline exceeded", "ok": False, "timed_out": True}),
        ({"status": {"code": 2}, "events": [{"name": "exception", "attributes": [
            {"key": "exception.type", "value": {"stringValue": "KeyError"}}]}]}, {"error": "KeyError"}),
        ({"status": {"code": 2}, "attributes": [{"key": "error.type", "value": {"stringValue": "Http504"}},
                                                {"key": "input.value", "value": {"stringValue": "Why?"}}]},
         {"error": "Http504"}),
    ],
)  # fmt: skip
def test_the_error_of_a_root_without_an_answer(command, tmp_path, more, row):
    asked = {"openinference.span.kind": "CHAIN", "input.value": "Why?"}
    span = otlp_span({"openinference.span.kind": "RETRIEVER"}, 2, 1)
    [result], _ = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(otlp_span(asked) | more, span))
    assert row.items() <= result.items()


LANGSMITH = {"id": "r1", "trace_id": "r1", "run_type": "llm", "name": "rag", "start_time": 1000, "end_time": 3500,
             "inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}  # fmt: skip
COUNTS = {"input_tokens": 7, "output_tokens": 2}
OLD_COUNTS = {"prompt_tokens": 7, "completion_tokens": 2}
GENERATION = {"text": "So.", "message": {"kwargs": {"usage_metadata": COUNTS}}}
LANGFUSE = {"id": "o1", "traceId": "t1", "type": "GENERATION", "startTime": "2026-11-23T03:00:00Z",
            "endTime": "2026-11-23T03:00:02.5Z", "input": "Why?", "output": "So."}  # fmt: skip
MLFLOW_SPAN = {"span_id": "01", "parent_span_id": None, "name": "rag", "start_time_unix_nano": START,
               "end_time_unix_nano": START + 2_500_000_000, "status": {"code": "OK"}}  # fmt: skip
PROMPTFOO = {"testIdx": 4, "promptIdx": 0, "provider": "p", "vars": {"question": "Why?"}, "response": {"output": "So."}}
DEEPEVAL = {"input": "Why?", "actual_output": "So.", "retrieval_context": ["T."]}
DEEPEVAL_SPANS = {
    "uuid": "u1", "startTime": "2026-11-23T03:00:00Z", "endTime": "2026-11-23T03:00:04Z",
    "retrieverSpans": [{"startTime": "2026-11-23T03:00:00Z", "endTime": "2026-11-23T03:00:01Z",
                        "retrievalContext": ["A."]},
                       {"startTime": "2026-11-23T03:00:01Z", "endTime": "2026-11-23T03:00:03Z",
                        "output": [{"context": "B.", "source": "b.md"}]}],
    "llmSpans": [{"model": "m1", "inputTokenCount": 5, "outputTokenCount": 1},
                 {"model": "m2", "inputTokenCount": 6.0, "outputTokenCount": 2}],
}  # fmt: skip
AZURE = {"query": "Why?", "response": "So."}
RAGAS = {"user_input": "Why?", "response": "So."}


def mlflow(info=None, data=None, span=None, **attributes):
    values = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '"Why?"', "mlflow.spanOutputs": '"So."'}
    attributes = values | {name: json.dumps(value) for name, value in attributes.items()}
    spans = [{**MLFLOW_SPAN, "attributes": attributes, **(span or {})}]
    return {"info": {"trace_id": "tr-1", **(info or {})}, "data": {"spans": spans, **(data or {})}}


OPIK = {"id": "s", "trace_id": "t1", "name": "ask", "type": "llm", "start_time": "2026-11-23T03:00:00Z",
        "end_time": "2026-11-23T03:00:02.5Z", "input": {"question": "Why?"}, "output": {"answer": "So."}}  # fmt: skip
BRAINTRUST = {"span_id": "s", "root_span_id": "t1", "span_attributes": {"name": "ask", "type": "llm"}, "input": "Why?",
              "output": "So.", "metrics": {"start": 1.5, "end": 4.0}}  # fmt: skip
CASE = {"question": "Why?"}
RESULT = {"question": "Why?", "answer": "So."}
PLACED = {"rel_path": "a.md", "heading_path": ["A", "B"]}
CORE_METRICS = [
    *(("core-metrics", {**CASE, name: 7}, "qid", "7") for name in ("qid", "id", "test_id", "case_id")),
    *(("core-metrics", {"id": 7, name: "Why?"}, "question", "Why?") for name in ("question", "query")),
    *(("core-metrics", {**CASE, "id": 7, name: "So."}, "expected_answer", "So.")
      for name in ("expected_answer", "gold_answer", "reference_answer")),
    *(("core-metrics", {**CASE, "id": 7, name: [{**PLACED, "snippets": ["x"]}]}, "supports",
       [{"rel_path": "a.md", "heading_path": "A > B", "snippets": ["x"]}]) for name in ("gold_supports", "supports")),
    *(("core-metrics", {**CASE, "id": 7, "expected_behavior": name}, "answerable", True)
      for name in ("answer", "answered", "cite_newer", "acknowledge_both", "cite_both")),
    *(("core-metrics", {**CASE, "id": 7, "expected_behavior": name}, "answerable", False)
      for name in ("abstain", "abstained", "refuse", "refusal", "no_answer", "decline")),
    *(("core-metrics", {**CASE, "id": 7, "expected_behavior": name}, "recency_conflict_rule", name)
      for name in ("cite_newer", "acknowledge_both", "cite_both")),
    ("core-metrics", {**CASE, "id": 7, "vault": "v", "meta": {"a": 1}}, "meta", {"a": 1, "vault": "v"}),
    *(("core-metrics-trace", {**RESULT, "id": 7, name: [{"chunk_id": 5, "content": "T.", "rank": 1}]}, "chunks",
       [{"id": "5", "text": "T."}]) for name in ("chunks", "retrieved_chunks", "retrieved", "context")),
    *(("core-metrics-trace", {**RESULT, "id": 7, "chunks": [PLACED], name: [PLACED, "x"]}, "citations",
       ["a.md > A > B", "x"]) for name in ("citations", "references")),
    ("core-metrics-trace", {**RESULT, "id": 7, "chunks": [{**PLACED, "id": "c"}], "references": [PLACED]},
     "citations", ["c"]),
    *(("core-metrics-trace", {**RESULT, "id": 7, "folder_mode": "on", name: ["a"]}, "scope",
       {"mode": "on", "folders": ["a"]}) for name in ("folders", "selected_folders")),
    ("core-metrics-trace", {**RESULT, "id": 7, "latency": 12}, "latency_ms", {"total": 12}),
    ("core-metrics-trace", {**RESULT, "id": 7, "latency_ms": {"folder_selection": 1, "retrieval": 2, "generation": 3}},
     "latency_ms", {"folder_select": 1, "retrieve": 2, "generate": 3}),
    ("core-metrics-trace", {"question": "Why?", "id": 7, "abstained": True}, "answer", ""),
    *(("core-metrics-trace", {"id": 7, "answer": "So.", name: "Why?"}, "q", "Why?")
      for name in ("q", "question", "query")),
    *(("core-metrics-trace", {**RESULT, "id": 7, name: value}, name, value) for name, value in (
        ("run", "a"), ("timed_out", True), ("confidence", 0.5), ("usage", {"input_tokens": 7}))),
    *(("core-metrics", {**CASE, "id": 7, name: value}, name, value) for name, value in (
        ("category", "a"), ("difficulty", "hard"), ("tags", ["a"]), ("query_type", "fact"), ("multi_hop", True),
        ("gold_claim_substr", ["24 months"]), ("gold_citations", ["c1"]), ("answerable", False))),
    ("core-metrics", {**CASE, "id": 7}, "answerable", True),
]  # fmt: skip
RECORDS = [
    *CORE_METRICS,
    ("ragas-trace", {"question": "Why?", "answer": "So.", "contexts": ["T."], "evolution_type": "simple"},
     "chunks.0.text", "T."),
    ("langsmith", LANGSMITH, "latency_ms", {"total": 2500.0, "generate": 2500.0}),
    ("langsmith", LANGSMITH, "ts", 1.0),
    *(("langsmith", {half: [LANGSMITH]}, "q", "Why?") for half in ("post", "patch")),
    ("langsmith", LANGSMITH, "source", {"tool": "langsmith", "id": "r1"}),
    ("langsmith", {**LANGSMITH, **OLD_COUNTS}, "usage", COUNTS),
    *(("langsmith", {**LANGSMITH, "outputs": {"answer": "So.", **outputs}}, "usage", COUNTS) for outputs in (
        {"usage_metadata": COUNTS}, {"usage": OLD_COUNTS}, {"llm_output": {"token_usage": OLD_COUNTS}},
        {"generations": [[GENERATION]]}, {"generations": [GENERATION]})),
    ("langsmith", {**LANGSMITH, "total_cost": "0.25"}, "usage.cost_usd", 0.25),
    ("langsmith", {**LANGSMITH, "extra": {"metadata": {"ls_model_name": "m"}}}, "usage.model", "m"),
    ("langsmith", {**LANGSMITH, "extra": {"invocation_params": {"model": "m"}}}, "usage.model", "m"),
    ("langsmith", {**LANGSMITH, "reference_example_id": "e1"}, "qid", "e1"),
    ("langsmith", {**LANGSMITH, "metadata": {"qid": "Q7"}}, "qid", "Q7"),
    ("langsmith", {**LANGSMITH, "outputs": {}, "error": "504 Gateway"}, "error", "504 Gateway"),
    ("langsmith", {**LANGSMITH, "outputs": {}, "error": "504 Gateway"}, "timed_out", True),
    ("langfuse", LANGFUSE, "latency_ms", {"total": 2500.0, "generate": 2500.0}),
    ("langfuse", {**LANGFUSE, "endTime": None, "latency": 0.5}, "latency_ms.total", 500.0),
    *(("langfuse", {**LANGFUSE, **fields}, "usage", COUNTS) for fields in (
        {"usageDetails": {"input": 7, "output": 2}}, {"usageDetails": '{"input": 7, "output": 2}'},
        {"usage": {"promptTokens": 7, "completionTokens": 2}}, {"promptTokens": 7, "completionTokens": 2})),
    *(("langfuse", {**LANGFUSE, **fields}, "usage.cost_usd", 0.25) for fields in (
        {"costDetails": {"total": 0.25}, "totalCost": 0.5}, {"totalCost": 0.25}, {"calculatedTotalCost": 0.25})),
    ("langfuse", {**LANGFUSE, "totalCost": 0}, "usage", None),
    *(("langfuse", {**LANGFUSE, name: "m"}, "usage.model", "m") for name in ("model", "providedModelName")),
    ("langfuse", {**LANGFUSE, "output": None, "level": "ERROR", "statusMessage": "boom"}, "error", "boom"),
    ("langfuse", {**LANGFUSE, "metadata": {"qid": '"Q7"'}}, "qid", "Q7"),
    ("langfuse", {**LANGFUSE, "metadata": '{"qid": "Q7"}'}, "qid", "Q7"),
    ("langfuse", {**LANGFUSE, "experimentItemId": "Q7"}, "qid", "Q7"),
    ("langfuse", {**LANGFUSE, "input": '"\\"Why?\\""'}, "q", "Why?"),
    ("mlflow", mlflow(), "latency_ms", {"total": 2500.0, "generate": 2500.0}),
    ("mlflow", mlflow(**{"mlflow.chat.tokenUsage": {"input_tokens": 7, "output_tokens": 2}}), "usage", COUNTS),
    *(("opik", OPIK | more, pointer, value) for more, pointer, value in (
        ({}, "q", "Why?"), ({}, "latency_ms.generate", 2500.0), ({"thread_id": "s1"}, "source.id", "t1"),
        ({"total_estimated_cost": 0.5}, "usage.cost_usd", 0.5), ({"usage": OLD_COUNTS}, "usage", COUNTS),
        ({"name": "research", "output": ["So."]}, "retrieved_ids", None),
        ({"name": "vector_search", "output": [{"id": "c1"}], "metadata": {"qid": "Q7"}, "error_info": {"message": "x"}},
         "retrieved_ids", ["c1"]),
        ({"name": "Retriever", "type": "tool", "output": {"output": {"documents": [{"id": "c1"}]}}, "error_info": {
            "message": "x"}, "metadata": {"qid": "Q7"}}, "retrieved_ids", ["c1"]),
        ({"metadata": {"qid": "Q7"}}, "qid", "Q7"), ({"input": {"question": "Why?", "qid": "Q7"}}, "qid", "Q7"),
        ({"output": {}, "error_info": {"exception_type": "KeyError", "message": "x"}}, "error", "KeyError: x"),
        ({"output": {}, "error_info": {"message": "timed out"}}, "timed_out", True))),
    *(("opik-dataset", {"content": [{"id": "i1", **row}]}, pointer, value) for row, pointer, value in (
        ({"data": {"question": "Why?", "expected_output": "So."}}, "expected_answer", "So."),
        ({"data": {"question": "Why?"}}, "qid", "i1"), ({"input": "Why?", "expected_answer": "So."}, "qid", "i1"))),
    *(("braintrust", BRAINTRUST | more, pointer, value) for more, pointer, value in (
        ({"metrics": {"start": 1795404763, "end": 1795404765}}, "latency_ms.total", 2000.0),
        ({"origin": {"object_type": "dataset", "id": "Q7"}}, "qid", "Q7"),
        ({}, "ts", 1.5), ({}, "latency_ms.total", 2500.0), ({"metadata": {"model": "m"}}, "usage.model", "m"),
        ({"output": None, "error": "Traceback:\n  x\nKeyError: 'a'\n"}, "error", "KeyError: 'a'"))),
    *(("mlflow", mlflow(**{name: "m"}), "usage.model", "m") for name in ("mlflow.llm.model", "model")),
    *(("mlflow", mlflow({name: {"qid": "Q7"}}), "qid", "Q7") for name in ("tags", "trace_metadata")),
    ("mlflow", mlflow(metadata={"qid": "Q7"}), "qid", "Q7"),
    ("mlflow", mlflow({"trace_id": None, "request_id": "tr-9"}), "source.id", "tr-9"),
    *(("mlflow", mlflow(span={"status": status, **more}, **{"mlflow.spanOutputs": None}), "error", "boom")
      for status, more in (({"code": "STATUS_CODE_ERROR", "message": "boom"}, {}),
                           ({"status_code": "ERROR", "description": "boom"}, {}),
                           (None, {"status_code": "ERROR", "status_message": "boom"}))),
    ("promptfoo-trace", {**PROMPTFOO, "latencyMs": 22, "cost": 0.25, "tokenUsage": {"prompt": 7, "completion": 2}},
     "usage", {"cost_usd": 0.25, **COUNTS}),
    ("promptfoo-trace", {**PROMPTFOO, "latencyMs": 22}, "latency_ms", {"total": 22}),
    ("promptfoo-trace", {**PROMPTFOO, "latencyMs": 0}, "latency_ms", None),
    ("promptfoo-trace", {**PROMPTFOO, "latencyMs": 22, "response": {"output": "So.", "cached": True}},
     "latency_ms", None),
    ("promptfoo-trace", {**PROMPTFOO, "response": {"output": "So.", "isRefusal": True}}, "abstained", True),
    ("promptfoo-trace", {**PROMPTFOO, "response": {"output": "So.", "cost": 0.25, "tokenUsage": {"prompt": 7}}},
     "usage", {"cost_usd": 0.25, "input_tokens": 7}),
    ("promptfoo-trace", {**PROMPTFOO, "response": {}, "error": "boom", "failureReason": 2}, "error", "boom"),
    ("promptfoo-trace", {**PROMPTFOO, "response": {"error": "boom"}}, "error", "boom"),
    ("promptfoo-trace", {**PROMPTFOO, "error": "assertion", "failureReason": 1}, "ok", None),
    ("promptfoo-trace", PROMPTFOO, "qid", "promptfoo-4"),
    ("promptfoo-trace", {**PROMPTFOO, "testCase": {"metadata": {"qid": "Q7"}}}, "qid", "Q7"),
    ("promptfoo-trace", {**PROMPTFOO, "vars": {"question": "Why?", "id": 7}}, "qid", "7"),
    *(("promptfoo-trace", {**PROMPTFOO, **fields}, "chunks.0.text", "T.") for fields in (
        {"vars": {"question": "Why?", "context": "T."}}, {"metadata": {"documents": ["T."]}},
        {"response": {"output": "So.", "metadata": {"chunks": ["T."]}}},
        {"response": {"output": {"answer": "So.", "contexts": ["T."]}}})),
    *(("table", {"question": "Why?", "response": {}} | more, "error", error) for more, error in (
        ({"status": "Bad Request: no corpus"}, "Bad Request: no corpus"),
        ({"response": {"promptFeedback": {"blockReason": "OTHER"}}}, "blocked: OTHER"),
        ({"response": {"candidates": [{"finishReason": "SAFETY"}]}}, "SAFETY"),
        ({"response": [{"role": "assistant", "content": "", "error": {"content": "boom"}}]}, "boom"),
        ({"response": [{"role": "assistant", "content": "", "done": False}]}, "incomplete: done is false"),
        ({"response": "So.", "status": "error"}, None))),
    ("promptfoo", {**PROMPTFOO, "vars": {"question": "Why?", "answerable": "No"}}, "answerable", False),
    ("promptfoo", {**PROMPTFOO, "metadata": {"answerable": False}}, "answerable", False),
    ("promptfoo", {**PROMPTFOO, "vars": {"question": "Why?", "citations": "c1"}}, "gold_citations", ["c1"]),
    *(("promptfoo", {**PROMPTFOO, "testCase": {"assert": [{"type": kind, "value": ["24 months", "no"]}]}},
       "gold_claim_substr", ["24 months"]) for kind in ("contains", "icontains", "contains-any", "icontains-any")),
    *(("promptfoo", {**PROMPTFOO, "testCase": {"assert": [{"type": kind, "value": "24"}]}}, "expected_answer", "24")
      for kind in ("context-recall", "factuality", "similar", "equals", "answer-relevance")),
    ("deepeval-trace", {**DEEPEVAL, "token_cost": 0.25}, "usage.cost_usd", 0.25),
    ("deepeval-trace", {**DEEPEVAL, "tokenCost": 0.25, "completionTime": 2}, "latency_ms.total", 2000),
    ("deepeval-trace", {**DEEPEVAL, "trace": DEEPEVAL_SPANS}, "latency_ms", {"total": 4000.0, "retrieve": 3000.0}),
    ("deepeval-trace", {**DEEPEVAL, "trace": DEEPEVAL_SPANS}, "usage",
     {"input_tokens": 11, "output_tokens": 3, "model": "m2"}),
    ("deepeval-trace", {**DEEPEVAL, "trace": DEEPEVAL_SPANS}, "source.id", "u1"),
    ("deepeval-trace", {**DEEPEVAL, "retrieval_context": None, "trace": DEEPEVAL_SPANS}, "chunks.1.doc_id", "b.md"),
    ("deepeval-trace", {**DEEPEVAL, "trace": {"status": "ERRORED"}}, "ok", False),
    ("deepeval-trace", {**DEEPEVAL, "actual_output": None, "trace": {"status": "ERRORED"}}, "error", "errored"),
    ("deepeval-trace", {**DEEPEVAL, "trace": {"output": {"answer": "So.", "citations": ["c1"]}}},
     "answer_json.citations", ["c1"]),
    *(("deepeval-trace", {**DEEPEVAL, "retrieval_context": [text]}, "chunks.0", {
        "id": "text:d37d7136ee813fba", "text": "T.", "doc_id": "s.md"}) for text in (
        "deepeval_source=s.md,deepeval_context=T.", {"context": "T.", "source": "s.md"},
        {"text": "T.", "source": "s.md"})),
    *(("deepeval-trace", {**DEEPEVAL, **fields}, "qid", "Q7") for fields in (
        {"qid": "Q7"}, {"additional_metadata": {"qid": "Q7"}}, {"metadata": {"qid": "Q7"}}, {"test_case_id": "Q7"})),
    *(("deepeval-trace", {name: [DEEPEVAL]}, "q", "Why?") for name in ("testCases", "test_cases", "goldens")),
    ("deepeval-trace", {"testRunData": {"testCases": [DEEPEVAL]}}, "q", "Why?"),
    ("deepeval", {**DEEPEVAL, "source_file": "s.md"}, "relevant_docs", ["s.md"]),
    ("deepeval", {**DEEPEVAL, "additional_metadata": {"a": 1}, "custom_column_key_values": '{"b": "x"}'},
     "meta", {"a": 1, "b": "x"}),
    *(("deepeval", {**DEEPEVAL, name: {"a": 1}}, "meta", {"a": 1}) for name in ("additional_metadata", "metadata")),
    ("deepeval", {**DEEPEVAL, "tags": "a;b"}, "tags", ["a", "b"]),
    ("azure-eval", {**AZURE, "latency": 1.5}, "latency_ms", {"total": 1500.0}),
    ("azure-eval", {**AZURE, "latency": -1}, "error", "So."),
    ("azure-eval", {**AZURE, "context": ["T."]}, "chunks.0.text", "T."),
    ("azure-eval", {**AZURE, "contexts": "a.pdf#page=1: T.\na.pdf#page=1: U."}, "retrieved_ids",
     ["a.pdf#page=1", "a.pdf#page=1~2"]),
    ("azure-eval", {**AZURE, "contexts": "a.pdf#page=1: T."}, "chunks.0.doc_id", "a.pdf"),
    ("azure-eval", {**AZURE, "context": "Intro\na.pdf: T."}, "chunks.0.text", "Intro\na.pdf: T."),
    *(("azure-eval", {**AZURE, name: "Q7"}, "qid", "Q7") for name in ("id", "qid", "question_id")),
    ("azure-eval-gold", {"question": "Why?", "truth": "So. [a.pdf][b.pdf]"}, "gold_citations", ["a.pdf", "b.pdf"]),
    ("azure-eval-gold", {"question": "Why?", "truth": "So. [a.pdf][b.pdf]"}, "expected_answer", "So."),
    ("ragas-trace", {**RAGAS, "retrieved_contexts": ["T."], "retrieved_context_ids": [7]}, "chunks.0",
     {"id": "7", "text": "T."}),
    ("ragas-trace", {**RAGAS, "retrieved_context_ids": ["c1"]}, "chunks", [{"id": "c1"}]),
    ("ragas-trace", {**RAGAS, "retrieved_contexts": []}, "chunks", []),
    ("ragas-trace", {"user_input": "Why?", "multi_responses": ["So.", "No."]}, "run", "try-1"),
    *(("ragas-trace", {**RAGAS, name: "Q7"}, "qid", "Q7") for name in ("id", "qid", "question_id")),
    ("ragas", {**RAGAS, "reference_context_ids": [1, "b"]}, "gold_citations", ["1", "b"]),
    ("ragas", {**RAGAS, "ground_truths": ["So.", "Yes."]}, "expected_answer", "So."),
    *(("ragas", {**RAGAS, name: "x"}, "meta", {name: "x"}) for name in (
        "persona_name", "query_style", "query_length", "synthesizer_name", "evolution_type", "episode_done")),
    *(("ragas", {"question": "Why?", old: value}, new, made) for old, value, new, made in (
        ("ground_truth", "So.", "expected_answer", "So."), ("question", "Why?", "question", "Why?"))),
    *(("langsmith-dataset", {"id": "e1", "inputs": {"question": "Why?"}, "outputs": {"answer": "So.", **outputs}},
       pointer, value) for outputs, pointer, value in (
        ({"gold_citations": ["c1"]}, "gold_citations", ["c1"]), ({"citations": [7]}, "gold_citations", ["7"]),
        *(({name: [{"id": "c1"}]}, "gold_citations", ["c1"])
          for name in ("contexts", "documents", "reference_contexts")),
        ({"answerable": False}, "answerable", False),
        ({"gold_claim_substr": ["24 months", 7]}, "gold_claim_substr", ["24 months"]))),
    ("langsmith-dataset", {"id": "e1", "inputs": {"q": "Why?"}, "metadata": {"dataset_split": "dev"}}, "tags", ["dev"]),
]  # fmt: skip


@each_row(("form", "record", "pointer", "value"), RECORDS)
def test_a_field_of_a_record(command, tmp_path, form, record, pointer, value):
    rows, err = imported(command, tmp_path / "export.jsonl", form, record)
    assert picked(rows[0], pointer) == value, err


PAGES = [
    ("langfuse", {"data": [LANGFUSE], "meta": {"cursor": "x"}}),
    ("langfuse", {"data": [LANGFUSE], "meta": {"page": 1, "totalPages": 2}}),
    ("langsmith", {"runs": [LANGSMITH], "cursors": {"next": "x"}}),
    ("langsmith", {"items": [LANGSMITH], "next_cursor": "x"}),
    ("opik", {"content": [OPIK], "page": 1, "size": 1, "total": 2}),
]


@each_row(("form", "page"), PAGES)
def test_a_page_that_is_not_the_last_one_is_a_problem(command, tmp_path, form, page):
    path = tmp_path / "page.json"
    path.write_text(json.dumps(page), "utf-8")
    code, out, err = command("import", form, path)
    assert (code, out) == (2, "")
    assert "page.json:1: is one page of several, and later pages are missing" in err
    last = {name: value for name, value in page.items() if name not in ("meta", "cursors", "next_cursor")}
    assert imported(command, path, form, page, last)[0][0]["q"] == "Why?"


ANSWERS = [
    {"choices": [{"message": {"role": "assistant", "content": "So."}}]}, {"choices": [{"text": "So."}]},
    {"candidates": [{"content": {"parts": [{"text": "So."}], "role": "model"}}]},
    {"generations": [[{"text": "So.", "message": {"kwargs": {}}}]]},
    {"generations": [{"message": {"lc": 1, "kwargs": {"content": [{"type": "text", "text": "So."}]}}}]},
    {"output": [{"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}]},
    {"messages": [[{"type": "ai", "content": "No."}],
                  [{"type": "ai", "content": "So."}, {"type": "ai", "content": ""}]]},
    ["So."],
]  # fmt: skip


@each_row("outputs", ANSWERS)
def test_the_answer_in_the_output_of_each_provider(command, tmp_path, outputs):
    [row], _ = imported(command, tmp_path / "runs.jsonl", "langsmith", {**LANGSMITH, "outputs": outputs})
    assert row["answer_json"]["claim"] == "So."


SPELLINGS = [
    {"start_time_unix_nano": START, "end_time_unix_nano": START + SECOND},
    {"start_time_ns": START, "end_time_ns": START + SECOND},
    {"start_time": START, "end_time": START + SECOND},
    {"start_time": "2026-11-23T03:32:43Z", "end_time": "2026-11-23T03:32:44Z"},
]  # fmt: skip


@each_row("times", SPELLINGS)
def test_the_times_of_a_span_of_mlflow(command, tmp_path, times):
    span = {name: value for name, value in MLFLOW_SPAN.items() if "time" not in name} | times
    record = {**mlflow(), "data": {"spans": [span], "request": '"Why?"', "response": '"So."'}}
    [row], _ = imported(command, tmp_path / "traces.jsonl", "mlflow", record)
    assert (row["ts"], row["latency_ms"]) == (START / SECOND, {"total": 1000.0})


def test_a_reranker_without_a_query_before_it_keeps_its_own(command, tmp_path):
    def search(number, kind, name, **query):
        field = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}[kind]
        attributes = {"openinference.span.kind": kind, f"{field}.0.document.id": name}
        return otlp_span(attributes | {f"input.{key}": text for key, text in query.items()}, number, 1)

    steps = [search(2, "RETRIEVER", "c1"), search(3, "RERANKER", "c1", value="why"), search(4, "RETRIEVER", "c2")]
    [row], _ = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(otlp_span(ROOT), *steps))
    assert row["retrieved_ids"] == ["c1", "c2"]
    assert [step.get("query") for step in row["retrievals"]] == ["why", None]


def test_citations_by_rank_and_in_brackets(command, tmp_path):
    said = "A [1]. B [2, 3]; C 【1†source】 [^2] [7] [see](url)."
    contexts = ["T.", "U.", "V."]
    sample = {**RAGAS, "response": said, "retrieved_contexts": contexts, "retrieved_context_ids": ["a", "b", "c"]}
    [row], _ = imported(command, tmp_path / "s.jsonl", "ragas-trace", sample, words=("--citations", "numbers"))
    assert row["answer_json"]["citations"] == ["a", "b", "c", "#7"]
    sample["response"] = "A [a]. B [b; c, a] [a, b]. [x](url) []"
    sample["retrieved_context_ids"][2] = "a, b"
    [row], _ = imported(command, tmp_path / "s.jsonl", "ragas-trace", sample, words=("--citations", "brackets"))
    assert row["answer_json"]["citations"] == ["a", "b", "c", "a, b"]


SEVERAL = """
otlp phoenix langfuse langfuse-dataset langsmith langsmith-dataset ragas ragas-trace deepeval deepeval-trace promptfoo
promptfoo-trace trec-qrels trec-run beir azure-eval azure-eval-gold mlflow core-metrics core-metrics-trace
weave giskard mlflow-dataset
""".split()


@each_row("form", SEVERAL)
def test_a_format_takes_several_files(command, tmp_path, form):
    code, _, err = command("import", form, tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (code, "takes 1 path" in err) == (2, False)
    assert "a.jsonl" in err


def test_judgements_are_grades_unless_all_are_1(command, tmp_path):
    path = tmp_path / "qrels.txt"
    for first, last, graded in ((1, 1, False), (0, 1, True), (2, 2, True), (1, 3, True)):
        path.write_text(f"301 0 d0 {first}\n301 0 d1 {last}\n", "utf-8")
        row = json.loads(command("import", "trec-qrels", path)[1])
        assert row.get("relevance_grades") == ({"d0": first, "d1": last} if graded else None)
        assert row["gold_citations"] == ["d0", "d1"][1 - bool(first) :]


@each_row(
    ("form", "content", "words"),
    [
        ("otlp", b'{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}',
         ":1: /scopeSpans: has a span that is not OTLP/JSON: it is not an object"),
        ("otlp", b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}', "it has no traceId or spanId"),
        ("otlp", b'{"resourceMetrics": []}', ":1: /resourceMetrics: these are metrics, not spans"),
        ("trec-run", b"301 Q0 d1 1 2.5 bm25\n\xff\n", ":2: is not UTF-8. Save the file as UTF-8, or convert it: iconv"),
        ("trec-run", b"301 Q0 d1 1 nan bm25\n", ":1: is not a line of a run"),
        ("promptfoo", b"tests:\n  - vars: {a: [}\n", ":2: is not valid YAML"),
        ("promptfoo", b"- a\n", ":1: has no results"),
        ("langfuse", b'{"a": 1, "b": 2}', ":1: is neither a trace nor an observation: its keys are a, b."),
        ("opik", b'{"name": "ask"}', ":1: is neither a trace nor a span. Export the project: opik export"),
        *(("opik", b'{"trace": {"id": "a", "start_time": "2026-01-01T00:00:00Z"}, "spans": %s}' % given,
           ":1: /spans: is not a list of spans. Export the project") for given in (b"3", b"[1]", b"[null]")),
        ("weave", b'{"op_name": "a"}', ":1: is not a call: id or trace_id is missing. Export all calls of each trace"),
        ("giskard", b'{"reference_answer": "a"}', ":1: an item has no id or no question"),
        ("trec-run", b'{"q1": {"d1": "high"}}', ":1: /q1: has no score for d1. Write the score"),
        ("trec-qrels", b"[1]", ":1: is not a judgement. Write an object"),
        ("braintrust", b'{"span_id": "a"}', ":1: is not a span: span_id or root_span_id is missing. Export all spans"),
        ("langsmith", b'{"a": 1}', ":1: is not a run: its keys are a."),
        ("langfuse", b'{"data": [1]}', ":1: /data: has an element that is not a trace or an observation"),
        ("mlflow", b'{"info": {}}', ":1: is not an MLflow trace"),
        *(("mlflow", b'{"info": {}, "data": {"spans": %s}}' % spans,
           ":1: /data/spans: has a span that is not an object. Write each trace with trace.to_json()")
          for spans in (b'["x"]', b"[{}, 3]", b"[null]")),
        ("phoenix", b'{"name": "x"}', ":1: /context: is not a span"),
        ("ragas", b"question,question\na,b\n", ":1: has two columns named 'question'"),
        ("ragas", b"\xffquestion,answer\na,b\n", ":1: is not UTF-8. Save the file as UTF-8, or convert it: iconv"),
        ("ragas", b'{"user_input": "Why?"}\n[1]\n', ":2: is not an object, but a sample is one"),
        ("beir", b"query-id\tcorpus-id\tscore\nq\td\tx\n", ":2: is neither a judgement nor a topic"),
        *((form, b'{"response": "So.", "id": 1}', words) for form, words in (
            ("ragas", ":1: has no question. Ragas calls it user_input"),
            ("ragas-trace", ":1: has no question. Ragas calls it user_input"),
            ("azure-eval", ":1: has neither question nor query. Give eval_results.jsonl"),
            ("deepeval", ":1: /input: has no input. DeepEval calls the question 'input'."),
            ("langsmith-dataset", ":1: an item has no id or no question. Name it with --question POINTER"),
            ("opik-dataset", ":1: an item has no id or no question. Name it with --question POINTER"))),
        ("promptfoo", b'{"vars": {"a": 1}}', ":1: /vars: no variable contains the question. Name the variable"),
        ("trec-qrels", b"301 0 d1 1\n301 0 d1 2\n", ":2: document d1 is judged twice for topic 301. Keep one"),
        ("trec-run", b"301 Q0 d1 1 high bm25\n", ":1: is not a line of a run. A line of a run is: TOPIC Q0"),
        ("ragas", b'user_input,response\nWhy?,"a"b\n', ":2: is not valid CSV"),
        ("ragas", b"[" * 5000, ":1: is nested too deeply"),
        ("ragas-trace", b'{"user_input": "Why?", "response": "So.", "retrieved_contexts": [[]]}',
         ":1: /retrieved_contexts: is not a list of texts"),
        ("langsmith", b'{"id": "r", "run_type": "llm", "outputs": {"answer": "So."}, "end_time": 1}',
         ":1: trace 'r': neither a qid nor a question was recorded. Name its place with --qid POINTER"),
        ("langsmith", b'{"id": "r", "run_type": "retriever", "inputs": "a", "outputs": {"documents": [{}]}}',
         ":1: a retrieved document has neither id nor text. Record the id or the text of each retrieved document."),
        ("phoenix", b'{"name": "x", "context": {"trace_id": "t", "span_id": "s"}, "start_time": "now"}',
         ":1: /start_time: is not a time: 'now'. Write ISO 8601"),
        ("phoenix", b'{"context": {"trace_id": "t", "span_id": "s"}, "attributes": {"retrieval.documents": "[1]"}}',
         ":1: /attributes.retrieval.documents: is the text of a Python list"),
        ("core-metrics", b'{"id": 1, "question": "Why?", "expected_behavior": "guess"}',
         ":1: /expected_behavior: is 'guess', which is not known. Take one of: answer,"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_record_is_named_with_its_line(command, tmp_path, form, content, words):
    path = tmp_path / "export.txt"
    path.write_bytes(content)
    code, out, err = command("import", form, path)
    assert (code, out, f"export.txt{words}" in err if words[0] == ":" else words in err) == (2, "", True), err


@each_row(
    ("form", "records", "line"),
    [
        ("langsmith", [LANGSMITH | {"outputs": {"answer": "So.", "documents": [{"id": "c"}, {"id": "c"}]}}],
         "left out: a chunk that was retrieved twice (its first rank counts)"),
        ("langsmith", [{"post": [LANGSMITH], "trace": 1}], "left out: trace (no metric uses it)"),
        ("langsmith", [LANGSMITH | {"total_cost": "free"}], "left out: total_cost (it is not a number)"),
        ("langsmith", [LANGSMITH | {"run_type": "chain", "child_runs": [
            {**LANGSMITH, "id": name, "extra": {"metadata": {"ls_model_name": name}}} for name in ("a", "b")]}],
         "traces with several models: the last one is used"),
        ("langfuse", [{"id": "t", "timestamp": "2026-01-01T00:00:00Z", "input": "Why?", "output": "So."}],
         "traces without observations: their rows have no chunks; export their observations too"),
        ("langfuse", [LANGFUSE | {"metadata": {"a": 1}}], "left out: a of metadata (no metric uses it)"),
    ],
)  # fmt: skip
def test_the_account_of_a_record_says(command, tmp_path, form, records, line):
    _, err = imported(command, tmp_path / "export.jsonl", form, *records)
    assert line in err.splitlines()


def test_a_failed_root_keeps_the_answer_that_it_recorded(command, tmp_path):
    failed = otlp(otlp_span(ROOT, status={"code": 2, "message": "boom"}))
    [row], _ = imported(command, tmp_path / "spans.jsonl", "otlp", failed)
    assert (row["answer_json"], row["ok"], row.get("error")) == ({"claim": "So."}, False, None)


def test_the_text_of_a_redacted_chunk_is_left_out(command, tmp_path):
    redacted = {"retrieval.documents.0.document.id": "c1", "retrieval.documents.0.document.content": "__REDACTED__"}
    [row], _ = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(otlp_span(ROOT), otlp_span(redacted, 2, 1)))
    assert row["chunks"] == [{"id": "c1"}]


def test_the_answered_of_several_roots_is_the_root(command, tmp_path):
    other = otlp_span({"openinference.span.kind": "CHAIN", "input.value": "Warm up"}, 2)
    [row], _ = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(other, otlp_span(ROOT)))
    assert row["q"] == "Why?"


def test_the_resource_may_follow_its_spans(command, tmp_path):
    services = [
        {"scopeSpans": [{"spans": [{**otlp_span(ROOT), "traceId": f"{number:032x}"}]}],
         "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]}}
        for number, name in enumerate(("a", "b"), 1)
    ]  # fmt: skip
    rows, _ = imported(command, tmp_path / "spans.jsonl", "otlp", {"resourceSpans": services})
    assert [row["run"] for row in rows] == ["a", "b"]


def test_repeated_spans_count_once_if_they_are_equal(command, tmp_path):
    span = otlp_span(ROOT)
    [row], err = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(span), otlp(span))
    assert (row["q"], "left out: repeated spans (both are the same)" in err) == ("Why?", True)
    path = tmp_path / "spans.jsonl"
    path.write_text(
        json.dumps(otlp(span)) + "\n" + json.dumps(otlp(otlp_span({**ROOT, "input.value": "Who?"}))), "utf-8"
    )
    message = "spans.jsonl:2: span '0000000000000001' occurs twice with different content, first on line 1"
    assert message in command("import", "otlp", path)[2]


def test_spans_whose_parent_is_missing_are_counted(command, tmp_path):
    orphans = [otlp_span({"openinference.span.kind": "TOOL"}, number, 99) for number in (2, 3)]
    [row], err = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(otlp_span(ROOT), *orphans))
    assert (row["q"], "spans whose parent is not in the file, 2 times" in err) == ("Why?", True)


@each_row("item", [{"id": "i1", "input": {"a": 1}}, {"input": "Why?"}])
def test_a_dataset_item_needs_an_id_and_a_question(command, tmp_path, item):
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(item), "utf-8")
    code, _, err = command("import", "langfuse-dataset", path)
    assert (code, "items.jsonl:1: an item has no id or no question" in err) == (2, True)


@each_row(
    ("words", "qids", "said"),
    [
        (("--since", "1970-01-01T00:00:02Z"), ["b", "a"], "left out: traces before --since (the option says so)"),
        (("--until", "1970-01-01T00:00:03Z"), ["a", "b"], "left out: traces from --until on (the option says so)"),
        (("--since", "1970-01-01T00:00:01Z", "--until", "1970-01-01T00:00:03Z"), ["a", "b"], "traces from --until on"),
        (("--last-only",), ["b", "a"], "left out: earlier traces of a question (--last-only)"),
        (
            ("--qid", "/extra/metadata/case"),
            ["z", "b", "a"],
            "left out: --qid /extra/metadata/case (leads nowhere here)",
        ),
    ],
)
def test_options_that_select_traces(command, tmp_path, words, qids, said):
    runs = []
    for start, qid in ((1, "a"), (2, "b"), (3, "a")):
        times = {"start_time": start * 1000, "end_time": start * 1000 + 500}
        metadata = {"qid": qid, **({"case": "z"} if start == 1 else {})}
        runs.append({**LANGSMITH, "id": f"r{start}", "trace_id": f"r{start}", **times, "extra": {"metadata": metadata}})
    rows, err = imported(command, tmp_path / "runs.jsonl", "langsmith", *reversed(runs), words=words)
    assert ([row["qid"] for row in rows], said in err) == (qids, True), err


@each_row(
    ("form", "record", "pointer"),
    [
        ("langsmith", {**LANGSMITH, "reference_example_id": "e1", "tags": ["Q7"]}, "/tags/0"),
        ("langfuse", {**LANGFUSE, "metadata": {"case": "Q7"}}, "/metadata/case"),
        ("langfuse", {**LANGFUSE, "metadata": {"case": "Q7"}}, "/case"),
        ("mlflow", mlflow({"tags": {"case": "Q7"}}), "/info/tags/case"),
        ("ragas-trace", {**RAGAS, "case": "Q7"}, "/case"),
    ],
)
def test_the_qid_is_where_the_pointer_leads(command, tmp_path, form, record, pointer):
    [row], _ = imported(command, tmp_path / "export.jsonl", form, record, words=("--qid", pointer))
    assert row["qid"] == "Q7"


def test_renamed_fields_of_an_array_of_questions_are_named(command, tmp_path):
    path = tmp_path / "qaset.json"
    item = {"qid": "a", "q": "Why?", "answerable": True, "gold_ids": ["c1"], "gold_claim": "So."}
    path.write_text(json.dumps([item]), "utf-8")
    code, out, err = command("import", "example08", path)
    assert (code, err.splitlines()) == (
        0, ["read as expected_answer: gold_claim", "read as gold_citations: gold_ids", "read as question: q"],
    )  # fmt: skip
    assert json.loads(out)["expected_answer"] == "So."


SETS = [
    ("squad_v2", "CC BY-SA 4.0", "rajpurkar.github.io/SQuAD-explorer",
     {"id": "s", "question": "Why?", "context": "So.", "answers": {"text": ["So."]}}),
    ("hotpotqa", "CC BY-SA 4.0", "hotpotqa.github.io", {
        "_id": "h", "question": "Why?", "answer": "So.", "supporting_facts": [["A", 0]], "context": [["A", ["So."]]],
        "type": "bridge", "level": "hard"}),
    ("msmarco", "non-commercial research only (Microsoft)", "microsoft.github.io/msmarco", {
        "query_id": 1, "query": "Why?", "query_type": "NUMERIC", "answers": ["So it is."],
        "passages": [{"passage_text": "So.", "is_selected": 1}]}),
    ("natural-questions", "CC BY-SA 3.0", "ai.google.com/research/NaturalQuestions",
     {"question": "Why?", "answer": ["So it is."]}),
    ("ragbench", "CC BY 4.0", "huggingface.co/datasets/galileo-ai/ragbench", {
        "id": "r", "question": "Why?", "documents": ["So."], "response": "So.", "all_relevant_sentence_keys": ["0a"],
        "dataset_name": "covidqa"}),
]  # fmt: skip


@each_row(("name", "licence", "homepage", "record"), SETS)
def test_a_data_set_is_written_with_its_licence_and_source(command, tmp_path, name, licence, homepage, record):
    path, out = tmp_path / "set.json", tmp_path / "gold.jsonl"
    path.write_text(json.dumps(record), "utf-8")
    assert command("dataset", name, path, "--out", out, "--force")[0] == 0
    about = json.loads((tmp_path / "gold.jsonl.source.json").read_text("utf-8"))
    assert (about["licence"], about["source"]) == (licence, homepage)
    row = json.loads(out.read_text("utf-8"))
    labels = {"hotpotqa": ("bridge", "hard"), "msmarco": ("numeric", None)}.get(name, (None, None))
    assert (row.get("query_type"), row.get("difficulty")) == labels


READ = [
    ("langsmith", {**LANGSMITH, "child_runs": [], "extra": {"metadata": {}}, "dotted_order": "x", "status": "ok"}, """
        parent_run_ids metadata project_id is_root thread_id session_id session_name prompt_tokens completion_tokens
        total_cost reference_example_id
     """),
    ("langfuse", {**LANGFUSE, "parentObservationId": None, "usageDetails": {}, "usage": {}, "costDetails": {}}, """
        name createdAt updatedAt projectId environment sessionId level statusMessage model promptTokens completionTokens
        totalCost calculatedTotalCost providedModelName isRootObservation eventTs experimentId experimentName
        experimentItemId latency metadata
     """),
    ("promptfoo-trace", {**PROMPTFOO, "testCase": {}, "tokenUsage": {}, "metadata": {}},
     "id error failureReason cost latencyMs"),
    ("ragas-trace", {**RAGAS, "multi_responses": ["x"], "retrieved_contexts": ["x"], "retrieved_context_ids": ["x"],
                     "reference_contexts": ["x"], "reference_context_ids": ["x"], "ground_truths": ["x"]}, """
        reference qid id question_id persona_name query_style query_length synthesizer_name episode_done
     """),
    ("deepeval-trace", {**DEEPEVAL, "context": ["x"], "tags": ["x"], "trace": {}}, """
        expected_output name source_file additional_metadata metadata custom_column_key_values token_cost
        completion_time id test_case_id qid
     """),
    ("azure-eval", AZURE, "truth context latency qid id question_id"),
    ("otlp", ROOT, """
        input.mime_type output.mime_type llm.model_name llm.token_count.prompt llm.token_count.completion llm.cost.total
        reranker.model_name gen_ai.retrieval.query.text gen_ai.usage.input_tokens gen_ai.request.model
        gen_ai.conversation.id error.type session.id traceloop.span.kind metadata qid rag_eval.qid question_id case_id
        example_id reference_example_id dataset_item_id ai.observability.cost.cost_currency
     """),
]  # fmt: skip


@each_row(("form", "record", "names"), READ)
def test_fields_that_are_read_are_not_named_as_left_out(command, tmp_path, form, record, names):
    fields = dict.fromkeys(names.split(), "7") | record
    whole = otlp(otlp_span(fields)) if form == "otlp" else fields
    err = imported(command, tmp_path / "export.jsonl", form, whole)[1]
    assert [line for line in err.splitlines() if line.startswith("left out: ")] == []
    other = {"zebra": "7", **record}
    whole = otlp(otlp_span(other)) if form == "otlp" else other
    assert "left out: zebra" in imported(command, tmp_path / "export.jsonl", form, whole)[1]


def test_goldens_that_were_not_run_are_no_traces(command, tmp_path):
    golden = {"input": "Who?", "expected_output": "I."}
    rows, err = imported(command, tmp_path / "set.jsonl", "deepeval-trace", DEEPEVAL, golden, golden)
    assert [row["q"] for row in rows] == ["Why?"]
    assert "left out: goldens without actual_output (they were not run), 2 times" in err
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(golden), "utf-8")
    assert "set.jsonl:1: no answer was recorded" in command("import", "deepeval-trace", path)[2]


@each_row(
    ("name", "record"),
    [
        ("msmarco", {"query_id": 1, "query": "Why?", "answers": [],
                     "passages": {"passage_text": ["So.", "No."], "is_selected": [1]}}),
        ("hotpotqa", {"id": "h", "question": "Why?", "answer": "So.", "supporting_facts": {"title": ["A"]},
                      "context": {"title": ["A", "B"], "sentences": [["So."]]}}),
    ],
)  # fmt: skip
def test_lists_of_different_lengths_are_a_problem(command, tmp_path, name, record):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(record), "utf-8")
    code, _, err = command("dataset", name, path, "--out", tmp_path / "gold.jsonl")
    assert (code, "set.json:1: is not a record of this data set" in err) == (2, True), err


def phoenix_span(number, parent=None, **more):
    context = {"trace_id": "t1", "span_id": f"s{number}"}
    times = {"start_time": f"2026-11-23T03:00:0{number}Z", "end_time": f"2026-11-23T03:00:0{number}.5Z"}
    return {"name": "step", "context": context, "parent_id": parent, "status_code": "OK", **times, **more}


@each_row("kind", ["RETRIEVER", "retriever"])
def test_the_kind_of_a_span_of_phoenix_is_in_its_own_field(command, tmp_path, kind):
    root = phoenix_span(1, span_kind="CHAIN", attributes={"input.value": "Why?", "output.value": "So."})
    found = phoenix_span(2, "s1", span_kind=kind, attributes={"output.value": TEXTS})
    [row], _ = imported(command, tmp_path / "spans.jsonl", "phoenix", root, found)
    assert (row["retrieved_ids"], row["latency_ms"]) == (["c1"], {"total": 500.0, "retrieve": 500.0})
    failed = {**root, "status_code": "ERROR", "status_message": "boom", "attributes": {"input.value": "Why?"}}
    [row], _ = imported(command, tmp_path / "spans.jsonl", "phoenix", failed, found)
    assert (row["error"], row["ok"]) == ("boom", False)


@each_row(
    ("time", "valid"),
    [
        ("2026-11-23T03:00:00Z", True), ("2026-11-23 03:00:00 UTC", True), ("2024-02-29T00:00:00+05:30", True),
        ("2026-11-23T23:59:60Z", True), ("2026-13-01T00:00:00Z", False), ("2026-00-01T00:00:00Z", False),
        ("2026-02-29T00:00:00Z", False), ("2026-11-00T00:00:00Z", False), ("2026-11-23T24:00:00Z", False),
        ("2026-11-23T03:60:00Z", False), ("2026-11-23T03:00:61Z", False), ("yesterday", False),
    ],
)  # fmt: skip
def test_a_time_is_iso_8601(command, tmp_path, time, valid):
    path = tmp_path / "spans.jsonl"
    attributes = {"input.value": "Why?", "output.value": "So."}
    path.write_text(json.dumps(phoenix_span(1, start_time=time, span_kind="LLM", attributes=attributes)), "utf-8")
    code, _, err = command("import", "phoenix", path)
    assert (code, f":1: /start_time: is not a time: '{time}'" in err) == ((0, False) if valid else (2, True)), err


def test_a_record_of_a_table_with_an_error_in_place_of_an_answer(command, tmp_path):
    (tmp_path / "map.yml").write_text("question: q\nanswer: a\nerror: e\nlatency_s: s\ncost_usd: c\n", "utf-8")
    records = [{"q": "Why?", "a": "", "e": "boom"}, {"q": "Who?", "a": "I.", "e": "late", "s": "1.5", "c": 0.25}]
    words = ("--map", tmp_path / "map.yml")
    [failed, answered], _ = imported(command, tmp_path / "t.jsonl", "table", *records, words=words)
    assert (failed["error"], failed["ok"], "answer_json" in failed) == ("boom", False, False)
    assert (answered["answer_json"]["claim"], "error" in answered) == ("I.", False)
    assert (answered["latency_ms"], answered["usage"]) == ({"total": 1500.0}, {"cost_usd": 0.25})


@each_row(
    ("time", "seconds"),
    [
        ("1970-01-01T05:30:01+05:30", 1.0), ("1970-01-01T00:00:01Z", 1.0),
        ("2000-01-01T05:30:00+05:30", 946684800.0), ("1999-12-31T18:30:00-05:30", 946684800.0),
        ("2000-01-01 00:00:00.250", 946684800.25), (946684800250, 946684800.25),
    ],
)  # fmt: skip
def test_a_time_in_seconds_since_1970(command, tmp_path, time, seconds):
    run = {**LANGSMITH, "start_time": time, "end_time": None}
    [row], _ = imported(command, tmp_path / "runs.jsonl", "langsmith", run)
    assert row["ts"] == seconds


@each_row(
    ("form", "record"),
    [
        ("langsmith", {**LANGSMITH, "run_type": "chain", "parent_run_id": "r0"}),
        *(("langfuse", {**LANGFUSE, "type": kind, "parentObservationId": "o0"}) for kind in ("CHAIN", "AGENT")),
        *(("mlflow", mlflow(span={"parent_span_id": "09"}, **{"mlflow.spanType": kind}))
          for kind in ("CHAIN", "AGENT")),
        *(("otlp", otlp(otlp_span({**ROOT, **kind}, 2, 1))) for kind in (
            {"openinference.span.kind": "CHAIN"}, {"openinference.span.kind": "AGENT"},
            {"openinference.span.kind": "", "gen_ai.operation.name": "invoke_agent"},
            {"openinference.span.kind": "", "gen_ai.operation.name": "invoke_workflow"},
            {"openinference.span.kind": "", "traceloop.span.kind": "workflow"},
            {"openinference.span.kind": "", "traceloop.span.kind": "agent"},
            {"openinference.span.kind": "", "ai.observability.span_type": "record_root"})),
    ],
)  # fmt: skip
def test_the_topmost_step_answers_if_its_parent_is_not_in_the_file(command, tmp_path, form, record):
    [row], err = imported(command, tmp_path / "export.jsonl", form, record)
    assert (row["q"], row["answer_json"]["claim"]) == ("Why?", "So."), err


@each_row(
    ("form", "record", "names"),
    [
        ("azure-eval", AZURE, "answer_length has_citation citation_match gpt_relevance"),
        ("promptfoo-trace", PROMPTFOO, "success score namedScores gradingResult"),
        ("deepeval-trace", DEEPEVAL, "metrics_data success evaluation_cost"),
        ("langsmith", LANGSMITH, "feedback_stats feedback"),
        ("ragas-trace", RAGAS, "faithfulness"),
    ],
)
def test_values_that_others_judged_are_left_out_with_that_reason(command, tmp_path, form, record, names):
    judged = dict.fromkeys(names.split(), 3) | record
    err = imported(command, tmp_path / "export.jsonl", form, judged)[1]
    reason = "(an LLM or a person judged it; rag-eval computes its own metrics)"
    assert [name for name in names.split() if f"left out: {name} {reason}" not in err] == []


def test_a_patch_of_a_run_replaces_what_the_post_has(command, tmp_path):
    post = {**LANGSMITH, "end_time": None, "outputs": {"answer": "Draft."}}
    patch = {"id": "r1", "trace_id": "r1", "outputs": {"answer": "So."}, "end_time": 2000, "inputs": {}}
    [row], _ = imported(command, tmp_path / "batch.jsonl", "langsmith", {"post": [post], "patch": [patch]})
    assert (row["q"], row["answer_json"]["claim"], row["latency_ms"]["total"]) == ("Why?", "So.", 1000.0)


def test_retrieval_metrics_apply_only_to_traces_with_chunks(command, tmp_path):
    record = {"question": "How long are returns free?", "answer": "45 days."}
    for fields, applies in (({}, False), ({"retrieved_ids": ["c1"]}, True)):
        path = tmp_path / "log.jsonl"
        path.write_text(json.dumps({**record, **fields}) + "\n", "utf-8")
        code, _, err = command("import", "auto", path, "--out", tmp_path / "trace.jsonl", "--force")
        assert code == 0, err
        groups = next(line for line in err.splitlines() if line.startswith("metrics that apply"))
        assert ("retrieval" in groups) == applies


def test_spans_of_datadog_s_export_begin_in_milliseconds_and_last_nanoseconds(command, tmp_path):
    span = {
        "trace_id": "t1", "span_id": "1", "parent_id": "undefined", "name": "ask", "span_kind": "workflow",
        "start_ns": START // 1_000_000, "duration": 2.5 * SECOND, "status": "ok", "tags": ["env:prod", "qid:Q7"],
        "input": {"value": "Why?"}, "output": {"value": "So."},
    }  # fmt: skip
    page = {"data": [{"id": "1", "type": "span", "attributes": span}]}
    [row], _ = imported(command, tmp_path / "page.json", "auto", page)
    assert (row["qid"], row["ts"], row["latency_ms"]) == ("Q7", START / SECOND, {"total": 2500.0})


@each_row(
    ("prompt", "question"),
    [
        ("Context: T.\nQuestion: refund period\nAnswer:", "refund period"),
        ('Answer "refund period" by the text. T.', "refund period"),
        ("<context>T.</context><question>refund period</question>", "refund period"),
        ("What is the refund period for shoes?", "What is the refund period for shoes?"),
    ],
)
def test_a_query_is_the_question_if_the_prompt_repeats_it_as_a_whole(command, tmp_path, prompt, question):
    asked = {"role": "user", "parts": [{"type": "text", "content": prompt}]}
    spans = [
        otlp_span({"gen_ai.operation.name": "invoke_agent"}),
        otlp_span({"gen_ai.retrieval.query.text": "refund period", "gen_ai.retrieval.documents": TEXTS}, 2, 1),
        otlp_span({"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([asked]),
                   "gen_ai.output.messages": json.dumps([MESSAGE])}, 3, 1),
    ]  # fmt: skip
    [row], _ = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(*spans))
    assert row["q"] == question


def test_a_log_of_chats_has_ids_of_messages_and_positions_of_segments(command, tmp_path):
    segments = [{"position": number, "segment_id": f"s{number}", "content": f"Text {number}."} for number in (3, 1, 2)]
    log = {"conversation_id": "c1", "query": "Why?", "answer": "So.", "retriever_resources": segments}
    messages = [{"id": "0ecc933c-5ab3-6062-7ef9-2250832a930a", **log}, {"id": "Q1", **log}]
    (row, asked), err = imported(command, tmp_path / "log.jsonl", "auto", *messages)
    assert ("qid" not in row, asked["qid"]) == (True, "Q1")
    assert "left out: id (it names a message of a chat, not a question)" in err
    assert row["retrieved_ids"] == ["s1", "s2", "s3"]


def test_names_in_japanese_and_portuguese_are_read(command, tmp_path):
    path = tmp_path / "gold.yaml"
    path.write_text(
        "質問一覧:\n- {質問: いつ?, 模範回答: 月末, 根拠: [規程_第8条], 回答可否: 可}\n"
        "- {質問: 給与は?, 回答可否: 不可}\n"
    )
    code, out, err = command("import", "auto", path)
    first, second = map(json.loads, out.splitlines())
    assert (code, first["gold_citations"], second["answerable"]) == (0, ["規程_第8条"], False), err
    log = {"id_caso": "C1", "pergunta": "Por quê?", "resposta": "Porque sim.", "tokens_entrada": 7, "tokens_saida": 2}
    [row], _ = imported(command, tmp_path / "log.jsonl", "auto", log)
    assert (row["qid"], row["usage"]) == ("C1", {"input_tokens": 7, "output_tokens": 2})


def test_records_of_one_question_with_lists_of_chunks_are_not_one_record(command, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text('qid,question,engine,retrieved_ids\nQ1,Why?,bm25,"d-1,d-2"\nQ1,Why?,dense,"d-2,d-3"\n')
    code, _, err = command("import", "auto", path)
    assert code == 2
    assert ":3: repeats a question with another list of chunks. If a column names the run or the retriever" in err


def test_columns_of_the_system_and_of_what_is_correct_in_french(command, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(
        'id,question,reponse système,réponse correcte,docs corrects\nQ1,Quand ?,En juin.,En mai.,"d-1,d-2"\n'
    )
    [row] = map(json.loads, command("import", "auto", path)[1].splitlines())
    assert row["answer_json"]["claim"] == "En juin."
    [gold] = map(json.loads, command("import", "auto", path, "--as", "gold")[1].splitlines())
    assert (gold["expected_answer"], gold["gold_citations"]) == ("En mai.", ["d-1", "d-2"])


def test_calls_of_weave_below_a_question_of_an_evaluation(command, tmp_path):
    def call(number, parent, name, inputs, output, **summary):
        ids = {"id": number, "trace_id": "t", "parent_id": parent, "op_name": f"weave:///a/b/op/{name}:1"}
        times = {"started_at": f"2026-11-23T03:00:0{number}Z", "ended_at": f"2026-11-23T03:00:0{int(number) + 1}Z"}
        return {**ids, **times, "inputs": inputs, "output": output, "summary": summary}

    counts = {"usage": {"m": {"prompt_tokens": 7, "completion_tokens": 2}}}
    calls = [
        call("1", None, "Evaluation.predict_and_score", {"example": "weave:///a/b/object/D:1"}, {"output": "So."}),
        call("2", "1", "Bot.predict", {"question": "Why?"}, "So.", **counts),
        call("3", "2", "retrieve", {"query": "Why?"}, []),
        call("4", "2", "chat", {"messages": [{"role": "user", "content": "Why?"}]}, "So.", **counts),
        call("5", "1", "is_right", {"output": "So."}, {"right": True}, **counts),
    ]
    (row,), _ = imported(command, tmp_path / "calls.jsonl", "weave", *calls)
    assert (row["q"], row["retrieved_ids"]) == ("Why?", [])
    assert row["usage"] == {"model": "m", "input_tokens": 7, "output_tokens": 2}


def test_a_retriever_named_rerank_replaces_the_lists_before_it(command, tmp_path):
    steps = [
        {"id": name, "name": name, "traceId": "t1", "parentObservationId": "o1", "type": "RETRIEVER", "input": "Why?",
         "startTime": f"2026-11-23T03:00:0{start}Z", "output": [{"id": item} for item in ids]}
        for start, (name, ids) in enumerate((("bm25", ("c1", "c2")), ("rerank", ("c2",))))
    ]  # fmt: skip
    (row,), _ = imported(command, tmp_path / "steps.jsonl", "langfuse", LANGFUSE, *steps)
    assert row["retrieved_ids"] == ["c2"]


def test_a_grade_beside_each_chunk_decides_what_is_gold(command, tmp_path):
    rows = [("c1", "2"), ("c2", "no"), ("c3", ""), ("c4", [{"value": "Ja"}, {"value": "no", "status": "discarded"}])]
    records = [{"question": "Why?", "chunk_id": chunk, "relevance (0-2)": grade} for chunk, grade in rows]
    [row], err = imported(command, tmp_path / "judged.jsonl", "auto", *records)
    assert (row["gold_citations"], row["relevance_grades"]) == (["c1", "c4"], {"c1": 2, "c2": 0, "c4": 1})
    assert "left out: gold_citations (nobody judged their relevance)" in err
    for grade, found in (("0.83", "is '0.83'"), ("1", "'c1' has the grades 2 and 1 for one question")):
        path = tmp_path / "again.jsonl"
        again = [records[0], {**records[0], "relevance (0-2)": grade}]
        path.write_text("".join(json.dumps(record) + "\n" for record in again), "utf-8")
        code, _, err = command("import", "auto", path)
        assert (code, found in err) == (2, True), err


JUDGED = {"question": "Why?", "expected_answer": "So."}
TWO_DOCUMENTS = ("c1", "c2")


def judged_documents(name, *verdicts):
    pairs = zip(TWO_DOCUMENTS, verdicts, strict=True)
    return [{**JUDGED, "contexts": [{"id": identity, "text": "A b.", name: verdict} for identity, verdict in pairs]}]


def judged_rows(name, *verdicts):
    return [
        {**JUDGED, "chunk_id": identity, name: item} for identity, item in zip(TWO_DOCUMENTS, verdicts, strict=True)
    ]


@each_row(
    ("records", "cited"),
    [
        (judged_documents("relevant", "yes", "no"), ["c1"]),
        (judged_documents("label", "irrelevant", "relevant"), ["c2"]),
        (judged_documents("is_selected", "0", "1"), ["c2"]),
        (judged_documents("verdict", "supports", "off-topic"), None),
        (judged_rows("relevance_score", 1.0, 0.0), ["c1"]),
        (judged_rows("rating", 0, 3), ["c2"]),
        (judged_rows("verdict", "sufficient", "off-topic"), None),
        ([{**JUDGED, "chunk_ids": ["c1", "c2"], "relevance": ["relevant", "irrelevant"]}], ["c1"]),
        ([{**JUDGED, "contexts": ["a.md", "b.md"], "relevance": [0, 1]}], ["b.md"]),
        ([{**JUDGED, "passage_id": "c1", "verdict": ["good", "bad"]}], None),
    ],
)
def test_only_documents_that_are_judged_relevant_are_gold(command, tmp_path, records, cited):
    path = tmp_path / "gold.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    code, out, err = command("import", "auto", path, "--as", "gold")
    assert code == (2 if cited is None else 0), err
    if cited is None:
        assert "Write a whole number, yes or no. To ignore it, rename it or leave it out of the map" in err
    else:
        assert json.loads(out)["gold_citations"] == cited


@each_row(
    ("documents", "answer", "ids"),
    [
        ([("a.md", "T."), ("b.md", "U.")], {"answer": "So.", "citations": ["b.md"]}, ["a.md", "b.md"]),
        ([("a.md", "T."), ("b.md", "U.")], {"answer": "So [b.md]."}, ["a.md", "b.md"]),
        ([("a.md", "T."), ("b.md", "U.")], {"answer": "So.", "citations": ["x.md"]}, None),
        ([("a.md", "T."), ("a.md", "U.")], {"answer": "So.", "citations": ["a.md"]}, "answers cite documents"),
    ],
)
def test_chunks_without_ids_are_named_by_the_documents_that_answers_cite(command, tmp_path, documents, answer, ids):
    chunks = [{"doc_id": name, "text": text} for name, text in documents]
    records = [{"question": "Why?", **answer, "chunks": chunks}, {"question": "How?", "answer": "", "chunks": chunks}]
    words = () if "citations" in answer else ("--citations", "brackets")
    rows, err = imported(command, tmp_path / "log.jsonl", "auto", *records, words=words)
    named = isinstance(ids, list)
    for row in rows:
        assert (
            (row["retrieved_ids"] == ids) if named else all(name.startswith("text:") for name in row["retrieved_ids"])
        )
    assert named or ids is None or ids in err


@each_row(
    ("asked", "runs"),
    [
        ([("Why?", "m1"), ("How?", "m2")], [None, None]),
        ([("Why?", "m1"), ("Why?", "m2"), ("How?", "m1"), ("How?", "m1")], ["m1", "m2", "m1", "m1"]),
    ],
)
def test_models_are_runs_if_a_question_was_asked_of_several(command, tmp_path, asked, runs):
    records = [{"question": question, "answer": "So.", "model": model} for question, model in asked]
    rows, _ = imported(command, tmp_path / "log.jsonl", "auto", *records)
    assert [row.get("run") for row in rows] == runs
    assert [row["usage"]["model"] for row in rows] == [model for _, model in asked]


@each_row("number", [3, "3"])
def test_a_number_of_chunks_is_no_chunk(command, tmp_path, number):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"question": "Why?", "answer": "So.", "sources": number}), "utf-8")
    code, out, err = command("import", "auto", path)
    assert (code, out) == (2, "")
    assert "/chunks: is the number 3. If it is an id, map it to chunk_ids. If it counts chunks" in err


def test_a_trace_without_an_answer_does_not_refuse_the_others(command, tmp_path):
    def trace(identity, attributes, **more):
        return {**otlp_span(attributes, **more), "traceId": f"{identity:032x}"}

    asked = {"openinference.span.kind": "CHAIN", "input.value": "Why?"}
    step = {**trace(3, {}, number=2, parent=1), "status": {"code": 2, "message": "Overloaded."}}
    cut = [trace(4, asked), trace(4, {"openinference.span.kind": "LLM"}, number=2, parent=1)]
    spans = [trace(1, ROOT), trace(2, ROOT), trace(3, asked), step, trace(5, ROOT), *cut]
    rows, err = imported(command, tmp_path / "spans.jsonl", "otlp", otlp(*spans))
    assert [row.get("error") for row in rows] == [None, None, "Overloaded.", None]
    assert f"warning: traces without an answer or error are left out: '{4:032x}'" in err
    code, out, err = command("import", "otlp", written(tmp_path, otlp(spans[0], *cut)))
    assert (code, out, "no answer was recorded" in err) == (2, "", True)


def written(folder, record):
    path = folder / "written.json"
    path.write_text(json.dumps(record), "utf-8")
    return path


def test_counts_of_0_are_no_measurement_of_an_answer(command, tmp_path):
    counts = {"question": "Why?", "input_tokens": 0, "output_tokens": 0, "cost": 0, "model": "m"}
    rows, err = imported(command, tmp_path / "log.jsonl", "auto", {**counts, "answer": "So."}, {**counts, "answer": ""})
    assert [row["usage"].get("input_tokens") for row in rows] == [None, 0]
    assert "left out: tokens and costs of 0 (an answer has some)" in err


def test_a_repeated_key_in_yaml_is_a_problem(command, tmp_path):
    path = tmp_path / "log.yml"
    path.write_text("- question: Why?\n  answer: So.\n  answer: No.\n", "utf-8")
    code, out, err = command("import", "auto", path)
    assert (code, out) == (2, "")
    assert "log.yml:2: is not valid YAML: repeats the key 'answer'" in err
