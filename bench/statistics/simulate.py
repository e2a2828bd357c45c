"""Simulates the claims of docs/statistics.md, each against a generator that shares no code with what it tests.

    python bench/statistics/simulate.py [--only NAME[,NAME]] [--samples 1000] [--seed 1] [--write]

Needs numpy and scipy (the test group has them). Exits with code 1 if a claim does not hold. ``--write`` writes the
tables to bench/statistics/RESULTS.md. Outcomes come from the code that judges real
runs, except if a table says otherwise.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from scipy import stats

from rag_eval.analysis.judging import judge_all
from rag_eval.gates import Gate, Policy, Slices, Statistics
from rag_eval.gates.evidence import Baseline, GroupedCases, RunEvidence
from rag_eval.gates.questions import Question
from rag_eval.metrics import measure
from rag_eval.scoring import Completeness
from rag_eval.scoring.aggregations import confidence_interval, difference, one_sided_p

PAGE = Path(__file__).parent / "RESULTS.md"
MARGIN = 0.02
SIZES = (50, 100, 200, 500)
NOISE = (0.02, 0.04, 0.10, 0.20)
RANKS = np.array([1, 1, 1, 1 / 2, 1 / 2, 1 / 3, 1 / 5, 0])


@dataclass
class Table:
    """Rows of one claim, and what did not hold."""

    title: str
    text: str
    head: list[str]
    rows: list[list[object]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, row: list[object], holds: bool) -> None:
        """Add a row; one that does not hold is marked, and fails the run."""
        self.rows.append([*row, "" if holds else "**does not hold**"])
        if not holds:
            self.broken.append(f"{self.title}: {row}")

    def markdown(self) -> str:
        """The table with its text."""
        head = [*self.head, ""]
        lines = [head, ["---:"] * len(head), *self.rows]
        body = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
        return f"## {self.title}\n\n{self.text}\n\n{body}\n"


# --- the product, called as a run calls it ----------------------------------------------------------------------------


def cases(scores: dict[str, np.ndarray], slices: list[str] | None = None) -> list[Question]:
    """The cases of a run from its columns of scores."""
    n = len(next(iter(scores.values())))
    rows = zip(*(column.tolist() for column in scores.values()), strict=True)
    return [
        Question(f"Q{place}", None, "?", True, "OK", "OK", dict(zip(scores, row, strict=True)), 1, 1, "same",
                 (slices[place],) if slices else ())
        for place, row in zip(range(n), rows, strict=True)
    ]  # fmt: skip


def judged(before, after, gates, **terms):
    """The outcomes of gates on two runs, given as columns of scores or as cases."""
    before, after = (side if isinstance(side, list) else cases(side) for side in (before, after))
    contracts = {gate.name: "same" for gate in gates}
    statistics = Statistics(**terms)
    evidence = RunEvidence(
        after, {}, Completeness(len(after), len(after), 0, 0, 0, 0), contracts, Baseline(before, contracts),
        cluster=statistics.cluster,
    )  # fmt: skip
    return judge_all(Policy(gates=tuple(gates), slices=Slices((), 1), completeness={}, statistics=statistics), evidence)


def wilson(hits: float, n: int, z: float = 3.0) -> tuple[float, float]:
    """Where the true share lies, three standard errors wide: claims are held to what the samples can show."""
    p, zz = hits / n, z * z / n
    middle, half = (p + zz / 2) / (1 + zz), z * np.sqrt(p * (1 - p) / n + zz / n / 4) / (1 + zz)
    return middle - half, middle + half


# --- 1. the minimum detectable effect ---------------------------------------------------------------------------------


def rerun(chance, before, share):
    """Another run of the same system: in a share of the cases a right answer becomes wrong, or a wrong one right."""
    right = before.mean(axis=-1, keepdims=True)
    turn = np.where(before, share / 2 / np.maximum(right, 1e-9), share / 2 / np.maximum(1 - right, 1e-9))
    return before ^ (chance.random(before.shape) < turn)


def effects_of_rates(samples: int, seed: int) -> Table:
    """An A/A rerun prints the MDE; then right answers are lost at random so that the rate falls by that on average."""
    table = Table(
        "Minimum detectable effect of rates",
        "An A/A rerun prints the minimum detectable effect (its mean is shown). Then the system loses right answers at "
        "random, on top of the same noise, so that the rate falls by just that. The margin is 0.02. Target: the gate "
        "fails in 78 % or more, as far as so many samples can tell (three standard errors).",
        ["questions", "gates", "noise", "MDE", "fails"],
    )  # fmt: skip
    for n in SIZES:
        for count in (1, 3, 10):
            for share in NOISE:
                chance = np.random.default_rng([seed, n, count, int(1000 * share)])
                names = ["precision", *[f"recall_any@{k}" for k in range(2, count + 1)]]
                gates = [Gate(name, "max_drop", str(MARGIN)) for name in names]
                found, printed = [], []
                for _ in range(max(1, samples // 50)):  # each A/A rerun prints its own figure
                    before = chance.random((count, n)) < 0.8
                    same = rerun(chance, before, share)
                    columns = [dict(zip(names, side.astype(float), strict=True)) for side in (before, same)]
                    mde = judged(*columns, gates)[0].comparison.mde
                    printed.append(mde)
                    found.append(detected(chance, n, share, mde, count, 50))
                power = np.mean(found)
                row = [n, count, f"{share:.0%}", f"{np.mean(printed):.3f}", f"{power:.1%}"]
                table.add(row, wilson(power * len(found) * 50, len(found) * 50)[1] >= 0.78)
    return table


def detected(chance, n, share, drop, gates, runs):
    """The share of runs in which a drop fails its gate, corrected for as many gates as if each could be significant."""
    before = chance.random((runs, n)) < 0.8
    after = rerun(chance, before, share) & ~(chance.random((runs, n)) < drop / 0.8)
    worse, better = (before & ~after).sum(1), (~before & after).sum(1)
    p = stats.binom.sf(worse - 1, worse + better, 0.5)
    return np.mean(((worse - better) / n > MARGIN + 1e-12) & (p <= 0.05 / gates * (1 + 1e-9)))


def effects_of_means(samples: int, seed: int) -> Table:
    """The same of reciprocal ranks: some are drawn anew, and the drop is carried by few cases, by halves, or by all."""
    table = Table(
        "Minimum detectable effect of means",
        "The same of reciprocal ranks, of which the noise draws a share anew. The drop is carried by cases that lose "
        "everything (sparse), that lose half, or by all cases alike (dense). Target: 78 % or more.",
        ["questions", "gates", "noise", "MDE", "sparse", "halves", "dense"],
    )
    for n in SIZES:
        for count in (1, 10):
            for share in (0.02, 0.10, 0.20):
                chance = np.random.default_rng([seed, 7, n, count, int(1000 * share)])
                powers, printed = [], []
                for kind in ("sparse", "halves", "dense"):
                    hits = 0
                    for _ in range(max(20, samples // 8)):
                        before = chance.choice(RANKS, n)
                        same = np.where(chance.random(n) < share, chance.choice(RANKS, n), before)
                        names = [f"recall@{k}" for k in range(1, count)]
                        gates = [Gate(name, "max_drop", str(MARGIN)) for name in ["mrr", *names]]
                        still = {name: chance.permutation(RANKS.repeat(-(-n // 8))[:n]) for name in names}
                        mde = judged({"mrr": before, **still}, {"mrr": same, **still}, gates)[0].comparison.mde
                        printed.append(mde)
                        start = chance.choice(RANKS, n)
                        again = np.where(chance.random(n) < share, chance.choice(RANKS, n), start)
                        lost = fallen(chance, again, mde, kind)
                        level = 0.05 / count
                        pairs = Counter(zip(start.tolist(), lost.tolist(), strict=True))
                        hits += start.mean() - lost.mean() > MARGIN and one_sided(pairs, level) <= level
                    powers.append(hits / max(20, samples // 8))
                row = [n, count, f"{share:.0%}", f"{np.mean(printed):.3f}", *(f"{power:.0%}" for power in powers)]
                runs = max(20, samples // 8)
                table.add(row, wilson(min(powers) * runs, runs)[1] >= 0.78)
    return table


def fallen(chance, scores, drop, kind):
    """Scores that fell by ``drop`` on average."""
    if kind == "dense":
        return scores - drop
    lost = chance.random(len(scores)) < drop / RANKS.mean() * (1 if kind == "sparse" else 2)
    return np.where(lost, 0 if kind == "sparse" else scores / 2, scores)


def one_sided(pairs, level):
    return one_sided_p("mean", pairs, b"simulated", level=level)


# --- 2. intervals of differences --------------------------------------------------------------------------------------


def trinomial(noise, drop):
    def draw(chance, n):
        kind = chance.choice(3, n, p=[noise / 2 + drop, noise / 2, 1 - noise - drop])
        return np.choose(kind, [1.0, 0.0, 1.0]), np.choose(kind, [0.0, 1.0, 1.0])

    return draw, drop


def ranks(share, lost):
    """Reciprocal ranks, some drawn anew and some lost."""

    def draw(chance, n):
        before = chance.choice(RANKS, n)
        after = np.where(chance.random(n) < share, chance.choice(RANKS, n), before)
        return before, np.where(chance.random(n) < lost, 0.0, after)

    return draw, lost * RANKS.mean()


def supports(drop):
    """Graded scores of which every one moves a little."""

    def draw(chance, n):
        quality = chance.beta(4, 2, n)
        return np.clip(quality, 0, 1), np.clip(quality - drop * quality * 2 * chance.random(n), 0, 1)

    return draw, drop * 4 / 6


def waits(sigma, times):
    """Latencies: a question's own time, and chance in each of the two runs. More is worse."""

    def draw(chance, n):
        own = 100 * chance.lognormal(0, sigma, n)
        return own * chance.lognormal(0, 0.5, n) * times, own * chance.lognormal(0, 0.5, n)

    return draw, 100 * np.exp(sigma**2 / 2 + 0.125) * (times - 1)


DIFFERENCES = {
    "rate, noise 2 %": ("precision", *trinomial(0.02, 0.0)),
    "rate, noise 4 %, drop 0.02": ("precision", *trinomial(0.04, 0.02)),
    "rate, noise 10 %, drop 0.05": ("precision", *trinomial(0.10, 0.05)),
    "rate, noise 20 %, drop 0.1": ("precision", *trinomial(0.20, 0.10)),
    "rate, noise 40 %": ("precision", *trinomial(0.40, 0.0)),
    "ranks, 5 % move": ("mrr", *ranks(0.05, 0.0)),
    "ranks, 10 % move, 5 % lost": ("mrr", *ranks(0.10, 0.05)),
    "ranks, all move": ("mrr", *ranks(1.0, 0.0)),
    "graded, all fall a little": ("map", *supports(0.1)),
    "latency, sigma 0.5, × 1.3": ("latency_total_ms.mean", *waits(0.5, 1.3)),
    "latency, sigma 1, same": ("latency_total_ms.mean", *waits(1.0, 1.0)),
    "latency, sigma 1, × 1.3": ("latency_total_ms.mean", *waits(1.0, 1.3)),
}


def differences(samples: int, seed: int) -> Table:
    table = Table(
        "Intervals of differences",
        "How often the 95 % interval of a difference holds the true one, and its mean width. Target: 94 % or more, as "
        "far as so many samples can tell (three standard errors).",
        ["scores", "n = 30", "width", "n = 100", "width", "n = 300", "width"],
    )
    for name, (metric, draw, truth) in DIFFERENCES.items():
        row, holds = [name], True
        for n in (30, 100, 300):
            chance, inside, width = np.random.default_rng([seed, 2, n, len(name)]), 0, 0.0
            for _ in range(samples):
                pairs = Counter(zip(*(side.round(9).tolist() for side in draw(chance, n)), strict=True))
                found = difference(measure(metric), pairs, 0.95)
                inside += found.low <= truth + 1e-9 and truth - 1e-9 <= found.high
                width += found.high - found.low
            holds &= wilson(inside, samples)[1] >= 0.94
            row += [f"{inside / samples:.1%}", f"{width / samples:.3g}"]
        table.add(row, holds)
    return table


def paired_waits(sigma, noise, times):
    """Latencies of two runs, and the true percentiles of both."""

    def draw(chance, n):
        own = chance.lognormal(5, sigma, n)
        return own * chance.lognormal(0, noise, n) * times, own * chance.lognormal(0, noise, n)

    spread = np.hypot(sigma, noise)
    return draw, lambda share: np.exp(5 + spread * stats.norm.ppf(share)) * np.array([times, 1.0])


FIGURES = {
    "latency, noise 5 %": paired_waits(0.6, 0.05, 1.0),
    "latency, noise 50 %": paired_waits(0.6, 0.5, 1.0),
    "latency, × 1.3": paired_waits(0.6, 0.3, 1.3),
    "latency, unrelated": paired_waits(0.0, 1.0, 1.5),
}


def figures(samples: int, seed: int) -> Table:
    table = Table(
        "Intervals of percentiles, areas and hit rates",
        "How often the 95 % interval of a value holds the true one, and how often that of the difference of two runs "
        "does. An end that no score can give is infinite. A third of the inputs are attacks. Target: 94 % or more.",
        ["figure", "scores", "n = 30", "n = 100", "n = 300"],
    )
    latency = "latency_total_ms"
    kinds = [(f"{latency}.{fold}", name, *waits) for fold in ("p50", "p95") for name, waits in FIGURES.items()]
    kinds += [(metric, f"attacks {shift} higher, then {shift - 0.4:.1f}", *detector(metric, shift))
              for metric in ("injection_auc", "injection_tpr@fpr5") for shift in (0.5, 1.5, 3.0)]  # fmt: skip
    for metric, name, draw, true in kinds:
        row, holds = [f"`{metric}`", name], True
        share = {"p50": 0.5, "p95": 0.95}.get(metric[-3:], 0.0)
        for n in (30, 100, 300):
            chance, one, both = np.random.default_rng([seed, 8, n, len(name)]), 0, 0
            first, second = true(share)
            for _ in range(samples):
                pairs = Counter(zip(*(listed(side) for side in draw(chance, n)), strict=True))
                found = difference(measure(metric), pairs, 0.95)
                both += holds_true(found, first - second)
                one += holds_true(
                    confidence_interval(measure(metric), Counter(a for a, _ in pairs.elements()), 0.95), first
                )
            holds &= min(wilson(count, samples)[1] for count in (one, both)) >= 0.94
            row.append(f"{one / samples:.1%} / {both / samples:.1%}")
        table.add(row, holds)
    return table


def listed(side):
    return side.tolist() if isinstance(side, np.ndarray) else side


def holds_true(found, truth):
    """An end that is None is as far away as can be."""
    low, high = (float("inf") * sign if end is None else end for sign, end in ((-1, found.low), (1, found.high)))
    return low - 1e-9 <= truth <= high + 1e-9


def detector(metric, shift):
    """Scores of inputs in two runs, those of attacks higher; the figure of either run."""

    def draw(chance, n):
        attack = chance.permutation(np.arange(n) < n // 3)
        own, moved = chance.normal(size=n), chance.normal(size=n)
        first = own + shift * attack
        second = 0.8 * own + 0.6 * moved + (shift - 0.4) * attack
        return [list(zip(side.tolist(), attack.tolist(), strict=True)) for side in (first, second)]

    def true(_):
        shifts = np.array([shift, shift - 0.4])
        return (
            stats.norm.cdf(shifts / np.sqrt(2))
            if metric.endswith("auc")
            else stats.norm.sf(stats.norm.ppf(0.95) - shifts)
        )

    return draw, true


# --- 3. the two questions ---------------------------------------------------------------------------------------------


def questions(samples: int, seed: int) -> Table:
    table = Table(
        "Error rates of gates",
        "A gate with a margin of 0.02 on a rate, noise 4 %. The drop of 0.015 is permitted, that of 0.05 is not.",
        ["test", "questions", "fails without a change", "fails at 0.015", "passes at 0.05", "inconclusive at 0.05"],
    )
    for kind in ("none", "regression", "non_inferiority"):
        for n in (30, 100, 300, 1000):
            row: list[object] = [f"`{kind}`", n]
            found = {drop: outcomes(kind, n, drop, samples, seed) for drop in (0.0, 0.015, 0.05)}
            row += [f"{found[0.0]['failed']:.1%}", f"{found[0.015]['failed']:.1%}", f"{found[0.05]['passed']:.1%}"]
            row.append(f"{found[0.05]['inconclusive']:.1%}")
            bound = {"none": 1, "regression": 0.05, "non_inferiority": 1}[kind]
            holds = found[0.0]["failed"] <= bound + 3 * np.sqrt(0.05 * 0.95 / samples)
            holds &= kind != "non_inferiority" or found[0.05]["passed"] <= 0.025 + 3 * np.sqrt(0.025 / samples)
            table.add(row, holds)
    return table


def outcomes(kind, n, drop, samples, seed):
    """The share of each outcome; counts that repeat are judged once."""
    chance = np.random.default_rng([seed, 3, n, int(1000 * drop)])
    counts = Counter(map(tuple, chance.multinomial(n, [0.02 + drop, 0.02, 0.96 - drop], samples).tolist()))
    found: Counter[str] = Counter()
    for (worse, better, _), times in counts.items():
        before, after = np.ones(n), np.ones(n)
        before[worse : worse + better], after[:worse] = 0, 0
        gate = Gate("precision", "max_drop", str(MARGIN), test=kind)
        found[judged({"precision": before}, {"precision": after}, [gate])[0].outcome] += times
    return Counter({outcome: times / samples for outcome, times in found.items()})


# --- 4. the family ----------------------------------------------------------------------------------------------------


def families(samples: int, seed: int) -> Table:
    table = Table(
        "Family-wise error",
        "Twelve gates without a margin on runs that differ by chance alone: the share of runs in which any gate fails. "
        "Target: 5 % or less, as far as so many samples can tell. Then the power against a drop of one column, in a "
        "quarter of the samples, with the product's correction and with Holm's over all twelve.",
        ["columns", "questions", "noise", "any gate fails", "power", "power, plain Holm"],
    )
    for kind in ("independent", "copied", "correlated", "few moves", "ranks"):
        for n, share in ((50, 0.2), (200, 0.05), (200, 0.3)):
            chance = np.random.default_rng([seed, 4, n, len(kind)])
            failed = power = plain = 0
            for sample in range(samples):
                before, after, names = family(chance, kind, n, share)
                gates = [Gate(name, "max_drop", "0") for name in names]
                failed += any(one.outcome == "failed" for one in judged(before, after, gates))
                worse = {**after, names[0]: after[names[0]] * (chance.random(n) >= 0.15)}
                if sample % 4 == 0:
                    hit = judged(before, worse, gates)
                    power += hit[0].outcome == "failed"
                    ps = [one.comparison.p for one in hit]
                    plain += ps[0] * sum(p >= ps[0] for p in ps) <= 0.05
            shown = [failed / samples, *(hits / len(range(0, samples, 4)) for hits in (power, plain))]
            row = [kind, n, f"{share:.0%}", *(f"{one:.1%}" for one in shown)]
            table.add(row, wilson(failed, samples)[0] <= 0.05 and power >= plain)
    return table


def family(chance, kind, n, share):
    """Two runs of one system in twelve columns."""
    names = [f"recall_any@{k}" for k in range(1, 13)]
    if kind == "ranks":
        names = [f"recall@{k}" for k in range(1, 13)]
        before = chance.choice(RANKS, (12, n))
        after = np.where(chance.random((12, n)) < share, chance.choice(RANKS, (12, n)), before)
        return dict(zip(names, before, strict=True)), dict(zip(names, after, strict=True)), names
    before = chance.random((12, n)) < 0.7
    shares = np.full((12, 1), share)
    if kind == "few moves":
        shares[1:] = 2 / n
    if kind in ("copied", "correlated"):
        before[:] = before[0]
    after = rerun(chance, before, shares)
    if kind == "copied":
        after[1:6], after[7:] = after[0], after[6]
    if kind == "correlated":  # most cases turn together
        after = np.where(chance.random((12, n)) < 0.8, after[0], after)
    return *(dict(zip(names, side.astype(float), strict=True)) for side in (before, after)), names


# --- 5. clusters ------------------------------------------------------------------------------------------------------


def clusters(samples: int, seed: int) -> Table:
    table = Table(
        "Clusters",
        "200 questions from 38 pages of different sizes. How often the 95 % interval of a rate of 0.8 holds it, with "
        "questions as they are and with `cluster`; and how often a regression gate without a margin fails two runs "
        "that differ by page, at 5 %. Targets: 94 % or more with `cluster`, 5 % or less.",
        ["intra-class correlation", "without", "with", "width, with", "test without", "test with"],
    )
    for icc in (0.05, 0.1, 0.2, 0.3):
        chance = np.random.default_rng([seed, 5, int(100 * icc)])
        plain = robust = wrong = held = 0
        width = 0.0
        for _ in range(samples):
            pages = np.sort(
                np.concatenate([np.arange(38), chance.choice(38, 162, p=chance.dirichlet(np.full(38, 2.0)))])
            )
            sides = [answered(chance, pages, icc) for _ in range(2)]
            parts = [f"meta.page={page}" for page in pages]
            before, after = (cases({"precision": side}, parts) for side in sides)
            found = GroupedCases(after, "meta.page").interval(measure("precision"), 0.95)
            robust += found.low <= 0.8 <= found.high
            width += found.high - found.low
            hits = int(sides[1].sum())
            low, high = stats.binomtest(hits, 200).proportion_ci(0.95)
            plain += low <= 0.8 <= high
            gate = [Gate("precision", "max_drop", "0")]
            wrong += judged(before, after, gate)[0].outcome == "failed"
            held += judged(before, after, gate, cluster="meta.page")[0].outcome == "failed"
        row = [icc, *(f"{one / samples:.1%}" for one in (plain, robust)), f"{width / samples:.3f}"]
        row += [f"{one / samples:.1%}" for one in (wrong, held)]
        table.add(row, wilson(robust, samples)[1] >= 0.94 and wilson(held, samples)[0] <= 0.05)
    return table


def answered(chance, pages, icc):
    """Right answers, alike within a page."""
    k = (1 - icc) / icc
    return (chance.random(len(pages)) < chance.beta(0.8 * k, 0.2 * k, 38)[pages]).astype(float)


# --- 6. repeats -------------------------------------------------------------------------------------------------------


def repeats(samples: int, seed: int) -> Table:
    table = Table(
        "Repeats",
        "60 questions of different difficulty, answered by several runs of a system that also has good and bad days. "
        "How often the 95 % interval holds the system's true rate: that of one run, and that of all runs. Then the "
        "same system once more, in as many runs: how often the interval of the difference holds 0, and how often a "
        "regression gate without a margin fails. Targets: 94 % or more for all runs and the difference, 5 % or less.",
        ["runs", "spread between runs", "of one run", "of all runs", "of the difference", "gate fails"],
    )  # fmt: skip
    for runs in (2, 3, 5, 10):
        for spread in (0.0, 0.3, 0.6):
            chance = np.random.default_rng([seed, 6, runs, int(10 * spread)])
            grid = stats.norm.ppf((np.arange(400) + 0.5) / 400)
            truth = (1 / (1 + np.exp(-(1.5 + 1.2 * grid[:, None] + spread * grid[None])))).mean()
            alone = together = apart = failed = 0
            for _ in range(samples):
                hard = 1.5 + 1.2 * chance.normal(size=60)[:, None]
                before, after = (tries(chance, hard + spread * chance.normal(size=runs)[None]) for _ in range(2))
                low, high = stats.binomtest(
                    sum(int(case.scores["precision"]) for case in before[:60]), 60
                ).proportion_ci()
                alone += low <= truth <= high
                found = GroupedCases(before).interval(measure("precision"), 0.95)
                together += found.low <= truth <= found.high
                one = judged(before, after, [Gate("precision", "max_drop", "0")])[0]
                apart += one.comparison.low <= 0 <= one.comparison.high
                failed += one.outcome == "failed"
            row = [runs, spread, *(f"{one / samples:.1%}" for one in (alone, together, apart, failed))]
            holds = all(wilson(one, samples)[1] >= 0.94 for one in (together, apart))
            table.add(row, holds and wilson(failed, samples)[0] <= 0.05)
    return table


def tries(chance, logits):
    """The cases of several runs, run by run."""
    hits = (chance.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    return [replace(case, run=f"r{run}") for run, column in enumerate(hits.T) for case in cases({"precision": column})]


CLAIMS = {
    "effects-of-rates": effects_of_rates,
    "effects-of-means": effects_of_means,
    "differences": differences,
    "figures": figures,
    "questions": questions,
    "families": families,
    "clusters": clusters,
    "repeats": repeats,
}


def main() -> int:
    """Run the simulations; 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CLAIMS))
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = []
    for name in args.only.split(","):
        begun = time.process_time()
        found.append(CLAIMS[name](args.samples, args.seed))
        print(found[-1].markdown(), file=sys.stderr)
        print(f"{name}: {time.process_time() - begun:.0f} s of CPU", file=sys.stderr)
    broken = [line for table in found for line in table.broken]
    text = "\n".join(table.markdown() for table in found)
    if args.write:
        told = f"`python bench/statistics/simulate.py --samples {args.samples} --seed {args.seed} --write`"
        PAGE.write_text(f"# Claims of docs/statistics.md, simulated\n\n{told}\n\n{text}", encoding="utf-8")
    print("\n".join(broken) or "every claim holds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
