"""Repeated tries of systems as table, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval import __version__
from rag_eval.common.escaping import spreadsheet
from rag_eval.rendering import json_values
from rag_eval.rendering.comparison import FORMAT
from rag_eval.rendering.section_writer import MARKDOWN, PLAIN, Section, marked, plain

if TYPE_CHECKING:
    from rag_eval.analysis.repeats import Estimate, Repeats, Tried
    from rag_eval.rendering.section_writer import SectionFormatter

_FLAKY = 50
_NAME, _TEXT = 40, 60


def render(systems: Sequence[Repeats], form: str) -> str:
    """The systems as ``table``, ``markdown``, ``html``, ``json`` or ``csv``, ending with a line feed."""
    if form == "json":
        found = [{**json_values.plain(one), "flaky": [each.qid for each in one.flaky]} for one in systems]
        told = {"format": FORMAT, "kind": "repeats", "version": __version__, "systems": found}
        return json_values.json_text(told, allow_nan=False)
    if form == "csv":
        return _csv(systems)
    if form == "html":
        from rag_eval.rendering.html.runs import SECTION_FORMATTER, of_sections

        parts = (part for one in systems for part in _sections(one, SECTION_FORMATTER))
        return of_sections([Section("Repeated tries"), *parts], __version__)
    sections = (marked, MARKDOWN) if form == "markdown" else (plain, PLAIN)
    return sections[0](part for one in systems for part in _sections(one, sections[1]))


def _csv(systems: Sequence[Repeats]) -> str:
    """A row a system and question."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["system", "qid", "question", "passes", "tries", "labels"])
    for one in systems:
        for each in one.questions:
            texts = (spreadsheet(text) for text in (one.name, each.qid, each.question))
            writer.writerow([*texts, each.passes, len(each.labels), spreadsheet(" ".join(each.labels))])
    return out.getvalue()


def _sections(found: Repeats, formatter: SectionFormatter) -> Iterator[Section]:
    tries, flaky = len(found.runs), found.flaky
    always, never = (sum(one.passes == of for one in found.questions) for of in (tries, 0))
    counts = f"{always} pass in all {tries} tries, {len(flaky)} in some, {never} in none."
    rows = [[str(one.k), _estimate(one.every), _estimate(one.some)] for one in found.at]
    title = f"{formatter.name(found.name, _NAME)}: {len(found.questions)} questions, {tries} tries each"
    yield Section(title, [counts], ["k", "pass^k: all of k pass", "pass@k: one of k passes"], rows)
    if flaky:
        lines = (
            [f"The {_FLAKY} closest to a coin's throw are shown; --format json has all."] if len(flaky) > _FLAKY else []
        )
        yield Section("Flaky questions", lines, ["question", "passes", "labels", "text"], _rows(flaky, formatter))


def _rows(flaky: Sequence[Tried], formatter: SectionFormatter) -> list[list[str]]:
    return [
        [
            formatter.name(one.qid, _NAME),
            f"{one.passes} of {len(one.labels)}",
            formatter.sentence(", ".join(sorted(set(one.labels))), _TEXT),
            formatter.name(one.question, _TEXT),
        ]
        for one in flaky[:_FLAKY]
    ]


def _estimate(one: Estimate) -> str:
    ends = ("–" if end is None else f"{end:.3f}" for end in (one.low, one.high))
    return f"{one.value:.3f} [{', '.join(ends)}]"
