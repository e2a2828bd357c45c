"""Paired comparison of two runs on the same cases: units, their effects, the interval of the difference, and tests.

A *unit* is the pair of scores of a case, or all pairs of a repeated question or of a cluster. Its effect is its
contribution to the difference of the two means, times the number of units, so that the difference is the mean effect.
If every unit is one case with both scores, the effect is the first score minus the second.

Swapping a case with a score in only one run gives it to the other run, and changes the number of scores by which a mean
is divided: a mean of five scores would seem as certain as one of fifty. So such a case counts by its contribution to
the observed difference.

The tests swap the scores of a case between the runs. All p values are one-sided, above 0, and the same for the same
pairs in any order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256, shake_256
from itertools import chain, repeat
from math import ceil, frexp, fsum, sqrt
from operator import getitem
from struct import unpack
from typing import Any

from msgspec import Struct

from rag_eval.stats.intervals import UNIT, Ends, Interval, interval, rounded_end
from rag_eval.stats.probability import binomial_tail
from rag_eval.stats.tally import DECIMALS

Pair = tuple[float | None, float | None]
"""A case's scores under the two runs; None where the metric does not apply."""

Unit = tuple[tuple[tuple[Any, Any], int], ...]
"""Pairs of scores, in order, each with the number of repeats that have it."""
Statistic = Callable[[Sequence[Any]], float | None]

_LEAST_IN_BOTH = 0.5
"""The share of the cases scored by either run that both runs must score. With fewer, which cases they are may explain
any difference of the two means, so only cases with both scores are tested. Simulated, a test at 5 % errs in 4 to 6 % of
all samples with that share, and in 12 to 34 % of them with a twentieth."""
_DRAWS = 9_999
"""The minimum p is then 0.0001."""
ENOUGH_HITS = 400
"""With so many the draws stop: p is then known to a twentieth of itself (Besag and Clifford, 1991)."""
FEW_HITS = 10
"""With more hits the usual number of draws is enough; with fewer they go on if the level is out of their reach."""
_BELOW, _TIMES = 4, 20
_FIGURE_DRAWS = 1_999
"""The draws of a test of any figure, which computes the figure of both runs for each. The minimum p is then 0.0005."""
_MOST_SWAPS = 2_048
"""If more cases differ, bunches are swapped: a draw then takes as long for a hundred thousand cases as for these."""
_COUNTED_EXACTLY = 1_000
_MOST_STEPS = 40_000
_BITS, _BATCH = 8, 250
_WORD, _FINEST = 60, 45
_LEAST = 2.0**-1074
_LAST_BITS = 1e-12


class Units(Counter["Unit"]):
    """Counts of equal units. A Counter of pairs instead means that each case is its own question."""

    def reversed(self) -> Units:
        """Return the units with the runs in the other order."""
        units = Units()
        for unit, count in self.items():
            units[tuple(sorted((((b, a), times) for (a, b), times in unit), key=repr))] += count
        return units


def units_of(pairs: Iterable[tuple[Any, Any]] | Units) -> Units:
    """Return the units of pairs: themselves, or each pair as a unit."""
    if isinstance(pairs, Units):
        return pairs
    return Units({((pair, 1),): count for pair, count in Counter(pairs).items()})


def has_gaps(pairs: Iterable[tuple[Any, Any]] | Units) -> bool:
    """Return whether some case has a score in only one run."""
    return any(None in pair for unit in units_of(pairs) for pair, _ in unit)


def complete(pairs: Iterable[tuple[Any, Any]] | Units) -> Units:
    """Return the units of the pairs that have both scores."""
    units = Units()
    for unit, count in units_of(pairs).items():
        pairs_with_both = tuple([(pair, times) for pair, times in unit if None not in pair])
        if pairs_with_both:
            units[pairs_with_both] += count
    return units


def testable(pairs: Counter[Any] | Units) -> Units:
    """Return the units that a test of means uses: if few have both scores, only those."""
    units = units_of(pairs)
    either = both = 0
    for unit, count in units.items():
        either += sum([times for pair, times in unit if pair != (None, None)]) * count
        both += sum([times for pair, times in unit if None not in pair]) * count
    return complete(units) if both < _LEAST_IN_BOTH * either else units


def _contributions(units: Units, *, changed: bool = False) -> Units:
    """Return each unit's contribution to the difference of means, as pairs with both scores.

    Without a change both runs have one mean: that of all scores, from which each of them counts. ``changed`` leaves out
    the units whose scores are the same in both runs. Raises ValueError if a run has no score at all.
    """
    sides = [_scores(units, side) for side in (0, 1)]
    if not all(sides):
        raise ValueError("one of the runs has no score at all")
    sizes = [sum([count for _, count in side]) for side in sides]
    middle, shares = total(chain(*sides)) / sum(sizes), Units()
    for unit, count in units.items():
        if not changed or any(before != after for (before, after), _ in unit):
            shares[(((units.total() * share(unit, (middle, middle), sizes), 0.0), 1),)] += count
    return shares


def share(unit: Unit, middles: Sequence[float], sizes: Sequence[int]) -> float:
    """Return a unit's share in the difference of two means of so many scores, centred by run."""
    moved = []
    for pair, times in unit:
        for score, middle, size, sign in zip(pair, middles, sizes, (1, -1), strict=True):
            if score is not None:
                moved.append(times * (sign * (score - middle) / size))
    return fsum(moved)


def total(points: Iterable[tuple[float, int]]) -> float:
    """Return the sum of numbers with their counts, rounded once, so that equal numbers may be counted separately."""
    return fsum(chain.from_iterable(repeat(number, times) for number, times in points))


def _scores(units: Units, side: int) -> list[tuple[float, int]]:
    return [(pair[side], times * n) for unit, n in units.items() for pair, times in unit if pair[side] is not None]


class Effects(Struct, frozen=True):
    """The effects of units with how many units have each, and the largest drop or gain that one unit could cause."""

    counts: Counter[float]
    low: float
    high: float

    @property
    def moves(self) -> float:
        """Return the sum of effects in whole units: for 0/1 scores the number of changed cases."""
        largest = self.unit
        return fsum(count * (effect / largest) ** 2 for effect, count in self.counts.items()) if largest else 0.0

    @property
    def unit(self) -> float:
        """Return the largest possible loss: 1 for a metric from 0 to 1, otherwise the largest that occurred."""
        return max(abs(self.low), abs(self.high), *map(abs, self.counts), 0.0)


def effects(pairs: Iterable[Pair] | Units, bounds: Ends = UNIT) -> Effects:
    """Return the effect of each unit on the difference of the two means, the first minus the second."""
    units = units_of(pairs)
    sides = [_scores(units, side) for side in (0, 1)]
    n, m = (sum([count for _, count in side]) for side in sides)
    first, second, number = total(sides[0]) / n, total(sides[1]) / m, units.total()
    counts: Counter[float] = Counter()
    for unit, count in units.items():
        counts[round(first - second + number * share(unit, (first, second), (n, m)), DECIMALS) + 0.0] += count
    low, high = bounds
    if low is None or high is None:
        return Effects(counts, 0.0, 0.0)
    # Units differ in size; the next one is as large as the unit of a case drawn at random.
    sizes = [(sum(times for pair, times in unit if pair != (None, None)), count) for unit, count in units.items()]
    size = sum(s * s * count for s, count in sizes) / sum(s * count for s, count in sizes)
    falls = first - second + number * size * ((low - first) / n - (high - second) / m)
    rises = first - second + number * size * ((high - first) / n - (low - second) / m)
    return Effects(counts, min(falls, *counts), max(rises, *counts))


def mean_difference(pairs: Iterable[Pair] | Units, bounds: Ends = UNIT, confidence: float = 0.95) -> Interval:
    """Return the interval of the first run's mean minus the second's.

    For scores from 0 to 1 it is Gaffke's bound of the effects. For scores of 0 and 1 an end is beyond 0 exactly when
    the exact McNemar test is significant at half the error rate. For others it is Hall's and Student's interval of the
    effects.
    """
    moved = effects(pairs, bounds)
    ends: Ends = (round(moved.low, DECIMALS), round(moved.high, DECIMALS))
    if None in bounds:  # skewness costs such scores half of the error rate
        ends, confidence = (None, None), 1 - (1 - confidence) / 2
    return interval(moved.counts, "mean", ends, confidence)  # type: ignore[return-value]


def other_difference(values: tuple[float, float], first: Interval, second: Interval) -> Interval:
    """Return the interval of the difference of any two figures from the intervals of both (square-and-add).

    The two intervals are treated as independent, so it is wide if the runs change together.
    """
    (a, b), low, high = values, None, None
    if first.low is not None and second.high is not None:
        low = a - b - sqrt((a - first.low) ** 2 + (b - second.high) ** 2)
    if first.high is not None and second.low is not None:
        high = a - b + sqrt((a - first.high) ** 2 + (b - second.low) ** 2)
    return Interval(rounded_end(low), rounded_end(high), first.small or second.small)


def above_percentile(pairs: Iterable[Pair] | Units, percent: int) -> Units:
    """Return the pairs as 0/1 scores: 1 above the percentile of the lower score of each case.

    Swapping a case does not change that percentile, so the sign-flip test of these scores is exact. It is near the
    percentile of the better run; with that of both runs together, too few scores are above it to show that all rose.
    """
    units = units_of(pairs)
    scores: Counter[float] = Counter()
    for unit, count in units.items():
        for pair, times in unit:
            if present := [score for score in pair if score is not None]:
                scores[min(present)] += times * count
    rank, passed, limit = -(-scores.total() * percent // 100), 0, 0.0
    for limit in sorted(scores):
        passed += scores[limit]
        if passed >= rank:
            break
    marked = Units()
    for unit, count in units.items():
        raised: Counter[Pair] = Counter()
        for (a, b), times in unit:
            raised[None if a is None else float(a > limit), None if b is None else float(b > limit)] += times
        marked[tuple(sorted(raised.items(), key=repr))] += count
    return marked


def mcnemar(regressed: int, better: int) -> float:
    """Return p of the exact test of 0/1 scores: ``regressed`` cases turned from 1 to 0, ``better`` from 0 to 1.

    Without a change each turn goes either way with probability 1/2 (McNemar, 1947; the exact, binomial form).
    """
    turned = regressed + better
    if turned > _COUNTED_EXACTLY:
        return max(binomial_tail(regressed, turned, 0.5), _LEAST)
    return _share(sum(_choices(turned)[regressed:]), turned)


def paired_p(pairs: Mapping[Pair, int] | Units, seed: bytes, level: float = 1.0) -> float:
    """Return the p of :func:`sign_flip`, by McNemar's formula if each unit is one case with two scores of 0 and 1."""
    counts: Counter[Pair] = Counter()
    units = units_of(pairs)
    for unit, count in units.items():
        if len(unit) > 1 or unit[0][1] > 1 or not set(unit[0][0]) <= {0, 1}:
            return sign_flip(units, seed, level=level)
        counts[unit[0][0]] += count
    return mcnemar(counts[1, 0], counts[0, 1])


def sign_flip(pairs: Iterable[Pair] | Units, seed: bytes, draws: int = _DRAWS, level: float = 1.0) -> float:
    """Return p of the permutation test that the first run's mean is larger; pairs of one unit are swapped together.

    The statistic is the difference of the two means, each over the cases with a score under that run. Without a change
    the two runs of a case are exchangeable. So p is the share of all swaps with a difference at least as large: counted
    exactly if there are few different sums, otherwise (1 + hits) / (1 + draws). The draws depend only on ``seed``, and
    there are more of them if a small ``level`` requires it.

    If some cases have a score in only one run, the test swaps what each case contributes to the difference. p is then
    the maximum with and without the cases that did not change: one new wrong answer and forty right ones change each of
    the forty a little in the same direction. If few cases have both scores, only those are tested, and p is 1 if none
    has. Raises ValueError if a run has no score at all.
    """
    units = units_of(pairs)
    groups = [_contributions(units), _contributions(units, changed=True)] if has_gaps(units) or not units else [units]
    if (both := testable(units)) is not units:
        units, groups = both, [both]
    if not units:
        return 1.0
    maximum = max(abs(score) for unit in units for pair, _ in unit for score in pair if score is not None)
    return max([_p_of_sums(group, maximum, seed, draws, level) for group in groups])


def _p_of_sums(units: Units, maximum: float, seed: bytes, draws: int, level: float) -> float:
    """Return p of the first run's sum of scores, whose absolute value is at most ``maximum``."""
    n = sum(times * count for unit, count in units.items() for _, times in unit)
    # A power of two makes whole numbers of scores, so large that all sums still fit a machine word. The last bits of a
    # score, which may be a difference itself, are ignored.
    scale = 2.0 ** (min(_FINEST, _WORD - 2 * (2 * n + 1).bit_length()) - frexp(maximum)[1])
    first, gains = 0, Counter[int]()
    for unit, count in units.items():
        before, after = (sum([round(pair[side] * scale) * times for pair, times in unit]) for side in (0, 1))
        first += before * count
        gains[after - before] += count
    del gains[0]
    least = first - 2 * n  # scores were rounded by at most half a unit: so small a difference is none
    exact = _counted(first, least, gains)
    if exact is not None:
        return exact
    return _p_value(map(least.__le__, _draws(first, gains, sha256(seed).digest(), draws_needed(draws, level))), draws)


def holm(ps: Sequence[float], smallest: Sequence[float] = ()) -> list[float]:
    """Return Holm's step-down adjustment (1979) in the order given. Significant is an adjusted p of at most alpha.

    ``smallest`` are the minimum ps of the tests. A test that cannot reach p does not count against it (Tarone, 1990).
    """
    least = sorted(map(min, ps, smallest or ps)) if smallest else [0.0] * len(ps)
    adjusted, maximum = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        rivals = bisect_right(least, ps[index]) - rank  # tests before it that could reach p
        maximum = max(maximum, min(1.0, rivals * ps[index]))
        adjusted[index] = maximum
    return adjusted


def _counted(first: int, least: int, gains: Mapping[int, int]) -> float | None:
    """Return the exact p, or None if the swaps lead to too many different sums.

    ``gains`` counts the units by the change of the sum ``first`` that swapping one makes.
    """
    by_size: Counter[int] = Counter()
    for gain, count in gains.items():
        by_size[abs(gain)] += count
    if by_size.total() > _MOST_STEPS:  # the first of them would be slow, and the last one too many
        return None
    # If a swap subtracts, start from the swapped state: swapping back adds, with the same probability.
    sums, steps = {first + sum(gain * count for gain, count in gains.items() if gain < 0): 1}, 0
    for gain, count in sorted(by_size.items()):
        steps += len(sums) * (count + 1)
        if steps > _MOST_STEPS:
            return None
        choices = [(number * gain, choice) for number, choice in enumerate(_choices(count))]
        further: dict[int, int] = {}
        for value, weight in sums.items():
            for added, choice in choices:
                further[value + added] = further.get(value + added, 0) + weight * choice
        sums = further
    return _share(sum(weight for value, weight in sums.items() if value >= least), by_size.total())


def _share(counts: int, swaps: int) -> float:
    """Return the share of 2 to the power of ``swaps`` that counts: above 0 even if it is too small for a float."""
    share: float = counts / (1 << swaps)
    return max(share, _LEAST)


def _choices(n: int) -> list[int]:
    """Return the binomial coefficients of n, each from the one before it, which is fast for thousands."""
    binomials = [1]
    for chosen in range(n):
        binomials.append(binomials[-1] * (n - chosen) // (chosen + 1))
    return binomials


def _draws(first: int, gains: Mapping[int, int], key: bytes, draws: int) -> Iterator[int]:
    """Yield the first run's sum after each draw. Eight swaps are one byte, which indexes a table of their sums.

    If more than :data:`_MOST_SWAPS` cases differ, they are bunched at random, and each bunch is swapped together. The
    bunches do not depend on which run is which, so the test keeps its level; it saves time and loses power.
    """
    swaps = sorted(Counter(gains).elements())
    size = -(-len(swaps) // _MOST_SWAPS)
    if size > 1:
        keys = unpack(f">{len(swaps)}Q", _random_bytes(key, b"bunches", 0, 8 * len(swaps)))
        shuffled = [swaps[index] for index in sorted(range(len(swaps)), key=keys.__getitem__)]
        swaps = [sum(shuffled[at : at + size]) for at in range(0, len(shuffled), size)]
    swaps += [0] * (-len(swaps) % _BITS)
    tables = []
    for at in range(0, len(swaps), _BITS):
        sums = [0]
        for gain in swaps[at : at + _BITS]:
            sums += [value + gain for value in sums]
        tables.append(sums)
    width = len(tables)
    for batch in range(0, draws, _BATCH):
        drawn = _random_bytes(key, b"draws", batch, width * min(_BATCH, draws - batch))
        for at in range(0, len(drawn), width):
            yield first + sum(map(getitem, tables, drawn[at : at + width]))


def permutation_p(
    pairs: Iterable[tuple[Any, Any]] | Units,
    statistic: Statistic,
    seed: bytes,
    draws: int = _FIGURE_DRAWS,
    level: float = 1.0,
) -> float:
    """Return p of the permutation test that the first run's figure is larger.

    As :func:`sign_flip`, with any ``statistic`` of a run's scores in place of the mean; a draw in which a run has no
    figure counts as a hit. Raises ValueError if a run has none as observed.
    """
    units = sorted(units_of(pairs).elements(), key=repr)
    ordered = [[pair for pair, times in unit for _ in range(times)] for unit in units]
    swapped = [[pair[::-1] for pair in unit] for unit in ordered]

    def difference(units: Iterable[Sequence[tuple[Any, Any]]]) -> float | None:
        pairs = list(chain.from_iterable(units))
        first, second = (statistic([pair[side] for pair in pairs]) for side in (0, 1))
        return None if first is None or second is None else first - second

    observed, key = difference(ordered), sha256(seed).digest()
    if observed is None:
        raise ValueError("one of the runs has no figure at all")
    least = observed - _LAST_BITS

    def is_hit(number: int) -> bool:
        bits = int.from_bytes(_random_bytes(key, b"swap", number, (len(ordered) + 7) // 8), "big")
        drawn = difference(swapped[index] if bits >> index & 1 else unit for index, unit in enumerate(ordered))
        return drawn is None or drawn >= least

    return _p_value(map(is_hit, range(draws_needed(draws, level))), draws)


def draws_needed(draws: int, level: float) -> int:
    """Return the number of draws after which p without a hit is a quarter of a level of many tests.

    The maximum is twenty times the usual number; beyond it, see :func:`can_be_significant`, no test can fail.
    """
    return min(max(draws, ceil(_BELOW / level) - 1), _TIMES * (draws + 1) - 1)


def can_be_significant(level: float) -> bool:
    """Return whether a drawn test can be significant at a level."""
    return 1 / (1 + draws_needed(_DRAWS, level)) <= level


def _random_bytes(key: bytes, purpose: bytes, number: int, size: int) -> bytes:
    """Return pseudo-random bytes, the same for the same key on every platform and version of Python."""
    return shake_256(b"%s %d %s" % (purpose, number, key)).digest(size)


def _p_value(hits: Iterable[bool], draws: int) -> float:
    """Return (1 + hits) / (1 + draws), over all draws or until there are enough hits.

    After the usual number of ``draws`` few hits are enough. The draws stop only after hits that make p larger than any
    continued draw could: p keeps its level.
    """
    extreme = done = 0
    for done, hit in enumerate(hits, 1):
        extreme += hit
        if extreme >= ENOUGH_HITS or (done >= draws and extreme > FEW_HITS):
            break
    return (1 + extreme) / (1 + done)
