"""Ask a language model to judge answers, and measure how far people agree with it. Never part of scoring.

This module asks an OpenAI-compatible endpoint for verdicts and turns its replies into rows of the verdict file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.collecting.request_map import RequestMap
from rag_eval.collecting.systems import HttpSystem
from rag_eval.contract import Judge
from rag_eval.contract.settings import SCORES, parse_reply, verdict_hash
from rag_eval.errors import UsageError

Row = dict[str, Any]
KEY = "OPENAI_API_KEY"
_PLACES = re.compile(r"\{(rubric|input)\}")
_MILLION = 1_000_000
_REPLY = ("reply", *SCORES, "unsupported_claims", "error", "ts", "usage")


class AnswerToJudge(NamedTuple):
    """An answer to judge: its question, its run, and the input of the judge."""

    qid: str
    run: str
    shown: Mapping[str, Any]
    answerable: bool

    def row(self, answer: Row, more: Row) -> Row:
        """Return the row of a reply: what it is about, ``more``, and the fields of the reply."""
        about = {"qid": self.qid, **({"run": self.run} if self.run else {})}
        return {**about, **more, **{field: answer[field] for field in _REPLY if field in answer}}


class Prompt(NamedTuple):
    """The prompt of a judge: a template with ``{rubric}`` and ``{input}``, and the rubric."""

    template: str
    rubric: str

    @classmethod
    def of(cls, template: str | None, rubric: str | None) -> Prompt:
        """Return the packaged prompt and rubric, or the given ones in place of them."""
        packaged = ((template, "prompt.txt"), (rubric, "rubric.txt"))
        texts = [Path(__file__).with_name(name).read_text("utf-8") if text is None else text for text, name in packaged]
        if "{input}" not in texts[0]:
            raise UsageError("the prompt has no {input}: write {rubric} and {input} where they belong")
        return cls(*texts)

    def judge(self, model: str) -> Judge:
        """Return the judge for a model with this prompt."""
        return Judge(model, _hash(self.template), _hash(self.rubric))

    def text(self, shown: Mapping[str, Any]) -> str:
        """Return the text for one answer; as JSON, nothing in the input can end it."""
        parts = {"rubric": self.rubric, "input": json.dumps(shown, ensure_ascii=False, indent=1)}
        return _PLACES.sub(lambda match: parts[match[1]], self.template)


def _hash(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


class Endpoint(HttpSystem):
    """A server with the path ``/chat/completions``. The key is taken from the environment, if it is set."""

    command = "rag-eval judge --base-url"

    def __init__(self, url: str, model: str, prices: Mapping[str, Mapping[str, float]]) -> None:
        headers = {"Authorization": f"Bearer ${{{KEY}}}"} if os.environ.get(KEY) else {}
        message = {"role": "user", "content": "{question}"}
        body = {"model": model, "messages": [message], "temperature": 0}
        super().__init__(url, RequestMap(path="/chat/completions", headers=headers, body=body), {})
        self._price = prices.get(model)

    def ask(self, qid: str, question: str, timeout: float) -> Row:
        """Return reply, scores and usage, or the fault of the reply as ``error``."""
        answered = self.reply(qid, question, timeout)
        try:
            choice = answered["choices"][0]
            reply, refusal = choice["message"].get("content") or "", choice["message"].get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise RuntimeError(f"the reply is not a chat completion: {json.dumps(answered)[:200]}") from None
        row: Row = {"reply": reply if isinstance(reply, str) else json.dumps(reply)}
        stated = answered.get("usage") or {}
        tokens = {"input_tokens": stated.get("prompt_tokens"), "output_tokens": stated.get("completion_tokens")}
        usage: Row = {"model": answered["model"]} if isinstance(answered.get("model"), str) else {}
        usage |= {name: count for name, count in tokens.items() if type(count) is int and count >= 0}
        if self._price and tokens.keys() <= usage.keys():
            spent = usage["input_tokens"] * self._price["input"] + usage["output_tokens"] * self._price["output"]
            usage["cost_usd"] = spent / _MILLION
        if usage:
            row["usage"] = usage
        reason = choice.get("finish_reason")
        if refusal or reason in ("length", "content_filter"):
            return {**row, "error": f"the judge refused: {refusal}" if refusal else f"the reply was cut off: {reason}"}
        try:
            verdict = parse_reply(row["reply"])
        except ValueError as error:
            return {**row, "error": str(error)}
        scores = {name: getattr(verdict, name) for name in SCORES}
        return {**row, **scores, "unsupported_claims": list(verdict.unsupported_claims)}


def answers_by_hash(answers: Iterable[AnswerToJudge], judge: Judge) -> dict[str, AnswerToJudge]:
    """Return the answers by the hash of their verdict; of equal answers in several runs, the first."""
    by_hash: dict[str, AnswerToJudge] = {}
    for answer in answers:
        by_hash.setdefault(verdict_hash(judge, answer.shown), answer)
    return by_hash


def merge_replies(
    rows: Iterable[Row], asked: Mapping[str, AnswerToJudge], judge: Judge, replies: Mapping[str, Row]
) -> Iterator[Row]:
    """Yield the rows of a verdict file, replaced by ``replies`` (by hash) if they have one, then the new ones."""
    made = {}
    for name, reply in replies.items():
        if name in asked:
            shown = {"judge": judge._asdict(), "input": asked[name].shown, "reply": ""}
            made[name] = {"hash": name, **asked[name].row(reply, shown)}
    for row in rows:
        yield made.pop(row["hash"], row)
    yield from (made[name] for name in asked if name in made)
