"""The questions as CSV: rows are questions, columns metrics; a cell is empty if the metric does not apply.

With a baseline, a column shows which questions flipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_eval.cases.labels import GOOD
from rag_eval.common.escaping import csv_text, spreadsheet
from rag_eval.gates.results import score_splitter
from rag_eval.metrics import METRICS, column_of, single_score

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import Question

    Flips = dict[tuple[str, str | None], str]


def render(report: Report) -> str:
    """Return CSV by RFC 4180 with line feeds; text that a spreadsheet would run as a formula gets an apostrophe."""
    named = map(column_of, report.metrics)  # several values of a metric share one column
    names = list(dict.fromkeys(name for name in named if name not in METRICS or METRICS[name].level == "case"))
    flips = None
    if report.baseline is not None:
        flips = {(flip.qid, flip.run): "fixed" if flip.after in GOOD else "broken" for flip in report.flips}
    flip = [] if flips is None else ["flip"]
    columns = ["qid", "run", "question", "answerable", "label", "coarse_label", *flip, "gold_line", "trace_line"]
    slices = ["slices"] if any(question.slices for question in report.questions) else []
    return csv_text([*columns, *slices, *names], _rows(report, names, flips, with_slices=bool(slices)))


def _rows(report: Report, names: list[str], flips: Flips | None, *, with_slices: bool) -> Iterator[list[object]]:
    positions = {name: index for index, name in enumerate(names)}
    split = score_splitter(lambda shared: [str(shared.get(name, "")) for name in names])
    for question in report.questions:
        slices = [spreadsheet("; ".join(question.slices))] if with_slices else []
        shared, others = split(question.scores)
        cells: list[object] = [*shared]
        for name in others.keys() & positions:
            cells[positions[name]] = single_score(name, others[name])
        yield [*_fields(question, flips), *slices, *cells]


def _fields(question: Question, flips: Flips | None) -> list[object]:
    texts = [spreadsheet(text) for text in (question.qid, question.run or "", question.question)]
    answerable = "true" if question.answerable else "false"
    flip = [] if flips is None else [flips.get((question.qid, question.run), "")]
    return [*texts, answerable, question.label, question.coarse_label, *flip, question.gold_line, question.trace_line]
