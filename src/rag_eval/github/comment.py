"""The one comment that a pull request keeps: found again by author and first line, and replaced, never repeated.

The first line is a Markdown comment, invisible on the page. Anyone can write such a line, so it counts only in a
comment of our own account.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol
from urllib.parse import quote, unquote

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError
from rag_eval.github.http_client import GitHubError

if TYPE_CHECKING:
    from rag_eval.github.api import Comment

    Mode = Literal["always", "on-change", "on-failure", "off"]
    Action = Literal["created", "updated", "unchanged", "skipped"]

MOST_CHARACTERS = 65_536
"""What GitHub takes as the body of a comment, in characters, the marker included."""

DEFAULT_COMMENT_ID = "rag-eval"
"""The comment-id where none is set and no working directory tells several uses apart."""

_LONGEST_ID = 100
UNFIT = f"does not fit. Give it 1 to {_LONGEST_ID} printable characters."
_MARKER = re.compile(
    r"<!-- rag-eval-action id=(?P<id>[\w.~%-]+) head=(?P<head>[0-9A-Za-z]+) run=(?P<run>[0-9]{1,18})"
    r"(?: workflow=(?P<workflow>[0-9a-f]{12}))?(?: by=(?P<by>[0-9]{1,18}\.[0-9]{1,9}))?(?P<failed> failed)?"
    r" -->(?:\r?\n|\Z)",
    re.ASCII,
)


_RUN = r"run [0-9]+"
_LAST = re.compile(rf"\n\nCommit `[0-9A-Za-z]{{1,7}}`(?: · (?:{_RUN}|\[{_RUN}\]\([^\s()<>]+\)))?\s*\Z", re.ASCII)
_ADDRESS = re.compile(r"https?://[\w.:-]+(?:/[\w.-]+)+", re.ASCII)


class Marker(NamedTuple):
    """What the first line says: whose comment, for which commit, of which run of which workflow.

    Of the workflow it is a digest, empty where it is not known: runs of two of them are counted apart. ``by`` is the
    attempt at a run that wrote it, so that two uses in one run can be told from a run that is repeated.
    """

    id: str
    head: str
    run: int
    workflow: str = ""
    by: str = ""
    failed: bool = False


class Posted(NamedTuple):
    """What became of the comment. ``url`` is empty where there is none, ``reason`` completes "… because".

    ``odd`` says that somebody should look at it.
    """

    url: str
    action: Action
    reason: str
    odd: bool = False

    def __str__(self) -> str:
        return f"comment {self.action}{f': {self.reason}' if self.reason else ''}"

    @property
    def written(self) -> bool:
        """Whether the comment says what it was to say because of this."""
        return self.action in ("created", "updated")


class Api(Protocol):
    """What is asked of GitHub; ``rag_eval.github.api.GitHub`` is one."""

    def login(self) -> str:
        """The login that our comments carry."""

    def comments(self, number: int) -> Iterable[Comment]:
        """All comments of pull request ``number``."""

    def create_comment(self, number: int, body: str, already: Callable[[], Comment | None]) -> Comment:
        """Write a new one, or give what ``already`` finds before another try."""

    def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the text of one."""


def fits(comment_id: str) -> bool:
    """Whether a marker can hold this id."""
    return 0 < len(comment_id) <= _LONGEST_ID and comment_id.isprintable()


def of_folder(folder: str) -> str:
    """The comment-id of a use in a folder of the workspace where none is set: each folder has a comment of its own."""
    own = f"{DEFAULT_COMMENT_ID}:{folder[len(DEFAULT_COMMENT_ID) + 1 - _LONGEST_ID :]}"
    return own if folder and fits(own) else DEFAULT_COMMENT_ID


def name_of(comment_id: str) -> str:
    """What people tell a comment by from others of ours; empty where there need be none."""
    return "" if comment_id == DEFAULT_COMMENT_ID else comment_id.removeprefix(f"{DEFAULT_COMMENT_ID}:")


def attempt(run_id: str, number: str) -> str:
    """An attempt at a run, as a marker names it; empty where it is not known."""
    return f"{run_id}.{number}" if re.fullmatch("[0-9]{1,18}", run_id) and re.fullmatch("[0-9]{1,9}", number) else ""


def marker(comment_id: str, head: str, run: int, workflow: str = "", by: str = "", *, failed: bool = False) -> str:
    """The first line of a body. Different ids stay different; nothing in them can end the line or the comment.

    ``workflow`` is the path of its file, with the repository's name before it and perhaps a ref behind an ``@``, ``by``
    what :func:`attempt` gives.
    """
    if not fits(comment_id):
        raise UsageError(f"comment-id {quoted(comment_id)} {UNFIT}")
    name = quote(comment_id, safe="")
    commit = re.sub(r"[^0-9A-Za-z]", "", head)[:64] or "unknown"
    path = workflow.partition("@")[0]
    of = f" workflow={hashlib.sha256(path.encode()).hexdigest()[:12]}" if path else ""
    of += (f" by={by}" if by else "") + (" failed" if failed else "")
    return f"<!-- rag-eval-action id={name} head={commit} run={max(run, 0)}{of} -->"


def last_line(head: str, run: int, address: str = "") -> str:
    """What ends a body: which commit it is about, and which run says so; the text above it knows neither."""
    commit = re.sub(r"[^0-9A-Za-z]", "", head)[:7]
    named = f"[run {run}]({address})" if _ADDRESS.fullmatch(address) else f"run {run}"
    return f"\nCommit `{commit}`{f' · {named}' if run > 0 else ''}\n" if commit else ""


def run_address(server: str, repository: str, run_id: object) -> str:
    """Where a run's log and summary are; empty where that is not known."""
    known = bool(server and repository) and re.fullmatch("[1-9][0-9]{0,17}", str(run_id), re.ASCII)
    return f"{server.rstrip('/')}/{repository}/actions/runs/{run_id}" if known else ""


def parse_marker(body: str) -> Marker | None:
    """What the first line of ``body`` says, None where it is no marker."""
    found = _MARKER.match(body)
    if not found:
        return None
    written = found["workflow"] or "", found["by"] or "", bool(found["failed"])
    return Marker(unquote(found["id"]), found["head"], int(found["run"]), *written)


def find(comments: Iterable[Comment], author: str, comment_id: str) -> Comment | None:
    """Our comment among ``comments``; of several, as two runs at once may leave, the one of the newest run."""
    ours = [c for c in comments if c.author == author and (said := parse_marker(c.body)) and said.id == comment_id]
    return max(ours, key=lambda comment: (_run(comment.body), -comment.id), default=None)


def post(api: Api, number: int, body: str, comment_id: str, mode: Mode, failed: bool, run: int) -> Posted:
    """Bring the comment of pull request ``number`` to ``body``, which starts with its marker.

    ``always`` writes each time; ``on-change`` only where the text between the marker and the line on the run differs;
    ``on-failure`` makes a comment only where a gate ``failed``, but keeps one that stands up to date, so that a red one
    turns green. The comment of a run of this workflow with a higher number than ``run`` stays; another workflow's is
    replaced, for whose is newer cannot be told. So is that of another use in this very run, unless it alone failed: who
    looks at the comment must not take one for all. Raises GitHubError, and ValueError for a wrong body.
    """
    _check(body, comment_id, run)
    if mode == "off":
        return Posted("", "skipped", "comments are off")
    author = api.login()
    standing = find(api.comments(number), author, comment_id)
    if standing is not None:
        try:
            return _replace(api, standing, body, mode, run)
        except GitHubError as error:
            if error.status not in (404, 410):  # else it was deleted after it was listed
                raise
    if mode == "on-failure" and not failed:
        return Posted("", "skipped", "no gate failed and there is no comment to correct")
    made = api.create_comment(number, body, lambda: find(api.comments(number), author, comment_id))
    # What was found before a second try may be another run's.
    if not _same(made.body, body):
        return _replace(api, made, body, mode, run)
    if made.author == author:
        return Posted(made.url, "created", "")
    return Posted(made.url, "created", _stranger(made.author, author), odd=True)


def _stranger(author: str, known: str) -> str:
    """What is to be said where the comment turns out to be somebody else's than ours are looked for by."""
    return f"it is by {quoted(author)}, and the next run, which looks for one by {quoted(known)}, will add another"


def _check(body: str, comment_id: str, run: int) -> None:
    said = parse_marker(body)
    if said is None or (said.id, said.run) != (comment_id, max(run, 0)):
        raise ValueError("the body must start with the marker of this comment and this run")
    if len(body) > MOST_CHARACTERS:
        raise ValueError(f"the body has {len(body)} characters: cut it to {MOST_CHARACTERS} before it is posted")


def _replace(api: Api, standing: Comment, body: str, mode: Mode, run: int) -> Posted:
    rival = _rival(parse_marker(standing.body), parse_marker(body))
    if rival != _WORKFLOW and _run(standing.body) > run:
        newer = f"run {_run(standing.body)} is newer and has commented already"
        return Posted(standing.url, "skipped", newer, odd=True)
    reason = f"{rival} wrote it; where both go on, give each a comment-id of its own" if rival else ""
    if rival == _FAILED:
        return Posted(standing.url, "unchanged", reason, odd=True)
    if _same(standing.body, body) or (mode == "on-change" and _same(_text(standing.body), _text(body))):
        return Posted(standing.url, "unchanged", reason or "it says the same already", odd=bool(reason))
    return Posted(api.update_comment(standing.id, body).url or standing.url, "updated", reason, odd=bool(reason))


_WORKFLOW, _USE = "another workflow", "another use in this run"
_FAILED = f"{_USE}, which failed,"


def _rival(one: Marker | None, other: Marker | None) -> str:
    """Who else wrote the comment that stands, as far as that is known; empty where it is an earlier one of ours."""
    if one is None or other is None:
        return ""
    if one.workflow and other.workflow and one.workflow != other.workflow:
        return _WORKFLOW
    if not one.by or (one.by, one.run) != (other.by, other.run):
        return ""
    return _FAILED if one.failed and not other.failed else _USE


def _run(body: str) -> int:
    said = parse_marker(body)
    return said.run if said else 0


def _text(body: str) -> str:
    return _LAST.sub("", _MARKER.sub("", body.replace("\r\n", "\n"), count=1))


def _same(one: str, other: str) -> bool:
    # GitHub may hand back a body with other line ends and without the blanks at its ends.
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
