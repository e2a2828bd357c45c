"""The text of an answer that its readers see, without what HTML and Markdown do not show."""

from __future__ import annotations

import re

_LONGEST = 4_000
"""Characters of an answer that are looked at: a pattern may read a long text again and again."""

_NOT_SHOWN = (
    r"<!--.{0,4000}?-->",
    r"<(?P<raw>script|style|template)\b[^<>]{0,500}>.{0,4000}?</(?P=raw)\s*>",
    # An element that its attributes hide.
    r"<(?P<tag>\w{1,20})\s[^<>]{0,500}?(?:\bhidden\b|display\s*:\s*none|font-size\s*:\s*0)[^<>]{0,500}>.{0,4000}?</(?P=tag)\s*>",
    r"<\w{1,20}\s[^<>]{0,500}=[^<>]{0,500}>",  # a tag with attributes
)
_LINK = (  # a link definition of Markdown, with an address and perhaps a title
    r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*(?:<[^<>\n]{0,500}>|\S{1,500})"
    r"(?:[ \t]+(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|\([^()\n]{0,500}\)))?[ \t]*$"
)
_CODE = r"(?P<code>```.{0,4000}?```|`[^`\n]{1,500}`)"
_PARTS = "(?ism)" + "|".join([_CODE, *_NOT_SHOWN, _LINK])  # compiled at its first use: few answers have markup


def visible(text: str) -> str:
    """Return a text as a reader sees it; code is shown as it is written."""
    if "<" not in text and "]:" not in text:
        return text
    return re.sub(_PARTS, lambda part: part["code"] or " ", text[:_LONGEST]) + text[_LONGEST:]
