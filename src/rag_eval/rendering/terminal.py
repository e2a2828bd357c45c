"""Plain text for a terminal: tables and paragraphs of at most a hundred columns, and colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate
from wcwidth import wcswidth

from rag_eval.common.escaping import log_line
from rag_eval.rendering.blocks import Figure, Paragraph, Table

if TYPE_CHECKING:
    from rag_eval.rendering.blocks import Block, PageSection

WIDTH = 100
_GAP, _NARROWEST = 2, 12
_PADDING = "  "  # tabulate sets it for a header
_RED, _GREEN, _YELLOW = "31", "32", "33"
_COLOURS = {"FAILED": _RED, "failed": _RED, "error": _RED, "PASSED": _GREEN, "passed": _GREEN}
_COLOURS |= {"inconclusive": _YELLOW, "warning": _YELLOW, "no data": _YELLOW}
_FIRST = re.compile(
    "^(FAILED|PASSED)|(?<=^- )(error|warning)(?= )|(?<=  )(failed|passed|inconclusive|no data)(?=$| \\()", re.MULTILINE
)


def columns(text: str) -> int:
    """Return the number of terminal columns of a text: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def shortened(text: str, limit: int) -> str:
    """Return ``text`` cut to ``limit`` columns, with ``…`` if anything was cut."""
    if columns(text) <= limit:
        return text
    while columns(text) >= limit:
        text = text[:-1]
    return f"{text}…"


def wrapped(text: str, indent: str = "", first: str | None = None, width: int = WIDTH) -> str:
    """Break a paragraph at its spaces; ``first`` begins its first line, ``indent`` the others."""
    lines = [indent if first is None else first]
    for word in text.split():
        blank = "" if lines[-1] in (indent, first) else " "
        if blank and columns(lines[-1]) + 1 + columns(word) > width:
            lines.append(indent)
            blank = ""
        lines[-1] += blank + word
    return "\n".join(lines)


def grid(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int = WIDTH) -> str:
    """Return a table of at most ``width`` columns, if that leaves twelve for each column: the widest wrap."""
    cells = [[log_line(cell).strip() for cell in row] for row in rows]
    padded = [f"{title}{_PADDING}" for title in headers]
    widths = [max(map(columns, column)) for column in zip(padded, *cells, strict=True)]
    room = width - _GAP * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    folded = [[_folded(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in cells]
    titles = [_folded(title, limit - len(_PADDING)) for title, limit in zip(headers, widths, strict=True)]
    text = tabulate(folded, titles, tablefmt="simple", disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _folded(cell: str, limit: int) -> str:
    """Break a cell at its spaces, otherwise anywhere."""
    if columns(cell) <= limit:
        return cell
    words = []
    for word in cell.split():
        while columns(word) > limit:
            head = shortened(word, limit)[:-1]
            words.append(head)
            word = word[len(head) :]
        words.append(word)
    return wrapped(" ".join(words), width=limit)


def page(parts: Iterable[str]) -> str:
    """Join the parts of a page with an empty line between them, each line safe to print."""
    text = "\n\n".join(part for part in parts if part)
    return "\n".join(log_line(line) for line in text.split("\n")) + "\n"


def laid(parts: Iterable[Block]) -> str:
    """Return the blocks of a report."""
    return "\n\n".join(_block(part) for part in parts)


def titled(title: str, parts: Sequence[Block]) -> str:
    """Return blocks under a title; empty without blocks."""
    return f"{title}:\n{laid(parts)}" if parts else ""


def _block(part: Block) -> str:
    if isinstance(part, Table):
        return grid(part.headers, part.rows)
    if isinstance(part, Paragraph):
        return wrapped(part.text)
    if isinstance(part, Figure):
        return part.text
    return "\n".join(
        line
        for item in part.items
        for line in (wrapped(item.text, "  ", "- "), *(wrapped(below, "    ", "  ") for below in item.below))
    )


def written(sections: Iterable[PageSection]) -> str:
    """Return a page of sections."""
    parts: list[str] = []
    for section in sections:
        parts += [f"{section.title}\n{'=' * len(section.title)}" if section.title else "", laid(section.blocks)]
    return page(parts)


def coloured(text: str) -> str:
    """Return a page with its verdict and outcomes in colour."""
    return _FIRST.sub(lambda match: f"\x1b[1;{_COLOURS[match[0]]}m{match[0]}\x1b[0m", text)
