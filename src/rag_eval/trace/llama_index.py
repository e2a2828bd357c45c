"""A LlamaIndex event handler that writes a trace row for each query.

    from rag_eval.trace.llama_index import record_queries
    record_queries("runs/trace.jsonl")

Needs the extra: ``pip install "rag-eval-action[llama-index]"``. To name the gold item of a query, run it inside
``with rag_eval.trace.trace(qid, question)``: then the row of that block is filled instead.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rag_eval.trace import Trace, current

try:
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
    from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
    from llama_index.core.instrumentation.events.span import SpanDropEvent
    from pydantic import PrivateAttr
except ImportError as error:
    raise ImportError('llama-index-core is not installed: pip install "rag-eval-action[llama-index]"') from error

_log = logging.getLogger(__name__)
Done = Callable[[str, str], None]  # called with the answer and the error of a query, empty if there is none


class QueryHandler(BaseEventHandler):  # type: ignore[misc]
    """Collects what a query and the queries inside it retrieve, and the answer or the error of the outermost one."""

    path: str
    run: str = ""
    # Span and trace of each query that this thread or task has open, the outermost first.
    _open: ContextVar[tuple[tuple[str, Trace], ...]] = PrivateAttr(
        default_factory=lambda: ContextVar("open_queries", default=())
    )

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex registers."""
        return "RagEvalQueryHandler"

    def handle(self, event: Any, **_: Any) -> None:
        """Fill the row of the outermost query; write it when that query ends or fails."""
        queries = self._open.get()
        record = current() or (queries[0][1] if queries else None)
        if isinstance(event, QueryStartEvent):
            row = {"q": getattr(event.query, "query_str", None) or str(event.query)}
            row |= {"run": self.run} if self.run else {}
            self._open.set((*queries, (event.span_id, record or Trace(self.path, row)._begin())))
        elif isinstance(event, RetrievalEndEvent) and record:
            with record._recording():
                record.retrieved(event.nodes)
        elif isinstance(event, (QueryEndEvent, SpanDropEvent)):
            spans = [span for span, _ in queries]
            if event.span_id in spans:
                self._open.set(queries[: spans.index(event.span_id)])
            if record and [event.span_id] == spans[:1]:
                self._end(event, record)

    def _end(self, event: Any, record: Trace) -> None:
        is_in_block = record is current()

        def done(answer: str, error: str) -> None:
            if answer or not error:
                with record._recording():
                    record.answer(answer)
            if is_in_block:  # an exception reaches the block, which records it
                return
            if error:
                record._fail(error)
            try:
                record._write()
            except (OSError, TypeError, ValueError) as problem:  # the application still gets its answer
                _log.warning("the trace row of %r was not written: %s", record._row.get("q"), problem)

        response: Any = getattr(event, "response", None)
        if isinstance(event, SpanDropEvent):
            done("", event.err_str or "the query failed")
        elif getattr(response, "response_gen", None) is not None:  # the caller reads the stream, which can be read once
            record_parts = _recorded_async if hasattr(response.response_gen, "__aiter__") else _recorded
            response.response_gen = record_parts(response.response_gen, done)
        else:
            done(str(getattr(response, "response", None) or response), "")


@contextmanager
def _recording(done: Done) -> Iterator[list[str]]:
    """Collect the parts of an answer; record what was read when the stream ends, fails or is closed."""
    parts: list[str] = []
    failure = ""
    try:
        yield parts
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        done("".join(parts), failure)


def _recorded(stream: Iterator[str], done: Done) -> Iterator[str]:
    with _recording(done) as parts:
        for part in stream:
            parts.append(part)
            yield part


async def _recorded_async(stream: AsyncIterator[str], done: Done) -> AsyncIterator[str]:
    with _recording(done) as parts:
        async for part in stream:
            parts.append(part)
            yield part


def record_queries(path: str | os.PathLike[str] = "runs/trace.jsonl", run: str = "") -> QueryHandler:
    """Write a row for every query of this process from now on; return the handler."""
    handler = QueryHandler(path=os.fspath(path), run=run)
    get_dispatcher().add_event_handler(handler)
    return handler
