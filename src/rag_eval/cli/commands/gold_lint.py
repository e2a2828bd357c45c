"""Look for what makes a gold set judge badly: substrings, citations, questions, gates. Reads files, changes none."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.cli.commands._shared import gates_path, remark
from rag_eval.common.escaping import log_line
from rag_eval.errors import GATE_FAILED, PASSED

if TYPE_CHECKING:
    from rag_eval.gold.lint import GoldFinding, Sample

EXAMPLE = "example: rag-eval gold lint --gold eval/gold.jsonl --trace runs/trace.jsonl"
_SHOWN = 100


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--gold", metavar="FILE", default="", help="gold set (from the gates file, else the usual)")
    parser.add_argument(
        "--trace", metavar="FILE", action="append", default=[], help="also look at these traces; may be repeated"
    )
    parser.add_argument("--gates", metavar="FILE", default="", help="gates (eval-gates.yml where it is there)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="text (default), or json with all")
    parser.add_argument("--strict", action="store_true", help="exit 1 when there is a finding; else findings exit 0")
    parser.add_argument("--quiet", action="store_true", help="no notes on stderr")


def run(args: Namespace) -> int:
    """Print the findings. 0 whatever they are, unless they are asked for strictly."""
    from rag_eval.gold.lint import lint

    sample, path = _sample(args)
    found = lint(sample)
    text = _json(path, sample, found) if args.format == "json" else "".join(_lines(path, sample, found))
    sys.stdout.write(text)
    return GATE_FAILED if args.strict and found else PASSED


def _sample(args: Namespace) -> tuple[Sample, str]:
    """What is to be looked at, and the path of the gold; InputError where it cannot be read."""
    from itertools import chain

    from rag_eval.gold.lint import Sample, watch
    from rag_eval.readers.gold_file import read_entries
    from rag_eval.run.inputs import open_policy, paired_traces
    from rag_eval.run.options import Options

    reader, policy, digests = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    entries = read_entries(reader, policy.gold)
    golds = {gold.qid: gold for gold, _ in entries}
    traces = chain.from_iterable(paired_traces(reader, golds, path, digests) for path in dict.fromkeys(args.trace))
    seen = watch(golds, traces, policy.settings) if args.trace else None
    reader.ledger.stop_on_problems()
    remark(reader.ledger.notes, quiet=args.quiet)
    return Sample(entries, policy, seen), policy.gold


def _lines(path: str, sample: Sample, found: list[GoldFinding]) -> Iterator[str]:
    for finding in found[:_SHOWN]:
        place = f"{path}:{finding.line}" if finding.line else path
        yield log_line(f"{place}: [{finding.code}] {_of(finding)}{finding.message}. {finding.hint}") + "\n"
    if len(found) > _SHOWN:
        yield f"… and {len(found) - _SHOWN} more finding(s) not shown; --format json has all.\n"
    codes = ", ".join(f"{count} {code}" for code, count in Counter(finding.code for finding in found).most_common())
    counted = f"{len(found)} finding(s) in {len(sample.items)} item(s)"
    yield f"{counted}: {codes}. What they mean: docs/gold.md\n" if found else f"{counted}.\n"


def _of(finding: GoldFinding) -> str:
    from rag_eval.common.escaping import quoted

    return f"{quoted(finding.qid, 60)}: " if finding.qid else ""


def _json(path: str, sample: Sample, found: list[GoldFinding]) -> str:
    from rag_eval.rendering.json_values import json_text

    counts = dict(sorted(Counter(finding.code for finding in found).items()))
    rows = [finding._asdict() for finding in found]
    return json_text({"gold": path, "items": len(sample.items), "counts": counts, "findings": rows})
