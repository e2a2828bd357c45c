"""The text of an answer that its readers see, without what HTML, Markdown and terminals do not show."""

from __future__ import annotations

import re

from rag_eval.textual.tokens import holds_any

_AROUND = 4_000
"""Characters around a text that are looked at: a pattern may read a long text again and again."""
_MOST_PLACES = 20
_SIGNS = "<", "](", "]:", "\x1b", "\u202e"

_HIDING = (  # attributes that hide an element
    r"(?<=\s)hidden(?=[\s=>/])|visibility\s*:\s*hidden|display\s*:\s*none|font-size\s*:\s*0|opacity\s*:\s*(?:0\.?0*|\.0+)(?![.\d])"
    r"|\b(?:max-)?(?:height|width)\s*:\s*0(?![.\d])|\b(?:left|right|top|bottom|text-indent|margin-left)\s*:\s*-\d{3}"
    r"|\bclass\s*=\s*[\"']?[^\"'<>]{0,200}(?<![-\w])(?:sr-only|visually-hidden|invisible)(?![-\w])"
)
_PALE = r"(?:white|transparent|\#fff)"
_PALE_ON_WHITE = (  # attributes without a background on which pale letters show
    rf"(?![^<>]{{0,500}}\bbackground(?:-color)?\s*:(?!\s*{_PALE}))[^<>]{{0,500}}?(?<![-\w])color\s*[:=]\s*[\"']?{_PALE}"
)
_NOT_SHOWN = (
    r"^ {0,3}<!--.{0,9000}?(?:-->|\Z)",  # a block of Markdown ends with the text if the comment is open
    r"<!--.{0,4000}?-->",
    r"<\?.{0,4000}?\?>",
    r"<![a-z\[][^<>]{0,4000}>",
    r"<(?P<raw>script|style|template|noscript|iframe|title)\b[^<>]{0,500}>.{0,4000}?</(?P=raw)\s*>",
    rf"<(?P<tag>\w{{1,20}})\s[^<>]{{0,500}}?(?:{_HIDING})[^<>]{{0,500}}>.{{0,4000}}?</(?P=tag)\s*>",
    rf"<(?P<pale>\w{{1,20}})\s{_PALE_ON_WHITE}[^<>]{{0,500}}>.{{0,4000}}?</(?P=pale)\s*>",
    r"<\w{1,20}\s[^<>]{0,500}=[^<>]{0,500}>",  # a tag with attributes
    r"!\[[^\]\n]{0,500}\]\([^()\n]{0,500}\)",  # an image with its description
    r"\x1b\[(?:(?![34]8;)[0-9]{1,3};){0,4}8m.{0,4000}?(?:\x1b\[(?:0|28)?m|\Z)",  # concealed in a terminal
    "\u202e[^\u202c\n\u0590-\u08ff]{0,4000}",  # letters of other scripts shown from right to left
)
_LINK = (  # a link definition of Markdown, with an address and perhaps a title
    r"^ {0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]*(?:<[^<>\n]{0,500}>|\S{1,500})"
    r"(?:[ \t]+(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|\([^()\n]{0,500}\)))?[ \t]*$"
)
_TITLE = r"(?P<link>\]\([^\s()<>]{0,500})\s{1,9}(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}')\s{0,9}(?=\))"  # of a link
_MARKUP = re.compile(r"[<>=\"\\_]|//|--|\w\.[a-z]")
_CODE = r"(?P<code>(?P<fence>`{3,9}|^~{3}).{0,4000}?(?P=fence)|``[^\n]{1,500}?``|`[^`\n]{1,500}`)"
_PARTS = "(?ism)" + "|".join([_CODE, _TITLE, *_NOT_SHOWN, _LINK])  # compiled at its first use: few answers have markup


def visible(text: str) -> str:
    """Return a text as a reader sees it; code is shown as it is written."""
    if not holds_any(_SIGNS, text):
        return text
    return re.sub(_PARTS, lambda part: part["code"] or part["link"] or " ", text)


def is_shown(part: str, text: str) -> bool:
    """Return whether a reader sees one of the first places of ``part`` in a text.

    Code and addresses in ``part`` are what the answer shows or links to, so they count as seen.
    """
    if _MARKUP.search(part):
        return part in text
    at = text.find(part)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return False
        if part in visible(text[max(0, at - _AROUND) : at + len(part) + _AROUND]):
            return True
        at = text.find(part, at + len(part))
    return False
