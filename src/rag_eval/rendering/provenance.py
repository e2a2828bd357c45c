"""Where a report comes from: its inputs by digest, what run.json says, and the settings that scores hang on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import Paragraph, Table

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

_NAME, _PATH, _VALUE = 80, 200, 200


def provenance(report: Report, formatter: TextFormatter) -> list[Block]:
    """The inputs, the run, the settings."""
    rows = [
        [formatter.said(each.role, _NAME), formatter.code(each.path, _PATH), formatter.code(each.sha256, _NAME)]
        for each in report.inputs
    ]
    inputs = Table("What was read", ["Input", "Path", "sha256"], rows)
    return [inputs, *_run(report, formatter), Paragraph(_settings(report, formatter))]


def _settings(report: Report, formatter: TextFormatter) -> str:
    token = formatter.code(str(report.refusal["token"]), _NAME)
    refusal = f"Refusal token {token}, {len(report.refusal['phrases'])} refusal phrases"
    if "builtin" in report.refusal:
        refusal += f", built-in refusals (version {report.refusal['builtin']})"
    return f"{refusal}; labels at k = {report.k}; rag-eval {formatter.said(report.version, _NAME)}."


def _run(report: Report, formatter: TextFormatter) -> list[Block]:
    """What run.json says, a row a field; the digest of the gold set has been compared and says no more."""
    said = {name: value for name, value in (report.run or {}).items() if name != "gold_sha256"}
    rows = [
        [formatter.code(name, _NAME), formatter.code(json.dumps(value, ensure_ascii=False, sort_keys=True), _VALUE)]
        for name, value in said.items()
    ]
    return [Table("What run.json says", ["Run", ""], rows)] if rows else []
