"""Building blocks of a page in any format: paragraphs, lists, tables and sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Paragraph(NamedTuple):
    """Sentences."""

    text: str


class ListItem(NamedTuple):
    """A line of a list, with lines below it."""

    text: str
    below: Sequence[str] = ()


class Bullets(NamedTuple):
    """A list."""

    items: Sequence[ListItem]


class Table(NamedTuple):
    """Headers and rows of equally many cells; the first cell names its row. ``about`` is its description."""

    about: str
    headers: Sequence[str]
    rows: Iterable[Sequence[str]]


class Figure(NamedTuple):
    """A drawing of characters. It contains no untrusted input: it is written unchanged, in Markdown between fences."""

    text: str


Block = Paragraph | Bullets | Table | Figure


class PageSection(NamedTuple):
    """A title and the blocks below it."""

    title: str
    blocks: Sequence[Block] = ()


def bullets(lines: Sequence[str]) -> list[Block]:
    """Return a list of lines without nested ones, or nothing without lines."""
    return [Bullets([ListItem(line) for line in lines])] if lines else []


def remarks(lines: Sequence[str]) -> list[Block]:
    """Return several lines as a list, one as a paragraph."""
    return bullets(lines) if len(lines) > 1 else paragraphs(*lines)


def paragraphs(*texts: str) -> list[Block]:
    """Return a paragraph of each text that is not empty."""
    return [Paragraph(text) for text in texts if text]


def table_of(about: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Block]:
    """Return a table, or nothing without rows."""
    return [Table(about, headers, rows)] if rows else []


def more(cut: int, where: str) -> list[Block]:
    """State how many entries are left out, and where to find them all."""
    return paragraphs(f"… and {cut} more; {where} has all.") if cut > 0 else []
