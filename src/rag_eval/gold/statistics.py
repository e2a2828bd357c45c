"""What a gold set is made of: counts, slices, sizes, fields in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_eval.contract import Gold

    Row = dict[str, Any]

_PLAIN = ("category", "difficulty", "query_type", "multi_hop")


def stats(entries: Sequence[tuple[Gold, Row]]) -> dict[str, Any]:
    """The counts of a gold set, ready for JSON.

    ``items``, ``answerable``, ``unanswerable`` (safety cases are in neither) and ``attacks`` are numbers; ``slices``
    has items and answerable ones by field and value, the most first; ``per_item`` how many items have how many
    citations and substrings; ``lengths`` least, median (the lower of two middles), most and total; ``fields`` the
    items that have each field.
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
