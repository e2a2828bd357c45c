"""A finished report as the comment of its pull request: the second half of the pair of workflows for forks.

The first half runs the pull request's own code and has no token that may write; what it hands over is data from a
stranger. So the report is read strictly and in bounds, its verdict is worked out again, it is rendered here, and which
pull request it belongs to is asked of GitHub by the commit that the event names, never read from the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.analysis.report import again
from rag_eval.errors import InputError, Problem, UsageError
from rag_eval.github.comment import MOST_CHARACTERS, Posted, last_line, marker, name_of, post, run_address
from rag_eval.readers.limits import Limits
from rag_eval.readers.problems import Ledger
from rag_eval.readers.report_file import believed, check_gates, read_report
from rag_eval.readers.source import Reader
from rag_eval.rendering import markdown
from rag_eval.rendering.json_file import from_json

if TYPE_CHECKING:
    from rag_eval.github.api import GitHub, OpenPull
    from rag_eval.github.comment import Mode

LIMITS = Limits(whole_mib=64, expanded_mib=64, depth=16)
"""A report of 10,000 questions has about a fifth of that."""
_ROOM = MOST_CHARACTERS - 2_500  # an id of 100 letters, each up to twelve characters in the first line, and a heading
_ANEW = "Write it anew with rag-eval score."
NO_REPORT = "The pull request's own run handed over no report; its log and its summary say why"
_ONLY = "The figures are what the pull request's own run said; the gates were judged again from them here."


class Origin(NamedTuple):
    """The run that a report comes from: the pull request's last commit, where it lies, the run's number and workflow.

    ``owner`` and ``branch`` are empty where the repository of the head is gone.
    """

    head: str
    owner: str = ""
    branch: str = ""
    run: int = 0
    workflow: str = ""
    id: int = 0

    @classmethod
    def of_event(cls, event: Mapping[str, Any]) -> Origin:
        """What a ``workflow_run`` event says of the run that is over. Raises UsageError where it is another event."""
        run = event.get("workflow_run")
        head = _text(run, "head_sha")
        if not isinstance(run, dict) or not head:
            raise UsageError("This is no workflow_run event. Name the last commit of the pull request with --head.")
        number = run.get("run_number")
        owner = _text(_part(run.get("head_repository"), "owner"), "login")
        branch, number = _text(run, "head_branch"), number if isinstance(number, int) else 0
        known = run.get("id")
        return cls(head, owner, branch, number, _text(run, "path"), known if isinstance(known, int) else 0)


class CommentBody(NamedTuple):
    """What a comment says below its first line, and the verdict: passed, failed or invalid."""

    text: str
    verdict: str


def read(path: str, root: str | None = None) -> CommentBody:
    """What the report at ``path`` has to say, judged again. Raises InputError with all that is wrong with it."""
    reader = Reader(Ledger(), LIMITS, root)
    value = read_report(reader, path)
    reader.ledger.stop_on_problems()
    try:
        with believed(path, _ANEW):
            check_gates(path, recorded := from_json(value or {}), _ANEW)
            report = again(recorded)
            return CommentBody(f"{markdown.within(report, _ROOM, len)}\n{_ONLY}\n", report.verdict)
    except UsageError as error:
        raise InputError([Problem(path, 0, "", str(error).rstrip("."), _ANEW)]) from None


def of_problems(error: InputError) -> CommentBody:
    """What is to be said where there is no report that could be believed to be one."""
    return CommentBody(markdown.problems_within(error, _ROOM, len), "invalid")


def of_nothing() -> CommentBody:
    """What is to be said where the run handed over nothing: it could not judge either, and knows why."""
    return CommentBody(markdown.unjudged(f"{NO_REPORT}."), "invalid")


def pull_of(api: GitHub, origin: Origin) -> OpenPull | None:
    """The open pull request whose last commit is the one that was run; None where there is none any more.

    Raises UsageError where there are several: one run cannot speak for two bases.
    """
    found = [pull for pull in api.open_pulls(origin.owner, origin.branch) if pull.head == origin.head]
    if len(found) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in found[:10])
        raise UsageError(
            f"{numbers} have the same last commit, so which one was run cannot be told. Close all but one."
        )
    return found[0] if found else None


def publish(
    api: GitHub, origin: Origin, said: CommentBody, comment_id: str, mode: Mode, server: str = "", by: str = ""
) -> Posted:
    """Bring the comment of the pull request that a report comes from up to date.

    ``server`` is where GitHub's pages are, for a link to the run; ``by`` the attempt that posts.
    """
    pull = pull_of(api, origin)
    if pull is None:
        return Posted("", "skipped", f"no open pull request has {origin.head[:12]} as its last commit any more")
    workflow = f"{api.repository}/{origin.workflow}" if origin.workflow else ""
    failed = said.verdict != "passed"
    first = marker(comment_id, origin.head, origin.run, workflow, by, failed=failed)
    last = last_line(origin.head, origin.run, run_address(server, api.repository, origin.id))
    body = f"{first}\n{markdown.named(said.text, name_of(comment_id))}{last}"
    return post(api, pull.number, body, comment_id, mode, failed, origin.run)


def _part(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: object, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
