"""Check runs on the last commit of a pull request: a conclusion, the report, and more annotations than a log shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.common.escaping import log_line, one_line
from rag_eval.rendering.annotations import in_repository

if TYPE_CHECKING:
    from rag_eval.github.api import CheckRun, GitHub
    from rag_eval.github.workflow import Annotation

MOST_NOTES = 500
"""Annotations of a check run; GitHub takes more, and nobody reads them."""
MOST_CHARACTERS = 65_535
"""What GitHub takes as the summary of a check run."""
_BATCH = 50
"""Annotations that GitHub takes in one request."""
_LONGEST_TITLE, _LONGEST_MESSAGE = 200, 4000
_LEVELS = {"error": "failure", "warning": "warning", "notice": "notice"}


class Check(NamedTuple):
    """A check run to write. ``attempt`` names the run's attempt that writes it, ``details`` is its page."""

    name: str
    head: str
    conclusion: str
    title: str
    summary: str
    attempt: str = ""
    details: str = ""


def publish(api: GitHub, check: Check, notes: Sequence[Annotation]) -> tuple[CheckRun, int]:
    """Write a check run, and return it and the number of its annotations; raise GitHubError.

    The first request has the conclusion, so the verdict arrives even if annotations fail.
    """
    batches = _batches(notes)
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


def _batches(notes: Sequence[Annotation]) -> Iterator[list[dict[str, Any]]]:
    rows = (_annotation(note) for note in notes[:MOST_NOTES])
    while batch := list(islice(rows, _BATCH)):
        yield batch


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
