"""A history of reports, a comparison of runs, repeats, and a form to grade answers, each as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rag_eval import __version__
from rag_eval.common.escaping import some
from rag_eval.rendering import history as trend
from rag_eval.rendering.blocks import Figure, PageSection, Paragraph, Table, bullets, table_of
from rag_eval.rendering.comparison import differing, mark, repeats_sections, sections
from rag_eval.rendering.html.element import (
    FORMATTER,
    Markup,
    clean,
    document,
    folded,
    footer,
    joined,
    laid,
    page,
    section,
    shown,
    tag,
)
from rag_eval.rendering.html.svg import Axes, Dot, Limit, chart
from rag_eval.rendering.number_format import number

if TYPE_CHECKING:
    from rag_eval.analysis.history import Flaky, Point, Series
    from rag_eval.analysis.repeats import Repeats
    from rag_eval.analysis.runs import SideBySide
    from rag_eval.gates.objectives import Front

MOST_GRADE = 5
_NONE = Markup("")
_AXES = {"cost": "cost, mean, USD", "latency": "latency, 95th percentile, ms"}
_LEGEND = "Better is up and to the left. A disc is on the front; a ring is dominated by another run."
_RUNS, _FLAKY, _COMMIT = 30, 30, 12
_TREND = "RAG evaluation over time"
_READ = (
    "Oldest first, with 95\u00a0% intervals. The shaded side of the threshold passes the gate: a disc passed, a cross "
    "failed. A ring was measured with another definition and is not joined; a dashed line marks the change."
)


def history_page(
    series: Sequence[Series], reports: int, runs: Sequence[Point] = (), unsteady: Sequence[Flaky] = ()
) -> str:
    """Return the page of a history: a chart for each metric, drift, flaky questions, the last runs, all readings."""
    newest = runs[-1].verdict if runs else None
    kind = "neutral" if newest is None else "passed" if newest.passed else "failed"
    word = "" if newest is None else f"The newest run {kind}. "
    head = [tag("h1", _TREND), tag("p", f"{word}{trend.headline(series, reports)}.", class_="verdict")]
    charts = tag("div", *(_chart(index, item) for index, item in enumerate(series)), class_="charts")
    readings = []
    for item in series:
        rows, name = [trend.row(reading, FORMATTER.code) for reading in item.readings], shown(item.metric)
        table = laid([Table(f"Readings of {name}", trend.POINTS, rows)])
        readings.append(folded(f"{name} ({len(rows):,})", table))
    rows = [trend.summary(item, FORMATTER.code) for item in series]
    summary = table_of("Metrics, newest against oldest", trend.SUMMARY, rows)
    parts = {
        "trends": ("Trends", joined([tag("p", _READ, class_="asks"), charts]) if series else _NONE),
        "drift": ("Drift", _drift(series)),
        "flaky": ("Flaky questions", _flaky(unsteady, known=bool(runs))),
        "runs": ("Last runs", _last_runs(runs)),
        "summary": ("Newest against oldest", laid(summary)),
        "readings": ("All readings", joined(readings)),
    }
    made = [(key, title, section(key, title, body)) for key, (title, body) in parts.items()]
    return page(_TREND, __version__, tag("div", joined(head), class_=f"head {kind}"), made)


def _drift(series: Sequence[Series]) -> Markup:
    """Name the metrics that got worse so slowly that no step shows it, the largest first, then other remarks."""
    drifting = [item for item in series if item.slow]
    lines = [
        line
        for item in [*drifting, *(entry for entry in series if not entry.slow)]
        for line in trend.trend_remarks(item, FORMATTER.code)
    ]
    none = [] if drifting else [Paragraph("No metric drifts slowly.")]
    return laid([*none, *bullets(lines)]) if series else _NONE


def _flaky(unsteady: Sequence[Flaky], *, known: bool) -> Markup:
    if not known:
        return _NONE
    if not unsteady:
        return tag("p", "No question changed between right and wrong more than once.")
    rows = []
    for item in unsteady[:_FLAKY]:
        counts = [str(item.changes), f"{item.right} of {item.reports}", ", ".join(map(shown, item.labels))]
        rows.append([FORMATTER.code(item.qid), *counts, FORMATTER.text(item.question)])
    cut = len(unsteady) - _FLAKY
    shown_rows = Table("Flaky questions", ["Question", "Changes", "Right", "Labels when wrong", "Text"], rows)
    return laid([shown_rows, *([Paragraph(f"… and {cut:,} more.")] if cut > 0 else [])])


def _last_runs(runs: Sequence[Point]) -> Markup:
    """Return a table of the newest runs, the newest first."""
    rows = []
    for run in reversed(runs[-_RUNS:]):
        verdict = run.verdict
        if verdict is None:
            continue
        outcome = "passed" if verdict.passed else "failed"
        word = f"{FORMATTER.sign(outcome)}\u00a0{outcome}"
        failed = some(verdict.failed_gates, 5, FORMATTER.code)
        wrong = f"{verdict.wrong} of {verdict.questions}"
        commit = FORMATTER.code(run.commit[:_COMMIT]) if run.commit else "–"
        date = FORMATTER.figure(shown(verdict.date)) if verdict.date else ""
        rows.append([FORMATTER.code(run.label), word, wrong, failed, commit, date])
    headers = ["Report", "Verdict", "Wrong questions", "Failed gates", "Commit", "Date"]
    if not any(row[-1] for row in rows):
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    return laid([Table("The last runs, newest first", headers, rows)]) if rows else _NONE


def _chart(index: int, series: Series) -> Markup:
    parts = _parts(series)
    dots = [dot for part in parts for dot in part]
    lines = [[dot for dot in part if dot.kind != "few"] for part in parts]
    labels = [
        shown(reading.commit[:_COMMIT] or reading.label) for reading in series.readings if reading.value is not None
    ]
    first, last = (labels[0], labels[-1]) if len(labels) > 1 else ("", "")
    newest = f"{number(series.values[-1], series.metric)}" if series.values else ""
    axes = Axes("", "", first, last, ticks=False)
    return chart(f"plot-{index}", shown(series.metric), newest, dots, lines, axes, list(_limits(series)))


def _limits(series: Series) -> Iterator[Limit]:
    """Yield the thresholds, each with the readings that it applied to."""
    bounds = [(index, reading.bound) for index, reading in enumerate(series.readings)]
    for side, group in groupby(bounds, key=lambda entry: entry[1] and entry[1][:2]):
        indexes = [index for index, _ in group]
        if side:
            yield Limit(indexes[0] - 0.5, indexes[-1] + 0.5, side[1], side[0])


def _parts(series: Series) -> list[list[Dot]]:
    """Return the readings with a value, split at changes of the definition."""
    parts: list[list[Dot]] = [[]]
    for index, reading in enumerate(series.readings):
        if reading.value is None:
            continue
        outcome = reading.bound.outcome if reading.bound else ""
        kind = "few" if not reading.comparable else outcome if outcome in ("passed", "failed") else "plain"
        label, *cells = trend.row(reading, shown)
        commit = [f"commit {shown(reading.commit[:_COMMIT])}"] if reading.commit else []
        if reading.bound:
            cells.append(f"{reading.bound.side} {reading.bound.threshold:g}: {reading.bound.outcome.replace('_', ' ')}")
        text = f"{label}: {', '.join(cell for cell in (*cells, *commit) if cell)}"
        if reading.broken:
            parts.append([])
        dot = Dot(float(index), reading.value, kind, text, "", reading.low, reading.high, reading.broken)
        parts[-1].append(dot)
    return parts


def comparison_page(comparison: SideBySide) -> str:
    """Return the page of a comparison: differences first."""
    plots = tag("div", *_plots(comparison, comparison.front), class_="charts") if comparison.front else _NONE
    first, *rest = sections(comparison, FORMATTER)
    return _page_of([first, *differing(comparison, FORMATTER), *rest], comparison.version, plots)


def repeats_page(systems: Sequence[Repeats]) -> str:
    """Return the page of repeats."""
    parts = (part for system in systems for part in repeats_sections(system, FORMATTER))
    return _page_of([PageSection("Repeats"), *parts], __version__)


def _page_of(sections: Iterable[PageSection], version: str, plots: Markup = _NONE) -> str:
    """Return a page with the first section at its top; ``plots`` replace figures of characters."""
    first, *rest = sections
    title = clean(first.title)
    header = tag("div", tag("h1", title), tag("div", laid(first.blocks), class_="verdict"), class_="head")
    made = []
    for index, part in enumerate(rest):
        blocks = [block for block in part.blocks if not isinstance(block, Figure)]
        body = joined([plots if len(blocks) < len(part.blocks) else _NONE, laid(blocks)])
        made.append((f"part-{index}", clean(part.title), section(f"part-{index}", clean(part.title), body)))
    return page(title, shown(version), header, made)


def _plots(comparison: SideBySide, front: Front) -> Iterator[Markup]:
    """Yield quality over each of the other dimensions."""
    for axis, name in enumerate(front.dimensions[1:], 1):
        dots = []
        for index, point in enumerate(front.points):
            run = shown(comparison.runs[index].name)
            kind = "plain" if front.beaten_by[index] is None else "few"
            text = f"{mark(index)}, {run}: quality {point[0]:.3f}, {front.dimensions[axis]} {point[axis]:.4g}"
            dots.append(Dot(point[axis], point[0], kind, text, mark(index)))
        yield chart(f"front-{axis}", f"Quality and {name}.", _LEGEND, dots, [], Axes(_AXES[name], "quality"))


def grading_form(
    answers: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    scores: Sequence[str],
    rubric: str,
    rater: str,
    version: str,
) -> str:
    """Return the page; each answer has the fields of its label and the judge's input."""
    who = tag("p", tag("label", "Your name: ", tag("input", id="rater", type="text", value=rater, autocomplete="name")))
    items = [_answer_to_grade(number, len(answers), *answer, scores) for number, answer in enumerate(answers, 1)]
    button, state = tag("button", "Save the grades", type="button", id="save"), tag("span", id="state", role="status")
    save = tag("p", button, " ", state, tag("noscript", "Saving needs the script of this file."))
    instruction = "Grade each answer by the rubric, from 0 to 5. Leave a score open if you cannot tell."
    parts = [
        tag(
            "header",
            tag("h1", "Spot-check of a judge"),
            tag("p", instruction, " The grades of the judge are not shown."),
            folded("Rubric", _quoted(rubric)),
        ),
        tag("main", tag("form", who, joined(items), save, id="grades", autocomplete="off")),
        footer(version),
    ]
    return document("Spot-check of a judge", version, parts, "grading.js")


def _answer_to_grade(
    number: int, total: int, label: Mapping[str, Any], shown: Mapping[str, Any], scores: Sequence[str]
) -> Markup:
    parts = [tag("h2", f"{number} of {total}: {shown['question']}", id=f"answer-{number}")]
    if earlier := shown.get("history"):
        parts += [tag("h3", "Earlier turns"), *(_quoted(f"{item['role']}: {item['content']}") for item in earlier)]
    parts += [tag("h3", "Answer"), _quoted(shown["answer"])]
    parts += [tag("p", f"Citations: {', '.join(shown['citations']) or 'none'}")]
    if "expected_answer" in shown:
        parts += [tag("h3", "Expected answer"), _quoted(shown["expected_answer"])]
    parts += [tag("h3", "Passages")] if shown["chunks"] else [tag("p", "There are no passages.")]
    parts += [folded(chunk["id"], _quoted(chunk["text"]), unfolded=True) for chunk in shown["chunks"]]
    parts += [_choice(f"answer-{number}", score) for score in scores]
    parts += [tag("p", tag("label", "Note: ", tag("input", type="text")))]
    return tag(
        "section", joined(parts), data_label=json.dumps(label, sort_keys=True), aria_labelledby=f"answer-{number}"
    )


def _choice(name: str, score: str) -> Markup:
    options = [
        tag(
            "label",
            tag("input", type="radio", name=f"{name}-{score}", value=str(value), data_choice=score),
            f" {value} ",
        )
        for value in range(MOST_GRADE + 1)
    ]
    return tag("p", tag("span", f"{score}: "), *options, role="group", aria_label=score)


def _quoted(text: str) -> Markup:
    return tag("blockquote", joined(tag("p", line) for line in text.splitlines() if line.strip()))
