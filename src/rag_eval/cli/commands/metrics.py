"""The command ``rag-eval metrics``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.cli.commands._shared import (
    add_format,
    add_inputs,
    add_option,
    gates_path,
    names,
    stdin_contents,
    uncollected,
)
from rag_eval.common.escaping import json_text, some
from rag_eval.contract import OPTIONAL
from rag_eval.metrics import METRICS, perspectives_of
from rag_eval.readers.gold_file import read_gold
from rag_eval.rendering import markdown, terminal
from rag_eval.rendering.document import PLAIN, Paragraph, Section, Table, paragraphs, table_of
from rag_eval.run.inputs import open_policy, paired_traces, read_run_json, select_measures
from rag_eval.run.options import Options
from rag_eval.scoring.case_scorer import metric_scorer

if TYPE_CHECKING:
    from rag_eval.contract import Gold, Trace
    from rag_eval.gates.policy import Policy
    from rag_eval.metrics import Metric
    from rag_eval.scoring.scorecard import Scorecard

FORMATS = ("table", "markdown", "json")
_NAMED = 12
_IDLE = "These metrics have all their fields, but no case to score (rag-eval explain NAME):"


_WITHIN = "trace.chunks."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_inputs(parser)
    add_option(parser, "--perspective", "P[,P]", "only these: retrieval,citations", default=(), type=names)
    add_format(parser, FORMATS)


def run(args: argparse.Namespace) -> int:
    """List the metrics: which ones apply to your files, and which fields would enable the others.

    Examples:
      rag-eval metrics
      rag-eval metrics --perspective retrieval
      rag-eval metrics --gold eval/gold.jsonl --trace runs/trace.jsonl --format json
    """
    perspectives = perspectives_of(args.perspective)
    contents = stdin_contents(args)
    inputs = args.gold, args.trace, gates_path(args.gates), args.k
    options = Options(*inputs, perspectives=perspectives, contents=contents)
    with uncollected():
        known = _known(options, is_required=bool(args.gold or args.trace))
    if args.format == "json":
        sys.stdout.write(json_text(_as_json(perspectives, known)))
        return 0
    sections = _listing(perspectives) if known is None else _sections(known, args.format)
    sys.stdout.write((terminal if args.format == "table" else markdown).write_page(sections))
    return 0


class _Known(NamedTuple):
    """The fields in the files."""

    gold: str
    trace: str
    covered: list[Covered]
    fields: dict[str, Field]


def _known(options: Options, *, is_required: bool) -> _Known | None:
    """Return the fields in the files; None if no files are at the usual paths and none ``is_required``.

    Gold is read whole, traces are a stream. InputError is raised if they are unreadable.
    """
    reader, policy, digests = open_policy(options)
    if not is_required and not (os.path.lexists(policy.gold) and os.path.lexists(policy.trace)):
        return None
    golds = read_gold(reader, policy.gold)
    presence = Presence(golds.values())
    scorer = metric_scorer(golds, select_measures(options, policy), policy.settings)
    for trace in presence.watch(paired_traces(reader, golds, policy.trace, digests)):
        scorer.add([trace])
    about = read_run_json(reader, policy, digests)
    reader.ledger.stop_on_problems()
    fields = presence.fields()
    return _Known(policy.gold, policy.trace, covered(scorer.close(), policy, fields, about or {}), fields)


def _listing(perspectives: tuple[str, ...]) -> list[Section]:
    rows = [
        [metric.name, metric.better, metric.perspective, metric.summary]
        for metric in METRICS.values()
        if not perspectives or metric.perspective in perspectives
    ]
    return [Section("", [Table("Metrics", ["metric", "better", "perspective", "description"], rows)])]


def _sections(present: _Known, form: str) -> list[Section]:
    say = (PLAIN if form == "table" else markdown.FORMATTER).code
    used = [item for item in present.covered if item.cases]
    where = (
        f"{len(used)} of {len(present.covered)} metrics apply to {say(present.gold, 80)} and {say(present.trace, 80)}."
    )
    rows = [
        [item.name, item.perspective, str(item.cases), ", ".join(say(gate, 60) for gate in item.gates)] for item in used
    ]
    added = [
        [" and ".join(item.fields), str(len(item.metrics)), some(item.metrics, _NAMED)]
        for item in unlocked(present.covered)
    ]
    partial = [
        [item.name, f"{item.present} of {item.rows}"] for item in partly(present.covered, present.fields, METRICS)
    ]
    nothing = idle(present.covered)
    sections = [
        Section(
            "Metrics that apply",
            [Paragraph(where), *table_of("Metrics that apply", ["metric", "perspective", "cases", "gates"], rows)],
        ),
        Section("Add to your files", table_of("Fields to add", ["field", "metrics", "enables"], added)),
        Section("Fields that only some rows have", table_of("Fields of some rows", ["field", "rows"], partial)),
        Section("Metrics without a case", paragraphs(f"{_IDLE} {', '.join(nothing)}." if nothing else "")),
    ]
    return [section for section in sections if section.blocks]


def _as_json(perspectives: tuple[str, ...], present: _Known | None) -> dict[str, Any]:
    """Return every metric; with files also its cases, gates and missing fields, and the fields that add metrics."""
    covered = {item.name: item for item in present.covered} if present else {}
    rows = [
        {
            **{name: getattr(metric, name) for name in ("name", "perspective", "better", "scale", "unit", "applies")},
            "summary": metric.summary,
            "needs": list(metric.needs),
            **(covered[metric.name]._asdict() if metric.name in covered else {}),
        }
        for metric in METRICS.values()
        if not perspectives or metric.perspective in perspectives
    ]
    if present is None:
        return {"metrics": rows}
    return {
        "gold": present.gold,
        "trace": present.trace,
        "metrics": rows,
        "unlock": [item._asdict() for item in unlocked(present.covered)],
        "fields": [field._asdict() for field in present.fields.values()],
    }


class Field(NamedTuple):
    """An optional field: how many of the rows that may have it do."""

    name: str
    present: int
    rows: int


class Covered(NamedTuple):
    """A metric: the number of its cases, the gates on it, and the fields that it needs and no row has."""

    name: str
    perspective: str
    cases: int
    gates: tuple[str, ...]
    missing: tuple[str, ...]


class Unlocked(NamedTuple):
    """Fields that no row has, and the metrics that they would enable."""

    fields: tuple[str, ...]
    metrics: tuple[str, ...]


class Presence:
    """Counts of gold items and traces with each optional field, made while they are streamed."""

    def __init__(self, golds: Iterable[Gold]) -> None:
        items = list(golds)
        self._rows = {"gold": len(items), "trace": 0}
        has = {name: _finder(name) for name in OPTIONAL}
        self._of_traces = [(name, there) for name, there in has.items() if name.startswith("trace.")]
        self._there = {name: sum(map(there, items)) for name, there in has.items() if name.startswith("gold.")}
        self._there.update(dict.fromkeys((name for name, _ in self._of_traces), 0))

    def watch(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """Count and yield the traces."""
        for trace in traces:
            self._rows["trace"] += 1
            for name, there in self._of_traces:
                self._there[name] += there(trace)
            yield trace

    def fields(self) -> dict[str, Field]:
        """Return the counts by name."""
        return {name: Field(name, there, self._rows[name.partition(".")[0]]) for name, there in self._there.items()}


def _finder(name: str) -> Callable[[Any], bool]:
    """Return a test for a field of a gold item or trace; one chunk with a field is enough."""
    get = attrgetter(OPTIONAL[name].partition(".")[2])
    if not name.startswith(_WITHIN):
        return lambda row: get(row) is not None
    field_name = name[len(_WITHIN) :]
    return lambda row: any([getattr(chunk, field_name) is not None for chunk in get(row) or ()])


def covered(card: Scorecard, policy: Policy, fields: Mapping[str, Field], about: Mapping[str, Any]) -> list[Covered]:
    """Return every metric that was measured, once for all its values."""
    tallies, gates = card.tallies(), policy.selected_gates
    by_metric: dict[str, Covered] = {}
    for measure in card.measures:
        cases = (
            tallies[measure.column].total() if measure.metric.level == "case" else int(measure.score(about) is not None)
        )
        guards = tuple(f"{gate.label} {gate.direction} {gate.threshold}" for gate in gates if gate.name == measure.name)
        before = by_metric.get(measure.metric.name)
        known = before.gates if before else ()
        missing = tuple(name for name in measure.metric.needs if not _there(name, fields, about))
        by_metric[measure.metric.name] = Covered(
            measure.metric.name, measure.metric.perspective, cases, (*known, *guards), missing
        )
    return list(by_metric.values())


def _there(name: str, fields: Mapping[str, Field], about: Mapping[str, Any]) -> bool:
    if name in fields:
        return fields[name].present > 0
    value: Any = about
    for part in name.split(".")[1:]:
        value = value.get(part) if isinstance(value, dict) else None
    return value is not None


def unlocked(rows: Sequence[Covered]) -> list[Unlocked]:
    """Return the fields to add, those that enable the most metrics first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if not row.cases and row.missing:
            groups.setdefault(tuple(sorted(row.missing)), []).append(row.name)
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), len(group[0]), group[0]))
    return [Unlocked(fields, tuple(names)) for fields, names in ranked]


def idle(rows: Sequence[Covered]) -> list[str]:
    """Return the metrics that apply to no case although their fields are present."""
    return [row.name for row in rows if not row.cases and not row.missing]


def partly(rows: Sequence[Covered], fields: Mapping[str, Field], needed: Mapping[str, Metric]) -> list[Field]:
    """Return the fields that metrics in use need and that only some rows have."""
    names = dict.fromkeys(name for row in rows if row.cases for name in needed[row.name].needs if name in fields)
    return [field for name in names if 0 < (field := fields[name]).present < field.rows]
