"""Strings that are out to be more than text, and what a page of Markdown may and may not hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import cycle
from typing import TYPE_CHECKING, Any

import cmarkgfm
from cmarkgfm.cmark import Options
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIECES = (
    *("|", "||", "\\|", "\\", "`", "``", "```", "~~~", "*", "_", "__", "~~"),
    *("#", "# ", "## x", "- ", "> ", "1. ", "---"),
    *("@octocat", "@org/team", "octocat@e.test", "#12", "octo/hello#1", "GH-12", "0123456789abcdef", "octocat:"),
    *("<b>", "</td>", "</details>", "</table>", "<script>alert(1)</script>", "<img src=x onerror=x>", "<!--", "-->"),
    *("<!-- rag-eval-action id=rag-eval head=a run=9 -->", "<https://e.test>", "<a@e.test>", "<?x", "<![CDATA["),
    *("[a](https://e.test)", "![a](https://e.test)", "[a]: https://e.test", "[^1]", "https://e.test", "www.e.test"),
    *("javascript:alert(1)", "&lt;", "&#64;octocat", "&#x40;", ":tada:", "$x$", "{{x}}", "${{ github.token }}"),
    *("::error::x", "\n::set-output name=a::b", "##[add-mask]x", "##vso[task.complete]", "\n/approve"),
    *("::add-mask::passed", "::stop-commands::x"),
    *("\n", "\r\n", "\r", "\n\n", "\t", "    ", " ", "\x00", "\x1b[31m", "\x07", "\x85", "\u2028", "\u2029", "\u200b"),
    *("\u202e", "\u2066", "\ufeff", "\U000e0041", "\uff0b", "=1+1", "+1", "-1", "\U0001f600", "\u00e4", "a\u0301", "x"),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), min_size=1, max_size=6).map("".join)
TAGS = {
    "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "code", "ul", "li", "details", "summary",
}  # fmt: skip
_LINKED = re.compile(r"(?i)(?<!\w)@[a-z0-9]|https?://|www\.|\bgh-[0-9]|#[0-9]|\b(?=[0-9]*[a-f])[0-9a-f]{7,40}\b")
_LEVELS = ("::error ", "::warning ", "::notice ", "::error::", "::warning::", "::notice::")


class Page(HTMLParser):
    """What GitHub would make of a text: its tags, the cells of each row of each table, words outside of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.others: list[str] = []
        self.widths: list[set[int]] = []
        self.words: list[str] = []
        self._cells, self._code = 0, 0
        # Whatever gets through as HTML must show here, so nothing is filtered.
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.others += [f"{name}={value}" for name, value in attrs if name != "align"]
        self._code += tag == "code"
        if tag == "table":
            self.widths.append(set())
        self._cells = 0 if tag == "tr" else self._cells + (tag in ("td", "th"))

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"
        if tag == "tr":
            self.widths[-1].add(self._cells)

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


BRACKETED = re.compile(r"##[A-Za-z]*\[")


def complaints(markdown: str) -> list[str]:
    """What in a comment or summary means more to GitHub than text in tables; its own first line is left out."""
    page = Page(markdown)
    # A digest is ours, and stands in code.
    links = [match[0] for word in page.words for match in _LINKED.finditer(word)]
    uneven = [f"a table of {widths} columns" for widths in page.widths if len(widths) > 1]
    mentions = re.findall(r"@(?:octocat|org)", markdown)
    actions = re.findall(r"(?m)^\s*/[a-z]+", markdown)  # quick actions of GitLab
    return [*sorted(page.tags - TAGS), *page.others, *links, *uneven, *mentions, *actions, *commands(markdown)]


def commands(log: str) -> list[str]:
    """The lines that GitHub's runner, or an agent of Azure DevOps, would take for a command.

    Both end lines as .NET does, at a line feed, a carriage return, or both. Python ends them at more, and so does this.
    """
    return [line for line in log.splitlines() if line.lstrip().startswith("::") or BRACKETED.search(line)]


def foreign_commands(log: str) -> list[str]:
    """The commands in a log that the action does not give."""
    return [line for line in commands(log) if not line.startswith(_LEVELS) or BRACKETED.search(line)]


def strings_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each string in decoded JSON."""
    if isinstance(value, str):
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from strings_of(part, (*path, key))


def replaced(value: Any, paths: set[tuple[Any, ...]], texts: Sequence[str]) -> Any:
    """Decoded JSON with the strings at ``paths`` taken from ``texts``, round and round."""
    rest = cycle(texts)

    def walk(value: Any, path: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            return {key: walk(part, (*path, key)) for key, part in value.items()}
        if isinstance(value, list):
            return [walk(part, (*path, index)) for index, part in enumerate(value)]
        return next(rest) if path in paths else value

    return walk(value, ())
