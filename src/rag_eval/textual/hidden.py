"""Text that is not meant for readers: parts of an answer that nobody sees, and instructions to a model.

The wordings of instructions are in ``data/injection.toml``; docs/safety.md lists their kinds.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from msgspec import Struct

from rag_eval.textual import read_table
from rag_eval.textual.tokens import fold, holds_any

_AROUND = 4_000
"""Characters around a text that are looked at: a pattern may read a long text again and again."""
_MOST_PLACES = 20
_SIGNS = "<", "](", "]:", "~~", "\x1b", "\u202e"

_ZERO = r"(?:0\.?0*|\.0+)(?![.\d])"
_HIDING = (  # attributes that hide an element
    r"(?<=\s)hidden(?=[\s=>/])|visibility\s*:\s*hidden|display\s*:\s*none"
    rf"|(?:\bopacity|\bfont-size|(?<=\s)size|\bscale)\s*[:=(]\s*[\"']?{_ZERO}"
    rf"|\b(?:max-)?(?:height|width)\s*:\s*{_ZERO}|\b(?:left|right|top|bottom|text-indent|margin-left)\s*:\s*-\d{{3}}"
    r"|\bclip\s*:\s*rect\(\s*[01](?!\d)|\bclip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)"
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
    r"<(?P<raw>think|thinking|script|style|template|noscript|iframe|title|head|datalist|object|audio|video|canvas|rp|desc|metadata|noframes|noembed|del|strike|s)\b[^<>]{0,500}>.{0,4000}?</(?P=raw)\s*>",
    rf"<(?P<tag>\w{{1,20}})\s[^<>]{{0,500}}?(?:{_HIDING})[^<>]{{0,500}}>.{{0,4000}}?</(?P=tag)\s*>",
    rf"<(?P<pale>\w{{1,20}})\s{_PALE_ON_WHITE}[^<>]{{0,500}}>.{{0,4000}}?</(?P=pale)\s*>",
    r"(?<!~)~~(?![~\s])[^\n]{1,500}?(?<![~\s])~~(?!~)",  # crossed out, which takes the text back
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
_INDENTS = "    ", "\t"
_PARAGRAPH = r"(?![0-9]+[.)]\s)[\w\"'(#`]"  # how a line begins that continues no list, quotation or footnote
_MARKUP = re.compile(r"[<>=\"\\_]|//|--|\w\.[a-z]")
_CODE = r"(?P<code>(?P<fence>`{3,9}|^~{3}).{0,4000}?(?P=fence)|``[^\n]{1,500}?``|`[^`\n]{1,500}`)"
_PARTS = "(?ism)" + "|".join([_CODE, _TITLE, *_NOT_SHOWN, _LINK])  # compiled at its first use: few answers have markup
_FIRST_TAG = 0xE0000
_FILLERS = {
    "<order>": (
        r"(?:^|[^\w\s'’][ ]?|(?<!\w)(?:and|or|to|please|must|should|now|then|just|you|will|shall|but|so|also|simply"
        r"|kindly|can|could|would|not|hello|immediately)[ ])"
    ),
    "<model>": (
        r"(?:(?:ai|artificial[ ]intelligence|language|chat)[ -]?(?:assistant|model|agent|tool|system|bot)s?|ai|llms?"
        r"|(?:chat)?gpt|chatbot|claude|gemini|copilot|language[ ]models?|assistant|model|bot)"
    ),
    "<gap>": r"(?:[ ,:]{1,2}[\w'’-]{1,20}){0,4}",
    "<few>": r"(?:[ ,:]{1,2}[\w'’-]{1,20}){0,2}",
}
_TAGS = "(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007e]{3,}"  # flags may have some
_INVISIBLE = "[\u200b-\u200f\u2060-\u2064\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]{8,}|[\u202d\u202e]"
_BASE64 = r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{4}){5,}(?:[A-Za-z0-9+/]{2,3}={0,2})?"
_HEX = r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){20,}(?![0-9A-Fa-f])"
_PERCENT = r"(?:%[0-9A-Fa-f]{2}|[\w.~+-]){20,}"
_SIGN = rb"%([0-9A-Fa-f]{2})"
_SPACED = r"(?<!\S)(?:\w {1,3}){12,200}\w(?!\S)"
_DISGUISED = r"[A-Za-z][013457@$][A-Za-z]"
_LETTERS = str.maketrans("013457@$", "oieastas")
_ENTITY = r"&#(?:[0-9]{2,6}|x[0-9A-Fa-f]{2,5});"


def visible(text: str, *, is_cut: bool = False) -> str:
    """Return a text as a reader sees it; code is shown as it is written. ``is_cut``: without its beginning."""
    if not holds_any(_SIGNS, text):
        return text
    blocks = _indented_code(text, is_cut=is_cut) if holds_any(_INDENTS, text) else []

    def shown(part: re.Match[str]) -> str:
        is_code = any(start <= part.start() and part.end() <= end for start, end in blocks)
        return part[0] if is_code else part["code"] or part["link"] or " "

    return re.sub(_PARTS, shown, text)


def _indented_code(text: str, *, is_cut: bool) -> list[tuple[int, int]]:
    """Return where Markdown has blocks of indented code: behind a blank line below the line of a plain paragraph.

    Below any other line, such as one of a list, indented lines may continue it, and HTML in them is not shown.
    """
    blocks, at, above, state = list[tuple[int, int]](), 0, "", "text"
    for line in text.split("\n"):  # other line breaks of Python are none in Markdown
        end = at + len(line) + 1
        if not line.strip():
            state = "blank" if state == "text" else state
        elif not line.startswith(_INDENTS):
            above, state = "" if is_cut and at == 0 else line, "text"
        elif state == "code":
            blocks[-1] = (blocks[-1][0], end)
        elif state == "blank" and re.match(_PARAGRAPH, above):
            blocks.append((at, end))
            state = "code"
        at = end
    return blocks


def is_shown(part: str, text: str) -> bool:
    """Return whether a reader sees the last or one of the first places of ``part`` in a text.

    Code and addresses in ``part`` are what the answer shows or links to, so they count as seen.
    """
    if _MARKUP.search(part):
        return part in text
    at, after = text.rfind(part), 0  # the last one first: an answer follows its reasoning
    for _ in range(_MOST_PLACES):
        if at < 0:
            return False
        start = max(0, at - _AROUND)
        if part in visible(text[start : at + len(part) + _AROUND], is_cut=start > 0):
            return True
        at = text.find(part, after)
        after = at + len(part)
    return False


class Instruction(Struct, frozen=True):
    """Text that looks like an instruction to a model: its kind, and the wording as found."""

    kind: str
    text: str


@cache
def _instructions() -> dict[str, re.Pattern[str]]:
    compiled = {}
    for kind, languages in read_table("injection.toml").items():
        text = "|".join(f"(?:{one})" for one in languages.values())
        for name, gap in _FILLERS.items():
            text = text.replace(name, gap)
        compiled[kind] = re.compile(text if text.isascii() else fold(text), re.VERBOSE)
    return compiled


def instruction(text: str) -> Instruction | None:
    """Return the first instruction to a model in a text, also in hidden and encoded parts; None without one."""
    if wording := _worded(text):
        return wording
    if tags := re.search(_TAGS, text):
        return Instruction("hidden", "".join([chr(ord(sign) - _FIRST_TAG) for sign in tags[0]]))
    if wording := next(filter(None, map(_worded, _decoded(text))), None):
        return Instruction("encoded", wording.text)
    return Instruction("hidden", "invisible characters") if re.search(_INVISIBLE, text) else None


def _worded(text: str) -> Instruction | None:
    folded = fold(text)
    words = " ".join(folded.split())
    for kind, pattern in _instructions().items():
        if match := pattern.search(folded if kind == "role" else words):
            return Instruction(kind, match[0].strip())
    return None


def _decoded(text: str) -> Iterator[str]:
    """Yield what is encoded in Base64, hexadecimal, percent signs, HTML entities, spaced letters or leetspeak."""
    for run in re.finditer(_SPACED, text):
        yield " ".join([word.replace(" ", "") for word in re.split(" {2,}", run[0])])
    if re.search(_DISGUISED, text):
        yield text.translate(_LETTERS)
    for run in re.finditer(_BASE64, text):
        with suppress(Error):
            yield b64decode(run[0] + "=" * (-len(run[0]) % 4)).decode("utf-8", "replace")
    for run in re.finditer(_HEX, text):
        yield bytes.fromhex(run[0]).decode("utf-8", "replace")
    for run in re.finditer(_PERCENT, text):
        if "%" in run[0]:
            signs = re.sub(_SIGN, lambda sign: bytes.fromhex(sign[1].decode()), run[0].replace("+", " ").encode())
            yield signs.decode("utf-8", "replace")
    if re.search(_ENTITY, text):
        from html import unescape  # loads a table of all entities, and few runs need it

        yield unescape(text)
