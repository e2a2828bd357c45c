"""The runner of the action: its environment and event, the inputs, annotations, outputs and job summary.

Untrusted input is escaped before or in this module: a log line can be a command to the runner.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.action.base_commit import Trigger
from rag_eval.analysis import CiRun
from rag_eval.common.escaping import log_line, quoted
from rag_eval.errors import RagEvalError, UsageError
from rag_eval.github import posting
from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import RELATIVE, open_regular
from rag_eval.run import as_cutoffs
from rag_eval.run.authority import Signoff

_MOST_EVENT = 64 << 20  # bytes of an event file: GitHub sends no event of more than 25 MB
MOST_ANNOTATIONS = 10  # what the runner keeps of one level in one step
SUMMARY_BYTES = 1 << 20  # a job summary with more bytes is dropped whole
CHOICES = {"comment": posting.MODES, "signoff": ("policy", "require", "off"), "fail_on": ("error", "warning", "never")}
"""What the inputs that are a choice may be."""
_PATHS = ("gold", "trace", "gates", "baseline", "report")
_SWITCHES = ("check", "annotations", "summary", "details")


class Runner(NamedTuple):
    """The runner's environment, read once."""

    workspace: str
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
        """Return the number of the pull request, None for other events; no step can change the ref."""
        named = re.fullmatch(r"refs/pull/([0-9]{1,18})/(?:merge|head)", self.trigger.ref)
        if named:
            return int(named[1])
        pull = self.trigger.event.get("pull_request")
        number = pull.get("number") if isinstance(pull, dict) else None
        return number if isinstance(number, int) and 0 < number < 10**18 else None

    @property
    def address(self) -> str:
        """Return the address of the run's page; empty if it is unknown."""
        return posting.run_address(self.server, self.repository, self.run_id)

    @property
    def workflow_file(self) -> str:
        """Return the path of the workflow's file in the commit under test; empty if it comes from elsewhere."""
        file = self.workflow.partition("@refs/")[0]
        is_of_base = self.trigger.name == "pull_request_target"
        return "" if is_of_base or not file.startswith(f"{self.repository}/") else file[len(self.repository) + 1 :]

    @property
    def ci(self) -> CiRun | None:
        """Return the CI run as a report records it; None outside GitHub."""
        if not self.repository:
            return None
        branch = self.trigger.text_at("pull_request", "head", "ref") or self.trigger.ref.removeprefix("refs/heads/")
        return CiRun(self.repository, branch, self.trigger.head, self.pull_request, self.run or None)


def read_runner(environ: Mapping[str, str]) -> Runner:
    """Read the runner's environment; an unreadable event counts as none."""
    environ = {name: text.encode("utf-8", "replace").decode() for name, text in environ.items()}
    run = environ.get("GITHUB_RUN_NUMBER", "")
    run_id = environ.get("GITHUB_RUN_ID", "")
    trigger = Trigger(
        name=environ.get("GITHUB_EVENT_NAME", ""),
        event=_event(environ.get("GITHUB_EVENT_PATH", "")),
        ref=environ.get("GITHUB_REF", ""),
        sha=environ.get("GITHUB_SHA", ""),
        base_ref=environ.get("GITHUB_BASE_REF", ""),
    )
    return Runner(
        workspace=environ.get("GITHUB_WORKSPACE") or ".",
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        repository=environ.get("GITHUB_REPOSITORY", ""),
        run=int(run) if re.fullmatch("[0-9]{1,18}", run) else 0,
        run_id=run_id,
        by=posting.attempt(run_id, environ.get("GITHUB_RUN_ATTEMPT", "")),
        workflow=environ.get("GITHUB_WORKFLOW_REF", ""),
        server=environ.get("GITHUB_SERVER_URL", ""),
        trigger=trigger,
        output_file=environ.get("GITHUB_OUTPUT", ""),
        summary_file=environ.get("GITHUB_STEP_SUMMARY", ""),
    )


def _event(path: str) -> dict[str, Any]:
    if not path:
        return {}
    try:
        with open_regular(path, None) as file:
            data = file.read(_MOST_EVENT + 1)
        event = json.loads(data if len(data) <= _MOST_EVENT else b"")  # which is no JSON
        return event if isinstance(event, dict) else {}
    except (OSError, Unreadable, ValueError, RecursionError):
        announce("warning", "The event file cannot be read, so no comment is posted.")
        return {}


class ActionInputs(NamedTuple):
    """The inputs of the action. Paths are relative to the workspace."""

    gold: str = ""
    trace: str = ""
    gates: str = ""
    gates_ref: str = "base"
    baseline: str = ""
    report: str = ""
    signoff: Signoff = "policy"
    k: tuple[int, ...] = ()
    comment: posting.Mode = "always"
    comment_id: str = posting.DEFAULT_COMMENT_ID
    check: bool = False
    annotations: bool = True
    summary: bool = True
    details: bool = False
    report_dir: str = "rag-eval-report"
    fail_on: str = "error"
    github_token: str = ""
    proxy: str = ""
    ca_certificates: str = ""
    working_directory: str = ""

    def __repr__(self) -> str:
        hidden = {name: "***" if getattr(self, name) else "" for name in ("github_token", "proxy")}
        return f"ActionInputs({self._asdict() | hidden})"


def read_inputs(environ: Mapping[str, str]) -> tuple[ActionInputs, UsageError | None]:
    """Read the inputs, and return the error about the first one with an invalid value.

    Invalid inputs count as not set. If the comment's inputs are invalid, no comment is written. Each working directory
    has its own comment unless another one was requested.
    """
    given: dict[str, Any] = {}
    wrong = None
    for field in ActionInputs._fields:
        text = environ.get(variable(field), "").strip()
        try:
            given |= {field: _value(field, text)} if text else {}
        except ValueError as error:
            why = "contains bytes that are not UTF-8" if isinstance(error, UnicodeEncodeError) else error
            wrong = wrong or UsageError(f"input '{field.replace('_', '-')}': {quoted(text)} {why}")
            given |= {"comment": "off"} if field in ("comment", "comment_id") else {}
    folder = given.get("working_directory", "")
    given |= {name: f"{folder}/{given[name]}" for name in _PATHS if folder and name in given}
    return ActionInputs(**{"comment_id": posting.default_comment_id(folder), **given}), wrong


def variable(field: str) -> str:
    """Return the environment variable of an input."""
    return f"INPUT_{field.upper().replace('_', '-')}"


def _value(field: str, text: str) -> Any:
    """Return the value of an input; raise ValueError with what is wrong with its text."""
    text.encode()  # undecodable bytes, which Python replaced, raise UnicodeEncodeError
    if field in _PATHS or field == "working_directory":
        # Without ./ and the like: GitHub shows an annotation on ./eval-gates.yml on no line.
        path = "/".join(part for part in text.split("/") if part not in ("", "."))
        return path if field == "working_directory" else ("/" if text.startswith("/") else "") + path or "."
    if field in _SWITCHES:
        if text.lower() not in ("true", "false"):
            raise ValueError("is not true or false")
        return text.lower() == "true"
    if field in CHOICES and text not in CHOICES[field]:
        raise ValueError(f"is not one of {', '.join(CHOICES[field])}")
    if field == "comment_id" and not posting.is_comment_id(text):
        raise ValueError(posting.INVALID_ID)
    if field == "ca_certificates":
        _check_certificates(text)
    return _cutoffs(text) if field == "k" else text


def _cutoffs(text: str) -> tuple[int, ...]:
    try:
        return as_cutoffs(int(part) for part in text.split(","))
    except (ValueError, UsageError):
        raise ValueError("is not a list of whole numbers from 1, such as 5 or 1,3,5") from None


def _check_certificates(text: str) -> None:
    import ssl

    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, TypeError, ValueError):
        raise ValueError("contains no certificates. Pass the text of a PEM file") from None


def annotation(level: str, message: str, file: str = "", line: int = 0, title: str = "") -> str:
    """Return a log line that the runner shows on ``line`` of ``file``; ``level`` is error, warning or notice."""
    properties = {"file": file, "line": str(line) if line and file else "", "title": title}
    escaped = {name: log_line(value).replace("%", "%25") for name, value in properties.items() if value}
    shown = ",".join(f"{name}={value.replace(':', '%3A').replace(',', '%2C')}" for name, value in escaped.items())
    text = log_line(message)[: posting.LONGEST_MESSAGE].replace("%", "%25")
    return f"::{level}{' ' if shown else ''}{shown}::{text}"


def limit_per_level(notes: Iterable[posting.Annotation]) -> Iterator[posting.Annotation]:
    """Yield the first annotations of each level: the runner silently drops the others."""
    seen: Counter[str] = Counter()
    for note in notes:
        seen[note.level] += 1
        if seen[note.level] <= MOST_ANNOTATIONS:
            yield note


def announce(level: str, message: str, title: str = "rag-eval") -> None:
    """Print a message of error, warning or notice that GitHub shows on the page of the run."""
    print(annotation(level, message, title=title))


def put_outputs(
    runner: Runner, outputs: Mapping[str, str], comment_url: str = "", *, commented: bool = False, check_url: str = ""
) -> None:
    """Write the outputs of the step: those of the verdict, and those about the comment and the check run."""
    if not runner.output_file:
        return
    posted = {"comment-url": comment_url, "comment-written": str(commented).lower(), "check-url": check_url}
    end = f"end_{secrets.token_hex(16)}"  # nobody can write it into a value
    lines = (f"{name}<<{end}\n{value}\n{end}\n" for name, value in {**outputs, **posted}.items())
    append_text(runner.output_file, "".join(lines), "outputs of the step")


def append_text(path: str, text: str, what: str) -> None:
    """Append to a file of the runner. A failure to write changes no verdict."""
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        announce("notice", f"The {what} cannot be written: {reason}.")


def report_folder(inputs: ActionInputs, runner: Runner) -> Path:
    """Return the folder of the report's files."""
    workspace = real_path(runner.workspace)
    folder = real_path(workspace / inputs.working_directory.strip("/") / inputs.report_dir)
    if not folder.is_relative_to(workspace):
        raise RagEvalError(f"input 'report-dir': {quoted(inputs.report_dir)} leads out of the workspace. {RELATIVE}")
    if any(part.lower() == ".git" for part in folder.relative_to(workspace).parts):
        what = f"input 'report-dir': {quoted(inputs.report_dir)} is inside .git, where only git may write"
        raise RagEvalError(f"{what}. Name another folder, such as rag-eval-report.")
    return folder


def real_path(path: str | Path) -> Path:
    """Return a path with its links resolved as far as possible; ``Path.resolve`` raises for a loop of links."""
    return Path(os.path.realpath(path))


def give_to_owner(folder: Path, workspace: Path) -> None:
    """Give files that the image wrote as root to the owner of the workspace, so that the next checkout succeeds."""
    owner = workspace.stat()
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or owner.st_uid == 0:
        return
    mine = [folder, *folder.iterdir(), *(parent for parent in folder.parents if parent.is_relative_to(workspace))]
    for path in mine:
        if path != workspace and path.lstat().st_uid == 0:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
