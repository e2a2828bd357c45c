"""The command ``rag-eval metrics``: the metrics, and which of them some files allow."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from rag_eval.cli.commands._shared import input_options, uncollected
from rag_eval.cli.parser import Parser, names
from rag_eval.common.escaping import json_text, some
from rag_eval.contract import OPTIONAL, Gold, Trace
from rag_eval.errors import PASSED
from rag_eval.gates.policy import Policy
from rag_eval.metrics import METRICS, Metric, perspectives_of
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.jsonl import paired_traces
from rag_eval.rendering import write_page
from rag_eval.rendering.document import Paragraph, Section, Table, TextFormatter, paragraphs, table_of
from rag_eval.run.inputs import Options, open_policy, read_run_json, select_measures
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.scoring.scorecard import Scorecard

_NAMED = 12
_IDLE = "These metrics have all their fields, but no case to score (rag-eval explain NAME):"
_WITHIN = "trace.chunks."


def add_arguments(parser: Parser) -> None:
    parser.add_inputs()
    parser.add_option("--perspective", "P[,P]", "only these: retrieval,citations", default=(), type=names)
    parser.add_format(["table", "markdown", "json"])


def run(args: argparse.Namespace) -> int:
    """List the metrics: which ones apply to your files, and which fields would enable the others.

    Examples:
      rag-eval metrics
      rag-eval metrics --perspective retrieval
      rag-eval metrics --gold eval/gold.jsonl --trace runs/trace.jsonl --format json
    """
    perspectives = perspectives_of(args.perspective)
    options = input_options(args)._replace(perspectives=perspectives)
    with uncollected():
        coverage = _coverage(options, is_required=bool(args.gold or args.trace))
    wanted = [metric for metric in METRICS.values() if metric.perspective in (perspectives or (metric.perspective,))]
    if args.format == "json":
        sys.stdout.write(json_text(_as_json(wanted, coverage)))
        return PASSED
    rows = [[metric.name, metric.better, metric.perspective, metric.summary] for metric in wanted]
    every = Section("", [Table("Metrics", ["metric", "better", "perspective", "description"], rows)])
    page = write_page(args.format, lambda formatter: _sections(coverage, formatter) if coverage else [every])
    sys.stdout.write(page)
    return PASSED


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


class Coverage(NamedTuple):
    """The metrics that were measured on some files, and the optional fields of these files."""

    gold: str
    trace: str
    metrics: list[Covered]
    fields: dict[str, Field]

    @property
    def unlocked(self) -> list[tuple[tuple[str, ...], list[str]]]:
        """Return the fields to add with the metrics that they would enable, most metrics first."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for metric in self.metrics:
            if not metric.cases and metric.missing:
                groups.setdefault(tuple(sorted(metric.missing)), []).append(metric.name)
        return sorted(groups.items(), key=lambda group: (-len(group[1]), len(group[0]), group[0]))

    @property
    def partial(self) -> list[Field]:
        """Return the fields that metrics in use need and that only some rows have."""
        used = [METRICS[metric.name] for metric in self.metrics if metric.cases]
        needed = dict.fromkeys(name for metric in used for name in metric.needs if name in self.fields)
        return [field for name in needed if 0 < (field := self.fields[name]).present < field.rows]


def _coverage(options: Options, *, is_required: bool) -> Coverage | None:
    """Return the coverage; None if no files are at the usual paths and none ``is_required``.

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
    return Coverage(policy.gold, policy.trace, _covered(scorer.close(), policy, fields, about or {}), fields)


class Presence:
    """Counts of gold items and traces with each optional field, made while they are streamed."""

    def __init__(self, golds: Iterable[Gold]) -> None:
        items = list(golds)
        self._rows = {"gold": len(items), "trace": 0}
        has = {name: _finder(name) for name in OPTIONAL}
        self._of_traces = [(name, is_present) for name, is_present in has.items() if name.startswith("trace.")]
        self._counts = {name: sum(map(test, items)) for name, test in has.items() if name.startswith("gold.")}
        self._counts.update(dict.fromkeys((name for name, _ in self._of_traces), 0))

    def watch(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """Count and yield the traces."""
        for trace in traces:
            self._rows["trace"] += 1
            for name, is_present in self._of_traces:
                self._counts[name] += is_present(trace)
            yield trace

    def fields(self) -> dict[str, Field]:
        """Return the counts by name."""
        return {name: Field(name, count, self._rows[name.partition(".")[0]]) for name, count in self._counts.items()}


def _finder(name: str) -> Callable[[Any], bool]:
    """Return a test for a field of a gold item or trace; one chunk with a field is enough."""
    get = attrgetter(OPTIONAL[name].partition(".")[2])
    if not name.startswith(_WITHIN):
        return lambda row: get(row) is not None
    field_name = name[len(_WITHIN) :]
    return lambda row: any([getattr(chunk, field_name) is not None for chunk in get(row) or ()])


def _covered(card: Scorecard, policy: Policy, fields: Mapping[str, Field], about: Mapping[str, Any]) -> list[Covered]:
    """Return every metric that was measured, once for all its values."""
    tallies, gates = card.tallies(), policy.selected_gates
    by_metric: dict[str, Covered] = {}
    for measure in card.measures:
        metric = measure.metric
        is_of_run = metric.level != "case"
        cases = int(measure.score(about) is not None) if is_of_run else tallies[measure.column].total()
        before = by_metric[metric.name].gates if metric.name in by_metric else ()
        guards = tuple(f"{gate.label} {gate.direction} {gate.threshold}" for gate in gates if gate.name == measure.name)
        missing = tuple(name for name in metric.needs if not _is_present(name, fields, about))
        by_metric[metric.name] = Covered(metric.name, metric.perspective, cases, (*before, *guards), missing)
    return list(by_metric.values())


def _is_present(name: str, fields: Mapping[str, Field], about: Mapping[str, Any]) -> bool:
    if name in fields:
        return fields[name].present > 0
    value: Any = about
    for part in name.split(".")[1:]:
        value = value.get(part) if isinstance(value, dict) else None
    return value is not None


def _sections(coverage: Coverage, formatter: TextFormatter) -> list[Section]:
    code = formatter.code
    used = [metric for metric in coverage.metrics if metric.cases]
    counted = f"{len(used)} of {len(coverage.metrics)} metrics"
    applies = Paragraph(f"{counted} apply to {code(coverage.gold, 80)} and {code(coverage.trace, 80)}.")
    rows = [[item.name, item.perspective, str(item.cases), ", ".join(code(g, 60) for g in item.gates)] for item in used]
    added = [[" and ".join(fields), str(len(of)), some(of, _NAMED)] for fields, of in coverage.unlocked]
    partial = [[field.name, f"{field.present} of {field.rows}"] for field in coverage.partial]
    idle = [metric.name for metric in coverage.metrics if not metric.cases and not metric.missing]
    table = table_of("Metrics that apply", ["metric", "perspective", "cases", "gates"], rows)
    sections = [
        Section("Metrics that apply", [applies, *table]),
        Section("Add to your files", table_of("Fields to add", ["field", "metrics", "enables"], added)),
        Section("Fields that only some rows have", table_of("Fields of some rows", ["field", "rows"], partial)),
        Section("Metrics without a case", paragraphs(f"{_IDLE} {', '.join(idle)}." if idle else "")),
    ]
    return [section for section in sections if section.blocks]


def _as_json(wanted: list[Metric], coverage: Coverage | None) -> dict[str, Any]:
    """Return every metric; with files also its cases, gates and missing fields, and the fields that add metrics."""
    covered = {item.name: item._asdict() for item in coverage.metrics} if coverage else {}
    shown = ("name", "perspective", "better", "scale", "unit", "applies", "summary")
    rows = [
        {**{name: getattr(metric, name) for name in shown}, "needs": [*metric.needs], **covered.get(metric.name, {})}
        for metric in wanted
    ]
    if coverage is None:
        return {"metrics": rows}
    return {
        "gold": coverage.gold,
        "trace": coverage.trace,
        "metrics": rows,
        "unlock": [{"fields": fields, "metrics": names} for fields, names in coverage.unlocked],
        "fields": [field._asdict() for field in coverage.fields.values()],
    }
