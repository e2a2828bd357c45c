"""Forms of a report as data: report.json and its reading, and questions.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from sys import intern
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from rag_eval.analysis import FORMAT, Report
from rag_eval.common.escaping import as_objects, csv_text, json_source, spreadsheet
from rag_eval.gates.questions import Question, QuestionList, QuestionRow, Scores, score_splitter
from rag_eval.metrics import METRICS, column_of, of_column, single_score
from rag_eval.stats.tally import JsonScore

_SHARED = 20_000
"""The number of different sets of shared scores that are remembered."""


def render_json(report: Report) -> str:
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
            # Cases with equal features have equal scores in these columns.
            shares = [(metric := of_column(name)) is not None and metric.depends_on != "case" for name in names]
            shared, other = ([index for index, share in enumerate(shares) if share is side] for side in (True, False))
            order = {names[index]: position for position, index in enumerate((*shared, *other))}
            self._layouts[names] = order, shared, other
        positions, shared, other = self._layouts[names]
        shared_scores = tuple([values[index] for index in shared])
        if len(self._shared) > _SHARED:
            self._shared.clear()
        remembered = self._shared.setdefault((names, shared_scores), shared_scores)
        return Scores(positions, remembered, tuple([values[index] for index in other]))


def from_json(value: dict[str, Any]) -> Report:
    """Return the report of a valid value; its questions may be converted already, by :class:`QuestionConverter`."""
    questions = value["questions"]
    if questions and not isinstance(questions[0], Question):
        questions = QuestionConverter().convert(msgspec.convert(questions, list[QuestionRow]))
    fields = {name: part for name, part in value.items() if name not in ("format", "pass", "questions")}
    report: Report = _converted(Report, {**fields, "questions": QuestionList(questions)})
    return report


def _converted(kind: Any, value: Any) -> Any:
    """Return a value as its type: an object as a named tuple, a list as a tuple, 3.0 as int for a whole number."""
    if kind is Any or value is None:
        return value
    if isinstance(value, list):
        return tuple([_converted(get_args(kind)[0], item) for item in value])
    if isinstance(value, dict):
        if get_origin(kind) is Mapping:
            return {name: _converted(get_args(kind)[1], part) for name, part in value.items()}
        types = _types(kind)
        return kind(**{name: _converted(types[name], part) for name, part in value.items()})
    return int(value) if kind is int else value


@cache
def _types(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a named tuple, without their None."""
    types = get_type_hints(kind).items()
    return {name: get_args(hint)[0] if isinstance(hint, UnionType) else hint for name, hint in types}


def render_csv(report: Report) -> str:
    """Return CSV by RFC 4180: rows are questions, columns metrics; a cell is empty if the metric does not apply.

    With a baseline, a column shows which questions flipped. Text that a spreadsheet would run as a formula gets an
    apostrophe.
    """
    named = map(column_of, report.metrics)  # several values of a metric share one column
    names = list(dict.fromkeys(name for name in named if name not in METRICS or METRICS[name].level == "case"))
    changes = {(flip.qid, flip.run): "fixed" if flip.is_fixed else "broken" for flip in report.flips}
    flip = ["flip"] if report.baseline is not None else []
    slices = ["slices"] if any(question.slices for question in report.questions) else []
    columns = ["qid", "run", "question", "answerable", "label", "coarse_label", *flip, "gold_line", "trace_line"]
    positions = {name: index for index, name in enumerate(names)}
    split = score_splitter(lambda shared: [str(shared.get(name, "")) for name in names])

    def row(question: Question) -> list[object]:
        shared, others = split(question.scores)
        cells: list[object] = [*shared]
        for name in others.keys() & positions:
            cells[positions[name]] = single_score(name, others[name])
        return [
            *(spreadsheet(text) for text in (question.qid, question.run or "", question.question)),
            "true" if question.answerable else "false",
            question.label,
            question.coarse_label,
            *([changes.get((question.qid, question.run), "")] if flip else []),
            question.gold_line,
            question.trace_line,
            *([spreadsheet("; ".join(question.slices))] if slices else []),
            *cells,
        ]

    return csv_text([*columns, *slices, *names], map(row, report.questions))
