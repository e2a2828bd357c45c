"""Count the items, slices, labels, lengths and fields of a gold set. Reads files, changes none."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import add_gold, gates_path
from rag_eval.common.escaping import json_text, log_line, one_line, quantity
from rag_eval.readers.gold_file import read_entries
from rag_eval.run.inputs import open_policy
from rag_eval.run.options import Options

if TYPE_CHECKING:
    from rag_eval.contract import Gold

    Row = dict[str, Any]

EXAMPLES = """\
  rag-eval gold stats --gold eval/gold.jsonl
"""
_SHOWN = 20


_PLAIN = ("category", "difficulty", "query_type", "multi_hop")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_gold(parser, gates=False)
    parser.add_argument("--format", choices=["text", "json"], default="text", help="text (default) or json")


def run(args: Namespace) -> int:
    """Print the counts."""
    reader, policy, _ = open_policy(Options(args.gold, gates="" if args.gold else gates_path("")))
    entries = read_entries(reader, policy.gold)
    reader.ledger.stop_on_problems()
    counts = {"gold": policy.gold, **stats(entries)}
    sys.stdout.write(json_text(counts) if args.format == "json" else "\n".join(_pages(counts)) + "\n")
    return 0


def _pages(figures: dict[str, Any]) -> Iterator[str]:
    attacks = f", {quantity(figures['attacks'], 'safety case')}" if figures["attacks"] else ""
    kinds = f"{figures['answerable']} answerable, {figures['unanswerable']} unanswerable{attacks}"
    yield log_line(f"{figures['gold']}: {quantity(figures['items'], 'item')}, {kinds}.")
    for name, values in figures["slices"].items():
        rows = [
            [value, item["items"], item["answerable"], item["items"] - item["answerable"]]
            for value, item in values.items()
        ]
        yield from _table([name, "items", "answerable", "unanswerable"], rows)
    for name, numbers in figures["per_item"].items():
        yield from _table([f"{name} of an item", "items"], [[number, count] for number, count in numbers.items()])
    spreads = {name: spread for name, spread in figures["lengths"].items() if spread}
    yield from _table(
        ["length", "minimum", "median", "maximum", "total"],
        [[name, *spread.values()] for name, spread in spreads.items()],
    )
    yield from _table(["field", "items"], [[name, count] for name, count in figures["fields"].items()])


def _table(headers: list[str], rows: list[list[Any]]) -> Iterator[str]:
    from tabulate import tabulate

    shown = [[one_line(str(row[0]), 60), *row[1:]] for row in rows[:_SHOWN]]
    align = ["left", *["right"] * (len(headers) - 1)]
    text = tabulate(shown, [one_line(headers[0], 60), *headers[1:]], "simple", colalign=align, disable_numparse=True)
    yield ""
    yield from map(log_line, text.split("\n"))
    if len(rows) > _SHOWN:
        yield f"… and {len(rows) - _SHOWN} more. To see all: --format json"


def stats(entries: Sequence[tuple[Gold, Row]]) -> dict[str, Any]:
    """Return the counts of a gold set, ready for JSON.

    ``items``, ``answerable``, ``unanswerable`` (both without safety cases) and ``attacks`` are numbers. ``slices`` has
    the number of items and of answerable ones by field and value, largest first. ``per_item`` is the number of items by
    their number of citations and substrings. ``lengths`` has minimum, median (the lower of two middles), maximum and
    total. ``fields`` is the number of items with each field.
    """
    golds = [gold for gold, _ in entries]
    counted = [gold for gold in golds if gold.attack is None]
    answerable = sum(gold.answerable for gold in counted)
    return {
        "items": len(golds),
        "answerable": answerable,
        "unanswerable": len(counted) - answerable,
        "attacks": len(golds) - len(counted),
        "slices": _slices(entries),
        "per_item": {
            "gold_citations": _histogram(len(gold.citations) for gold in golds),
            "gold_claim_substr": _histogram(len(gold.substrings) for gold in golds),
        },
        "lengths": {
            "question, characters": _spread(len(gold.question) for gold in golds),
            "question, words": _spread(len(gold.question.split()) for gold in golds),
            "expected_answer, characters": _spread(
                len(g.expected_answer) for g in golds if g.expected_answer is not None
            ),
        },
        "fields": _ranked(Counter(name for _, row in entries for name in row)),
    }


def _slices(entries: Iterable[tuple[Gold, Row]]) -> dict[str, dict[str, dict[str, int]]]:
    items: dict[str, Counter[str]] = {}
    answerable: dict[str, Counter[str]] = {}
    for gold, row in entries:
        for name, value in set(_labels(row)):
            items.setdefault(name, Counter())[value] += 1
            answerable.setdefault(name, Counter())[value] += gold.answerable
    order = [name for name in (*_PLAIN, "tags") if name in items]
    order += sorted(items.keys() - set(order))
    return {
        name: {value: {"items": n, "answerable": answerable[name][value]} for value, n in _ranked(items[name]).items()}
        for name in order
    }


def _labels(row: Row) -> Iterator[tuple[str, str]]:
    yield from ((name, _worded(row[name])) for name in _PLAIN if name in row)
    yield from (("tags", tag) for tag in row.get("tags", ()))
    yield from ((f"meta.{name}", _worded(value)) for name, value in row.get("meta", {}).items())


def _worded(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _histogram(numbers: Iterable[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(Counter(numbers).items())}


def _spread(numbers: Iterable[int]) -> dict[str, int]:
    ordered = sorted(numbers)
    if not ordered:
        return {}
    middle = ordered[(len(ordered) - 1) // 2]
    return {"least": ordered[0], "median": middle, "most": ordered[-1], "total": sum(ordered)}
