"""Regression gates: a run may not be worse than the baseline by more than a margin that chance does not explain.

A gate fails where the worsening exceeds its margin and a one-sided paired test is significant after correction over all
regression gates of the run, slices included. It is inconclusive where the margin is exceeded and the test is not
significant.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from rag_eval import folds
from rag_eval.judging.gates import Comparison, Judged
from rag_eval.metrics import measure
from rag_eval.tally import DECIMALS, exactly, weighed
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from rag_eval.judging.evidence import Evidence, Pairs
    from rag_eval.judging.gates import Gate, Outcome, Statistics
    from rag_eval.stats.units import Units
    from rag_eval.tally import Value


class _Tested(NamedTuple):
    """A gate with its pairs and what they come to; ``why`` says why there is nothing to compare.

    ``units`` are the pairs by question, where questions have several: the test is over questions then.
    """

    gate: Gate
    pairs: Pairs
    found: Comparison | None
    why: str = ""
    units: Units | None = None

    @property
    def n(self) -> int:
        """How many units there are."""
        return (self.pairs if self.units is None else self.units).total()

    @property
    def moved(self) -> int:
        """In how many units a score is another one."""
        if self.units is None:
            return sum(count for (a, b), count in self.pairs.items() if a != b)
        return sum(count for unit, count in self.units.items() if any(a != b for (a, b), _ in unit))

    @property
    def swapped(self) -> Units | Pairs:
        """What the test swaps, so that a greater first score is the worsening."""
        return _worse_first(self.gate.name, self.pairs) if self.units is None else _turned(self.gate.name, self.units)


def compared(gates: Sequence[Gate], evidence: Evidence, statistics: Statistics, min_n: int = 0) -> Iterator[Judged]:
    """The outcomes of regression gates, in their order, corrected for one another.

    Slices of fewer than ``min_n`` questions are not tested: they are inconclusive whatever comes of it, and every test
    more makes the others weaker, so that small slices could be cut to hide a worsening of the whole.
    """
    beside = [_compare(gate, evidence) for gate in gates]
    tested = [one for one in beside if one.pairs and one.found and _tests(one.gate, statistics)]
    tested = [one for one in tested if not evidence.few(one.gate.slice, min_n)]
    tested.sort(key=lambda one: len(one.pairs), reverse=True)  # the longest first, where several processes share them
    found = evidence.each(lambda one: _test(one, statistics, len(tested)), tested)
    adjusted = _adjusted([one.p for one in found if one.p is not None], statistics)
    of_gate = {
        id(one): its._replace(adjusted=corrected, alpha=float(statistics.alpha))
        for one, its, corrected in zip(tested, found, adjusted, strict=True)
    }
    for one in beside:
        yield _judged(one._replace(found=of_gate.get(id(one), one.found)))


def _test(one: _Tested, statistics: Statistics, tests: int) -> Comparison:
    """A comparison with its test, which is one of so many."""
    found: Comparison = one.found  # type: ignore[assignment]  # what is tested was compared
    tests = tests if statistics.correction == "holm" else 1
    visible, needed = _seen(one, float(statistics.alpha), tests)
    return found._replace(p=_p(one, float(statistics.alpha) / tests), visible=visible, needed=needed)


def _compare(gate: Gate, evidence: Evidence) -> _Tested:
    if evidence.baseline is None:
        return _Tested(gate, Counter(), None, "there is no baseline")
    if not evidence.comparable(gate.name):
        return _Tested(gate, Counter(), None, "the baseline was measured under another contract, or not at all")
    values = None if gate.slice else evidence.values(gate.name)
    if values is not None:
        return _Tested(gate, Counter(), _by_values(gate.name, *values), "the baseline or the run has no value")
    pairs = evidence.pairs(gate.name, gate.slice)
    found, units = comparison(gate.name, pairs), evidence.units(gate.name, gate.slice)
    if found and units is not None:
        found = found._replace(n=units.total())
    return _Tested(gate, pairs, found, "" if found else _why_none(evidence), units)


def _why_none(evidence: Evidence) -> str:
    if evidence.new_runs:
        return "not every run is in the baseline; measure it with the same runs"
    return "no case is in both runs under the same gold"


def _tests(gate: Gate, statistics: Statistics) -> bool:
    return (gate.test or statistics.test) == "paired"


def comparison(name: str, pairs: Pairs) -> Comparison | None:
    """Both values, each over its own cases of those that both runs have, and how much worse the second is."""
    sides = [weighed(side, pairs.values()) for side in zip(*pairs, strict=True)]
    for side in sides:
        del side[None]
    if not (sides and all(sides)):
        return None
    before, after = (folds.folded(measure(name), side) for side in sides)
    return _beside(name, before, after, pairs.total())


def _by_values(name: str, old: Value, new: Value) -> Comparison | None:
    """The comparison of two values whose cases are not at hand: no test can be made."""
    return _beside(name, old, new, new.n)


def _beside(name: str, old: Value, new: Value, n: int) -> Comparison | None:
    if old.number is None or new.number is None:
        return None
    before, after = _rounded(old.number), _rounded(new.number)
    worse = before - after if measure(name).metric.better == "higher" else after - before
    return Comparison(float(before), float(after), float(worse), n)


def _rounded(number: Fraction | float) -> Fraction:
    return exactly(round(float(number), DECIMALS))


def _p(one: _Tested, level: float) -> float:
    """The test's p; ``level`` is that of the first of all tests."""
    measured, seed = measure(one.gate.name), _seed(one.gate.name, one.pairs)
    return folds.chance(measured.fold, one.swapped, seed, counts=_counts(one), level=level)


def _counts(one: _Tested) -> bool:
    """Whether every pair is of 0/1 scores, and of a question of its own."""
    return one.units is None and folds.counts(measure(one.gate.name), one.pairs)


def _seed(name: str, pairs: Pairs) -> bytes:
    """From the scores alone, so that the same runs draw the same: those of every case, in one order."""
    written = sorted((repr(pair), count) for pair, count in pairs.items())
    together = "".join([f"{text!r}, " * count for text, count in written])  # as the list of all would be written
    return f"{name}[{together.removesuffix(', ')}]".encode()


def _adjusted(ps: Sequence[float], statistics: Statistics) -> Sequence[float]:
    from rag_eval.stats import holm

    return holm(ps) if statistics.correction == "holm" else ps


def _seen(one: _Tested, alpha: float, tests: int) -> tuple[float | None, int | None]:
    """The smallest worsening that so many cases could have shown, and how many would show one above the margin."""
    measured = measure(one.gate.name)
    if measured.fold != "mean":  # how far another figure of a run moves by chance has no formula
        return None, None
    one = _testable(one)
    if not one.n:
        return None, None
    spread = None if _counts(one) else _spread(one)
    if spread:
        return _of_spread(one, spread, alpha, tests)
    # Where no case moved it is not known how they move when they do: of scores of at most 1, as 0 and 1 do at worst.
    return _of_counts(one, alpha, tests) if measured.metric.bounded else (None, None)


def _testable(one: _Tested) -> _Tested:
    """The same of the cases that the test goes by: where few have both scores, of these alone."""
    from rag_eval import stats

    if not stats.has_gaps(one.pairs) or stats.enough_in_both(one.swapped):
        return one
    pairs = Counter({pair: count for pair, count in one.pairs.items() if None not in pair})
    return one._replace(pairs=pairs, units=one.units and stats.complete(one.units))


def _spread(one: _Tested) -> float:
    from rag_eval import stats

    return stats.paired_spread(one.swapped)  # type: ignore[arg-type]


def _of_counts(one: _Tested, alpha: float, tests: int) -> tuple[float | None, int | None]:
    from rag_eval import stats

    margin, share = Decimal(one.gate.threshold), one.moved / one.n
    visible = stats.smallest_visible_drop(one.n, share, margin, alpha, tests)
    wanted = _unseen(margin, None if visible is None else float(visible), bounded=True)
    needed = None if wanted is None else stats.cases_needed(wanted, share, margin, alpha, tests)
    return None if visible is None else float(visible), needed


def _of_spread(one: _Tested, spread: float, alpha: float, tests: int) -> tuple[float | None, int | None]:
    from rag_eval import stats

    if not stats.within_reach(alpha / tests):
        return None, None
    margin = Decimal(one.gate.threshold)
    visible = stats.smallest_visible_shift(one.n, spread, float(margin), alpha, tests)
    wanted = _unseen(margin, visible, measure(one.gate.name).metric.bounded)
    return visible, None if wanted is None else stats.cases_needed_for_shift(
        wanted, spread, float(margin), alpha, tests
    )


def _worse_first(name: str, pairs: Pairs) -> Pairs:
    """The pairs so that a greater first score is the worsening."""
    return pairs if measure(name).metric.better == "higher" else Counter({(b, a): n for (a, b), n in pairs.items()})


def _turned(name: str, units: Units) -> Units:
    if measure(name).metric.better == "higher":
        return units
    from rag_eval.stats.units import Units

    turned = ((tuple(sorted((((b, a), n) for (a, b), n in unit), key=repr)), count) for unit, count in units.items())
    return Units(dict(turned))


def aim(margin: Decimal, *, bounded: bool = True) -> float:
    """The worsening that a team that set this margin wants to see: twice the margin, of shares 0.05 at least."""
    return max(2 * float(margin), 0.05 if bounded else 0.0)


def _unseen(margin: Decimal, visible: float | None, bounded: bool) -> float | None:
    """The worsening to be seen, None where it is."""
    wanted = aim(margin, bounded=bounded)
    return None if visible is not None and visible <= wanted else wanted


def _judged(one: _Tested) -> Judged:
    gate, found = one.gate, one.found
    terms = gate.name, gate.direction, gate.threshold, gate.severity, gate.when_no_data
    value = found.value if found else None
    judged = Judged(*terms, by_comparison(gate, found), value, None, found.n if found else 0, gate.line)
    return judged._replace(slice=gate.slice, test=gate.test, comparison=found, why=one.why)


def by_comparison(gate: Gate, found: Comparison | None) -> Outcome:
    """The outcome that a comparison comes to: the margin first, then whether chance would do it."""
    if found is None or found.worsening is None:
        return "no_data"
    if gate.keeps(found.worsening):
        return "passed"
    if found.adjusted is None or found.alpha is None:
        return "failed"
    return "failed" if found.adjusted <= found.alpha else "inconclusive"
