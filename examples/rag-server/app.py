"""A RAG app in plain Python that writes a trace for every question: python app.py."""

import json
from pathlib import Path

from server import Index, answer

from rag_eval.trace import trace

index = Index(Path("corpus"))
Path("runs/app.jsonl").unlink(missing_ok=True)
for line in Path("gold.jsonl").read_text("utf-8").splitlines():
    item = json.loads(line)
    with trace(item["qid"], item["question"], path="runs/app.jsonl") as t:
        reply = answer(index, item["question"], top=3)
        t.retrieved([(source["chunk_id"], source["text"]) for source in reply["sources"]])
        t.answer(reply["answer"], citations=reply["citations"])
