"""The report as a Code Quality report of GitLab: failed gates, findings and wrong answers on their lines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rag_eval.common.escaping import one_line
from rag_eval.rendering.annotations import all_of, in_repository
from rag_eval.rendering.data_text import json_text

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering.annotations import Pointer

_LONGEST = 1000
_SEVERITY = {"error": "critical", "warning": "minor"}


def render(report: Report) -> str:
    """Return a list of issues. GitLab matches them by their fingerprints, which must differ.

    A wrong answer is major in a run that fails, and info in a run that passes. It points at its gold item, which is in
    the repository; GitLab links there.
    """
    seen: Counter[str] = Counter()
    return json_text([_issue(pointer, seen, report) for pointer in all_of(report, in_gold=True)])


def _issue(pointer: Pointer, seen: Counter[str], report: Report) -> dict[str, Any]:
    file, line = in_repository(pointer.file, pointer.line, report.gates_file)
    seen[pointer.fingerprint] += 1
    number = seen[pointer.fingerprint]
    severity = _SEVERITY[pointer.level]
    if pointer.kind == "question":
        severity = "info" if report.passed else "major"
    return {
        "check_name": pointer.rule,
        "description": one_line(pointer.text, _LONGEST),
        "fingerprint": pointer.fingerprint + (f"-{number}" if number > 1 else ""),
        "severity": severity,
        "location": {"path": one_line(file, _LONGEST), "lines": {"begin": line or 1}},
    }
