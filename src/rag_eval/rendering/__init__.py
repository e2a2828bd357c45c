"""RENDERERS: every form of a report by its name, which are the choices of the command line; other pages of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from rag_eval.analysis import Report
from rag_eval.rendering.document import Section, TextFormatter

# The first entry is a module with a function of a report, loaded at first use; the second is the file that ``--out``
# writes.
RENDERERS = {
    "table": ("terminal:render", "report.txt"),
    "markdown": ("markdown:render", "report.md"),
    "html": ("html:render", "report.html"),
    "json": ("data_formats:render_json", "report.json"),
    "junit": ("ci_formats:render_junit", "junit.xml"),
    "sarif": ("ci_formats:render_sarif", "report.sarif"),
    "codequality": ("ci_formats:render_code_quality", "gl-code-quality-report.json"),
    "csv": ("data_formats:render_csv", "questions.csv"),
}


def render(report: Report, form: str, **options: Any) -> str:
    """Return ``report`` in one of :data:`RENDERERS`, ending with a line feed; ``options`` are those of its function."""
    module, _, function = RENDERERS[form][0].partition(":")
    text: str = getattr(import_module(f"{__name__}.{module}"), function)(report, **options)
    return text


def files(report: Report, **of_html: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and text of a file for every form of the report, with everything that each form can show."""
    options = {"table": {"verbose": True}, "html": of_html}
    return ((file, render(report, form, **options.get(form, {}))) for form, (_, file) in RENDERERS.items())


def write_page(form: str, sections: Callable[[TextFormatter], Iterable[Section]]) -> str:
    """Return a page of sections as ``table`` or ``markdown``; they escape names and untrusted input for it."""
    writer = import_module(f"{__name__}.{RENDERERS[form][0].partition(':')[0]}")
    page: str = writer.write_page(sections(writer.FORMATTER))
    return page
