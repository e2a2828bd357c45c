"""A LangChain callback handler that writes trace rows: ``chain.invoke(…, config={"callbacks": [TraceHandler(…)]})``.

Needs the extra: ``pip install "rag-eval-action[langchain]"``.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple
from uuid import UUID

from rag_eval.trace import Trace, current

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables.config import var_child_runnable_config
except ImportError as error:
    raise ImportError('langchain-core is not installed: pip install "rag-eval-action[langchain]"') from error

_QUESTIONS = ("question", "query", "input", "q", "user_input", "messages")
_ANSWERS = ("answer", "output", "response", "result", "text", "messages")


class _Run(NamedTuple):
    """A run that has not ended: its outermost run, the trace of that one, and whether a ``trace`` block writes it."""

    root: UUID
    trace: Trace
    is_in_block: bool
    started: float


class TraceHandler(BaseCallbackHandler):  # type: ignore[misc]
    """Writes a row for each outermost run. ``metadata={"qid": …}`` of the config names the gold item.

    Inside a ``with rag_eval.trace.trace(…)`` block it fills the row of that block instead.
    """

    def __init__(self, path: str | os.PathLike[str] = "runs/trace.jsonl", run: str = "") -> None:
        self._path, self._run = path, run
        self._runs: dict[UUID, _Run] = {}

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **more: Any
    ) -> None:
        """Open the row of an outermost run: a chain or agent, a retriever with its query, or a model with prompts."""
        # Fallbacks, and calls with ``callbacks``, do not name the run around them as their parent.
        around = (var_child_runnable_config.get() or {}).get("callbacks")
        enclosing = parent_run_id or getattr(around, "parent_run_id", None)
        parent, block = self._runs.get(enclosing) if enclosing else None, current()
        started = time.perf_counter()
        if parent is not None:
            self._runs[run_id] = parent._replace(started=started)
        elif block is not None:
            self._runs[run_id] = _Run(run_id, block, True, started)
        else:
            qid = (more.get("metadata") or {}).get("qid")
            stated = {"qid": "" if qid is None else str(qid), "q": _text(inputs, _QUESTIONS), "run": self._run}
            trace = Trace(self._path, {name: value for name, value in stated.items() if value})
            self._runs[run_id] = _Run(run_id, trace._begin(), False, started)

    on_retriever_start = on_chat_model_start = on_llm_start = on_chain_start

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **more: Any) -> None:
        """Count what happens in a tool to the run that calls it."""
        self.on_chain_start(serialized, more.pop("inputs", input_str), run_id=run_id, **more)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **more: Any) -> None:
        """Record the documents; those of several retrievals are appended."""
        if run := self._runs.get(run_id):
            with run.trace._recording():
                run.trace.retrieved(documents)
        self._end(run_id, "retrieve", None)

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        """Record tokens and model."""
        generation = response.generations[-1][-1] if response.generations and response.generations[-1] else None
        if run := self._runs.get(run_id):
            with run.trace._recording():
                run.trace.usage(**_usage(response, getattr(generation, "message", None)))
        self._end(run_id, "generate", getattr(generation, "text", None))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        """Write the row when the outermost run ends."""
        self._ask(run_id, more.get("inputs"))
        self._end(run_id, "", outputs)

    on_tool_end = on_chain_end

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Write the row with the error if the outermost run failed."""
        if run := self._ask(run_id, more.get("inputs")):
            run.trace._fail(error)
        self._end(run_id, "", None)

    on_llm_error = on_retriever_error = on_tool_error = on_chain_error

    def _ask(self, run_id: UUID, inputs: Any) -> _Run | None:
        """Return an outermost run that no block writes, with the question, which a streamed run has only at its end."""
        run = self._runs.get(run_id)
        if run is None or run.root != run_id or run.is_in_block:
            return None
        if question := _text(inputs, _QUESTIONS):
            run.trace._row.setdefault("q", question)
        return run

    def _end(self, run_id: UUID, stage: str, outputs: Any) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:  # a part of a stream that was closed may end after the outermost run
            return
        trace = run.trace
        if stage:
            trace.latency(stage, (time.perf_counter() - run.started) * 1000)
        if run.root != run_id:
            return
        for other in [other for other, its in list(self._runs.items()) if its.root == run_id]:
            self._runs.pop(other, None)
        answer = _text(outputs, _ANSWERS)
        if "error" not in trace._row and answer:
            with trace._recording():
                trace.answer(answer, _fields(outputs).get("citations"))
        elif "error" not in trace._row and not run.is_in_block:
            trace._fail("the chain returned no text")
        if not run.is_in_block and trace._row.keys() & {"qid", "q"}:
            trace._write()


def _usage(response: Any, message: Any) -> dict[str, Any]:
    usage = getattr(message, "usage_metadata", None) or (response.llm_output or {}).get("token_usage") or {}
    known = {name: value for name, value in usage.items() if value is not None}
    return {
        "model": (getattr(message, "response_metadata", None) or {}).get("model_name"),
        "input_tokens": known.get("input_tokens", known.get("prompt_tokens")),
        "output_tokens": known.get("output_tokens", known.get("completion_tokens")),
    }


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
