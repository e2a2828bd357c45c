"""The callbacks of `rag_eval.trace` inside the real LangChain, LlamaIndex and OpenTelemetry SDK."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from uuid import uuid4

import pytest

import rag_eval
from cases import ROOT, read_rows
from rag_eval.trace import trace


def test_langchain_callbacks(tmp_path):
    from langchain_core.documents import Document
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda

    from rag_eval.trace.langchain import TraceHandler

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [
                Document("Null keys are rejected.", metadata={"chunk_id": "manual#keys"}),
                Document("Other.", id="d2"),
            ]

    reply = AIMessage("No.", usage_metadata={"input_tokens": 9, "output_tokens": 1, "total_tokens": 10})
    model = GenericFakeChatModel(messages=iter([reply]))

    def rag(inputs):
        documents = Fixed().invoke(inputs["question"])
        return {"answer": model.invoke(f"{inputs['question']} {documents}").content}

    def fails(inputs):
        raise RuntimeError("no index")

    path = tmp_path / "trace.jsonl"
    config = {"callbacks": [TraceHandler(path)], "metadata": {"qid": "A1"}}
    RunnableLambda(rag).invoke({"question": "Are null keys accepted?"}, config=config)
    with pytest.raises(RuntimeError):
        RunnableLambda(fails).invoke({"question": "q?"}, config=config)
    good, bad = read_rows(path)
    assert (good["qid"], good["q"], good["answer_json"]) == ("A1", "Are null keys accepted?", {"claim": "No."})
    assert good["retrieved_ids"] == ["manual#keys", "d2"]
    assert (good["usage"]["input_tokens"], good["usage"]["output_tokens"]) == (9, 1)
    assert {"retrieve", "generate", "total"} <= set(good["latency_ms"])
    assert (bad["error"], bad["ok"]) == ("RuntimeError: no index", False)


def test_tokens_of_langchain_may_have_the_older_names(tmp_path):
    from langchain_core.outputs import Generation, LLMResult

    from rag_eval.trace.langchain import TraceHandler

    handler, run, call = TraceHandler(tmp_path / "trace.jsonl"), uuid4(), uuid4()
    usage = {"input_tokens": None, "prompt_tokens": 7, "completion_tokens": 2}
    handler.on_chain_start({}, {"question": "q?"}, run_id=run)
    handler.on_llm_start({}, ["q?"], run_id=call, parent_run_id=run)
    reply = LLMResult(generations=[[Generation(text="No.")]], llm_output={"token_usage": usage})
    handler.on_llm_end(reply, run_id=call)
    handler.on_chain_end({"answer": "No."}, run_id=run)
    (row,) = read_rows(tmp_path / "trace.jsonl")
    assert row["usage"] == {"input_tokens": 7, "output_tokens": 2}


def test_an_agent_is_one_row_with_what_its_tools_retrieved(tmp_path):
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import tool

    from rag_eval.trace.langchain import TraceHandler

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document("Null keys are rejected.", id="d1")]

    @tool
    def search(query: str) -> str:
        """Search."""
        return Fixed().invoke(query)[0].page_content

    def agent(state):
        search.invoke({"query": "null keys"})
        return {"messages": [*state["messages"], AIMessage([{"type": "text", "text": "No."}])]}

    path = tmp_path / "trace.jsonl"
    config = {"callbacks": [TraceHandler(path)]}
    for message in (("human", "Are null keys accepted?"), {"role": "user", "content": "Are null keys accepted?"}):
        RunnableLambda(agent).invoke({"messages": [("system", "Be brief."), message]}, config=config)
    for row in read_rows(path):
        assert (row["q"], row["answer_json"]) == ("Are null keys accepted?", {"claim": "No."})
        assert row["retrieved_ids"] == ["d1"]
    assert len(read_rows(path)) == 2


def test_a_streamed_langchain_run_has_its_question(tmp_path):
    from langchain_core.runnables import RunnableGenerator, RunnableLambda

    from rag_eval.trace.langchain import TraceHandler

    def fails(parts):
        for _ in parts:
            raise RuntimeError("no model")
        yield ""

    path, asked = tmp_path / "trace.jsonl", RunnableLambda(lambda inputs: f"answer to {inputs['question']}")
    config = {"callbacks": [TraceHandler(path)]}
    assert list((asked | (lambda text: text)).stream({"question": "q1?"}, config=config)) == ["answer to q1?"]
    with pytest.raises(RuntimeError):
        list((asked | RunnableGenerator(fails)).stream({"question": "q2?"}, config=config))
    good, bad = read_rows(path)
    assert (good["q"], good["answer_json"]) == ("q1?", {"claim": "answer to q1?"})
    assert (bad["q"], bad["error"]) == ("q2?", "RuntimeError: no model")


def test_questions_and_answers_of_langchain_may_be_parts_and_models(tmp_path):
    import pydantic
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.runnables import RunnableLambda

    from rag_eval.trace.langchain import TraceHandler

    class State(pydantic.BaseModel):
        question: str = ""
        answer: str = ""
        citations: list[str] = []

    asked = [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}, {"type": "image_url"}]
    parts = AIMessage([{"type": "text", "text": "One. "}, {"type": "text", "text": "Two."}, {"type": "reasoning"}])
    cases = [
        ([HumanMessage(asked)], parts, "What is this?", {"claim": "One. Two."}),
        ({"messages": [("user", asked)]}, {"messages": [parts]}, "What is this?", {"claim": "One. Two."}),
        (State(question="q?"), State(answer="A", citations=["d1"]), "q?", {"claim": "A", "citations": ["d1"]}),
        ("How many?", {"answer": 42}, "How many?", {"claim": "42"}),
    ]
    path = tmp_path / "trace.jsonl"
    for number, (inputs, output, *_) in enumerate(cases):
        config = {"callbacks": [TraceHandler(path)], "metadata": {"qid": number}}
        RunnableLambda(lambda _, output=output: output).invoke(inputs, config=config)
    expected = [(str(number), question, answer) for number, (*_, question, answer) in enumerate(cases)]
    assert [(row["qid"], row["q"], row["answer_json"]) for row in read_rows(path)] == expected


def test_a_langchain_run_with_fallbacks_or_callbacks_inside_is_one_row(tmp_path):
    from langchain_core.runnables import RunnableLambda

    from rag_eval.trace.langchain import TraceHandler

    def fails(inputs):
        raise RuntimeError("no model")

    def calls_with_callbacks(inputs):
        return RunnableLambda(lambda text: text).invoke("inner", config=config)

    path = tmp_path / "trace.jsonl"
    config = {"callbacks": [TraceHandler(path)]}
    answer = RunnableLambda(lambda _: "from the other")
    RunnableLambda(fails).with_fallbacks([answer]).invoke({"question": "q1?"}, config=config)
    RunnableLambda(calls_with_callbacks).invoke({"question": "q2?"}, config=config)
    asyncio.run(RunnableLambda(fails).with_fallbacks([answer]).ainvoke({"question": "q3?"}, config=config))
    assert [(row["q"], row["answer_json"]["claim"]) for row in read_rows(path)] == [
        ("q1?", "from the other"),
        ("q2?", "inner"),
        ("q3?", "from the other"),
    ]


def test_langchain_streams_that_stop_early_leave_nothing_behind(tmp_path, caplog):
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda

    from rag_eval.trace.langchain import TraceHandler

    class Fails(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            raise RuntimeError("no index")

    async def first_part():
        stream = chain.astream({"question": "q3?"}, config={"callbacks": [handler]})
        await anext(stream)
        await stream.aclose()

    path = tmp_path / "trace.jsonl"
    handler = TraceHandler(path)
    question = RunnableLambda(lambda inputs: inputs["question"])
    with pytest.raises(RuntimeError):
        list((question | Fails()).stream({"question": "q1?"}, config={"callbacks": [handler]}))
    chain = question | FakeListChatModel(responses=["No way."])
    stream = chain.stream({"question": "q2?"}, config={"callbacks": [handler]})
    next(stream)
    stream.close()
    asyncio.run(first_part())
    assert [row["ok"] for row in read_rows(path)] == [False] * 3
    assert (caplog.messages, handler._runs) == ([], {})


def test_langchain_documents_that_cannot_be_recorded_are_an_error_of_the_row(tmp_path):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    from rag_eval.trace.langchain import TraceHandler

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document("Null keys are rejected.", metadata={"id": {"page": 1}})]

    path = tmp_path / "trace.jsonl"
    handler = TraceHandler(path)
    assert (Fixed() | (lambda _: "No.")).invoke("q?", config={"callbacks": [handler]}) == "No."
    (row,) = read_rows(path)
    assert row["error"].startswith("TypeError: the id of a document is of type dict")
    assert handler._runs == {}


def test_a_langchain_run_fills_the_row_of_a_block(tmp_path):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda

    from rag_eval.trace.langchain import TraceHandler

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            if query == "boom":
                raise RuntimeError("no index")
            return [Document("Null keys are rejected.", id="d1")]

    async def asked():
        with trace("A2", "q2?", path=path):
            await chain.ainvoke("q2?", config=config)

    path = tmp_path / "trace.jsonl"
    config = {"callbacks": [TraceHandler(path)]}
    chain = Fixed() | RunnableLambda(lambda _: "No.")
    with trace("A1", "q1?", path=path):
        with pytest.raises(RuntimeError):
            chain.invoke("boom", config=config)
        chain.invoke("q1?", config=config)
    asyncio.run(asked())
    with pytest.raises(RuntimeError), trace("A3", "q3?", path=path):
        chain.invoke("boom", config=config)
    first, second, failed = read_rows(path)
    assert (first["qid"], first["retrieved_ids"], first["answer_json"]) == ("A1", ["d1"], {"claim": "No."})
    assert (second["qid"], second["retrieved_ids"], second["answer_json"]) == ("A2", ["d1"], {"claim": "No."})
    assert "error" not in first
    assert (failed["qid"], failed["error"]) == ("A3", "RuntimeError: no index")


@pytest.mark.parametrize("app", ["app", "app_langchain", "app_llama_index"])
def test_the_apps_of_the_tutorial_write_traces_that_pass(app, tmp_path):
    folder = tmp_path / "rag-server"
    shutil.copytree(ROOT / "examples" / "rag-server", folder)
    for _ in range(2):  # a second run replaces the traces of the first
        subprocess.run([sys.executable, f"{app}.py"], cwd=folder, check=True)
    written = read_rows(folder / "runs" / "app.jsonl")
    assert [row["qid"] for row in written] == ["S01", "S02", "S03", "S04", "S05"]
    assert [len(row["chunks"]) > 0 for row in written] == [True] * 5
    report = rag_eval.score(
        folder / "gold.jsonl", folder / "runs" / "app.jsonl", gates={"precision": {"min": 1}}, k=[3]
    )
    assert (report.passed, report.metrics["under_refusal"].value) == (True, 0)


def test_llama_index_events(tmp_path):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    from rag_eval.trace.llama_index import record_queries

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text="Null keys are rejected.", id_="n1"), score=0.9)]

    path = tmp_path / "trace.jsonl"
    handler = record_queries(path)
    engine = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(max_tokens=5))
    engine.query("Are null keys accepted?")
    with trace("A2", "And empty ones?", path=path):
        engine.query("And empty ones?")
    handler.path = str(tmp_path / "elsewhere.jsonl")
    first, second = read_rows(path)
    assert (first["q"], first["retrieved_ids"]) == ("Are null keys accepted?", ["n1"])
    assert first["chunks"][0] == {"id": "n1", "text": "Null keys are rejected.", "score": 0.9}
    assert first["answer_json"]["claim"]
    assert (second["qid"], second["retrieved_ids"]) == ("A2", ["n1"])


def test_llama_index_queries_that_fail_stream_or_ask_others(tmp_path):
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    from rag_eval.trace.llama_index import record_queries

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            if query_bundle.query_str == "boom":
                raise RuntimeError("no index")
            return [NodeWithScore(node=TextNode(text="Null keys are rejected.", id_=query_bundle.query_str))]

    engine = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(max_tokens=3))
    streaming = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(max_tokens=3), streaming=True)

    class AskingOthers(BaseQueryEngine):
        def _query(self, query_bundle):
            engine.query("first")
            return engine.query("second")

        async def _aquery(self, query_bundle):
            return await asyncio.gather(engine.aquery("first"), engine.aquery("second"))

        def _get_prompt_modules(self):
            return {}

    async def asked():
        await asyncio.gather(engine.aquery("third"), engine.aquery("fourth"))
        answer = await streaming.aquery("fifth")
        assert [part async for part in answer.async_response_gen()] == ["text ", "text ", "text"]

    path = tmp_path / "trace.jsonl"
    handler = record_queries(path, run="r1")
    with pytest.raises(RuntimeError):
        engine.query("boom")
    answer = streaming.query("streamed")
    assert read_rows(path)[1:] == []  # nobody has read the answer yet
    assert list(answer.response_gen) == ["text ", "text ", "text"]
    AskingOthers(callback_manager=CallbackManager()).query("asks others")
    asyncio.run(asked())
    with trace("A7", "streamed", path=path):
        list(streaming.query("streamed").response_gen)
    handler.path = str(tmp_path / "elsewhere.jsonl")
    failed, streamed, outer, *others, named = read_rows(path)
    assert (failed["q"], failed["error"], failed["ok"], failed["run"]) == ("boom", "no index", False, "r1")
    assert "answer_json" not in failed
    assert (streamed["retrieved_ids"], streamed["answer_json"]) == (["streamed"], {"claim": "text text text"})
    assert (outer["q"], outer["retrieved_ids"]) == ("asks others", ["first", "second"])
    assert outer["retrievals"] == [{"ids": ["first"]}, {"ids": ["second"]}]
    assert sorted((row["q"], *row["retrieved_ids"]) for row in others) == [
        ("fifth", "fifth"),
        ("fourth", "fourth"),
        ("third", "third"),
    ]
    assert (named["qid"], named["answer_json"]) == ("A7", {"claim": "text text text"})


def test_llama_index_documents_and_answers_that_cannot_be_recorded_are_an_error_of_the_row(tmp_path):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import CompletionResponse
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    from rag_eval.trace.llama_index import record_queries

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [
                NodeWithScore(node=TextNode(text="Keys.", id_="\ud800" if query_bundle.query_str == "an id?" else "n"))
            ]

    class Halved(MockLLM):
        def complete(self, prompt, formatted=False, **more):
            return CompletionResponse(text="half \ud800")

    path = tmp_path / "trace.jsonl"
    handler = record_queries(path)
    RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(max_tokens=3)).query("an id?")
    halved = RetrieverQueryEngine.from_args(Fixed(), llm=Halved())
    assert str(halved.query("an answer?")) == "half \ud800"
    with trace("A1", path=path):
        halved.query("an answer?")
    handler.path = str(tmp_path / "elsewhere.jsonl")
    rows = read_rows(path)
    assert [row.get("q", row.get("qid")) for row in rows] == ["an id?", "an answer?", "A1"]
    assert [(row["ok"], row["error"].partition(":")[0]) for row in rows] == [(False, "ValueError")] * 3


def test_llama_index_answers_reach_the_application_if_no_row_can_be_written(tmp_path, caplog):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    from rag_eval.trace.llama_index import record_queries

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text="Null keys are rejected.", id_="n1"))]

    async def asked():
        answer = await streaming.aquery("q3?")
        return [part async for part in answer.async_response_gen()]

    (tmp_path / "file").write_text("", "utf-8")
    handler = record_queries(tmp_path / "file" / "trace.jsonl")
    engine = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(max_tokens=3))
    streaming = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM(max_tokens=3), streaming=True)
    assert str(engine.query("q1?")) == "text text text"
    assert list(streaming.query("q2?").response_gen) == ["text ", "text ", "text"]
    assert asyncio.run(asked()) == ["text ", "text ", "text"]
    handler.path = str(tmp_path / "elsewhere.jsonl")
    assert [message.split(" was")[0] for message in caplog.messages if "trace row" in message] == [
        f"the trace row of 'q{number}?'" for number in (1, 2, 3)
    ]


def test_opentelemetry_spans_import(command, tmp_path):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from rag_eval.trace.opentelemetry import FileSpanExporter

    path = tmp_path / "spans.jsonl"
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"openinference.span.kind": "CHAIN", "input.value": "q?", "qid": "A1"})
        with tracer.start_as_current_span("retrieve") as span:
            span.set_attributes({"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": "d1"})
        root.set_attribute("output.value", "a")
    code, out, _ = command("import", "otlp", path)
    row = json.loads(out)
    assert (code, row["qid"], row["q"], row["retrieved_ids"], row["answer_json"]) == (
        0,
        "A1",
        "q?",
        ["d1"],
        {"claim": "a"},
    )


def test_opentelemetry_spans_with_values_unknown_to_json_are_written_with_the_others(command, tmp_path):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from rag_eval.trace.opentelemetry import FileSpanExporter

    path = tmp_path / "spans.jsonl"
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(path)))
    tracer = provider.get_tracer("test")
    for number in range(3):
        with tracer.start_as_current_span("rag") as root:
            root.set_attributes({"openinference.span.kind": "CHAIN", "input.value": f"q{number}?", "output.value": "a"})
            root.set_attributes({"raw": b"\x00", "nested": {"raw": b"\xff", "number": 1}} if number == 1 else {})
            root.set_attributes({"score": float("nan"), "name": "\ud800"} if number == 2 else {})
            root.add_event("read", {"raw": b"\x00"} if number == 1 else {})
    provider.shutdown()
    code, out, _ = command("import", "otlp", path)
    imported = [json.loads(line) for line in out.splitlines()]
    assert (code, [row["q"] for row in imported]) == (0, ["q0?", "q1?", "q2?"])
    assert json.loads(path.read_text("utf-8").splitlines()[1])["attributes"]["nested"]["number"] == 1
