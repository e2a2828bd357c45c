"""The document model of all reports: paragraphs, lists, tables and sections, and the formatting of texts in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.common.escaping import one_line

if TYPE_CHECKING:
    from rag_eval.gates.policy import GateResult


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


Block = Paragraph | Bullets | Table


class Section(NamedTuple):
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


def _unchanged(text: str) -> str:
    return text


def _level(kind: str) -> str:
    return kind if kind in ("error", "warning") else ""


class TextFormatter(NamedTuple):
    """Formatting of names and untrusted input, so that a rendering never interprets them.

    ``words`` formats words with names in them, ``code`` a name, ``text`` a text; all three accept a maximum number of
    characters. ``trusted`` formats a sentence of this program in a report that may come from elsewhere, ``figure``
    numbers that must not be split, ``sign`` the symbol of an outcome, a finding or a change of the policy.
    ``whole`` is where everything is that the text leaves out.
    """

    named: Callable[[str, str], str]  # metric, slice
    words: Callable[..., str]
    code: Callable[..., str]
    text: Callable[..., str] = one_line
    trusted: Callable[[str], str] = _unchanged
    strong: Callable[[str], str] = _unchanged
    figure: Callable[[str], str] = _unchanged
    sign: Callable[[str], str] = _level
    whole: str = "report.json"

    def gate(self, gate: GateResult) -> str:
        """Return the name of a gate."""
        return self.named(gate.name, gate.slice)


def _plain_name(metric: str, part: str) -> str:
    return f"{metric} where {one_line(part)}" if part else metric


PLAIN = TextFormatter(_plain_name, one_line, one_line, whole="--format json")
