"""Posts to a pull request: its sticky comment, and the check run on its last commit.

The comment is found by author and first line, and replaced, never repeated. The first line is a Markdown comment,
invisible on the page. Anyone can write such a line, so it counts only in a comment of the action's account. A check run
has more annotations than a log shows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import quote, unquote

from rag_eval.analysis.judging import rejudge_same_gates
from rag_eval.common.escaping import log_line, one_line, quoted
from rag_eval.contract import Limits
from rag_eval.errors import InputError, Problem, UsageError
from rag_eval.github import CheckRun, Comment, GitHub, OpenPull
from rag_eval.github.http_client import GitHubError, text_at
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import check_gates, checked_report, read_report
from rag_eval.readers.source import Reader
from rag_eval.rendering import markdown
from rag_eval.rendering.ci_formats import in_repository

Mode = Literal["always", "on-change", "on-failure", "off"]
MODES: tuple[Mode, ...] = get_args(Mode)  # when to write the comment
MOST_CHARACTERS = 65_536  # what GitHub takes as the body of a comment, in characters, the marker included
DEFAULT_COMMENT_ID = "rag-eval"  # the comment-id where none is set and no working directory tells several uses apart
_LONGEST_ID = 100
INVALID_ID = f"is not valid. Use 1 to {_LONGEST_ID} printable characters."
_MARKER = re.compile(
    r"<!-- rag-eval-action id=(?P<id>[\w.~%-]+) head=(?P<head>[0-9A-Za-z]+) run=(?P<run>[0-9]{1,18})"
    r"(?: workflow=(?P<workflow>[0-9a-f]{12}))?(?: by=(?P<by>[0-9]{1,18}\.[0-9]{1,9}))?(?P<failed> failed)?"
    r" -->(?:\r?\n|\Z)",
    re.ASCII,
)
_RUN = r"run [0-9]+"
_LAST = re.compile(rf"\n\nCommit `[0-9A-Za-z]{{1,7}}`(?: · (?:{_RUN}|\[{_RUN}\]\([^\s()<>]+\)))?\s*\Z", re.ASCII)
_ADDRESS = re.compile(r"https?://[\w.:-]+(?:/[\w.-]+)+", re.ASCII)
_FAILED = "another use in this run, which failed,"
LIMITS = Limits(whole_mib=64, depth=16)  # a report of 10,000 questions has about a fifth of that
ROOM = MOST_CHARACTERS - 2_500
"""For the report in a comment: before it are a heading and an id of 100 letters, each up to twelve characters long."""
_ANEW = "Write it again with rag-eval score."
NO_REPORT = "The run of the pull request uploaded no report. Its log and its summary show why"
_ONLY = "The figures come from the run of the pull request. The gates were judged again from them."
MOST_CHECK_NOTES = 500  # annotations of a check run; GitHub takes more, and nobody reads them
MOST_CHECK_CHARACTERS = 65_535  # what GitHub takes as the summary of a check run
_BATCH = 50  # annotations of a check run that GitHub takes in one request
LONGEST_MESSAGE = 4000
_LONGEST_TITLE = 200


class Marker(NamedTuple):
    """The first line of a comment: its author, commit, run and workflow.

    The workflow is a digest, empty if unknown: runs of two workflows are numbered separately. ``by`` is the attempt at
    a run that wrote it. It distinguishes two uses in one run from a repeated run.
    """

    id: str
    head: str
    run: int
    workflow: str = ""
    by: str = ""
    failed: bool = False


class Posted(NamedTuple):
    """The result of posting a comment. ``url`` is empty without one, ``reason`` completes "… because".

    ``needs_attention`` says that somebody should look at it.
    """

    url: str
    action: Literal["created", "updated", "unchanged", "skipped"]
    reason: str
    needs_attention: bool = False

    def __str__(self) -> str:
        return f"comment {self.action}{f': {self.reason}' if self.reason else ''}"

    @property
    def written(self) -> bool:
        """Return whether this call left the comment as intended."""
        return self.action in ("created", "updated")


def is_comment_id(comment_id: str) -> bool:
    """Return whether a marker can hold this id."""
    return 0 < len(comment_id) <= _LONGEST_ID and comment_id.isprintable()


def default_comment_id(folder: str) -> str:
    """Return the default comment-id of a use in a folder of the workspace: each folder has its own comment."""
    shortened = f"{DEFAULT_COMMENT_ID}:{folder[len(DEFAULT_COMMENT_ID) + 1 - _LONGEST_ID :]}"
    return shortened if folder and is_comment_id(shortened) else DEFAULT_COMMENT_ID


def comment_name(comment_id: str) -> str:
    """Return the name that distinguishes one of several comments; empty for a single one."""
    return "" if comment_id == DEFAULT_COMMENT_ID else comment_id.removeprefix(f"{DEFAULT_COMMENT_ID}:")


def attempt(run_id: str, number: str) -> str:
    """Return the name of an attempt at a run for a marker; empty if unknown."""
    return f"{run_id}.{number}" if re.fullmatch("[0-9]{1,18}", run_id) and re.fullmatch("[0-9]{1,9}", number) else ""


def marker(comment_id: str, head: str, run: int, workflow: str = "", by: str = "", *, failed: bool = False) -> str:
    """Return the first line of a body. Different ids stay different; nothing in them can end the line or the comment.

    ``workflow`` is the path of its file, with the repository's name before it and perhaps a ref behind an ``@``, ``by``
    the result of :func:`attempt`.
    """
    if not is_comment_id(comment_id):
        raise UsageError(f"comment-id {quoted(comment_id)} {INVALID_ID}")
    name = quote(comment_id, safe="")
    commit = re.sub(r"[^0-9A-Za-z]", "", head)[:64] or "unknown"
    path = workflow.partition("@")[0]
    of = f" workflow={hashlib.sha256(path.encode()).hexdigest()[:12]}" if path else ""
    of += (f" by={by}" if by else "") + (" failed" if failed else "")
    return f"<!-- rag-eval-action id={name} head={commit} run={max(run, 0)}{of} -->"


def last_line(head: str, run: int, address: str = "") -> str:
    """Return the last line of a comment: its commit and run, which the text above does not name."""
    commit = re.sub(r"[^0-9A-Za-z]", "", head)[:7]
    named = f"[run {run}]({address})" if _ADDRESS.fullmatch(address) else f"run {run}"
    return f"\nCommit `{commit}`{f' · {named}' if run > 0 else ''}\n" if commit else ""


def run_address(server: str, repository: str, run_id: object) -> str:
    """Return the address of a run's log and summary; empty if unknown."""
    known = bool(server and repository) and re.fullmatch("[1-9][0-9]{0,17}", str(run_id), re.ASCII)
    return f"{server.rstrip('/')}/{repository}/actions/runs/{run_id}" if known else ""


def parse_marker(body: str) -> Marker | None:
    """Return the marker in the first line of ``body``, None if there is none."""
    match = _MARKER.match(body)
    if not match:
        return None
    written = match["workflow"] or "", match["by"] or "", bool(match["failed"])
    return Marker(unquote(match["id"]), match["head"], int(match["run"]), *written)


def find(comments: Iterable[Comment], author: str, comment_id: str) -> Comment | None:
    """Return the action's comment among ``comments``; the newest run's if simultaneous runs left several."""
    marked = [(parse_marker(comment.body), comment) for comment in comments if comment.author == author]
    ours = [(marker.run, -comment.id, comment) for marker, comment in marked if marker and marker.id == comment_id]
    return max(ours)[2] if ours else None


def post(api: GitHub, number: int, body: str, mode: Mode, *, needs_review: bool = False) -> Posted:
    """Update the comment of pull request ``number`` to ``body``, which starts with its marker.

    ``always`` writes each time; ``on-change`` only if the text between the marker and the line on the run differs;
    ``on-failure`` creates a comment only for a marker that ``failed`` or a report that ``needs_review``, but updates an
    existing one, so that it also shows when the gates pass again. The comment of a later run of this workflow stays,
    unless only ours is about the last commit. The comment of another workflow is replaced, because their order is
    unknown. The comment of another use in the same run is replaced too, unless only that use failed: its failure must
    stay visible. Raises GitHubError, and ValueError for a body without a marker.
    """
    marker = parse_marker(body)
    if marker is None:
        raise ValueError("the body must start with a marker")
    if mode == "off":
        return Posted("", "skipped", "comments are off")
    author = api.login()
    existing = find(api.comments(number), author, marker.id)
    if existing is not None:
        try:
            return _replace(api, number, existing, body, mode)
        except GitHubError as error:
            if error.status not in (404, 410):  # otherwise it was deleted after it was listed
                raise
    if mode == "on-failure" and not (marker.failed or needs_review):
        return Posted("", "skipped", "no gate failed, and there is no comment to update")
    created = api.create_comment(number, body, lambda: find(api.comments(number), author, marker.id))
    # A comment that appeared before a retry may be another run's.
    if not _same(created.body, body):
        return _replace(api, number, created, body, mode)
    if created.author == author:
        return Posted(created.url, "created", "")
    why = f"its author is {quoted(created.author)}, not {quoted(author)}, so the next run will add another comment"
    return Posted(created.url, "created", why, needs_attention=True)


def _replace(api: GitHub, number: int, existing: Comment, body: str, mode: Mode) -> Posted:
    theirs, ours = (parse_marker(text) or Marker("", "", 0) for text in (existing.body, body))
    writer = ""  # the other writer, if known
    if theirs.workflow and ours.workflow and theirs.workflow != ours.workflow:
        writer = "another workflow"
    # Another workflow can write any number in a marker, so the commit decides.
    elif theirs.run > ours.run and (ours.head == theirs.head or api.pull_head(number) != ours.head):
        newer = f"run {theirs.run} is newer and has already commented"
        return Posted(existing.url, "skipped", newer, needs_attention=True)
    elif theirs.by and (theirs.by, theirs.run) == (ours.by, ours.run):
        writer = _FAILED if theirs.failed and not ours.failed else "another use in this run"
    reason = f"{writer} wrote it. If both should comment, give each its own comment-id" if writer else ""
    if writer == _FAILED:
        return Posted(existing.url, "unchanged", reason, needs_attention=True)
    if _same(existing.body, body) or (mode == "on-change" and _same(_text(existing.body), _text(body))):
        return Posted(existing.url, "unchanged", reason or "it already has the same text", needs_attention=bool(reason))
    url = api.update_comment(existing.id, body).url or existing.url
    return Posted(url, "updated", reason, needs_attention=bool(reason))


def _text(body: str) -> str:
    return _LAST.sub("", _MARKER.sub("", body.replace("\r\n", "\n"), count=1))


def _same(first: str, other: str) -> bool:
    # GitHub may return a body with other line endings and without the blanks at its ends.
    return first.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()


class ReportOrigin(NamedTuple):
    """The run that a report comes from: the pull request's last commit and its branch, the run's number and workflow.

    ``owner`` and ``branch`` are empty if the repository of the head was deleted, ``page`` if the run's page is unknown.
    """

    head: str
    owner: str = ""
    branch: str = ""
    run: int = 0
    workflow: str = ""
    page: str = ""

    @classmethod
    def of_event(cls, event: Mapping[str, Any], fix: str = "", server: str = "", repository: str = "") -> ReportOrigin:
        """Read a ``workflow_run`` event; raise UsageError, with ``fix``, for any other event.

        ``server`` is the address of GitHub's pages, and ``repository`` the one whose run it is.
        """
        run = event.get("workflow_run")
        head, owner = text_at(run, "head_sha"), text_at(run, "head_repository", "owner", "login")
        if not isinstance(run, dict) or not head:
            raise UsageError(f"This is not a workflow_run event. {fix}")
        number, known = (value if isinstance(value, int) else 0 for value in (run.get("run_number"), run.get("id")))
        page = run_address(server, repository, known)
        return cls(head, owner, text_at(run, "head_branch"), number, text_at(run, "path"), page)


class CommentBody(NamedTuple):
    """A comment below its first line, the verdict (passed, failed or invalid), and the commit that was scored."""

    text: str
    verdict: str
    needs_review: bool = False
    commit: str = ""  # unknown


def read(path: str, root: str | None = None) -> CommentBody:
    """Return the comment for the report at ``path``, evaluated again. Raise InputError with all problems."""
    reader = Reader(ProblemCollector(), LIMITS, root)
    try:
        with checked_report(path, _ANEW):
            recorded = read_report(reader, path)
            if recorded is None:
                raise InputError(reader.ledger.problems, reader.ledger.more)
            check_gates(path, recorded, _ANEW)
            report = rejudge_same_gates(recorded)
            text = f"{markdown.within(report, ROOM, len)}\n{_ONLY}\n"
            return CommentBody(text, report.verdict, report.needs_review, report.ci.commit if report.ci else "")
    except UsageError as error:
        raise InputError([Problem(path, 0, "", str(error).rstrip("."), _ANEW)]) from None


def pull_of(api: GitHub, origin: ReportOrigin) -> OpenPull | None:
    """Return the open pull request whose last commit is the one that was run; None if there is none.

    Raises UsageError if there are several, because one run cannot judge against two bases.
    """
    # By number: a pull request that is opened or closed meanwhile moves others to another page.
    by_number = {pull.number: pull for pull in api.open_pulls(origin.owner, origin.branch) if pull.head == origin.head}
    pulls = list(by_number.values())
    if len(pulls) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in pulls[:10])
        raise UsageError(f"{numbers} have the same last commit, so the tested one is unknown. Close all but one.")
    return pulls[0] if pulls else None


def publish(
    api: GitHub, origin: ReportOrigin, content: CommentBody, comment_id: str, mode: Mode, by: str = ""
) -> Posted:
    """Update the comment of the pull request that a report comes from; ``by`` is the attempt that posts."""
    pull = pull_of(api, origin)
    if pull is None:
        return Posted("", "skipped", f"no open pull request has {origin.head[:12]} as its last commit any more")
    workflow = f"{api.repository}/{origin.workflow}" if origin.workflow else ""
    first = marker(comment_id, origin.head, origin.run, workflow, by, failed=content.verdict != "passed")
    last = last_line(origin.head, origin.run, origin.page)
    if content.commit not in ("", origin.head):
        commit = re.sub(r"[^0-9A-Za-z]", "", content.commit)[:7]
        last = f"\n**The report is about another commit, `{commit}`.**\n{last}"
    body = f"{first}\n{markdown.named(content.text, comment_name(comment_id))}{last}"
    return post(api, pull.number, body, mode, needs_review=content.needs_review)


class Annotation(NamedTuple):
    """A message on a line of a file; ``level`` is error or warning."""

    level: str
    message: str
    file: str
    line: int
    title: str


def publish_check(
    api: GitHub, content: Mapping[str, Any], title: str, summary: str, notes: Sequence[Annotation]
) -> tuple[CheckRun, int]:
    """Write a check run, and return it and the number of its annotations; raise GitHubError.

    ``content`` has the other fields of the request: name, head_sha, conclusion, external_id, details_url. The first
    request has the conclusion, so the verdict arrives even if annotations fail.
    """
    rows = []
    for note in notes[:MOST_CHECK_NOTES]:
        path, line = in_repository(note.file, note.line)
        place = {"path": path, "start_line": max(line, 1), "end_line": max(line, 1)}
        level = "failure" if note.level == "error" else "warning"
        text = {"title": one_line(note.title, _LONGEST_TITLE), "message": log_line(note.message)[:LONGEST_MESSAGE]}
        texts = {name: shown or "rag-eval" for name, shown in text.items()}
        rows.append({**place, "annotation_level": level, **texts})
    batches = [rows[begin : begin + _BATCH] for begin in range(0, len(rows), _BATCH)] or [[]]
    output: dict[str, Any] = {"title": one_line(title, _LONGEST_TITLE), "summary": summary}
    stated, attempt = {name: text for name, text in content.items() if text}, content.get("external_id")
    request = {**stated, "status": "completed", "output": {**output, "annotations": batches[0]}}

    def already() -> CheckRun | None:
        runs = api.check_runs(content["head_sha"], content["name"]) if attempt else []
        return next((run for run in runs if run.external_id == attempt), None)

    created, written = api.create_check_run(request, already), len(batches[0])
    for batch in batches[1:]:
        if not api.add_to_check_run(created.id, {**output, "annotations": batch}):
            break
        written += len(batch)
    return created, written
