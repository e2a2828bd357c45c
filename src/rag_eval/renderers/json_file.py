"""report.json: the whole report, and the way back from it."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from operator import itemgetter
from sys import intern

from rag_eval.comparison.baseline import Compared, Effect, Flip
from rag_eval.comparison.blast import GateTurn, GoldChange
from rag_eval.comparison.policy import PolicyChange
from rag_eval.diagnosis import Diagnosis
from rag_eval.finding import Finding
from rag_eval.judging.gates import Comparison, Judged, Statistics
from rag_eval.judging.results import MetricResult, Question, Scores
from rag_eval.judging.scope import Scope
from rag_eval.listed import Halves, Listed
from rag_eval.metrics import METRICS
from rag_eval.quick_json import orjson
from rag_eval.remarks import Input, Remark
from rag_eval.report import FORMAT, Base, Report, SignedAt, SliceResult
from rag_eval.safe import json_source
from rag_eval.scoring.scorecard import Completeness
from rag_eval.typed import NamedTuple, filled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
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
    fields = _fields(report)
    try:
        data = _dumped(fields)
    except orjson.JSONEncodeError:  # a path that is not UTF-8; what files hold was read strictly
        data = _dumped({name: value if name == "questions" else _spelled(value) for name, value in fields.items()})
    return json_source(data.decode())


def _dumped(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields, _plain, orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _spelled(value: Any) -> Any:
    """``value`` with what is no UTF-8 in escapes, as stderr has it: JSON cannot hold such a path."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled(name): _spelled(item) for name, item in value.items()}
    return [_spelled(item) for item in value] if isinstance(value, (list, tuple)) else value


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


class _Shared(NamedTuple):
    """Scores that cases share as they were read, and what is kept of them.

    ``places`` says where a case's scores stand, by the names of those that are its own.
    """

    read: dict[str, Any]
    kept: tuple[float, ...]
    places: dict[tuple[str, ...], dict[str, int]]


class Questions:
    """Makes cases of the entries of reports, of which there may be many: what they have alike they share."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, int]]] = {}
        self._shared: dict[int, _Shared] = {}
        self._kept: dict[tuple[tuple[str, ...], tuple[float, ...]], tuple[float, ...]] = {}

    @property
    def listed(self) -> Listed:
        """How the questions of a report are to be read."""
        return Listed("questions", "scores", alike, self.made)

    def made(self, entries: Sequence[dict[str, Any]]) -> Iterator[Question]:
        """The cases of entries that keep the schema: by the column, which takes a third of the time."""
        if not entries:
            return iter(())
        columns = zip(*map(itemgetter(*Question._fields), entries), strict=True)
        qids, runs, texts, answerable, labels, examples, scores, gold_lines, trace_lines, hashes, slices = columns
        own = map(intern, labels), map(intern, examples), map(self._scores, scores)
        lines = map(int, gold_lines), map(int, trace_lines)
        return filled(Question, [qids, runs, texts, answerable, *own, *lines, hashes, map(tuple, slices)])

    def _scores(self, entry: dict[str, Any] | Halves) -> Mapping[str, Shown]:
        if not isinstance(entry, Halves):
            entry = Halves(*({name: entry[name] for name in entry if alike(name) is side} for side in (True, False)))
        shared, own = entry
        found, more = self._of_shared(shared), tuple(own.values())
        if found is None or not set(map(type, more)) <= {float}:
            # JSON has no tuples, and whole numbers may be of any size.
            return {
                name: tuple(part) if name in LABELLED else part for name, part in chain(shared.items(), own.items())
            }
        names = tuple(own)
        places = found.places.get(names)
        if places is None:
            places = found.places[names] = {name: place for place, name in enumerate(chain(shared, names))}
        return Scores(places, found.kept, more)

    def _of_shared(self, shared: dict[str, Any]) -> _Shared | None:
        """The scores that cases share as one object; None where they are not all of the kind that we write."""
        found = self._shared.get(id(shared))
        if found is not None:
            return found
        kept = tuple(shared.values())
        if not set(map(type, kept)) <= {float}:
            return None
        if len(self._shared) > _SHARED:
            self._shared.clear()
        # The same numbers under other names are not the same: whoever looks at each of the kept once takes them for it.
        names = tuple(shared)
        # What was read is held, so that no other one takes its id.
        own = _Shared(shared, self._kept.setdefault((names, kept), kept), self._places.setdefault(names, {}))
        self._shared[id(shared)] = own
        return own


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
    questions = value["questions"]
    made_already = bool(questions) and isinstance(questions[0], Question)
    fields["questions"] = tuple(questions if made_already else Questions().made(questions))
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
    return frozenset(name for name, said in kind.__annotations__.items() if said in ("int", "int | None"))


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
