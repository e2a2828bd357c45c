"""GitHub's REST API, as far as the action uses it: comments, files, git objects, pull requests and their reviews.

Every answer is checked: unexpected content is a ``GitHubError``. Git objects are checked against their ids. The API
gives no time zones and no ends of lines, so the forms that an object may have are tried until one has its id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError
from rag_eval.git import FOLDERS, is_object_id, object_id
from rag_eval.github.http_client import GRAPHQL, Http, Request, text_at
from rag_eval.github.http_client import GitHubError as GitHubError
from rag_eval.github.http_client import Network as Network
from rag_eval.gold.signoff_identity import Authorship, Review

T = TypeVar("T")
BOT = "github-actions[bot]"  # the login that writes with a workflow's own token
MOST_COMMITS = 250  # GitHub lists no more commits of a pull request than these
_PER_PAGE, _MOST_PAGES = 100, 300
_MOST_BLOBS = 500
_RAW, _SHA = "application/vnd.github.raw+json", "application/vnd.github.sha"
_REPOSITORY = re.compile(r"(?!\.{1,2}/)[\w.-]+/(?!\.{1,2}\Z)[\w.-]+", re.ASCII)
_REF = re.compile(r"(?!.*\.\.)[^\x00-\x20\x7f~^:?*\[\\]+")
_CO_AUTHOR = re.compile(r"(?im)^[ \t]*co-authored-by[ \t]*:[ \t]*([^<\n]*)(?:<([^>\n]*)>)?")
_NAME = "read the login of the token"
_SURPRISE = "Check if a proxy changed it."
_ZONES = tuple(
    f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}" for minutes in range(-720, 841, 15)
)
_LONG, _TOO_LONG = 1 << 13, 1 << 20  # characters of a message from which on only pairs of one zone are tried, and none


class Comment(NamedTuple):
    """A comment of an issue or pull request. ``author`` is a login, empty if the account was deleted."""

    id: int
    author: str
    body: str
    url: str


class OpenPull(NamedTuple):
    """A pull request in a list of open ones, and its last commit."""

    number: int
    head: str


class CheckRun(NamedTuple):
    """A check run; its writer chose ``external_id``."""

    id: int
    url: str
    external_id: str


class GitHub:
    """One repository behind one API address, with one token (empty: none).

    Raises UsageError for an invalid address, repository or token, MissingExtra without urllib3.
    """

    def __init__(self, api_url: str, token: str, repository: str, network: Network | None = None) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise UsageError(f"{quoted(repository)} is not a repository. Write it as owner/name.")
        self.repository = repository
        self._http = Http(api_url, token, network or Network())
        self._raw: dict[str, bytes] = {}

    def login(self) -> str:
        """Return the login under which this client writes comments.

        Tokens of workflows and GitHub Apps cannot ask the REST API for it, but GraphQL. If that does not answer either,
        the token counts as a workflow's own, which writes as ``github-actions[bot]``.
        """
        try:
            return text_at(self._http.send(Request("GET", "/user", _NAME)).json(), "login") or BOT
        except GitHubError as refused:
            if refused.status not in (401, 403, 404):
                raise
        request = Request("POST", GRAPHQL, _NAME, content={"query": "query { viewer { login } }"})
        try:
            answer = self._http.send(request).json()
        except GitHubError:
            return BOT
        return text_at(answer, "data", "viewer", "login") or BOT

    def comments(self, number: int) -> Iterator[Comment]:
        """Yield all comments of the issue or pull request ``number``, oldest first, page by page."""
        rows = self._all_pages(f"issues/{number:d}/comments", "read the comments", "pull-requests: read")
        yield from map(_comment, rows)

    def create_comment(self, number: int, body: str, already: Callable[[], Comment | None]) -> Comment:
        """Write a new comment.

        ``already`` is called before each retry, which is skipped if it returns a comment: after a lost answer the
        comment may exist.
        """
        path = self._path(f"issues/{number:d}/comments")
        request = Request("POST", path, "comment", "pull-requests: write", content={"body": body})
        return self._created(request, already, _comment)

    def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        path = self._path(f"issues/comments/{comment_id:d}")
        request = Request("PATCH", path, "change the comment", "pull-requests: write", content={"body": body})
        return _comment(self._http.send(request).json())

    def check_runs(self, sha: str, name: str) -> list[CheckRun]:
        """Return the newest check runs of a commit with this name, 100 at most."""
        asked = urlencode({"check_name": name, "per_page": _PER_PAGE})
        aim = f"read the check runs of {sha[:12]}"
        answer = self._object(f"commits/{_checked_hash(sha)}/check-runs?{asked}", aim, "checks: read")
        return [_check_run(row) for row in _list(answer.get("check_runs"))]

    def create_check_run(self, content: Mapping[str, Any], already: Callable[[], CheckRun | None]) -> CheckRun:
        """Write a new check run; ``already`` is called as in :meth:`create_comment`."""
        request = Request("POST", self._path("check-runs"), "write the check run", "checks: write", content=content)
        return self._created(request, already, _check_run)

    def add_to_check_run(self, check_id: int, output: Mapping[str, Any]) -> bool:
        """Add annotations to a check run; return False if GitHub failed, because a retry might add them twice."""
        path = self._path(f"check-runs/{check_id:d}")
        request = Request("PATCH", path, "add annotations", "checks: write", content={"output": output})
        return next(self._http.attempts(request)) is not None

    def commit(self, ref: str) -> str:
        """Return the full hash of the commit that a branch, a tag or a hash names; status 404 or 422 if none does.

        Raises UsageError if a branch and a tag of this name are at different commits: whoever may push can add either.
        """
        tips = {}
        for form in () if is_object_id(ref) else ("heads", "tags"):
            try:
                tips[self._commit(f"{form}/{_checked_ref(ref)}", ref)] = form
            except GitHubError as error:
                if error.status not in (404, 422):
                    raise
        if len(tips) > 1:
            fix = "Write heads/… for the branch, or tags/… for the tag."
            raise UsageError(f"{quoted(ref)} is a branch and a tag. {fix}")
        return next(iter(tips), "") or self._commit(ref, ref)

    def branch(self, name: str) -> str:
        """Return the full hash of the last commit of a branch, even if a tag has the same name."""
        return self._commit(f"heads/{name}", name)

    def _commit(self, ref: str, named: str) -> str:
        where = self._path(f"commits/{quote(_checked_ref(ref), safe='')}")
        answer = self._http.send(Request("GET", where, f"find {quoted(named)}", "contents: read", _SHA))
        return _sha(answer.data.decode("ascii", "replace").strip())

    def default_branch(self) -> str:
        """Return the name of the default branch."""
        branch = text_at(self._object("", "read the repository", "contents: read"), "default_branch")
        if not branch:
            raise _unexpected("not a repository")
        return branch

    def raw(self, kind: str, sha: str) -> bytes:
        """Return the bytes of a commit, a tree or a blob, checked against ``sha``."""
        if sha in self._raw:
            return self._raw[sha]
        rest, aim, needs = f"git/{kind}s/{_checked_hash(sha)}", f"read {kind} {sha[:12]}", "contents: read"
        data: bytes | None
        if kind == "blob":
            data = self._http.send(Request("GET", self._path(rest), aim, needs, _RAW)).data
            data = data if object_id(data, like=sha) == sha else None
        else:
            answer = self._object(rest, aim, needs)
            if kind == "tree" and answer.get("truncated") is not False:
                raise GitHubError(f"GitHub lists only a part of tree {sha[:12]}. Keep fewer files in one folder.")
            data = commit_bytes(answer, sha) if kind == "commit" else tree_bytes(_tree_rows(answer), sha)
        if data is None:
            raise _mismatch(kind, sha)
        self._raw[sha] = data
        return data

    def objects(self, kind: str, shas: Collection[str]) -> dict[str, bytes]:
        """Return the bytes of trees with all trees below them, or of blobs, each checked against its hash."""
        if kind == "blob" and len(shas) > _MOST_BLOBS:
            what = f"{len(shas)} files of the base branch are not in this clone, too many to request from GitHub"
            raise GitHubError(f"{what}. Check out with fetch-depth: 2 or more, so that git has them.")
        if kind != "tree":
            return {sha: self.raw(kind, sha) for sha in shas}
        trees = {sha: self._raw[sha] for sha in shas if sha in self._raw}
        for sha in shas:
            if sha in trees:
                continue
            aim = f"read tree {sha[:12]}"
            answer = self._object(f"git/trees/{_checked_hash(sha)}?recursive=1", aim, "contents: read")
            # GitHub does not list all trees below a large one: then it is read alone.
            all_listed = answer.get("truncated") is False
            below = trees_bytes(_tree_rows(answer), sha) if all_listed else {sha: self.raw("tree", sha)}
            if below is None:
                raise _mismatch("tree", sha)
            trees |= below
        return trees

    def merge_base(self, base: str, head: str) -> str:
        """Return the hash of the best common ancestor of two branches, tags or hashes."""
        ends = "...".join(quote(_checked_ref(ref), safe="") for ref in (base, head))
        aim = f"compare {quoted(base)} with {quoted(head)}"
        answer = self._object(f"compare/{ends}?per_page=1", aim, "contents: read")
        return _sha(text_at(answer, "merge_base_commit", "sha"))

    def opened_by(self, number: int) -> str:
        """Return the login of the author of pull request ``number``, empty if the account was deleted."""
        answer = self._object(f"pulls/{number:d}", f"read #{number}", "pull-requests: read")
        _whole(answer, "number", "pull request")  # otherwise it is no pull request, and a missing author means nothing
        return text_at(answer, "user", "login")

    def open_pulls(self, owner: str = "", branch: str = "") -> Iterator[OpenPull]:
        """Yield the open pull requests of a branch of ``owner``'s; all open ones if either is empty.

        Oldest first: sorted by the last update, one that is updated meanwhile would move to a page that was read.
        """
        end = {"head": f"{owner}:{branch}"} if owner and branch else {}
        asked = urlencode({"state": "open", "sort": "created", "direction": "asc", **end})
        for row in self._all_pages(f"pulls?{asked}", "list the pull requests", "pull-requests: read"):
            yield OpenPull(_whole(row, "number", "pull request"), _sha(text_at(row, "head", "sha")))

    def reviews(self, number: int) -> list[Review]:
        """Return all reviews of the pull request ``number``, oldest first."""
        reviews = []
        for row in self._all_pages(f"pulls/{number:d}/reviews", "read the reviews", "pull-requests: read"):
            user, state, commit = text_at(row, "user", "login"), text_at(row, "state"), text_at(row, "commit_id")
            reviews.append(Review(_whole(row, "id", "review"), user, state, commit))
        return reviews

    def commits_touching(self, paths: tuple[str, ...], head: str, within: int) -> list[Authorship]:
        """Return the authors of those commits of pull request ``within`` that touch one of ``paths``.

        ``head`` is the last commit of the pull request. GitHubError is raised if the pull request has a newer one, or
        as many commits as GitHub lists at most: there may be more.
        """
        rows = list(self._all_pages(f"pulls/{within:d}/commits", "read the commits", "pull-requests: read"))
        if len(rows) >= MOST_COMMITS:
            what = f"#{within} has {MOST_COMMITS} or more commits, and GitHub does not list the others"
            raise GitHubError(f"{what}: their authors are unknown. Split the pull request.")
        commits = {_sha(text_at(row, "sha")): row for row in rows}
        if head not in commits:
            raise GitHubError(f"#{within} has newer commits than {head[:12]}. Look at the run of its newest commit.")
        touching = set()
        for touched in paths:
            history = f"commits?{urlencode({'sha': _checked_hash(head), 'path': touched})}"
            aim = f"read the history of {quoted(touched)}"
            touching |= {_sha(text_at(row, "sha")) for row in self._all_pages(history, aim, "contents: read")}
        return [author for sha, row in commits.items() if sha in touching for author in _authors(sha, row)]

    def pull_head(self, number: int) -> str:
        """Return the hash of the last commit of a pull request."""
        answer = self._object(f"pulls/{number:d}", f"read #{number}", "pull-requests: read")
        return _sha(text_at(answer, "head", "sha"))

    def _object(self, rest: str, aim: str, needs: str) -> Mapping[str, Any]:
        return _object(self._http.send(Request("GET", self._path(rest), aim, needs)).json(), "JSON object")

    def _created(self, request: Request, already: Callable[[], T | None], read: Callable[[object], T]) -> T:
        attempts = self._http.attempts(request)
        while (answer := next(attempts)) is None:
            if made := already():
                return made
        return read(answer.json())

    def _all_pages(self, rest: str, aim: str, needs: str) -> Iterator[Mapping[str, Any]]:
        path, joint = self._path(rest), "&" if "?" in rest else "?"
        for page in range(1, _MOST_PAGES + 1):
            answer = self._http.send(Request("GET", f"{path}{joint}per_page={_PER_PAGE}&page={page}", aim, needs))
            rows = _list(answer.json())
            yield from (_object(row, "list of objects") for row in rows)
            # From the header only the existence of a next page is used: its address may name another host.
            if len(rows) < _PER_PAGE and 'rel="next"' not in answer.headers.get("link", ""):
                return
        raise GitHubError(f"Could not {aim}: there are over {_PER_PAGE * _MOST_PAGES}, too many to read.")

    def _path(self, rest: str) -> str:
        return f"/repos/{self.repository}/{rest}".removesuffix("/")


def _checked_ref(ref: str) -> str:
    if not _REF.fullmatch(ref):
        raise UsageError(f"{quoted(ref)} is not the name of a branch, tag or commit.")
    return ref


def _checked_hash(sha: str) -> str:
    if not is_object_id(sha):
        raise UsageError(f"{quoted(sha)} is not the full hash of a git object.")
    return sha


def _mismatch(kind: str, sha: str) -> GitHubError:
    """Return the error for an answer that does not match its hash: forged, or in a form that the API cannot show."""
    what = f"GitHub's answer for {kind} {sha[:12]} does not match its hash. {_SURPRISE}"
    return GitHubError(f"{what} Otherwise check out with fetch-depth: 2 or more, so that git has it.")


def _unexpected(what: str) -> GitHubError:
    return GitHubError(f"GitHub's answer is {what}. {_SURPRISE}")


def _sha(text: str) -> str:
    if not is_object_id(text):
        raise _unexpected("not the hash of a commit")
    return text


def _tree_rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    return ((text_at(row, "mode"), text_at(row, "path"), text_at(row, "sha")) for row in _list(answer.get("tree")))


def _list(rows: object) -> list[object]:
    if not isinstance(rows, list):
        raise _unexpected("not a list")
    return rows


def _object(row: object, what: str) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise _unexpected(f"not a {what}")
    return row


def _whole(row: Mapping[str, Any], key: str, what: str) -> int:
    number = row.get(key)
    if not isinstance(number, int):
        raise _unexpected(f"not a {what}")
    return number


def _comment(row: object) -> Comment:
    answer = _object(row, "comment")
    number = _whole(answer, "id", "comment")
    return Comment(number, text_at(answer, "user", "login"), text_at(row, "body"), text_at(row, "html_url"))


def _check_run(row: object) -> CheckRun:
    answer = _object(row, "check run")
    return CheckRun(_whole(answer, "id", "check run"), text_at(row, "html_url"), text_at(row, "external_id"))


def _authors(sha: str, row: Mapping[str, Any]) -> Iterator[Authorship]:
    commit = _object(row.get("commit"), "commit")
    account = text_at(row, "author", "login") or None
    yield Authorship(sha, account, text_at(commit, "author", "name"), text_at(commit, "author", "email"))
    for name, email in _CO_AUTHOR.findall(text_at(commit, "message")):
        yield Authorship(sha, None, name.strip(), email.strip(), co_author=True)


def commit_bytes(answer: Mapping[str, Any], sha: str) -> bytes | None:
    """Return the bytes of the commit ``sha``; None if no reading of ``answer`` has that id."""
    try:
        candidates = _signed(answer, sha) if answer["verification"]["signature"] else _unsigned(answer)
        for text in candidates:
            data = text.encode()
            if object_id(data, "commit", like=sha) == sha:
                return data
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        pass  # an answer of another form
    return None


def tree_bytes(entries: Iterable[tuple[str, str, str]], sha: str) -> bytes | None:
    """Return the bytes of the tree ``sha`` with these modes, names and ids; None if they have another id."""
    rows = (f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(entry) for mode, name, entry in entries)
    try:
        data = b"".join(rows)
    except ValueError:  # a name with half a surrogate pair
        return None
    return data if object_id(data, "tree", like=sha) == sha else None


def trees_bytes(entries: Iterable[tuple[str, str, str]], sha: str) -> dict[str, bytes] | None:
    """Return the bytes of the tree ``sha`` and of all trees below it; None if one of them has another id.

    The entries have the paths from that tree, folders included, in any order.
    """
    ids, rows = {"": sha}, dict[str, list[tuple[str, str, str]]]({"": []})
    for mode, path, entry in entries:
        folder, _, name = path.rpartition("/")
        rows.setdefault(folder, []).append((mode, name, entry))
        if mode in FOLDERS:
            ids[path] = entry
            rows.setdefault(path, [])
    trees: dict[str, bytes] = {}
    for folder, inside in rows.items():
        # Git sorts a folder as if its name ended in a slash.
        ordered = sorted(inside, key=lambda row: row[1] + "/" if row[0] in FOLDERS else row[1])
        data = tree_bytes(ordered, ids[folder]) if folder in ids else None
        if data is None:
            return None
        trees[ids[folder]] = data
    return trees


def _signed(answer: Mapping[str, Any], sha: str) -> Iterator[str]:
    """Yield a commit with its signature in the header, behind the committer or at the end."""
    head, _, message = answer["verification"]["payload"].partition("\n\n")
    lines = answer["verification"]["signature"].rstrip("\n").split("\n")
    name = "gpgsig" if len(sha) == len("0" * 40) else "gpgsig-sha256"
    headers = head.split("\n")
    committer = next((at for at, line in enumerate(headers) if line.startswith("committer ")), 0)
    for at, tail, end in product((len(headers), committer + 1), ([""], []), ("", "\n")):
        signature = "\n ".join([f"{name} {lines[0]}", *lines[1:], *tail])
        yield "\n".join([*headers[:at], signature, *headers[at:]]) + f"\n\n{message}{end}"


def _unsigned(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield a commit in every time zone that its author and its committer may have been in."""
    message = answer["message"]
    parents = "".join(f"parent {parent['sha']}\n" for parent in answer["parents"])
    head = f"tree {answer['tree']['sha']}\n{parents}author "
    author, committer = (
        f"{person['name']} <{person['email']}> {int(datetime.fromisoformat(person['date']).timestamp())}"
        for person in (answer["author"], answer["committer"])
    )
    zones = [(zone, zone) for zone in _ZONES]
    if len(message) <= _LONG:
        zones += [(entry, other) for entry, other in product(_ZONES, repeat=2) if entry != other]
    for (item, other), end in product(zones if len(message) <= _TOO_LONG else [], ("\n", "")):
        yield f"{head}{author} {item}\ncommitter {committer} {other}\n\n{message}{end}"
