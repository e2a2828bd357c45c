"""FORMS: the trend of metrics over earlier reports as table, Markdown, JSON and CSV; the badges of a site."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor
from typing import TYPE_CHECKING

from rag_eval.common.escaping import csv_text, json_text, one_line, quantity, spreadsheet
from rag_eval.common.escaping import markdown as safe
from rag_eval.rendering import markdown_writer, terminal
from rag_eval.rendering.blocks import Paragraph, Table, bullets, table_of
from rag_eval.rendering.number_format import between, number, probability

if TYPE_CHECKING:
    from rag_eval.analysis.history import Contrast, Point, Reading, Series
    from rag_eval.rendering.blocks import Block

_BARS = "▁▂▃▄▅▆▇█"
_READINGS, _SPARKS, _CHARTED = 20, 40, 60
_LABEL, _AXIS_LABEL = 60, 24
# Characters with a meaning in Mermaid or Markdown are removed: a label on an axis need only be recognisable.
_UNCHARTED = re.compile(r"[^A-Za-z0-9 ._/-]+")
SUMMARY = ["metric", "trend", "oldest", "newest", "change", "interval", "p", "cases", ""]
POINTS = ["report", "value", "95 % interval", "cases", ""]


def table(series: Sequence[Series], reports: int) -> str:
    """Return plain text for a terminal: a row for each metric, remarks, and the newest twenty readings of each."""
    blocks = [Paragraph(headline(series, reports)), *_overview(series, str, _plain)]
    for item in series:
        rows = [row(reading, _plain) for reading in item.readings[-_READINGS:]]
        blocks += [Paragraph(f"{item.metric}{_cut(item)}"), Table("Readings", POINTS, rows)]
    return terminal.page([terminal.laid(blocks)])


def markdown(series: Sequence[Series], reports: int) -> str:
    """Return GitHub's Markdown: the same, with a Mermaid chart of each metric."""
    overview = markdown_writer.laid(_overview(series, _code, safe))
    parts = [f"## {headline(series, reports)}", *([overview] if overview else [])]
    for item in series:
        readings = markdown_writer.table(POINTS, [row(reading, safe) for reading in item.readings[-_READINGS:]])
        parts += [f"### {_code(item.metric)}", *_chart(item)]
        parts.append(markdown_writer.folded(f"Readings{_cut(item)}", readings))
    return "\n\n".join(parts) + "\n"


def _overview(series: Sequence[Series], name: Callable[[str], str], label: Callable[[str], str]) -> list[Block]:
    """Return a table of the metrics, and the remarks on them."""
    lines = [line for item in series for line in trend_remarks(item, label)]
    rows = [summary(item, name) for item in series]
    return [*table_of("Metrics", SUMMARY, rows), *bullets(lines)]


def spark(readings: Sequence[Reading]) -> str:
    """Return a bar for each reading, scaled from minimum to maximum.

    ``·`` is a reading without a value, ``│`` a change of the metric fingerprint.
    """
    values = [reading.value for reading in readings if reading.value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    bars = (("│" if reading.broken else "") + _bar(reading.value, low, high) for reading in readings)
    return "".join(bars)


def _bar(value: float | None, low: float, high: float) -> str:
    if value is None:
        return "·"
    span = high / 2 - low / 2  # halves, because the whole range may exceed a float
    share = (value / 2 - low / 2) / span if span > 0 else 0.5
    return _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]


def headline(series: Sequence[Series], reports: int) -> str:
    """Count the reports, the metrics that are worse than in the oldest one, and those that cannot be compared."""
    many = quantity(reports, "report")
    contrasts = [item.oldest for item in series if item.oldest is not None]
    regressions, unknown = sum(contrast.is_worse for contrast in contrasts), len(series) - len(contrasts)
    if not contrasts:
        return f"{many}: no metric can be compared"
    text = (
        f"{regressions} of {len(series)} metrics significantly worse"
        if regressions
        else "no metric is significantly worse"
    )
    more = f"; {unknown} cannot be compared" if unknown else ""
    return f"{many}: {text} than in the oldest comparable report{more}"


def summary(series: Series, name: Callable[[str], str]) -> list[str]:
    """Return the cells under :data:`SUMMARY`."""
    contrast, trend = series.oldest, spark(series.readings[-_SPARKS:])
    if contrast is None:
        newest = series.values[-1] if series.values else None
        return [name(series.metric), trend, "–", _number(newest), "–", "–", "–", "–", "no comparable report"]
    change, ends = moved(series, contrast)
    values = [_number(contrast.old), _number(contrast.new), change, ends, probability(contrast.p), str(contrast.n)]
    verdict = "worse than the best" if series.best is not None and series.best.is_worse else contrast.result
    if contrast.is_worse:
        verdict = "slowly worse" if series.slow else "worse"
    return [name(series.metric), trend, *values, verdict]


def moved(series: Series, contrast: Contrast) -> tuple[str, str]:
    """Return the change of a value with its interval, as a comparison of the two reports shows it."""
    sign = -1 if series.better == "higher" else 1
    ends = [None if end is None else f"{sign * end + 0.0:+.3f}" for end in (contrast.low, contrast.high)][::sign]
    return f"{sign * contrast.regression + 0.0:+.3f}", between(*ends)


def trend_remarks(series: Series, name: Callable[[str], str]) -> Iterator[str]:
    """Yield the remarks on a metric."""
    best, step, metric = series.best, series.step, name(series.metric)
    if series.slow:
        largest = f"the largest is {step.regression:+.3f}" if step else "there is none"
        yield f"{metric}: slow drift. No single step from one report to the next is significant; {largest}."
    elif step is not None and step.is_worse:
        steps = f"from {name(step.before)} to {name(step.after)}"
        yield f"{metric}: the largest significant step is {step.regression:+.3f}, {steps}."
    if best is not None and best.is_worse and (series.oldest is None or best.before != series.oldest.before):
        yield f"{metric}: worse by {best.regression:.3f} than its best, {name(best.before)}."
    for why, readings in series.uncompared:
        yield f"{metric}: the newest reading is not compared with {quantity(readings, 'older one')}: {why}."
    alien = sum(not reading.comparable and reading.value is not None for reading in series.readings)
    if alien:
        verb = "reading was" if alien == 1 else "readings were"
        yield f"{metric}: {alien} {verb} taken with another definition of the metric and not compared."


def row(reading: Reading, name: Callable[[str], str]) -> list[str]:
    """Return the cells under :data:`POINTS`."""
    ends = between(*(None if end is None else f"{end:.3f}" for end in (reading.low, reading.high)))
    return [name(reading.label), _number(reading.value), ends or "–", str(reading.n), _reading_notes(reading)]


def _reading_notes(reading: Reading) -> str:
    texts = ["definition changed"] if reading.broken else []
    if reading.gold is not None:
        counts = ", ".join(f"{count} {word}" for word, count in reading.gold._asdict().items() if count)
        texts.append(f"gold changed ({counts})")
    return "; ".join(texts)


def _cut(series: Series) -> str:
    total = len(series.readings)
    return f" (the newest {_READINGS} of {total})" if total > _READINGS else ""


def _chart(series: Series) -> Iterator[str]:
    """Yield a chart of the readings that are comparable with the newest, if there are two."""
    shown = [reading for reading in series.readings if reading.comparable and reading.value is not None][-_CHARTED:]
    if len(shown) < 2:
        return
    # A number comes first, because Mermaid merges equal labels.
    labels = (f'"{index} {_axis(reading.label)}"' for index, reading in enumerate(shown, 1))
    values = [reading.value for reading in shown if reading.value is not None]
    drawn = ", ".join(f"{value:.4f}" for value in values)
    # From a tenth below the minimum to a tenth above the maximum, so that a drift of 0.02 shows.
    low, high = floor(min(values) * 10), ceil(max(values) * 10)
    scale = f"y-axis {low / 10:.1f} --> {max(high, low + 1) / 10:.1f}"
    lines = [f'title "{_axis(series.metric)}"', f"x-axis [{', '.join(labels)}]", scale, f"line [{drawn}]"]
    yield "```mermaid\nxychart-beta\n" + "\n".join(f"  {line}" for line in lines) + "\n```"


def _axis(label: str) -> str:
    clean = _UNCHARTED.sub("_", one_line(label, 4 * _AXIS_LABEL))
    return clean if len(clean) <= _AXIS_LABEL else "…" + clean[-_AXIS_LABEL:]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _plain(text: str) -> str:
    return one_line(text, _LABEL)


def _code(name: str) -> str:
    return f"`{name}`"


def as_json(series: Sequence[Series], reports: int) -> str:
    """Return everything as JSON with two spaces for each level."""
    return json_text({"reports": reports, "metrics": [{**item._asdict(), "slow": item.slow} for item in series]})


def as_csv(series: Sequence[Series], reports: int) -> str:
    """Return CSV by RFC 4180 with line feeds, a row for each reading; an empty cell without a value."""
    del reports
    headers = "metric report value low high n comparable contract_changed gold_changed gold_gone gold_new".split()
    rows = []
    for item in series:
        for reading in item.readings:
            numbers = ["" if number is None else number for number in (reading.value, reading.low, reading.high)]
            flags = ["true" if flag else "false" for flag in (reading.comparable, reading.broken)]
            gold = reading.gold or (0, 0, 0)
            rows.append([item.metric, spreadsheet(reading.label), *numbers, reading.n, *flags, *gold])
    return csv_text(headers, rows)


def badges(series: Sequence[Series], newest: Point) -> dict[str, str]:
    """Return shields.io endpoint badges by file name: one of the verdict, and one of each metric with a gate."""
    verdict = newest.verdict
    word = "no verdict" if verdict is None else "passed" if verdict.passed else "failed"
    wrong = f" · {verdict.wrong} of {verdict.questions} wrong" if verdict and verdict.wrong else ""
    made = {"badge.json": _badge("RAG evaluation", word + wrong, word)}
    for item in series:
        bound = newest.bounds.get(item.metric)
        result = newest.metrics.get(item.metric)
        if bound and result:
            made[f"badge-{item.metric}.json"] = _badge(item.metric, number(result.value, item.metric), bound.outcome)
    return made


def _badge(label: str, message: str, outcome: str) -> str:
    colour = {"passed": "brightgreen", "failed": "red", "inconclusive": "yellow"}.get(outcome, "lightgrey")
    return json_text({"schemaVersion": 1, "label": label, "message": message, "color": colour})


FORMS: dict[str, Callable[..., str]] = {
    "table": table,
    "markdown": markdown,
    "json": as_json,
    "csv": as_csv,
}
