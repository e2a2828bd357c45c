"""report.json: the whole report, and the way back from it."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from rag_eval.baseline import Compared, Effect, Flip
from rag_eval.blast import GateTurn, GoldChange
from rag_eval.diagnosis import Diagnosis
from rag_eval.finding import Finding
from rag_eval.gates import Comparison, Judged, Statistics
from rag_eval.metrics import METRICS
from rag_eval.policy import PolicyChange
from rag_eval.remarks import Input, Remark
from rag_eval.report import FORMAT, Base, Report, SignedAt, SliceResult
from rag_eval.results import MetricResult, Question, Scores
from rag_eval.scope import Scope
from rag_eval.scoring import Completeness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LABELLED = tuple(name for name, metric in METRICS.items() if metric.scale == "labelled")
_LISTS = {
    "flips": Flip,
    "effects": Effect,
    "diagnosis": Diagnosis,
    "questions": Question,
    "notes": Remark,
    "inputs": Input,
    "findings": Finding,
    "policy_changes": PolicyChange,
    "gold_changes": GoldChange,
    "gate_turns": GateTurn,
}
_MAYBE: dict[str, Callable[..., Any]] = {"base": Base, "signed_at": SignedAt, "baseline": Compared, "scope": Scope}


def render(report: Report) -> str:
    """The JSON text of ``schemas/report.schema.json``, two spaces a level."""
    # The scores of many cases become dicts one after another, as they are written.
    text = orjson.dumps(_fields(report), _plain, orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    # It can only stand in a string, and means the same there: GitHub's runner would take a printed ##[ for a command.
    return text.replace("##[", "##\\u005b")


def as_json(report: Report) -> dict[str, Any]:
    """The report in plain dicts, lists, strings and numbers."""
    fields = _fields(report)
    fields["questions"] = [{**case, "scores": _plain(case["scores"])} for case in fields["questions"]]
    return fields


def _fields(report: Report) -> dict[str, Any]:
    """The report in plain values but for the scores of its cases."""
    fields = report._asdict()
    for name in _LISTS:
        fields[name] = [entry._asdict() for entry in fields[name]]
    fields["metrics"] = _of_metrics(report.metrics)
    fields["completeness"] = report.completeness._asdict()
    fields["statistics"] = report.statistics._asdict()
    fields["gates"] = [_of_gate(gate) for gate in report.gates]
    fields["slices"] = [{**part._asdict(), "metrics": _of_metrics(part.metrics)} for part in report.slices]
    for name in _MAYBE:
        fields[name] = fields[name]._asdict() if fields[name] else None
    head = {"format": FORMAT, "version": fields.pop("version"), "verdict": fields.pop("verdict"), "pass": report.passed}
    return {**head, **fields}


def _plain(scores: Any) -> dict[str, Any]:
    if isinstance(scores, Scores):
        return scores.as_dict()
    return dict(scores)


def from_json(value: dict[str, Any]) -> Report:
    """The report of a value that keeps the schema."""
    fields = {name: entry for name, entry in value.items() if name not in ("format", "pass")}
    for name, kind in _LISTS.items():
        fields[name] = tuple(_made(kind, entry) for entry in value[name])
    fields["questions"] = tuple(map(_labelled, fields["questions"]))
    fields["metrics"] = _metrics(value["metrics"])
    fields["statistics"] = _made(Statistics, value["statistics"])
    fields["gates"] = tuple(_gate(entry) for entry in value["gates"])
    fields["slices"] = tuple(
        _made(SliceResult, {**part, "metrics": _metrics(part["metrics"])}) for part in value["slices"]
    )
    fields["completeness"] = _made(Completeness, value["completeness"])
    for name, maybe in _MAYBE.items():
        fields[name] = _made(maybe, value[name]) if value[name] else None
    made: Report = _made(Report, fields)
    return made


def _made(kind: Callable[..., Any], entry: dict[str, Any]) -> Any:
    """A noun of its fields: lists frozen, and whole numbers whole, which JSON may write as 3.0."""
    whole = _whole(kind)
    return kind(**{name: _fit(part, name in whole) for name, part in entry.items()})


@cache
def _whole(kind: Callable[..., Any]) -> frozenset[str]:
    """The fields of a noun that are whole numbers."""
    kinds = {name: str(getattr(said, "__forward_arg__", said)) for name, said in kind.__annotations__.items()}
    return frozenset(name for name, said in kinds.items() if said in ("int", "int | None"))


def _fit(part: Any, whole: bool) -> Any:
    if isinstance(part, list):
        return tuple(part)
    return int(part) if whole and isinstance(part, float) else part


def _labelled(case: Question) -> Question:
    """With labelled scores as such: JSON has no tuples."""
    found = {name: tuple(case.scores[name]) for name in LABELLED if name in case.scores}  # type: ignore[arg-type]
    return case._replace(scores={**case.scores, **found}) if found else case  # type: ignore[dict-item]


def _of_gate(gate: Judged) -> dict[str, Any]:
    return {**gate._asdict(), "comparison": gate.comparison._asdict() if gate.comparison else None}


def _gate(entry: dict[str, Any]) -> Judged:
    found = entry["comparison"]
    made: Judged = _made(Judged, {**entry, "comparison": _made(Comparison, found) if found else None})
    return made


def _of_metrics(metrics: Mapping[str, MetricResult]) -> dict[str, Any]:
    return {name: result._asdict() for name, result in metrics.items()}


def _metrics(value: dict[str, Any]) -> dict[str, MetricResult]:
    return {name: _made(MetricResult, result) for name, result in value.items()}
