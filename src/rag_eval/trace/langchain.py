"""A LangChain callback handler that writes trace rows: ``chain.invoke(…, config={"callbacks": [TraceHandler(…)]})``.

Needs the extra: ``pip install "rag-eval-action[langchain]"``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from uuid import UUID

from rag_eval.trace import Row, add_retrieval, answer_with_citations, append

try:
    from langchain_core.callbacks import BaseCallbackHandler
except ImportError as error:
    raise ImportError('langchain-core is not installed: pip install "rag-eval-action[langchain]"') from error

_QUESTIONS = ("question", "query", "input", "q", "user_input", "messages")
_ANSWERS = ("answer", "output", "response", "result", "text", "messages")


class TraceHandler(BaseCallbackHandler):  # type: ignore[misc]
    """Writes a row for each outermost run. ``metadata={"qid": …}`` of the config names the gold item."""

    def __init__(self, path: str | os.PathLike[str] = "runs/trace.jsonl", run: str = "") -> None:
        self._path, self._run = Path(path), run
        self._rows: dict[UUID, Row] = {}  # by root
        self._roots: dict[UUID, UUID] = {}
        self._starts: dict[UUID, float] = {}

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Open the row of an outermost run: a chain or agent, a retriever with its query, or a model with prompts."""
        root = self._roots.get(parent_run_id, run_id) if parent_run_id else run_id
        self._roots[run_id], self._starts[run_id] = root, time.perf_counter()
        if root == run_id:
            qid = (more.get("metadata") or {}).get("qid")
            stated = {"qid": str(qid) if qid else "", "q": _text(inputs, _QUESTIONS), "run": self._run}
            self._rows[root] = {name: value for name, value in stated.items() if value} | {"ts": round(time.time(), 3)}

    on_retriever_start = on_chat_model_start = on_llm_start = on_chain_start

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **more: Any) -> None:
        """Count what happens in a tool to the run that calls it."""
        self.on_chain_start(serialized, more.pop("inputs", input_str), run_id=run_id, **more)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **more: Any) -> None:
        """Record the documents; those of several retrievals are appended."""
        add_retrieval(self._row(run_id), documents)
        self._end(run_id, "retrieve", None)

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        """Record tokens and model."""
        generation = response.generations[-1][-1] if response.generations and response.generations[-1] else None
        message = getattr(generation, "message", None)
        usage = getattr(message, "usage_metadata", None) or (response.llm_output or {}).get("token_usage") or {}
        used = self._row(run_id).setdefault("usage", {})
        for name, other in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
            count = next((usage[key] for key in (name, other) if usage.get(key) is not None), None)
            if count is not None:
                used[name] = used.get(name, 0) + count
        model = (getattr(message, "response_metadata", None) or {}).get("model_name")
        if model:
            used["model"] = model
        self._end(run_id, "generate", getattr(generation, "text", None))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        """Write the row when the outermost run ends."""
        self._ask(run_id, more.get("inputs"))
        self._end(run_id, "", outputs)

    on_tool_end = on_chain_end

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Write the row with the error if the outermost run failed."""
        self._ask(run_id, more.get("inputs"))
        if self._roots.get(run_id) == run_id:
            self._rows[run_id] |= {"error": f"{type(error).__name__}: {error}"[:2000], "ok": False}
            if isinstance(error, TimeoutError):
                self._rows[run_id]["timed_out"] = True
        self._end(run_id, "", None)

    on_llm_error = on_retriever_error = on_tool_error = on_chain_error

    def _ask(self, run_id: UUID, inputs: Any) -> None:
        """Record the question at the end of a streamed run, whose input is not known at its start."""
        row = self._rows.get(run_id)
        if row is not None and "q" not in row and (question := _text(inputs, _QUESTIONS)):
            row["q"] = question

    def _row(self, run_id: UUID) -> Row:
        return self._rows.get(self._roots.get(run_id, run_id), {})

    def _end(self, run_id: UUID, stage: str, outputs: Any) -> None:
        root = self._roots.pop(run_id, None)
        milliseconds = (time.perf_counter() - self._starts.pop(run_id, time.perf_counter())) * 1000
        if root is None:
            return
        times = self._rows[root].setdefault("latency_ms", {})
        if stage:
            times[stage] = round(times.get(stage, 0) + milliseconds, 3)
        if root != run_id:
            return
        row = self._rows.pop(root)
        times["total"] = round(milliseconds, 3)
        answer = _text(outputs, _ANSWERS)
        if answer and "error" not in row:
            cited = outputs.get("citations") if isinstance(outputs, dict) else None
            try:
                row["answer_json"] = answer_with_citations(answer, cited)
            except TypeError as error:  # LangChain would only log it
                row |= {"error": f"{type(error).__name__}: {error}"[:2000], "ok": False}
        elif "error" not in row:
            row |= {"error": "the chain returned no text", "ok": False}
        if "qid" in row or "q" in row:
            append(self._path, row)


def _text(value: Any, names: tuple[str, ...]) -> str:
    """Return the text in an input or output: itself, of the last message, or under the first of ``names``."""
    while isinstance(value, (list, tuple)) and value:  # messages, pairs of role and content, or prompts
        value = value[-1]
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next((text for name in (*names, "content") if (text := _text(value.get(name), names))), "")
    content = getattr(value, "content", None)  # of a message: a text, or parts
    return _text(content, ("text",)) if isinstance(content, (str, list)) else ""
