"""The weighted score of runs, and their Pareto front.

They help to choose among runs and decide no gate, because a weighted mean hides failures that a gate stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple

from rag_eval.gates import QUALITY, SPENDING, WEIGHTS, Scoring
from rag_eval.stats.tally import DECIMALS

ValuesByRun = Sequence[float | None]
"""The value of each run, None if it has none."""


class Objective(NamedTuple):
    """An objective that counts: its share of the score, its metrics, and its value by run."""

    name: str
    share: float
    metrics: tuple[str, ...]
    values: tuple[float, ...]


class Dropped(NamedTuple):
    """An objective that has a weight and does not count, with the reason."""

    name: str
    why: str


class Weighted(NamedTuple):
    """The weighted score by run, None if no objective has a value; shares of the counted objectives add up to 1."""

    scores: tuple[float, ...] | None
    objectives: tuple[Objective, ...]
    dropped: tuple[Dropped, ...]


class Front(NamedTuple):
    """The Pareto front of runs in several dimensions.

    ``dimensions`` are those in which every run has a value, ``points`` are the runs' values in their order.
    ``beaten_by`` has the index of the first run that is at least as good in all dimensions and better in one; None on
    the front.
    """

    quality: str
    dimensions: tuple[str, ...]
    left_out: tuple[Dropped, ...]
    points: tuple[tuple[float, ...], ...]
    beaten_by: tuple[int | None, ...]


def weighted(scoring: Scoring, metrics: Mapping[str, ValuesByRun], spending: Mapping[str, ValuesByRun]) -> Weighted:
    """Return the weighted score of runs.

    ``metrics`` and ``spending`` (mean cost and latency of a question, by objective) have a value for each run. An
    objective is the mean of its metrics that have a value in every run, so that it means the same in all of them; cost
    and latency are 1 / (1 + value / budget). Objectives without a value drop out, and the weights of the rest are
    rescaled.
    """
    counting, dropped = [], []
    for name in WEIGHTS:
        if name not in scoring.weights:
            continue
        budget, why, values = scoring.budgets.get(SPENDING.get(name, "")), "", None
        if name not in SPENDING:
            columns = {metric: known for metric in QUALITY[name] if (known := _whole(metrics.get(metric, ())))}
            names, why = tuple(columns), "none of its metrics has a value in every run"
            values = tuple(fsum(column) / len(columns) for column in zip(*columns.values(), strict=True))
        elif budget is None:
            why = f"the gates file has no score.budgets.{SPENDING[name]}"
        else:
            names, why = (SPENDING[name],), "not every run has a value"
            values = tuple(1 / (1 + value / budget) for value in _whole(spending.get(name, ())) or ())
        if values:
            counting.append(Objective(name, scoring.weights[name], names, values))
        else:
            dropped.append(Dropped(name, why))
    total = fsum(item.share for item in counting)
    shared = tuple(item._replace(share=round(item.share / total, DECIMALS)) for item in counting)
    if not shared:
        return Weighted(None, (), tuple(dropped))
    by_run = zip(*(item.values for item in counting), strict=True)
    scores = (fsum(item.share * value for item, value in zip(counting, row, strict=True)) for row in by_run)
    return Weighted(tuple(round(score / total, DECIMALS) for score in scores), shared, tuple(dropped))


def _whole(column: ValuesByRun) -> tuple[float, ...] | None:
    """Return the values if every run has one."""
    values = tuple(value for value in column if value is not None)
    return values if values and len(values) == len(column) else None


def front(scoring: Scoring, metrics: Mapping[str, ValuesByRun], spending: Mapping[str, ValuesByRun]) -> Front | None:
    """Return the Pareto front over quality, cost and latency; None if no run has a quality.

    Quality is the weighted score without cost and latency, or precision if that has no value. ``spending`` has cost and
    latency. A dimension in which some run has no value is left out.
    """
    named = {name: weight for name, weight in scoring.weights.items() if name in QUALITY}
    scores = weighted(scoring._replace(weights=named), metrics, {}).scores
    quality = "weighted score without cost and latency" if scores else "precision"
    scores = scores or _whole(metrics.get("precision", ()))
    if scores is None:
        return None
    columns = {name: known for name, column in spending.items() if (known := _whole(column)) is not None}
    left_out = tuple(Dropped(name, "not every run has a value") for name in spending if name not in columns)
    points = tuple(zip(scores, *columns.values(), strict=True))

    def beats(point: tuple[float, ...], other: tuple[float, ...]) -> bool:
        # Higher quality is better, lower values of the rest are.
        ahead = point[0] - other[0], *(b - a for a, b in zip(point[1:], other[1:], strict=True))
        return min(ahead) >= 0 and max(ahead) > 0

    beaten = (next((index for index, other in enumerate(points) if beats(other, point)), None) for point in points)
    return Front(quality, ("quality", *columns), left_out, points, tuple(beaten))
