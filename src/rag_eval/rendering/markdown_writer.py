"""Markdown for the elements of a report: tables, lists, names, signs, folds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import markdown as safe
from rag_eval.common.escaping import prose, untabled
from rag_eval.rendering.blocks import Bullets, Figure, Table
from rag_eval.rendering.phrases import TextFormatter

if TYPE_CHECKING:
    from rag_eval.rendering.blocks import Block, PageSection

SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "🟡", "no_data": "⬜", "warning": "⚠️"}
SIGNS |= {"error": "❌", "looser": "🔓", "stricter": "🔒", "neutral": "➖"}
_SLICE, _SAID, _OURS = 60, 200, 1_000
_METRIC, _CUTOFF = re.compile("[A-Za-z][A-Za-z0-9_.]*(@[a-z]{0,4}[0-9]+)?"), re.compile("(?<=[a-z])@(?=[0-9k])")
_PADDING = 2  # of a header
_RANGE, _NUMBER = re.compile("–(?=[0-9])"), re.compile(" (?![(])")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as tabulate's ``github`` writes it, its empty cells as a dash.

    Tabulate is not used: importing it takes longer than scoring a small run, and its padding changes if a package for
    wide characters is installed. A test compares both.
    """
    filled = [[(cell or "–").strip() for cell in row] for row in rows]
    widths = [max([len(head) + _PADDING, *map(len, cells)]) for head, *cells in zip(headers, *filled, strict=True)]
    rule = "|".join("-" * (width + 2) for width in widths)
    first, *others = (
        f"| {' | '.join([cell.ljust(width) for cell, width in zip(cells, widths, strict=True)])} |"
        for cells in (headers, *filled)
    )
    return "\n".join([first, f"|{rule}|", *others])


def name(metric: str, part: str = "") -> str:
    """Return a metric's name as code, with its slice; in code ``@`` is no mention, and the name can be copied."""
    code = f"`{metric}`" if _METRIC.fullmatch(metric) else safe(metric)
    return f"{code} where {safe(part, _SLICE)}" if part else code


def glued(text: str) -> str:
    """Return a cell that breaks only before brackets, so that numbers stay on one line."""
    return _RANGE.sub("–\u2060", _NUMBER.sub("\u00a0", text))


def escaped(text: str) -> str:
    """Escape a sentence of this program, without code in it: names of metrics contain underscores and ``@``.

    A report may come from elsewhere: text that cannot be such a sentence becomes code.
    """
    if prose(_CUTOFF.sub("", text), _OURS) == _CUTOFF.sub("", text).replace("_", "\\_"):
        return text.replace("_", "\\_").replace("@", "@\u200b")
    return safe(text, _OURS)


def folded(title: str, body: str) -> str:
    """Wrap content that opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def nested(bullets: Bullets) -> str:
    """Return a list with lists below its lines."""
    below = (
        line for item in bullets.items for line in [f"- {item.text}", *(f"  - {sub_line}" for sub_line in item.below)]
    )
    return "\n".join(below)


def laid(parts: Iterable[Block]) -> str:
    """Return the blocks of a report."""
    return "\n\n".join(_block(part) for part in parts)


def titled(title: str, parts: Sequence[Block]) -> str:
    """Return blocks under a title; empty without blocks."""
    return f"**{title}**\n\n{laid(parts)}" if parts else ""


def _block(part: Block) -> str:
    if isinstance(part, Table):
        return table(part.headers, part.rows)
    if isinstance(part, Figure):
        return f"```text\n{part.text}\n```"
    return untabled(nested(part) if isinstance(part, Bullets) else part.text)


def written(sections: Iterable[PageSection]) -> str:
    """Return the text of sections, the first one with the title of the page."""
    parts: list[str] = []
    for level, section in enumerate(sections):
        parts += [f"{'###' if level else '##'} {section.title}" if section.title else "", laid(section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


FORMATTER = TextFormatter(
    named=name,
    words=lambda text, limit=_SAID: prose(text, limit),
    code=lambda text, limit=_SAID: safe(text, limit),
    text=lambda text, limit=_SAID: safe(text, limit),
    trusted=escaped,
    strong=lambda text: f"**{text}**",
    figure=glued,
    sign=SIGNS.__getitem__,
)
