"""A stratified sample of recorded verdicts for people to grade, without the judge's grades."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import sqrt
from typing import Any, NamedTuple

from rag_eval.contract.verdict import digest_of

Row = dict[str, Any]


class SampledVerdict(NamedTuple):
    """A drawn verdict, its stratum, and how many verdicts it represents."""

    row: Row
    stratum: str
    weight: float

    def label(self, seed: str) -> Row:
        """Return the fields of a label that identify the graded answer."""
        run = {"run": self.row["run"]} if "run" in self.row else {}
        about = {"qid": self.row["qid"], **run, "input": digest_of(self.row["input"])}
        return {**about, "scale": "0-5", "weight": round(self.weight, 6), "seed": seed}


def sample_verdicts(rows: Sequence[Row], kinds: Mapping[str, str], size: int, seed: str) -> list[SampledVerdict]:
    """Draw verdicts by the judge's score and the kind of question, as finely as ``size`` allows.

    Each stratum contributes one, and more by the square root of its size: rare grades are drawn more often, and weigh
    less. The order of the rows does not matter.
    """
    strata: dict[str, list[Row]] = {}
    for cut in (_score_and_kind(kinds), _score, lambda _: "all"):
        strata = _cut(rows, cut)
        if len(strata) <= size:
            break
    taken = dict.fromkeys(strata, 0)
    for _ in range(min(size, len(rows))):
        open_ = [name for name, some in strata.items() if taken[name] < len(some)]
        taken[max(open_, key=lambda name: (sqrt(len(strata[name])) / (taken[name] or 1e-9), name))] += 1
    drawn = []
    for name, some in strata.items():
        ordered = sorted(some, key=lambda row: _place(seed, row["hash"]))
        drawn += [SampledVerdict(row, name, len(some) / taken[name]) for row in ordered[: taken[name]]]
    return sorted(drawn, key=lambda item: _place(f"{seed} order", item.row["hash"]))


def _score(row: Row) -> str:
    return (
        f"groundedness {row['groundedness']}"
        if row.get("groundedness") is not None
        else f"correctness {row.get('correctness')}"
    )


def _score_and_kind(kinds: Mapping[str, str]) -> Callable[[Row], str]:
    return lambda row: f"{_score(row)}, {kinds.get(row['qid'], '')}"


def _cut(rows: Sequence[Row], name_of: Callable[[Row], str]) -> dict[str, list[Row]]:
    strata: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        strata[name_of(row)].append(row)
    return dict(sorted(strata.items()))


def _place(seed: str, name: str) -> str:
    return sha256(f"{seed} {name}".encode()).hexdigest()
