"""bench/RESULTS.md: the required figures, every comparison, and the command of every figure."""

from __future__ import annotations

from statistics import median

from speed import figures
from speed.measuring import shown

HEAD = """\
# Measured

`make bench` writes this page; `make bench BENCH="--only million --rounds 5"` measures some works again, and
`make bench BENCH=--help` lists its options. The figures of all rounds are in [results.json](results.json).

{machines}

Whole processes run in turn. A ratio compares two runs of the same round, so the load of the machine affects both. The
table shows the median of the rounds, with the minimum and the maximum. rag-eval validates every row against its schema
and refuses JSON that is not strict; the plain scorer (`tests/plain_scorer.py`) computes five numbers in one file of
standard Python and validates nothing. The time of a program counts only if its numbers equal ours, to 1e-9 or to the
four digits that it prints. Memory is the maximum resident memory of one process.

![Times as fast as its peers](results.svg)

"""
LIMIT = """
For comparison with a physical limit: a scorer in C++ with simdjson reached 1,150 MB/s on one core of such a machine. It
computes eight metrics, validates nothing, and had the file in memory. `make bench` did not measure this figure.
"""


def page(works, results):
    machines = sorted({f"{one['machine']}; {one['packages']}" for one in results.values()}) or ["Nothing yet."]
    parts = [HEAD.format(machines="\n".join(f"- {one}" for one in machines)), "## Asked and reached\n"]
    parts += [*_asked(works, results), "\n## Compared\n", *_compared(works, results), LIMIT]
    parts += ["## Commands\n", *_commands(works, results)]
    return "\n".join(parts) + "\n"


def _asked(works, results):
    yield "| work | asked | measured | |\n|---|---|---|---|"
    for work in works:
        rounds = results.get(work.key, {}).get("rounds", [])
        for ask in work.asks:
            value = figures.asked(ask, rounds)
            yield f"| {work.title} | {ask.words} | {figures.shown(ask, value)} | {figures.verdict(ask, value)} |"


def _compared(works, results):
    yield "A ratio below 1 means that rag-eval is faster.\n"
    yield "| work | rag-eval | s | MB | MB/s | against | s | MB | ratio of times | rounds |\n" + "|---" * 10 + "|"
    for work in works:
        found = results.get(work.key, {})
        for own, peer in work.pairs:
            yield _row(work, found, own, peer)


def _row(work, found, own, peer):
    cells = [work.title, own, *_cells(found, own), _rate(found, own), peer]
    reason = _reason(found, own) or _reason(found, peer)
    if reason:
        return "| " + " | ".join([*cells, *_cells(found, peer), reason, ""]) + " |"
    rounds = found["rounds"]
    cells += [*_cells(found, peer), figures.spread(figures.ratios(rounds, own, peer)), str(len(rounds))]
    return "| " + " | ".join(cells) + " |"


def _reason(found, name):
    """Return the reason for a missing figure of a side; empty if there is a figure."""
    if not found:
        return "not measured yet"
    reason = found["failed"].get(name) or found["failed"].get("")
    return f"{name}: {_cell(reason)}" if reason else ""


def _cell(text):
    return " ".join(text.replace("|", "\\|").split())


def _cells(found, name):
    if _reason(found, name):
        return ["–", "–"]
    wall, memory = (median(figures.values(found["rounds"], name, quantity)) for quantity in ("wall", "memory"))
    return [f"{wall:.3f}" if wall < 10 else f"{wall:.1f}", f"{memory / 1e6:.0f}"]


def _rate(found, name):
    size = found.get("bytes", {}).get(name, 0)
    if not size or _reason(found, name):
        return ""
    return f"{size / 1e6 / median(figures.values(found['rounds'], name, 'wall')):.0f}"


def _commands(works, results):
    yield "The data is in the folder `--data DIR`, made by `bench/make_data.py`; the other files are the project's.\n"
    for work in works:
        found = results.get(work.key, {})
        about = f"measured at {found['commit']}, load before {found['load']:.1f}" if found else "not measured yet"
        yield f"**{work.title}** (`--only {work.key}`; {about}){f': {work.note}' if work.note else ''}\n"
        yield "```sh"
        yield from (shown(side.command) for side in work.sides)
        if work.truth:
            yield f"{shown(work.truth)}  # our numbers, for comparison"
        yield "```\n"
