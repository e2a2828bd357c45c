"""Forms of a report as data: report.json and its reading, and questions.csv."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from rag_eval.analysis import FORMAT, Report
from rag_eval.common.escaping import as_objects, csv_text, json_source, spreadsheet
from rag_eval.gates.questions import Question, QuestionList, Scores
from rag_eval.metrics import METRICS, column_of, single_score


def render_json(report: Report) -> str:
    """Return the JSON text of ``schemas/report.schema.json``, two spaces for each level."""
    parts = report._asdict().items()
    fields = {name: list(part) if name == "questions" else as_objects(part) for name, part in parts}
    head = {"format": FORMAT, "version": fields.pop("version"), "verdict": fields.pop("verdict"), "pass": report.passed}
    fields = {**head, **fields}
    try:
        data = _dumped(fields)
    except UnicodeEncodeError:  # a path that is not UTF-8; content of files was read strictly
        data = _dumped({name: value if name == "questions" else _spelled(value) for name, value in fields.items()})
    return json_source(data.decode())


def _dumped(fields: dict[str, Any]) -> bytes:
    # The scores of cases become dicts one after another while they are written: there may be many.
    return msgspec.json.format(msgspec.json.encode(fields, enc_hook=Scores.as_dict), indent=2) + b"\n"


def _spelled(value: Any) -> Any:
    """Return ``value`` with bytes that are not UTF-8 as escapes, as on stderr: JSON cannot contain such a path."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled(name): _spelled(item) for name, item in value.items()}
    return [_spelled(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(value: dict[str, Any]) -> Report:
    """Return the report of a valid value; its questions may be converted already."""
    questions = value["questions"]
    if questions and not isinstance(questions[0], Question):
        questions = msgspec.convert(questions, list[Question], strict=False)  # 3.0 is a line, too
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

    def row(question: Question) -> list[object]:
        scores = question.scores.as_dict() if isinstance(question.scores, Scores) else question.scores
        return [
            *(spreadsheet(text) for text in (question.qid, question.run or "", question.question)),
            "true" if question.answerable else "false",
            question.label,
            question.coarse_label,
            *([changes.get((question.qid, question.run), "")] if flip else []),
            question.gold_line,
            question.trace_line,
            *([spreadsheet("; ".join(question.slices))] if slices else []),
            *(single_score(name, scores[name]) if name in scores else "" for name in names),
        ]

    return csv_text([*columns, *slices, *names], map(row, report.questions))
