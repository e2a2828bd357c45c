"""Sections of sentences and tables as plain text or as Markdown; what is said of data goes through a voice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tabulate import tabulate

from rag_eval.common.escaping import markdown, one_line, prose, untabled
from rag_eval.rendering.terminal import grid, page, wrapped


class SectionFormatter(NamedTuple):
    """How strings from data are said: ``name`` for a name or a text, ``sentence`` for words with names in them."""

    name: Callable[[str, int], str]
    sentence: Callable[[str, int], str]


PLAIN = SectionFormatter(one_line, one_line)
MARKDOWN = SectionFormatter(markdown, prose)


class Section(NamedTuple):
    """A title, sentences, a table below them, and figures of plain text; each may be empty.

    Figures hold nothing from data: they stand as they are, in Markdown between fences.
    """

    title: str
    lines: Sequence[str] = ()
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figures: Sequence[str] = ()


def plain(sections: Iterable[Section]) -> str:
    """The sections for a terminal."""
    parts = (
        part
        for one in sections
        for part in (
            _heading(one),
            "\n".join(map(wrapped, one.lines)),
            grid(one.headers, one.rows) if one.rows else "",
            *one.figures,
        )
    )
    return page(parts)


def marked(sections: Iterable[Section]) -> str:
    """The sections as Markdown; a section's lines become a list where there are several."""
    parts = []
    for level, one in enumerate(sections):
        lines = "\n".join(f"- {line}" for line in one.lines) if len(one.lines) > 1 else "".join(one.lines)
        title = f"{'###' if level else '##'} {one.title}" if one.title else ""
        parts += [title, untabled(lines), _table(one), *(f"```text\n{figure}\n```" for figure in one.figures)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(section: Section) -> str:
    return f"{section.title}\n{'=' * len(section.title)}" if section.title else ""


def _table(section: Section) -> str:
    return tabulate(section.rows, section.headers, "pipe", disable_numparse=True) if section.rows else ""
