"""Parts of a report other than values: notes on the input, the likely causes, and the origin of the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import Paragraph, Table, bullets

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

NOTES, DIAGNOSIS = "Notes on the input", "Diagnosis"
_MOST = 10
_NAME, _TEXT = 80, 200


def notes(report: Report, formatter: TextFormatter, limit: int = _MOST) -> list[Block]:
    """List the notes on the input: what is unusual, where, how often."""
    lines = [
        f"{formatter.code(_place(note.file, note.line), _TEXT)}: "
        f"{formatter.text(note.message, _TEXT)}{_times(note.times)}"
        for note in report.notes[:limit]
    ]
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


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def provenance(report: Report, formatter: TextFormatter) -> list[Block]:
    """List the inputs, the run, and the settings."""
    rows = [
        [formatter.words(source.role, _NAME), formatter.code(source.path, _TEXT), formatter.code(source.sha256, _NAME)]
        for source in report.inputs
    ]
    inputs = Table("What was read", ["Input", "Path", "sha256"], rows)
    return [inputs, *_run(report, formatter), Paragraph(_settings(report, formatter))]


def _settings(report: Report, formatter: TextFormatter) -> str:
    token = formatter.code(str(report.refusal["token"]), _NAME)
    refusal = f"Refusal token {token}, {len(report.refusal['phrases'])} refusal phrases"
    if "builtin" in report.refusal:
        refusal += f", built-in refusals (version {report.refusal['builtin']})"
    return f"{refusal}; labels at k = {report.k}; rag-eval {formatter.words(report.version, _NAME)}."


def _run(report: Report, formatter: TextFormatter) -> list[Block]:
    """List the fields of run.json; the gold set's digest is compared elsewhere."""
    fields = {name: value for name, value in (report.run or {}).items() if name != "gold_sha256"}
    rows = [
        [formatter.code(name, _NAME), formatter.code(json.dumps(value, ensure_ascii=False, sort_keys=True), _TEXT)]
        for name, value in fields.items()
    ]
    return [Table("Fields of run.json", ["Run", ""], rows)] if rows else []
