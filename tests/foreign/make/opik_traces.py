"""Record traces with opik, as ``opik export`` writes them: pip install opik. Empty fields are left out."""

from __future__ import annotations

import json
import os

import system
from server import Recorder

TRACES: dict[str, dict] = {}
SPANS: dict[str, dict] = {}


def answer(method: str, path: str, body: bytes):
    """The parts of the Opik API that the client calls here."""
    if method == "POST" and path.endswith("/traces/batch"):
        for row in json.loads(body)["traces"]:
            TRACES[row["id"]] = TRACES.get(row["id"], {}) | row
    if method == "POST" and path.endswith("/spans/batch"):
        for row in json.loads(body)["spans"]:
            SPANS[row["id"]] = SPANS.get(row["id"], {}) | row
    return {}


url = Recorder(answer).url
os.environ |= {"OPIK_URL_OVERRIDE": f"{url}/api", "OPIK_PROJECT_NAME": "shop", "OPIK_SENTRY_ENABLE": "false",
               "OPIK_ANALYTICS_ENABLED": "false", "OPIK_API_KEY": "none", "OPIK_WORKSPACE": "default"}  # fmt: skip

import opik  # noqa: E402
from opik import opik_context, track  # noqa: E402
from opik.rest_api.types.span_public import SpanPublic  # noqa: E402
from opik.rest_api.types.trace_public import TracePublic  # noqa: E402


@track(name="retrieve", type="tool")
def retrieve(question: str) -> list[dict]:
    """Documents as plain objects."""
    return [
        {"id": item, "content": text, "score": score, "metadata": {"source": "handbook.md"}}
        for item, text, score in system.retrieve(question)
    ]


@track(name="generate", type="llm")
def generate(question: str) -> str:
    """A model."""
    usage = {"prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132}
    text = system.generate(question)
    opik_context.update_current_span(model="small", provider="openai", usage=usage)
    return text


@track(name="ask")
def ask(question: str, qid: str) -> dict:
    """The application."""
    opik_context.update_current_trace(metadata={"qid": qid})
    retrieve(question)
    return {"answer": generate(question)}


for qid, (question, _, _) in system.QUESTIONS.items():
    try:
        ask(question, qid)
    except TimeoutError:
        pass
opik.flush_tracker()


def public(model: type, row: dict) -> dict:
    """A row through the client's own model."""
    fields = model.model_validate(row).model_dump()
    return {name: item for name, item in fields.items() if item is not None}


to = system.folder("real-opik", "opik traces.jsonl --citations numbers")
lines = [
    {
        "trace": public(TracePublic, trace),
        "spans": [public(SpanPublic, span) for span in SPANS.values() if span["trace_id"] == identity],
        "downloaded_at": "2026-11-25T19:00:00",
    }
    for identity, trace in TRACES.items()
]
system.write(to / "traces.jsonl", "".join(json.dumps(line, default=str) + "\n" for line in lines))
