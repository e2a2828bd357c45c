"""What a browser makes of an HTML report, by html5lib, which follows the standard; and what a report may hold."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Comment, ProcessingInstruction

import html5lib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

VOID = {"meta", "input"}
TAGS = VOID | {
    *("html", "head", "title", "style", "body", "header", "nav", "main", "footer", "section", "script", "div", "span"),
    *("h1", "h2", "h3", "p", "ul", "li", "a", "code", "bdi", "em", "strong", "details", "summary", "figure"),
    *("figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "form", "label", "select", "option"),
    *("dl", "dt", "dd", "ol", "q", "u", "mark", "blockquote"),
    *("button", "svg", "desc", "g", "line", "rect", "circle", "path", "text"),
}
ATTRIBUTES = {
    *("charset", "http-equiv", "content", "name", "lang", "id", "class", "href", "tabindex", "role", "scope", "dir"),
    *("aria-label", "aria-labelledby", "aria-hidden", "open", "hidden", "type", "value", "autocomplete", "spellcheck"),
    *(
        "data-order",
        "data-choice",
        "data-label",
        "colspan",
        "viewBox",
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "width",
        "height",
        "cx",
        "cy",
        "r",
        "d",
    ),
}
FREE = {"aria-label", "content", "data-label"}
"""Attributes that hold words."""
_ADDRESS = re.compile(r"(?i)url\(|@import|\b(?:src|srcset|action|formaction|ping|poster|background|xlink:href)\s*=")


class Page:
    """A parsed report; parsing fails where the text is no valid HTML."""

    def __init__(self, text: str) -> None:
        parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), strict=True, namespaceHTMLElements=False)
        self.root: Element = parser.parse(text)
        self.text = text

    def all(self, name: str = "") -> Iterator[Element]:
        """Every element of a name, or every element at all."""
        return (item for item in self.root.iter() if isinstance(item.tag, str) and name in ("", local(item)))

    def one(self, key: str) -> Element:
        """The element of an id."""
        [result] = [item for item in self.all() if item.get("id") == key]
        return result

    def rows(self, key: str = "cases") -> list[list[str]]:
        """The texts of the cells of a table, row by row, without its head."""
        result = self.one(key)
        return [[said(cell) for cell in row] for body in result if local(body) == "tbody" for row in body]

    def table(self, caption: str) -> list[Element]:
        """The rows of the body of the table of a caption."""
        [result] = [item for item in self.all("table") if any(said(part) == caption for part in item.iter("caption"))]
        return [row for body in result.iter("tbody") for row in body]

    def complaints(self) -> list[str]:
        """What is there that is not ours, or that a browser would fetch or run."""
        strange = [f"<{local(item)}>" for item in self.all() if local(item) not in TAGS]
        strange += [str(item.tag) for item in self.root.iter() if item.tag in (Comment, ProcessingInstruction)]
        named = [(local(item), name, value) for item in self.all() for name, value in item.attrib.items()]
        strange += [f"{tag} {name}" for tag, name, _ in named if name not in ATTRIBUTES]
        strange += [f"{name}={value}" for _, name, value in named if name == "href" and not value.startswith("#")]
        strange += [
            f"{name}={value}" for _, name, value in named if name not in FREE and not re.fullmatch("[ -~–✓]*", value)
        ]
        return [*strange, *self._unguarded(), *self._unbound(), *Balance(self.text).wrong]

    def _unguarded(self) -> list[str]:
        """Scripts and styles that the policy does not know, and what it does not forbid."""
        [policy] = [item.get("content", "") for item in self.all("meta") if item.get("http-equiv")]
        rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        wrong = [
            f"{name}: {rules.get(name)}"
            for name in ("default-src", "base-uri", "form-action")
            if rules.get(name) != "'none'"
        ]
        for name, rule in (("script", "script-src"), ("style", "style-src")):
            digests = [f"'sha256-{digest(item.text or '')}'" for item in self.all(name)]
            wrong += [] if [rules[rule]] == digests else [f"{name}: {digests} is not {rules[rule]}"]
            wrong += [f"{name}: {match}" for item in self.all(name) for match in _ADDRESS.findall(item.text or "")]
        return wrong

    def _unbound(self) -> list[str]:
        """Ids that are there twice, and references to none."""
        ids = [item.get("id") for item in self.all() if item.get("id")]
        named = [name for item in self.all() for name in (item.get("aria-labelledby") or "").split()]
        named += [(item.get("href") or "")[1:] for item in self.all("a")]
        return [f"#{item}" for item in {*ids} if ids.count(item) > 1] + [
            f"to #{item}" for item in named if item not in ids
        ]


class Balance(HTMLParser):
    """Whether every element is closed by an end tag of its own, by a parser that corrects nothing."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open += [tag] if tag not in VOID else []

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"<!--{data}")


def local(element: Element) -> str:
    """An element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def said(element: Element) -> str:
    """The text of an element, signs that are hidden from screen readers left out."""
    inner = "" if element.get("aria-hidden") == "true" else element.text or ""
    return inner + "".join(said(child) + (child.tail or "") for child in element)


def digest(text: str) -> str:
    """sha256 as a Content-Security-Policy has it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
