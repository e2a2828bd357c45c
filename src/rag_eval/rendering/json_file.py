"""report.json: writing the whole report, and reading it back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from sys import intern
from typing import Any

import msgspec

from rag_eval.analysis.baseline import Compared, Effect, Flip
from rag_eval.analysis.diagnosis import Diagnosis
from rag_eval.analysis.gold_impact import GateTurn, GoldChange
from rag_eval.analysis.policy_changes import PolicyChange
from rag_eval.analysis.report import FORMAT, Base, CiRun, Input, Report, SignedAt, SliceResult
from rag_eval.common.escaping import as_objects, json_source
from rag_eval.errors import Finding, Note
from rag_eval.gates.policy import Comparison, GateResult, Statistics
from rag_eval.gates.results import MetricResult, Question, QuestionList, QuestionRow, Scores, score_splitter
from rag_eval.gates.selection import RunScope
from rag_eval.metrics import METRICS
from rag_eval.scoring.scorer import Completeness
from rag_eval.stats.tally import JsonScore

_RECORDS: dict[str, Callable[..., Any]] = {
    "gates": GateResult,
    "comparison": Comparison,
    "slices": SliceResult,
    "flips": Flip,
    "effects": Effect,
    "diagnosis": Diagnosis,
    "notes": Note,
    "inputs": Input,
    "findings": Finding,
    "policy_changes": PolicyChange,
    "gold_changes": GoldChange,
    "gate_turns": GateTurn,
    "statistics": Statistics,
    "completeness": Completeness,
    "base": Base,
    "signed_at": SignedAt,
    "baseline": Compared,
    "scope": RunScope,
    "ci": CiRun,
}
"""The record in each field, or its records if it is a list."""
_SHARED = 20_000
"""The number of different sets of shared scores that are remembered."""


def render(report: Report) -> str:
    """Return the JSON text of ``schemas/report.schema.json``, two spaces for each level."""
    fields = _fields(report)
    try:
        data = _dumped(fields)
    except UnicodeEncodeError:  # a path that is not UTF-8; content of files was read strictly
        data = _dumped({name: value if name == "questions" else _spelled(value) for name, value in fields.items()})
    return json_source(data.decode())


def _dumped(fields: dict[str, Any]) -> bytes:
    split = score_splitter(dict)

    def as_dict(scores: Any) -> dict[str, Any]:  # one after another while they are written: there may be many
        shared, others = split(scores)
        return {**shared, **others}

    return msgspec.json.format(msgspec.json.encode(fields, enc_hook=as_dict), indent=2) + b"\n"


def _spelled(value: Any) -> Any:
    """Return ``value`` with bytes that are not UTF-8 as escapes, as on stderr: JSON cannot contain such a path."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled(name): _spelled(item) for name, item in value.items()}
    return [_spelled(item) for item in value] if isinstance(value, (list, tuple)) else value


def _fields(report: Report) -> dict[str, Any]:
    """Return the report as plain values; the scores of its cases stay as they are stored."""
    questions = [question._asdict() for question in report.questions]
    fields = {name: questions if name == "questions" else as_objects(part) for name, part in report._asdict().items()}
    head = {"format": FORMAT, "version": fields.pop("version"), "verdict": fields.pop("verdict"), "pass": report.passed}
    return {**head, **fields}


class QuestionConverter:
    """Makes cases of the questions of reports; equal values become one object, because there may be many."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[str, ...], tuple[Mapping[str, int], list[int], list[int]]] = {}
        self._shared: dict[tuple[Any, ...], tuple[JsonScore, ...]] = {}

    def convert(self, rows: Sequence[QuestionRow]) -> list[Question]:
        """Return the cases of questions."""
        return [
            Question(
                row.qid,
                row.run,
                row.question,
                row.answerable,
                intern(row.label),
                intern(row.coarse_label),
                self._scores(row.scores),
                int(row.gold_line),
                int(row.trace_line),
                row.gold_sha256,
                row.slices,
            )
            for row in rows
        ]

    def _scores(self, scores: Mapping[str, JsonScore]) -> Scores:
        """Return scores in their storage order: shared columns first, then the columns in which cases differ."""
        names, values = tuple(scores), list(scores.values())
        if names not in self._layouts:
            shares = [_is_shared(name) for name in names]
            shared, other = ([index for index, share in enumerate(shares) if share is side] for side in (True, False))
            order = {names[index]: position for position, index in enumerate((*shared, *other))}
            self._layouts[names] = order, shared, other
        positions, shared, other = self._layouts[names]
        shared_scores = tuple([values[index] for index in shared])
        if len(self._shared) > _SHARED:
            self._shared.clear()
        remembered = self._shared.setdefault((names, shared_scores), shared_scores)
        return Scores(positions, remembered, tuple([values[index] for index in other]))


@cache
def _is_shared(column: str) -> bool:
    """Return whether cases with equal features have equal scores in a column."""
    metric = METRICS.get(re.sub(r"@\d+$", "@k", column))
    return metric is not None and metric.depends_on != "case"


def from_json(value: dict[str, Any]) -> Report:
    """Return the report of a valid value; its questions may be converted already, by :class:`QuestionConverter`."""
    questions = value["questions"]
    if questions and not isinstance(questions[0], Question):
        questions = QuestionConverter().convert(msgspec.convert(questions, list[QuestionRow]))
    fields = {name: part for name, part in value.items() if name not in ("format", "pass", "questions")}
    report: Report = _record(Report, {**fields, "questions": QuestionList(questions)})
    return report


def _record(kind: Callable[..., Any], entry: dict[str, Any]) -> Any:
    """Return a named tuple of its fields: lists become tuples, and whole numbers int, which JSON may write as 3.0."""
    whole = _whole_numbers(kind)
    fields: dict[str, Any] = {}
    for name, part in entry.items():
        record = _RECORDS.get(name)
        if name == "metrics":
            fields[name] = {metric: _record(MetricResult, result) for metric, result in part.items()}
        elif isinstance(part, list):
            fields[name] = tuple(_record(record, item) for item in part) if record else tuple(part)
        elif record and isinstance(part, dict):
            fields[name] = _record(record, part)
        else:
            fields[name] = int(part) if name in whole and isinstance(part, float) else part
    return kind(**fields)


@cache
def _whole_numbers(kind: Callable[..., Any]) -> frozenset[str]:
    """Return the fields of a named tuple that are whole numbers."""
    texts = {name: getattr(hint, "__forward_arg__", hint) for name, hint in kind.__annotations__.items()}
    return frozenset(name for name, text in texts.items() if text in ("int", "int | None"))
