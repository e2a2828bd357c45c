"""The gates: their table, and below it what the numbers could not have shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.rendering import phrases
from rag_eval.rendering.blocks import Table, listed, paragraphs
from rag_eval.rendering.gate_notes import asides
from rag_eval.rendering.number_format import enclosed, move_of, moves, threshold

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.number_format import Moves
    from rag_eval.rendering.phrases import TextFormatter


def gates(report: Report, formatter: TextFormatter) -> list[Block]:
    """The gates that are worth a row, and a line for each that needs one."""
    lines: list[Block] = [listed(said)] if (said := asides(report, formatter)) else []
    return [table(report, formatter), *lines, *paragraphs(phrases.usual(report))]


def table(report: Report, formatter: TextFormatter) -> Table:
    """The gates that are worth a row, each with its outcome in the last cell."""
    mixed, beside = phrases.two_sided(report), moves(report)
    delta = ["Δ baseline"] if beside else []
    headers = ["Gate", *(["Whose"] if mixed else []), "Value", "Cases", "Threshold", *delta, "Outcome"]
    rows = [_row(report, gate, beside, formatter, mixed=mixed) for gate in phrases.telling(report.gates)]
    return Table("The gates with their outcomes", headers, rows)


def _row(report: Report, gate: GateResult, beside: Moves, formatter: TextFormatter, *, mixed: bool) -> list[str]:
    return [
        formatter.gate(gate),
        *([phrases.WHOSE[gate.origin]] if mixed else []),
        formatter.figure(enclosed(gate)),
        formatter.figure(phrases.cases_of(report, gate)),
        formatter.figure(threshold(gate)),
        *([move_of(gate, beside)] if beside else []),
        f"{formatter.sign(kind(gate))}\u00a0{phrases.outcome(gate)}",
    ]


def kind(gate: GateResult) -> str:
    """What an outcome looks like: what fails the run looks like it."""
    if gate.blocks:
        return "failed"
    return "warning" if gate.broken and not gate.unclear else gate.outcome
