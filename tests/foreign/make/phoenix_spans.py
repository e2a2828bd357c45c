"""Record spans by the exporters of OpenTelemetry and from a Phoenix server that runs here.

pip install arize-phoenix opentelemetry-exporter-otlp-json-file; PHOENIX_PORT=16006 phoenix serve
"""

from __future__ import annotations

import json
import time
import urllib.request

import system
from openinference.instrumentation import get_retriever_attributes, using_attributes
from openinference.semconv.trace import SpanAttributes as Names
from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from openinference.instrumentation import OITracer, TraceConfig
from phoenix.client import Client

URL = "http://127.0.0.1:16006"
PROJECT = f"shop-{int(time.time())}"
provider = TracerProvider(resource=Resource({"openinference.project.name": PROJECT, "service.name": "shop"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{URL}/v1/traces")))
console = open("console.json", "w", encoding="utf-8")
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=console)))
provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(path="otlp.jsonl")))
tracer = OITracer(provider.get_tracer("shop"), config=TraceConfig())

for qid, (question, _, _) in system.QUESTIONS.items():
    try:
        with (
            using_attributes(metadata={"qid": qid}),
            tracer.start_as_current_span("ask", openinference_span_kind="chain") as root,
        ):
            root.set_input({"question": question})
            with tracer.start_as_current_span("retrieve", openinference_span_kind="retriever") as span:
                span.set_input(question)
                documents = [
                    {"id": item, "content": text, "score": score, "metadata": {"source": "handbook.md"}}
                    for item, text, score in system.retrieve(question)
                ]
                span.set_attributes(get_retriever_attributes(documents=documents))
            with tracer.start_as_current_span("model", openinference_span_kind="llm") as span:
                span.set_input(question)
                span.set_attributes({Names.LLM_MODEL_NAME: "small", Names.LLM_TOKEN_COUNT_PROMPT: 120,
                                     Names.LLM_TOKEN_COUNT_COMPLETION: 12})  # fmt: skip
                answer = system.generate(question)
                span.set_output(answer)
            root.set_output(answer)
            root.set_status(trace.StatusCode.OK)
    except TimeoutError:
        pass
provider.shutdown()
time.sleep(3)  # the server writes a moment later
console.close()

args = "phoenix {} --citations numbers"
pages, cursor = [], ""
while True:
    with urllib.request.urlopen(f"{URL}/v1/projects/{PROJECT}/spans?limit=10{cursor}") as reply:
        pages.append(reply.read().decode())
    following = json.loads(pages[-1])["next_cursor"]
    if not following:
        break
    cursor = f"&cursor={following}"
to = system.folder(
    "real-phoenix-rest", args.format(" ".join(f"page-{index}.json" for index in range(1, len(pages) + 1)))
)
for place, page in enumerate(pages, 1):
    system.write(to / f"page-{place}.json", page)
to = system.folder("real-phoenix-otlp", args.format("spans.json"))
with urllib.request.urlopen(f"{URL}/v1/projects/{PROJECT}/spans/otlpv1?limit=100") as reply:
    system.write(to / "spans.json", reply.read().decode())
client = Client(base_url=URL)
frame = client.spans.get_spans_dataframe(project_identifier=PROJECT)
to = system.folder("real-phoenix-data-frame", args.format("frame.json"))
system.write(to / "frame.json", frame.to_json(orient="records", date_format="iso"))
to = system.folder("real-phoenix-client", args.format("spans.json"))
system.write(to / "spans.json", json.dumps(client.spans.get_spans(project_identifier=PROJECT)))
to = system.folder("real-otlp-console", "otlp console.json --citations numbers")
system.write(to / "console.json", open("console.json", encoding="utf-8").read())
to = system.folder("real-otlp-file", "otlp otlp.jsonl --citations numbers")
system.write(to / "otlp.jsonl", open("otlp.jsonl", encoding="utf-8").read())
