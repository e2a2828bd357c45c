"""Measures how often each interval covers the true value, and how long each function of rag_eval.stats takes.

    python bench/statistics/coverage.py [--samples 2000] [--write]

Needs numpy (it comes with the test group). The samples are the same on every run. ``--write`` puts the tables into the
marked block of docs/internals/statistics.md.
"""

import argparse
import random
import sys
import timeit
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np

from rag_eval.stats import intervals, power, probability
from rag_eval.stats.intervals import clopper_pearson, interval, percentile_ranks
from rag_eval.stats.paired import above_percentile, mcnemar, mean_difference, paired_p, sign_flip
from rag_eval.stats.power import cases_needed, minimum_effect
from rag_eval.stats.probability import log_binomial, normal_quantile, student_upper

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "statistics.md"
BEGIN, END = "<!-- measured: bench/statistics/coverage.py -->\n", "<!-- end -->"
RESAMPLES = 999
SIZES = (10, 30, 100, 300)
RATES = (0.5, 0.8, 0.95, 0.99)
Z = normal_quantile(0.975)


def reciprocal_ranks(chance, shape):
    return chance.choice([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 0], shape, p=[0.6, 0.15, 0.08, 0.05, 0.02, 0.1])


def graded_gains(chance, shape):
    kind = chance.random(shape)
    return np.where(kind < 0.1, 0.0, np.where(kind < 0.6, 1.0, chance.beta(4, 2, shape)))


def shares(chance, shape):
    parts = chance.integers(1, 5, shape)
    return chance.binomial(parts, 0.8) / parts


def nearly_perfect(chance, shape):
    return np.where(chance.random(shape) < 0.95, 1.0, chance.beta(2, 2, shape))


BOUNDED = {
    "reciprocal ranks": (reciprocal_ranks, 0.6 + 0.15 / 2 + 0.08 / 3 + 0.05 / 4 + 0.02 / 5),
    "graded gains": (graded_gains, 0.5 + 0.4 * 4 / 6),
    "shares": (shares, 0.8),
    "nearly perfect": (nearly_perfect, 0.95 + 0.05 / 2),
}


def log_normal(sigma):
    return (lambda chance, shape: chance.lognormal(0, sigma, shape)), np.exp(sigma**2 / 2)


OPEN = {f"log-normal, sigma {sigma}": log_normal(sigma) for sigma in (0.5, 1.0, 1.5)}


def student(sample, _):
    error = student_upper(0.025, len(sample) - 1) * sample.std(ddof=1) / len(sample) ** 0.5
    return sample.mean() - error, sample.mean() + error


def resampled(sample, chance):
    return sample[chance.integers(0, len(sample), (RESAMPLES, len(sample)))]


def percentile_bootstrap(sample, chance):
    return np.quantile(resampled(sample, chance).mean(1), [0.025, 0.975])


def bca(sample, chance):
    means, mean = resampled(sample, chance).mean(1), sample.mean()
    share = ((means < mean).sum() + (means == mean).sum() / 2) / RESAMPLES
    bias = normal_quantile(min(max(share, 0.001), 0.999))
    off = sample - mean
    pull = (off**3).sum() / (6 * (off**2).sum() ** 1.5) if sample.std() else 0.0
    return np.quantile(means, [NormalDist().cdf(bias + (bias + z) / (1 - pull * (bias + z))) for z in (-Z, Z)])


def bootstrap_t(sample, chance):
    drawn, error = resampled(sample, chance), sample.std(ddof=1) / len(sample) ** 0.5
    errors = drawn.std(1, ddof=1) / len(sample) ** 0.5
    ratios = np.sort(np.divide(drawn.mean(1) - sample.mean(), errors, out=np.zeros(RESAMPLES), where=errors > 0))
    return sample.mean() - ratios[974] * error, sample.mean() - ratios[24] * error


def empirical_bernstein(sample, _):
    n, odds = len(sample), np.log(4 / 0.05)
    error = (2 * sample.var(ddof=1) * odds / n) ** 0.5 + 7 * odds / (3 * (n - 1))
    return max(0.0, sample.mean() - error), min(1.0, sample.mean() + error)


def anderson(sample, _):
    def most(ordered):
        band = (np.log(2 / 0.05) / (2 * len(ordered))) ** 0.5
        steps = np.diff(np.append(ordered, 1.0))
        return 1 - (steps * np.maximum(0, np.arange(1, len(ordered) + 1) / len(ordered) - band)).sum()

    return 1 - most(np.sort(1 - sample)), most(np.sort(sample))


def ours_bounded(sample, _):
    return interval(sample.tolist())[:2]


def ours_open(sample, _):
    return interval(sample.tolist(), "mean", (0.0, None))[:2]


COMMON = {"Student t": student, "percentile bootstrap": percentile_bootstrap, "BCa": bca, "bootstrap-t": bootstrap_t}
FOR_BOUNDED = {**COMMON, "empirical Bernstein": empirical_bernstein, "Anderson": anderson, "**Gaffke**": ours_bounded}
FOR_OPEN = {**COMMON, "**Hall and t**": ours_open}


def measure(draw, mean, n, methods, samples):
    """Coverage and mean width of each method, over the same samples."""
    samples = draw(np.random.default_rng([n, samples]), (samples, n))
    for method in methods.values():
        chance = np.random.default_rng(1)
        ends = np.array([method(sample, chance) for sample in samples], float)
        covered = (ends[:, 0] <= mean + 1e-12) & (mean - 1e-12 <= ends[:, 1])
        yield covered.mean(), (ends[:, 1] - ends[:, 0]).mean()


def means(kinds, methods, sizes, samples):
    head = ["scores", "n", *methods]
    rows = []
    for name, (draw, mean) in kinds.items():
        for n in sizes:
            found = list(measure(draw, mean, n, methods, samples))
            rows.append([name, n, *(f"{covered:.1%} ({width / found[0][1]:.2f})" for covered, width in found)])
            print(rows[-1], file=sys.stderr)
    return markdown(head, rows)


def rates():
    """Exact: the probabilities of all counts whose interval covers the rate, added up."""
    return markdown(["n", *(f"p = {p}" for p in RATES)], [[n, *rate_row(n)] for n in SIZES])


def rate_row(n):
    ends = [clopper_pearson(hits, n) for hits in range(n + 1)]
    for p in RATES:
        yield f"{coverage(n, p, [low <= p <= high for low, high in ends]):.1%}"


def percentiles():
    """Exact, for scores without ties (with ties it is more): the count below the percentile is binomial."""
    rows = []
    for n in SIZES:
        row = [n]
        for share in (0.5, 0.95):
            below, above = percentile_ranks(n, share)
            inside = coverage(n, share, [(below or 0) <= k < (above or n + 1) for k in range(n + 1)])
            row += [f"{inside:.1%}", below or "none", above or "none"]
        rows.append(row)
    return markdown(["n", "p50", "from rank", "to rank", "p95", "from rank", "to rank"], rows)


def coverage(n, p, covers):
    return sum(np.exp(log_binomial(k, n, p)) for k in range(n + 1) if covers[k])


def times():
    rows = [[f"{n:,}", *(f"{1000 * best(work):.2g}" for work in timed(n).values())] for n in (30, 300, 1000, 10_000)]
    return markdown(["n", *timed(1)], rows)


def timed(n):
    chance, margin = random.Random(n), Fraction(2, 100)
    scores = [chance.betavariate(2, 1) for _ in range(n)]
    waits = [chance.lognormvariate(5, 1) for _ in range(n)]
    slower = [(one * chance.lognormvariate(0.05, 0.3), one) for one in waits]
    pairs = [(one, min(1.0, max(0.0, one - chance.gauss(0.02, 0.1)))) for one in scores]
    return {
        "clopper_pearson": lambda: clopper_pearson(n * 4 // 5, n),
        "Gaffke": lambda: interval(scores),
        "Hall and t": lambda: interval(waits, "mean", (0.0, None)),
        "p95": lambda: interval(waits, "p95", (0.0, None)),
        "mcnemar": lambda: mcnemar(n // 15, n // 30),
        "sign_flip": lambda: sign_flip(pairs, b"seed"),
        "percentile": lambda: paired_p(above_percentile(slower, 95), b"seed"),
        "difference": lambda: mean_difference(pairs),
        "minimum_effect": lambda: minimum_effect(n, 0.1, margin, 0.01),
        "cases_needed": lambda: cases_needed(0.04, 0.1, margin, 0.01),
    }


def best(function):
    return min(timeit.repeat(function, forget, number=1, repeat=5))


def forget():
    """What is remembered from one call to the next would be timed in place of the work."""
    for module in (intervals, power, probability):
        for remembers in vars(module).values():
            if hasattr(remembers, "cache_clear"):
                remembers.cache_clear()


def markdown(head, rows):
    lines = [head, ["---:"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    text = TEXT.format(
        samples=f"{args.samples:,}",
        rates=rates(),
        bounded=means(BOUNDED, FOR_BOUNDED, SIZES, args.samples),
        open=means(OPEN, FOR_OPEN, (10, 20, 30, 50, 100, 300), args.samples),
        percentiles=percentiles(),
        times=times(),
    )
    print(text)
    if args.write:
        before, rest = PAGE.read_text("utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


TEXT = """\

Coverage of intervals at 95 %, and in brackets their mean width as a multiple of Student's. Simulated figures are from
{samples} samples each (standard error about 0.5 points at 95 %); rates and percentiles are computed, not simulated.

**Rates** (scores of 0 and 1), Clopper–Pearson:

{rates}
**Means of scores between 0 and 1**:

{bounded}
**Means of scores without a maximum** (latency, cost):

{open}
**Percentiles**, for scores without ties (with ties it is more). *none* means that n scores have no such rank:

{percentiles}
**Time**, in milliseconds on one core, best of five, nothing remembered from before:

{times}
"""

if __name__ == "__main__":
    main()
