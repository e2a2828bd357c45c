"""Ask a language model to judge answers, and measure how far people agree with it. Never part of scoring.

This module asks an OpenAI-compatible endpoint for verdicts, turns its replies into rows of the verdict file, and reads
labels: the scores that people gave to answers, from CSV or from a spot-check.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.collecting.request_map import RequestMap
from rag_eval.collecting.systems import HttpSystem
from rag_eval.common.escaping import quoted
from rag_eval.contract import MOST, SCORES, Judge, digest_of, parse_reply, verdict_hash
from rag_eval.errors import UsageError
from rag_eval.importers import ImportInputs
from rag_eval.importers.documents import csv_rows, objects
from rag_eval.importers.unwrap import number
from rag_eval.stats.sampling import hash_order, root_counts

Row = dict[str, Any]
KEY = "OPENAI_API_KEY"
_PLACES = re.compile(r"\{(rubric|input)\}")
_MILLION = 1_000_000
_REPLY = ("reply", *SCORES, "unsupported_claims", "error", "ts", "usage")
Scale = tuple[float, float]  # of labels
BINARY = (0.0, 1.0)
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_KNOWN = ("qid", "run", "rater", "input", "weight", "unit", "at", "note", "seed", "scale", *SCORES)


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


class Label(NamedTuple):
    """One person's scores of one answer, and their position in a file.

    ``input`` is the digest of the judged input, if it is known; ``weight`` is how many answers the answer represents in
    a stratified sample. Answers of one ``unit``, which is the question unless stated, depend on one another.
    """

    qid: str
    run: str
    rater: str
    input: str
    weight: float
    unit: str
    scores: Mapping[str, float]
    file: str
    line: int


def read_labels(
    inputs: ImportInputs, columns: Mapping[str, str], scale: Scale | None
) -> tuple[list[Label], dict[str, Scale]]:
    """Return the labels of all files with scores from 0 to 5, or 0 and 1, and the scale of each score in the files.

    ``columns`` names the column of a score if it differs from the score's name. Problems go to ``inputs``.
    """
    rows = [(path, line, row) for path in inputs.paths for line, row in _rows(inputs, path, columns)]
    stated = [score for score in SCORES if any(score in row for _, _, row in rows)]
    # Without a scale it is 0 to 1 if every label is 0, 1, yes or no, and none is from a spot-check; otherwise 0 to 5.
    is_checked = any("scale" in row for _, _, row in rows)
    scales: dict[str, Scale] = {}
    for score in stated:
        is_binary = all(_number(row[score]) in BINARY for _, _, row in rows if score in row)
        scales[score] = scale or (BINARY if is_binary and not is_checked else (0.0, float(MOST)))
    if rows and not scales and not inputs.problems:
        names = ", ".join(columns.get(score, score) for score in SCORES)
        hint = "Name the column of a score: --column groundedness=NAME."
        inputs.problem(rows[0][0], 1, "", f"has no score in any of the columns {names}", hint)
    labels: dict[tuple[str, ...], Label] = {}
    for path, line, row in rows:
        label = _label(inputs, path, line, row, scales)
        first = labels.setdefault((label.qid, label.run, label.rater, label.input), label) if label else None
        if label and first and label is not first:
            who = f"by {quoted(label.rater, 40)}" if label.rater else "without a rater"
            message = f"second label on {quoted(label.qid, 60)} {who}; the first is {first.file}:{first.line}"
            hint = "Remove one, or add a column rater with the names of the people."
            inputs.problem(path, line, "", message, hint)
    if not rows and not inputs.problems:
        inputs.problem(inputs.paths[0], 1, "", "has no labels", "Write one row for each answer: qid,groundedness")
    return list(labels.values()), scales


def _rows(inputs: ImportInputs, path: str, columns: Mapping[str, str]) -> Iterator[tuple[int, Row]]:
    """Yield lines and rows with the names of the scores as keys; empty cells are left out."""
    stated = {name: score for score, name in columns.items()}
    first = next(inputs.lines(path), None)
    if first is None:  # missing, which is a problem already, or empty
        return
    is_json = first[1].lstrip(b"\xef\xbb\xbf \t")[:1] in (b"{", b"[")
    rows: Iterator[tuple[int, Row]] = objects(inputs, path, "a label") if is_json else csv_rows(inputs, path)
    for line, row in rows:
        names = {name.strip().lstrip("\ufeff"): name for name in row}
        lacking = [name for name in ("qid", *stated) if name not in names]
        if lacking:
            hint = "Check --column." if lacking[0] != "qid" else "Name the columns in the first line: qid,groundedness"
            hint = "Separate columns by commas." if not is_json and b"," not in first[1] else hint
            inputs.problem(path, line if is_json else 1, "", f"has no column {quoted(lacking[0])}", hint)
            return
        renamed = {stated.get(name, name): row[key] for name, key in names.items() if name in stated or name in _KNOWN}
        yield line, {name: value for name, value in renamed.items() if value not in ("", None)}


def _number(value: Any, *, words: bool = True) -> float | None:
    word = str(value).strip().lower()
    return _WORDS[word] if words and word in _WORDS else number(value)


def _label(inputs: ImportInputs, path: str, line: int, row: Row, scales: Mapping[str, Scale]) -> Label | None:
    """Return a label with scores on the scale of the judge, or None with a problem."""
    scores = {}
    for score, (low, high) in scales.items():
        if score not in row:
            continue
        value = _number(row[score], words=(low, high) == BINARY)
        if value is None or not low <= value <= high:
            message = f"{score} {quoted(row[score], 40)} is not a number from {low:g} to {high:g}"
            inputs.problem(path, line, "", message, "Correct it, leave it empty, or name another scale with --scale.")
            return None
        scores[score] = value if high == 1 and low == 0 else (value - low) / (high - low) * MOST
    weight = _number(row.get("weight", 1), words=False)
    if weight is None or not 1e-6 <= weight <= 1e9:
        message = f"weight {quoted(row['weight'], 40)} is not a number from 0.000001 to 1000000000"
        inputs.problem(path, line, "", message, "Write how many answers it represents.")
        return None
    if not str(row.get("qid", "")).strip():
        inputs.problem(path, line, "", "has no qid", "Write the qid of the answer, or remove the row.")
        return None
    texts = {name: str(row.get(name, "")).strip() for name in ("qid", "run", "rater", "input")}
    unit = str(row.get("unit", "")).strip() or texts["qid"]
    return Label(**texts, weight=weight, unit=unit, scores=scores, file=path, line=line)


def sample_verdicts(rows: Sequence[Row], kinds: Mapping[str, str], size: int, seed: str) -> list[tuple[Row, Row]]:
    """Draw verdicts by the judge's score and the kind of question, as finely as ``size`` allows.

    Each comes behind the fields of a label that identify the graded answer, and say how many verdicts it represents.
    Rare grades are drawn more often, and weigh less. The order of the rows does not matter.
    """
    strata: dict[str, list[Row]] = {}
    cuts: tuple[Callable[[Row], str], ...] = (
        lambda row: f"{_graded(row)}, {kinds.get(row['qid'], '')}",
        _graded,
        lambda _: "all",
    )
    for stratum_of in cuts:
        strata = {name: list(some) for name, some in groupby(sorted(rows, key=stratum_of), key=stratum_of)}
        if len(strata) <= size:
            break
    counts, drawn = root_counts(strata, size), list[tuple[Row, Row]]()
    for name, some in strata.items():
        drawing = {"scale": "0-5", "weight": round(len(some) / counts[name], 6), "seed": seed}
        for row in hash_order(some, itemgetter("hash"), f"{seed} ")[: counts[name]]:
            about: Row = {field: row[field] for field in ("qid", "run") if field in row}
            drawn.append(({**about, "input": digest_of(row["input"]), **drawing}, row))
    return hash_order(drawn, lambda pair: pair[1]["hash"], f"{seed} order ")


def _graded(row: Row) -> str:
    score = "correctness" if row.get("groundedness") is None else "groundedness"
    return f"{score} {row.get(score)}"
