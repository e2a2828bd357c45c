"""Blocks and sections of a report as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import Bullets, Table
from rag_eval.rendering.html.element import Markup, inline, joined, tag

if TYPE_CHECKING:
    from rag_eval.rendering.blocks import Block, Item


def laid(parts: Iterable[Block]) -> Markup:
    """The blocks of a report, one below the other."""
    return joined(_block(part) for part in parts)


def _block(part: Block) -> Markup:
    if isinstance(part, Table):
        return table(part)
    return _bullets(part.items) if isinstance(part, Bullets) else tag("p", inline(part.text))


def _bullets(items: Sequence[Item]) -> Markup:
    return tag("ul", joined(_item(item) for item in items))


def _item(item: Item) -> Markup:
    below = tag("ul", joined(tag("li", inline(line)) for line in item.below)) if item.below else Markup("")
    return tag("li", inline(item.text), below)


def table(part: Table) -> Markup:
    """A table of which each row is named by its first cell."""
    head = tag("tr", *(_header(each) for each in part.headers))
    body = joined(_row(row) for row in part.rows)
    shown = tag("table", caption(part.about), tag("thead", head), tag("tbody", body))
    return scrolled(part.about, shown)


def caption(about: str) -> Markup:
    """What a table shows, for those who do not see what stands around it."""
    return tag("caption", about, class_="aside")


def scrolled(about: str, inner: Markup) -> Markup:
    """What is wider than a small screen scrolls by itself, by the keyboard too."""
    return tag("div", inner, class_="wide", tabindex="0", role="group", aria_label=about)


def _header(text: str) -> Markup:
    return tag("th", inline(text), scope="col") if text else tag("td")


def _row(cells: Sequence[str]) -> Markup:
    first, *rest = cells
    return tag("tr", tag("th", inline(first), scope="row"), *(tag("td", inline(cell or "–")) for cell in rest))


def section(key: str, title: str, *parts: Markup) -> Markup:
    """A part of the report under a heading that it is named by; none without content."""
    inner = [part for part in parts if part]
    heading = tag("h2", title, id=f"{key}-title")
    return tag("section", joined([heading, *inner]), id=key, aria_labelledby=f"{key}-title") if inner else Markup("")


def folded(title: str, *parts: Markup, unfolded: bool = False) -> Markup:
    """What opens on a click."""
    return tag("details", tag("summary", title), joined(parts), open=unfolded)


def headed(title: str, *parts: Markup) -> Markup:
    """Parts below a smaller heading; nothing where there are none."""
    inner = [part for part in parts if part]
    return joined([tag("h3", title), *inner]) if inner else Markup("")
