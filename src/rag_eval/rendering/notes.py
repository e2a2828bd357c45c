"""What is to be said besides the numbers: notes on the input, and the likely causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import listed

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

NOTES, DIAGNOSIS = "Notes on the input", "Diagnosis"
_MOST, _SAID = 10, 200


def notes(report: Report, formatter: TextFormatter, most: int = _MOST) -> list[Block]:
    """What is odd about the input, where it is, how often."""
    lines = [
        f"{formatter.code(_place(note.file, note.line), _SAID)}: "
        f"{formatter.text(note.message, _SAID)}{_times(note.times)}"
        for note in report.notes[:most]
    ]
    cut = len(report.notes) - most
    return [listed([*lines, f"and {cut} more"] if cut > 0 else lines)] if lines else []


def diagnosis(report: Report, formatter: TextFormatter) -> list[Block]:
    """The likely causes, what speaks for each, and what to look at next."""
    lines = [
        f"{formatter.strong(formatter.own(cause.cause))} ({formatter.own(cause.evidence)}) {formatter.own(cause.next)}"
        for cause in report.diagnosis
    ]
    return [listed(lines)] if lines else []


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
