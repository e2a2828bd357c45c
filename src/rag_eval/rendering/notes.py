"""What is to be said besides the numbers: notes on the input, and the likely causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import listed

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import Voice

NOTES, DIAGNOSIS = "Notes on the input", "Diagnosis"
_MOST, _SAID = 10, 200


def notes(report: Report, voice: Voice, most: int = _MOST) -> list[Block]:
    """What is odd about the input, where it is, how often."""
    lines = [
        f"{voice.code(_place(note.file, note.line), _SAID)}: {voice.text(note.message, _SAID)}{_times(note.times)}"
        for note in report.notes[:most]
    ]
    cut = len(report.notes) - most
    return [listed([*lines, f"and {cut} more"] if cut > 0 else lines)] if lines else []


def diagnosis(report: Report, voice: Voice) -> list[Block]:
    """The likely causes, what speaks for each, and what to look at next."""
    lines = [
        f"{voice.strong(voice.own(cause.cause))} ({voice.own(cause.evidence)}) {voice.own(cause.next)}"
        for cause in report.diagnosis
    ]
    return [listed(lines)] if lines else []


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
