"""A comparison of runs as table, Markdown, HTML, JSON and CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from rag_eval.common.escaping import spreadsheet
from rag_eval.rendering import json_values
from rag_eval.rendering.section_writer import MARKDOWN, PLAIN, marked, plain
from rag_eval.rendering.side_by_side import sections

if TYPE_CHECKING:
    from rag_eval.analysis.runs import SideBySide

FORMAT = 1


def render(found: SideBySide, form: str) -> str:
    """``found`` as ``table``, ``markdown``, ``html``, ``json`` or ``csv``, ending with a line feed."""
    if form == "json":
        return json_values.json_text(
            {"format": FORMAT, "kind": "comparison", **json_values.plain(found)}, allow_nan=False
        )
    if form == "csv":
        return _csv(found)
    if form == "html":
        from rag_eval.rendering.html.runs import page_of  # only that form needs it: start-up time

        return page_of(found)
    return marked(sections(found, MARKDOWN)) if form == "markdown" else plain(sections(found, PLAIN))


def _csv(found: SideBySide) -> str:
    """A row a metric and run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    beside = ("difference", "difference_low", "difference_high", "p", "adjusted", "result", "wins", "losses", "ties")
    writer.writerow(["metric", "better", "run", "base", "value", "n", "low", "high", *beside])
    for row in found.metrics:
        for place, cell in enumerate(row.cells):
            whose = spreadsheet(found.runs[place].name), "true" if place == found.base else "false"
            numbers = (cell.value, cell.n, cell.low, cell.high, *(cell.against or (None,) * len(beside)))
            writer.writerow([row.name, row.better, *whose, *("" if one is None else one for one in numbers)])
    return out.getvalue()
