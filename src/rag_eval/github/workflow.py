"""What a workflow shows: annotations, outputs and job summary by the runner's commands, and check runs.

A check run is on the last commit of a pull request, with more annotations than a log shows. ``action.run`` writes the
commands. Untrusted input is escaped before or in this module: a log line can be a command to the runner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.common.escaping import log_line, one_line
from rag_eval.rendering.annotations import in_repository

if TYPE_CHECKING:
    from rag_eval.github.api import CheckRun, GitHub

MOST_ANNOTATIONS = 10
"""What the runner keeps of one level in one step."""
SUMMARY_BYTES = 1 << 20
"""A job summary with more bytes is dropped whole."""
MOST_CHECK_NOTES = 500
"""Annotations of a check run; GitHub takes more, and nobody reads them."""
MOST_CHECK_CHARACTERS = 65_535
"""What GitHub takes as the summary of a check run."""
_BATCH = 50
"""Annotations of a check run that GitHub takes in one request."""
_LONGEST_TITLE, _LONGEST_MESSAGE = 200, 4000
_LEVELS = {"error": "failure", "warning": "warning", "notice": "notice"}


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
    shown = ",".join(
        f"{name}={_data(log_line(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
        if value
    )
    return f"::{level}{' ' if shown else ''}{shown}::{_data(log_line(message)[:_LONGEST_MESSAGE])}"


def limit_per_level(notes: Iterable[Annotation]) -> Iterator[Annotation]:
    """Yield the first annotations of each level: the runner silently drops the others."""
    seen: Counter[str] = Counter()
    for note in notes:
        seen[note.level] += 1
        if seen[note.level] <= MOST_ANNOTATIONS:
            yield note


def output(name: str, value: str, delimiter: str) -> str:
    """Return a step output for GITHUB_OUTPUT; ``delimiter`` is a random word that does not occur in the value."""
    if delimiter in value:
        raise ValueError("the value contains the delimiter")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _data(line: str) -> str:
    return line.replace("%", "%25")


class Check(NamedTuple):
    """A check run to write. ``attempt`` names the run's attempt that writes it, ``details`` is its page."""

    name: str
    head: str
    conclusion: str
    title: str
    summary: str
    attempt: str = ""
    details: str = ""


def publish_check(api: GitHub, check: Check, notes: Sequence[Annotation]) -> tuple[CheckRun, int]:
    """Write a check run, and return it and the number of its annotations; raise GitHubError.

    The first request has the conclusion, so the verdict arrives even if annotations fail.
    """
    rows = (_annotation(note) for note in notes[:MOST_CHECK_NOTES])
    batches = iter(lambda: list(islice(rows, _BATCH)), [])
    output: dict[str, Any] = {"title": one_line(check.title, _LONGEST_TITLE), "summary": check.summary}
    first = next(batches, [])
    content = {
        "name": check.name,
        "head_sha": check.head,
        "status": "completed",
        "conclusion": check.conclusion,
        "output": {**output, "annotations": first},
        **({"external_id": check.attempt} if check.attempt else {}),
        **({"details_url": check.details} if check.details else {}),
    }

    def already() -> CheckRun | None:
        runs = api.check_runs(check.head, check.name) if check.attempt else []
        return next((run for run in runs if run.external_id == check.attempt), None)

    made, written = api.create_check_run(content, already), len(first)
    for batch in batches:
        if not api.add_to_check_run(made.id, {**output, "annotations": batch}):
            break
        written += len(batch)
    return made, written


def _annotation(note: Annotation) -> dict[str, Any]:
    path, line = in_repository(note.file, note.line)
    return {
        "path": path,
        "start_line": max(line, 1),
        "end_line": max(line, 1),
        "annotation_level": _LEVELS[note.level],
        "title": one_line(note.title, _LONGEST_TITLE) or "rag-eval",
        "message": log_line(note.message)[:_LONGEST_MESSAGE] or "rag-eval",
    }
