"""The same app in LangChain: python app_langchain.py."""

import json
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from server import Index, answer

from rag_eval.trace.langchain import TraceHandler

index = Index(Path("corpus"))


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(index.chunks[name], id=name) for name, _ in index.search(query, 3)]


def rag(inputs):
    Retriever().invoke(inputs["question"])
    reply = answer(index, inputs["question"], top=3)
    return {"answer": reply["answer"], "citations": reply["citations"]}


chain = RunnableLambda(rag)
Path("runs/app.jsonl").unlink(missing_ok=True)
handler = TraceHandler("runs/app.jsonl")
for line in Path("gold.jsonl").read_text("utf-8").splitlines():
    item = json.loads(line)
    chain.invoke({"question": item["question"]}, config={"callbacks": [handler], "metadata": {"qid": item["qid"]}})
