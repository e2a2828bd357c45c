"""Building blocks of a page in any format: paragraphs, lists, tables and sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Paragraph(NamedTuple):
    """Sentences."""

    text: str


class Item(NamedTuple):
    """A line of a list, with lines below it."""

    text: str
    below: Sequence[str] = ()


class Bullets(NamedTuple):
    """A list."""

    items: Sequence[Item]


class Table(NamedTuple):
    """Headers and rows of equally many cells; the first cell names its row. ``about`` is its description."""

    about: str
    headers: Sequence[str]
    rows: Iterable[Sequence[str]]


Block = Paragraph | Bullets | Table


class Section(NamedTuple):
    """A title, sentences, a table below them, and figures of plain text; each may be empty.

    Figures contain no untrusted input: they are written unchanged, in Markdown between fences.
    """

    title: str
    lines: Sequence[str] = ()
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figures: Sequence[str] = ()


def listed(lines: Iterable[str]) -> Bullets:
    """Return a list of lines without nested ones."""
    return Bullets([Item(line) for line in lines])


def paragraphs(*texts: str) -> list[Block]:
    """Return a paragraph of each text that is not empty."""
    return [Paragraph(text) for text in texts if text]


def more(cut: int, where: str) -> list[Block]:
    """State how many entries are left out, and where to find them all."""
    return paragraphs(f"… and {cut} more; {where} has all.") if cut > 0 else []
