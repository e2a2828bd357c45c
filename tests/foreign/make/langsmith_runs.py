"""Record what langsmith sends, what list_runs and runs.query give back, and a dataset: pip install langsmith."""

from __future__ import annotations

import asyncio
import json
import os
import uuid

import system
from server import Recorder

os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "none"}
for name in ("LANGSMITH_ENDPOINT", "LANGSMITH_PROJECT", "LANGSMITH_TEST_CACHE"):
    os.environ.pop(name, None)
PROJECT = "5d0f7c1e-0000-4000-8000-000000000001"
EXAMPLES: list[dict] = []
RUNS: dict[str, dict] = {}
BATCHES: list[dict] = []


def answer(method: str, path: str, body: bytes):
    """The parts of the LangSmith API that the client calls here."""
    path = path.partition("?")[0]
    if path == "/info":
        return {"version": "0.16", "batch_ingest_config": {"use_multipart_endpoint": False, "size_limit": 100,
                "size_limit_bytes": 1 << 20, "scale_up_nthreads_limit": 1, "scale_up_qsize_trigger": 1000}}  # fmt: skip
    if path == "/runs/batch":
        BATCHES.append(batch := json.loads(body))
        for run in batch.get("post", []) + batch.get("patch", []):
            RUNS[run["id"]] = RUNS.get(run["id"], {}) | {
                name: item for name, item in run.items() if item not in (None, {})
            }
    if path == "/sessions":
        return [{"id": PROJECT, "name": "shop", "start_time": "2026-01-01T00:00:00",
                 "tenant_id": PROJECT, "reference_dataset_id": None}]  # fmt: skip
    if path == "/runs/query":
        return {"runs": [stored(run) for run in RUNS.values()], "cursors": {"next": None}}
    if path == "/api/v2/runs/query":
        return {"items": [newer(run) for run in RUNS.values()], "next_cursor": None}
    if path == "/datasets":
        return [{"id": PROJECT, "name": "shop", "created_at": "2026-01-01T00:00:00"}]
    if path == "/examples":
        return EXAMPLES
    return {}


def stored(run: dict) -> dict:
    """A run as POST /runs/query answers it."""
    extra = {"session_id": PROJECT, "status": "error" if run.get("error") else "success", "tags": run.get("tags") or []}
    usage = (run.get("outputs") or {}).get("usage_metadata") or {}
    tokens = {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
    return {**{name: item for name, item in run.items() if name != "session_name"}, **extra, **tokens,
            "outputs": run.get("outputs"), "error": run.get("error"), "feedback_stats": None}  # fmt: skip


def newer(run: dict) -> dict:
    """A run as POST /api/v2/runs/query answers it: names and capitals of langsmith.types.Run."""
    old = stored(run)
    parts = (run.get("dotted_order") or "").split(".")
    ancestors = [str(uuid.UUID(part.split("Z")[1])) for part in parts[:-1]]
    remaining = ("id", "trace_id", "dotted_order", "name", "inputs", "outputs", "error", "start_time", "end_time", "extra",
            "tags", "prompt_tokens", "completion_tokens", "reference_example_id")  # fmt: skip
    return {
        **{name: old[name] for name in remaining if old.get(name) is not None},
        "run_type": old["run_type"].upper(), "status": old["status"].upper(), "project_id": PROJECT,
        "parent_run_ids": ancestors, "is_root": not ancestors,
        "metadata": (old.get("extra") or {}).get("metadata") or {}, "thread_id": None,
    }  # fmt: skip


service = Recorder(answer)
os.environ["LANGSMITH_ENDPOINT"] = service.url

import langsmith  # noqa: E402 - it reads the environment
from langsmith import Client, traceable  # noqa: E402

client = Client(api_url=service.url, api_key="none")


@traceable(run_type="retriever", client=client)
def retriever(question: str) -> list[dict]:
    """Documents in the form that LangSmith's documentation asks for."""
    return [
        {"page_content": text, "type": "Document", "metadata": {"chunk_id": item, "score": score}}
        for item, text, score in system.retrieve(question)
    ]


@traceable(run_type="llm", client=client, metadata={"ls_provider": "openai", "ls_model_name": "small"})
def model(messages: list[dict]) -> dict:
    """A chat model."""
    text = system.generate(messages[-1]["content"])
    return {
        "choices": [{"message": {"role": "assistant", "content": text}}],
        "usage_metadata": {"input_tokens": 120, "output_tokens": 12, "total_tokens": 132},
    }


@traceable(name="shop", client=client)
def ask(question: str) -> str:
    """The chain."""
    retriever(question)
    return model([{"role": "user", "content": question}])["choices"][0]["message"]["content"]


for qid, (question, expected, cited) in system.QUESTIONS.items():
    EXAMPLES.append(
        langsmith.schemas.Example(
            id=uuid.uuid5(uuid.NAMESPACE_URL, qid), dataset_id=uuid.UUID(PROJECT), inputs={"question": question},
            outputs={"answer": expected, "contexts": [system.DOCUMENTS[cited]] if cited else [],
                     "answerable": cited is not None},
            metadata={"dataset_split": ["base"]}, created_at="2026-01-01T00:00:00Z",
        ).model_dump(mode="json", exclude={"attachments"})
    )  # fmt: skip
    try:
        ask(question, langsmith_extra={"reference_example_id": uuid.uuid5(uuid.NAMESPACE_URL, qid)})
    except TimeoutError:
        pass
client.flush()

system.write_lines(
    system.folder("real-langsmith-batches", "langsmith batches.jsonl --citations numbers") / "batches.jsonl", BATCHES
)

with open("runs.jsonl", "w", encoding="utf-8") as file:  # the snippet of docs/coming-from-langsmith.md
    for run in client.list_runs(project_name="shop"):
        file.write(run.json() + "\n")
to = system.folder("real-langsmith-list-runs", "langsmith runs.jsonl --citations numbers")
system.write(to / "runs.jsonl", open("runs.jsonl", encoding="utf-8").read())


async def query() -> list[dict]:
    """The runs by the newer call."""
    names = ["ID", "TRACE_ID", "PARENT_RUN_IDS", "DOTTED_ORDER", "NAME", "RUN_TYPE", "STATUS", "START_TIME", "END_TIME",
             "INPUTS", "OUTPUTS", "ERROR", "EXTRA", "METADATA", "PROMPT_TOKENS", "COMPLETION_TOKENS", "TOTAL_COST",
             "REFERENCE_EXAMPLE_ID", "PROJECT_ID", "TAGS"]  # fmt: skip
    return [run.to_dict(mode="json") async for run in client.runs.query(project_ids=[PROJECT], selects=names)]


to = system.folder("real-langsmith-query", "langsmith runs.jsonl --citations numbers")
system.write_lines(to / "runs.jsonl", asyncio.run(query()))
to = system.folder("real-langsmith-dataset", "langsmith-dataset examples.jsonl")
system.write(
    to / "examples.jsonl", "".join(example.json() + "\n" for example in client.list_examples(dataset_name="shop"))
)
