"""The counts of a gold set: its items, slices, labels, lengths and fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_eval.contract import Gold

Row = dict[str, Any]

_PLAIN = ("category", "difficulty", "query_type", "multi_hop")


def counts_of(entries: Sequence[tuple[Gold, Row]]) -> dict[str, Any]:
    """Return the counts of a gold set, ready for JSON.

    ``items``, ``answerable``, ``unanswerable`` (both without safety cases) and ``attacks`` are numbers. ``slices`` has
    the number of items and of answerable ones by field and value, largest first. ``per_item`` is the number of items by
    their number of citations and substrings. ``lengths`` has minimum, median (the lower of two middles), maximum and
    total. ``fields`` is the number of items with each field.
    """
    golds = [gold for gold, _ in entries]
    counted = [gold for gold in golds if gold.attack is None]
    answerable = sum(gold.answerable for gold in counted)
    expected = [gold.expected_answer for gold in golds if gold.expected_answer is not None]
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
            "expected_answer, characters": _spread(map(len, expected)),
        },
        "fields": _ranked(Counter(name for _, row in entries for name in row)),
    }


def _slices(entries: Iterable[tuple[Gold, Row]]) -> dict[str, dict[str, dict[str, int]]]:
    items: dict[str, Counter[str]] = {}
    answerable: dict[str, Counter[str]] = {}
    for gold, row in entries:
        labels = {(name, _as_text(row[name])) for name in _PLAIN if name in row}
        labels |= {("tags", tag) for tag in row.get("tags", ())}
        labels |= {(f"meta.{name}", _as_text(value)) for name, value in row.get("meta", {}).items()}
        for name, value in labels:
            items.setdefault(name, Counter())[value] += 1
            answerable.setdefault(name, Counter())[value] += gold.answerable
    order = [name for name in (*_PLAIN, "tags") if name in items]
    order += sorted(items.keys() - set(order))
    return {
        name: {value: {"items": n, "answerable": answerable[name][value]} for value, n in _ranked(items[name]).items()}
        for name in order
    }


def _as_text(value: Any) -> str:
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
