"""HTML elements as strings, and the blocks of a report made of them; everything not made by :func:`tag` is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import hypertext, one_line
from rag_eval.rendering.blocks import Bullets, Figure, Table
from rag_eval.rendering.phrases import TextFormatter

if TYPE_CHECKING:
    from rag_eval.rendering.blocks import Block, ListItem

_VOID = frozenset({"meta", "input", "br", "hr"})
_CUT = 1_000
"""Characters of one string from data that are shown."""


class Markup(str):
    """HTML that :func:`tag` has made."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """Return an element; children that are no :class:`Markup` are escaped.

    Attributes are named with ``_`` for ``-`` and may end in one (``class_``); None and False leave one out, True is one
    without a value.
    """
    attribute_text = "".join([_attribute(key, value) for key, value in attributes.items()])
    inner = "".join([child if type(child) is Markup else hypertext(child) for child in children])
    return Markup(f"<{name}{attribute_text}>") if name in _VOID else Markup(f"<{name}{attribute_text}>{inner}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return f' {name}="{hypertext(shown)}"'


def joined(parts: Iterable[Markup]) -> Markup:
    """Return elements one after the other, each on a line."""
    return Markup("\n".join(part for part in parts if part))


# Marks that separate names from words in a sentence until it becomes HTML. Unicode reserves these characters for
# internal use of programs; they are removed from data.
_CODE, _TEXT, _STRONG, _SIGN, _FIGURE, _END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4", "\ufdef"
_MARKED = re.compile(f"([{_CODE}{_TEXT}{_STRONG}{_SIGN}{_FIGURE}])([^\ufdd0-\ufdef]*){_END}")
_INTERNAL = re.compile("[\ufdd0-\ufdef]")
GLYPHS = {"passed": "✓", "failed": "✗", "inconclusive": "?", "no_data": "–", "warning": "!"}
GLYPHS |= {"error": "✗", "looser": "↓", "stricter": "↑", "neutral": "="}


def inline(sentence: str) -> Markup:
    """Return a sentence of :data:`FORMATTER` with names as code, and so on; all else is text."""
    parts, at = [], 0
    for match in _MARKED.finditer(sentence):
        parts += [Markup(hypertext(sentence[at : match.start()])), _marked(match[1], match[2])]
        at = match.end()
    return Markup("".join([*parts, hypertext(sentence[at:])]))


def _marked(kind: str, text: str) -> Markup:
    if kind == _SIGN and text in GLYPHS:
        return sign(text)
    if kind == _FIGURE:
        return tag("span", text, class_="whole-figure")
    if not text:
        return tag("em", "(empty)")
    return tag({_CODE: "code", _STRONG: "strong"}.get(kind, "bdi"), text)


def sign(kind: str) -> Markup:
    """Render the sign of an outcome, as in the text next to it."""
    return tag("span", GLYPHS[kind], class_=f"sign {kind}", aria_hidden="true")


def shown(text: str) -> str:
    """Return a string from data on one line, without control and bidirectional characters, limited in length."""
    if len(text) <= _CUT and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _INTERNAL.sub("", one_line(text, _CUT))


def clean(sentence: str) -> str:
    """Return a sentence of :data:`FORMATTER` as plain text, for headings and labels."""
    return shown(_INTERNAL.sub("", sentence))


def _mark(kind: str, text: str) -> str:
    return f"{kind}{shown(text)}{_END}"


def _named(metric: str, part: str) -> str:
    return f"{_mark(_CODE, metric)} where {_mark(_CODE, part)}" if part else _mark(_CODE, metric)


FORMATTER = TextFormatter(
    named=_named,
    words=lambda text, _=0: shown(text),
    code=lambda text, _=0: _mark(_CODE, text),
    text=lambda text, _=0: _mark(_TEXT, text),
    trusted=shown,
    strong=lambda text: f"{_STRONG}{_INTERNAL.sub('', text)}{_END}",
    figure=lambda text: f"{_FIGURE}{_INTERNAL.sub('', text)}{_END}",
    sign=lambda kind: f"{_SIGN}{kind}{_END}",
)


def laid(parts: Iterable[Block]) -> Markup:
    """Return the blocks of a report, one below the other."""
    return joined(_block(part) for part in parts)


def _block(part: Block) -> Markup:
    if isinstance(part, Table):
        return table(part)
    if isinstance(part, Figure):
        return tag("pre", part.text)
    return _bullets(part.items) if isinstance(part, Bullets) else tag("p", inline(part.text))


def _bullets(items: Sequence[ListItem]) -> Markup:
    return tag("ul", joined(_item(item) for item in items))


def _item(item: ListItem) -> Markup:
    below = tag("ul", joined(tag("li", inline(line)) for line in item.below)) if item.below else Markup("")
    return tag("li", inline(item.text), below)


def table(part: Table) -> Markup:
    """Return a table in which the first cell names each row."""
    head = tag("tr", *(_header(header) for header in part.headers))
    labels = [clean(header) for header in part.headers]
    body = joined(_row(row, labels) for row in part.rows)
    about = clean(part.about)
    return scrolled(about, tag("table", caption(about), tag("thead", head), tag("tbody", body)))


def caption(about: str) -> Markup:
    """Render a table's caption for screen readers."""
    return tag("caption", about, class_="aside")


def scrolled(about: str, inner: Markup) -> Markup:
    """Wrap wide content so that it scrolls by itself, also by keyboard."""
    return tag("div", inner, class_="wide", tabindex="0", role="group", aria_label=about)


def _header(text: str) -> Markup:
    return tag("th", inline(text), scope="col") if text else tag("td")


def _row(cells: Sequence[str], labels: Sequence[str]) -> Markup:
    """Return a row; on a narrow screen it is a card, with the label of each cell before it."""
    first, *rest = cells
    shown = (
        tag("td", inline(cell or "–"), data_label=label or None) for cell, label in zip(rest, labels[1:], strict=True)
    )
    return tag("tr", tag("th", inline(first), scope="row"), *shown)


def section(key: str, title: str, *parts: Markup) -> Markup:
    """Return a part of the report under its heading; empty without content."""
    inner = [part for part in parts if part]
    heading = tag("h2", title, id=f"{key}-title")
    return tag("section", joined([heading, *inner]), id=key, aria_labelledby=f"{key}-title") if inner else Markup("")


def folded(title: str, *parts: Markup, unfolded: bool = False) -> Markup:
    """Wrap content that opens on a click."""
    return tag("details", tag("summary", title), joined(parts), open=unfolded)


def headed(title: str, *parts: Markup) -> Markup:
    """Return parts below a smaller heading; empty without parts."""
    inner = [part for part in parts if part]
    return joined([tag("h3", title), *inner]) if inner else Markup("")
