"""The questions as CSV: a row a question, a column a metric, an empty cell where it does not apply."""

from __future__ import annotations

import csv
import io

from rag_eval.safe import spreadsheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.report import Report
    from rag_eval.results import Question


def render(report: Report) -> str:
    """RFC 4180 with line feeds; text that a spreadsheet would run as a formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(report.metrics)
    writer.writerow(["qid", "run", "question", "answerable", "label", "example08", "gold_line", "trace_line", *names])
    writer.writerows(_row(question, names) for question in report.questions)
    return out.getvalue()


def _row(question: Question, names: list[str]) -> list[object]:
    texts = [spreadsheet(text) for text in (question.qid, question.run or "", question.question)]
    answerable = "true" if question.answerable else "false"
    own = [answerable, question.label, question.example08, question.gold_line, question.trace_line]
    return [*texts, *own, *(question.scores.get(name, "") for name in names)]
