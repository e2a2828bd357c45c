"""List the metrics."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  rag-eval metrics
  rag-eval metrics --perspective retrieval
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--perspective", metavar="P", help="only this perspective: answers, refusals, citations, retrieval"
    )


def run(args: argparse.Namespace) -> int:
    """Print a table of METRICS."""
    from tabulate import tabulate

    from rag_eval.errors import UsageError
    from rag_eval.metrics import METRICS

    known = dict.fromkeys(metric.perspective for metric in METRICS.values())
    if args.perspective and args.perspective not in known:
        raise UsageError(f"unknown perspective '{args.perspective[:40]}'. There are: {', '.join(known)}")
    rows = [
        [metric.name, metric.better, metric.perspective, metric.summary]
        for metric in METRICS.values()
        if args.perspective in (None, metric.perspective)
    ]
    sys.stdout.write(
        tabulate(
            rows,
            ["metric", "better", "perspective", "what it is"],
            tablefmt="simple",
            maxcolwidths=[None, None, None, 70],
        )
        + "\n"
    )
    return 0
