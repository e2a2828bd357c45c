"""Number formats of a report, with enough decimals that no shown number contradicts an outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_eval.gates.policy import MARGINS
from rag_eval.metrics import column_of, of_column
from rag_eval.stats.tally import DECIMALS, exactly, shown

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult

    Deltas = Mapping[tuple[str, str, str], str]

_NARROW, _RARE = 0.05, 0.01
_SIGNIFICANT = 2
_TENS, _HUNDREDS, _CENTS = 10, 100, 0.1
SMALL, FEW = "†", "‡"
"""Mark a value whose cases are too few for its interval, and a slice that has too few to be judged."""


def is_completeness(gate: GateResult) -> bool:
    """Return whether a gate is on completeness, whose value is a number of traces."""
    return gate.name.startswith("completeness.")


def value(gate: GateResult) -> str:
    """Return a gate's value; for a margin both values, ``0.900 → 0.867``."""
    if gate.comparison is not None:
        before, after = (number(item, gate.name) for item in (gate.comparison.baseline, gate.comparison.value))
        return f"{before} → {after}"
    if gate.value is None:
        return "–"
    if is_completeness(gate):
        return f"{gate.value:g}"
    exact, least = exactly(gate.as_value().number or 0.0), decimals(gate.value, gate.name)
    return f"{shown(exact, gate.gate.keeps, least)}{unit(gate.name)}"


def value_with_interval(gate: GateResult) -> str:
    """Return a gate's value with its interval, whose ends do not contradict the outcome either."""
    if gate.value is None or gate.comparison is not None:
        return value(gate)
    keeps = gate.gate.keeps if gate.confidence else bool
    ends = interval(gate.low, gate.high, exactly(gate.as_value().number or 0.0), keeps, gate.name)
    return f"{value(gate)}{ends}{SMALL if gate.small else ''}"


def interval(
    low: float | None, high: float | None, number: Fraction, keeps: Callable[[Fraction], bool] = bool, name: str = ""
) -> str:
    """Return an interval: `` (0.69–0.96)``; `` (≥ 0.69)`` if an end is open, empty if both are.

    The shown ends enclose ``number``, and ``keeps`` has the same result for them as for the exact ones.
    """
    least = 2
    if number > 1 or unit(name):
        least = decimals(float(number), name)
    elif low is not None and high is not None and high - low < _NARROW:
        least = 3
    start, end = (
        ""
        if end is None
        else _signed(exactly(end), lambda shown: (keeps(shown), shown <= number, shown >= number), least)
        for end in (low, high)
    )
    if start and end:
        return f" ({start}–{end})"
    return f" (≥ {start})" if start else f" (≤ {end})" if end else ""


def change(gate: GateResult) -> str:
    """Return the change of a value against the baseline, ``−0.033 (−0.08 to 0.01)``; empty without a comparison."""
    comparison = gate.comparison
    if comparison is None or comparison.regression is None:
        return ""
    up = (comparison.regression > 0) == (gate.direction == "max_rise")
    far = f"{'+' if up else '−'}{size(gate)}" if comparison.regression else size(gate)
    ends = regression_interval(gate, turned=gate.direction == "max_drop")
    return f"{far} ({ends})" if ends else far


def regression_interval(gate: GateResult, *, turned: bool = False) -> str:
    """Return the interval of a regression, ``−0.01 to 0.08``; ``turned`` shows it as a change of the value instead."""
    comparison = gate.comparison
    if comparison is None or (comparison.low is None and comparison.high is None):
        return ""
    ends: list[tuple[float | None, Callable[[Fraction], bool]]]
    ends = [(end, gate.gate.keeps) for end in (comparison.low, comparison.high)]
    if turned:
        ends = [(None if end is None else -end, lambda number: gate.gate.keeps(-number)) for end, _ in reversed(ends)]
    texts: list[str | None] = []
    for end, keeps in ends:
        least = decimals(abs(end), gate.name) if end is not None and (unit(gate.name) or abs(end) > 1) else 3
        texts.append(None if end is None else _signed(exactly(end), keeps, least))
    return between(*texts)


def between(low: str | None, high: str | None) -> str:
    """Return ``−0.01 to 0.08``, ``≥ −0.01`` or ``≤ 0.08``."""
    return f"{low} to {high}" if low and high else f"≥ {low}" if low else f"≤ {high}" if high else ""


def size(gate: GateResult) -> str:
    """Return the size of a value's change against the baseline, without its sign."""
    regression = exactly((gate.comparison and gate.comparison.regression) or 0.0)
    far = shown(
        abs(regression),
        lambda number: (gate.gate.keeps(number if regression > 0 else -number), bool(number)),
        decimals(float(abs(regression)), gate.name),
    )
    return far + unit(gate.name)


def signed(number: float, name: str = "") -> str:
    """Return a change with its sign and unit, ``−0.033``; only a change of 0 is shown as 0, without a sign."""
    far = shown(abs(exactly(number)), bool, decimals(abs(number), name))
    return f"{'+' if number > 0 else '−' if number else ''}{far}{unit(name)}"


def deltas(report: Report) -> Deltas:
    """Return the changes of the gates' values by metric, slice and origin, if there is a baseline; empty if unknown.

    A bound without a margin shows how the system changed the metric.
    """
    if report.baseline is None and not any(gate.comparison for gate in report.gates):
        return {}
    system = {effect.name: signed(effect.system, effect.name) for effect in report.effects if effect.system is not None}
    keys: list[tuple[str, str, str]] = [(gate.name, gate.slice, gate.origin) for gate in report.gates]
    whole = {key: system.get(key[0], "") for key in keys if not key[1] and key[2] != "base"}
    return whole | {key: change(gate) for key, gate in zip(keys, report.gates, strict=True) if gate.comparison}


def threshold(gate: GateResult) -> str:
    """Return the bound as shown to people, with its meaning in cases if it is no share of them."""
    return f"{bound(gate)} (means {gate.asks} of {gate.n})" if gate.asks is not None else bound(gate)


def bound(gate: GateResult) -> str:
    """Return only the bound, the same for every run."""
    if gate.direction in MARGINS:
        return f"{regression_text(gate)} ≤ {gate.threshold}{unit(gate.name)}"
    return f"{'≥' if gate.direction == 'min' else '≤'} {gate.threshold}{unit(gate.name)}"


def regression_text(gate: GateResult) -> str:
    """Return the word for a regression of a margin's metric: drop or rise."""
    return "drop" if gate.direction == "max_drop" else "rise"


def probability(p: float | None, alpha: str = "0.05") -> str:
    """Return ``0.12`` or ``<0.001``, rounded to its side of ``alpha``; empty for None."""
    if p is None:
        return ""
    level = Fraction(Decimal(alpha))
    text = shown(exactly(p), lambda number: number <= level, 2 if p >= _RARE else 3)
    return text if Fraction(text) else "<0.001"


def at_least(number: float) -> str:
    """Return a minimum visible size: two significant digits, rounded up."""
    exact = Decimal(repr(number))
    decimal_places = max(_SIGNIFICANT - 1 - exact.adjusted(), 0)
    return f"{exact.quantize(Decimal(1).scaleb(-decimal_places), ROUND_CEILING):f}"


def metric_interval(result: MetricResult, name: str = "") -> str:
    """Return a metric's interval, with a mark if it has too few cases."""
    if result.value is None:
        return ""
    number = result.as_value().number
    ends = interval(result.low, result.high, exactly(result.value if number is None else number), name=name)
    return f"{ends}{SMALL if result.small else ''}"


def number(value: float | None, name: str = "") -> str:
    """Return a value of a metric with its unit, ``–`` for None."""
    return "–" if value is None else f"{value:.{decimals(value, name)}f}{unit(name)}"


def decimals(value: float, name: str = "") -> int:
    """Return the number of decimals: three for a share, fewer for large values, more for small amounts of money."""
    if value > 1:
        return 2 if value < _TENS else 1 if value < _HUNDREDS else 0
    small = unit(name) == " USD" and 0 < value < _CENTS
    return min(_SIGNIFICANT - Decimal(repr(value)).adjusted(), DECIMALS) if small else 3


@lru_cache(maxsize=256)
def unit(name: str) -> str:
    """Return the unit of a metric's values with a space before it, empty for shares, counts and unknown metrics."""
    item = of_column(column_of(name))
    return f" {item.unit}" if item and item.unit else ""


def _signed(number: Fraction, condition: Callable[[Fraction], object], least: int) -> str:
    if number >= 0:
        return shown(number, condition, least)
    return f"−{shown(-number, lambda far: condition(-far), least)}"
