"""HTML elements as strings: what is not made by :func:`tag` is text, and is escaped when it becomes part of one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rag_eval.common.escaping import hypertext, one_line
from rag_eval.rendering.phrases import TextFormatter

_VOID = frozenset({"meta", "input", "br", "hr"})
_CUT = 1_000
"""Characters of one string from data that are shown."""


class Markup(str):
    """HTML that :func:`tag` has made."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element: children that are no :class:`Markup` are escaped.

    Attributes are named with ``_`` for ``-`` and may end in one (``class_``); None and False leave one out, True is one
    without a value.
    """
    said = "".join([_attribute(key, value) for key, value in attributes.items()])
    inner = "".join([child if type(child) is Markup else hypertext(child) for child in children])
    return Markup(f"<{name}{said}>") if name in _VOID else Markup(f"<{name}{said}>{inner}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return f' {name}="{hypertext(shown)}"'


def joined(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other, a line each."""
    return Markup("\n".join(part for part in parts if part))


# How a sentence tells its names from its words until it becomes HTML. Unicode keeps these characters for use inside of
# programs; from data they are taken out.
_CODE, _TEXT, _STRONG, _SIGN, _FIGURE, _END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3", "\ufdd4", "\ufdef"
_MARKED = re.compile(f"([{_CODE}{_TEXT}{_STRONG}{_SIGN}{_FIGURE}])([^\ufdd0-\ufdef]*){_END}")
_INTERNAL = re.compile("[\ufdd0-\ufdef]")
GLYPHS = {"passed": "✓", "failed": "✗", "inconclusive": "?", "no_data": "–", "warning": "!"}
GLYPHS |= {"error": "✗", "looser": "↓", "stricter": "↑", "neutral": "="}


def inline(sentence: str) -> Markup:
    """A sentence that :data:`FORMATTER` has had a part in: names as code, and so on; all else of it is text."""
    parts, at = [], 0
    for found in _MARKED.finditer(sentence):
        parts += [Markup(hypertext(sentence[at : found.start()])), _marked(found[1], found[2])]
        at = found.end()
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
    """What an outcome looks like, for those who see it: the words beside it say the same."""
    return tag("span", GLYPHS[kind], class_=f"sign {kind}", aria_hidden="true")


def shown(text: str) -> str:
    """A string from data as it is shown: on one line, without control and bidirectional characters, not without end."""
    if len(text) <= _CUT and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _INTERNAL.sub("", one_line(text, _CUT))


def _mark(kind: str, text: str) -> str:
    return f"{kind}{shown(text)}{_END}"


def _named(metric: str, part: str) -> str:
    return f"{_mark(_CODE, metric)} where {_mark(_CODE, part)}" if part else _mark(_CODE, metric)


FORMATTER = TextFormatter(
    named=_named,
    said=lambda text, _=0: shown(text),
    code=lambda text, _=0: _mark(_CODE, text),
    text=lambda text, _=0: _mark(_TEXT, text),
    own=shown,
    strong=lambda text: f"{_STRONG}{_INTERNAL.sub('', text)}{_END}",
    figure=lambda text: f"{_FIGURE}{_INTERNAL.sub('', text)}{_END}",
    sign=lambda kind: f"{_SIGN}{kind}{_END}",
)
