"""Escaping of untrusted input: for Markdown, HTML, log lines, JSON and spreadsheets.

Every string from a file, a name or a branch is hostile until it is escaped here. In Markdown only plain words are
written as they are, everything else as a code span. Inside a code span GitHub renders no HTML, link, image, autolink,
reference or comment. What remains to escape is the end of the span, the end of the table cell, and mentions, because
mail replies are read as plain text.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_ZERO_WIDTH_SPACE = "\u200b"
# Patterns that few texts need are strings, compiled at their first use.

# C0 and C1 controls, line and paragraph separators, zero-width and bidirectional controls, BOM, lone surrogates, tags,
# and noncharacters, two of which are invalid in XML.
_INVISIBLE = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)
# Most texts match this, and skip the slower steps.
_HARMLESS = re.compile("[A-Za-z0-9 .,:;!?()%/_=+*-]*")
_HARMLESS_CELL = re.compile(r"(?:\w[\w .,:!?()%/=+*'-]*)?")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_SPACE = re.compile(r"\s+")
_BREAK = "[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+"
# A colon only before a space: between letters it makes an emoji or an address.
_WORDS = re.compile("(?:[A-Za-z0-9 ,.;()'%/_…–-]|:(?= |$))+")
_LINKED = re.compile(r"(?i)www\.|\bgh-[0-9]|\b[0-9a-f]{7,}\b|_{2}")
_RETURN = re.compile(r"\r\n?")
_COMMAND = "(?m)(?:^|(?<=[\u2028\u2029]))(?=\\s*::)"
# Commands to a CI system anywhere in a line: ##[ is GitHub's, ##vso[ of Azure DevOps, ##teamcity[ of TeamCity.
_BRACKETED = re.compile(r"##([A-Za-z]*)\[")
# Characters that some readers of JSON and of logs take for the end of a line.
_SEPARATORS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
# The first characters of a formula, and the blanks and separators before it. Spreadsheets in Asian locales treat the
# full-width forms alike.
_FORMULA = "^(?=[\t\n])|(?:^|(?<![;\\s]))[;\\s]*+(?=[=+@\uff1d\uff0b\uff0d\uff20-])"


def one_line(text: str, limit: int = 80) -> str:
    """Return ``text`` on one line of at most ``limit`` characters, without control and bidirectional ones."""
    # Cut first: otherwise a 16 MiB string is read three times only to show its beginning.
    head = text[: limit * 4 + 16]
    clean = _visible(_SPACE.sub(" ", head)).strip()
    return clean if len(clean) <= limit and len(head) == len(text) else clean[: limit - 1] + "…"


def quoted(value: object, limit: int = 80) -> str:
    """Return a value from data as messages show it: strings in quotes, at most ``limit`` characters of it."""
    if isinstance(value, str):
        return f"'{one_line(value, limit)}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return f"an object with {quantity(len(value), 'key')}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list with {quantity(len(value), 'entry', 'entries')}" if value else "an empty list"
    return one_line(str(value), limit)


def quoted_name(name: str, limit: int = 80) -> str:
    """Return a name in quotes, with the blanks at its ends and its invisible characters as escapes."""
    return repr(name) if len(name) <= limit and name != one_line(name, limit) else quoted(name, limit)


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 trace``, ``2 traces``, ``0 traces``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def some(names: Sequence[str], limit: int, shown: Callable[[str], str] = str) -> str:
    """Return the first ``limit`` of several names, each by ``shown``: ``a, b and 3 more``."""
    cut = len(names) - limit
    return ", ".join(map(shown, names[:limit])) + (f" and {cut} more" if cut > 0 else "")


def markdown(text: str, limit: int = 80) -> str:
    """Return ``text`` as a Markdown code span that stays one span, inside a table cell too."""
    clean = _no_command(one_line(text, limit).replace("@", "@" + _ZERO_WIDTH_SPACE))
    if not clean:
        return "*(empty)*"
    # A backslash before the escaped pipe would escape the backslash instead and end the cell.
    clean = clean.replace("\\|", "\\" + _ZERO_WIDTH_SPACE + "|").replace("|", "\\|")
    if clean.endswith("\\"):
        clean += _ZERO_WIDTH_SPACE
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", clean)), default=0))
    pad = " " if clean.startswith("`") or clean.endswith("`") else ""
    return f"{fence}{pad}{clean}{pad}{fence}"


def untabled(text: str) -> str:
    """Return the Markdown of :func:`markdown` for use outside tables, where a pipe needs no backslash.

    Only escapes of that function are undone: it separates backslashes of the data from the pipe after them.
    """
    return text.replace("\\|", "|")


def prose(text: str, limit: int = 80) -> str:
    """Return ``text`` as plain words if nothing in it is special to Markdown and GitHub, otherwise as a code span."""
    clean = one_line(text, limit)
    return clean.replace("_", "\\_") if _WORDS.fullmatch(clean) and not _LINKED.search(clean) else markdown(text, limit)


def hypertext(text: str) -> str:
    """Return ``text`` escaped for an HTML element or an attribute in double quotes.

    Control and bidirectional characters, lone surrogates and noncharacters are left out, line breaks are spaces.
    ``##[`` and ``##vso[`` are written so that no CI system takes the source for a command.
    """
    if _HARMLESS.fullmatch(text):
        return text
    clean = _visible(_unbroken(text))
    return unbracketed(clean.translate(_ENTITIES), "&#91;")


def log_line(text: str) -> str:
    """Return ``text`` as one line without commands to a CI system: ``::`` at its start, ``##[`` or ``##vso[`` in it."""
    clean = unbracketed(_visible(_unbroken(text)).rstrip(), " [")
    return clean.replace("::", ": :", 1) if clean.lstrip().startswith("::") else clean


def spreadsheet(text: str) -> str:
    """Return ``text`` for a CSV cell, with an apostrophe before everything that a spreadsheet would run as a formula.

    CSV is printed too: no line of the cell is a command to GitHub's runner, which ends a line at a lone carriage
    return.
    """
    if _HARMLESS_CELL.fullmatch(text):
        return text
    clean = re.sub(_COMMAND, _ZERO_WIDTH_SPACE, _no_command(_visible(_RETURN.sub("\n", text))))
    # A spreadsheet that treats semicolons, tabs or line breaks as separators starts a cell behind each.
    return re.sub(
        _FORMULA, lambda match: match[0] if match.start() and not {*";\t\n"} & {*match[0]} else f"{match[0]}'", clean
    )


def json_text(value: Any) -> str:
    """Return the JSON text of a value, two spaces for each level; named tuples are objects."""
    return json_source(json.dumps(as_objects(value), indent=2, ensure_ascii=False) + "\n")


def as_objects(value: Any) -> Any:
    """Return a value with named tuples as dicts and other tuples as lists."""
    if isinstance(value, dict):
        return {name: as_objects(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return as_objects(value._asdict()) if hasattr(value, "_asdict") else [as_objects(part) for part in value]
    return value


def csv_text(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return CSV by RFC 4180 with line feeds; untrusted texts in ``rows`` went through :func:`spreadsheet`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return out.getvalue()


def json_source(text: str) -> str:
    """Return JSON for output: line separators and commands of CI systems in it are escaped."""
    # In JSON they occur only inside strings, where their escapes mean the same.
    for separator, escape in _SEPARATORS.items():
        text = text.replace(separator, escape)
    return unbracketed(text, "\\u005b")


def unbracketed(text: str, bracket: str) -> str:
    """Return ``text`` without commands that CI systems obey, such as ``##[`` and ``##vso[``."""
    return _BRACKETED.sub(lambda match: f"##{match[1]}{bracket}", text) if "##" in text else text


def _visible(text: str) -> str:
    # Invisible characters are not printable: most texts need no further check.
    return text if text.isprintable() else re.sub(_INVISIBLE, "", text)


def _unbroken(text: str) -> str:
    return text if text.isprintable() else re.sub(_BREAK, " ", text)


def _no_command(text: str) -> str:
    """Return ``text`` without ``##[`` and ``##vso[``, which runners look for anywhere in a line."""
    return unbracketed(text, f"{_ZERO_WIDTH_SPACE}[")
