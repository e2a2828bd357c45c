"""The reference scorer's numbers, by its own reading of a trace: what ``--format scores`` prints.

It differs from the metrics of the same names in four things: only ``answer_json``, ``retrieved_ids``, ``qid`` and
``q_id`` are read; a refusal is the token and nothing else; ``recall@k`` looks at the raw first k, repeats included; and
no shipped answer makes precision and chr 1.0, no (un)answerable item makes its rate 0.0.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from rag_eval.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rag_eval.model import Gold

    Row = dict[str, Any]

DEFAULT_GATES = {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"}


class Outcome(NamedTuple):
    """What the reference scorer sees in one case."""

    answerable: bool
    shipped: bool
    hit: bool
    right: bool
    recalled: bool


class Counts(NamedTuple):
    """Outcomes of all gold items, and how the trace rows fell on them."""

    outcomes: Counter[Outcome]
    missing: int
    duplicate: int
    unknown: int
    unread: int


def parse_gates(text: str) -> dict[str, str]:
    """Inline gates, ``precision=0.80,chr=0.75,under=0.05,over=0.10``: all four, each a finite number."""
    try:
        gates = dict(part.split("=") for part in text.split(","))
        finite = all(abs(float(gates[name])) < float("inf") for name in DEFAULT_GATES)
    except (KeyError, ValueError):
        finite = False
    if not finite:
        raise UsageError(f"--gates '{text[:80]}' is not of the form precision=0.80,chr=0.75,under=0.05,over=0.10")
    return gates


def count(golds: Mapping[str, Gold], rows: Iterable[Row], k: int, token: str) -> Counts:
    """Outcomes of every gold item; the last row of a qid wins, an item without one is an empty answer."""
    seen: dict[str, Outcome] = {}
    duplicate = unknown = unread = 0
    for row in rows:
        qid = row.get("qid") or row.get("q_id")
        gold = golds.get(qid) if qid else None
        unread += not qid or "answer_json" not in row
        if gold is None:
            unknown += bool(qid)
        else:
            duplicate += gold.qid in seen
            seen[gold.qid] = outcome(gold, row, k, token)
    nothing: Row = {}
    missing = [outcome(gold, nothing, k, token) for gold in golds.values() if gold.qid not in seen]
    outcomes = Counter(seen.values())
    outcomes.update(missing)
    return Counts(outcomes, len(missing), duplicate, unknown, unread)


def outcome(gold: Gold, row: Row, k: int, token: str) -> Outcome:
    """One case as the reference scorer sees it."""
    answer = row.get("answer_json") or {}
    claim = (answer.get("claim") or "").strip().lower()
    retrieved = row.get("retrieved_ids") or ()
    recalled = set(gold.citations).issubset(retrieved[:k])
    if claim == token:
        return Outcome(gold.answerable, False, False, False, recalled)
    hit = gold.answerable and _hits(gold, answer.get("citations") or (), retrieved)
    right = hit and (not gold.substrings or any(text in claim for text in gold.substrings))
    return Outcome(gold.answerable, True, hit, right, recalled)


def scores(counts: Counts, k: int, gates: Mapping[str, str]) -> dict[str, Any]:
    """The flat JSON of the reference scorer."""
    total = counts.outcomes.items()
    answerable = sum(n for one, n in total if one.answerable)
    unanswerable = sum(n for one, n in total if not one.answerable)
    shipped = sum(n for one, n in total if one.shipped)
    right = sum(n for one, n in total if one.right)
    hit = sum(n for one, n in total if one.hit)
    under = sum(n for one, n in total if one.shipped and not one.answerable)
    over = sum(n for one, n in total if one.answerable and not one.shipped)
    recalled = sum(n for one, n in total if one.answerable and one.recalled)
    values = {
        "precision": right / shipped if shipped else 1.0,
        "chr": hit / shipped if shipped else 1.0,
        "under": under / unanswerable if unanswerable else 0.0,
        "over": over / answerable if answerable else 0.0,
        "recall": recalled / answerable if answerable else 0.0,
    }
    shown = {name: round(value, 4) for name, value in values.items()}
    return {
        "answered": shipped,
        "refused": answerable + unanswerable - shipped,
        "answerable": answerable,
        "unanswerable": unanswerable,
        "precision": shown["precision"],
        "chr": shown["chr"],
        "under_refusal": shown["under"],
        "over_refusal": shown["over"],
        "recall@k": shown["recall"],
        "k": k,
        "gates": dict(gates),
        "pass": _passes(values, gates),
    }


def _hits(gold: Gold, cites: Any, retrieved: Any) -> bool:
    cited = set(cites)
    if not cited.issubset(retrieved):
        return False
    return not cited.isdisjoint(gold.citations) if gold.citations else not cited


def _passes(values: Mapping[str, float], gates: Mapping[str, str]) -> bool:
    floors = all(values[name] >= float(gates[name]) for name in ("precision", "chr"))
    return floors and all(values[name] <= float(gates[name]) for name in ("under", "over"))
