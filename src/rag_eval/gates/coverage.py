"""Which metrics apply to the files at hand, which gates guard them, and which fields would switch the others on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.contract import OPTIONAL
from rag_eval.gates.scope import asked

if TYPE_CHECKING:
    from rag_eval.contract import Gold, Trace
    from rag_eval.gates.policy import Policy
    from rag_eval.metrics import Measure, Metric
    from rag_eval.scoring.scorecard import Scorecard

_WITHIN = "trace.chunks."


class Field(NamedTuple):
    """An optional field: in how many of the rows that could have it, it is."""

    name: str
    present: int
    rows: int


class Covered(NamedTuple):
    """A metric: to how many cases it applies, the gates on it, and the fields that it needs and no row has."""

    name: str
    perspective: str
    cases: int
    gates: tuple[str, ...]
    missing: tuple[str, ...]


class Unlocked(NamedTuple):
    """Fields that no row has, and the metrics that they would switch on."""

    fields: tuple[str, ...]
    metrics: tuple[str, ...]


class Presence:
    """Counts in how many gold items and traces each optional field is, while they pass by."""

    def __init__(self, golds: Iterable[Gold]) -> None:
        items = list(golds)
        self._rows = {"gold": len(items), "trace": 0}
        has = {name: _finder(name) for name in OPTIONAL}
        self._of_traces = [(name, there) for name, there in has.items() if name.startswith("trace.")]
        self._there = {name: sum(map(there, items)) for name, there in has.items() if name.startswith("gold.")}
        self._there.update(dict.fromkeys((name for name, _ in self._of_traces), 0))

    def watch(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces as they are."""
        for trace in traces:
            self._rows["trace"] += 1
            for name, there in self._of_traces:
                self._there[name] += there(trace)
            yield trace

    def fields(self) -> dict[str, Field]:
        """What was counted, by name."""
        return {name: Field(name, there, self._rows[name.partition(".")[0]]) for name, there in self._there.items()}


def _finder(name: str) -> Callable[[Any], bool]:
    """What says whether a gold item or a trace has a field; a field of chunks is there where one chunk has it."""
    get = attrgetter(OPTIONAL[name].partition(".")[2])
    if not name.startswith(_WITHIN):
        return lambda row: get(row) is not None
    own = name[len(_WITHIN) :]
    return lambda row: any([getattr(chunk, own) is not None for chunk in get(row) or ()])


def covered(card: Scorecard, policy: Policy, fields: Mapping[str, Field], about: Mapping[str, Any]) -> list[Covered]:
    """Every metric that was measured, once for all its values."""
    tallies, gates = card.tallies(), asked(policy)
    found: dict[str, Covered] = {}
    for one in card.measures:
        cases = tallies[one.column].total() if one.metric.level == "case" else int(one.score(about) is not None)
        guards = tuple(f"{gate.label} {gate.direction} {gate.threshold}" for gate in gates if gate.name == one.name)
        before = found.get(one.metric.name)
        known = before.gates if before else ()
        missing = _missing(one, fields, about)
        found[one.metric.name] = Covered(one.metric.name, one.metric.perspective, cases, (*known, *guards), missing)
    return list(found.values())


def _missing(one: Measure, fields: Mapping[str, Field], about: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in one.metric.needs if not _there(name, fields, about))


def _there(name: str, fields: Mapping[str, Field], about: Mapping[str, Any]) -> bool:
    if name in fields:
        return fields[name].present > 0
    value: Any = about
    for part in name.split(".")[1:]:
        value = value.get(part) if isinstance(value, dict) else None
    return value is not None


def unlocked(found: Sequence[Covered]) -> list[Unlocked]:
    """What to add, those fields first that switch on the most metrics."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        if not one.cases and one.missing:
            groups.setdefault(tuple(sorted(one.missing)), []).append(one.name)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), len(group[0]), group[0]))
    return [Unlocked(fields, tuple(names)) for fields, names in ranked]


def idle(found: Sequence[Covered]) -> list[str]:
    """The metrics whose fields are there and which apply to no case all the same."""
    return [one.name for one in found if not one.cases and not one.missing]


def partly(found: Sequence[Covered], fields: Mapping[str, Field], needed: Mapping[str, Metric]) -> list[Field]:
    """The fields that metrics in use need and that only some rows have."""
    names = dict.fromkeys(name for one in found if one.cases for name in needed[one.name].needs if name in fields)
    return [field for name in names if 0 < (field := fields[name]).present < field.rows]
