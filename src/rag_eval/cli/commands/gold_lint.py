"""Find weak gold items: substrings, citations, questions and gates. Reads files, changes none."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.cli.commands._shared import add_gold, gates_path, remark
from rag_eval.common.escaping import json_text, log_line, quantity, quoted
from rag_eval.errors import GATE_FAILED, PASSED
from rag_eval.gold.lint import GoldSample, lint, watch
from rag_eval.readers.gold_file import read_entries
from rag_eval.run.inputs import open_policy, paired_traces
from rag_eval.run.options import Options

if TYPE_CHECKING:
    from rag_eval.gold.lint import GoldFinding

EXAMPLES = """\
  rag-eval gold lint --gold eval/gold.jsonl --trace runs/trace.jsonl
"""
_SHOWN = 100


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_gold(parser)
    parser.add_argument(
        "--trace", metavar="FILE", action="append", default=[], help="also look at these traces; may be repeated"
    )
    parser.add_argument(
        "--format", choices=["text", "json"], default="text", help="text (default), or json with all findings"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are findings (default: 0)")
    parser.add_argument("--quiet", action="store_true", help="no notes on stderr")


def run(args: Namespace) -> int:
    """Print the findings; return 0, or 1 if there are findings and ``--strict`` is given."""
    sample, path = _sample(args)
    notes = lint(sample)
    if args.format == "json":
        counts = dict(sorted(Counter(finding.code for finding in notes).items()))
        rows = [finding._asdict() for finding in notes]
        text = json_text({"gold": path, "items": len(sample.items), "counts": counts, "findings": rows})
    else:
        text = "".join(_lines(path, sample, notes))
    sys.stdout.write(text)
    return GATE_FAILED if args.strict and notes else PASSED


def _sample(args: Namespace) -> tuple[GoldSample, str]:
    """Return the sample and the path of the gold. Raise InputError if it is unreadable."""
    from itertools import chain

    reader, policy, digests = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    entries = read_entries(reader, policy.gold)
    golds = {gold.qid: gold for gold, _ in entries}
    traces = chain.from_iterable(paired_traces(reader, golds, path, digests) for path in dict.fromkeys(args.trace))
    seen = watch(golds, traces, policy.settings) if args.trace else None
    reader.ledger.stop_on_problems()
    remark(reader.ledger.notes, quiet=args.quiet)
    return GoldSample(entries, policy, seen), policy.gold


def _lines(path: str, sample: GoldSample, notes: list[GoldFinding]) -> Iterator[str]:
    for finding in notes[:_SHOWN]:
        location = f"{path}:{finding.line}" if finding.line else path
        item = f"{quoted(finding.qid, 60)}: " if finding.qid else ""
        yield log_line(f"{location}: [{finding.code}] {item}{finding.message}. {finding.hint}") + "\n"
    if len(notes) > _SHOWN:
        yield f"… and {quantity(len(notes) - _SHOWN, 'more finding')} not shown. To see all: --format json\n"
    codes = ", ".join(f"{count} {code}" for code, count in Counter(finding.code for finding in notes).most_common())
    counted = f"{quantity(len(notes), 'finding')} in {quantity(len(sample.items), 'item')}"
    yield f"{counted}: {codes}. For their meaning, see docs/gold.md\n" if notes else f"{counted}.\n"
