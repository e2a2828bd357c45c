"""The gates as Markdown: the table, and below it what the numbers could not have shown."""

from __future__ import annotations

from rag_eval.renderers import words
from rag_eval.renderers.asides import asides
from rag_eval.renderers.figures import enclosed, move_of, moves, threshold
from rag_eval.renderers.marks import VOICE, bullets, glued, name, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.gates import Judged
    from rag_eval.renderers.figures import Moves
    from rag_eval.report import Report

SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "🟡", "no_data": "⬜"}


def gates(report: Report) -> str:
    """The gates that are worth a row, and a line for each that needs one."""
    mixed, beside = words.two_sided(report), moves(report)
    rows = [_row(report, gate, beside, mixed=mixed) for gate in words.telling(report.gates)]
    delta = ["Δ baseline"] if beside else []
    shown = table(["Gate", *(["Whose"] if mixed else []), "Value", "Cases", "Threshold", *delta, "Outcome"], rows)
    usual = "" if report.gates_file else "There is no gates file: the reference scorer's defaults hold."
    return "\n\n".join(part for part in (shown, bullets(asides(report, VOICE)), usual) if part)


def _row(report: Report, gate: Judged, beside: Moves, *, mixed: bool) -> list[str]:
    return [
        name(gate.name, gate.slice),
        *([words.WHOSE[gate.origin]] if mixed else []),
        glued(enclosed(gate)),
        glued(words.cases_of(report, gate)),
        glued(threshold(gate)),
        *([move_of(gate, beside)] if beside else []),
        f"{sign(gate)}\u00a0{words.outcome(gate)}",
    ]


def sign(gate: Judged) -> str:
    """The sign of an outcome: what fails the run looks like it."""
    if gate.blocks:
        return SIGNS["failed"]
    return "⚠️" if gate.broken and not gate.unclear else SIGNS[gate.outcome]
