"""Workflow commands for GitHub's runner: annotations, outputs, job summary. Pure text; ``action.run`` writes it.

Untrusted input is escaped before or in this module: a log line can be a command to the runner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rag_eval.common.escaping import log_line

MOST_ANNOTATIONS = 10
"""What the runner keeps of one level in one step."""
SUMMARY_BYTES = 1 << 20
"""A job summary with more bytes is dropped whole."""
_LONGEST_MESSAGE = 4000


class Annotation(NamedTuple):
    """A message on a line of a file; ``level`` is error, warning or notice."""

    level: str
    message: str
    file: str = ""
    line: int = 0
    title: str = ""


def annotation(level: str, message: str, file: str = "", line: int = 0, title: str = "") -> str:
    """Return a log line that the runner shows on ``line`` of ``file``; ``level`` is error, warning or notice."""
    properties = {"file": file, "line": str(line) if line and file else "", "title": title}
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{level}{' ' if shown else ''}{shown}::{_data(log_line(message)[:_LONGEST_MESSAGE])}"


def limit_per_level(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first annotations of each level: the runner silently drops the others."""
    seen: dict[str, int] = {}
    for line in lines:
        level = line.removeprefix("::").partition(" ")[0].partition("::")[0]
        seen[level] = seen.get(level, 0) + 1
        if seen[level] <= MOST_ANNOTATIONS:
            yield line


def output(name: str, value: str, delimiter: str) -> str:
    """Return a step output for GITHUB_OUTPUT; ``delimiter`` is a random word that does not occur in the value."""
    if delimiter in value:
        raise ValueError("the delimiter stands in the value")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _data(line: str) -> str:
    return line.replace("%", "%25")


def _property(text: str) -> str:
    return _data(log_line(text)).replace(":", "%3A").replace(",", "%2C")
