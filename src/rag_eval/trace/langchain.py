"""A LangChain callback handler that writes trace rows: ``chain.invoke(…, config={"callbacks": [TraceHandler(…)]})``.

Needs the extra: ``pip install "rag-eval-action[langchain]"``.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from rag_eval.trace import Row, add_retrieval, answer_with_citations, append, current, failure

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables.config import var_child_runnable_config
except ImportError as error:
    raise ImportError('langchain-core is not installed: pip install "rag-eval-action[langchain]"') from error

_QUESTIONS = ("question", "query", "input", "q", "user_input", "messages")
_ANSWERS = ("answer", "output", "response", "result", "text", "messages")


@dataclass
class _Run:
    """A run that has not ended: its outermost run, the row of that one, and whether a ``trace`` block writes it."""

    root: UUID
    row: Row
    is_in_block: bool
    started: float = field(default_factory=time.perf_counter)


class TraceHandler(BaseCallbackHandler):  # type: ignore[misc]
    """Writes a row for each outermost run. ``metadata={"qid": …}`` of the config names the gold item.

    Inside a ``with rag_eval.trace.trace(…)`` block it fills the row of that block instead.
    """

    def __init__(self, path: str | os.PathLike[str] = "runs/trace.jsonl", run: str = "") -> None:
        self._path, self._run = Path(path), run
        self._runs: dict[UUID, _Run] = {}
        self._changing = threading.Lock()  # runs of one row may be in several threads

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Open the row of an outermost run: a chain or agent, a retriever with its query, or a model with prompts."""
        enclosing = parent_run_id or _enclosing_run()
        parent, block = self._runs.get(enclosing) if enclosing else None, current()
        if parent is not None:
            self._runs[run_id] = _Run(parent.root, parent.row, parent.is_in_block)
        elif block is not None:
            self._runs[run_id] = _Run(run_id, block._row, is_in_block=True)
        else:
            qid = (more.get("metadata") or {}).get("qid")
            stated = {"qid": "" if qid is None else str(qid), "q": _text(inputs, _QUESTIONS), "run": self._run}
            row = {name: value for name, value in stated.items() if value} | {"ts": round(time.time(), 3)}
            self._runs[run_id] = _Run(run_id, row, is_in_block=False)

    on_retriever_start = on_chat_model_start = on_llm_start = on_chain_start

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **more: Any) -> None:
        """Count what happens in a tool to the run that calls it."""
        self.on_chain_start(serialized, more.pop("inputs", input_str), run_id=run_id, **more)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **more: Any) -> None:
        """Record the documents; those of several retrievals are appended."""
        run = self._runs.get(run_id)
        if run is None:
            return
        try:
            with self._changing:
                add_retrieval(run.row, documents)
        except (TypeError, ValueError) as error:  # LangChain would only log it
            run.row |= failure(error)
        self._end(run_id, "retrieve", None)

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        """Record tokens and model."""
        generation = response.generations[-1][-1] if response.generations and response.generations[-1] else None
        run = self._runs.get(run_id)
        if run is not None:
            with self._changing:
                _add_usage(run.row, response, getattr(generation, "message", None))
        self._end(run_id, "generate", getattr(generation, "text", None))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        """Write the row when the outermost run ends."""
        self._ask(run_id, more.get("inputs"))
        self._end(run_id, "", outputs)

    on_tool_end = on_chain_end

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Write the row with the error if the outermost run failed."""
        self._ask(run_id, more.get("inputs"))
        run = self._runs.get(run_id)
        if run is not None and run.root == run_id and not run.is_in_block:
            run.row |= failure(error)
        self._end(run_id, "", None)

    on_llm_error = on_retriever_error = on_tool_error = on_chain_error

    def _ask(self, run_id: UUID, inputs: Any) -> None:
        """Record the question at the end of a streamed run, whose input is not known at its start."""
        run = self._runs.get(run_id)
        if run is None or run.root != run_id or run.is_in_block or "q" in run.row:
            return
        if question := _text(inputs, _QUESTIONS):
            run.row["q"] = question

    def _end(self, run_id: UUID, stage: str, outputs: Any) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:  # a part of a stream that was closed may end after the outermost run
            return
        milliseconds = (time.perf_counter() - run.started) * 1000
        with self._changing:
            times = run.row.setdefault("latency_ms", {})
            if stage:
                times[stage] = round(times.get(stage, 0) + milliseconds, 3)
        if run.root != run_id:
            return
        for other in [other for other, its in list(self._runs.items()) if its.root == run_id]:
            self._runs.pop(other, None)
        _add_answer(run, outputs)
        if not run.is_in_block:
            times["total"] = round(milliseconds, 3)
            if "qid" in run.row or "q" in run.row:
                append(self._path, run.row)


def _enclosing_run() -> UUID | None:
    """Return the run around this call; fallbacks, and calls with ``callbacks``, do not name it as their parent."""
    parent: UUID | None = getattr((var_child_runnable_config.get() or {}).get("callbacks"), "parent_run_id", None)
    return parent


def _add_usage(row: Row, response: Any, message: Any) -> None:
    usage = getattr(message, "usage_metadata", None) or (response.llm_output or {}).get("token_usage") or {}
    used = row.setdefault("usage", {})
    for name, other in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        count = next((usage[key] for key in (name, other) if usage.get(key) is not None), None)
        if count is not None:
            used[name] = used.get(name, 0) + count
    model = (getattr(message, "response_metadata", None) or {}).get("model_name")
    if model:
        used["model"] = model


def _add_answer(run: _Run, outputs: Any) -> None:
    answer = _text(outputs, _ANSWERS)
    if answer and "error" not in run.row:
        try:
            run.row["answer_json"] = answer_with_citations(answer, _fields(outputs).get("citations"))
        except TypeError as error:  # LangChain would only log it
            run.row |= failure(error)
    elif "error" not in run.row and not run.is_in_block:
        run.row |= {"error": "the chain returned no text", "ok": False}


def _text(value: Any, names: tuple[str, ...]) -> str:
    """Return the text in an input or output: itself, of the last message, or under the first of ``names``."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (list, tuple)):  # parts of a message, messages, pairs of role and content, or prompts
        if any(_is_part(part) for part in value):
            return "".join(_part_text(part) for part in value)
        return _text(value[-1], names) if value else ""
    fields = _fields(value)
    candidates = [fields[name] for name in (*names, "content") if name in fields]
    return next((text for candidate in candidates if (text := _text(candidate, names))), "")


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and "type" in value and not value.keys() & {"role", "content"}


def _part_text(part: Any) -> str:
    text = part.get("text") if _is_part(part) and part["type"] == "text" else part
    return text if isinstance(text, str) else ""


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a mapping, a message, or a model of pydantic."""
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})
