"""The commands that inspect files, metrics and gates: ``rag-eval metrics``, ``explain``, ``validate`` and ``probe``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from typing import Any

from msgspec.structs import replace

from rag_eval.analysis import Context
from rag_eval.analysis.sensitivity import Setup, TraceSample, in_order, probe
from rag_eval.cli._shared import INLINE_GATES, input_options, print_lines, print_notes, refuse, uncollected
from rag_eval.cli.parser import Parser, names
from rag_eval.common.escaping import json_text, some
from rag_eval.common.paths import usual_gates
from rag_eval.contract import OPTIONAL, present_fields
from rag_eval.errors import PASSED, UsageError
from rag_eval.gates.selection import select_measures
from rag_eval.metrics import METRICS, perspectives_of
from rag_eval.readers.gates_file import read_policy
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.jsonl import paired_traces, read_run_json, read_trace_rows
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader, checked_reader
from rag_eval.readers.validation import KINDS, check
from rag_eval.rendering import write_page
from rag_eval.rendering.comparison import render_probe
from rag_eval.rendering.document import Paragraph, Section, Table, TextFormatter, paragraphs, table_of
from rag_eval.rendering.explanation import case_document
from rag_eval.run import Options
from rag_eval.run.inputs import load_inputs, open_policy
from rag_eval.run.scored_run import score_run
from rag_eval.run.single_cases import cases_of, explanation, metric_of
from rag_eval.scoring import QuestionIndex
from rag_eval.scoring.case_scorer import metric_scorer

_NAMED = 12
_SHOWN = ("name", "perspective", "better", "scale", "unit", "applies", "summary")
_IDLE = "These metrics have all their fields, but no case to score (rag-eval explain NAME):"


def add_metrics_arguments(parser: Parser) -> None:
    parser.add_inputs()
    parser.add_option("--perspective", "P[,P]", "only these: retrieval,citations", default=(), type=names)
    parser.add_format(["table", "markdown", "json"])


def run_metrics(args: argparse.Namespace) -> int:
    """List the metrics: which ones apply to your files, and which fields would enable the others.

    Examples:
      rag-eval metrics
      rag-eval metrics --perspective retrieval
      rag-eval metrics --gold eval/gold.jsonl --trace runs/trace.jsonl --format json
    """
    perspectives = perspectives_of(args.perspective)
    options = replace(input_options(args), perspectives=perspectives)
    with uncollected():
        measured = _measured(options, is_required=bool(args.gold or args.trace))
    wanted = [metric for metric in METRICS.values() if metric.perspective in (perspectives or (metric.perspective,))]
    if args.format == "json":
        rows = [{name: getattr(metric, name) for name in (*_SHOWN, "needs")} for metric in wanted]
        rows = [row | measured["metrics"].get(row["name"], {}) if measured else row for row in rows]
        sys.stdout.write(json_text({**(measured or {}), "metrics": rows}))
        return PASSED
    about = [[metric.name, metric.better, metric.perspective, metric.summary] for metric in wanted]
    every = Section("", [Table("Metrics", ["metric", "better", "group", "description"], about)])
    page = write_page(args.format, lambda formatter: _sections(measured, formatter) if measured else [every])
    sys.stdout.write(page)
    return PASSED


def _measured(options: Options, *, is_required: bool) -> dict[str, Any] | None:
    """Return what of some files was measured, ready for JSON; None if there are none and none ``is_required``.

    ``metrics`` has the cases, gates and missing fields of each metric, ``unlock`` the fields to add with the metrics
    that they would enable, most metrics first, and ``fields`` how many of the rows that may have a field do.
    """
    reader, policy = open_policy(options)
    if not is_required and not (os.path.lexists(policy.gold) and os.path.lexists(policy.trace)):
        return None
    golds = read_gold(reader, policy.gold)
    rows, present = {"gold": len(golds), "trace": 0}, Counter[str]()
    for gold in golds.values():
        present.update(present_fields(gold))
    scorer = metric_scorer(golds, select_measures(options.cutoffs, policy), policy.settings)
    for trace in paired_traces(reader, golds, policy.trace):
        rows["trace"] += 1
        present.update(present_fields(trace))
        scorer.add_traces([trace])
    about = read_run_json(reader, policy.trace) or {}
    reader.ledger.stop_on_problems()
    present.update(f"run.{name}" for name, value in about.items() if value is not None)
    card = scorer.close()
    tallies = card.tallies()
    metrics: dict[str, dict[str, Any]] = {}
    for measure in card.measures:
        name, metric = measure.metric.name, measure.metric
        missing = [field for field in metric.needs if not present[field]]
        row = metrics.setdefault(name, {"cases": 0, "gates": [], "missing": missing})
        is_of_run = metric.level != "case"
        row["cases"] = int(measure.score(about) is not None) if is_of_run else tallies[measure.column].total()
        guards = [gate for gate in policy.selected_gates if gate.name == measure.name]
        row["gates"] += [f"{gate.label} {gate.direction} {gate.threshold}" for gate in guards]
    unlocked: dict[tuple[str, ...], list[str]] = {}
    for name, row in metrics.items():
        if row["missing"] and not row["cases"]:
            unlocked.setdefault(tuple(sorted(row["missing"])), []).append(name)
    ordered = sorted(unlocked.items(), key=lambda group: (-len(group[1]), len(group[0]), group[0]))
    return {
        "gold": policy.gold,
        "trace": policy.trace,
        "metrics": metrics,
        "unlock": [{"fields": fields, "metrics": names} for fields, names in ordered],
        "fields": [{"name": name, "present": present[name], "rows": rows[name.partition(".")[0]]} for name in OPTIONAL],
    }


def _sections(measured: dict[str, Any], formatter: TextFormatter) -> list[Section]:
    code, metrics = formatter.code, measured["metrics"]
    used = {name: row for name, row in metrics.items() if row["cases"]}
    counted = f"{len(used)} of {len(metrics)} metrics"
    applies = Paragraph(f"{counted} apply to {code(measured['gold'], 80)} and {code(measured['trace'], 80)}.")
    rows = []
    for name, row in used.items():
        gates = ", ".join(code(gate, 60) for gate in row["gates"])
        rows.append([name, METRICS[name].perspective, str(row["cases"]), gates])
    added = [
        [" and ".join(group["fields"]), str(len(group["metrics"])), some(group["metrics"], _NAMED)]
        for group in measured["unlock"]
    ]
    fields = {field["name"]: field for field in measured["fields"]}
    needed = dict.fromkeys(field for name in used for field in METRICS[name].needs if field in fields)
    partial = [
        [name, f"{fields[name]['present']} of {fields[name]['rows']}"]
        for name in needed
        if 0 < fields[name]["present"] < fields[name]["rows"]
    ]
    idle = [name for name, row in metrics.items() if not row["cases"] and not row["missing"]]
    table = table_of("Metrics that apply", ["metric", "group", "cases", "gates"], rows)
    sections = [
        Section("Metrics that apply", [applies, *table]),
        Section("Add to your files", table_of("Fields to add", ["field", "metrics", "enables"], added)),
        Section("Fields that only some rows have", table_of("Fields of some rows", ["field", "rows"], partial)),
        Section("Metrics without a case", paragraphs(f"{_IDLE} {', '.join(idle)}." if idle else "")),
    ]
    return [section for section in sections if section.blocks]


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


def add_validate_arguments(parser: Parser) -> None:
    files = "files to check; the kind is detected from name and content"
    parser.add_argument("files", metavar="FILE", nargs="+", help=files)
    kind = "treat every file as this kind, if the detected one is wrong"
    parser.add_argument("--kind", choices=list(KINDS), help=kind)
    parser.add_flag("--only-named", "for hooks: skip files that the nearest eval-gates.yml above them does not name")
    parser.add_flag("--quiet", "print nothing for valid files")


def run_validate(args: argparse.Namespace) -> int:
    """Check gold, trace, gates, report and run files against their schemas. Prints every problem; changes nothing.

    Examples:
      rag-eval validate eval/gold.jsonl runs/trace.jsonl eval-gates.yml
      rag-eval validate --kind gold questions.jsonl
    """
    with checked_reader() as reader:
        for path in dict.fromkeys(args.files):
            gates = _gates_without(path) if args.only_named else ""
            if gates:
                print_lines(f"{path}: not checked, because {gates} does not name it")
                continue
            before = reader.ledger.count
            summary = check(reader, path, args.kind)
            if not args.quiet and reader.ledger.count == before:
                print_lines(f"{path}: valid, {summary}")
        print_notes(*reader.ledger.notes, quiet=args.quiet)
    return PASSED


def _gates_without(path: str) -> str:
    """Return the nearest gates file above a path if it does not name the path; empty if it does, or cannot be read."""
    inside, folder = os.path.normpath(path), os.path.dirname(os.path.normpath(path))  # noqa: PTH120 - empty, not ".", which messages would show
    while not (gates := usual_gates(folder)) and folder != os.path.dirname(folder):  # noqa: PTH120 - as above
        folder = os.path.dirname(folder)  # noqa: PTH120
    policy = read_policy(Reader(ProblemCollector()), gates) if gates else None
    if policy is None:
        return ""
    is_named = any(name and (inside == name or inside.startswith(f"{name}{os.sep}")) for name in policy.files)
    return "" if is_named else gates


def add_probe_arguments(parser: Parser) -> None:
    parser.add_inputs()
    parser.add_baseline()
    parser.add_format(("table", "markdown", "json"))
    parser.add_quiet()


def run_probe(args: argparse.Namespace) -> int:
    """Perturb the traces in memory, and show the smallest perturbation that each gate catches.

    Examples:
      rag-eval probe
      rag-eval probe --gold eval/gold.jsonl --trace runs/trace.jsonl
      rag-eval probe --gates stricter.yml --format markdown
    """
    refuse(("=" in args.gates, INLINE_GATES))
    options = replace(input_options(args), baseline=args.baseline)
    with uncollected():
        inputs = load_inputs(options)
        policy, golds, scored = inputs.policy, inputs.golds, score_run(inputs)
        report = scored.report
        print_notes(*(f"{note.file}: {note.message}" for note in report.notes), quiet=args.quiet)
        # The traces that count: the last one of several with one run and qid.
        questions, samples = QuestionIndex(golds), dict[tuple[str, str], TraceSample]()
        reader = inputs.reader.silent()  # notes on the traces were already printed
        for trace, row in read_trace_rows(reader, policy.trace):
            qid, _ = questions.pair(trace, lambda *_: None)
            if qid in golds:
                samples[trace.run, qid] = TraceSample.of(row, golds[qid], trace.line, policy.settings)
        context = Context(fields=policy.fields, earlier=scored.earlier)
        setup = Setup(golds, policy, scored.card.measures, context)
        result = probe(setup, in_order(list(samples.values())), report)
    sys.stdout.write(render_probe(result, args.format))
    return result.exit_code
