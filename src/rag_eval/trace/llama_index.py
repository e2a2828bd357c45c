"""A LlamaIndex event handler that writes a trace row for each query.

    from rag_eval.trace.llama_index import record_queries
    record_queries("runs/trace.jsonl")

Needs the extra: ``pip install "rag-eval-action[llama-index]"``. To name the gold item of a query, run it inside
``with rag_eval.trace.trace(qid, question)``: then the row of that block is filled instead.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from rag_eval.trace import Row, append, as_chunk, current

try:
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
    from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
    from pydantic import PrivateAttr
except ImportError as error:
    raise ImportError('llama-index-core is not installed: pip install "rag-eval-action[llama-index]"') from error


class QueryHandler(BaseEventHandler):  # type: ignore[misc]
    """Collects what a query retrieves and answers, by the span that the query runs in."""

    path: str
    run: str = ""
    _open: list[Row] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex registers."""
        return "RagEvalQueryHandler"

    def handle(self, event: Any, **_: Any) -> None:
        """Fill the row of the current query; write it when the query ends."""
        outer = current()
        if isinstance(event, QueryStartEvent):
            question = getattr(event.query, "query_str", None) or str(event.query)
            self._open.append({"q": question, "started": time.perf_counter(), "ts": round(time.time(), 3)})
        elif isinstance(event, RetrievalEndEvent):
            if outer is not None:
                outer.retrieved(event.nodes)
            elif self._open:
                chunks = [as_chunk(node) for node in event.nodes]
                self._open[-1] |= {"chunks": chunks, "retrieved_ids": [chunk["id"] for chunk in chunks]}
        elif isinstance(event, QueryEndEvent):
            answer = str(getattr(event.response, "response", None) or event.response)
            row: Row = self._open.pop() if self._open else {"q": "", "started": time.perf_counter()}
            milliseconds = round((time.perf_counter() - row.pop("started")) * 1000, 3)
            if outer is not None:
                outer.answer(answer)
            elif row["q"] and not self._open:
                row |= {"run": self.run} if self.run else {}
                row |= {"answer_json": {"claim": answer}, "latency_ms": {"total": milliseconds}}
                append(Path(self.path), row)


def record_queries(path: str | os.PathLike[str] = "runs/trace.jsonl", run: str = "") -> QueryHandler:
    """Write a row for every query of this process from now on; return the handler."""
    handler = QueryHandler(path=os.fspath(path), run=run)
    get_dispatcher().add_event_handler(handler)
    return handler
