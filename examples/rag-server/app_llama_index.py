"""The same app in LlamaIndex: python app_llama_index.py."""

import json
from pathlib import Path

from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from server import Index, answer

from rag_eval.trace import trace
from rag_eval.trace.llama_index import record_queries

index = Index(Path("corpus"))


class Retriever(BaseRetriever):
    def _retrieve(self, query_bundle):
        ranked = index.search(query_bundle.query_str, 3)
        return [NodeWithScore(node=TextNode(text=index.chunks[name], id_=name), score=score) for name, score in ranked]


class Engine(CustomQueryEngine):
    def custom_query(self, query_str):
        Retriever().retrieve(query_str)
        return answer(index, query_str, top=3)["answer"]


engine = Engine()
Path("runs/app.jsonl").unlink(missing_ok=True)
record_queries("runs/app.jsonl")
for line in Path("gold.jsonl").read_text("utf-8").splitlines():
    item = json.loads(line)
    with trace(item["qid"], item["question"], path="runs/app.jsonl") as t:
        claim = str(engine.query(item["question"]))
        t.answer(claim, citations=answer(index, item["question"], top=3)["citations"])
