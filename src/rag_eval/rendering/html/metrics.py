"""All metrics of a report by perspective, and the contracts that their values were measured under, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval.metrics import PERSPECTIVES
from rag_eval.rendering import sections
from rag_eval.rendering.blocks import Table
from rag_eval.rendering.html.element import FORMATTER, Markup, inline, joined, shown, tag
from rag_eval.rendering.html.layout import folded, table

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report


def metrics(report: Report) -> Markup:
    """Every metric that has a value, folded by perspective, and what would give a value to the others."""
    parts = [_perspective(report, name) for name in sections.perspectives(report)]
    missing = sections.without_cases(report)
    return joined([*parts, tag("p", shown(missing)) if missing else Markup("")])


def _perspective(report: Report, name: str) -> Markup:
    """What a perspective asks, and its tables."""
    title = shown(name.capitalize())
    asks = tag("p", PERSPECTIVES.get(name, ""), class_="asks")
    tables = (_table(title, *each) for each in sections.tables(report, name))
    return folded(title, asks, *tables)


def _table(about: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    named = [[FORMATTER.named(metric, ""), *cells] for metric, *cells in rows]
    return table(Table(f"Metrics: {about}", [each[:1].upper() + each[1:] for each in headers], named))


def contracts(report: Report) -> Markup:
    """The contract of each metric: values are comparable only under the same one."""
    if not report.contracts:
        return Markup("")
    rows = [[FORMATTER.named(name, ""), FORMATTER.code(digest)] for name, digest in report.contracts.items()]
    said = tag("p", inline("A value is comparable with another only where both have the same contract."))
    return folded(f"Contracts ({len(rows)})", said, table(Table("Contracts", ["Metric", "sha256"], rows)))
