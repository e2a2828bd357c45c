"""Write trace rows from your own pipeline.

>>> from rag_eval.trace import trace
>>> with trace("A0001", "Are null keys accepted?", path="runs/trace.jsonl") as t:  # doctest: +SKIP
...     with t.stage("retrieve"):
...         chunks = retriever.search(question)
...     t.retrieved(chunks)
...     t.answer(model.ask(question, chunks), citations=["manual#keys"])

The module needs only the standard library. A row is appended when the ``with`` block ends, in one write under a lock of
the file, so threads, tasks and processes may share one file. An exception in the block writes a row with ``error`` and
goes on: a failed question is a row, never a gap.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Trace", "current", "trace"]

Row = dict[str, Any]
STAGES = ("retrieve", "generate", "guardrail_input", "guardrail_output", "folder_select", "judge")
_current: ContextVar[Trace | None] = ContextVar("rag_eval_trace", default=None)
_writing = threading.Lock()


def trace(
    qid: str | None = None,
    question: str | None = None,
    *,
    path: str | os.PathLike[str] = "runs/trace.jsonl",
    run: str = "",
) -> Trace:
    """Return the trace of one question, to be used in a ``with`` statement.

    ``qid`` is the id of the gold item; without one, ``score`` pairs by ``question``, to the letter. ``run`` names the
    configuration if one file holds several. Raises ValueError without a qid and a question.
    """
    return Trace(qid, question, path, run)


def current() -> Trace | None:
    """Return the innermost open trace of this task or thread; None outside of a ``with trace(…)`` block."""
    return _current.get()


def add_retrieval(row: Row, documents: Iterable[Any], query: str = "") -> None:
    """Add the results of a retrieval to a row. From the second one on the row has each in ``retrievals``."""
    new_chunks = [as_chunk(document) for document in documents]
    chunks = {chunk["id"]: chunk for chunk in row.get("chunks", ())}
    before = row.get("retrievals") or ([{"ids": list(chunks)}] if "retrieved_ids" in row else [])
    for chunk in new_chunks:
        chunks.setdefault(chunk["id"], chunk)
    row |= {"chunks": list(chunks.values()), "retrieved_ids": list(chunks)}
    if before or query:
        ids = list(dict.fromkeys(chunk["id"] for chunk in new_chunks))
        row["retrievals"] = [*before, {**({"query": query} if query else {}), "ids": ids}]


class Trace:
    """A trace of one question. Every method may be called at any time before the block ends."""

    def __init__(self, qid: str | None, question: str | None, path: str | os.PathLike[str], run: str = "") -> None:
        if not qid and not question:
            raise ValueError("a trace needs the qid of its gold item, or the question. Write: trace(qid, question)")
        stated = {"qid": qid, "q": question, "run": run}
        self._row: Row = {name: value for name, value in stated.items() if value}
        self._path = Path(path)
        self._started = 0.0

    def __enter__(self) -> Self:
        self._outer = _current.set(self)
        self._row["ts"] = round(time.time(), 3)
        self._started = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        _current.reset(self._outer)
        self._row.setdefault("latency_ms", {}).setdefault("total", _milliseconds(self._started))
        if error is not None:
            self._row |= {"error": f"{type(error).__name__}: {error}"[:2000], "ok": False}
            if isinstance(error, TimeoutError):
                self._row["timed_out"] = True
        elif "answer_json" not in self._row and "error" not in self._row:
            self._row |= {"error": "no answer was recorded: call t.answer(text)", "ok": False}
        append(self._path, self._row)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def retrieved(self, documents: Iterable[Any], query: str = "") -> None:
        """Record what was retrieved, best first; a second call adds another one of the ``retrievals``.

        A document is a text, an id and text as a pair, a mapping with ``id`` and ``text``, or an object of LangChain
        (``Document``) or LlamaIndex (``NodeWithScore``). Raises ValueError for a document without id and text.
        """
        add_retrieval(self._row, documents, query)

    def answer(self, text: str, citations: Sequence[str] | None = None) -> None:
        """Record the answer; ``citations`` are ids of chunks, None if the system does not cite.

        Raises TypeError if the answer is None or the citations are one text.
        """
        if text is None or isinstance(citations, str):
            wrong = "the answer is None" if text is None else f"citations is a text: {citations[:80]!r}"
            raise TypeError(f"{wrong}. Write: answer(text, citations=[id, id])")
        cited = {} if citations is None else {"citations": [str(citation) for citation in citations]}
        self._row["answer_json"] = {"claim": str(text), **cited}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage: ``retrieve``, ``generate``, ``guardrail_input``, ``guardrail_output`` or ``judge``."""
        if name not in STAGES:
            raise ValueError(f"'{name}' is not a stage. Use one of: {', '.join(STAGES)}")
        started = time.perf_counter()
        try:
            yield
        finally:
            self.latency(name, _milliseconds(started))

    def latency(self, stage: str, milliseconds: float) -> None:
        """Add to the time of a stage, or of ``total``, in milliseconds."""
        times = self._row.setdefault("latency_ms", {})
        times[stage] = round(times.get(stage, 0.0) + milliseconds, 3)

    def usage(
        self,
        *,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Add tokens and cost in US dollars; the last named model counts."""
        used = self._row.setdefault("usage", {})
        if model:
            used["model"] = model
        for name, value in (("input_tokens", input_tokens), ("output_tokens", output_tokens), ("cost_usd", cost_usd)):
            if value is not None and math.isfinite(value):
                used[name] = used.get(name, 0) + value

    def set(self, **fields: Any) -> None:
        """Set further fields of the trace contract, such as ``abstained=True`` or ``guardrail={"blocked": False}``."""
        self._row |= fields


def as_chunk(document: Any) -> Row:
    """Return a retrieved document as a chunk of a trace row: ``id``, ``text``, ``doc_id``, ``score``."""
    if isinstance(document, str):
        return {"id": text_id(document), "text": document}
    if isinstance(document, tuple) and len(document) == 2:
        return {"id": str(document[0]), "text": str(document[1])}
    score = getattr(document, "score", None)
    document = getattr(document, "node", document)  # LlamaIndex: NodeWithScore
    if isinstance(document, Mapping):
        fields, metadata = dict(document), document.get("metadata") or {}
    else:
        names = ("id", "id_", "node_id", "page_content", "text")
        fields = {name: value for name in names if (value := getattr(document, name, None)) is not None}
        metadata = getattr(document, "metadata", None) or {}
    text = next(
        (fields[name] for name in ("text", "page_content", "content") if isinstance(fields.get(name), str)), None
    )
    candidates = [fields.get(name) for name in ("id", "chunk_id", "id_", "node_id")]
    candidates += [metadata.get(name) for name in ("chunk_id", "id", "_id")]
    identity = next((str(value) for value in candidates if value is not None and value != ""), None)
    if identity is None and text is None:
        raise ValueError(f"a retrieved document needs an id or a text: {str(document)[:80]!r}")
    chunk: Row = {"id": identity if identity is not None else text_id(text or "")}
    if text is not None:
        chunk["text"] = text
    source = next((metadata[name] for name in ("doc_id", "source", "file_name", "url") if metadata.get(name)), None)
    source = fields.get("doc_id", source)
    if source is not None:
        chunk["doc_id"] = str(source)
    score = fields.get("score", score)
    if not isinstance(score, bool) and isinstance(score, Real) and math.isfinite(score):
        chunk["score"] = score
    return chunk


def append(path: Path, row: Row) -> None:
    """Append a row to a file of traces."""
    append_line(path, json.dumps(row, ensure_ascii=False, default=_plain))


def _plain(value: Any) -> Any:
    """Return a value that JSON does not know as a number if it is one, such as those of NumPy, otherwise as text."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def append_line(path: Path, text: str) -> None:
    """Append a line to a file, in one write that no other thread or process can cut."""
    line = (text + "\n").encode("utf-8", "backslashreplace")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _writing, path.open("ab", buffering=0) as file, _locked(file.fileno()):
        file.write(line)


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """Lock an open file exclusively, on systems that can."""
    try:
        import fcntl
    except ImportError:  # Windows: appends of one process are whole under the lock of this module
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def text_id(text: str) -> str:
    """Return the id of a chunk that only its text identifies, as ``rag-eval import`` makes it."""
    folded = " ".join(unicodedata.normalize("NFC", text).split())
    return "text:" + hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()[:16]
