"""The questions of a report: their columns, and the meanings of their labels."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from rag_eval.cases.labels import GOOD, MEANING, STAGE
from rag_eval.rendering import phrases
from rag_eval.rendering.blocks import Paragraph, Table, more, paragraphs

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import Question
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

_FAILING, _CONVERSATIONS, _DIGITS = 10, 20, 15
_LABEL = attrgetter("label")
_QID, _RUN, _TEXT = 40, 24, 80


def first_failing(report: Report, formatter: TextFormatter) -> list[Block]:
    """Count the failing cases and list the first ones."""
    failing = phrases.failing(report)
    if not failing:
        return []
    cut = len(failing) - _FAILING
    fail = "fails" if len(failing) == 1 else "fail"
    head = Paragraph(formatter.strong(f"{len(failing)} of {phrases.cases(report)} {fail}."))
    return [head, _table(report, failing[:_FAILING], formatter), *paragraphs(f"… and {cut} more." if cut > 0 else "")]


def questions(report: Report, formatter: TextFormatter, limit: int) -> list[Block]:
    """List the first cases, failing ones first, with the meanings of their labels."""
    first = phrases.by_urgency(report.questions, limit)
    cut = len(report.questions) - limit
    left_out = f"{cut} more questions are not shown; failing ones come first. report.json has all." if cut > 0 else ""
    meant = "; ".join(f"{formatter.code(label)} {MEANING[label]}" for label in labels(report))
    return [_table(report, first, formatter), *paragraphs(left_out, f"{meant}.")]


def conversations(report: Report, formatter: TextFormatter) -> list[Block]:
    """Return a table of the conversations with a wrong turn, those with the most wrong ones first."""
    by_conversation: dict[tuple[str, str | None], list[Question]] = {}
    if report.statistics.cluster != "conversation":
        return []
    for question in report.questions:
        for part in question.slices:
            if part.startswith("conversation="):
                by_conversation.setdefault((part.partition("=")[2], question.run), []).append(question)
    rows = []
    for (name, _), turns in by_conversation.items():
        wrong = sorted((item for item in turns if item.label not in GOOD), key=_turn)
        if wrong:
            first = wrong[0]
            turn = f"{formatter.code(first.qid, _QID)} {first.label}"
            rows.append((len(turns) - len(wrong), len(turns), formatter.code(name, _QID), turn, first))
    if not rows:
        return []
    rows.sort(key=lambda row: (row[0] / row[1], row[2]))
    cells = [[name, f"{right} of {n}", turn, formatter.text(row.question, _TEXT)] for right, n, name, turn, row in rows]
    head = f"{len(rows)} of {len(by_conversation)} conversations have a wrong turn"
    shown = Table(head, ["Conversation", "Right turns", "First wrong turn", "Text"], cells[:_CONVERSATIONS])
    left_out = more(len(rows) - _CONVERSATIONS, formatter.whole)
    return [Paragraph(formatter.strong(f"{head}.")), shown, *left_out]


def _turn(question: Question) -> tuple[int, int]:
    """Return the position of a question in its conversation: its turn, otherwise its line."""
    named = (part.partition("=")[2] for part in question.slices if part.startswith("turn="))
    turn = next(named, "")
    return int(turn) if turn.isdecimal() and len(turn) <= _DIGITS else 0, question.gold_line


def labels(report: Report) -> list[str]:
    """Return the labels that some case has, in the order of their meanings."""
    return sorted(set(map(_LABEL, report.questions)), key=list(MEANING).index)


def _table(report: Report, chosen: Iterable[Question], formatter: TextFormatter) -> Table:
    several = phrases.several(report)
    headers = ["Question", *(["Run"] if several else []), "Label", "Look at", "Text"]
    rows = [
        [
            formatter.code(question.qid, _QID),
            *([formatter.code(question.run or "", _RUN)] if several else []),
            question.label,
            STAGE.get(question.label, "–"),
            formatter.text(question.question, _TEXT),
        ]
        for question in chosen
    ]
    return Table("Cases", headers, rows)
