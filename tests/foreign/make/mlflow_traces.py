"""Record traces with mlflow, kept in a local database: pip install mlflow-skinny sqlalchemy alembic."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import system
from mlflow.entities import Document, SpanType

Path("mlflow.db").unlink(missing_ok=True)
mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("shop")


@mlflow.trace(span_type=SpanType.RETRIEVER)
def retrieve(question: str) -> list[Document]:
    """Documents as MLflow has them."""
    return [
        Document(id=item, page_content=text, metadata={"doc_uri": "handbook.md", "chunk_id": item, "score": score})
        for item, text, score in system.retrieve(question)
    ]


@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def generate(messages: list[dict]) -> dict:
    """A chat model."""
    text = system.generate(messages[-1]["content"])
    mlflow.get_current_active_span().set_attribute("mlflow.chat.tokenUsage", {"input_tokens": 120, "output_tokens": 12})
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


@mlflow.trace(name="ask", span_type=SpanType.CHAIN)
def ask(question: str, qid: str) -> str:
    """The chain."""
    mlflow.update_current_trace(tags={"qid": qid})
    retrieve(question)
    return generate([{"role": "user", "content": question}])["choices"][0]["message"]["content"]


for qid, (question, _, _) in system.QUESTIONS.items():
    try:
        ask(question, qid)
    except TimeoutError:
        pass
mlflow.flush_trace_async_logging()
traces = mlflow.search_traces(return_type="list")
to = system.folder("real-mlflow", "mlflow traces.jsonl --citations numbers")
system.write(to / "traces.jsonl", "".join(trace.to_json() + "\n" for trace in traces))
to = system.folder("real-mlflow-dicts", "mlflow traces.json --citations numbers")
system.write(to / "traces.json", json.dumps([trace.to_dict() for trace in traces], indent=2))
to = system.folder("real-mlflow-data-frame", "mlflow frame.json --citations numbers")
frame = mlflow.search_traces()
system.write(to / "frame.json", json.dumps(json.loads(frame.to_json(orient="records"))))
