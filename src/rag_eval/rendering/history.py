"""The trend of metrics over earlier reports as table, Markdown and JSON, and as blocks; the badges of a site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rag_eval.analysis.history import Contrast, Flaky, Point, Reading, Series
from rag_eval.common.escaping import json_text, quantity, some
from rag_eval.rendering import write_page
from rag_eval.rendering.document import (
    COMMIT,
    WIDE,
    Block,
    Paragraph,
    Section,
    Table,
    TextFormatter,
    bullets,
    format_number,
    format_probability,
    format_range,
    format_signed,
    paragraphs,
    table_of,
)

_BARS = "▁▂▃▄▅▆▇█"
_READINGS, _SPARKS = 20, 40
_RUNS, _FLAKY = 30, 30
_LABEL = 80
_SUMMARY = ["metric", "trend", "oldest", "newest", "change", "interval", "p", "cases", "result"]
_CONTRAST = ["before", "after", "old", "new", "regression", "low", "high", "n", "p", "result"]
_POINTS = ["report", "value", "95 % interval", "cases", "notes"]


def render(series: Sequence[Series], reports: int, form: str) -> str:
    """Return the trends as ``table``, ``markdown`` or ``json``, ending with a line feed.

    A page has a row for each metric, remarks, and the newest twenty readings of each.
    """
    if form == "json":
        metrics = []
        for one in series:
            fields: dict[str, Any] = {**one._asdict(), "slow": one.slow}
            for name in ("oldest", "best", "step"):
                if contrast := fields[name]:
                    before, after, item = contrast
                    interval = item.regression, item.low, item.high
                    values = before, after, item.baseline, item.value, *interval, item.n, item.adjusted, item.result
                    fields[name] = dict(zip(_CONTRAST, values, strict=True))
            metrics.append(fields)
        return json_text({"reports": reports, "metrics": metrics})
    return write_page(form, lambda formatter: _sections(series, reports, formatter))


def _sections(series: Sequence[Series], reports: int, formatter: TextFormatter) -> Iterator[Section]:
    lines = [line for item in series for line in trend_remarks(item, formatter)]
    overview = [Paragraph(headline(series)), *summary_table(series, formatter), *bullets(lines)]
    yield Section(f"Metrics over {quantity(reports, 'report')}", overview)
    for item in series:
        total = len(item.readings)
        cut = f" (the newest {_READINGS} of {total})" if total > _READINGS else ""
        yield Section(f"{formatter.named(item.metric, '')}{cut}", [readings_table(item, formatter, _READINGS)])


def headline(series: Sequence[Series]) -> str:
    """Count the metrics that are worse than in the oldest report, and those that cannot be compared."""
    contrasts = [item.oldest for item in series if item.oldest is not None]
    worse, unknown = sum(contrast.is_worse for contrast in contrasts), len(series) - len(contrasts)
    if not contrasts:
        return "No metric can be compared."
    count = f"{worse} of {quantity(len(series), 'metric')}" if worse else "No metric"
    text = f"{count} {'are' if worse > 1 else 'is'} significantly worse"
    more = f"; {unknown} cannot be compared" if unknown else ""
    return f"{text} than in the oldest comparable report{more}."


def summary_table(series: Sequence[Series], formatter: TextFormatter) -> list[Block]:
    """Compare the newest reading of each metric with the oldest, as a comparison of the two reports shows it."""
    rows = []
    for item in series:
        contrast, start = item.oldest, [formatter.named(item.metric, ""), spark(item.readings[-_SPARKS:])]
        if contrast is None:
            newest = format_number(item.values[-1] if item.values else None, item.metric)
            rows.append([*start, "–", newest, "–", "–", "–", "–", "no comparable report"])
            continue
        comparison = contrast.comparison
        change, *ends = comparison.change(item.better)
        interval = format_range(*(None if end is None else format_signed(end, item.metric) for end in ends))
        values = [format_number(value, item.metric) for value in (comparison.baseline, comparison.value)]
        result = "worse than the best" if item.best is not None and item.best.is_worse else comparison.result
        if contrast.is_worse:
            result = "slowly worse" if item.slow else "worse"
        p = format_probability(comparison.adjusted or 0.0)
        rows.append([*start, *values, format_signed(change, item.metric), interval, p, str(comparison.n), result])
    return table_of("Metrics, newest against oldest", _SUMMARY, rows)


def spark(readings: Sequence[Reading]) -> str:
    """Return a bar for each reading, scaled from minimum to maximum.

    ``·`` is a reading without a value, ``│`` a change of the metric fingerprint.
    """
    values = [reading.value for reading in readings if reading.value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    span = high / 2 - low / 2  # halves, because the whole range may exceed a float
    bars = []
    for reading in readings:
        bars.append("│" if reading.broken else "")
        share = 0.5 if span <= 0 or reading.value is None else (reading.value / 2 - low / 2) / span
        bars.append("·" if reading.value is None else _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))])
    return "".join(bars)


def trend_remarks(series: Series, formatter: TextFormatter) -> Iterator[str]:
    """Yield the remarks on a metric."""
    best, step, metric = series.best, series.step, formatter.named(series.metric, "")
    loss = "drop" if series.better == "higher" else "rise"

    def size(contrast: Contrast) -> str:
        return format_signed(contrast.comparison.regression or 0.0, series.metric).removeprefix("+")

    if series.oldest is not None and series.oldest.comparison.is_wide:
        yield f"{metric}: significant{WIDE}."
    if series.slow:
        largest = f"the largest {loss} is {size(step)}" if step else "there is none"
        yield f"{metric}: slow drift. No single step from one report to the next is significant; {largest}."
    elif step is not None and step.is_worse:
        before, after = (formatter.code(label, _LABEL) for label in (step.before, step.after))
        yield f"{metric}: the largest significant {loss} is {size(step)}, from {before} to {after}."
    if best is not None and best.is_worse and (series.oldest is None or best.before != series.oldest.before):
        yield f"{metric}: worse by {size(best)} than its best, {formatter.code(best.before, _LABEL)}."
    for why, readings in series.uncompared:
        yield f"{metric}: the newest reading is not compared with {quantity(readings, 'older one')}: {why}."
    incomparable = sum(not reading.comparable and reading.value is not None for reading in series.readings)
    if incomparable:
        verb = "reading was" if incomparable == 1 else "readings were"
        yield f"{metric}: {incomparable} {verb} taken with another definition of the metric and not compared."


def readings_table(series: Series, formatter: TextFormatter, limit: int = 0) -> Table:
    """Return the newest readings, at most ``limit`` of them if it is not 0."""
    rows = [reading_cells(series.metric, reading, formatter) for reading in series.readings[-limit:]]
    return Table(f"Readings of {formatter.named(series.metric, '')}", _POINTS, rows)


def reading_cells(metric: str, reading: Reading, formatter: TextFormatter) -> list[str]:
    """Return the cells under :data:`_POINTS`."""
    ends = format_range(*(None if end is None else format_number(end, metric) for end in (reading.low, reading.high)))
    notes = ["definition changed"] if reading.broken else []
    if reading.gold is not None:
        counts = ", ".join(f"{count} {word}" for word, count in reading.gold._asdict().items() if count)
        notes.append(f"gold changed ({counts})")
    label = formatter.code(reading.label, _LABEL)
    return [label, format_number(reading.value, metric), ends or "–", str(reading.n), "; ".join(notes)]


def flaky_questions(unsteady: Sequence[Flaky], formatter: TextFormatter) -> list[Block]:
    """List the questions that changed between right and wrong, those that changed most often first."""
    if not unsteady:
        return [Paragraph("No question changed between right and wrong more than once.")]
    rows = []
    for item in unsteady[:_FLAKY]:
        counts = [str(item.changes), f"{item.right} of {item.reports}", ", ".join(map(formatter.words, item.labels))]
        rows.append([formatter.code(item.qid), *counts, formatter.text(item.question)])
    cut = len(unsteady) - _FLAKY
    table = Table("Flaky questions", ["Question", "Changes", "Right", "Labels when wrong", "Text"], rows)
    return [table, *paragraphs(f"… and {cut:,} more." if cut > 0 else "")]


def last_runs(runs: Sequence[Point], formatter: TextFormatter) -> list[Block]:
    """Return a table of the newest runs, the newest first."""
    rows = []
    for run in reversed(runs[-_RUNS:]):
        verdict = run.verdict
        if verdict is None:
            continue
        outcome = "passed" if verdict.passed else "failed"
        failed = some(verdict.failed_gates, 5, formatter.code)
        cells = [f"{formatter.sign(outcome)}\u00a0{outcome}", f"{verdict.wrong} of {verdict.questions}", failed]
        commit = formatter.code(run.commit[:COMMIT]) if run.commit else "–"
        date = formatter.figure(formatter.words(verdict.date)) if verdict.date else ""
        rows.append([formatter.code(run.label), *cells, commit, date])
    headers = ["Report", "Verdict", "Wrong questions", "Failed gates", "Commit", "Date"]
    if not any(row[-1] for row in rows):
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    return table_of("The last runs, newest first", headers, rows)


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
            value = format_number(result.value, item.metric)
            made[f"badge-{item.metric}.json"] = _badge(item.metric, value, bound.outcome)
    return made


def _badge(label: str, message: str, outcome: str) -> str:
    colour = {"passed": "brightgreen", "failed": "red", "inconclusive": "yellow"}.get(outcome, "lightgrey")
    return json_text({"schemaVersion": 1, "label": label, "message": message, "color": colour})
