"""Parts of an answer that nobody sees, because markup hides them."""

from __future__ import annotations

import re

from rag_eval.textual.tokens import holds_any

_AROUND = 4_000
"""Characters around a text that are looked at: a pattern may read a long text again and again."""
_MOST_PLACES = 20
_SIGNS = "<", "](", "]:", "~", "\x1b", "\u202e", "\b", "phantom", "color", "{#", "$$", "\\(", "\\["

_ZERO = r"(?:0\.?0*|\.0+)(?![.\d])"
_HIDING = (  # attributes that hide an element
    r"(?<=\s)hidden(?=[\s=>/])|visibility\s*:\s*hidden|display\s*:\s*none"
    rf"|(?:\bopacity|\bfont-size|(?<=\s)size|\bscale)\s*[:=(]\s*[\"']?{_ZERO}"
    rf"|\b(?:max-)?(?:height|width)\s*:\s*{_ZERO}|\b(?:left|right|top|bottom|text-indent|margin-left)\s*:\s*-\d{{3}}"
    r"|\bclip\s*:\s*rect\(\s*[01](?!\d)|\bclip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)"
    r"|\bclass\s*=\s*[\"']?[^\"'<>]{0,200}(?<![-\w])(?:sr-only|visually-hidden|invisible|hidden|d-none|opacity-0)(?![-\w])"
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
    r"<(?P<raw>think|thinking|script|style|template|noscript|iframe|title|head|datalist|object|audio|video|canvas|rp|desc|metadata|mphantom|noframes|noembed|del|strike|s)\b[^<>]{0,500}>.{0,4000}?</(?P=raw)\s*>",
    rf"<(?P<tag>\w{{1,20}})\s[^<>]{{0,500}}?(?:{_HIDING})[^<>]{{0,500}}>.{{0,4000}}?</(?P=tag)\s*>",
    rf"<(?P<pale>\w{{1,20}})\s{_PALE_ON_WHITE}[^<>]{{0,500}}>.{{0,4000}}?</(?P=pale)\s*>",
    r"(?<!~)~~(?![~\s])[^\n]{1,500}?(?<![~\s])~~(?!~)",  # crossed out, which takes the text back
    r"(?<![~\w])~(?![~\s])[^\n~]{1,500}?(?<![~\s(])~(?![~\w/])",  # the same; "~3 g (~1 oz)" is not
    r"<\w{1,20}\s[^<>]{0,500}=[^<>]{0,500}>",  # a tag with attributes
    r"!\[[^\]\n]{0,500}\]\([^()\n]{0,500}\)",  # an image with its description
    r"\x1b\[(?:(?![34]8;)[0-9]{1,3};){0,4}8m.{0,4000}?(?:\x1b\[(?:0|28)?m|\Z)",  # concealed in a terminal
    "\u202e[^\u202c\n\u0590-\u08ff]{0,4000}",  # letters of other scripts shown from right to left
    r"\\(?:[hv]?phantom|(?:text)?color\s*\{white\})\s*\{[^{}]{0,4000}\}",  # of a formula
    r"\{#.{0,4000}?#\}",  # a comment of a template
    r"(?P<math>(?:\$\$|\\[(\[])[^%$]{0,500}?)(?<![\\\d])(?<!\d )%[^\n]{0,4000}",  # a comment of LaTeX; 20% is none
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


def visible(text: str, *, is_cut: bool = False) -> str:
    """Return a text as a reader sees it; code is shown as it is written. ``is_cut``: without its beginning."""
    if not holds_any(_SIGNS, text):
        return text
    text = _without_erased(text) if "\b" in text else text
    blocks = _indented_code(text, is_cut=is_cut) if holds_any(_INDENTS, text) else []

    def shown(part: re.Match[str]) -> str:
        is_code = any(start <= part.start() and part.end() <= end for start, end in blocks)
        return part[0] if is_code else part["code"] or part["link"] or part["math"] or " "

    return re.sub(_PARTS, shown, text)


def _without_erased(text: str) -> str:
    """Return a text without what backspaces erase in a terminal: the letters before them, up to the line's start."""
    letters: list[str] = []
    for letter in text:
        if letter != "\b":
            letters.append(letter)
        elif letters and letters[-1] != "\n":
            letters.pop()
    return "".join(letters)


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
