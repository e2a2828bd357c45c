"""Regression gates: how a run compares with the baseline on the same cases.

A gate's test is one of three. ``regression``: it fails if a drop beyond its margin is shown, by a one-sided paired test
that is corrected over all regression gates of the run, slices included; a drop beyond the margin that is not
significant is inconclusive. ``non_inferiority``: it passes only if the interval of the drop lies within the margin.
``none``: only the margin decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import erfc, fsum, sqrt
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.gates import Comparison, Gate, GateResult, Outcome, Statistics
from rag_eval.gates.evidence import Pairs, RunEvidence
from rag_eval.metrics import Measure, find, measure
from rag_eval.scoring import aggregations
from rag_eval.stats.intervals import BetweenRuns, effect_with_runs, p_with_runs
from rag_eval.stats.paired import Units, above_percentile, can_be_significant, effects, holm, testable, units_of
from rag_eval.stats.power import POWER, cases_needed, fail_rates, minimum_effect, noise_bound
from rag_eval.stats.tally import DECIMALS, Value, as_fraction, weighted_counts

Key = Callable[["Tested"], tuple[Hashable, Callable[[], Hashable]]]
_NOISE, _MANY, _LIKELY = 1.5, 1_000, 0.2


class Tested(Struct, frozen=True):
    """A metric over a part of the cases, in baseline and run, and the result of the comparison.

    ``pairs`` are the scores with the worse direction first: a larger first score is a drop. ``units`` are the same by
    question or cluster, None if each case is one. ``why`` is the reason why nothing can be compared.
    """

    measure: Measure
    part: str
    evidence: RunEvidence
    pairs: Pairs
    comparison: Comparison | None
    why: str = ""
    units: Units | None = None

    @property
    def runs(self) -> BetweenRuns | None:
        """Return the variance of the difference between several runs, of means."""
        return self.evidence.between_runs(self.measure.name, self.part) if self.measure.fold == "mean" else None

    @property
    def swapped(self) -> Units | Pairs:
        """Return the units that the test swaps, or the pairs."""
        return self.pairs if self.units is None else self.units

    def update(self, **figures: Any) -> Tested:
        """Return the row with other figures in its comparison, if it has one."""
        return replace(self, comparison=self.comparison and self.comparison._replace(**figures))

    def reversed(self) -> Tested:
        """Return the row with the runs swapped."""
        pairs: Pairs = Counter({(b, a): count for (a, b), count in self.pairs.items()})
        return replace(self, pairs=pairs, units=None if self.units is None else self.units.reversed())


def judge_regressions(
    gates: Sequence[Gate], evidence: RunEvidence, statistics: Statistics, min_n: int = 0
) -> Iterator[GateResult]:
    """Yield the outcomes of regression gates, in their order, corrected for one another.

    Slices of fewer than ``min_n`` questions are not tested: they are inconclusive anyway, and every further test makes
    the others weaker.
    """
    alpha, corrected = float(statistics.alpha), statistics.correction == "holm"
    kinds = [gate.test or statistics.test for gate in gates]
    rows = [_compare(gate.name, gate.slice, evidence) for gate in gates]
    tested = []
    for index, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        if row.comparison and row.pairs and kind != "none" and not evidence.few(row.part, min_n):
            rows[index] = _enclosed(row, alpha)
            tested += [index] if kind == "regression" else []
    results = run_paired_tests([rows[index] for index in tested], alpha, corrected=corrected)
    count = len(set(_keys(results, _columns))) if corrected else 1
    for index, row in zip(tested, results, strict=True):
        rows[index] = _with_power(row, Decimal(gates[index].threshold), alpha / count)
    for gate, kind, row in zip(gates, kinds, rows, strict=True):
        current = row.update(test=kind).comparison
        value, n = (current.value, current.n) if current else (None, 0)
        result = gate.judged(by_comparison(gate, current), value, n)
        yield result._replace(comparison=current, why=row.why)


def compare_two_sided(comparisons: Sequence[tuple[str, RunEvidence]], alpha: float) -> list[Comparison | None]:
    """Compare metrics of two runs each, with two-sided tests that are corrected for one another.

    The p is that of no difference in either direction, so that the runs may be named in any order.
    """
    rows = [_compare(name, "", evidence) for name, evidence in comparisons]
    ready, turned = [], []
    for index, row in enumerate(rows):
        if row.comparison and row.pairs:
            ready.append(index)
            # The smaller one-sided p is that of the direction in which the runs differ.
            turned.append(row if (row.comparison.regression or 0) >= 0 else row.reversed())
    for index, test in zip(ready, run_paired_tests(turned, alpha, sides=2), strict=True):
        figures = {name: getattr(test.comparison, name) for name in ("p", "adjusted", "alpha")}
        rows[index] = _enclosed(rows[index], alpha).update(**figures)
    return [row.comparison for row in rows]


def run_paired_tests(
    rows: Sequence[Tested],
    alpha: float,
    *,
    sides: int = 1,
    corrected: bool = True,
    quick: bool = False,
    others: int = 0,
) -> list[Tested]:
    """Test comparisons as one family: equal columns are one test, and count once.

    With ``quick`` every column counts, and the normal approximation decides when it can. ``others`` are tests of the
    family that show nothing.
    """
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(range(len(rows)) if quick else _keys(rows, _moves)):
        groups.setdefault(key, []).append(index)
    first = [rows[positions[0]] for positions in groups.values()]
    level = alpha / sides / (max(1, len(first) + others) if corrected else 1)
    ps = [min(1.0, sides * _p(row, level, quick=quick)) for row in first]
    adjusted = ps
    if corrected:
        # The smallest p that each test could have over all ways to swap its units: 1/2 for each that counts.
        smallest = []
        for row in first:
            units, rank = units_of(row.swapped), aggregations.RANKED.get(row.measure.fold)
            units = units if rank is None else above_percentile(units, rank)
            moving = sum(count for unit, count in units.items() if any(a != b for (a, b), _ in unit))
            smallest.append(sides * 0.5 ** min(1074, moving))
        adjusted = holm([*ps, *[1.0] * others], [*smallest, *[0.0] * others])[: len(ps)]
    tested = list(rows)
    for positions, p, a in zip(groups.values(), ps, adjusted, strict=True):
        for index in positions:
            tested[index] = rows[index].update(p=p, adjusted=a, alpha=alpha)
    return tested


def worse_without_gate(
    names: Sequence[str], bounded: Collection[str], evidence: RunEvidence, alpha: float
) -> list[Tested]:
    """Return the metrics that got significantly worse, one of each definition.

    Those that have another gate (``bounded``) come first, then the most significant.
    """
    measured = [name for name in names if evidence.value(name).number is not None]
    rows = [_compare(name, "", evidence) for name in measured]
    rows = [row for row in rows if row.comparison and (row.comparison.regression or 0.0) > 0]
    tested = run_paired_tests(rows, alpha, quick=True, others=len(measured) - len(rows))
    regressions = [item for item in tested if item.comparison and item.comparison.result == "worse"]
    regressions.sort(
        key=lambda item: (item.measure.name not in bounded, (item.comparison and item.comparison.p) or 0.0)
    )
    by_metric: dict[str, Tested] = {}
    for row in regressions:
        by_metric.setdefault(row.measure.metric.name, row)
    return list(by_metric.values())


def _keys(rows: Sequence[Tested], key: Key) -> list[Hashable]:
    """Return a key for each row, equal if its columns are equal case by case.

    Cases are compared only if their counts agree.
    """
    quick = [key(row) for row in rows]
    times = Counter(counts for counts, _ in quick)
    return [(counts, by_case() if times[counts] > 1 else None) for counts, by_case in quick]


def _columns(row: Tested) -> tuple[Hashable, Callable[[], Hashable]]:
    counts = id(row.evidence), row.measure.fold, frozenset(row.pairs.items())
    return counts, lambda: tuple(row.evidence.by_case(row.measure.name, row.part))


def _moves(row: Tested) -> tuple[Hashable, Callable[[], Hashable]]:
    """Return what a test depends on: for a mean, the cases that change and by how much."""
    if row.measure.fold != "mean" or any(None in pair for pair in row.pairs):
        return _columns(row)
    steps: Counter[float] = Counter()
    for (a, b), count in row.pairs.items():
        steps[round(a - b, DECIMALS)] += count  # type: ignore[operator]  # none is None
    del steps[0.0]
    sign = 1 if row.measure.metric.better == "higher" else -1

    def by_case() -> Hashable:
        cases = row.evidence.by_case(row.measure.name, row.part)
        moved = ((case, round(sign * (a - b), DECIMALS)) for case, a, b in cases)  # type: ignore[operator]
        return frozenset((case, step) for case, step in moved if step)

    return (id(row.evidence), "mean", row.units is None, frozenset(steps.items())), by_case


def _compare(name: str, part: str, evidence: RunEvidence) -> Tested:
    row = Tested(measure(name), part, evidence, Counter(), None)
    if evidence.baseline is None:
        return replace(row, why="the gates file names no baseline")
    if not evidence.comparable(name):
        why = "the baseline has no value of it, or defines it differently; with baseline.trace, it is scored again"
        return replace(row, why=why)
    values = None if part else evidence.values(name)
    if values is not None:
        difference = _difference(name, *values, values[1].n)
        return replace(row, comparison=difference, why="the baseline or the run has no value")
    pairs, units = evidence.pairs(name, part), evidence.units(name, part)
    pair, why = compare_pairs(name, pairs), ""
    if pair is None:
        why = "no case is in both runs with the same gold item; with baseline.trace, changed items are compared too"
        if evidence.new_runs:
            why = "the baseline has no runs of these names; name runs as it does, or first renew it"
        elif pairs:
            before, after = map(set, zip(*pairs, strict=True))
            lacking = "this run" if after == {None} else "the baseline" if before == {None} else ""
            why = f"it applies to no case of {lacking}" if lacking else "the baseline or the run has no value"
    elif units is not None:
        pair = pair._replace(n=units.total())
    row = replace(row, pairs=pairs, comparison=pair, why=why, units=units)
    return row if row.measure.metric.better == "higher" else row.reversed()


def compare_pairs(name: str, pairs: Pairs) -> Comparison | None:
    """Return each value over its own cases among those of both runs, and how much worse the second is."""
    sides = [weighted_counts(side, pairs.values()) for side in zip(*pairs, strict=True)]
    for side in sides:
        del side[None]
    if not (sides and all(sides)):
        return None
    before, after = (aggregations.aggregate(measure(name), side) for side in sides)
    return _difference(name, before, after, pairs.total())


def _difference(name: str, old: Value, new: Value, n: int) -> Comparison | None:
    if old.number is None or new.number is None:
        return None
    before, after = (as_fraction(round(float(number), DECIMALS)) for number in (old.number, new.number))
    regression = before - after if measure(name).metric.better == "higher" else after - before
    return Comparison(float(before), float(after), float(regression), n)


def _enclosed(row: Tested, alpha: float) -> Tested:
    """Return the comparison with the interval of the drop, at the confidence 1 - alpha."""
    ends = aggregations.difference(row.measure, row.swapped, 1 - alpha, row.runs)
    return row.update(low=ends.low, high=ends.high) if ends else row


def _p(row: Tested, level: float, *, quick: bool = False) -> float:
    """Return the test's p; ``level`` is what it is compared with if it is the smallest of all.

    With ``quick`` the normal approximation tests a mean if it decides: for noise, and for many units that move.
    """
    p, fold = None, row.measure.fold
    if quick and fold == "mean":
        counts = effects(row.swapped).counts  # type: ignore[arg-type]
        moved = fsum(effect * count for effect, count in counts.items())
        z = moved / (sqrt(fsum(effect * effect * count for effect, count in counts.items())) or 1.0)
        if z <= _NOISE:
            return 1.0
        p = erfc(z / sqrt(2)) / 2 if counts.total() - counts[0.0] > _MANY else None
    if p is None:
        p = aggregations.one_sided_p(fold, row.swapped, _seed(row.pairs), level=level)
    if p > _LIKELY or not row.evidence.several or row.comparison is None:
        return p
    return p_with_runs(p, abs(row.comparison.regression or 0.0), row.runs)


def _seed(pairs: Pairs) -> bytes:
    """Return a seed made only of the scores: the same scores draw the same, written as 1 or as 1.0."""
    rows = (
        ([item if item is None or isinstance(item, tuple) else float(item) for item in pair], n)
        for pair, n in pairs.items()
    )
    return ", ".join(sorted(f"{pair!r} {count}" for pair, count in rows)).encode()


class _Noise(Struct, frozen=True):
    """The ``n`` units of a mean, the largest loss of one, and the share of units that change by chance."""

    n: int
    unit: Fraction
    share: float


def _noise(row: Tested) -> _Noise | None:
    """Return the noise of a mean, from a rerun of the baseline if there is one; None for a figure without a formula."""
    pairs = testable(row.swapped)
    if row.measure.fold != "mean" or not pairs or row.comparison is None:
        return None
    bounds = 0.0, row.measure.metric.top
    spread = noise = effects(pairs, bounds)
    if row.evidence.rerun is not None:
        again = testable(_compare(row.measure.name, row.part, row.evidence.rerun).swapped)
        noise = effects(again, bounds) if again else noise
    unit = max(spread.unit, noise.unit)
    if not unit:
        return None
    moves = noise.moves * (noise.unit / unit) ** 2
    return _Noise(spread.counts.total(), as_fraction(round(unit, DECIMALS)), noise_bound(moves, noise.counts.total()))


def _with_power(row: Tested, margin: Decimal, level: float) -> Tested:
    """Return the comparison with its minimum detectable effect, and the cases that show a drop of a size that matters.

    Only means have them: there is no formula for the random variation of other figures.
    """
    current, noise = row.comparison, _noise(row)
    if current is None or noise is None or not can_be_significant(level):
        return row
    scaled, wanted = Fraction(margin) / noise.unit, drop_to_detect(margin, bounded=row.measure.metric.bounded)
    runs = row.runs
    if runs is not None and runs.runs == 2:
        return row  # two runs do not show how much runs vary
    least = minimum_effect(noise.n, noise.share, scaled, level)
    mde, needed = None if least is None else round(float(least * noise.unit), DECIMALS), None
    if runs is not None and mde is not None:
        mde = round(effect_with_runs(mde, level, POWER, runs), DECIMALS)
        mde = None if row.measure.metric.bounded and mde > 1 else mde
    elif mde is None or mde > wanted:
        needed = cases_needed(float(Fraction(wanted) / noise.unit), noise.share, scaled, level)
    return row.update(mde=mde, needed=needed)


class ErrorRates(NamedTuple):
    """Error rates of a regression gate over ``n`` units, a share ``noise`` of which changes by chance.

    ``unchanged`` and ``permitted`` are the probabilities that it fails without a change and at three quarters of its
    margin, ``missed`` the probability that it does not fail at a ``drop`` beyond it.
    """

    gate: str
    test: str
    n: int
    noise: float
    unchanged: float
    permitted: float
    drop: float
    missed: float


def error_rates(gate: GateResult, evidence: RunEvidence, alpha: float, count: int) -> ErrorRates | None:
    """Return the error rates of a regression gate, one of ``count`` tests; None for a figure without a formula."""
    noise, margin = _noise(_compare(gate.name, gate.slice, evidence)), Decimal(gate.threshold)
    if noise is None or gate.comparison is None:
        return None
    test = gate.comparison.test
    level = {"regression": alpha / count, "non_inferiority": alpha}.get(test, 1.0)
    wanted = drop_to_detect(margin, bounded=measure(gate.name).metric.bounded)
    drops = [0.0, float(Fraction(margin) * 3 / 4 / noise.unit), float(Fraction(wanted) / noise.unit)]
    unchanged, permitted, caught = fail_rates(noise.n, noise.share, drops, Fraction(margin) / noise.unit, level, test)
    about = gate.gate.written, test, noise.n, round(noise.share, 6)
    return ErrorRates(*about, round(unchanged, 4), round(permitted, 4), wanted, round(1 - caught, 4))


def drop_to_detect(margin: Decimal, *, bounded: bool = True) -> float:
    """Return the drop that a team with this margin wants to detect: twice the margin, at least 0.05 for shares."""
    return max(2 * float(margin), 0.05 if bounded else 0.0)


def is_underpowered(gate: GateResult) -> bool:
    """Return whether a test was known to be too weak to show a regression that matters.

    Without a size and a number of cases, it was if there is a formula for them: not for percentiles, areas or
    unbounded values that are constant.
    """
    comparison = gate.comparison
    if comparison is None or comparison.adjusted is None:
        return False
    if comparison.mde is not None or comparison.needed is not None:
        return comparison.needed is not None
    measured = find(gate.name)
    return measured is None or (measured.metric.bounded and measured.fold == "mean")


def by_comparison(gate: Gate, comparison: Comparison | None) -> Outcome:
    """Return the outcome of a comparison: of non-inferiority by the interval, otherwise by margin and test."""
    if comparison is None or comparison.regression is None:
        return "no_data"
    if comparison.test == "non_inferiority":
        return "passed" if comparison.high is not None and gate.keeps(comparison.high) else "failed"
    if gate.keeps(comparison.regression):
        return "passed"
    if comparison.adjusted is None or comparison.alpha is None:
        return "failed"
    return "failed" if comparison.adjusted <= comparison.alpha else "inconclusive"
