"""The command ``rag-eval explain``."""

from __future__ import annotations

import argparse
import sys

from rag_eval.cli.commands._shared import input_options, print_lines
from rag_eval.cli.parser import Parser
from rag_eval.common.escaping import json_text
from rag_eval.errors import PASSED, UsageError
from rag_eval.rendering.explanation import case_document
from rag_eval.run.explanation import cases_of, explanation, metric_of

VERSION = 1
"""Goes up when a reader of an earlier document would not understand a later one."""


def add_arguments(parser: Parser) -> None:
    subject = "a metric, a label, a finding, another term of the glossary, or the qid of a question"
    parser.add_argument("subject", metavar="METRIC|TERM|QID", help=subject)
    parser.add_inputs()
    parser.add_format(("text", "json"))


def run(args: argparse.Namespace) -> int:
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
        gold = cases[0].gold
        about = {"version": VERSION, "qid": gold.qid, "question": gold.question, "answerable": gold.answerable}
        sys.stdout.write(json_text({**about, "cases": [case_document(case, wanted) for case in cases]}))
    else:
        print_lines(*explanation(args.subject, input_options(args)))
    return PASSED
