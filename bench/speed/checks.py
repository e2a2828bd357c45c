"""Comparison of the numbers of two programs: a time counts only if they are equal."""

from __future__ import annotations

import json
from math import isclose

CLOSE = 1e-9
NOT_NUMBERS = ("k", "gates", "pass")


def scores(text):
    """Return the numbers of the reference scorer's flat JSON."""
    return {name: value for name, value in json.loads(text).items() if name not in NOT_NUMBERS}


def own(text):
    """Return ``numbers`` of the JSON on the last line, or all of it."""
    found = json.loads(text.splitlines()[-1])
    return found.get("numbers", found)


def all_runs(text):
    """Merge the flat JSON of many runs of equal size: counts are added, and rates computed from counts.

    The scorer prints rates with four digits, which determine the count exactly for fewer than 10,000 cases.
    """
    runs = list(_objects(text))
    n = {name: sum(run[name] for run in runs) for name in ("answered", "answerable", "unanswerable")}
    found = {}
    for name, base in OVER.items():
        counted = sum(round(run[name] * run[base]) for run in runs)
        found[name] = round(counted / n[base], 4)
    return found


OVER = {
    "precision": "answered",
    "chr": "answered",
    "under_refusal": "unanswerable",
    "over_refusal": "answerable",
    "recall@k": "answerable",
}


def _objects(text):
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        found, end = decoder.raw_decode(text, place)
        yield found
        place = end + 1


def differences(truth, found):
    """Return how numbers differ from ``truth`` by more than 1e-9; an empty text if they do not."""
    if not found:
        return "it printed no numbers"
    for name, value in found.items():
        if name not in truth:
            continue
        if not same(truth[name], value):
            return f"its numbers differ: {name} is {value}, and not {truth[name]}"
    return "" if truth.keys() & found.keys() else "it printed none of our numbers"


def same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return isclose(one, other, rel_tol=0, abs_tol=CLOSE)
