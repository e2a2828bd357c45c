"""Record a traced system and a dataset with langfuse, as its API gives them back: pip install langfuse.

The SDK sends OTLP; the server here turns its spans into rows of langfuse's own ObservationV2 as the documentation of
its attributes says, and the SDK reads them again.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import system
from server import Recorder

DATASET: list[dict] = []
OBSERVATIONS: list[dict] = []
NOW = "2026-01-01T00:00:00Z"


def answer(method: str, path: str, body: bytes):
    """The parts of the Langfuse API that the client calls here."""
    path, _, query = path.partition("?")
    if path == "/api/public/otel/v1/traces":
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            OBSERVATIONS.extend(observation(span) for scope in resource.scope_spans for span in scope.spans)
    if path == "/api/public/v2/observations":
        at = int(query.partition("cursor=")[2].partition("&")[0] or 0)
        more = {"cursor": str(at + 10)} if at + 10 < len(OBSERVATIONS) else {}
        return {"data": OBSERVATIONS[at : at + 10], "meta": more}
    if path == "/api/public/dataset-items" and method == "POST":
        item = json.loads(body)
        row = {"id": item["id"], "status": "ACTIVE", "input": item["input"], "expectedOutput": item["expectedOutput"],
               "metadata": item.get("metadata"), "sourceTraceId": None, "sourceObservationId": None, "datasetId": "d1",
               "datasetName": item["datasetName"], "createdAt": NOW, "updatedAt": NOW, "mediaReferences": []}  # fmt: skip
        DATASET.append(row)
        return row
    if path == "/api/public/dataset-items":
        meta = {"page": 1, "limit": 50, "totalItems": len(DATASET), "totalPages": 1}
        return {"data": DATASET, "meta": meta}
    if path.endswith("/datasets"):
        return {"id": "d1", "name": "shop", "projectId": "p1", "metadata": None, "createdAt": NOW, "updatedAt": NOW}
    return {"successes": [], "errors": []}


def observation(span) -> dict:
    """A span as a row of GET /api/public/v2/observations."""
    fields = {
        attribute.key: attribute.value.string_value or attribute.value.bool_value or attribute.value.int_value
        for attribute in span.attributes
    }
    inside = "langfuse.observation."
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    metadata = {
        name[len(inside) + 9 :]: field for name, field in fields.items() if name.startswith(f"{inside}metadata.")
    }
    metadata |= {name[24:]: field for name, field in fields.items() if name.startswith("langfuse.trace.metadata.")}
    usage = json.loads(fields.get(f"{inside}usage_details", "{}"))
    return {
        "id": span.span_id.hex(), "traceId": span.trace_id.hex(), "startTime": time(start), "endTime": time(end),
        "projectId": "p1", "parentObservationId": span.parent_span_id.hex() or None,
        "type": str(fields.get(f"{inside}type", "span")).upper(), "isRootObservation": not span.parent_span_id,
        "name": span.name, "level": fields.get(f"{inside}level", "ERROR" if span.status.code == 2 else "DEFAULT"),
        "statusMessage": fields.get(f"{inside}status_message") or span.status.message or None, "version": None,
        "environment": "default", "bookmarked": False, "public": False, "userId": None, "sessionId": None,
        "completionStartTime": None, "createdAt": time(end), "updatedAt": time(end),
        "input": fields.get(f"{inside}input"), "output": fields.get(f"{inside}output"), "metadata": metadata,
        "model": fields.get(f"{inside}model.name"), "usageDetails": usage, "costDetails": {}, "totalCost": 0,
        "latency": (end - start) / 1e9, "tags": [], "traceName": "ask",
    }  # fmt: skip


def time(nanos: int) -> str:
    """A time as the API writes it, in milliseconds."""
    return datetime.fromtimestamp(nanos / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


service = Recorder(answer)
os.environ |= {"LANGFUSE_BASE_URL": service.url, "LANGFUSE_PUBLIC_KEY": "pk-lf-0", "LANGFUSE_SECRET_KEY": "sk-lf-0"}

from langfuse import Langfuse, get_client, observe  # noqa: E402 - it reads the environment

client = Langfuse(base_url=service.url)


@observe(as_type="retriever")
def retrieve(question: str) -> list[dict]:
    """Documents in LangChain's form."""
    return [
        {"page_content": text, "metadata": {"chunk_id": item}, "score": score}
        for item, text, score in system.retrieve(question)
    ]


@observe(as_type="generation")
def generate(messages: list[dict]) -> str:
    """A chat model."""
    text = system.generate(messages[-1]["content"])
    get_client().update_current_generation(model="small", usage_details={"input": 120, "output": 12})
    return text


@observe(name="ask")
def ask(question: str, qid: str) -> str:
    """The chain."""
    get_client().update_current_span(input={"question": question}, metadata={"qid": qid})
    retrieve(question)
    return generate([{"role": "user", "content": question}])


get_client().create_dataset(name="shop")
for qid, (question, expected, cited) in system.QUESTIONS.items():
    get_client().create_dataset_item(
        dataset_name="shop", id=qid, input={"question": question}, metadata={"split": "base"},
        expected_output={"answer": expected, "gold_citations": [cited] if cited else [], "answerable": bool(cited)},
    )  # fmt: skip
    try:
        ask(question, qid)
    except TimeoutError:
        pass
client.flush()

to = system.folder("real-langfuse-observations", "langfuse page-1.json page-2.json --citations numbers")
OBSERVATIONS.sort(key=lambda row: row["startTime"], reverse=True)
page, number = (
    client.api.observations.get_many(fields="core,basic,time,io,metadata,model,usage,trace_context", limit=10),
    1,
)
while True:
    system.write(to / f"page-{number}.json", page.model_dump_json(by_alias=True))
    if not page.meta.cursor:
        break
    page, number = client.api.observations.get_many(cursor=page.meta.cursor, limit=10), number + 1

to = system.folder("real-langfuse-dataset", "langfuse-dataset items.json")
system.write(to / "items.json", client.api.dataset_items.list(dataset_name="shop").model_dump_json(by_alias=True))
