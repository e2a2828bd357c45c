"""RENDERERS: every form of a report by its name; the command line's choices are these names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report

# A renderer is a module with ``render(report) -> str``, loaded when it is asked for; the second entry is the file that
# ``--out`` writes.
RENDERERS = {
    "table": ("rag_eval.rendering.table", "report.txt"),
    "markdown": ("rag_eval.rendering.markdown", "report.md"),
    "html": ("rag_eval.rendering.html", "report.html"),
    "json": ("rag_eval.rendering.json_file", "report.json"),
    "junit": ("rag_eval.rendering.junit", "junit.xml"),
    "sarif": ("rag_eval.rendering.sarif", "report.sarif"),
    "csv": ("rag_eval.rendering.csv_file", "questions.csv"),
}


def render(report: Report, form: str, **options: bool) -> str:
    """Return ``report`` in one of :data:`RENDERERS`, ending with a line feed; ``options`` are those of its module."""
    text: str = import_module(RENDERERS[form][0]).render(report, **options)
    return text


def files(report: Report) -> dict[str, str]:
    """Return the report in every form by the name of its file, with everything that each form can show."""
    return {
        file: render(report, form, **({"verbose": True} if form == "table" else {}))
        for form, (_, file) in RENDERERS.items()
    }
