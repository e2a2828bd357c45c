"""report.json: the whole report, and the way back from it."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from sys import intern

import orjson

from rag_eval.baseline import Compared, Effect, Flip
from rag_eval.blast import GateTurn, GoldChange
from rag_eval.diagnosis import Diagnosis
from rag_eval.finding import Finding
from rag_eval.gates import Comparison, Judged, Statistics
from rag_eval.listed import Halves, Listed
from rag_eval.metrics import METRICS
from rag_eval.policy import PolicyChange
from rag_eval.remarks import Input, Remark
from rag_eval.report import FORMAT, Base, Report, SignedAt, SliceResult
from rag_eval.results import MetricResult, Question, Scores
from rag_eval.scope import Scope
from rag_eval.scorecard import Completeness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rag_eval.tally import Shown

LABELLED = tuple(name for name, metric in METRICS.items() if metric.scale == "labelled")
_LISTS = {
    "flips": Flip,
    "effects": Effect,
    "diagnosis": Diagnosis,
    "notes": Remark,
    "inputs": Input,
    "findings": Finding,
    "policy_changes": PolicyChange,
    "gold_changes": GoldChange,
    "gate_turns": GateTurn,
}
_SHARED = 20_000
"""Of so many sets of scores it is remembered what they come to."""
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
    for name in (*_LISTS, "questions"):
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


class Questions:
    """Makes cases of the entries of reports, of which there may be many: what they have alike they share."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[str, ...], ...], dict[str, int]] = {}
        self._kept: dict[int, tuple[dict[str, Any], tuple[float, ...]]] = {}
        self._known: dict[tuple[float, ...], tuple[float, ...]] = {}

    @property
    def listed(self) -> Listed:
        """How the questions of a report are to be read."""
        return Listed("questions", "scores", alike, self.made)

    def made(self, entry: dict[str, Any]) -> Question:
        """The case of an entry that keeps the schema."""
        get = entry.__getitem__
        labels, lines = (
            (intern(get("label")), intern(get("example08"))),
            (int(get("gold_line")), int(get("trace_line"))),
        )
        rest = *labels, self._scores(get("scores")), *lines, get("gold_sha256"), tuple(get("slices"))
        return Question(get("qid"), get("run"), get("question"), get("answerable"), *rest)

    def _scores(self, entry: dict[str, Any] | Halves) -> Mapping[str, Shown]:
        if not isinstance(entry, Halves):
            entry = Halves(*({name: entry[name] for name in entry if alike(name) is side} for side in (True, False)))
        shared, own = entry
        kept, more = self._of_shared(shared), tuple(own.values())
        if kept is None or not set(map(type, more)) <= {float}:
            # JSON has no tuples, and whole numbers may be of any size.
            return {
                name: tuple(part) if name in LABELLED else part for name, part in chain(shared.items(), own.items())
            }
        names = tuple(shared), tuple(own)
        places = self._places.get(names)
        if places is None:
            places = self._places[names] = {name: place for place, name in enumerate(chain(*names))}
        return Scores(places, kept, more)

    def _of_shared(self, shared: dict[str, Any]) -> tuple[float, ...] | None:
        """The scores that cases share as one object; None where they are not all of the kind that we write."""
        found = self._kept.get(id(shared))
        if found is not None:
            return found[1]
        kept = tuple(shared.values())
        if not set(map(type, kept)) <= {float}:
            return None
        kept = self._known.setdefault(kept, kept)
        if len(self._kept) > _SHARED:
            self._kept.clear()
        self._kept[id(shared)] = shared, kept  # held, so that no other one takes its id
        return kept


@cache
def alike(column: str) -> bool:
    """Whether many cases score alike in a column, as the profile of an answer says."""
    metric = METRICS.get(re.sub(r"@\d+$", "@k", column))
    return metric is not None and (metric.by_profile or metric.quietly)


def from_json(value: dict[str, Any]) -> Report:
    """The report of a value that keeps the schema; its questions may be made already, by :class:`Questions`."""
    fields = {name: entry for name, entry in value.items() if name not in ("format", "pass")}
    for name, kind in _LISTS.items():
        fields[name] = tuple(_made(kind, entry) for entry in value[name])
    question = Questions().made
    fields["questions"] = tuple([one if isinstance(one, Question) else question(one) for one in value["questions"]])
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
