"""Markdown for what every part of a report has: tables, names, labels, folds."""

from __future__ import annotations

import re

from rag_eval.labels import GOOD, MEANING
from rag_eval.renderers.words import Voice
from rag_eval.safe import markdown as safe
from rag_eval.safe import prose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SLICE, _SAID, _OURS = 60, 200, 500
_METRIC, _CUTOFF = re.compile("[A-Za-z][A-Za-z0-9_.]*(@[a-z]{0,4}[0-9]+)?"), re.compile("(?<=[a-z])@(?=[0-9])")
_PADDING = 2  # of a header
_RANGE, _NUMBER = re.compile("–(?=[0-9])"), re.compile(" (?![(])")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as tabulate's ``github`` writes it, its empty cells as a dash.

    Not by tabulate: that takes longer to load than a small run to score, and pads by another measure where a package
    for wide characters happens to be installed. The tests hold both to the same text.
    """
    filled = [[(cell or "–").strip() for cell in row] for row in rows]
    widths = [max([len(head) + _PADDING, *map(len, cells)]) for head, *cells in zip(headers, *filled, strict=True)]
    rule = "|".join("-" * (width + 2) for width in widths)
    first, *others = (_row(cells, widths) for cells in (headers, *filled))
    return "\n".join([first, f"|{rule}|", *others])


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join([cell.ljust(width) for cell, width in zip(cells, widths, strict=True)])} |"


def name(metric: str, part: str = "") -> str:
    """A metric's name as code, with the slice that it is about; its ``@`` is no mention, and the name can be copied."""
    code = f"`{metric}`" if _METRIC.fullmatch(metric) else safe(metric)
    return f"{code} where {safe(part, _SLICE)}" if part else code


def glued(text: str) -> str:
    """A cell that breaks before brackets alone: numbers are read in one piece."""
    return _RANGE.sub("–\u2060", _NUMBER.sub("\u00a0", text))


VOICE = Voice(name, lambda text: prose(text, _SAID), lambda text: safe(text, _SAID))


def label(text: str | None) -> str:
    """A label with the sign of whether it is a good one."""
    return f"{'✅' if text in GOOD else '❌'} {text if text in MEANING else safe(text)}" if text else "–"


def escaped(text: str) -> str:
    """Our own sentences, without code in them: names of metrics hold underscores and ``@``.

    A report may come from elsewhere: what can be none of our sentences is code.
    """
    if prose(_CUTOFF.sub("", text), _OURS) == _CUTOFF.sub("", text).replace("_", "\\_"):
        return text.replace("_", "\\_").replace("@", "@\u200b")
    return safe(text, _OURS)


def folded(title: str, body: str) -> str:
    """What opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {line}" for line in lines)
