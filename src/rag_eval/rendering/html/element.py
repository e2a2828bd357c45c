"""HTML elements as strings, the blocks of a report made of them, and the page around it.

Everything not made by :func:`tag` is escaped. A page is one self-contained file that makes no network requests and runs
only its own script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat, zip_longest
from pkgutil import get_data

from rag_eval.common.escaping import hypertext, one_line
from rag_eval.rendering.document import Block, Paragraph, Section, Table, TextFormatter

_VOID = frozenset({"meta", "input", "br", "hr"})
_CUT = 1_000
"""Characters of one string from data that are shown."""


class Markup(str):
    """HTML that :func:`tag` has made."""

    __slots__ = ()


NOTHING = Markup("")


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """Return an element; children that are no :class:`Markup` are escaped.

    Attributes are named with ``_`` for ``-`` and may end in one (``class_``); None and False leave one out, True is one
    without a value.
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        opening += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
            opening += f'="{hypertext(shown)}"'
    inner = "".join([child if type(child) is Markup else hypertext(child) for child in children])
    return Markup(f"<{opening}>") if name in _VOID else Markup(f"<{opening}>{inner}</{name}>")


def join(parts: Iterable[Markup]) -> Markup:
    """Return elements one after the other, each on a line."""
    return Markup("\n".join(part for part in parts if part))


# Marks that separate names from words in a sentence until it becomes HTML. Unicode reserves these characters for
# internal use of programs; they are removed from data.
_CODE, _TEXT, _STRONG, _SIGN, _FIGURE, _END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4", "\ufdef"
_MARKED = re.compile(f"([{_CODE}{_TEXT}{_STRONG}{_SIGN}{_FIGURE}])([^\ufdd0-\ufdef]*){_END}")
_INTERNAL = re.compile("[\ufdd0-\ufdef]")
_GLYPHS = {"passed": "✓", "failed": "✗", "inconclusive": "?", "no_data": "–", "warning": "!"}
_GLYPHS |= {"error": "✗", "looser": "↓", "stricter": "↑", "neutral": "="}


def inline(sentence: str) -> Markup:
    """Return a sentence of :data:`FORMATTER` with names as code, and so on; all else is text."""
    parts, at = [], 0
    for match in _MARKED.finditer(sentence):
        parts.append(hypertext(sentence[at : match.start()]))
        at, (kind, text) = match.end(), match.groups()
        if kind == _SIGN and text in _GLYPHS:
            parts.append(sign(text))
        elif kind == _FIGURE:
            parts.append(tag("span", text, class_="nowrap"))
        elif not text:
            parts.append(tag("em", "(empty)"))
        else:
            parts.append(tag({_CODE: "code", _STRONG: "strong"}.get(kind, "bdi"), text))
    return Markup("".join([*parts, hypertext(sentence[at:])]))


def sign(kind: str) -> Markup:
    """Render the sign of an outcome, as in the text next to it."""
    return tag("span", _GLYPHS[kind], class_=f"sign {kind}", aria_hidden="true")


def visible(text: str) -> str:
    """Return a string from data on one line, without control and bidirectional characters, limited in length."""
    if len(text) <= _CUT and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _INTERNAL.sub("", one_line(text, _CUT))


def plain_text(sentence: str) -> str:
    """Return a sentence of :data:`FORMATTER` as plain text, for headings and labels."""
    return visible(_INTERNAL.sub("", sentence))


def _mark(kind: str, text: str) -> str:
    return f"{kind}{visible(text)}{_END}"


def _named(metric: str, part: str) -> str:
    return f"{_mark(_CODE, metric)} where {_mark(_CODE, part)}" if part else _mark(_CODE, metric)


FORMATTER = TextFormatter(
    named=_named,
    words=lambda text, _=0: visible(text),
    code=lambda text, _=0: _mark(_CODE, text),
    text=lambda text, _=0: _mark(_TEXT, text),
    trusted=visible,
    strong=lambda text: f"{_STRONG}{_INTERNAL.sub('', text)}{_END}",
    figure=lambda text: f"{_FIGURE}{_INTERNAL.sub('', text)}{_END}",
    sign=lambda kind: f"{_SIGN}{kind}{_END}",
)


def write_blocks(blocks: Iterable[Block]) -> Markup:
    """Return the blocks of a report, one below the other."""
    parts = []
    for block in blocks:
        if isinstance(block, Table):
            parts.append(table(block))
        elif isinstance(block, Paragraph):
            parts.append(tag("p", inline(block.text)))
        else:
            lines = []
            for item in block.items:
                below = tag("ul", join(tag("li", inline(line)) for line in item.below)) if item.below else NOTHING
                lines.append(tag("li", inline(item.text), below))
            parts.append(tag("ul", join(lines)))
    return join(parts)


def table(block: Table, classes: Iterable[Sequence[str | None]] = repeat(()), kind: str | None = None) -> Markup:
    """Return a table in which the first cell names each row; on a narrow screen rows are cards with labelled cells.

    ``classes`` are those of the cells of each row, ``kind`` is the class of the table.
    """
    headers = (tag("th", inline(header), scope="col") if header else tag("td") for header in block.headers)
    labels = [plain_text(header) or None for header in block.headers[1:]]
    rows = []
    for (first, *rest), row_classes in zip(block.rows, classes, strict=False):
        cells = (
            tag("td", inline(cell or "–"), class_=name, data_label=label)
            for cell, label, name in zip_longest(rest, labels, row_classes)
        )
        rows.append(tag("tr", tag("th", inline(first), scope="row"), *cells))
    about, head = plain_text(block.about), tag("thead", tag("tr", *headers))
    return scrolled(about, tag("table", caption(about), head, tag("tbody", join(rows)), class_=kind))


def caption(about: str) -> Markup:
    """Render a table's caption for screen readers."""
    return tag("caption", about, class_="visually-hidden")


def scrolled(about: str, inner: Markup) -> Markup:
    """Wrap wide content so that it scrolls by itself, also by keyboard."""
    return tag("div", inner, class_="wide", tabindex="0", role="group", aria_label=about)


def folded(title: str, *parts: Markup, unfolded: bool = False) -> Markup:
    """Wrap content that opens on a click."""
    return tag("details", tag("summary", title), join(parts), open=unfolded)


def write_page(sections: Iterable[Section], version: str, plots: Markup = NOTHING) -> str:
    """Return a page with the first section at its top, and ``plots`` in a section at its end."""
    first, *rest = sections
    title = plain_text(first.title)
    header = tag("div", tag("h1", title), tag("div", write_blocks(first.blocks), class_="verdict"), class_="head")
    parts = {f"part-{at}": (plain_text(part.title), write_blocks(part.blocks)) for at, part in enumerate(rest)}
    return page(title, visible(version), header, parts | {"plots": ("Plots", plots)})


def page(title: str, version: str, header: Markup, parts: Mapping[str, tuple[str, Markup]]) -> str:
    """Return the whole document; ``parts`` are (title, content) by id, and those without content are left out."""
    links, sections = [], []
    for key, (name, content) in parts.items():
        if content:
            links.append(tag("li", tag("a", name, href=f"#{key}")))
            inner = join([tag("h2", name, id=f"{key}-title"), content])
            sections.append(tag("section", inner, id=key, aria_labelledby=f"{key}-title"))
    body = [
        tag("a", "Skip to the report", class_="skip", href="#report"),
        tag("header", header),
        tag("nav", tag("ul", join(links)), aria_label="Parts of the report"),
        tag("main", join(sections), id="report", tabindex="-1"),
    ]
    return document(title, version, body, "script.js")


def document(title: str, version: str, body: Sequence[Markup], script: str) -> str:
    """Return the whole document with the style of reports, a footer and one packaged script."""
    sources = f"style-src '{_digest('style.css')}'; script-src '{_digest(script)}'"
    policy = (  # nothing is loaded, sent or embedded; only this file's styles and scripts run, by digest
        f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'; "
        "connect-src 'none'; img-src 'none'; object-src 'none'; frame-src 'none'"
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"rag-eval {version}"),
        tag("title", title),
        _raw("style", "style.css"),
    ]
    about = f"Written by rag-eval {version}. This file is self-contained: it makes no network requests."
    parts = [*body, tag("footer", tag("p", about)), _raw("script", script)]
    inner = join([tag("head", join(head)), tag("body", join(parts))])
    return f"<!DOCTYPE html>\n{tag('html', inner, lang='en')}\n"


@cache
def _digest(file: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_packaged(file).encode()).digest()).decode()}"


def _raw(name: str, file: str) -> Markup:
    """Return an element whose text is not escaped: it is packaged, and the browser compares it with its digest."""
    return Markup(f"<{name}>{_packaged(file)}</{name}>")


@cache
def _packaged(name: str) -> str:
    return (get_data(__package__ or "", name) or b"").decode()
