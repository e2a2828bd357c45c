"""The cases of a report as a table that its script searches, filters and sorts, and that is whole without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.labels import GOOD, MEANING, STAGE
from rag_eval.rendering import cases, phrases
from rag_eval.rendering.blocks import Table
from rag_eval.rendering.html.element import FORMATTER, Markup, joined, shown, tag
from rag_eval.rendering.html.layout import caption, laid, scrolled

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import Question

_FIRST = 100
"""Rows that are shown at first where the script runs; it says how many there are, and shows them all when asked to."""
_BROKEN, _FIXED = "newly broken", "newly fixed"


class Column(NamedTuple):
    """A column: its title, how it is sorted, how the rows are filtered by it (if at all), and its cells."""

    title: str
    order: str
    choice: str
    cell: Callable[[Question], Markup]


def questions(report: Report) -> Markup:
    """The labels with how often they were given, the controls, and a row a case."""
    columns = _columns(report)
    ordered = phrases.by_urgency(report.questions)
    rows = [_row(one, columns) for one in ordered]
    head = tag("thead", tag("tr", *(_header(column) for column in columns)))
    first, rest = (joined(part) for part in (rows[:_FIRST], rows[_FIRST:]))
    bodies = [tag("tbody", first), *([tag("tbody", rest, class_="rest")] if rest else [])]
    shown_rows = scrolled("Cases", tag("table", caption("Cases, failing ones first"), head, *bodies, id="cases"))
    return joined([_labels(report), _controls(report, columns), shown_rows, _all(len(rows))])


def _labels(report: Report) -> Markup:
    """What the labels mean, and how many cases have each."""
    counts = Counter(question.label for question in report.questions)
    rows = [
        [phrases.signed_label(each, FORMATTER), f"{counts[each]:,}", STAGE.get(each, ""), MEANING[each]]
        for each in cases.labels(report)
    ]
    return laid([Table("Labels", ["Label", "Cases", "Look at", "Meaning"], rows)])


def _columns(report: Report) -> list[Column]:
    """Question, run where there are several, label, what changed where there is a baseline, and the rest."""
    flips = {(flip.qid, flip.run): _BROKEN if flip.after not in GOOD else _FIXED for flip in report.flips}
    run = Column("Run", "text", "run", lambda one: tag("td", _name(one.run)))
    change = Column("Changed", "text", "changed", lambda one: _word(flips.get((one.qid, one.run), "")))
    parts = Column("Slices", "text", "", _parts)
    return [
        Column("Question", "text", "", lambda one: tag("th", _name(one.qid), scope="row")),
        *([run] if phrases.several(report) else []),
        Column("Label", "text", "label", _label),
        *([change] if report.baseline is not None else []),
        Column("Text", "text", "", lambda one: tag("td", shown(one.question), dir="auto")),
        Column("Look at", "text", "look at", lambda one: _word(STAGE.get(one.label, ""))),
        Column("Answerable", "text", "answerable", lambda one: _word("yes" if one.answerable else "no")),
        *([parts] if any(one.slices for one in report.questions) else []),
        Column("Gold line", "number", "", lambda one: _line(one.gold_line)),
        Column("Trace line", "number", "", lambda one: _line(one.trace_line)),
    ]


def _name(text: str | None) -> Markup:
    return tag("code", shown(text)) if text else Markup("")


@lru_cache(maxsize=1024)
def _word(text: str, kind: str | None = None) -> Markup:
    """A cell that many rows have alike."""
    return tag("td", text, class_=kind)


def _label(one: Question) -> Markup:
    return _word(one.label, "good" if one.label in GOOD else "bad")


def _parts(one: Question) -> Markup:
    return _word(", ".join(map(shown, one.slices)), "slices")


def _line(number: int) -> Markup:
    return tag("td", str(number) if number else "", class_="number")


def _header(column: Column) -> Markup:
    return tag("th", column.title, scope="col", data_order=column.order, data_choice=column.choice or None)


def _row(one: Question, columns: Sequence[Column]) -> Markup:
    return tag("tr", *[column.cell(one) for column in columns])


def _controls(report: Report, columns: Sequence[Column]) -> Markup:
    """Search and filters, hidden until the script has shown that it runs; choices are filled in by it."""
    search = tag("label", "Search ", tag("input", type="search", id="search", autocomplete="off", spellcheck="false"))
    choices = [_choice(column.choice, column.choice) for column in columns if column.choice]
    outcome = _choice("outcome", "outcome")
    reset = tag("button", "Clear", type="button", id="clear")
    fields = tag("form", search, outcome, *choices, reset, id="filters", hidden=True, role="search", aria_label="Cases")
    said = f"{phrases.cases(report)}: all are shown."
    return joined([fields, tag("p", said, id="count", role="status")])


def _choice(key: str, title: str) -> Markup:
    select = tag("select", tag("option", "all", value=""), data_choice=key)
    return tag("label", f"{title.capitalize()} ", select)


def _all(count: int) -> Markup:
    button = tag("button", f"Show all {count:,} rows", type="button", id="all")
    return tag("p", button, hidden=True, id="more")
