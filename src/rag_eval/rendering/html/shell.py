"""The page around a report: one self-contained file that makes no network requests and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pkgutil import get_data

from rag_eval.rendering.html.element import Markup, joined, tag


def page(title: str, version: str, header: Markup, sections: Sequence[tuple[str, str, Markup]]) -> str:
    """Return the whole document; ``sections`` are (id, title, section), and those without content are left out."""
    there = [(key, name, part) for key, name, part in sections if part]
    links = joined(tag("li", tag("a", name, href=f"#{key}")) for key, name, _ in there)
    body = [
        tag("a", "Skip to the report", class_="skip", href="#report"),
        tag("header", header),
        tag("nav", tag("ul", links), aria_label="Parts of the report"),
        tag("main", joined(part for _, _, part in there), id="report", tabindex="-1"),
        tag(
            "footer",
            tag("p", f"Written by rag-eval {version}. This file is self-contained: it makes no network requests."),
        ),
    ]
    return document(title, version, body, "script.js")


def document(title: str, version: str, body: Sequence[Markup], script: str) -> str:
    """Return the whole document with the style of reports and one packaged script."""
    inner = tag("body", joined([*body, _raw("script", script)]))
    return f"<!DOCTYPE html>\n{tag('html', joined([_head(title, version, script), inner]), lang='en')}\n"


def _head(title: str, version: str, script: str) -> Markup:
    return tag(
        "head",
        joined(
            [
                tag("meta", charset="utf-8"),
                tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
                tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", name="referrer", content="no-referrer"),
                tag("meta", name="color-scheme", content="light dark"),
                tag("meta", name="generator", content=f"rag-eval {version}"),
                tag("title", title),
                _raw("style", "style.css"),
            ]
        ),
    )


@cache
def _policy(script: str) -> str:
    """Return the policy: nothing is loaded, sent or embedded; only this file's styles and scripts run, by digest."""
    sources = f"style-src '{_digest('style.css')}'; script-src '{_digest(script)}'"
    return (
        f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'; "
        "connect-src 'none'; img-src 'none'; object-src 'none'; frame-src 'none'"
    )


def _digest(name: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_shipped(name).encode()).digest()).decode()}"


def _raw(name: str, file: str) -> Markup:
    """Return an element whose text is not escaped: it is packaged, and the browser compares it with its digest."""
    return Markup(f"<{name}>{_shipped(file)}</{name}>")


@cache
def _shipped(name: str) -> str:
    """Return a packaged file."""
    return (get_data(__package__ or "", name) or b"").decode()
