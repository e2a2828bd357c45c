"""All metrics of a report as tables, by metric group, and the fields that metrics without a value need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import quantity, some
from rag_eval.metrics import column_of, measure
from rag_eval.rendering.number_format import metric_interval
from rag_eval.rendering.phrases import counted, value_of

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import MetricResult
    from rag_eval.metrics import Metric

    Results = Mapping[str, MetricResult]
    Table = tuple[list[str], list[list[str]]]
    """Headers, the first of which is that of a metric's name, and rows."""

_CUT = re.compile("@[0-9]+$")
_NAMED, _FIELDS, _COLUMNS = 3, 5, 20
_MANY = 3
"""Values of one metric that are worth a table of their own."""


def perspectives(report: Report) -> list[str]:
    """Return the metric groups that have a value, in the order of the report."""
    return list(dict.fromkeys(result.perspective for result in report.metrics.values() if result.n))


def tables(report: Report, perspective: str) -> Iterator[Table]:
    """Yield the tables of a metric group: plain values, values by cutoff, and those of metrics with many values."""
    results = {
        name: result for name, result in report.metrics.items() if result.perspective == perspective and result.n
    }
    cut = [name for name in results if _CUT.search(name)]
    other = [name for name in results if not _CUT.search(name)]
    many = [name for name in other if len(measure(name).metric.folds) >= _MANY]
    plain = [name for name in other if len(measure(name).metric.folds) < _MANY]
    yield from _plain(report, results, plain)
    yield from _with_baseline(report, results, [(name, _CUT.sub("", name), _CUT.findall(name)[0]) for name in cut])
    yield from _with_baseline(report, results, [(name, column_of(name), name.rpartition(".")[2]) for name in many])


def _plain(report: Report, results: Results, names: Sequence[str]) -> Iterator[Table]:
    rows = [
        [
            name,
            value_of(report, name) + metric_interval(results[name], name),
            counted(results[name], results[name].n),
            _arrow(results[name].better),
        ]
        for name in names
    ]
    if rows:
        yield ["metric", "value", "cases", "better"], rows


def _with_baseline(report: Report, results: Results, parts: Sequence[tuple[str, str, str]]) -> Iterator[Table]:
    """Yield a row for each metric, a column for each value; ``parts`` are a value's name, its metric and its column."""
    if not parts:
        return
    at = {(metric, column): name for name, metric, column in parts}
    columns = list(dict.fromkeys(column for _, _, column in parts))
    cut = len(columns) - _COLUMNS
    columns, more = columns[:_COLUMNS], [f"… and {cut:,} more"] if cut > 0 else []
    first = {metric: results[name] for name, metric, _ in reversed(parts)}
    rows = [
        [
            metric,
            *(value_of(report, at[metric, column]) if (metric, column) in at else "" for column in columns),
            *("" for _ in more),
            str(first[metric].n),
            _arrow(first[metric].better),
        ]
        for metric in dict.fromkeys(metric for _, metric, _ in parts)
    ]
    yield ["metric", *columns, *more, "cases", "better"], rows


def without_cases(report: Report) -> str:
    """Name the metrics that apply to no case, by the missing fields that they need."""
    absent, there = _by_value(report)
    known = {field for entry in there for field in entry.needs}
    groups: dict[tuple[str, ...], list[str]] = {}
    for item in absent:
        groups.setdefault(tuple(field for field in item.needs if field not in known), []).append(item.name)
    bare = groups.pop((), [])
    largest_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    parts = [f"{' and '.join(fields)} ({some(names, _NAMED)})" for fields, names in largest_first]
    more = [f"{len(parts) - _FIELDS} more fields (list them with rag-eval metrics)"] if len(parts) > _FIELDS else []
    needed = [f"needed: {'; '.join([*parts[:_FIELDS], *more])}"] if parts else []
    idle = [f"apply to no case: {some(bare, _NAMED)}"] if bare else []
    head = f"No data for {quantity(len(absent), 'metric')}"
    return f"{'; '.join([head, *needed, *idle])}." if absent else ""


def _by_value(report: Report) -> tuple[list[Metric], list[Metric]]:
    """Return the metrics without a value that applies to any case, and the others."""
    by_value: dict[str, Metric] = {}
    valued: set[str] = set()
    for name, result in report.metrics.items():
        item = measure(name).metric
        by_value[item.name] = item
        valued |= {item.name} if result.n else set()
    sides = [[entry for entry in by_value.values() if (entry.name in valued) is there] for there in (False, True)]
    return sides[0], sides[1]


def _arrow(better: str) -> str:
    return "↑" if better == "higher" else "↓"
