"""Where the action runs: what the runner's environment and its event file say."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

from rag_eval.action.base_commit import Trigger
from rag_eval.github.comment import attempt
from rag_eval.github.workflow import annotation


class Place(NamedTuple):
    """Where the action runs: the runner's environment, read once."""

    workspace: str
    event: Mapping[str, Any]
    api_url: str
    repository: str
    run: int
    run_id: str
    by: str
    workflow: str
    server: str
    trigger: Trigger
    output_file: str
    summary_file: str

    @property
    def pull_request(self) -> int | None:
        """The number of the pull request, None for other events; the ref says it best, which no step can change."""
        named = re.fullmatch(r"refs/pull/([0-9]{1,18})/(?:merge|head)", self.trigger.ref)
        if named:
            return int(named[1])
        pull = self.event.get("pull_request")
        number = pull.get("number") if isinstance(pull, dict) else None
        return number if isinstance(number, int) and 0 < number < 10**18 else None

    @property
    def head(self) -> str:
        """The commit that the pull request wants merged, else the one that is checked out."""
        return self.trigger.head


def read_place(environ: Mapping[str, str]) -> Place:
    """The runner's environment; an event that cannot be read counts as none."""
    environ = {name: text.encode("utf-8", "replace").decode() for name, text in environ.items()}
    run = environ.get("GITHUB_RUN_NUMBER", "")
    event = _event(environ.get("GITHUB_EVENT_PATH", ""))
    names = ("GITHUB_EVENT_NAME", "GITHUB_REF", "GITHUB_SHA", "GITHUB_BASE_REF")
    name, ref, sha, base_ref = (environ.get(each, "") for each in names)
    return Place(
        workspace=environ.get("GITHUB_WORKSPACE") or ".",
        event=event,
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        repository=environ.get("GITHUB_REPOSITORY", ""),
        run=int(run) if re.fullmatch("[0-9]{1,18}", run) else 0,
        run_id=(run_id := environ.get("GITHUB_RUN_ID", "")),
        by=attempt(run_id, environ.get("GITHUB_RUN_ATTEMPT", "")),
        workflow=environ.get("GITHUB_WORKFLOW_REF", ""),
        server=environ.get("GITHUB_SERVER_URL", ""),
        trigger=Trigger(name, event, ref, sha, base_ref),
        output_file=environ.get("GITHUB_OUTPUT", ""),
        summary_file=environ.get("GITHUB_STEP_SUMMARY", ""),
    )


_MOST_EVENT = 64 << 20
"""Bytes of an event file: GitHub sends no event of more than 25 MB."""


def _event(path: str) -> dict[str, Any]:
    try:
        event = json.loads(_read(path)) if path else {}
    except (OSError, ValueError, RecursionError):
        print(annotation("warning", "The event file cannot be read, so no comment is posted.", title="rag-eval"))
        return {}
    return event if isinstance(event, dict) else {}


def _read(path: str) -> bytes:
    """The bytes of a regular file of bounded size."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(file, "rb") as opened:  # noqa: PTH123 - by its number: what was looked at is what is read
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("no regular file")
        data = opened.read(_MOST_EVENT + 1)
    if len(data) > _MOST_EVENT:
        raise ValueError("too large")
    return data
