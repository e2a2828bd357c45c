"""bench/RESULTS.md: what was asked and reached, every comparison, and the command of every figure."""

from __future__ import annotations

from statistics import median

from speed import figures
from speed.measuring import shown

HEAD = """\
# Measured

Written by `make bench`; `make bench BENCH="--only million --rounds 5"` measures some works again, and
`make bench BENCH=--help` says what else it takes. The figures of all rounds are in [results.json](results.json).

{machines}

Whole processes, in turn: a ratio is that of two neighbours in time, so that what else the machine does weighs on both,
and what is shown is the median of the rounds, with the least and the most. rag-eval holds every row against its schema
and refuses what is not strict JSON; the plain scorer (`tests/plain_scorer.py`) computes five numbers in one file of
standard Python and validates nothing. A program's time counts only after its numbers were found equal to ours, to
1e-9 or to the four digits that it prints. Memory is the most resident of any one process.

![Times as fast as its peers](results.svg)

"""
LIMIT = """
A physical limit to hold the MB/s against: a scorer in C++ with simdjson that computes eight metrics, validates nothing
and has the file in memory already came to 1,150 MB/s on one core of such a machine. That is another program's figure,
measured once, and not by `make bench`.
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
    """Why there is no figure of a side; empty where there is one."""
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
    yield "Data lies in the folder of `--data DIR`, where `bench/make_data.py` made it; the rest is the project's.\n"
    for work in works:
        found = results.get(work.key, {})
        about = f"measured at {found['commit']}, load before {found['load']:.1f}" if found else "not measured yet"
        yield f"**{work.title}** (`--only {work.key}`; {about}){f': {work.note}' if work.note else ''}\n"
        yield "```sh"
        yield from (shown(side.command) for side in work.sides)
        if work.truth:
            yield f"{shown(work.truth)}  # our numbers, to hold the others' against"
        yield "```\n"
