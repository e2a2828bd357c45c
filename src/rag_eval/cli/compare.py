"""The command ``rag-eval compare``."""

from __future__ import annotations

import argparse
import sys

from rag_eval.cli._shared import print_notes, refuse
from rag_eval.cli.parser import Parser, names
from rag_eval.common.paths import nearest_gates
from rag_eval.errors import PASSED
from rag_eval.rendering.comparison import render, render_repeats
from rag_eval.rendering.html import comparison_page, repeats_page
from rag_eval.run.options import Options
from rag_eval.run.run_comparison import check_number_of_runs, compare_columns, read_runs, repeats_of, systems_of

FORMATS = ("table", "markdown", "html", "json", "csv")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a report.json, or traces; each run in them is a column")
    parser.add_option("--base", "NAME", "the run that the others are compared with (default: the first)")
    metrics = "compare only these metrics (default: those with gates in the last run)"
    parser.add_option("--metric", "M[,M]", metrics, default=(), type=names)
    parser.add_flag("--all", "compare every metric that all runs have")
    parser.add_flag("--across-judges", "also compare verdicts of different judges")
    parser.add_flag("--pareto", "list the runs that no other run beats in quality, cost and latency")
    parser.add_flag("--repeats", "treat the runs of a file as repeats of one system: pass^k")
    parser.add_option("--gold", "FILE", "gold set to score traces against")
    parser.add_option("--gates", "FILE", "gates file with settings, weights and budgets")
    parser.add_cutoffs()
    parser.add_format(FORMATS)
    parser.add_quiet()


def run(args: argparse.Namespace) -> int:
    """Compare runs side by side: values, paired tests, flips, a weighted score. There are no gates: the exit code is 0.

    Examples:
      rag-eval compare runs/main.jsonl runs/rerank.jsonl
      rag-eval compare eval/baseline.json rag-eval-report/report.json --metric precision,recall@5
      rag-eval compare runs/main.jsonl runs/rerank.jsonl --all
      rag-eval compare runs/small.jsonl runs/large.jsonl --base large --pareto
      rag-eval compare runs/five-times.jsonl --repeats
    """
    compares = args.base or args.metric or args.all or args.pareto
    refuse(
        (args.repeats and compares, "--repeats does not compare runs. Remove --base, --metric, --all and --pareto."),
        (args.all and args.metric, "--all and --metric cannot be used together. Remove one of them."),
    )
    options = Options(args.gold, "", args.gates or nearest_gates(), args.k)
    columns, notes = read_runs(args.runs, options)
    print_notes(*dict.fromkeys(notes), quiet=args.quiet)
    if args.repeats:
        systems = [repeats_of(system) for system in systems_of(columns)]
        page = repeats_page(systems) if args.format == "html" else render_repeats(systems, args.format)
    else:
        fix = "Name fewer files."
        if len(columns) == 1:
            fix = "Name another file, or add --repeats for repeats of one system."
        check_number_of_runs(columns, fix)
        base, across = args.base or None, args.across_judges
        comparison = compare_columns(columns, options, base, args.metric, every=args.all, across_judges=across)
        if args.pareto and comparison.front is None:
            print_notes("--pareto is ignored, because not every run has a quality value", quiet=args.quiet)
        comparison = comparison if args.pareto else comparison._replace(front=None)
        page = comparison_page(comparison) if args.format == "html" else render(comparison, args.format)
    sys.stdout.write(page)
    return PASSED
