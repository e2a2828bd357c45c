"""A history of reports, a comparison of runs, repeats, and a form to grade answers, each as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rag_eval import __version__
from rag_eval.common.escaping import some
from rag_eval.gates.policy import SPENDING
from rag_eval.rendering import history as trend
from rag_eval.rendering.comparison import letter, repeats_sections, sections, significant_differences
from rag_eval.rendering.document import Paragraph, Section, Table, bullets, paragraphs, table_of
from rag_eval.rendering.html.element import (
    FORMATTER,
    Markup,
    document,
    folded,
    join,
    page,
    plain_text,
    tag,
    visible,
    write_blocks,
)
from rag_eval.rendering.html.plots import Axes, Dot, Limit, chart
from rag_eval.rendering.number_format import number

if TYPE_CHECKING:
    from rag_eval.analysis.history import Flaky, Point, Series
    from rag_eval.analysis.runs import Repeats, SideBySide
    from rag_eval.rendering.document import Block

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
    tables = [(item, trend.readings_table(item, FORMATTER)) for item in series]
    readings = [
        folded(f"{visible(item.metric)} ({len(item.readings):,})", write_blocks([table])) for item, table in tables
    ]
    # Slow drift comes first: no other part shows it.
    ordered = sorted(series, key=lambda item: not item.slow)
    drift = bullets([line for item in ordered for line in trend.trend_remarks(item, FORMATTER)])
    if series and not any(item.slow for item in series):
        drift = [Paragraph("No metric drifts slowly."), *drift]
    parts = {
        "trends": ("Trends", join([tag("p", _READ, class_="hint"), charts]) if series else _NONE),
        "drift": ("Drift", write_blocks(drift)),
        "flaky": ("Flaky questions", write_blocks(_flaky(unsteady)) if runs else _NONE),
        "runs": ("Last runs", write_blocks(_last_runs(runs))),
        "summary": ("Newest against oldest", write_blocks(trend.summary_table(series, FORMATTER))),
        "readings": ("All readings", join(readings)),
    }
    return page(_TREND, __version__, tag("div", join(head), class_=f"head {kind}"), parts)


def _flaky(unsteady: Sequence[Flaky]) -> list[Block]:
    if not unsteady:
        return [Paragraph("No question changed between right and wrong more than once.")]
    rows = []
    for item in unsteady[:_FLAKY]:
        counts = [str(item.changes), f"{item.right} of {item.reports}", ", ".join(map(visible, item.labels))]
        rows.append([FORMATTER.code(item.qid), *counts, FORMATTER.text(item.question)])
    cut = len(unsteady) - _FLAKY
    table = Table("Flaky questions", ["Question", "Changes", "Right", "Labels when wrong", "Text"], rows)
    return [table, *paragraphs(f"… and {cut:,} more." if cut > 0 else "")]


def _last_runs(runs: Sequence[Point]) -> list[Block]:
    """Return a table of the newest runs, the newest first."""
    rows = []
    for run in reversed(runs[-_RUNS:]):
        verdict = run.verdict
        if verdict is None:
            continue
        outcome = "passed" if verdict.passed else "failed"
        failed = some(verdict.failed_gates, 5, FORMATTER.code)
        cells = [f"{FORMATTER.sign(outcome)}\u00a0{outcome}", f"{verdict.wrong} of {verdict.questions}", failed]
        commit = FORMATTER.code(run.commit[:_COMMIT]) if run.commit else "–"
        date = FORMATTER.figure(visible(verdict.date)) if verdict.date else ""
        rows.append([FORMATTER.code(run.label), *cells, commit, date])
    headers = ["Report", "Verdict", "Wrong questions", "Failed gates", "Commit", "Date"]
    if not any(row[-1] for row in rows):
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    return table_of("The last runs, newest first", headers, rows)


def _chart(index: int, series: Series) -> Markup:
    """Return a chart of the readings with a value, whose line is interrupted at changes of the definition."""
    parts: list[list[Dot]] = [[]]
    labels = []
    for at, reading in enumerate(series.readings):
        if reading.value is None:
            continue
        outcome = reading.bound.outcome if reading.bound else ""
        kind = "few" if not reading.comparable else outcome if outcome in ("passed", "failed") else "plain"
        label, *cells = map(plain_text, trend.reading_cells(series.metric, reading, FORMATTER))
        if reading.bound:
            cells.append(f"{reading.bound.side} {reading.bound.threshold:g}: {reading.bound.outcome.replace('_', ' ')}")
        cells += [f"commit {visible(reading.commit[:_COMMIT])}"] if reading.commit else []
        text = f"{label}: {', '.join(cell for cell in cells if cell)}"
        parts += [[]] if reading.broken else []
        parts[-1].append(Dot(float(at), reading.value, kind, text, "", reading.low, reading.high, reading.broken))
        labels.append(visible(reading.commit[:_COMMIT] or reading.label))
    dots = [dot for part in parts for dot in part]
    lines = [[dot for dot in part if dot.kind != "few"] for part in parts]
    ends = (labels[0], labels[-1]) if len(labels) > 1 else ("", "")
    newest = number(series.values[-1], series.metric) if series.values else ""
    axes = Axes("", "", *ends, ticks=False)
    return chart(f"plot-{index}", visible(series.metric), newest, dots, lines, axes, list(_limits(series)))


def _limits(series: Series) -> Iterator[Limit]:
    """Yield the thresholds, each with the readings that it applied to."""
    bounds = [(index, reading.bound) for index, reading in enumerate(series.readings)]
    for side, group in groupby(bounds, key=lambda entry: entry[1] and entry[1][:2]):
        indexes = [index for index, _ in group]
        if side:
            yield Limit(indexes[0] - 0.5, indexes[-1] + 0.5, side[1], side[0])


def comparison_page(comparison: SideBySide) -> str:
    """Return the page of a comparison: differences first."""
    plots = _NONE
    if front := comparison.front:  # quality over each of the other dimensions
        made = []
        for axis, name in enumerate(front.dimensions[1:], 1):
            dots = []
            for index, point in enumerate(front.points):
                kind = "plain" if front.beaten_by[index] is None else "few"
                numbers = f"quality {number(point[0])}, {name} {number(point[axis], SPENDING[name])}"
                text = f"{letter(index)}, {visible(comparison.runs[index].name)}: {numbers}"
                dots.append(Dot(point[axis], point[0], kind, text, letter(index)))
            made.append(chart(f"front-{axis}", f"Quality and {name}.", _LEGEND, dots, [], Axes(_AXES[name], "quality")))
        plots = tag("div", *made, class_="charts")
    first, *rest = sections(comparison, FORMATTER)
    return _page_of([first, *significant_differences(comparison, FORMATTER), *rest], comparison.version, plots)


def repeats_page(systems: Sequence[Repeats]) -> str:
    """Return the page of repeats."""
    parts = (part for system in systems for part in repeats_sections(system, FORMATTER))
    return _page_of([Section("Repeats"), *parts], __version__)


def _page_of(sections: Iterable[Section], version: str, plots: Markup = _NONE) -> str:
    """Return a page with the first section at its top, and ``plots`` at the end of the last one."""
    first, *rest = sections
    title = plain_text(first.title)
    header = tag("div", tag("h1", title), tag("div", write_blocks(first.blocks), class_="verdict"), class_="head")
    parts = {f"part-{at}": (plain_text(part.title), write_blocks(part.blocks)) for at, part in enumerate(rest)}
    if plots:
        key, (name, body) = parts.popitem()
        parts[key] = name, join([plots, body])
    return page(title, visible(version), header, parts)


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
        tag("main", tag("form", who, join(items), save, id="grades", autocomplete="off")),
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
    for score in scores:
        grades = []
        for grade in range(MOST_GRADE + 1):
            radio = tag("input", type="radio", name=f"answer-{number}-{score}", value=str(grade), data_choice=score)
            grades.append(tag("label", radio, f" {grade} "))
        parts.append(tag("p", tag("span", f"{score}: "), *grades, role="group", aria_label=score))
    parts += [tag("p", tag("label", "Note: ", tag("input", type="text")))]
    return tag("section", join(parts), data_label=json.dumps(label), aria_labelledby=f"answer-{number}")


def _quoted(text: str) -> Markup:
    return tag("blockquote", join(tag("p", line) for line in text.splitlines() if line.strip()))
