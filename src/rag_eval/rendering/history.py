"""FORMS: the trend of metrics over earlier reports as table, Markdown, HTML, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import spreadsheet
from rag_eval.rendering.json_values import json_text, plain
from rag_eval.rendering.trend import markdown, table

if TYPE_CHECKING:
    from rag_eval.analysis.history import Reading, Series


def as_json(series: Sequence[Series], reports: int) -> str:
    """Everything, two spaces a level."""
    return json_text({"reports": reports, "metrics": [{**plain(one), "slow": one.slow} for one in series]})


def as_csv(series: Sequence[Series], reports: int) -> str:
    """RFC 4180 with line feeds, a row a reading; an empty cell where there is no value."""
    del reports
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        "metric report value low high n comparable contract_changed gold_changed gold_gone gold_new".split()
    )
    for one in series:
        writer.writerows(_cells(one, reading) for reading in one.readings)
    return out.getvalue()


def as_html(series: Sequence[Series], reports: int) -> str:
    """One file, with a chart of each metric and all of its readings."""
    from rag_eval.rendering.html.trend import page_of

    return page_of(series, reports)


FORMS: dict[str, Callable[[Sequence[Series], int], str]] = {
    "table": table,
    "markdown": markdown,
    "html": as_html,
    "json": as_json,
    "csv": as_csv,
}


def _cells(one: Series, reading: Reading) -> list[object]:
    numbers = ["" if number is None else number for number in (reading.value, reading.low, reading.high)]
    flags = ["true" if flag else "false" for flag in (reading.comparable, reading.broken)]
    return [one.metric, spreadsheet(reading.label), *numbers, reading.n, *flags, *(reading.gold or (0, 0, 0))]
