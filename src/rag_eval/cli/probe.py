"""The command ``rag-eval probe``."""

from __future__ import annotations

import argparse
import sys

from rag_eval.analysis import Context
from rag_eval.analysis.sensitivity import Setup, TraceSample, in_order, probe
from rag_eval.cli._shared import INLINE_GATES, input_options, print_notes, refuse, uncollected
from rag_eval.cli.parser import Parser
from rag_eval.readers.jsonl import read_trace_rows
from rag_eval.rendering.comparison import render_probe
from rag_eval.run.inputs import load_inputs
from rag_eval.run.scored import score_run
from rag_eval.scoring import QuestionIndex

FORMATS = ("table", "markdown", "json")


def add_arguments(parser: Parser) -> None:
    parser.add_inputs()
    parser.add_baseline()
    parser.add_format(FORMATS)
    parser.add_quiet()


def run(args: argparse.Namespace) -> int:
    """Perturb the traces in memory, and show the smallest perturbation that each gate catches.

    Examples:
      rag-eval probe
      rag-eval probe --gold eval/gold.jsonl --trace runs/trace.jsonl
      rag-eval probe --gates stricter.yml --format markdown
    """
    refuse(("=" in args.gates, INLINE_GATES))
    options = input_options(args)._replace(baseline=args.baseline)
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
        hashes = {case.qid: case.gold_sha256 for case in report.questions}
        context = Context(hashes=hashes, fields=policy.fields, earlier=scored.earlier)
        setup = Setup(golds, policy, scored.card.measures, context)
        result = probe(setup, in_order(list(samples.values())), report)
    sys.stdout.write(render_probe(result, args.format))
    return result.exit_code
