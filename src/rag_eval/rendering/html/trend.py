"""A history of reports as one HTML file: a chart of each metric, and all of its readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval import __version__
from rag_eval.rendering import trend
from rag_eval.rendering.blocks import Table, listed
from rag_eval.rendering.html.chart import Axes, Dot, chart
from rag_eval.rendering.html.element import FORMATTER, Markup, joined, shown, tag
from rag_eval.rendering.html.layout import folded, laid, section
from rag_eval.rendering.html.shell import page

if TYPE_CHECKING:
    from rag_eval.analysis.history import Reading, Series

_LEGEND = (
    "Oldest first, each with its 95\u00a0% interval. A ring was measured under another contract than the newest, and is"
    " not joined to it; a dashed line stands where the contract changed."
)


def page_of(series: Sequence[Series], reports: int) -> str:
    """The page."""
    said = trend.headline(series, reports)
    header = tag("div", tag("h1", "RAG evaluation over time"), tag("p", said, class_="verdict"), class_="head")
    parts = [("summary", "Summary", section("summary", "Summary", _summary(series)))]
    for place, one in enumerate(series):
        key, title = f"metric-{place}", shown(one.metric)
        parts.append((key, title, section(key, title, _metric(place, one))))
    return page("RAG evaluation over time", __version__, header, parts)


def _summary(series: Sequence[Series]) -> Markup:
    rows = [trend.summary(one, FORMATTER.code) for one in series]
    if not rows:
        return Markup("")
    said = [line for one in series for line in trend.told(one, FORMATTER.code)]
    return laid([Table("Metrics, newest against oldest", trend.SUMMARY, rows), *([listed(said)] if said else [])])


def _metric(place: int, one: Series) -> Markup:
    """The chart, how to read it said with the first one, and the readings."""
    rows = [trend.row(reading, FORMATTER.code) for reading in one.readings]
    table = laid([Table(f"Readings of {shown(one.metric)}", trend.POINTS, rows)])
    legend = "" if place else _LEGEND
    drawn = chart(f"plot-{place}", f"{shown(one.metric)} over time", legend, _dots(one), _joined(one), _axes(one))
    return joined([drawn, folded(f"Readings ({len(rows):,})", table)])


def _axes(one: Series) -> Axes:
    labels = [shown(reading.label) for reading in one.readings if reading.value is not None]
    first, last = (labels[0], labels[-1]) if len(labels) > 1 else ("", "")
    return Axes("", shown(one.metric), first, last, ticks=False)


def _dots(one: Series) -> list[Dot]:
    return [dot for part in _parts(one) for dot in part]


def _joined(one: Series) -> list[list[Dot]]:
    return [[dot for dot in part if dot.kind == "plain"] for part in _parts(one)]


def _parts(one: Series) -> list[list[Dot]]:
    """The readings with a value, cut where the contract changed."""
    parts: list[list[Dot]] = [[]]
    for dot in _all(one):
        if dot.rule:
            parts.append([])
        parts[-1].append(dot)
    return parts


def _all(one: Series) -> Iterator[Dot]:
    for place, reading in enumerate(one.readings):
        if reading.value is not None:
            kind = "plain" if reading.comparable else "few"
            ends = reading.low, reading.high
            yield Dot(float(place), reading.value, kind, _said(reading), "", *ends, reading.broken)


def _said(reading: Reading) -> str:
    label, *cells = trend.row(reading, shown)
    return f"{label}: {', '.join(cell for cell in cells if cell)}"
