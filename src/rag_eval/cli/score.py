"""The command ``rag-eval score``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rag_eval.cli._shared import INLINE_GATES, input_options, is_sample, print_notes, refuse, uncollected, write_report
from rag_eval.cli.parser import Parser, names, whole
from rag_eval.common.escaping import quantity
from rag_eval.common.progress import watch as progress
from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Settings
from rag_eval.engines import ENGINES, ExecutionOptions
from rag_eval.engines.file_scorer import Task, Work, score_file
from rag_eval.errors import GATE_FAILED, PASSED
from rag_eval.readers.gold_file import read_gold_as
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run import Options, headline
from rag_eval.scoring import QuestionIndex, reference

# Functions import modules that load the metrics: `--format scores` and `--help` start in half the time.
if TYPE_CHECKING:
    from rag_eval.analysis import Report

FORMATS = ("table", "markdown", "html", "json", "junit", "sarif", "codequality", "csv", "scores")
_MOST_JOBS = 512


def add_arguments(parser: Parser) -> None:
    parser.add_inputs()
    parser.add_baseline()
    parser.add_option("--base", "REF", "compare gates, policy and gold with this branch or commit")
    groups = "measure and judge only these metric groups: retrieval,…"
    parser.add_option("--perspective", "P[,P]", groups, default=(), type=names)
    parser.add_option("--suite", "S", "full, smoke (tagged smoke, or a sample of 50) or smoke:N", default="full")
    failed = "write the failed cases with details into DIR/failed.jsonl (default: traces)"
    parser.add_option("--save-trace", "DIR", failed, nargs="?", const="traces")
    parser.add_option("--by", "F[,F]", "split every metric by gold fields: difficulty,tag,…", default=(), type=names)
    parser.add_option("--verdicts", "FILE", "recorded verdicts of a judge (default: from the gates file)")
    parser.add_flag("--details", "answers, citations and chunks in the HTML report; secrets are masked")
    engine = "score in processes of this machine (default), or on a dask cluster"
    parser.add_argument("--engine", choices=list(ENGINES), default="process", help=engine)
    jobs = "number of processes for a large trace file (default: one per core)"
    parser.add_option("--jobs", "N", jobs, default=0, type=whole(1, _MOST_JOBS))
    parser.add_option("--scheduler", "ADDRESS", "address of the dask scheduler, such as tcp://10.0.0.5:8786")
    parser.add_outputs(FORMATS)


def run(args: argparse.Namespace) -> int:
    """Score traces against the gold set and judge the gates.

    Examples:
      rag-eval score
      rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl --k 1,3,5
      rag-eval score --format markdown --out rag-eval-report
      rag-eval score --base origin/main
      rag-eval score --suite smoke --perspective retrieval,citations
      rag-eval score --by difficulty,tag
      rag-eval score --save-trace
      rag-eval score --out rag-eval-report --details
      rag-eval score --format scores --gates precision=0.80,chr=0.75,under=0.05,over=0.10
    """
    with uncollected():
        return _score(args)


def _score(args: argparse.Namespace) -> int:
    inline = args.gates if "=" in args.gates else ""
    named = input_options(args)
    options = replace(
        named,
        gates="" if inline else named.gates,
        baseline=args.baseline,
        execution=ExecutionOptions(args.engine, args.jobs, args.scheduler, watch=progress(quiet=args.quiet)),
        verdicts=args.verdicts,
        is_discovered=not args.gates,
        perspectives=args.perspective,
        suite=args.suite,
    )
    if args.format == "scores":
        return _print_scores(args, options, inline)
    from rag_eval import api
    from rag_eval.gates.selection import gold_fields

    options = replace(options, by=gold_fields(args.by) if args.by else ())
    has_html = args.out or args.format == "html"
    refuse(
        (inline, INLINE_GATES),
        (args.details and not has_html, "--details needs the HTML report. Add --out DIR or --format html"),
    )
    authority = None
    if args.base:
        from rag_eval.run.authority import authority_from_git  # loads git

        authority = authority_from_git(args.base)
    report = api.run(options, authority)
    print_notes(*_notes(report), quiet=args.quiet)
    details = None
    if args.details:
        from rag_eval.run.single_cases import details_of  # loads all importers

        details = details_of(report, options)
    write_report(report, args, by=bool(options.by), details=details)
    if args.save_trace:
        from rag_eval.run.single_cases import save_failed

        print_notes(save_failed(report, options, args.save_trace), quiet=args.quiet)
    return report.exit_code


def _notes(report: Report) -> Iterator[str]:
    yield from (f"{note.file}: {note.message}" for note in report.notes)
    for item in report.inputs if report.completeness.unknown else ():
        if item.role == "trace" and is_sample(item.path):
            fix = "Answer yours with your own system: eval/write_traces.py, or rag-eval collect"
            yield f"{item.path} is the sample of rag-eval init, for its own questions. {fix}"


def _print_scores(args: argparse.Namespace, options: Options, inline: str) -> int:
    names = ("base", "baseline", "perspective", "by", "details", "save_trace", "out")
    others = [name for name in names if getattr(args, name)] + (["suite"] if args.suite != "full" else [])
    named = " and ".join(f"--{name.replace('_', '-')}" for name in others)
    refuse((others, f"--format scores only prints the scores of all questions. Remove {named}, or --format scores"))
    scores, notes = reference_scores(options, inline)
    print_notes(*notes, quiet=args.quiet)
    sys.stdout.write(json.dumps(scores, indent=2) + "\n")
    return PASSED if scores["pass"] else GATE_FAILED


def reference_scores(options: Options, inline: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the reference scorer's flat JSON for some files, and notes on omitted values."""
    if options.gates:
        from rag_eval.run.inputs import open_policy

        reader, policy = open_policy(options)
        stated = {gate.name: gate.threshold for gate in policy.gates}
        names = reference.FLOORS | reference.CEILINGS
        gates = {short: stated.get(name, reference.DEFAULT_GATES[short]) for short, name in names.items()}
        gold, trace, k, token = policy.gold, policy.trace, policy.k, policy.token
    else:
        gold, trace = options.gold or DEFAULT_GOLD, options.trace or DEFAULT_TRACE
        reader = Reader(ProblemCollector(), root=options.root, contents=options.contents)
        k, token, gates = headline(options.cutoffs, Settings().k), Settings().token, reference.DEFAULT_GATES
    gates = reference.parse_gates(inline) if inline else gates
    empty = reference.ReferenceScorer(read_gold_as(reader, gold, None, reference.PackedGold.of), k, token)
    work = Work(empty, QuestionIndex(empty), reader.limits, is_complete=True)
    scorer = score_file(Task(work, reader, trace, execution=options.execution))
    card = scorer.close()
    reader.ledger.stop_on_problems()
    notes = [str(note) for note in reader.ledger.notes]
    counts = {name: getattr(card.completeness, name) for name in ("missing", "duplicate", "unknown")}
    reason = "--format scores counts them but has no gate on them."
    notes += [f"{trace}: {quantity(number, f'{name} trace')}. {reason}" for name, number in counts.items() if number]
    if scorer.unread:
        hint = "It reads only qid, q_id and answer_json. Other formats read all fields."
        notes.append(f"{trace}: --format scores finds no answer in {quantity(scorer.unread, 'trace')}. {hint}")
    return reference.scores(card, k, gates), notes
