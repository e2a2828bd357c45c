"""Parts of a report other than values: notes on the input, the likely causes, and the origin of the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import Paragraph, Table, bullets, table_of

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

NOTES, DIAGNOSIS = "Notes on the input", "Diagnosis"
_MOST = 10
_NAME, _TEXT = 80, 200


def notes(report: Report, formatter: TextFormatter, limit: int = _MOST) -> list[Block]:
    """List the notes on the input: what is unusual, where, how often."""
    lines = []
    for note in report.notes[:limit]:
        location = formatter.code(f"{note.file}:{note.line}" if note.line else note.file, _TEXT)
        times = f" ({note.times} times)" if note.times > 1 else ""
        lines.append(f"{location}: {formatter.text(note.message, _TEXT)}{times}")
    cut = len(report.notes) - limit
    return bullets([*lines, f"and {cut} more"] if cut > 0 else lines)


def diagnosis(report: Report, formatter: TextFormatter, *, brief: bool = False) -> list[Block]:
    """List the likely causes; unless ``brief``, also the evidence for each, and what to look at next."""
    lines = [
        formatter.strong(formatter.trusted(cause.cause))
        + ("" if brief else f" ({formatter.trusted(cause.evidence)}) {formatter.trusted(cause.next)}")
        for cause in report.diagnosis
    ]
    return bullets(lines)


def provenance(report: Report, formatter: TextFormatter) -> list[Block]:
    """List the inputs, the run without the gold set's digest, which is compared elsewhere, and the settings."""
    rows = [
        [formatter.words(source.role, _NAME), formatter.code(source.path, _TEXT), formatter.code(source.sha256, _NAME)]
        for source in report.inputs
    ]
    run = [
        [formatter.code(name, _NAME), formatter.code(json.dumps(value, ensure_ascii=False, sort_keys=True), _TEXT)]
        for name, value in (report.run or {}).items()
        if name != "gold_sha256"
    ]
    token = formatter.code(str(report.refusal["token"]), _NAME)
    refusal = f"Refusal token {token}, {len(report.refusal['phrases'])} refusal phrases"
    if "builtin" in report.refusal:
        refusal += f", built-in refusals (version {report.refusal['builtin']})"
    settings = f"{refusal}; labels at k = {report.k}; rag-eval {formatter.words(report.version, _NAME)}."
    inputs = Table("What was read", ["Input", "Path", "sha256"], rows)
    return [inputs, *table_of("Fields of run.json", ["Run", ""], run), Paragraph(settings)]
