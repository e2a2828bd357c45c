"""RENDERERS: every form of a report by its name, which are the choices of the command line."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rag_eval.analysis.failed_cases import CaseDetails
    from rag_eval.analysis.report import Report

    Details = Mapping[tuple[str, str | None], CaseDetails]
    """What the HTML report unfolds of a case, by its qid and run."""

# A renderer is a module with ``render(report) -> str``, loaded at first use; the second entry is the file that
# ``--out`` writes.
RENDERERS = {
    "table": ("rag_eval.rendering.table", "report.txt"),
    "markdown": ("rag_eval.rendering.markdown", "report.md"),
    "html": ("rag_eval.rendering.html", "report.html"),
    "json": ("rag_eval.rendering.json_file", "report.json"),
    "junit": ("rag_eval.rendering.junit", "junit.xml"),
    "sarif": ("rag_eval.rendering.sarif", "report.sarif"),
    "codequality": ("rag_eval.rendering.codequality", "gl-code-quality-report.json"),
    "csv": ("rag_eval.rendering.csv_file", "questions.csv"),
}


def render(report: Report, form: str, **options: Any) -> str:
    """Return ``report`` in one of :data:`RENDERERS`, ending with a line feed; ``options`` are those of its module."""
    text: str = import_module(RENDERERS[form][0]).render(report, **options)
    return text


def files(report: Report, details: Details | None = None) -> Iterator[tuple[str, str]]:
    """Yield the name and text of a file for every form of the report, with everything that each form can show."""
    options: dict[str, dict[str, Any]] = {"table": {"verbose": True}, "html": {"details": details}}
    return ((file, render(report, form, **options.get(form, {}))) for form, (_, file) in RENDERERS.items())
