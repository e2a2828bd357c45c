"""What a report has to say of single lines: broken gates, findings, and questions that came out wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.cases.labels import GOOD, MEANING
from rag_eval.rendering import phrases

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report


class Pointer(NamedTuple):
    """A text about a line of a file; ``file`` is empty and ``line`` 0 where there is no such place in the change.

    ``kind`` is of what: a gate, a finding, a question. ``code`` names it among these: the gate, the finding's code, the
    question's label. ``subject`` tells those of one code apart, whatever lines they stand on.
    """

    kind: Literal["gate", "finding", "question"]
    level: Literal["error", "warning"]
    code: str
    text: str
    file: str = ""
    line: int = 0
    subject: str = ""


def of_gates(report: Report) -> Iterator[Pointer]:
    """The broken gates, on their lines of the gates file; one that only the base has stands on none."""
    for gate in (gate for gate in report.gates if gate.broken):
        place = ("", 0) if gate.origin == "base" else (report.gates_file, gate.line)
        level: Literal["error", "warning"] = "error" if gate.blocks else "warning"
        subject = f"{gate.origin} {phrases.PLAIN.gate(gate)} {gate.direction}"
        yield Pointer("gate", level, gate.name, phrases.reason(report, gate), *place, subject)


def of_findings(report: Report) -> Iterator[Pointer]:
    """The findings, each with what fixes it."""
    for finding in report.findings:
        text = f"{finding.message}. {finding.fix}".rstrip()
        yield Pointer("finding", finding.level, finding.code, text, finding.file, finding.line, finding.message)


def of_questions(report: Report) -> Iterator[Pointer]:
    """The questions that came out wrong, on the line of the trace, or of the gold item where no trace came."""
    paths = {each.role: each.path for each in report.inputs}
    for question in report.questions:
        if question.label in GOOD:
            continue
        file, line = ("trace", question.trace_line) if question.trace_line else ("gold", question.gold_line)
        text = f"{question.qid}: {MEANING[question.label]}"
        subject = question.qid if question.run is None else f"{question.run} {question.qid}"
        yield Pointer("question", "warning", question.label, text, paths.get(file, ""), line, subject)
