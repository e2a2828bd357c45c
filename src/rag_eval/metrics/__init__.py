"""METRICS: every metric by its name, perspective by perspective in the order of reports. The only list of them."""

from __future__ import annotations

import re

from rag_eval.errors import UsageError
from rag_eval.metrics import answers, citations, refusals, retrieval
from rag_eval.metrics._metric import Measure, Metric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["METRICS", "Measure", "Metric", "measure", "measures"]

_PERSPECTIVES = (answers, refusals, citations, retrieval)
METRICS: dict[str, Metric] = {
    value.name: value for module in _PERSPECTIVES for value in vars(module).values() if isinstance(value, Metric)
}
_CUTOFF = re.compile(r"(.+)@([1-9][0-9]{0,5})", re.ASCII)


def measure(name: str) -> Measure:
    """The measure of a name as gates and reports write it: ``chr``, ``recall@5``; UsageError where there is none."""
    cut = _CUTOFF.fullmatch(name)
    metric = METRICS.get(f"{cut[1]}@k" if cut else name)
    if metric is None or metric.cutoff != bool(cut):
        raise UsageError(f"unknown metric '{name[:80]}'. {suggestion(name)}")
    return Measure(name, metric, int(cut[2]) if cut else None)


def measures(cutoffs: Iterable[int], also: Iterable[str] = ()) -> tuple[Measure, ...]:
    """Every metric, those with a cutoff once a k, in the order of METRICS; ``also`` adds further names."""
    wanted = [measure(name) for name in also]
    ks = {name: set(cutoffs) for name, metric in METRICS.items() if metric.cutoff}
    for extra in wanted:
        if extra.k is not None:
            ks[extra.metric.name].add(extra.k)
    return tuple(one for metric in METRICS.values() for one in _at(metric, sorted(ks.get(metric.name, ()))))


def suggestion(name: str) -> str:
    """What an unknown metric's name may have meant."""
    from difflib import get_close_matches

    known = [metric.replace("@k", "@5") for metric in METRICS]
    close = get_close_matches(name[:80], known, n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else "List them with: rag-eval metrics"


def _at(metric: Metric, ks: list[int]) -> list[Measure]:
    if not metric.cutoff:
        return [Measure(metric.name, metric)]
    return [Measure(metric.name.replace("@k", f"@{k}"), metric, k) for k in ks]
