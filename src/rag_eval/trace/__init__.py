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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from decimal import Decimal
from functools import cache
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any, Self

from rag_eval.common.json_schema import Schema, is_valid
from rag_eval.common.paths import shipped

__all__ = ["Trace", "current", "trace"]

Row = dict[str, Any]
STAGES = ("retrieve", "generate", "guardrail_input", "guardrail_output", "folder_select", "judge")
_current: ContextVar[Trace | None] = ContextVar("rag_eval_trace", default=None)
_writing = threading.Lock()
_ANSWER_FIX = "Write: answer(text, citations=[id, id])"
_DOCUMENT_FIX = "Write: retrieved([text, (id, text), {'id': id, 'text': text}])"
_REPR_AS_TEXT: Any = object.__str__  # of a type without a text form
_RULES = ("type", "required", "enum", "minimum", "maximum", "minLength", "maxLength")
"""Keywords of the schema, for an error."""


def trace(
    qid: str | None = None,
    question: str | None = None,
    *,
    path: str | os.PathLike[str] = "runs/trace.jsonl",
    run: str = "",
) -> Trace:
    """Return the trace of one question, to be used in a ``with`` statement.

    ``qid`` is the id of the gold item; without one, ``score`` pairs by ``question``, to the letter. ``run`` names the
    configuration if one file holds several. Raises ValueError without a qid and a question, TypeError if they are not
    texts.
    """
    stated = {"qid": qid, "q": question, "run": run}
    texts = {name: checked(name, value) for name, value in stated.items() if value is not None}
    row = {name: text for name, text in texts.items() if text}
    if not row.keys() & {"qid", "q"}:
        raise ValueError("a trace needs the qid of its gold item, or the question. Write: trace(qid, question)")
    return Trace(path, row)


def current() -> Trace | None:
    """Return the innermost open trace of this task or thread; None outside of a ``with trace(…)`` block."""
    innermost = _current.get()
    return innermost if innermost is not None and innermost._is_open else None


class Trace:
    """A trace of one question. Every method may be called at any time before the block ends, by any thread."""

    def __init__(self, path: str | os.PathLike[str], row: Row) -> None:
        self._path, self._row = Path(path), row
        self._started, self._is_open = 0.0, False
        self._outer: Trace | None = None
        self._changing = threading.RLock()

    def __enter__(self) -> Self:
        if self._is_open:
            raise RuntimeError("this trace is open already. Write: with trace(qid, question) for each question")
        self._outer, self._is_open = current(), True
        _current.set(self)
        return self._begin()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._is_open = False
        if _current.get() is self:  # not if the block is in a generator that ends in another task than it began in
            _current.set(self._outer)
        if error is not None:
            self._fail(error)
        try:
            self._write()
        except OSError as problem:
            if error is None:
                raise
            error.add_note(f"rag-eval could not write the trace row: {problem}")  # and hide no error of the application

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)

    def _begin(self) -> Self:
        """Start the clock of a row, as a ``with`` block does."""
        self._row["ts"] = round(time.time(), 3)
        self._started = time.perf_counter()
        return self

    def _fail(self, error: BaseException | str) -> None:
        """Record that the question failed, as a ``with`` block does for an exception."""
        timed_out = {"timed_out": True} if isinstance(error, TimeoutError) else {}
        if isinstance(error, BaseException):
            try:
                error = f"{type(error).__name__}: {error}"
            except Exception:  # noqa: BLE001 - the text of an exception of the application is any code
                error = f"{type(error).__name__}: the exception has no text"
        self._row |= {"error": error[:2000], "ok": False, **timed_out}

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Record what cannot be recorded as an error of the row; frameworks would only log it, or hide it."""
        try:
            yield
        except (TypeError, ValueError) as error:
            self._fail(error)

    def _write(self) -> None:
        """Append the row to the file, as a ``with`` block does. Half of a surrogate pair becomes a question mark."""
        self._row.setdefault("latency_ms", {}).setdefault("total", _milliseconds(self._started))
        if not self._row.keys() & {"answer_json", "error"}:
            self._fail("no answer was recorded: call t.answer(text)")
        append_line(self._path, json.dumps(self._row, ensure_ascii=False, default=plain_value))

    def retrieved(self, documents: Iterable[Any], query: str = "") -> None:
        """Record what was retrieved, best first; a second call adds another one of the ``retrievals``.

        A document is a text, an id and text as a pair, a mapping with ``id`` and ``text``, or an object of LangChain
        (``Document``) or LlamaIndex (``NodeWithScore``). Raises ValueError for a document without id and text, and
        TypeError for one document instead of a list.
        """
        if documents is None:
            raise TypeError("documents is None. Write: retrieved([]) if nothing was found")
        if _is_document(documents) or not isinstance(documents, Iterable):
            raise TypeError(f"documents must be a list, but is {described(documents)}. Write: retrieved([document])")
        new_chunks = [as_chunk(document) for document in documents]
        with self._changing:
            chunks = {chunk["id"]: chunk for chunk in self._row.get("chunks", ())}
            before = self._row.get("retrievals") or ([{"ids": list(chunks)}] if "retrieved_ids" in self._row else [])
            for chunk in new_chunks:
                chunks.setdefault(chunk["id"], chunk)
            fields: Row = {"chunks": list(chunks.values()), "retrieved_ids": list(chunks)}
            if before or query:
                ids = list(dict.fromkeys(chunk["id"] for chunk in new_chunks))
                fields["retrievals"] = [*before, {**({"query": query} if query else {}), "ids": ids}]
            self.set(**fields)

    def answer(self, text: str, citations: Iterable[str] | None = None) -> None:
        """Record the answer; ``citations`` are ids of chunks, None if the system does not cite.

        Raises TypeError if the answer is not a text, or the citations are not a list of ids.
        """
        answer: Row = {"claim": as_text(text, "the answer", _ANSWER_FIX)}
        if isinstance(citations, (str, Mapping)) or not isinstance(citations, (Iterable, type(None))):
            raise TypeError(f"citations is {described(citations)}. {_ANSWER_FIX}")
        if citations is not None:
            answer["citations"] = [as_text(citation, "a citation", _ANSWER_FIX) for citation in citations]
        self.set(answer_json=answer)

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
        """Add to the time of a stage, or of ``total``, in milliseconds; raise ValueError for a negative time."""
        added = checked("latency_ms", {stage: milliseconds})
        with self._changing:
            times = self._row.setdefault("latency_ms", {})
            for name, value in added.items():
                times[name] = round(times.get(name, 0.0) + value, 3)

    def usage(
        self,
        *,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Add tokens and cost in US dollars; the last named model counts. Numbers without a value (NaN) are left out.

        Raises TypeError or ValueError for negative numbers, and for tokens that are no whole numbers.
        """
        numbers = {"input_tokens": input_tokens, "output_tokens": output_tokens, "cost_usd": cost_usd}
        given = {name: value for name, value in numbers.items() if value is not None and not _lacks_value(value)}
        added = checked("usage", given | ({"model": model} if model else {}))
        with self._changing:
            used = self._row.setdefault("usage", {})
            for name, value in added.items():
                used[name] = value if name == "model" else used.get(name, 0) + value

    def set(self, **fields: Any) -> None:
        """Set further fields of the trace contract, such as ``abstained=True`` or ``guardrail={"blocked": False}``.

        Raises TypeError or ValueError for a value that the contract refuses.
        """
        self._row |= {name: checked(name, value) for name, value in fields.items()}


def as_chunk(document: Any) -> Row:
    """Return a retrieved document as a chunk of a trace row: ``id``, ``text``, ``doc_id``, ``score``."""
    if isinstance(document, str):
        return {"id": text_id(document), "text": document}
    if isinstance(document, tuple) and len(document) == 2:
        pair = [as_text(part, "a part of a pair of id and text", _DOCUMENT_FIX) for part in document]
        return {"id": pair[0], "text": pair[1]}
    score = getattr(document, "score", None)
    document = getattr(document, "node", document)  # LlamaIndex: NodeWithScore
    if isinstance(document, Mapping):
        fields, metadata = dict(document), document.get("metadata") or {}
    else:
        names = ("id", "id_", "node_id", "page_content", "text")
        fields = {name: value for name in names if (value := getattr(document, name, None)) is not None}
        metadata = getattr(document, "metadata", None) or {}
    texts = (fields.get(name) for name in ("text", "page_content", "content"))
    text = next((value for value in texts if isinstance(value, str)), None)
    candidates = [fields.get(name) for name in ("id", "chunk_id", "id_", "node_id")]
    candidates += [metadata.get(name) for name in ("chunk_id", "id", "_id")]
    stated = next((value for value in candidates if value not in (None, "")), None)
    identity = None if stated is None else as_text(stated, "the id of a document", _DOCUMENT_FIX)
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


def _is_document(value: Any) -> bool:
    """Return whether a value is one retrieved document and no list of them."""
    return isinstance(value, (str, bytes, Mapping)) or any([hasattr(value, name) for name in ("page_content", "node")])


def _lacks_value(number: Any) -> bool:
    return isinstance(number, Real) and not math.isfinite(number)


def append_line(path: Path, text: str) -> None:
    """Append a line to a file, in one write that no other thread or process can cut.

    If the disk is full nothing is written: half of a line would make the next row invalid as well.
    """
    line = memoryview((text + "\n").encode("utf-8", "replace"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file, _locked(file.fileno()):
        size = os.fstat(file.fileno()).st_size
        try:
            while line:
                line = line[file.write(line) :]
        except BaseException:
            with suppress(OSError):  # a pipe cannot be cut
                file.truncate(size)
            raise


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """Lock an open file exclusively, on systems that can.

    The lock of a file excludes threads too. A lock of this module would stay locked in a process forked meanwhile.
    """
    try:
        import fcntl
    except ImportError:  # Windows, which has no fork
        with _writing:
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


@cache
def _fields() -> dict[str, Schema]:
    schema: Schema = json.loads(Path(shipped("schemas", "trace.schema.json")).read_text("utf-8"))
    fields: dict[str, Schema] = schema["properties"]
    return fields


def checked(name: str, value: Any) -> Any:
    """Return the value of a field as plain JSON. The fields of other tools may have any value.

    Raises TypeError or ValueError, with the fix, for a value that ``rag-eval validate`` would refuse.
    """
    try:
        plain = json.loads(json.dumps(value, default=plain_value, allow_nan=False))
        json.dumps(plain, ensure_ascii=False).encode()
    except ValueError as error:  # a number such as NaN, or half of a surrogate pair
        raise ValueError(f"'{name}' cannot be written: {error}. Leave out or replace that part.") from None
    _check(name, plain, _fields().get(name, {}))
    return plain


def plain_value(value: Any) -> Any:
    """Return a value that JSON does not know as a number if it is one, such as those of NumPy, otherwise as text."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, (Real, Decimal)) else str(value)


def as_text(value: Any, what: str, fix: str) -> str:
    """Return the text of a text, a number, or an object that defines one, such as a UUID; raise TypeError for others.

    The text of a mapping, a list or a document is its ``repr``, which nobody wants in a row.
    """
    has_text = type(value).__str__ is not _REPR_AS_TEXT and not isinstance(value, (bytes, Iterable))
    is_missing = isinstance(value, float) and not math.isfinite(value)
    if (isinstance(value, (str, Number)) or has_text) and not is_missing:
        return str(value)
    wrong = f"{what} is {value}" if value is None or is_missing else f"{what} is {described(value)}"
    raise TypeError(f"{wrong}. {fix}")


def described(value: Any) -> str:
    """Return the type of a value with its beginning, for an error."""
    if isinstance(value, str):
        return f"a text: {value[:80]!r}"
    return f"of type {type(value).__name__}, not a text: {repr(value)[:80]}"


def _check(where: str, value: Any, schema: Schema) -> None:
    """Raise TypeError or ValueError for the innermost part of a value that its schema refuses."""
    if is_valid(schema, value, schema):
        return
    if isinstance(value, list):
        for position, item in enumerate(value):
            _check(f"{where}[{position}]", item, schema.get("items", {}))
    elif isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            _check(f"{where}.{name}", item, fields.get(name, others))
    rules = ", ".join(f"{rule} {schema[rule]}" for rule in _RULES if rule in schema)
    kind = ValueError if is_valid({"type": schema["type"]}, value, {}) else TypeError
    fix = f"Write for example: {schema['examples'][0]!r}" if "examples" in schema else "Leave the field out."
    raise kind(f"'{where}' is {repr(value)[:80]}, but must have {rules}. {fix}")
