"""Simulates pull requests and counts how often a regression gate fails one: wrongly, and where it should.

    python bench/regression.py [--runs 2000] [--write]

Each pull request is judged by the code that judges real ones: 20 gates on worsening, four metrics in each of five
slices, over questions whose scores are drawn. The scores are the same on every run. ``--write`` puts the tables into
the marked block of docs/statistics.md.
"""

import argparse
import random
import time
from pathlib import Path

from rag_eval.judging.evidence import Baseline, Evidence
from rag_eval.judging.gates import Gate, Policy, Slices, Statistics
from rag_eval.judging.outcomes import judge_all
from rag_eval.judging.results import Question
from rag_eval.scoring.scorecard import Completeness

PAGE = Path(__file__).parent.parent / "docs" / "statistics.md"
BEGIN, END = "<!-- measured: bench/regression.py -->\n", "<!-- end of bench/regression.py -->"
SLICES = [f"category={letter}" for letter in "abcde"]
RATES = ["precision", "chr", "recall_all@5"]
MEANS = ["mrr"]
RANKS = [1.0, 1.0, 1.0, 0.5, 0.5, 1 / 3, 0.2, 0.0]
MARGIN = "0.02"
WATCHED = Gate("precision", "max_drop", MARGIN)
SIZES = (100, 300)
CHANGES = (0.02, 0.10)
"""Of the questions, those whose score changes without the system being better or worse."""
UNCHANGED = [
    *((n, share, "0", "holm") for n in SIZES for share in (*CHANGES, 0.30)),
    *((n, 0.10, MARGIN, "holm") for n in SIZES),
    (300, 0.30, "0", "none"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    begun = time.perf_counter()
    text = "\n\n".join([unchanged(args.runs), worsened(args.runs)])
    print(text)
    print(f"\n{time.perf_counter() - begun:.0f} s")
    if args.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def unchanged(runs):
    """How often any of 20 gates fails a pull request that changes nothing but which answers happen to be right."""
    rows = []
    for n, share, margin, correction in UNCHANGED:
        failed = [failing(noise(n, share, seed), gates(margin), correction) for seed in range(runs)]
        rows.append([n, f"{share:.0%}", margin, correction, *share_of(failed)])
    return table(["questions", "scores that change", "margin", "correction", "a gate fails", "of"], rows)


def worsened(runs):
    """How often the gate on precision fails where precision falls by what the report calls smallest visible drop."""
    rows = []
    for n in SIZES:
        for share in CHANGES:
            for own in ((WATCHED,), (WATCHED, *gates(MARGIN)[1:])):
                drop = visible(n, share, own)
                failed = [watched(drops(n, share, drop, seed), own) for seed in range(runs)]
                rows.append([n, f"{share:.0%}", len(own), f"{drop:.3f}", *share_of(failed)])
    return table(["questions", "scores that change", "gates", "smallest visible drop", "the gate fails", "of"], rows)


def gates(margin):
    """A gate on each metric of each slice."""
    return tuple(Gate(name, "max_drop", margin, slice=part) for part in SLICES for name in RATES + MEANS)


def noise(n, share, seed):
    """Two runs of one system: each score is drawn, and drawn again in ``share`` of the cases."""
    chance = random.Random(f"{n} {share} {seed}")
    before = [score(chance) for _ in range(n)]
    return before, [again(chance, own, share) for own in before]


def score(chance):
    return {**{name: float(chance.random() < 0.8) for name in RATES}, **{name: chance.choice(RANKS) for name in MEANS}}


def again(chance, own, share):
    """A rate is turned in ``share`` of the cases, so that right and wrong are as likely as before."""
    # Of 0.8 n right answers and 0.2 n wrong ones as many turn either way: share / 2 of all cases each.
    turn = {1.0: share / 2 / 0.8, 0.0: share / 2 / 0.2}
    rates = {name: 1 - own[name] if chance.random() < turn[own[name]] else own[name] for name in RATES}
    means = {name: chance.choice(RANKS) if chance.random() < share else own[name] for name in MEANS}
    return {**rates, **means}


def drops(n, share, drop, seed):
    """A system of which precision falls by ``drop``; the larger of ``share`` and ``drop`` changes."""
    chance = random.Random(f"drop {n} {share} {seed}")
    before = [score(chance) for _ in range(n)]
    after = [again(chance, own, share) for own in before]
    for old, new in zip(before, after, strict=True):
        old["precision"], new["precision"] = turned(chance.random(), max(share, drop), drop)
    return before, after


def turned(drawn, share, drop):
    worse, changed = (share + drop) / 2, share
    return (1.0, 0.0) if drawn < worse else (0.0, 1.0) if drawn < changed else (1.0, 1.0)


def judged(runs, gates, correction="holm"):
    """The outcomes, by the code that judges real runs."""
    before, after = ([case(place, own) for place, own in enumerate(side)] for side in runs)
    contracts = dict.fromkeys(RATES + MEANS, "same")
    found = Completeness(len(after), len(after), 0, 0, 0, 0)
    evidence = Evidence(after, {}, found, contracts, Baseline(before, contracts))
    policy = Policy(
        gates=tuple(gates), slices=Slices((), 1), completeness={}, statistics=Statistics(correction=correction)
    )
    return judge_all(policy, evidence)


def case(place, scores):
    part = (SLICES[place % len(SLICES)],)
    return Question(f"Q{place}", None, "?", True, "OK", "OK", scores, 1, 1, "same", part)


def failing(runs, gates, correction):
    return any(one.outcome == "failed" for one in judged(runs, gates, correction))


def watched(runs, gates):
    return judged(runs, gates)[0].outcome == "failed"


def visible(n, share, gates):
    """The smallest visible drop that the report states where ``share`` of the scores changed, evenly."""
    turns = round(n * share / 2)
    sides = [(1.0, 0.0)] * turns + [(0.0, 1.0)] * turns + [(1.0, 1.0)] * (n - 2 * turns)
    before, after = noise(n, share, 0)
    for old, new, (one, other) in zip(before, after, sides, strict=True):
        old["precision"], new["precision"] = one, other
    return judged((before, after), gates)[0].comparison.visible


def share_of(failed):
    return [f"{sum(failed) / len(failed):.1%}", f"{len(failed):,}"]


def table(head, rows):
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


if __name__ == "__main__":
    main()
