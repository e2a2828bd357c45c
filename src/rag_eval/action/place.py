"""Where the action runs: what the runner's environment and its event file say."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rag_eval.action.base import Trigger
from rag_eval.github.comment import attempt
from rag_eval.github.workflow import annotation
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


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
        named = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", self.trigger.ref)
        if named:
            return int(named[1])
        pull = self.event.get("pull_request")
        number = pull.get("number") if isinstance(pull, dict) else None
        return number if isinstance(number, int) and number > 0 else None

    @property
    def head(self) -> str:
        """The commit that the pull request wants merged, else the one that is checked out."""
        return self.trigger.head


def read_place(environ: Mapping[str, str]) -> Place:
    """The runner's environment; an event that cannot be read counts as none."""
    run = environ.get("GITHUB_RUN_NUMBER", "")
    event = _event(environ.get("GITHUB_EVENT_PATH", ""))
    names = ("GITHUB_EVENT_NAME", "GITHUB_REF", "GITHUB_SHA", "GITHUB_BASE_REF")
    name, ref, sha, base_ref = (environ.get(each, "") for each in names)
    return Place(
        workspace=environ.get("GITHUB_WORKSPACE") or ".",
        event=event,
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        repository=environ.get("GITHUB_REPOSITORY", ""),
        run=int(run) if run.isdecimal() else 0,
        run_id=(run_id := environ.get("GITHUB_RUN_ID", "")),
        by=attempt(run_id, environ.get("GITHUB_RUN_ATTEMPT", "")),
        workflow=environ.get("GITHUB_WORKFLOW_REF", ""),
        server=environ.get("GITHUB_SERVER_URL", ""),
        trigger=Trigger(name, event, ref, sha, base_ref),
        output_file=environ.get("GITHUB_OUTPUT", ""),
        summary_file=environ.get("GITHUB_STEP_SUMMARY", ""),
    )


def _event(path: str) -> dict[str, Any]:
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        print(annotation("warning", "The event file cannot be read, so no comment is posted.", title="rag-eval"))
        return {}
    return event if isinstance(event, dict) else {}
