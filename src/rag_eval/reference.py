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
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rag_eval.model import Gold

    Row = dict[str, Any]

_FEW = 200
DEFAULT_GATES = {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"}


# What the reference scorer sees in one case, as bits of a small number: a case costs no memory of its own.
ANSWERABLE, SHIPPED, HIT, RIGHT, RECALLED = 1, 2, 4, 8, 16


class Counts(NamedTuple):
    """Outcomes of all gold items, and how the trace rows fell on them."""

    outcomes: Counter[int]
    missing: int
    duplicate: int
    unknown: int
    unread: int

    def of(self, bits: int, without: int = 0) -> int:
        """How many cases have all of ``bits`` and none of ``without``."""
        return sum(n for one, n in self.outcomes.items() if one & bits == bits and not one & without)


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


def count(
    golds: Mapping[str, Gold],
    rows: Iterable[tuple[int, Row]],
    k: int,
    token: str,
    nameless: Callable[[int, Row], None] | None = None,
) -> Counts:
    """Outcomes of every gold item; the last row of a qid wins, an item without one is an empty answer.

    A first row is scored as it comes; of repeated ones the last is kept and scored in the end. ``nameless`` is told of
    each row (by line) without an id that the reference scorer reads.
    """
    token = token.lower()
    seen: dict[str, int] = {}
    again: dict[str, tuple[Any, Any]] = {}
    repeated = unknown = unread = 0
    for line, row in rows:
        qid = row.get("qid") or row.get("q_id")
        if not qid or "answer_json" not in row:
            unread += 1
            if not qid:
                if nameless:
                    nameless(line, row)
                continue
        gold = golds.get(qid)
        if gold is None:
            unknown += 1
        elif qid in seen:
            repeated += 1
            again[qid] = row.get("answer_json"), row.get("retrieved_ids")
        else:
            seen[qid] = outcome(gold, row.get("answer_json"), row.get("retrieved_ids"), k, token)
    seen.update((qid, outcome(golds[qid], *read, k, token)) for qid, read in again.items())
    outcomes = Counter(seen.values())
    outcomes.update(outcome(gold, None, None, k, token) for gold in golds.values() if gold.qid not in seen)
    return Counts(outcomes, len(golds) - len(seen), repeated, unknown, unread)


def outcome(gold: Gold, answer: Row | None, retrieved: Sequence[str] | None, k: int, token: str) -> int:
    """One case as the reference scorer sees it: from the trace's ``answer_json`` and ``retrieved_ids``.

    ``token`` is lower-cased.
    """
    answer, retrieved = answer or {}, retrieved or ()
    claim = (answer.get("claim") or "").strip().lower()
    bits = ANSWERABLE if gold.answerable else 0
    if gold.answerable and _within(gold.citations, retrieved[:k]):
        bits |= RECALLED
    if claim == token:
        return bits
    if not gold.answerable or not _hits(gold, answer.get("citations") or (), retrieved):
        return bits | SHIPPED
    if not gold.substrings or any([text in claim for text in gold.substrings]):
        bits |= RIGHT
    return bits | SHIPPED | HIT


def scores(counts: Counts, k: int, gates: Mapping[str, str]) -> dict[str, Any]:
    """The flat JSON of the reference scorer."""
    answerable, unanswerable, shipped = counts.of(ANSWERABLE), counts.of(0, ANSWERABLE), counts.of(SHIPPED)
    values = {
        "precision": counts.of(RIGHT) / shipped if shipped else 1.0,
        "chr": counts.of(HIT) / shipped if shipped else 1.0,
        "under": counts.of(SHIPPED, ANSWERABLE) / unanswerable if unanswerable else 0.0,
        "over": counts.of(ANSWERABLE, SHIPPED) / answerable if answerable else 0.0,
        "recall": counts.of(RECALLED) / answerable if answerable else 0.0,
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


def _hits(gold: Gold, cites: Sequence[str], retrieved: Sequence[str]) -> bool:
    if not _within(cites, retrieved):
        return False
    return any([one in gold.citations for one in cites]) if gold.citations else not cites


def _within(wanted: Sequence[str], among: Sequence[str]) -> bool:
    # Lists of a handful of ids: looking through them is quicker than making sets. Long ones are made sets all the same.
    if len(wanted) * len(among) > _FEW:
        return set(among).issuperset(wanted)
    return all([one in among for one in wanted])


def _passes(values: Mapping[str, float], gates: Mapping[str, str]) -> bool:
    floors = all(values[name] >= float(gates[name]) for name in ("precision", "chr"))
    return floors and all(values[name] <= float(gates[name]) for name in ("under", "over"))
