"""Measure how often the interval of kappa covers the true value, by simulation.

    python bench/statistics/agreement.py [--samples 1500]

A population is a table of judge and people, both with scores from 0 to 5. "bad" is the expected number of answers that
people find bad (below 4): kappa depends on few answers if it is small. The interval promises 0.975 at each end.
"""

from __future__ import annotations

import argparse

import numpy as np

from rag_eval.stats.agreement import Sums, concordance, jackknife_z

BASES = {
    "even": ([1 / 6] * 6, (0.1, 0.4, 1.0)),
    "mostly good": ([0.01, 0.03, 0.06, 0.1, 0.2, 0.6], (0.1, 0.4, 1.0)),
    "good or bad": ([0.15, 0, 0, 0, 0, 0.85], (0.01, 0.05, 0.15)),
    "rarely bad": ([0.03, 0, 0, 0, 0, 0.97], (0.01, 0.05, 0.15)),
}
SIZES = (20, 50, 150, 400)


def population(base: list[float], noise: float) -> np.ndarray:
    """Return the probability of each pair: the judge is off by chance, more rarely the further."""
    people, judge = np.indices((6, 6))
    if max(base) < 0.8:
        table = np.exp(-np.abs(judge - people) / noise)
    else:
        table = np.where(judge == people, 1 - noise, np.where(np.isin(judge, (0, 5)), noise, 0.0))
    return table / table.sum(1, keepdims=True) * np.array(base)[:, None]


def true_kappa(table: np.ndarray) -> float:
    """Return quadratic weighted kappa of a population."""
    weights = np.subtract(*np.indices((6, 6))) ** 2
    return float(1 - (table * weights).sum() / (np.outer(table.sum(1), table.sum(0)) * weights).sum())


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1500)
    samples = parser.parse_args().samples
    chance = np.random.default_rng(3)
    print("| scores of people | true kappa | answers | bad | low end covers | high end covers | no interval |")
    print("|---|---|---|---|---|---|---|")
    for name, (base, noises) in BASES.items():
        for noise in noises:
            table = population(base, noise)
            kappa = true_kappa(table)
            for n in SIZES:
                draws = chance.choice(36, (samples, n), p=table.ravel())
                found = [
                    jackknife_z([Sums.of([(float(one // 6), float(one % 6), 1.0)]) for one in draw], concordance)
                    for draw in draws
                ]
                ends = [(one.low, one.high) for one in found if one.low is not None and one.high is not None]
                low = sum(end[0] <= kappa + 1e-12 for end in ends) / len(ends)
                high = sum(end[1] >= kappa - 1e-12 for end in ends) / len(ends)
                bad = n * sum(base[:4])
                undefined = 1 - len(ends) / samples
                print(f"| {name} | {kappa:.3f} | {n} | {bad:.1f} | {low:.3f} | {high:.3f} | {undefined:.3f} |")


if __name__ == "__main__":
    main()
