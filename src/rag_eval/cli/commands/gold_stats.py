"""Count what a gold set is made of: answerable and not, slices, labels, lengths, fields. Reads files, changes none."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from rag_eval.cli.commands._shared import gates_path
from rag_eval.common.escaping import log_line, one_line

EXAMPLE = "example: rag-eval gold stats --gold eval/gold.jsonl"
_SHOWN = 20


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--gold", metavar="FILE", default="", help="gold set (from the gates file, else the usual)")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="text (default) or json")


def run(args: Namespace) -> int:
    """Print the counts."""
    from rag_eval.gold.statistics import stats
    from rag_eval.readers.gold_file import read_entries
    from rag_eval.run.inputs import open_policy
    from rag_eval.run.options import Options

    reader, policy, _ = open_policy(Options(args.gold, gates="" if args.gold else gates_path("")))
    entries = read_entries(reader, policy.gold)
    reader.ledger.stop_on_problems()
    found = {"gold": policy.gold, **stats(entries)}
    sys.stdout.write(_json(found) if args.format == "json" else "\n".join(_pages(found)) + "\n")
    return 0


def _json(found: dict[str, Any]) -> str:
    from rag_eval.rendering.json_values import json_text

    return json_text(found)


def _pages(found: dict[str, Any]) -> Iterator[str]:
    attacks = f", {found['attacks']} safety case(s)" if found["attacks"] else ""
    counts = f"{found['items']} items: {found['answerable']} answerable, {found['unanswerable']} unanswerable{attacks}"
    yield log_line(f"{found['gold']}: {counts}.")
    for name, values in found["slices"].items():
        rows = [
            [value, one["items"], one["answerable"], one["items"] - one["answerable"]] for value, one in values.items()
        ]
        yield from _table([name, "items", "answerable", "unanswerable"], rows)
    for name, numbers in found["per_item"].items():
        yield from _table([f"{name} of an item", "items"], [[number, count] for number, count in numbers.items()])
    spreads = {name: spread for name, spread in found["lengths"].items() if spread}
    yield from _table(
        ["length", "least", "median", "most", "total"], [[name, *one.values()] for name, one in spreads.items()]
    )
    yield from _table(["field", "items"], [[name, count] for name, count in found["fields"].items()])


def _table(headers: list[str], rows: list[list[Any]]) -> Iterator[str]:
    from tabulate import tabulate

    shown = [[one_line(str(row[0]), 60), *row[1:]] for row in rows[:_SHOWN]]
    align = ["left", *["right"] * (len(headers) - 1)]
    text = tabulate(shown, [one_line(headers[0], 60), *headers[1:]], "simple", colalign=align, disable_numparse=True)
    yield ""
    yield from map(log_line, text.split("\n"))
    if len(rows) > _SHOWN:
        yield f"… and {len(rows) - _SHOWN} more; --format json has all."
