"""The commands ``rag-eval metrics`` and ``rag-eval explain``: what is measured, on which files, and what it means."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from rag_eval.cli.commands._shared import input_options, print_lines, uncollected
from rag_eval.cli.parser import Parser, names
from rag_eval.common.escaping import json_text, some
from rag_eval.contract import OPTIONAL, present_fields
from rag_eval.errors import PASSED, UsageError
from rag_eval.gates.policy import Policy
from rag_eval.gates.selection import select_measures
from rag_eval.metrics import METRICS, Metric, perspectives_of
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.jsonl import paired_traces
from rag_eval.rendering import write_page
from rag_eval.rendering.document import Paragraph, Section, Table, TextFormatter, paragraphs, table_of
from rag_eval.rendering.explanation import case_document
from rag_eval.run.explanation import cases_of, explanation, metric_of
from rag_eval.run.inputs import open_policy, read_run_json
from rag_eval.run.options import Options
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.scoring.scorer import Scorecard

_NAMED = 12
_SHOWN = ("name", "perspective", "better", "scale", "unit", "applies", "summary")
_IDLE = "These metrics have all their fields, but no case to score (rag-eval explain NAME):"


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
    every = Section("", [Table("Metrics", ["metric", "better", "group", "description"], rows)])
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

    metric: Metric
    cases: int
    gates: tuple[str, ...]
    missing: tuple[str, ...]


class Coverage(NamedTuple):
    """The metrics that were measured on some files, and the optional fields of these files."""

    gold: str
    trace: str
    metrics: dict[str, Covered]
    fields: dict[str, Field]

    @property
    def unlocked(self) -> list[tuple[tuple[str, ...], list[str]]]:
        """Return the fields to add with the metrics that they would enable, most metrics first."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, item in self.metrics.items():
            if not item.cases and item.missing:
                groups.setdefault(tuple(sorted(item.missing)), []).append(name)
        return sorted(groups.items(), key=lambda group: (-len(group[1]), len(group[0]), group[0]))


def _coverage(options: Options, *, is_required: bool) -> Coverage | None:
    """Return the coverage; None if no files are at the usual paths and none ``is_required``.

    Gold is read whole, traces are a stream. InputError is raised if they are unreadable.
    """
    reader, policy = open_policy(options)
    if not is_required and not (os.path.lexists(policy.gold) and os.path.lexists(policy.trace)):
        return None
    golds = read_gold(reader, policy.gold)
    rows, counts = {"gold": len(golds), "trace": 0}, Counter[str]()
    for gold in golds.values():
        counts.update(present_fields(gold))
    scorer = metric_scorer(golds, select_measures(options.cutoffs, policy), policy.settings)
    for trace in paired_traces(reader, golds, policy.trace):
        rows["trace"] += 1
        counts.update(present_fields(trace))
        scorer.add([trace])
    about = read_run_json(reader, policy)
    reader.ledger.stop_on_problems()
    fields = {name: Field(name, counts[name], rows[name.partition(".")[0]]) for name in OPTIONAL}
    return Coverage(policy.gold, policy.trace, _covered(scorer.close(), policy, fields, about or {}), fields)


def _covered(
    card: Scorecard, policy: Policy, fields: Mapping[str, Field], about: Mapping[str, Any]
) -> dict[str, Covered]:
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
        by_metric[metric.name] = Covered(metric, cases, (*before, *guards), missing)
    return by_metric


def _is_present(name: str, fields: Mapping[str, Field], about: Mapping[str, Any]) -> bool:
    if name in fields:
        return fields[name].present > 0
    value: Any = about
    for part in name.split(".")[1:]:
        value = value.get(part) if isinstance(value, dict) else None
    return value is not None


def _sections(coverage: Coverage, formatter: TextFormatter) -> list[Section]:
    code, fields = formatter.code, coverage.fields
    used = [item for item in coverage.metrics.values() if item.cases]
    counted = f"{len(used)} of {len(coverage.metrics)} metrics"
    applies = Paragraph(f"{counted} apply to {code(coverage.gold, 80)} and {code(coverage.trace, 80)}.")
    rows = []
    for metric, cases, gates, _ in used:
        rows.append([metric.name, metric.perspective, str(cases), ", ".join(code(gate, 60) for gate in gates)])
    added = [[" and ".join(names), str(len(of)), some(of, _NAMED)] for names, of in coverage.unlocked]
    needed = dict.fromkeys(name for item in used for name in item.metric.needs if name in fields)
    some_rows = [fields[name] for name in needed if 0 < fields[name].present < fields[name].rows]
    partial = [[field.name, f"{field.present} of {field.rows}"] for field in some_rows]
    idle = [name for name, item in coverage.metrics.items() if not item.cases and not item.missing]
    table = table_of("Metrics that apply", ["metric", "group", "cases", "gates"], rows)
    sections = [
        Section("Metrics that apply", [applies, *table]),
        Section("Add to your files", table_of("Fields to add", ["field", "metrics", "enables"], added)),
        Section("Fields that only some rows have", table_of("Fields of some rows", ["field", "rows"], partial)),
        Section("Metrics without a case", paragraphs(f"{_IDLE} {', '.join(idle)}." if idle else "")),
    ]
    return [section for section in sections if section.blocks]


def _as_json(wanted: list[Metric], coverage: Coverage | None) -> dict[str, Any]:
    """Return every metric; with files also its cases, gates and missing fields, and the fields that add metrics."""
    rows = []
    for metric in wanted:
        row = {name: getattr(metric, name) for name in _SHOWN}
        rows.append({**row, "needs": [*metric.needs]})
        if coverage and (item := coverage.metrics.get(metric.name)):
            rows[-1].update(cases=item.cases, gates=item.gates, missing=item.missing)
    if coverage is None:
        return {"metrics": rows}
    return {
        "gold": coverage.gold,
        "trace": coverage.trace,
        "metrics": rows,
        "unlock": [{"fields": fields, "metrics": names} for fields, names in coverage.unlocked],
        "fields": [field._asdict() for field in coverage.fields.values()],
    }


# explain


def add_explain_arguments(parser: Parser) -> None:
    subject = "a metric, a label, a finding, another term of the glossary, or the qid of a question"
    parser.add_argument("subject", metavar="METRIC|TERM|QID", help=subject)
    parser.add_inputs()
    parser.add_format(("text", "json"))


def run_explain(args: argparse.Namespace) -> int:
    """Explain a metric, a label, a finding or another term, or why a question scored as it did.

    Examples:
      rag-eval explain precision
      rag-eval explain recall@5
      rag-eval explain WRONG_CLAIM
      rag-eval explain A0001 --gold eval/gold.jsonl --trace runs/trace.jsonl
      rag-eval explain A0001 --format json
    """
    if args.format == "json":
        if metric := metric_of(args.subject):  # the name of a metric always means the metric
            fix = "For metrics, run: rag-eval metrics --format json"
            raise UsageError(f"'{metric.name}' is a metric, and --format json is for questions. {fix}")
        cases, wanted = cases_of(args.subject, input_options(args))
        gold = cases[0][0].gold
        # The version goes up when a reader of an earlier document would not understand a later one.
        about = {"version": 1, "qid": gold.qid, "question": gold.question, "answerable": gold.answerable}
        sys.stdout.write(json_text({**about, "cases": [case_document(case, label, wanted) for case, label in cases]}))
    else:
        print_lines(*explanation(args.subject, input_options(args)))
    return PASSED
