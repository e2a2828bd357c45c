"""Whether the numbers of two programs are the same: only then does their time count."""

from __future__ import annotations

import json
from math import isclose

CLOSE = 1e-9
NOT_NUMBERS = ("k", "gates", "pass")


def scores(text):
    """The numbers of the reference scorer's flat JSON."""
    return {name: value for name, value in json.loads(text).items() if name not in NOT_NUMBERS}


def own(text):
    """What a script says under ``numbers``, or all of what it says, on its last line."""
    found = json.loads(text.splitlines()[-1])
    return found.get("numbers", found)


def all_runs(text):
    """The flat JSON of many runs of the same size as one: counts add, rates are counts over counts again.

    The scorer prints rates of four digits: for less than 10,000 cases they say exactly which count it was.
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
    """Where numbers are not those of ``truth``, in words; empty where they are equal to 1e-9."""
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
